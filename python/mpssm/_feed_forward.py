# SPDX-License-Identifier: MIT
"""Operators around a recurrence, each one pass over the rows: norm and product; norm, MLP with dropout
and the residual sum. Kernels, shapes, gradients."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import torch
from torch import Tensor

from mpssm import _engine
from mpssm._memory import empty
from mpssm._operators import contiguous, define, pointer


_Shape = Sequence[int]


def _shape_of(argument: Optional[Tensor]) -> _Shape:
    """Of the gradient of an argument; nothing if there is none."""
    return (0,) if argument is None else argument.shape


# ---- norm(x) W: x [..., in], W [in, out]; scale and shift [in], both or neither --------------------


def _norm_linear_kernel(x: Tensor, scale: Optional[Tensor], shift: Optional[Tensor],
                        w: Tensor) -> Tensor:
    x, w = x.contiguous(), w.contiguous()
    scale, shift = contiguous(scale), contiguous(shift)
    width, columns = w.shape
    y = empty(x, (*x.shape[:-1], columns))
    _engine.norm_linear(_engine.pack_norm_linear(
        x.dtype == torch.float64, x.numel() // width, width, columns, x.data_ptr(), pointer(scale),
        pointer(shift), w.data_ptr(), y.data_ptr(), 0, 0, 0, 0, 0))
    return y


def _norm_linear_fake(x: Tensor, scale: Optional[Tensor], shift: Optional[Tensor],
                      w: Tensor) -> Tensor:
    return x.new_empty((*x.shape[:-1], w.shape[1]))


def _norm_linear_setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _norm_linear_backward(ctx: Any, needs: Any, grad: Tensor) -> Any:
    grads = norm_linear_backward(grad, *ctx.saved_tensors, needs[0])
    return tuple(g if needed else None for g, needed in zip(grads, needs))


norm_linear = define("norm_linear(Tensor x, Tensor? scale, Tensor? shift, Tensor w) -> Tensor",
                     _norm_linear_kernel, _norm_linear_fake, _norm_linear_setup,
                     _norm_linear_backward, differentiable=(0, 1, 2, 3))



def _norm_linear_shapes(x: Tensor, scale: Optional[Tensor], shift: Optional[Tensor], w: Tensor,
                        wants_x: bool) -> Tuple[_Shape, ...]:
    return _shape_of(x if wants_x else None), _shape_of(scale), _shape_of(shift), w.shape


def _norm_linear_backward_fake(grad: Tensor, x: Tensor, scale: Optional[Tensor],
                               shift: Optional[Tensor], w: Tensor,
                               wants_x: bool) -> Tuple[Tensor, ...]:
    return tuple(x.new_empty(shape) for shape in _norm_linear_shapes(x, scale, shift, w, wants_x))


def _norm_linear_backward_kernel(grad: Tensor, x: Tensor, scale: Optional[Tensor],
                                 shift: Optional[Tensor], w: Tensor,
                                 wants_x: bool) -> Tuple[Tensor, ...]:
    grad, x, w = grad.contiguous(), x.contiguous(), w.contiguous()
    scale, shift = contiguous(scale), contiguous(shift)
    grads = tuple(empty(x, shape) for shape in _norm_linear_shapes(x, scale, shift, w, wants_x))
    width, columns = w.shape
    _engine.norm_linear(_engine.pack_norm_linear(
        x.dtype == torch.float64, x.numel() // width, width, columns, x.data_ptr(), pointer(scale),
        pointer(shift), w.data_ptr(), 0, grad.data_ptr(), *[g.data_ptr() for g in grads]))
    return grads


norm_linear_backward = define(
    "norm_linear_backward(Tensor grad, Tensor x, Tensor? scale, Tensor? shift, Tensor w, bool wants_x)"
    " -> (Tensor, Tensor, Tensor, Tensor)", _norm_linear_backward_kernel, _norm_linear_backward_fake)


# ---- residual + drop(f(norm(x) W1' + b1) W2' + b2), a dropout after f as well ----------------------
# x [..., in], W1 [hidden, in], W2 [out, hidden]. A seed that is none: no dropout. The second result
# are the numbers before f, which the backward pass reads.


def _sizes(x: Tensor, w1: Tensor, w2: Tensor) -> Tuple[int, int, int, int]:
    hidden, width = w1.shape
    return x.numel() // width, width, hidden, w2.shape[0]


def _feed_forward_results(x: Tensor, w1: Tensor, w2: Tensor, keeps: bool) -> Tuple[_Shape, _Shape]:
    rows, _, hidden, out = _sizes(x, w1, w2)
    return (*x.shape[:-1], out), (rows if keeps else 0, hidden)


def _feed_forward_kernel(x: Tensor, scale: Optional[Tensor], shift: Optional[Tensor], w1: Tensor,
                         b1: Tensor, w2: Tensor, b2: Tensor, residual: Optional[Tensor],
                         seed_hidden: Optional[Tensor], seed_out: Optional[Tensor],
                         drop_hidden: float, drop_out: float, activation: int,
                         keeps: bool) -> Tuple[Tensor, Tensor]:
    x, w1, b1, w2, b2 = (t.contiguous() for t in (x, w1, b1, w2, b2))
    scale, shift, residual = contiguous(scale), contiguous(shift), contiguous(residual)
    y, kept = (empty(x, shape) for shape in _feed_forward_results(x, w1, w2, keeps))
    _engine.feed_forward(_engine.pack_feed_forward(
        x.dtype == torch.float64, *_sizes(x, w1, w2), activation, pointer(seed_hidden),
        pointer(seed_out), drop_hidden, drop_out, x.data_ptr(), pointer(scale), pointer(shift),
        w1.data_ptr(), b1.data_ptr(), w2.data_ptr(), b2.data_ptr(), pointer(residual),
        kept.data_ptr(), y.data_ptr(), *[0] * 8))
    return y, kept


def _feed_forward_fake(x: Tensor, scale: Optional[Tensor], shift: Optional[Tensor], w1: Tensor,
                       b1: Tensor, w2: Tensor, b2: Tensor, residual: Optional[Tensor],
                       seed_hidden: Optional[Tensor], seed_out: Optional[Tensor],
                       drop_hidden: float, drop_out: float, activation: int,
                       keeps: bool) -> Tuple[Tensor, Tensor]:
    y, kept = (x.new_empty(shape) for shape in _feed_forward_results(x, w1, w2, keeps))
    return y, kept


def _feed_forward_setup(ctx: Any, inputs: Any, output: Any) -> None:
    x, scale, shift, w1, _, w2, _, _, seed_hidden, seed_out = inputs[:10]
    _, kept = output
    ctx.mark_non_differentiable(kept)
    ctx.save_for_backward(x, scale, shift, w1, w2, kept, seed_hidden, seed_out)
    ctx.setting, ctx.keeps = inputs[10:13], inputs[13]


def _feed_forward_backward(ctx: Any, needs: Any, grad: Tensor, _: Any) -> Any:
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
    "int activation, bool keeps) -> (Tensor, Tensor)", _feed_forward_kernel, _feed_forward_fake,
    _feed_forward_setup, _feed_forward_backward, differentiable=tuple(range(8)))



def _feed_forward_shapes(x: Tensor, scale: Optional[Tensor], shift: Optional[Tensor], w1: Tensor,
                         w2: Tensor, wants_x: bool) -> Tuple[_Shape, ...]:
    return (_shape_of(x if wants_x else None), _shape_of(scale), _shape_of(shift), w1.shape,
            w1.shape[:1], w2.shape, w2.shape[:1])


def _feed_forward_backward_fake(grad: Tensor, x: Tensor, scale: Optional[Tensor],
                                shift: Optional[Tensor], w1: Tensor, w2: Tensor, kept: Tensor,
                                seed_hidden: Optional[Tensor], seed_out: Optional[Tensor],
                                drop_hidden: float, drop_out: float, activation: int,
                                wants_x: bool) -> Tuple[Tensor, ...]:
    return tuple(x.new_empty(shape)
                 for shape in _feed_forward_shapes(x, scale, shift, w1, w2, wants_x))


def _feed_forward_backward_kernel(grad: Tensor, x: Tensor, scale: Optional[Tensor],
                                  shift: Optional[Tensor], w1: Tensor, w2: Tensor, kept: Tensor,
                                  seed_hidden: Optional[Tensor], seed_out: Optional[Tensor],
                                  drop_hidden: float, drop_out: float, activation: int,
                                  wants_x: bool) -> Tuple[Tensor, ...]:
    grad, x, w1, w2, kept = (t.contiguous() for t in (grad, x, w1, w2, kept))
    scale, shift = contiguous(scale), contiguous(shift)
    grads = tuple(empty(x, shape)
                  for shape in _feed_forward_shapes(x, scale, shift, w1, w2, wants_x))
    _engine.feed_forward(_engine.pack_feed_forward(
        x.dtype == torch.float64, *_sizes(x, w1, w2), activation, pointer(seed_hidden),
        pointer(seed_out), drop_hidden, drop_out, x.data_ptr(), pointer(scale), pointer(shift),
        w1.data_ptr(), 0, w2.data_ptr(), 0, 0, kept.data_ptr(), 0, grad.data_ptr(),
        *[g.data_ptr() for g in grads]))
    return grads


feed_forward_backward = define(
    "feed_forward_backward(Tensor grad, Tensor x, Tensor? scale, Tensor? shift, Tensor w1, Tensor w2, "
    "Tensor kept, Tensor? seed_hidden, Tensor? seed_out, float drop_hidden, float drop_out, "
    "int activation, bool wants_x) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    _feed_forward_backward_kernel, _feed_forward_backward_fake)
