# SPDX-License-Identifier: MIT
"""What torch does with operators besides calling them: opcheck, compile, export, copies, checkpoints,
function transforms, worker processes."""

import copy
import io
import pickle

import pytest
import torch
from graphs import DOUBLE, dense_w, diagonal_w, directed, numbers, ring
from torch.library import opcheck
from torch.utils.checkpoint import checkpoint

import mpssm
from mpssm import functional as F

OPS = torch.ops.mpssm_engine


def leaf(*shape, seed=0):
    return numbers(*shape, seed=seed).requires_grad_()


def recurrence_arguments(plan, diagonal, temporal, all_outputs, with_initial):
    gso = directed()
    u = leaf(2, 5, 6, 4) if temporal else leaf(2, 6, 4)
    w = torch.view_as_real(diagonal_w(4)).clone() if diagonal else dense_w(4)
    initial = leaf(2, 6, 4, seed=9) if with_initial else None
    return (*gso.arrays(DOUBLE), [], [], u, w.requires_grad_(), initial, 5, temporal, diagonal, all_outputs,
            plan, 7 if with_initial else 3)


@pytest.mark.parametrize("arguments", [
    ("stepwise", False, False, False, False), ("stepwise", False, True, True, True),
    ("doubling", False, False, False, True), ("diagonal", True, False, False, False),
    ("diagonal", True, True, True, True), ("auto", True, False, False, False),
])
def test_opcheck_of_the_recurrence(arguments):
    opcheck(OPS.recurrence.default, recurrence_arguments(*arguments))


def test_opcheck_of_the_others():
    gso = directed()
    x = leaf(6, 4)
    opcheck(OPS.spmm.default, (*gso.arrays(DOUBLE), x, False))
    opcheck(OPS.spmm.default, (*gso.arrays(DOUBLE), x, True))
    opcheck(OPS.linear.default, (x, leaf(3, 4), leaf(3), True))
    opcheck(OPS.linear.default, (x, leaf(4, 3), None, False))
    opcheck(OPS.layer_norm.default, (x, leaf(4), leaf(4), 1e-5))
    opcheck(OPS.gelu.default, (x.detach().float().requires_grad_(),))
    opcheck(OPS.dropout.default, (x, torch.tensor([5]), 0.4))
    opcheck(OPS.pool.default, (torch.tensor([0, 2, 2, 6]), x, 3))


@pytest.mark.parametrize("with_all", [False, True])
def test_opcheck_around_a_recurrence(with_all):
    x, w1, b1, w2, b2 = leaf(2, 6, 4), leaf(5, 4), leaf(5), leaf(3, 5), leaf(3)
    scale, shift = (leaf(4), leaf(4, seed=1)) if with_all else (None, None)
    residual, seed = (leaf(2, 6, 3), torch.tensor([7])) if with_all else (None, None)
    opcheck(OPS.norm_linear.default, (x, scale, shift, leaf(4, 3)))
    call = (x, scale, shift, w1, b1, w2, b2, residual, seed, seed, 0.3, 0.2, 0)
    opcheck(OPS.feed_forward.default, (*call, True))
    plain = [t.detach() if isinstance(t, torch.Tensor) else t for t in call]
    opcheck(OPS.feed_forward.default, (*plain, False))
    x, scale, shift = plain[:3]
    opcheck(OPS.norm_linear_backward.default,
            (numbers(2, 6, 3), x, scale, shift, numbers(4, 3), with_all))
    opcheck(OPS.feed_forward_backward.default,
            (numbers(2, 6, 3), x, scale, shift, plain[3], plain[5], numbers(12, 5), seed, seed, 0.3,
             0.2, 1, with_all))


def test_opcheck_of_the_backward_operators():
    gso = directed()
    x, w = numbers(6, 4), dense_w(4)
    for call in ([numbers(6, 3), x, numbers(3, 4), True, True, True, True],
                 [numbers(6, 3), x, numbers(4, 3), False, False, True, False]):
        opcheck(OPS.linear_backward.default, call)
    opcheck(OPS.layer_norm_backward.default, (x, x, numbers(4), numbers(6), numbers(6)))
    opcheck(OPS.gelu_backward.default, (x.float(), x.float()))
    opcheck(OPS.pool_backward.default,
            (torch.tensor([0, 6]), x, x.mean(0, keepdim=True), numbers(1, 4), 1))
    out, saved = OPS.recurrence(*gso.arrays(DOUBLE), [], [], x[None], w, None, 4, False, False, False,
                                "stepwise", 3)
    opcheck(OPS.recurrence_backward.default,
            (*gso.arrays(DOUBLE), [], [], out, w, None, None, None, saved, 1, 4, False, False, False, False, 3))


def small_model(gso, x, w, b, weight, scale, shift):
    h = mpssm.recurrence(gso, x, w, b, steps=6)
    h = F.gelu(F.linear(F.layer_norm(h, scale, shift), weight))
    return F.pool(gso, mpssm.spmm(gso, h), "mean")


def small_arguments(dtype=torch.float32):
    return [numbers(7, 3, dtype=dtype), dense_w(4, dtype=dtype), numbers(3, 4, dtype=dtype, seed=1),
            numbers(5, 4, dtype=dtype, seed=2), numbers(4, dtype=dtype, seed=5),
            numbers(4, dtype=dtype, seed=6)]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiles_whole(backend):
    gso = ring()
    eager = [t.requires_grad_() for t in small_arguments()]
    compiled = [t.requires_grad_() for t in small_arguments()]
    function = torch.compile(small_model, fullgraph=True, backend=backend)
    one, other = small_model(gso, *eager), function(gso, *compiled)
    assert torch.allclose(one, other, atol=1e-6)
    for a, b in zip(torch.autograd.grad(one.sum(), eager), torch.autograd.grad(other.sum(), compiled)):
        assert torch.allclose(a, b, atol=1e-6)


def test_compiles_with_a_diagonal_w_and_dropout():
    gso = ring()

    def run(x, pairs):
        h = mpssm.recurrence(gso, x, torch.view_as_complex(pairs), steps=6, outputs="all")
        return F.dropout(h, 0.5)

    x, pairs = leaf(7, 4), torch.view_as_real(diagonal_w(4)).clone().requires_grad_()
    y = torch.compile(run, fullgraph=True, backend="aot_eager")(x, pairs)
    kept = y != 0
    assert 0.1 < float(kept.double().mean()) < 0.9
    assert torch.allclose(y[kept], 2 * mpssm.recurrence(
        gso, x, torch.view_as_complex(pairs), steps=6, outputs="all")[kept], atol=1e-12)
    y.sum().backward()
    assert bool(pairs.grad.abs().sum() > 0)


class Holder(torch.nn.Module):
    def __init__(self, gso):
        super().__init__()
        self.gso = gso
        self.w = torch.nn.Parameter(dense_w(4, dtype=torch.float32))

    def forward(self, x):
        return mpssm.recurrence(self.gso, x, self.w, steps=3)


def test_exports_with_the_operator_inside_or_as_an_argument():
    module, x = Holder(ring()), numbers(7, 4, dtype=torch.float32)
    program = torch.export.export(module, (x,))
    assert torch.allclose(program.module()(x), module(x), atol=1e-6)

    class Given(torch.nn.Module):
        def forward(self, gso, x):
            return mpssm.spmm(gso, x)

    program = torch.export.export(Given(), (ring(), x))
    assert torch.allclose(program.module()(ring(), x), mpssm.spmm(ring(), x))


def test_copies_and_pickles():
    module, x = Holder(directed()), numbers(6, 4, dtype=torch.float32)
    buffer = io.BytesIO()
    torch.save(module, buffer)
    buffer.seek(0)
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module)),
                  torch.load(buffer, weights_only=False)):
        assert torch.equal(other(x), module(x))
        assert other.gso.row_ptr.data_ptr() != module.gso.row_ptr.data_ptr()


def test_checkpoint_and_autocast():
    module, x = Holder(ring()), numbers(7, 4, dtype=torch.float32).requires_grad_()
    y = checkpoint(module, x, use_reentrant=False)
    (one,) = torch.autograd.grad(y.sum(), x)
    (other,) = torch.autograd.grad(module(x).sum(), x)
    assert torch.equal(one, other)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = module(torch.nn.functional.linear(x, torch.eye(4)))  # bfloat16 comes in
        assert y.dtype == torch.float32
        F.linear(x.bfloat16(), torch.eye(4)).sum().backward()


def test_function_transforms():
    gso = ring()
    x = numbers(7, 4)
    gradient = torch.func.grad(lambda t: mpssm.spmm(gso, t).square().sum())(x)
    assert torch.allclose(gradient, 2 * gso.to_dense(DOUBLE).t() @ gso.to_dense(DOUBLE) @ x)
    w = dense_w(4)
    jacobian = torch.func.jacrev(lambda t: mpssm.recurrence(gso, x, t, steps=3).sum(0))(w)
    expected = torch.autograd.functional.jacobian(
        lambda t: mpssm.recurrence(gso, x, t, steps=3).sum(0), w)
    assert torch.allclose(jacobian, expected)
    many = torch.stack([x, -x, 2 * x])
    assert torch.allclose(torch.func.vmap(lambda t: mpssm.recurrence(gso, t, w, steps=3))(many),
                          mpssm.recurrence(gso, many, w, steps=3))


class Features(torch.utils.data.Dataset):
    def __init__(self, gso):
        self.gso = gso

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return mpssm.spmm(self.gso, torch.full((self.gso.num_nodes, 2), float(index)))


@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_worker_processes(way):
    gso = ring()
    mpssm.spmm(gso, torch.ones(7, 2))
    loader = torch.utils.data.DataLoader(Features(gso), num_workers=2, multiprocessing_context=way)
    for index, batch in enumerate(loader):
        assert torch.allclose(batch[0], torch.full((7, 2), float(index)), atol=1e-6)
