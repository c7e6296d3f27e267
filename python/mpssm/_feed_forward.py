# SPDX-License-Identifier: MIT
"""Operators around a recurrence, each one pass over the rows: norm and product; norm, MLP with dropout
and the residual sum. Kernels, shapes, gradients.

``precision`` is a number of mpssm.functional.PRECISIONS; ``first_row`` and ``all_rows`` are
engine::RowPlace, the place of the rows in a larger whole, 0: they are all. In bfloat16 what is kept
for the gradient is rounded, too.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import torch
from torch import Tensor

from mpssm import _engine
from mpssm._memory import empty
from mpssm._operators import contiguous, define, pointer

_Shape = Sequence[int]
_BF16 = 1


def _shape_of(argument: Optional[Tensor]) -> _Shape:
    """Of the gradient of an argument; nothing if there is none."""
    return (0,) if argument is None else argument.shape


def _is_double(x: Tensor) -> bool:
    return x.dtype == torch.float64


# ---- norm(x) W: x [..., in], W [in, out]; scale and shift [in], both or neither --------------------
# The second result is x in bfloat16, if it is kept in that form.


def _norm_linear_results(x: Tensor, w: Tensor, precision: int, keeps: bool) -> Tuple[_Shape, _Shape]:
    return (*x.shape[:-1], w.shape[1]), x.shape if keeps and precision == _BF16 else (0,)


def _norm_linear_kernel(x: Tensor, scale: Optional[Tensor], shift: Optional[Tensor], w: Tensor,
                        precision: int, all_rows: int, keeps: bool) -> Tuple[Tensor, Tensor]:
    x, w = x.contiguous(), w.contiguous()
    scale, shift = contiguous(scale), contiguous(shift)
    width, columns = w.shape
    of_y, of_kept = _norm_linear_results(x, w, precision, keeps)
    y, kept = empty(x, of_y), empty(x, of_kept, torch.bfloat16)
    _engine.norm_linear(_engine.pack_norm_linear(
        _is_double(x), x.numel() // width, width, columns, precision, all_rows,
        kept.data_ptr() if kept.numel() else 0, x.data_ptr(), pointer(scale), pointer(shift),
        w.data_ptr(), y.data_ptr(), 0, 0, 0, 0, 0))
    return y, kept


def _norm_linear_fake(x: Tensor, scale: Optional[Tensor], shift: Optional[Tensor], w: Tensor,
                      precision: int, all_rows: int, keeps: bool) -> Tuple[Tensor, Tensor]:
    of_y, of_kept = _norm_linear_results(x, w, precision, keeps)
    return x.new_empty(of_y), x.new_empty(of_kept, dtype=torch.bfloat16)


def _norm_linear_setup(ctx: Any, inputs: Any, output: Any) -> None:
    x, scale, shift, w, precision, all_rows, keeps = inputs
    _, kept = output
    ctx.mark_non_differentiable(kept)
    ctx.save_for_backward(kept if precision == _BF16 else x, scale, shift, w)
    ctx.setting, ctx.keeps = (precision, all_rows), keeps


def _norm_linear_backward(ctx: Any, needs: Any, grad: Tensor, _: Any) -> Any:
    if not ctx.keeps:
        raise RuntimeError("mpssm_engine.norm_linear: a gradient is asked for of a call without `keeps`")
    grads = norm_linear_backward(grad, *ctx.saved_tensors, *ctx.setting, needs[0])
    return tuple(g if needed else None for g, needed in zip(grads, needs))


norm_linear = define("norm_linear(Tensor x, Tensor? scale, Tensor? shift, Tensor w, int precision, "
                     "int all_rows, bool keeps) -> (Tensor, Tensor)",
                     _norm_linear_kernel, _norm_linear_fake, _norm_linear_setup,
                     _norm_linear_backward, differentiable=(0, 1, 2, 3))


def _norm_linear_shapes(x: Tensor, scale: Optional[Tensor], shift: Optional[Tensor], w: Tensor,
                        wants_x: bool) -> Tuple[_Shape, ...]:
    return _shape_of(x if wants_x else None), _shape_of(scale), _shape_of(shift), w.shape


def _norm_linear_backward_fake(grad: Tensor, x: Tensor, scale: Optional[Tensor],
                               shift: Optional[Tensor], w: Tensor, precision: int, all_rows: int,
                               wants_x: bool) -> Tuple[Tensor, ...]:
    return tuple(w.new_empty(shape) for shape in _norm_linear_shapes(x, scale, shift, w, wants_x))


def _norm_linear_backward_kernel(grad: Tensor, x: Tensor, scale: Optional[Tensor],
                                 shift: Optional[Tensor], w: Tensor, precision: int, all_rows: int,
                                 wants_x: bool) -> Tuple[Tensor, ...]:
    grad, x, w = grad.contiguous(), x.contiguous(), w.contiguous()
    scale, shift = contiguous(scale), contiguous(shift)
    grads = tuple(empty(w, shape) for shape in _norm_linear_shapes(x, scale, shift, w, wants_x))
    width, columns = w.shape
    _engine.norm_linear(_engine.pack_norm_linear(
        _is_double(w), x.numel() // width, width, columns, precision, all_rows, *_rounded_or_not(x),
        pointer(scale), pointer(shift), w.data_ptr(), 0, grad.data_ptr(),
        *[g.data_ptr() for g in grads]))
    return grads


def _rounded_or_not(x: Tensor) -> Tuple[int, int]:
    """Places of the kept x in bfloat16 and of x: one of them is there."""
    return (x.data_ptr(), 0) if x.dtype == torch.bfloat16 else (0, x.data_ptr())


norm_linear_backward = define(
    "norm_linear_backward(Tensor grad, Tensor x, Tensor? scale, Tensor? shift, Tensor w, "
    "int precision, int all_rows, bool wants_x) -> (Tensor, Tensor, Tensor, Tensor)",
    _norm_linear_backward_kernel, _norm_linear_backward_fake)


# ---- residual + drop(f(norm(x) W1' + b1) W2' + b2), a dropout after f as well ----------------------
# x [..., in], W1 [hidden, in], W2 [out, hidden]. A seed that is none: no dropout. The second result
# is x in bfloat16, if it is kept in that form.


def _sizes(x: Tensor, w1: Tensor, w2: Tensor) -> Tuple[int, int, int, int]:
    hidden, width = w1.shape
    return x.numel() // width, width, hidden, w2.shape[0]


def _feed_forward_results(x: Tensor, w2: Tensor, precision: int, keeps: bool) -> Tuple[_Shape, _Shape]:
    return (*x.shape[:-1], w2.shape[0]), x.shape if keeps and precision == _BF16 else (0,)


def _feed_forward_kernel(x: Tensor, scale: Optional[Tensor], shift: Optional[Tensor], w1: Tensor,
                         b1: Tensor, w2: Tensor, b2: Tensor, residual: Optional[Tensor],
                         seed_hidden: Optional[Tensor], seed_out: Optional[Tensor],
                         drop_hidden: float, drop_out: float, activation: int, precision: int,
                         first_row: int, all_rows: int, keeps: bool) -> Tuple[Tensor, Tensor]:
    x, w1, b1, w2, b2 = (t.contiguous() for t in (x, w1, b1, w2, b2))
    scale, shift, residual = contiguous(scale), contiguous(shift), contiguous(residual)
    of_y, of_kept = _feed_forward_results(x, w2, precision, keeps)
    y, kept = empty(x, of_y), empty(x, of_kept, torch.bfloat16)
    _engine.feed_forward(_engine.pack_feed_forward(
        _is_double(x), *_sizes(x, w1, w2), activation, precision, first_row, all_rows,
        pointer(seed_hidden), pointer(seed_out), drop_hidden, drop_out, x.data_ptr(), pointer(scale),
        pointer(shift), w1.data_ptr(), b1.data_ptr(), w2.data_ptr(), b2.data_ptr(),
        pointer(residual), kept.data_ptr() if kept.numel() else 0, y.data_ptr(), *[0] * 8))
    return y, kept


def _feed_forward_fake(x: Tensor, scale: Optional[Tensor], shift: Optional[Tensor], w1: Tensor,
                       b1: Tensor, w2: Tensor, b2: Tensor, residual: Optional[Tensor],
                       seed_hidden: Optional[Tensor], seed_out: Optional[Tensor],
                       drop_hidden: float, drop_out: float, activation: int, precision: int,
                       first_row: int, all_rows: int, keeps: bool) -> Tuple[Tensor, Tensor]:
    of_y, of_kept = _feed_forward_results(x, w2, precision, keeps)
    return x.new_empty(of_y), x.new_empty(of_kept, dtype=torch.bfloat16)


def _feed_forward_setup(ctx: Any, inputs: Any, output: Any) -> None:
    x, scale, shift, w1, b1, w2, _, _, seed_hidden, seed_out = inputs[:10]
    _, kept = output
    ctx.mark_non_differentiable(kept)
    ctx.save_for_backward(kept if inputs[13] == _BF16 else x, scale, shift, w1, b1, w2, seed_hidden,
                          seed_out)
    ctx.setting, ctx.keeps = inputs[10:16], inputs[16]


def _feed_forward_backward(ctx: Any, needs: Any, grad: Tensor, *_: Any) -> Any:
    grads: Any = [None] * 7
    if any(needs[:7]):
        if not ctx.keeps:
            raise RuntimeError("mpssm_engine.feed_forward: a gradient is asked for of a call without "
                               "`keeps`")
        grads = feed_forward_backward(grad, *ctx.saved_tensors, *ctx.setting, needs[0])
    return (*[g if needed else None for g, needed in zip(grads, needs)], grad if needs[7] else None)


feed_forward = define(
    "feed_forward(Tensor x, Tensor? scale, Tensor? shift, Tensor w1, Tensor b1, Tensor w2, Tensor b2, "
    "Tensor? residual, Tensor? seed_hidden, Tensor? seed_out, float drop_hidden, float drop_out, "
    "int activation, int precision, int first_row, int all_rows, bool keeps) "
    "-> (Tensor, Tensor)", _feed_forward_kernel, _feed_forward_fake, _feed_forward_setup,
    _feed_forward_backward, differentiable=tuple(range(8)))


def _feed_forward_shapes(x: Tensor, scale: Optional[Tensor], shift: Optional[Tensor], w1: Tensor,
                         w2: Tensor, wants_x: bool) -> Tuple[_Shape, ...]:
    return (_shape_of(x if wants_x else None), _shape_of(scale), _shape_of(shift), w1.shape,
            w1.shape[:1], w2.shape, w2.shape[:1])


def _feed_forward_backward_fake(grad: Tensor, x: Tensor, scale: Optional[Tensor],
                                shift: Optional[Tensor], w1: Tensor, b1: Tensor, w2: Tensor,
                                seed_hidden: Optional[Tensor], seed_out: Optional[Tensor],
                                drop_hidden: float, drop_out: float, activation: int,
                                precision: int, first_row: int, all_rows: int,
                                wants_x: bool) -> Tuple[Tensor, ...]:
    return tuple(w1.new_empty(shape)
                 for shape in _feed_forward_shapes(x, scale, shift, w1, w2, wants_x))


def _feed_forward_backward_kernel(grad: Tensor, x: Tensor, scale: Optional[Tensor],
                                  shift: Optional[Tensor], w1: Tensor, b1: Tensor, w2: Tensor,
                                  seed_hidden: Optional[Tensor], seed_out: Optional[Tensor],
                                  drop_hidden: float, drop_out: float, activation: int,
                                  precision: int, first_row: int, all_rows: int,
                                  wants_x: bool) -> Tuple[Tensor, ...]:
    grad, x, w1, b1, w2 = (t.contiguous() for t in (grad, x, w1, b1, w2))
    scale, shift = contiguous(scale), contiguous(shift)
    grads = tuple(empty(w1, shape)
                  for shape in _feed_forward_shapes(x, scale, shift, w1, w2, wants_x))
    rounded_x, plain_x = _rounded_or_not(x)
    _engine.feed_forward(_engine.pack_feed_forward(
        _is_double(w1), *_sizes(x, w1, w2), activation, precision, first_row, all_rows,
        pointer(seed_hidden), pointer(seed_out), drop_hidden, drop_out, plain_x, pointer(scale),
        pointer(shift), w1.data_ptr(), b1.data_ptr(), w2.data_ptr(), 0, 0, rounded_x, 0,
        grad.data_ptr(), *[g.data_ptr() for g in grads]))
    return grads


feed_forward_backward = define(
    "feed_forward_backward(Tensor grad, Tensor x, Tensor? scale, Tensor? shift, Tensor w1, Tensor b1, "
    "Tensor w2, Tensor? seed_hidden, Tensor? seed_out, float drop_hidden, float drop_out, "
    "int activation, int precision, int first_row, int all_rows, bool wants_x) -> "
    "(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    _feed_forward_backward_kernel, _feed_forward_backward_fake)
