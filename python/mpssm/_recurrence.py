# SPDX-License-Identifier: MIT
"""Operators on a graph: sparse product, recurrence, pooling. Kernels, shapes, gradients."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Sequence, Tuple

import torch
from torch import Tensor

from mpssm import _engine
from mpssm._memory import empty
from mpssm._operators import FOUND_OUT, GSO, contiguous, define, pointer

_ARRAYS = 7  # tensors that stand for A
_NO_ORDER, _NO_BASIS = (0,) * 9, (0,) * 6


def _packed(arrays: Sequence[Tensor], order: Sequence[Tensor] = (),
            basis: Sequence[Tensor] = (), share: int = 1) -> bytes:
    """GsoArguments of the library; memory stays with the tensors."""
    row_ptr, col, value, t_row_ptr, t_col, t_value, graph_ptr = arrays
    return _engine.pack_gso(
        value.dtype == torch.float64, row_ptr.shape[0] - 1, col.shape[0], graph_ptr.shape[0] - 1,
        row_ptr.data_ptr(), col.data_ptr(), value.data_ptr(), t_row_ptr.data_ptr(), t_col.data_ptr(),
        t_value.data_ptr(), graph_ptr.data_ptr(),
        *([tensor.data_ptr() for tensor in order] if order else _NO_ORDER),
        *([basis[2].shape[0], *[tensor.data_ptr() for tensor in basis]] if basis else _NO_BASIS),
        share)


def _packed_groups(arrays: Sequence[Tensor], order: Sequence[Tensor], basis: Sequence[Tensor],
                   others: Sequence[Tensor], shares: Sequence[int]) -> bytes:
    """The same of the operators of all groups, one behind the other."""
    if not shares:
        return _packed(arrays, order, basis)
    each = [arrays, *[others[i:i + _ARRAYS] for i in range(0, len(others), _ARRAYS)]]
    return b"".join(_packed(group, share=share) for group, share in zip(each, shares))


# ---- spmm -----------------------------------------------------------------------------------


def _spmm_kernel(*args: Any) -> Tensor:
    arrays, x, transposed = args[:_ARRAYS], args[7], args[8]
    x = x.contiguous()
    y = empty(x, x.shape)
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


def _spmm_backward(ctx: Any, needs: Any, grad: Tensor) -> Any:
    # Again an spmm, so any order of derivative follows.
    return (spmm(*ctx.saved_tensors, grad, not ctx.transposed),)


spmm = define(f"spmm({GSO}, Tensor x, bool transposed) -> Tensor", _spmm_kernel, _spmm_fake,
              _spmm_setup, _spmm_backward, main=7, differentiable=(7,))


# ---- recurrence -----------------------------------------------------------------------------

WANT_INPUT, WANT_W, WANT_INITIAL, WANT_VALUES = 1, 2, 4, 8
_READS_INPUT, _READS_INITIAL, _READS_OUTPUT = 1, 2, 4


def of_this_build(plan: str) -> str:
    """The plan as the operator takes it. What a plan saves is baked into compiled code, which torch
    keeps on disk by the operator's arguments: another build of the engine must not meet it."""
    return f"{plan}@{_engine.BUILD}"


@functools.lru_cache(maxsize=4096)
def _resolve(plan: str, is_double: bool, nodes: int, nonzeros: int, basis: int, batch: int,
             steps: int, channels: int, temporal: bool, diagonal: bool, all_outputs: bool,
             has_initial: bool, wanted: int, precision: int, all_channels: int,
             other_values: bool, other_nonzeros: Tuple[int, ...], shares: Tuple[int, ...],
             hops_per_step: int) -> Tuple[int, int, int]:
    """Number of the plan, numbers that it saves, bits of what its backward pass reads."""
    plan = plan.partition("@")[0]
    graph_ptr = (ctypes.c_int64 * 2)(0, nodes)
    gso = b"".join(
        _engine.pack_gso(is_double, nodes, entries, 1, *[0] * 6, ctypes.addressof(graph_ptr),
                         *[0] * 9, basis, *[0] * 5, share)
        for entries, share in zip((nonzeros, *other_nonzeros), shares or (1,)))
    call = _engine.pack_recurrence(0, batch, steps, channels, temporal, diagonal, all_outputs,
                                   has_initial, wanted, 0, precision, all_channels, other_values,
                                   len(shares) or 1, hops_per_step, *[0] * 10)
    result = (ctypes.c_int64 * 3)()
    _engine.recurrence_plan(gso, call, plan.encode(), result)
    return result[0], result[1], result[2]


def _resolved(args: Any) -> Tuple[int, Tuple[int, int, int]]:
    """Copies in the batch, and _resolve(). Shapes are taken as they are: a traced call is one for
    these shapes."""
    (basis, u, _, initial, steps, temporal, diagonal, all_outputs, plan, wanted, precision,
     all_channels, other_values, others, shares, hops_per_step) = args[8:]
    shape = u.shape
    nodes, channels, steps = int(shape[-2]), int(shape[-1]), int(steps)
    batch = int(u.numel()) // (nodes * channels * (steps if temporal else 1))
    return batch, _resolve(plan, u.dtype == torch.float64, nodes, int(args[1].shape[0]),
                           int(basis[2].shape[0]) if basis else 0, batch, steps, channels, temporal,
                           diagonal, all_outputs, initial is not None, wanted, precision,
                           all_channels, other_values,
                           tuple(int(col.shape[0]) for col in others[1::_ARRAYS]), tuple(shares),
                           hops_per_step)


def _state_shape(x: Tensor, has_steps: bool) -> Tuple[int, ...]:
    """[..., N, C] of x, which is [..., T, N, C] if it has steps."""
    return (*x.shape[:-3], *x.shape[-2:]) if has_steps else x.shape


def _with_steps(state: Tuple[int, ...], steps: int) -> Tuple[int, ...]:
    return (*state[:-2], steps, *state[-2:])


def _output_shape(u: Tensor, steps: int, temporal: bool, all_outputs: bool) -> Tuple[int, ...]:
    if temporal == all_outputs:
        return u.shape
    return _with_steps(u.shape, steps) if all_outputs else _state_shape(u, True)


def _recurrence_kernel(*args: Any) -> Tuple[Tensor, Tensor]:
    (u, w, initial, steps, temporal, diagonal, all_outputs, _, wanted, precision, whole,
     other_values, others, shares, hops_per_step) = args[9:]
    batch, (plan, saves, _) = _resolved(args)
    u, w, initial = u.contiguous(), w.contiguous(), contiguous(initial)
    output = empty(u, _output_shape(u, steps, temporal, all_outputs))
    saved = empty(u, (saves,))
    _engine.recurrence_forward(
        _packed_groups(args[:_ARRAYS], args[7], args[8], others, shares),
        _engine.pack_recurrence(plan, batch, steps, u.shape[-1], temporal, diagonal, all_outputs,
                                initial is not None, wanted, saves, precision, whole, other_values,
                                len(shares) or 1, hops_per_step,
                                u.data_ptr(), w.data_ptr(), pointer(initial), output.data_ptr(),
                                saved.data_ptr(), 0, 0, 0, 0, 0))
    return output, saved


def _recurrence_fake(*args: Any) -> Tuple[Tensor, Tensor]:
    u, _, _, steps, temporal, _, all_outputs = args[9:16]
    return (u.new_empty(_output_shape(u, steps, temporal, all_outputs)),
            u.new_empty(_resolved(args)[1][1]))


def _recurrence_setup(ctx: Any, inputs: Any, output: Any) -> None:
    order, basis, u, w, initial = inputs[7:12]
    result, saved = output
    plan, _, reads = _resolved(inputs)[1]
    ctx.mark_non_differentiable(saved)
    ctx.save_for_backward(*inputs[:_ARRAYS], w, u if reads & _READS_INPUT else None,
                          initial if reads & _READS_INITIAL else None,
                          result if reads & _READS_OUTPUT else None, saved, *order, *basis,
                          *inputs[21])
    ctx.num_order, ctx.num_basis = len(order), len(basis)
    ctx.call = (plan, *inputs[12:16], initial is not None)
    ctx.wanted, ctx.numbers, ctx.groups = inputs[17], inputs[18:21], inputs[22:]


def _recurrence_backward(ctx: Any, needs: Any, grad: Tensor, _: Any) -> Any:
    needs_values, needs_u, needs_w, needs_initial = needs
    wanted = ((WANT_INPUT * needs_u) | (WANT_W * needs_w) | (WANT_INITIAL * needs_initial)
              | (WANT_VALUES * needs_values))
    if wanted & ~ctx.wanted:
        raise RuntimeError("mpssm_engine.recurrence: a gradient is asked for that the call did not "
                           "name in `wanted`")
    saved = ctx.saved_tensors
    end_of_order = 12 + ctx.num_order
    end_of_basis = end_of_order + ctx.num_basis
    order, basis = saved[12:end_of_order], saved[end_of_order:end_of_basis]
    grad_u, grad_w, grad_initial, grad_values = recurrence_backward(
        *saved[:_ARRAYS], order, basis, grad, *saved[_ARRAYS:12], *ctx.call, *ctx.numbers,
        saved[end_of_basis:], *ctx.groups, wanted)
    return (grad_values if needs_values else None, grad_u if needs_u else None,
            grad_w if needs_w else None, grad_initial if needs_initial else None)


recurrence = define(
    f"recurrence({GSO}, {FOUND_OUT}, Tensor u, Tensor w_state, Tensor? initial, int steps, "
    "bool temporal, bool diagonal, bool all_outputs, str plan, int wanted, int precision, "
    "int all_channels, bool other_values, Tensor[] others, int[] shares, int hops_per_step) -> "
    "(Tensor, Tensor)",
    _recurrence_kernel, _recurrence_fake, _recurrence_setup, _recurrence_backward,
    main=9, differentiable=(2, 9, 10, 11))


def _gradient_shapes(args: Any) -> Tuple[Sequence[int], ...]:
    """Of the gradients that are wanted, nothing for the others."""
    grad, w = args[9], args[10]
    steps, temporal, all_outputs, wanted = args[16], args[17], args[19], args[-1]
    return (_output_shape(grad, steps, all_outputs, temporal) if wanted & WANT_INPUT else (0,),
            w.shape if wanted & WANT_W else (0,),
            _state_shape(grad, all_outputs) if wanted & WANT_INITIAL else (0,),
            args[2].shape if wanted & WANT_VALUES else (0,))


def _backward_kernel(*args: Any) -> Tuple[Tensor, ...]:
    (grad, w, u, initial, output, saved, plan, steps, temporal, diagonal, all_outputs, has_initial,
     precision, whole, other_values, others, shares, hops_per_step, wanted) = args[9:]
    grad, w, u, initial = grad.contiguous(), w.contiguous(), contiguous(u), contiguous(initial)
    gradients = tuple(empty(grad, shape) for shape in _gradient_shapes(args))
    shape = grad.shape
    batch = grad.numel() // (shape[-2] * shape[-1] * (steps if all_outputs else 1))
    _engine.recurrence_backward(
        _packed_groups(args[:_ARRAYS], args[7], args[8], others, shares),
        _engine.pack_recurrence(plan, batch, steps, shape[-1], temporal, diagonal,
                                all_outputs, has_initial, wanted, saved.shape[0], precision,
                                whole, other_values, len(shares) or 1, hops_per_step,
                                pointer(u), w.data_ptr(),
                                pointer(initial), pointer(output), saved.data_ptr(),
                                grad.data_ptr(),
                                *[tensor.data_ptr() for tensor in gradients]))
    return gradients


def _backward_fake(*args: Any) -> Tuple[Tensor, ...]:
    return tuple(args[9].new_empty(shape) for shape in _gradient_shapes(args))


def deal_channels(shares: Sequence[int], channels: int) -> Tuple[int, ...]:
    """Where the channels of each group begin, and at the end all of them."""
    count = len(shares)
    begins = (ctypes.c_int64 * (count + 1))()
    _engine.deal_channels(count, (ctypes.c_int64 * count)(*shares), channels, begins)
    return tuple(begins)


recurrence_backward = define(
    f"recurrence_backward({GSO}, {FOUND_OUT}, Tensor grad, Tensor w_state, Tensor? u, "
    "Tensor? initial, Tensor? output, Tensor saved, int plan, int steps, bool temporal, "
    "bool diagonal, bool all_outputs, bool has_initial, int precision, int all_channels, "
    "bool other_values, Tensor[] others, int[] shares, int hops_per_step, int wanted) -> "
    "(Tensor, Tensor, Tensor, Tensor)",
    _backward_kernel, _backward_fake, main=9)
