# SPDX-License-Identifier: MIT
"""A graph for each step: A(t)."""

import pickle

import pytest
import torch
from graphs import DOUBLE, as_matrix, dense_w, diagonal_w, directed, numbers, ring
from torch.library import opcheck

import mpssm
from mpssm.nn import MPSSM, MPSSMRecurrent


def operators():
    """Three on six nodes: symmetric, not symmetric, one without an entry."""
    return [ring(6), directed(), mpssm.Gso.from_csr(torch.zeros(7), torch.zeros(0), torch.zeros(0))]


def by_definition(gso, u, w, initial=None, hops=1):
    """X(t) = A(t)^r X(t-1) W^r + U(t), copy by copy, with dense matrices: every state."""
    w = torch.linalg.matrix_power(as_matrix(w), hops)
    flat = u.reshape(-1, *u.shape[-3:])
    results = []
    for b, one in enumerate(flat):
        x = torch.zeros_like(one[0]) if initial is None else initial.reshape(-1, *one.shape[1:])[b]
        steps, states = gso.at(b if gso.index.shape[0] > 1 else 0), []
        for a, c in zip(steps, one):
            x = torch.linalg.matrix_power(a.to_dense(DOUBLE), hops) @ x @ w + c
            states.append(x)
        results.append(torch.stack(states))
    return torch.stack(results).view(u.shape)


INDEX = {"for all copies": [0, 2, 1, 1, 0], "for each copy": [[0, 2, 1, 1, 0], [1, 1, 0, 2, 2]]}


@pytest.mark.parametrize("index", INDEX.values(), ids=INDEX)
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("with_initial", [False, True])
@pytest.mark.parametrize("hops", [1, 2])
def test_each_step_has_its_graph(index, diagonal, with_initial, hops):
    gso, u = mpssm.GsoSequence(operators(), torch.tensor(index)), numbers(2, 5, 6, 4)
    w = diagonal_w(4) if diagonal else dense_w(4)
    initial = numbers(2, 6, 4, seed=5) if with_initial else None
    expected = by_definition(gso, u, w, initial, hops)
    for plan in ("auto", "stepwise", "reference", *(["diagonal"] if diagonal else [])):
        for outputs in ("all", "last"):
            got = mpssm.recurrence(gso, u, w, initial=initial, outputs=outputs, plan=plan, hops_per_step=hops)
            wanted = expected if outputs == "all" else expected[:, -1]
            assert torch.allclose(got, wanted, atol=1e-12), (plan, outputs)


@pytest.mark.parametrize("index", INDEX.values(), ids=INDEX)
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("outputs", ["all", "last"])
def test_gradients_equal_differences(index, diagonal, outputs):
    gso, u = mpssm.GsoSequence(operators(), torch.tensor(index)), numbers(2, 5, 6, 4).requires_grad_()
    w = (torch.view_as_real(diagonal_w(4)).clone() if diagonal else dense_w(4)).requires_grad_()
    initial = numbers(2, 6, 4, seed=5).requires_grad_()
    torch.autograd.gradcheck(lambda u, w, initial: mpssm.recurrence(
        gso, u, torch.view_as_complex(w) if diagonal else w, initial=initial, outputs=outputs), (u, w, initial))


def test_the_same_graph_at_every_step_is_one_graph():
    u, w = numbers(2, 5, 6, 4), diagonal_w(4)
    gso = mpssm.GsoSequence([directed()], torch.zeros(5, dtype=torch.int64))
    assert torch.equal(mpssm.recurrence(gso, u, w), mpssm.recurrence(directed(), u, w))


def test_opcheck_and_compile():
    gso = mpssm.GsoSequence(operators(), torch.tensor(INDEX["for each copy"]))
    u, w = numbers(2, 5, 6, 4).requires_grad_(), dense_w(4).requires_grad_()
    first, *rest = gso.operators
    opcheck(torch.ops.mpssm_engine.recurrence.default,
            (*first.arrays(DOUBLE), [], [], u, w, None, 5, True, True, "auto", 3, 0, 0, False, 1,
             [tensor for one in rest for tensor in one.arrays(DOUBLE)], [], gso.index))
    call = torch.compile(lambda u: mpssm.recurrence(gso, u, w), fullgraph=True, backend="aot_eager")
    for one, other in zip(*[[y, *torch.autograd.grad(y.square().sum(), (u, w))]
                            for y in (call(u), mpssm.recurrence(gso, u, w))]):
        assert torch.allclose(one, other, atol=1e-14)


def test_same_bits_for_any_number_of_threads():
    draw = torch.Generator().manual_seed(0)
    gso = mpssm.GsoSequence([mpssm.Gso.from_edge_index(torch.randint(3000, (2, 9000), generator=draw),
                                                       num_nodes=3000) for _ in range(2)],
                            torch.tensor([[0, 1, 1], [1, 0, 0]]))
    u, w = numbers(2, 3, 3000, 16, dtype=torch.float32).requires_grad_(), diagonal_w(16, dtype=torch.float32)
    threads, results = torch.get_num_threads(), []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            y = mpssm.recurrence(gso, u, w)
            results.append([y, *torch.autograd.grad(y.square().sum(), u)])
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(one, other) for one, other in zip(*results))


def test_modules_take_graphs_that_change():
    torch.manual_seed(0)
    gso = mpssm.GsoSequence(operators(), torch.tensor(INDEX["for all copies"]))
    x = numbers(2, 5, 6, 3)
    model = MPSSM(3, 4, 1, num_blocks=2, temporal=True, readout="forecast").double()
    assert model(x, gso).shape == (2, 6, 1)
    assert not torch.allclose(model(x, gso), model(x, directed()), atol=1e-3)
    cell = MPSSMRecurrent(3, 4).double()
    whole, begun = cell(x, gso), cell(x[:, :2], gso.window(0, 2))
    rest = cell(x[:, 2:], gso.window(2, 5), h=begun[:, -1])
    assert torch.allclose(torch.cat([begun, rest], 1), whole, atol=1e-13)
    again = pickle.loads(pickle.dumps(gso))
    assert torch.equal(cell(x, again), whole)


def test_a_window_has_the_graphs_of_its_steps():
    gso = mpssm.GsoSequence(operators(), torch.tensor([0, 2, 1, 1, 0]))
    window = gso.window(2, 5)
    assert len(window.operators) == 2 and [one.num_nonzeros for one in window.at(0)] == [
        one.num_nonzeros for one in gso.at(0)[2:]]
    with pytest.raises(ValueError, match="expected some of 5 steps, got 3 to 9"):
        gso.window(3, 9)


def test_what_does_not_fit_is_said():
    u, w, gso = numbers(2, 5, 6, 4), diagonal_w(4), mpssm.GsoSequence(operators(), torch.tensor([0, 1, 2, 0, 1]))
    for call, words in (
            (lambda: mpssm.GsoSequence([], torch.tensor([0])), "expected at least one operator, got none"),
            (lambda: mpssm.GsoSequence([ring(6), ring(7)], torch.tensor([0])), "on the same nodes, graphs and"),
            (lambda: mpssm.GsoSequence([ring(6)], torch.tensor([0, 1])), "expected an index from 0 to 0, got 0 to 1"),
            (lambda: mpssm.GsoSequence([ring(6)], torch.zeros(3)), r"whole numbers and shape \[T\] or \[B, T\]"),
            (lambda: mpssm.recurrence(gso, u[:, :4], w), "with the copies and steps of GsoSequence"),
            (lambda: mpssm.recurrence(gso, u[:, 0], w, steps=5), "one operator for all steps with steps, got a"),
            (lambda: mpssm.recurrence(gso, u, w, plan="spectral"), "with plan spectral, got 3"),
            (lambda: mpssm.recurrence(gso, u, dense_w(4), plan="doubling"), "plan doubling cannot run this")):
        with pytest.raises(ValueError, match=words):
            call()
