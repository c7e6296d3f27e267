# SPDX-License-Identifier: MIT
"""Plan spectral: in the eigenbasis that an operator carries, the numbers of its formula."""

import copy
import pickle

import pytest
import torch
from graphs import DOUBLE, diagonal_w, directed, formula, numbers, ring
from torch.library import opcheck

import mpssm

BATCH = mpssm.Gso.from_edge_index(torch.tensor([[0, 1, 3, 4, 5], [1, 0, 4, 3, 5]]),
                                  batch=torch.tensor([0, 0, 1, 2, 2, 2]))
OPERATORS = {"ring": ring, "batch": lambda: BATCH}
CASES = [(True, "last"), (True, "all"), (False, "last"), (False, "all")]


def problem(gso, constant, channels=4, steps=6, batch=(), dtype=DOUBLE):
    u = numbers(*batch, *(() if constant else (steps,)), gso.num_nodes, 3, dtype=dtype)
    return (u, diagonal_w(channels, dtype=dtype), numbers(3, channels, seed=1, dtype=dtype),
            numbers(*batch, gso.num_nodes, channels, seed=2, dtype=dtype), steps if constant else None)


@pytest.mark.parametrize("name", OPERATORS)
def test_the_basis_rebuilds_the_operator(name):
    gso = OPERATORS[name]().with_basis()
    values, rows, col, _, _, vectors, transposed = gso.basis
    size = (gso.num_nodes, gso.num_nodes)
    p, q = (torch.sparse_csr_tensor(rows, col.long(), v, size).to_dense()
            for v in (vectors, transposed))
    assert torch.equal(p, q.t())
    assert torch.allclose(p @ values.diag() @ q, gso.to_dense(DOUBLE), atol=1e-14)
    assert torch.allclose(p @ q, torch.eye(gso.num_nodes, dtype=DOUBLE), atol=1e-14)
    assert gso.with_basis() is gso


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
@pytest.mark.parametrize(("constant", "outputs"), CASES)
def test_values_are_those_of_the_formula(name, dtype, constant, outputs):
    gso = OPERATORS[name]().with_basis()
    u, w, b, initial, steps = problem(gso, constant, batch=(2,), dtype=dtype)
    for start in (None, initial):
        got = mpssm.recurrence(gso, u, w, b, steps=steps, initial=start, outputs=outputs,
                               plan="spectral")
        expected = formula(gso, u, w, b, steps=steps, initial=start, outputs=outputs)
        assert torch.allclose(got, expected, atol=2e-5 if dtype == torch.float32 else 1e-13)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize(("constant", "outputs"), CASES)
def test_gradients_equal_differences(name, constant, outputs):
    gso = OPERATORS[name]().with_basis()
    *tensors, steps = problem(gso, constant, channels=2, steps=3)
    tensors = [tensor.clone().requires_grad_() for tensor in tensors]

    def run(u, w, b, initial):
        return mpssm.recurrence(gso, u, w, b, steps=steps, initial=initial, outputs=outputs,
                                plan="spectral")

    torch.autograd.gradcheck(run, tensors)
    torch.autograd.gradcheck(lambda u, w, b: run(u, w, b, None), tensors[:3])


def test_auto_weighs_a_basis_that_is_there():
    gso = ring(40)
    u, w, b, _, _ = problem(gso, True, channels=32)
    w = 0.9 * w / w.abs()  # so that any number of steps has an end
    # many steps; few; many, but no basis
    for one, steps, chosen in ((gso.with_basis(), 4000, "spectral"), (gso.with_basis(), 2, "diagonal"),
                               (gso, 4000, "diagonal")):
        results = [mpssm.recurrence(one, u, w, b, steps=steps, plan=plan) for plan in ("auto", chosen)]
        assert torch.equal(*results), chosen
    other = mpssm.recurrence(gso, u, w, b, steps=4000)
    spectral = mpssm.recurrence(gso.with_basis(), u, w, b, steps=4000)
    assert torch.allclose(other, spectral, atol=1e-11) and not torch.equal(other, spectral)


def test_copies_keep_the_basis():
    gso = ring().with_basis()
    arguments = problem(gso, True)[:3]
    expected = mpssm.recurrence(gso, *arguments, steps=5, plan="spectral")
    for other in (copy.deepcopy(gso), pickle.loads(pickle.dumps(gso)), gso.to("meta").to("meta")):
        assert len(other.basis) == 7
        if other.device.type == "cpu":
            assert torch.equal(mpssm.recurrence(other, *arguments, steps=5, plan="spectral"), expected)


def test_opcheck_compile_and_export():
    gso = ring().with_basis()
    pairs = torch.view_as_real(diagonal_w(4)).clone().requires_grad_()
    u = numbers(7, 4).requires_grad_()
    opcheck(torch.ops.mpssm_engine.recurrence.default,
            (*gso.arrays(DOUBLE), [], list(gso.basis_arrays(DOUBLE)), u, diagonal_w(4).requires_grad_(), None, 5,
             False, False, "spectral", 3, 0, 0, False, 1, [], [], None))

    class Holder(torch.nn.Module):
        def forward(self, given, u, pairs):
            return mpssm.recurrence(given, u, torch.view_as_complex(pairs), steps=6, plan="spectral")

    expected = Holder()(gso, u, pairs)
    compiled = torch.compile(Holder(), fullgraph=True, backend="aot_eager")(gso, u, pairs)
    exported = torch.export.export(Holder(), (gso, u, pairs)).module()(gso, u, pairs)
    for got in (compiled, exported):
        assert torch.allclose(got, expected, atol=1e-13)
    for one, other in zip(torch.autograd.grad(compiled.sum(), (u, pairs)),
                          torch.autograd.grad(expected.sum(), (u, pairs))):
        assert torch.allclose(one, other, atol=1e-12)


def test_modules_make_it_of_an_edge_index():
    index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    model = mpssm.nn.MPSSM(3, 4, 2, hops=9, plan="spectral")
    other = mpssm.nn.MPSSM(3, 4, 2, hops=9)
    other.load_state_dict(model.state_dict())
    x = numbers(3, 3, dtype=torch.float32)
    assert torch.allclose(model(x, index), other(x, index), atol=1e-5)
    conv = mpssm.nn.MPSSMConv(3, 4, hops=9, plan="spectral", cached=True)
    assert conv(x, index).shape == (3, 4) and conv._cached_gso.basis


def test_what_has_no_basis_is_said():
    with pytest.raises(ValueError, match=r"make it once by gso = gso.with_basis\(\)"):
        mpssm.recurrence(ring(), torch.ones(7, 4), torch.ones(2) + 0j, steps=3, plan="spectral")
    with pytest.raises(ValueError, match="plan spectral cannot run this: W is dense"):
        mpssm.recurrence(ring().with_basis(), torch.ones(7, 4), torch.eye(4), steps=3, plan="spectral")
    with pytest.raises(ValueError, match="with_basis: expected a symmetric operator"):
        directed().with_basis()
    index = torch.stack([torch.arange(4999), torch.arange(4999) + 1])
    with pytest.raises(ValueError, match="expected graphs of at most 4096 nodes, got graph 0 with 5000"):
        mpssm.Gso.from_edge_index(torch.cat([index, index.flip(0)], 1)).with_basis()
