# SPDX-License-Identifier: MIT
"""Layers of the engine against torch's own, and their gradients against differences."""

import pytest
import torch
from graphs import DOUBLE, numbers, ring

import mpssm
from mpssm import functional as F

BATCH = mpssm.Gso.from_edge_index(torch.tensor([[0, 3], [1, 4]]), batch=torch.tensor([0, 0, 1, 3, 3, 3]))


@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
def test_linear_equals_torch(dtype):
    x, weight, bias = (numbers(*s, dtype=dtype) for s in ((2, 5, 7), (3, 7), (3,)))
    tolerance = 1e-5 if dtype == torch.float32 else 1e-13
    for given in (bias, None):
        expected = torch.nn.functional.linear(x, weight, given)
        assert torch.allclose(F.linear(x, weight, given), expected, atol=tolerance)


def test_gradients_equal_differences():
    x, weight, bias = (numbers(*s).requires_grad_() for s in ((2, 5, 3), (4, 3), (4,)))
    torch.autograd.gradcheck(F.linear, (x, weight, bias))
    torch.autograd.gradcheck(F.linear, (x, weight))
    scale, shift = numbers(3).requires_grad_(), numbers(3, seed=1).requires_grad_()
    torch.autograd.gradcheck(F.layer_norm, (x, scale, shift))
    features = numbers(6, 2).requires_grad_()
    for pooling in F.POOLINGS:
        torch.autograd.gradcheck(lambda t, p=pooling: F.pool(BATCH, t, p), (features,))


def test_layer_norm_equals_torch():
    x, scale, shift = numbers(4, 6), numbers(6, seed=1), numbers(6, seed=2)
    expected = torch.nn.functional.layer_norm(x, (6,), scale, shift)
    assert torch.allclose(F.layer_norm(x, scale, shift), expected, atol=1e-13)


def test_gelu_equals_torch():
    x = numbers(400, dtype=torch.float32, scale=3.0).requires_grad_()
    one, other = F.gelu(x), torch.nn.functional.gelu(x)
    assert torch.allclose(one, other, atol=1e-6)
    assert torch.allclose(*(torch.autograd.grad(y.sum(), x)[0] for y in (one, other)), atol=1e-5)


def test_pool_equals_the_portable_way():
    x = numbers(6, 3)
    for pooling in F.POOLINGS:
        assert torch.allclose(F.pool(BATCH, x, pooling), mpssm.portable.pool(BATCH, x, pooling))
    assert F.pool(BATCH, x, "max")[2].tolist() == [0.0, 0.0, 0.0]  # a graph without nodes
    with pytest.raises(ValueError, match="expected pooling sum, mean, max, sum_max_mean, got 'min'"):
        F.pool(BATCH, x, "min")


def test_dropout_keeps_the_mean_and_its_mask():
    x = torch.ones(200, 50, requires_grad=True)
    torch.manual_seed(3)
    y = F.dropout(x, 0.25)
    assert set(y.unique().tolist()) == {0.0, float(torch.tensor(1 / 0.75))}
    assert abs(float(y.detach().mean()) - 1.0) < 0.02
    (grad,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(grad, y)
    torch.manual_seed(3)
    assert torch.equal(F.dropout(x, 0.25), y)
    assert not torch.equal(F.dropout(x, 0.25), y)
    assert F.dropout(x, 0.25, training=False) is x
    with pytest.raises(ValueError, match=r"expected a probability in \[0, 1\), got 1.0"):
        F.dropout(x, 1.0)


def test_what_does_not_fit_is_said():
    with pytest.raises(ValueError, match=r"linear: expected x of shape \[..., in\]"):
        F.linear(torch.ones(2, 3), torch.ones(2, 4))
    with pytest.raises(ValueError, match="layer_norm: expected x of shape"):
        F.layer_norm(torch.ones(2, 3), torch.ones(2), torch.ones(2))
    with pytest.raises(ValueError, match=r"pool: expected x of shape \[N=7, C\], got \[2, 3\]"):
        F.pool(ring(), torch.ones(2, 3))
