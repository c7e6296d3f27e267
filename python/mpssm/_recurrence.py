# SPDX-License-Identifier: MIT
"""Operators on a graph: sparse product, recurrence, pooling. Kernels, shapes, gradients."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Optional, Tuple

import torch
from torch import Tensor

from mpssm import _engine
from mpssm._operators import GSO, contiguous, define, pointer

_ARRAYS = 7  # tensors that stand for A


def _packed(arrays: Tuple[Tensor, ...]) -> bytes:
    """GsoArguments of the library; memory stays with the tensors."""
    row_ptr, col, value, t_row_ptr, t_col, t_value, graph_ptr = arrays
    return _engine.pack_gso(value.dtype == torch.float64, row_ptr.shape[0] - 1, col.shape[0],
                            graph_ptr.shape[0] - 1, row_ptr.data_ptr(), col.data_ptr(),
                            value.data_ptr(), t_row_ptr.data_ptr(), t_col.data_ptr(),
                            t_value.data_ptr(), graph_ptr.data_ptr())


# ---- spmm -----------------------------------------------------------------------------------


def _spmm_kernel(*args: Any) -> Tensor:
    arrays, x, transposed = args[:_ARRAYS], args[7], args[8]
    x = x.contiguous()
    y = torch.empty_like(x)
    if x.numel():
        nodes, width = x.shape[-2:]
        _engine.spmm(_packed(arrays), transposed, x.numel() // (nodes * width), width, x.data_ptr(),
                     y.data_ptr())
    return y


def _spmm_fake(*args: Any) -> Tensor:
    return torch.empty_like(args[7], memory_format=torch.contiguous_format)


def _spmm_setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:_ARRAYS])
    ctx.transposed = inputs[8]


def _spmm_backward(ctx: Any, grad: Tensor) -> Any:
    # Again an spmm, so any order of derivative follows.
    return (*[None] * _ARRAYS, spmm(*ctx.saved_tensors, grad, not ctx.transposed), None)


spmm = define(f"spmm({GSO}, Tensor x, bool transposed) -> Tensor", _spmm_kernel, _spmm_fake,
              _spmm_setup, _spmm_backward, main=7, differentiable=(7,))


# ---- recurrence -----------------------------------------------------------------------------

WANT_INPUT, WANT_W, WANT_INITIAL = 1, 2, 4
_READS_INPUT, _READS_INITIAL, _READS_OUTPUT = 1, 2, 4


@functools.lru_cache(maxsize=4096)
def _resolve(plan: str, is_double: bool, nodes: int, nonzeros: int, batch: int, steps: int,
             channels: int, temporal: bool, diagonal: bool, all_outputs: bool, has_initial: bool,
             wanted: int) -> Tuple[int, int, int]:
    """Number of the plan, numbers that it saves, bits of what its backward pass reads."""
    gso = _engine.pack_gso(is_double, nodes, nonzeros, 1, 0, 0, 0, 0, 0, 0, 0)
    call = _engine.pack_recurrence(0, batch, steps, channels, temporal, diagonal, all_outputs,
                                   has_initial, wanted, 0, *[0] * 9)
    result = (ctypes.c_int64 * 3)()
    _engine.recurrence_plan(gso, call, plan.encode(), result)
    return result[0], result[1], result[2]


def _resolved(args: Any) -> Tuple[int, int, int]:
    """Shapes are taken as they are: a traced call is one for these shapes."""
    row_ptr, col = args[0], args[1]
    u, _, initial, steps, temporal, diagonal, all_outputs, plan, wanted = args[_ARRAYS:]
    nodes, channels = int(row_ptr.shape[0]) - 1, int(u.shape[-1])
    batch = int(u.numel()) // (nodes * channels * (int(steps) if temporal else 1))
    return _resolve(plan, u.dtype == torch.float64, nodes, int(col.shape[0]), batch, int(steps),
                    channels, temporal, diagonal, all_outputs, initial is not None, wanted)


def _state_shape(x: Tensor, has_steps: bool) -> Tuple[int, ...]:
    """[..., N, C] of x, which is [..., T, N, C] if it has steps."""
    return (*x.shape[:-3], *x.shape[-2:]) if has_steps else tuple(x.shape)


def _with_steps(state: Tuple[int, ...], steps: int) -> Tuple[int, ...]:
    return (*state[:-2], steps, *state[-2:])


def _output_shape(args: Any) -> Tuple[int, ...]:
    u, steps, temporal, all_outputs = args[7], args[10], args[11], args[13]
    state = _state_shape(u, temporal)
    return _with_steps(state, steps) if all_outputs else state


def _recurrence_kernel(*args: Any) -> Tuple[Tensor, Tensor]:
    u, w, initial, steps, temporal, diagonal, all_outputs, _, wanted = args[_ARRAYS:]
    plan, saves, _ = _resolved(args)
    u, w = u.contiguous(), w.contiguous()
    initial = contiguous(initial)
    output = u.new_empty(_output_shape(args))
    saved = u.new_empty(saves)
    batch = output.numel() // (u.shape[-2] * u.shape[-1] * (steps if all_outputs else 1))
    _engine.recurrence_forward(
        _packed(args[:_ARRAYS]),
        _engine.pack_recurrence(plan, batch, steps, u.shape[-1], temporal, diagonal,
                                all_outputs, initial is not None, wanted, saves, u.data_ptr(),
                                w.data_ptr(), pointer(initial), output.data_ptr(),
                                saved.data_ptr(), 0, 0, 0, 0))
    return output, saved


def _recurrence_fake(*args: Any) -> Tuple[Tensor, Tensor]:
    u = args[7]
    return u.new_empty(_output_shape(args)), u.new_empty(_resolved(args)[1])


def _recurrence_setup(ctx: Any, inputs: Any, output: Any) -> None:
    u, w, initial = inputs[7:10]
    result, saved = output
    plan, _, reads = _resolved(inputs)
    ctx.mark_non_differentiable(saved)
    ctx.save_for_backward(*inputs[:_ARRAYS], w, u if reads & _READS_INPUT else None,
                          initial if reads & _READS_INITIAL else None,
                          result if reads & _READS_OUTPUT else None, saved)
    ctx.call = (plan, inputs[10], inputs[11], inputs[12], inputs[13], initial is not None)
    ctx.wanted = inputs[15]


def _recurrence_backward(ctx: Any, grad: Tensor, _: Any) -> Any:
    needs = ctx.needs_input_grad
    wanted = (WANT_INPUT * needs[7]) | (WANT_W * needs[8]) | (WANT_INITIAL * needs[9])
    if wanted & ~ctx.wanted:
        raise RuntimeError("mpssm_engine.recurrence: a gradient is asked for that the call did not "
                           "name in `wanted`")
    *arrays, w, u, initial, output, saved = ctx.saved_tensors
    grad_u, grad_w, grad_initial = recurrence_backward(*arrays, grad, w, u, initial, output, saved,
                                                       *ctx.call, wanted)
    return (*[None] * _ARRAYS, grad_u if needs[7] else None, grad_w if needs[8] else None,
            grad_initial if needs[9] else None, *[None] * 6)


recurrence = define(
    f"recurrence({GSO}, Tensor u, Tensor w_state, Tensor? initial, int steps, bool temporal, "
    "bool diagonal, bool all_outputs, str plan, int wanted) -> (Tensor, Tensor)",
    _recurrence_kernel, _recurrence_fake, _recurrence_setup, _recurrence_backward,
    main=7, differentiable=(7, 8, 9))


def _gradients(args: Any) -> Tuple[Tensor, Tensor, Tensor]:
    """Room for the gradients that are wanted, nothing for the others."""
    grad, w = args[7], args[8]
    steps, temporal, all_outputs, wanted = args[14], args[15], args[17], args[-1]
    state = _state_shape(grad, all_outputs)
    inputs = _with_steps(state, steps) if temporal else state
    return (grad.new_empty(inputs if wanted & WANT_INPUT else (0,)),
            grad.new_empty(w.shape if wanted & WANT_W else (0,)),
            grad.new_empty(state if wanted & WANT_INITIAL else (0,)))


def _backward_kernel(*args: Any) -> Tuple[Tensor, Tensor, Tensor]:
    (grad, w, u, initial, output, saved, plan, steps, temporal, diagonal, all_outputs, has_initial,
     wanted) = args[_ARRAYS:]
    grad, w = grad.contiguous(), w.contiguous()
    u, initial = contiguous(u), contiguous(initial)
    gradients = _gradients(args)
    batch = grad.numel() // (grad.shape[-2] * grad.shape[-1] * (steps if all_outputs else 1))
    _engine.recurrence_backward(
        _packed(args[:_ARRAYS]),
        _engine.pack_recurrence(plan, batch, steps, grad.shape[-1], temporal, diagonal,
                                all_outputs, has_initial, wanted, saved.shape[0], pointer(u),
                                w.data_ptr(), pointer(initial), pointer(output),
                                saved.data_ptr(), grad.data_ptr(),
                                *[tensor.data_ptr() for tensor in gradients]))
    return gradients


def _backward_fake(*args: Any) -> Tuple[Tensor, Tensor, Tensor]:
    return _gradients(args)


recurrence_backward = define(
    f"recurrence_backward({GSO}, Tensor grad, Tensor w_state, Tensor? u, Tensor? initial, "
    "Tensor? output, Tensor saved, int plan, int steps, bool temporal, bool diagonal, "
    "bool all_outputs, bool has_initial, int wanted) -> (Tensor, Tensor, Tensor)",
    _backward_kernel, _backward_fake, main=7)
