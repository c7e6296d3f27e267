# SPDX-License-Identifier: MIT
"""Operators of the layers: linear, layer norm, gelu, dropout, pooling. Kernels, shapes, gradients."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
from torch import Tensor

from mpssm import _engine
from mpssm._memory import empty
from mpssm._operators import define


def _is_double(tensor: Tensor) -> bool:
    return tensor.dtype == torch.float64


def _like(x: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


# ---- linear: x W + bias; W is w [in, out], or with `transposed` the transpose of w [out, in] ---


def _product(x: Tensor, w: Tensor, bias: Optional[Tensor], transposed: bool,
             precision: int) -> Tensor:
    inner, columns = x.shape[-1], w.shape[0 if transposed else 1]
    y = empty(x, (*x.shape[:-1], columns))
    if y.numel():
        _engine.matmul(_is_double(x), x.numel() // inner, inner, columns, transposed, precision,
                       x.data_ptr(), w.data_ptr(), None if bias is None else bias.data_ptr(),
                       y.data_ptr())
    return y


def _linear_kernel(x: Tensor, w: Tensor, bias: Optional[Tensor], transposed: bool, precision: int,
                   all_rows: int) -> Tensor:
    return _product(x.contiguous(), w.contiguous(), None if bias is None else bias.contiguous(),
                    transposed, precision)


def _linear_fake(x: Tensor, w: Tensor, bias: Optional[Tensor], transposed: bool, precision: int,
                 all_rows: int) -> Tensor:
    return x.new_empty((*x.shape[:-1], w.shape[0 if transposed else 1]))


def _linear_setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[0], inputs[1])
    ctx.how = inputs[3:]


def _linear_backward(ctx: Any, needs: Any, grad: Tensor) -> Any:
    x, w = ctx.saved_tensors
    grads = linear_backward(grad, x, w, *ctx.how, *needs)
    return tuple(g if needed else None for g, needed in zip(grads, needs))


linear = define("linear(Tensor x, Tensor w, Tensor? bias, bool transposed, int precision, "
                "int all_rows) -> Tensor", _linear_kernel, _linear_fake, _linear_setup,
                _linear_backward, differentiable=(0, 1, 2))


def _linear_backward_kernel(grad: Tensor, x: Tensor, w: Tensor, transposed: bool, precision: int,
                            all_rows: int, wants_x: bool, wants_w: bool,
                            wants_bias: bool) -> Tuple[Tensor, Tensor, Tensor]:
    grad, x, w = grad.contiguous(), x.contiguous(), w.contiguous()
    grad_x = _product(grad, w, None, not transposed, precision) if wants_x else grad.new_empty(0)
    grad_w = empty(w, w.shape if wants_w else (0,))
    grad_bias = grad.new_empty(grad.shape[-1] if wants_bias else 0)
    double, rows = _is_double(x), x.numel() // x.shape[-1]
    if wants_w:
        left, right = (grad, x) if transposed else (x, grad)
        _engine.transposed_matmul(double, rows, left.shape[-1], right.shape[-1], precision, all_rows,
                                  left.data_ptr(), right.data_ptr(), grad_w.data_ptr())
    if wants_bias:
        _engine.column_sums(double, rows, grad.shape[-1], all_rows, grad.data_ptr(),
                            grad_bias.data_ptr())
    return grad_x, grad_w, grad_bias


def _linear_backward_fake(grad: Tensor, x: Tensor, w: Tensor, transposed: bool, precision: int,
                          all_rows: int, wants_x: bool, wants_w: bool,
                          wants_bias: bool) -> Tuple[Tensor, Tensor, Tensor]:
    return (x.new_empty(x.shape if wants_x else 0), x.new_empty(w.shape if wants_w else 0),
            x.new_empty(grad.shape[-1] if wants_bias else 0))


linear_backward = define(
    "linear_backward(Tensor grad, Tensor x, Tensor w, bool transposed, int precision, int all_rows, "
    "bool wants_x, bool wants_w, bool wants_bias) -> (Tensor, Tensor, Tensor)",
    _linear_backward_kernel, _linear_backward_fake)


# ---- layer norm -----------------------------------------------------------------------------


def _layer_norm_kernel(x: Tensor, scale: Tensor, shift: Tensor, epsilon: float,
                       all_rows: int) -> Tuple[Tensor, Tensor, Tensor]:
    x, scale, shift = x.contiguous(), scale.contiguous(), shift.contiguous()
    width = x.shape[-1]
    rows = x.numel() // width
    y, mean, inverse = empty(x, x.shape), x.new_empty(rows), x.new_empty(rows)
    _engine.layer_norm(_is_double(x), rows, width, epsilon, x.data_ptr(), scale.data_ptr(),
                       shift.data_ptr(), y.data_ptr(), mean.data_ptr(), inverse.data_ptr())
    return y, mean, inverse


def _layer_norm_fake(x: Tensor, scale: Tensor, shift: Tensor, epsilon: float,
                     all_rows: int) -> Tuple[Tensor, Tensor, Tensor]:
    rows = x.numel() // x.shape[-1]
    return _like(x), x.new_empty(rows), x.new_empty(rows)


def _layer_norm_setup(ctx: Any, inputs: Any, output: Any) -> None:
    _, mean, inverse = output
    ctx.mark_non_differentiable(mean, inverse)
    ctx.save_for_backward(inputs[0], inputs[1], mean, inverse)
    ctx.all_rows = inputs[4]


def _layer_norm_backward(ctx: Any, needs: Any, grad: Tensor, *_: Any) -> Any:
    return layer_norm_backward(grad, *ctx.saved_tensors, ctx.all_rows)


layer_norm = define(
    "layer_norm(Tensor x, Tensor scale, Tensor shift, float epsilon, int all_rows) -> "
    "(Tensor, Tensor, Tensor)",
    _layer_norm_kernel, _layer_norm_fake, _layer_norm_setup, _layer_norm_backward,
    differentiable=(0, 1, 2))


def _layer_norm_backward_kernel(grad: Tensor, x: Tensor, scale: Tensor, mean: Tensor,
                                inverse: Tensor, all_rows: int) -> Tuple[Tensor, Tensor, Tensor]:
    grad, x, scale = grad.contiguous(), x.contiguous(), scale.contiguous()
    width = x.shape[-1]
    grad_x, grad_scale, grad_shift = empty(x, x.shape), x.new_empty(width), x.new_empty(width)
    _engine.layer_norm_adjoint(_is_double(x), x.numel() // width, width, all_rows, x.data_ptr(),
                               scale.data_ptr(), mean.data_ptr(), inverse.data_ptr(),
                               grad.data_ptr(), grad_x.data_ptr(), grad_scale.data_ptr(),
                               grad_shift.data_ptr())
    return grad_x, grad_scale, grad_shift


def _layer_norm_backward_fake(grad: Tensor, x: Tensor, scale: Tensor, mean: Tensor,
                              inverse: Tensor, all_rows: int) -> Tuple[Tensor, Tensor, Tensor]:
    return _like(x), x.new_empty(x.shape[-1]), x.new_empty(x.shape[-1])


layer_norm_backward = define(
    "layer_norm_backward(Tensor grad, Tensor x, Tensor scale, Tensor mean, Tensor inverse, "
    "int all_rows) -> (Tensor, Tensor, Tensor)", _layer_norm_backward_kernel, _layer_norm_backward_fake)


# ---- gelu, float32 --------------------------------------------------------------------------


def _gelu_kernel(x: Tensor) -> Tensor:
    x = x.contiguous()
    y = empty(x, x.shape)
    _engine.gelu(x.numel(), x.data_ptr(), None, y.data_ptr())
    return y


def _gelu_setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[0])


def _gelu_backward(ctx: Any, needs: Any, grad: Tensor) -> Any:
    return (gelu_backward(grad, *ctx.saved_tensors),)


gelu = define("gelu(Tensor x) -> Tensor", _gelu_kernel, _like, _gelu_setup, _gelu_backward,
              differentiable=(0,))


def _gelu_backward_kernel(grad: Tensor, x: Tensor) -> Tensor:
    grad, x = grad.contiguous(), x.contiguous()
    grad_x = empty(x, x.shape)
    _engine.gelu(x.numel(), x.data_ptr(), grad.data_ptr(), grad_x.data_ptr())
    return grad_x


gelu_backward = define("gelu_backward(Tensor grad, Tensor x) -> Tensor", _gelu_backward_kernel,
                       lambda grad, x: _like(x))


# ---- dropout: the mask is a function of the seed --------------------------------------------


def _dropout_kernel(x: Tensor, seed: Tensor, probability: float) -> Tensor:
    x = x.contiguous()
    y = empty(x, x.shape)
    _engine.dropout(_is_double(x), x.numel(), seed.data_ptr(), probability, x.data_ptr(),
                    y.data_ptr())
    return y


def _dropout_setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[1])
    ctx.probability = inputs[2]


def _dropout_backward(ctx: Any, needs: Any, grad: Tensor) -> Any:
    return (dropout(grad, *ctx.saved_tensors, ctx.probability),)


dropout = define("dropout(Tensor x, Tensor seed, float probability) -> Tensor", _dropout_kernel,
                 lambda x, seed, probability: _like(x), _dropout_setup, _dropout_backward,
                 differentiable=(0,))


# ---- pooling over the graphs of a batch -----------------------------------------------------

_THREE_SIDE_BY_SIDE = 3


def _pool_shape(graph_ptr: Tensor, x: Tensor, pooling: int) -> Tuple[int, int]:
    return graph_ptr.shape[0] - 1, x.shape[1] * (3 if pooling == _THREE_SIDE_BY_SIDE else 1)


def _pool_kernel(graph_ptr: Tensor, x: Tensor, pooling: int) -> Tensor:
    x = x.contiguous()
    y = x.new_empty(_pool_shape(graph_ptr, x, pooling))
    _engine.pool(_is_double(x), pooling, y.shape[0], graph_ptr.data_ptr(), x.shape[1], x.data_ptr(),
                 y.data_ptr(), None, None)
    return y


def _pool_setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[0], inputs[1], output)
    ctx.pooling = inputs[2]


def _pool_backward(ctx: Any, needs: Any, grad: Tensor) -> Any:
    return (pool_backward(*ctx.saved_tensors, grad, ctx.pooling),)


pool = define("pool(Tensor graph_ptr, Tensor x, int pooling) -> Tensor", _pool_kernel,
              lambda graph_ptr, x, pooling: x.new_empty(_pool_shape(graph_ptr, x, pooling)),
              _pool_setup, _pool_backward, main=1, differentiable=(1,))


def _pool_backward_kernel(graph_ptr: Tensor, x: Tensor, y: Tensor, grad: Tensor,
                          pooling: int) -> Tensor:
    x, y, grad = x.contiguous(), y.contiguous(), grad.contiguous()
    grad_x = empty(x, x.shape)
    _engine.pool(_is_double(x), pooling, y.shape[0], graph_ptr.data_ptr(), x.shape[1], x.data_ptr(),
                 y.data_ptr(), grad.data_ptr(), grad_x.data_ptr())
    return grad_x


pool_backward = define(
    "pool_backward(Tensor graph_ptr, Tensor x, Tensor y, Tensor grad, int pooling) -> Tensor",
    _pool_backward_kernel, lambda graph_ptr, x, y, grad, pooling: _like(x), main=1)
