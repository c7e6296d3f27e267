# SPDX-License-Identifier: MIT
"""Entries of A that are given, and learned."""

import pytest
import torch
from graphs import DOUBLE, OPERATORS, dense_w, diagonal_w, directed, formula, numbers, ring
from torch.library import opcheck

import mpssm


def entries_of(gso, seed=6):
    return numbers(gso.num_nonzeros, seed=seed, scale=0.4).requires_grad_()


def with_entries(gso, values):
    """The operator as one of its own."""
    return mpssm.Gso.from_csr(gso.row_ptr, gso.col, values.detach())


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("temporal", [False, True])
def test_given_entries_are_those_of_the_operator(name, diagonal, temporal):
    gso = OPERATORS[name]()
    n, w = gso.num_nodes, diagonal_w(4) if diagonal else dense_w(4)
    u = numbers(2, 5, n, 4) if temporal else numbers(2, n, 4)
    call = {"outputs": "all"} if temporal else {"steps": 5}
    values = entries_of(gso)
    expected = formula(with_entries(gso, values), u, w, **call)
    for plan in ("auto", "stepwise", "reference"):
        got = mpssm.recurrence(gso, u, w, values=values, plan=plan, **call)
        assert torch.allclose(got, expected, atol=1e-12)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("temporal", [False, True])
def test_gradients_equal_differences(name, diagonal, temporal):
    gso = OPERATORS[name]()
    n = gso.num_nodes
    u = (numbers(2, 4, n, 4) if temporal else numbers(2, n, 4)).requires_grad_()
    w = (torch.view_as_real(diagonal_w(4)).clone() if diagonal else dense_w(4)).requires_grad_()
    initial = numbers(2, n, 4, seed=8).requires_grad_()

    def run(values, u, w, initial):
        return mpssm.recurrence(gso, u, torch.view_as_complex(w) if diagonal else w, values=values,
                                initial=initial, **({"outputs": "all"} if temporal else {"steps": 4}))

    torch.autograd.gradcheck(run, (entries_of(gso), u, w, initial))
    alone = [argument.detach() for argument in (u, w, initial)]
    torch.autograd.gradcheck(lambda values: run(values, *alone), (entries_of(gso),))


def test_no_gradient_where_none_is_wanted():
    gso, u, w = directed(), numbers(6, 4).requires_grad_(), dense_w(4)
    values = entries_of(gso).detach()
    (one,) = torch.autograd.grad(mpssm.recurrence(gso, u, w, steps=4, values=values).sum(), u)
    (other,) = torch.autograd.grad(
        mpssm.recurrence(with_entries(gso, values), u, w, steps=4, plan="stepwise").sum(), u)
    assert torch.allclose(one, other, atol=1e-14)


def test_same_bits_for_any_number_of_threads():
    gso, u = ring(3000), numbers(3000, 8, dtype=torch.float32)
    values = numbers(gso.num_nonzeros, dtype=torch.float32, scale=0.3).requires_grad_()
    w = diagonal_w(8, dtype=torch.float32)
    threads, results = torch.get_num_threads(), []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            y = mpssm.recurrence(gso, u, w, steps=6, values=values)
            results.append([y, *torch.autograd.grad(y.square().sum(), values)])
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(one, other) for one, other in zip(*results))


def test_opcheck_and_compile():
    gso, values, w = directed(), entries_of(directed()), dense_w(4).requires_grad_()
    u = numbers(2, 6, 4).requires_grad_()
    opcheck(torch.ops.mpssm_engine.recurrence.default,
            (*gso.arrays_with(values), [], [], u, w, None, 4, False, False, False, "auto", 11, 0, 0,
             True))
    call = torch.compile(lambda values: mpssm.recurrence(gso, u, w, steps=4, values=values),
                         fullgraph=True, backend="aot_eager")
    for one, other in zip(*[[y, *torch.autograd.grad(y.square().sum(), (values, u))] for y in (
            call(values), mpssm.recurrence(gso, u, w, steps=4, values=values))]):
        assert torch.allclose(one, other, atol=1e-14)


def test_other_types_take_the_portable_way():
    gso, u, w = ring(), numbers(7, 4), dense_w(4)
    values = entries_of(gso).detach()
    got = mpssm.recurrence(gso, u.half(), w.half(), steps=3, values=values.half())
    assert torch.allclose(got.double(), mpssm.recurrence(gso, u, w, steps=3, values=values), atol=2e-2)
    (direct,) = torch.func.jacrev(lambda v: mpssm.recurrence(gso, u, w, steps=3, values=v).sum(),
                                  (0,))(values)
    leaf = values.clone().requires_grad_()
    mpssm.recurrence(gso, u, w, steps=3, values=leaf).sum().backward()
    assert torch.allclose(direct, leaf.grad, atol=1e-12)


def test_what_does_not_fit_is_said():
    gso, u, w = ring(), numbers(7, 4), dense_w(4)
    with pytest.raises(ValueError, match=r"expected values of shape \[nonzeros=21\], got \[5\]"):
        mpssm.recurrence(gso, u, w, steps=3, values=torch.zeros(5, dtype=DOUBLE))
    with pytest.raises(TypeError, match="expected values of type torch.float64, got torch.float32"):
        mpssm.recurrence(gso, u, w, steps=3, values=torch.zeros(21))
    with pytest.raises(ValueError, match="plan doubling cannot run this"):
        mpssm.recurrence(gso, u, w, steps=3, values=entries_of(gso), plan="doubling")
