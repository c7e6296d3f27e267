# SPDX-License-Identifier: MIT
"""Operators on a graph: sparse product, recurrence, weights of neighbours. Kernels, shapes, gradients."""

from __future__ import annotations

import ctypes
import functools
import math
from typing import Any, NamedTuple, Sequence, Tuple

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


def _packed_all(arrays: Sequence[Tensor], order: Sequence[Tensor], basis: Sequence[Tensor],
                others: Sequence[Tensor], shares: Sequence[int]) -> bytes:
    """The same of all operators, of groups or of a sequence, one behind the other."""
    if not others:
        return _packed(arrays, order, basis)
    each = [arrays, *[others[i:i + _ARRAYS] for i in range(0, len(others), _ARRAYS)]]
    return b"".join(_packed(one, share=share) for one, share in zip(each, shares or [1] * len(each)))


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


class _Call(NamedTuple):
    """What follows from the sizes and options of a call."""

    plan: int
    saves: int  # numbers kept for the backward pass
    reads: int  # bits of what that looks at
    output_shape: Tuple[int, ...]
    packed: bytes  # the numbers of RecurrenceArguments


def _output_shape(shape: Sequence[int], steps: int, temporal: bool, all_outputs: bool) -> Tuple[int, ...]:
    """From the shape of the input: [..., N, C], or [..., T, N, C] if it is a sequence."""
    state = (*shape[:-3], *shape[-2:]) if temporal else tuple(shape)
    return (*state[:-2], steps, *state[-2:]) if all_outputs else state


@functools.lru_cache(maxsize=4096)
def _resolve(shape: Tuple[int, ...], is_double: bool, diagonal: bool, has_initial: bool, nonzeros: int,
             basis: int, steps: int, temporal: bool, all_outputs: bool, plan: str, wanted: int,
             precision: int, all_channels: int, other_values: bool, hops_per_step: int, copies: int,
             other_nonzeros: Tuple[int, ...], shares: Tuple[int, ...]) -> _Call:
    nodes, channels = shape[-2:]
    batch = math.prod(shape[:-3] if temporal else shape[:-2])
    all_nonzeros = (nonzeros, *other_nonzeros)
    graph_ptr = (ctypes.c_int64 * 2)(0, nodes)
    gso = b"".join(
        _engine.pack_gso(is_double, nodes, entries, 1, *[0] * 6, ctypes.addressof(graph_ptr),
                         *[0] * 9, basis, *[0] * 5, share)
        for entries, share in zip(all_nonzeros, shares or (1,) * len(all_nonzeros)))

    def packed(number: int, saves: int) -> bytes:
        return _engine.pack_recurrence(number, batch, steps, channels, temporal, diagonal, all_outputs,
                                       has_initial, wanted, saves, precision, all_channels, other_values,
                                       len(all_nonzeros), copies, hops_per_step)

    result = (ctypes.c_int64 * 3)()
    _engine.recurrence_plan(gso, packed(0, 0) + _engine.pack_recurrence_pointers(*[0] * 11),
                            plan.partition("@")[0].encode(), result)
    number, saves, reads = result
    return _Call(number, saves, reads, _output_shape(shape, steps, temporal, all_outputs),
                 packed(number, saves))


def _call_of(args: Any) -> _Call:
    """Shapes are taken as they are: a traced call is one for these shapes."""
    basis, u, w, initial = args[8:12]
    others, shares, index = args[21:]
    shape = u.shape if type(u) is Tensor else tuple(map(int, u.shape))
    return _resolve(shape, u.dtype == torch.float64, w.is_complex(), initial is not None,
                    int(args[1].numel()), int(basis[2].numel()) if basis else 0, *args[12:21],
                    0 if index is None else int(index.shape[0]),
                    tuple(int(col.numel()) for col in others[1::_ARRAYS]) if others else (), tuple(shares))


def _plain(w: Tensor) -> Tensor:
    """W as the engine reads it: a complex one may be conjugated in name only."""
    return (w.resolve_conj() if w.is_conj() else w).contiguous()


def _recurrence_kernel(*args: Any) -> Tuple[Tensor, Tensor]:
    u, w, initial = args[9].contiguous(), _plain(args[10]), contiguous(args[11])
    others, shares, index = args[21:]
    call = _call_of(args)
    output, saved = empty(u, call.output_shape), empty(u, (call.saves,))
    _engine.recurrence_forward(
        _packed_all(args[:_ARRAYS], args[7], args[8], others, shares),
        call.packed + _engine.pack_recurrence_pointers(
            pointer(index), u.data_ptr(), w.data_ptr(), pointer(initial), output.data_ptr(),
            saved.data_ptr(), 0, 0, 0, 0, 0))
    return output, saved


def _recurrence_fake(*args: Any) -> Tuple[Tensor, Tensor]:
    u, call = args[9], _call_of(args)
    return u.new_empty(_output_shape(u.shape, *args[12:15])), u.new_empty(call.saves)


def _recurrence_setup(ctx: Any, inputs: Any, output: Any) -> None:
    order, basis, u, w, initial = inputs[7:12]
    others, ctx.shares, index = inputs[21:]
    result, saved = output
    call = _call_of(inputs)
    ctx.mark_non_differentiable(saved)
    ctx.save_for_backward(*inputs[:_ARRAYS], w, u if call.reads & _READS_INPUT else None,
                          initial if call.reads & _READS_INITIAL else None,
                          result if call.reads & _READS_OUTPUT else None, saved, index, *order, *basis,
                          *others)
    ctx.ends = 13 + len(order), 13 + len(order) + len(basis)
    ctx.plan, ctx.has_initial, ctx.wanted = call.plan, initial is not None, inputs[16]
    ctx.numbers = (*inputs[12:15], *inputs[17:21])


def _recurrence_backward(ctx: Any, needs: Any, grad: Tensor, _: Any) -> Any:
    needs_values, needs_u, needs_w, needs_initial = needs
    wanted = ((WANT_INPUT * needs_u) | (WANT_W * needs_w) | (WANT_INITIAL * needs_initial)
              | (WANT_VALUES * needs_values))
    if wanted & ~ctx.wanted:
        raise RuntimeError("mpssm_engine.recurrence: a gradient is asked for that the call did not "
                           "name in `wanted`")
    saved, (end_of_order, end_of_basis) = ctx.saved_tensors, ctx.ends
    grad_u, grad_w, grad_initial, grad_values = recurrence_backward(
        *saved[:_ARRAYS], saved[13:end_of_order], saved[end_of_order:end_of_basis], grad,
        *saved[_ARRAYS:12], ctx.plan, ctx.has_initial, wanted, *ctx.numbers, saved[end_of_basis:],
        ctx.shares, saved[12])
    return (grad_values if needs_values else None, grad_u if needs_u else None,
            grad_w if needs_w else None, grad_initial if needs_initial else None)


#: Operators beside the first: ``Gso.arrays`` of each, the shares of groups of channels (none of a
#: sequence), the index of a sequence of graphs.
_OTHERS = "Tensor[] others, int[] shares, Tensor? index"

# A diagonal W is complex.
recurrence = define(
    f"recurrence({GSO}, {FOUND_OUT}, Tensor u, Tensor w_state, Tensor? initial, int steps, "
    "bool temporal, bool all_outputs, str plan, int wanted, int precision, int all_channels, "
    f"bool other_values, int hops_per_step, {_OTHERS}) -> (Tensor, Tensor)",
    _recurrence_kernel, _recurrence_fake, _recurrence_setup, _recurrence_backward,
    main=9, differentiable=(2, 9, 10, 11))


def _gradient_shapes(args: Any) -> Tuple[Sequence[int], ...]:
    """Of the gradients of input, X(0) and entries that are wanted, nothing for the others."""
    shape, wanted, (steps, temporal, all_outputs) = args[9].shape, args[17], args[18:21]
    return (_output_shape(shape, steps, all_outputs, temporal) if wanted & WANT_INPUT else (0,),
            _output_shape(shape, steps, all_outputs, False) if wanted & WANT_INITIAL else (0,),
            args[2].shape if wanted & WANT_VALUES else (0,))


def _gradient_of_w(grad: Tensor, w: Tensor, wanted: int) -> Tensor:
    return w.new_empty(w.shape) if wanted & WANT_W else grad.new_empty(0)


def _backward_kernel(*args: Any) -> Tuple[Tensor, ...]:
    grad, w, u, initial = args[9].contiguous(), _plain(args[10]), contiguous(args[11]), contiguous(args[12])
    (output, saved, plan, has_initial, wanted, steps, temporal, all_outputs, precision, whole, other_values,
     hops_per_step, others, shares, index) = args[13:]
    grad_u, grad_initial, grad_values = (empty(grad, shape) for shape in _gradient_shapes(args))
    gradients = grad_u, _gradient_of_w(grad, w, wanted), grad_initial, grad_values
    shape = grad.shape
    batch = math.prod(shape[:-3] if all_outputs else shape[:-2])
    _engine.recurrence_backward(
        _packed_all(args[:_ARRAYS], args[7], args[8], others, shares),
        _engine.pack_recurrence(plan, batch, steps, shape[-1], temporal, w.is_complex(), all_outputs,
                                has_initial, wanted, saved.shape[0], precision, whole, other_values,
                                1 + len(others) // _ARRAYS, 0 if index is None else index.shape[0],
                                hops_per_step)
        + _engine.pack_recurrence_pointers(
            pointer(index), pointer(u), w.data_ptr(), pointer(initial), pointer(output), saved.data_ptr(),
            grad.data_ptr(), *[tensor.data_ptr() for tensor in gradients]))
    return gradients


def _backward_fake(*args: Any) -> Tuple[Tensor, ...]:
    grad = args[9]
    grad_u, grad_initial, grad_values = (grad.new_empty(shape) for shape in _gradient_shapes(args))
    return grad_u, _gradient_of_w(grad, args[10], args[17]), grad_initial, grad_values


recurrence_backward = define(
    f"recurrence_backward({GSO}, {FOUND_OUT}, Tensor grad, Tensor w_state, Tensor? u, "
    "Tensor? initial, Tensor? output, Tensor saved, int plan, bool has_initial, int wanted, int steps, "
    "bool temporal, bool all_outputs, int precision, int all_channels, bool other_values, "
    f"int hops_per_step, {_OTHERS}) -> (Tensor, Tensor, Tensor, Tensor)",
    _backward_kernel, _backward_fake, main=9)


def deal_channels(shares: Sequence[int], channels: int) -> Tuple[int, ...]:
    """Where the channels of each group begin, and at the end all of them."""
    count = len(shares)
    begins = (ctypes.c_int64 * (count + 1))()
    _engine.deal_channels(count, (ctypes.c_int64 * count)(*shares), channels, begins)
    return tuple(begins)


# ---- weights of neighbours: softmax over each row -------------------------------------------------


def _edge_softmax_kernel(*args: Any) -> Tensor:
    target, source, slope = args[_ARRAYS].contiguous(), args[8].contiguous(), args[9]
    entries = empty(target, args[1].shape)
    _engine.edge_softmax(_packed(args[:_ARRAYS]), slope, target.data_ptr(), source.data_ptr(),
                         entries.data_ptr())
    return entries


def _edge_softmax_setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:9], output)
    ctx.slope = inputs[9]


def _edge_softmax_backward(ctx: Any, needs: Any, grad: Tensor) -> Any:
    return edge_softmax_backward(*ctx.saved_tensors, grad, ctx.slope)


edge_softmax = define(f"edge_softmax({GSO}, Tensor target, Tensor source, float slope) -> Tensor",
                      _edge_softmax_kernel, lambda *args: args[7].new_empty(args[1].shape),
                      _edge_softmax_setup, _edge_softmax_backward, main=7, differentiable=(7, 8))


def _edge_softmax_backward_kernel(*args: Any) -> Tuple[Tensor, Tensor]:
    target, source, entries, grad = (tensor.contiguous() for tensor in args[_ARRAYS:11])
    grads = empty(target, target.shape), empty(source, source.shape)
    _engine.edge_softmax_adjoint(_packed(args[:_ARRAYS]), args[11],
                                 *[tensor.data_ptr() for tensor in (target, source, entries, grad, *grads)])
    return grads


edge_softmax_backward = define(
    f"edge_softmax_backward({GSO}, Tensor target, Tensor source, Tensor entries, Tensor grad, "
    "float slope) -> (Tensor, Tensor)", _edge_softmax_backward_kernel,
    lambda *args: (args[7].new_empty(args[7].shape), args[8].new_empty(args[8].shape)), main=10)
