# SPDX-License-Identifier: MIT
"""torch.library.opcheck for every operator that the package registers, in every form it is called in."""

import pytest
import torch
from graphs import DOUBLE, dense_w, diagonal_w, directed, numbers, ring
from torch.library import opcheck

OPS = torch.ops.mpssm_engine


def leaf(*shape, seed=0, dtype=DOUBLE):
    return numbers(*shape, seed=seed, dtype=dtype).requires_grad_()


def registered():
    names = torch._C._dispatch_get_all_op_names()
    return {name.partition("::")[2] for name in names if name.startswith("mpssm_engine::")}


def recurrence(plan, diagonal, temporal, all_outputs, with_initial, dtype=DOUBLE):
    gso = ring(6).with_basis() if plan == "spectral" else directed()
    u = leaf(2, 5, 6, 4, dtype=dtype) if temporal else leaf(2, 6, 4, dtype=dtype)
    w = diagonal_w(4, dtype=dtype) if diagonal else dense_w(4, dtype=dtype)
    initial = leaf(2, 6, 4, seed=9, dtype=dtype) if with_initial else None
    return (*gso.arrays(dtype), [], list(gso.basis_arrays(dtype)), u, w.requires_grad_(), initial, 5,
            temporal, all_outputs, plan, 7 if with_initial else 3, int(dtype == torch.float32), 0, False, 1,
            [], [], None)


def recurrence_backward(plan, diagonal):
    arguments = recurrence(plan, diagonal, False, False, False)
    arrays, (u, w) = arguments[:9], (t.detach() for t in arguments[9:11])
    _, saved = OPS.recurrence(*arrays, u, w, *arguments[11:])
    numbers_of = {"stepwise": 1, "doubling": 2, "diagonal": 3, "spectral": 4}
    return (*arrays, numbers(2, 6, 4), w, u, None, None, saved, numbers_of[plan], False, 3, 5, False, False,
            0, 0, False, 1, [], [], None)


def around(with_all, dtype):
    """x, norm, the MLP's weights, residual, seeds."""
    x, *mlp = (leaf(*shape, dtype=dtype) for shape in ((2, 6, 4), (5, 4), (5,), (3, 5), (3,)))
    norm = (leaf(4, dtype=dtype), leaf(4, seed=1, dtype=dtype)) if with_all else (None, None)
    residual, seed = (leaf(2, 6, 3, dtype=dtype), torch.tensor([7])) if with_all else (None, None)
    return x, norm, mlp, residual, seed


def feed_forward(with_all, keeps, activation=0, dtype=DOUBLE):
    x, norm, mlp, residual, seed = around(with_all, dtype)
    rounds = int(dtype == torch.float32)
    arguments = (x, *norm, *mlp, residual, seed, seed, 0.3, 0.2, activation, rounds, 0, 0, keeps)
    if keeps:
        return arguments
    return tuple(t.detach() if isinstance(t, torch.Tensor) else t for t in arguments)


def feed_forward_backward(with_all):
    x, scale, shift, w1, b1, w2, _, _, seed, *_ = feed_forward(with_all, False)
    return (numbers(2, 6, 3), x, scale, shift, w1, b1, w2, seed, seed, 0.3, 0.2, 1, 0, 0, 0, with_all)


def norm_linear_backward(with_all):
    x, scale, shift = feed_forward(with_all, False)[:3]
    return numbers(2, 6, 3), x, scale, shift, numbers(4, 3), 0, 0, with_all


X = (6, 4)
GRAPHS = torch.tensor([0, 2, 2, 6])
CALLS = {
    "spmm": [lambda: (*directed().arrays(DOUBLE), leaf(*X), False),
             lambda: (*directed().arrays(DOUBLE), leaf(*X), True)],
    "recurrence": [lambda form=form: recurrence(*form) for form in (
        ("stepwise", False, False, False, False), ("stepwise", False, True, True, True),
        ("doubling", False, False, False, True), ("diagonal", True, False, False, False),
        ("diagonal", True, True, True, True), ("spectral", True, False, False, False),
        ("spectral", True, True, True, False), ("auto", True, False, False, False),
        # In bfloat16:
        ("doubling", False, False, False, True, torch.float32),
        ("diagonal", True, False, False, False, torch.float32))],
    "edge_softmax": [lambda: (*directed().arrays(DOUBLE), leaf(6), leaf(6, seed=1), 0.2)],
    "edge_softmax_backward": [lambda: (*directed().arrays(DOUBLE), numbers(6), numbers(6, seed=1),
                                       *(numbers(directed().num_nonzeros, seed=seed) for seed in (2, 3)), 0.2)],
    "recurrence_backward": [lambda form=form: recurrence_backward(*form) for form in (
        ("stepwise", False), ("doubling", False), ("diagonal", True))],
    "linear": [lambda: (leaf(*X), leaf(3, 4), leaf(3), True, 0, 0),
               lambda: (leaf(*X), leaf(4, 3), None, False, 0, 0)],
    "linear_backward": [
        lambda: (numbers(6, 3), numbers(*X), numbers(3, 4), True, 0, 0, True, True, True),
        lambda: (numbers(6, 3), numbers(*X), numbers(4, 3), False, 0, 0, False, True, False)],
    "layer_norm": [lambda: (leaf(*X), leaf(4), leaf(4), 1e-5, 0)],
    "layer_norm_backward": [
        lambda: (numbers(*X), numbers(*X), numbers(4), numbers(6), numbers(6), 0)],
    "gelu": [lambda: (numbers(*X).float().requires_grad_(),)],
    "gelu_backward": [lambda: (numbers(*X).float(), numbers(*X).float())],
    "dropout": [lambda: (leaf(*X), torch.tensor([5]), 0.4)],
    "pool": [lambda pooling=pooling: (GRAPHS, leaf(*X), pooling) for pooling in range(4)],
    "pool_backward": [lambda: (torch.tensor([0, 6]), numbers(*X), numbers(*X).mean(0, keepdim=True),
                               numbers(1, 4), 1)],
    "norm_linear": [lambda: (leaf(2, 6, 4), None, None, leaf(4, 3), 0, 0, True),
                    lambda: (leaf(2, 6, 4), leaf(4), leaf(4, seed=1), leaf(4, 3), 0, 0, True),
                    lambda: (leaf(2, 6, 4, dtype=torch.float32), None, None,
                             leaf(4, 3, dtype=torch.float32), 1, 0, True)],
    "norm_linear_backward": [lambda: norm_linear_backward(False), lambda: norm_linear_backward(True)],
    "feed_forward": [lambda form=form: feed_forward(*form) for form in (
        (False, True), (True, True, 2), (False, False), (True, False),
        (True, True, 0, torch.float32), (True, False, 0, torch.float32))],
    "feed_forward_backward": [lambda: feed_forward_backward(False), lambda: feed_forward_backward(True)],
}


def test_no_operator_is_left_out():
    assert registered() == set(CALLS)


@pytest.mark.parametrize(("name", "number"),
                         [(name, i) for name, calls in CALLS.items() for i in range(len(calls))])
def test_opcheck(name, number):
    opcheck(getattr(OPS, name).default, CALLS[name][number]())
