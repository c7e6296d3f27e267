# SPDX-License-Identifier: MIT
"""The operators around a recurrence give what their parts give one by one."""

import itertools

import pytest
import torch
from graphs import DOUBLE, numbers, ring

from mpssm import functional as F
from mpssm.nn import MPSSM, MPSSMBlock

IN, HIDDEN, OUT = 4, 6, 3
SHAPES = {"x": (2, 5, IN), "w1": (HIDDEN, IN), "b1": (HIDDEN,), "w2": (OUT, HIDDEN), "b2": (OUT,),
          "scale": (IN,), "shift": (IN,), "residual": (2, 5, OUT)}


def arguments(with_norm=True, with_residual=True, dtype=DOUBLE):
    left_out = ([] if with_norm else ["scale", "shift"]) + ([] if with_residual else ["residual"])
    return {name: numbers(*shape, seed=seed, dtype=dtype).requires_grad_()
            for seed, (name, shape) in enumerate(SHAPES.items()) if name not in left_out}


def one_by_one(x, w1, b1, w2, b2, scale=None, shift=None, activation="gelu", drop_hidden=0.0,
               drop_out=0.0, residual=None):
    normal = x if scale is None else torch.nn.functional.layer_norm(x, (x.shape[-1],), scale, shift)
    hidden = F.ACTIVATIONS[activation](torch.nn.functional.linear(normal, w1, b1))
    y = F.dropout(torch.nn.functional.linear(F.dropout(hidden, drop_hidden), w2, b2), drop_out)
    return y if residual is None else residual + y


@pytest.mark.parametrize("activation", F.ACTIVATIONS)
@pytest.mark.parametrize(("with_norm", "with_residual"), list(itertools.product([False, True], repeat=2)))
def test_feed_forward_equals_its_parts(activation, with_norm, with_residual):
    given = arguments(with_norm, with_residual)
    for drops in ({}, {"drop_hidden": 0.4}, {"drop_out": 0.3}, {"drop_hidden": 0.2, "drop_out": 0.5}):
        results = []
        for function in (F.feed_forward, one_by_one):
            torch.manual_seed(5)
            y = function(**given, activation=activation, **drops)
            weights = numbers(*y.shape, seed=20)
            results.append([y, *torch.autograd.grad((y * weights).sum(), list(given.values()))])
        for ours, theirs in zip(*results):
            assert torch.allclose(ours, theirs, atol=1e-12), drops


@pytest.mark.parametrize("activation", ["gelu", "tanh", "identity"])  # the smooth ones
def test_gradients_equal_differences(activation):
    given = arguments()

    def run(*tensors):
        torch.manual_seed(3)
        return F.feed_forward(**dict(zip(given, tensors)), activation=activation, drop_hidden=0.3,
                              drop_out=0.2)

    torch.autograd.gradcheck(run, tuple(given.values()))
    norm = (numbers(2, 5, 4).requires_grad_(), numbers(4, seed=1).requires_grad_(),
            numbers(4, seed=2).requires_grad_(), numbers(4, 3, seed=3).requires_grad_())
    torch.autograd.gradcheck(F.norm_linear, norm)
    torch.autograd.gradcheck(lambda x, w: F.norm_linear(x, None, None, w), (norm[0], norm[3]))


def test_norm_linear_equals_its_parts():
    x, scale, shift, w = numbers(3, 4, 5), numbers(5, seed=1), numbers(5, seed=2), numbers(5, 6, seed=3)
    normal = torch.nn.functional.layer_norm(x, (5,), scale, shift)
    assert torch.allclose(F.norm_linear(x, scale, shift, w), normal @ w, atol=1e-12)
    assert torch.allclose(F.norm_linear(x, None, None, w), x @ w, atol=1e-12)


def test_views_and_parts_of_the_gradients():
    """Arguments that are no plain rows, and some that want no gradient."""
    given = arguments()
    transposed = given["x"].detach().transpose(0, 1).contiguous().transpose(0, 1).requires_grad_()
    assert torch.equal(F.feed_forward(**{**given, "x": transposed}), F.feed_forward(**given))
    for name in given:
        alone = {key: value.detach().requires_grad_(key == name) for key, value in given.items()}
        (one,) = torch.autograd.grad(F.feed_forward(**alone).square().sum(), alone[name])
        (other,) = torch.autograd.grad(one_by_one(**alone).square().sum(), alone[name])
        assert torch.allclose(one, other, atol=1e-12), name


def test_what_has_no_kernel_goes_one_by_one():
    given = {name: tensor.detach().half() for name, tensor in arguments().items()}
    assert torch.allclose(F.feed_forward(**given).float(),
                          F.feed_forward(**{n: t.float() for n, t in given.items()}), atol=2e-2)
    x = numbers(0, 4)
    assert F.norm_linear(x, None, None, numbers(4, 3)).shape == (0, 3)


class Apart(MPSSM):
    """The model as its formula says, from single operators."""

    def forward(self, x, gso):
        h = self.encoder(x)
        for i in range(self.num_blocks):
            block, norm = getattr(self, f"block_{i}"), getattr(self, f"norm_{i}")
            last = self.temporal and i + 1 == self.num_blocks
            state = block.state_norm(block.recur(norm(h), gso, temporal=self.temporal,
                                                 outputs="last" if last or not self.temporal else "all"))
            hidden = F.ACTIVATIONS[block.activation](block.mlp_in(state))
            y = block.mlp_out(F.dropout(hidden, self.dropout, self.training))
            y = F.dropout(y, self.dropout, self.training)
            h = (h[..., -1, :, :] if last else h) + y if self.residual else y
        return self.readout_0(self.final_norm(h))


@pytest.mark.parametrize("options", [
    {}, {"norm": "batch", "state_norm": "batch"}, {"norm": "none", "state_norm": "none"},
    {"activation": "relu", "residual": False}, {"temporal": True, "readout": "forecast"},
    {"state": "dense", "dropout": 0.4},
])
def test_a_model_is_what_its_formula_says(options):
    model = MPSSM(3, 8, 2, num_blocks=2, **options).double()
    other = Apart(3, 8, 2, num_blocks=2, **options).double()
    other.load_state_dict(model.state_dict())
    x = numbers(*((4,) if model.temporal else ()), 7, 3)
    results = []
    for one in (model, other):
        torch.manual_seed(1)
        y = one(x, ring())
        y.square().sum().backward()
        results.append([y, *(parameter.grad for parameter in one.parameters())])
    for a, b in zip(*results):
        assert torch.allclose(a, b, atol=1e-10)


def test_a_block_calls_its_hooks():
    model, seen = MPSSM(3, 4, 2, num_blocks=2), []
    model.block_1.register_forward_hook(lambda *_: seen.append("block_1"))
    model(torch.ones(7, 3), ring())
    assert seen == ["block_1"]
    assert MPSSMBlock(3, 4)(torch.ones(7, 3), ring()).shape == (7, 4)


@pytest.mark.parametrize(("change", "words"), [
    ({"x": torch.ones(2, 3)}, r"feed_forward: expected x of shape \[..., in\], w1 \[hidden, in\]"),
    ({"b2": torch.ones(4)}, r"and b2 \[out\], got \[2, 4\], \[6, 4\], \[6\], \[3, 6\] and \[4\]"),
    ({"scale": torch.ones(4)}, r"expected scale and shift of shape \[C=4\], or neither, got \[4\] and none"),
    ({"residual": torch.ones(2, 4)}, r"expected a residual of shape \[2, 3\], got \[2, 4\]"),
    ({"activation": "swish"}, "expected activation gelu, relu, .* got 'swish'"),
    ({"drop_out": 1.0}, r"expected probabilities in \[0, 1\), got 1.0"),
])
def test_what_does_not_fit_is_said(change, words):
    given = {"x": torch.ones(2, IN), "w1": torch.ones(HIDDEN, IN), "b1": torch.ones(HIDDEN),
             "w2": torch.ones(OUT, HIDDEN), "b2": torch.ones(OUT)}
    with pytest.raises(ValueError, match=words):
        F.feed_forward(**{**given, **change})
    with pytest.raises(ValueError, match="norm_linear: expected x of shape"):
        F.norm_linear(torch.ones(2, 3), None, None, torch.ones(4, 3))
