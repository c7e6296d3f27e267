# SPDX-License-Identifier: MIT
"""Entries of A that are given, and learned by modules."""

import pytest
import torch
from graphs import (DOUBLE, OPERATORS, as_matrix, dense_w, diagonal_w, directed, formula, numbers,
                    ring)
from torch.library import opcheck

import mpssm
from mpssm.nn import MPSSM, MPSSMBlock


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
            (*gso.arrays_with(values), [], [], u, w, None, 4, False, False, "auto", 11, 0, 0, True, 1,
             [], [], None))
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


# ---- weights of neighbours ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPERATORS)
def test_the_softmax_over_neighbours_is_its_definition(name):
    gso = OPERATORS[name]()
    target, source = (numbers(gso.num_nodes, seed=seed).requires_grad_() for seed in (1, 2))
    rows, columns = gso.coordinates()
    score = torch.nn.functional.leaky_relu(target[rows] + source[columns], 0.3).exp()
    expected = score / torch.zeros(gso.num_nodes, dtype=DOUBLE).index_add(0, rows, score)[rows]
    got = mpssm.functional.edge_softmax(gso, target, source, 0.3)
    plain = mpssm.portable.edge_softmax(gso, target, source, 0.3)
    assert torch.allclose(got, expected, atol=1e-14) and torch.allclose(plain, expected, atol=1e-14)
    torch.autograd.gradcheck(lambda t, s: mpssm.functional.edge_softmax(gso, t, s, 0.3), (target, source))
    (only,) = torch.autograd.grad((got * numbers(gso.num_nonzeros)).sum(), source, retain_graph=True)
    (other,) = torch.autograd.grad((plain * numbers(gso.num_nonzeros)).sum(), source)
    assert torch.allclose(only, other, atol=1e-13)


def test_large_scores_stay_in_their_range():
    gso = ring()
    for dtype in (torch.float32, DOUBLE, torch.float16):
        large = torch.linspace(-300, 300, 7, dtype=dtype)
        got = mpssm.functional.edge_softmax(gso, large, large.flip(0))
        assert got.dtype == dtype and got.isfinite().all()


def test_the_softmax_runs_where_the_engine_does_not():
    gso, score = ring(), numbers(2, 7)
    expected = mpssm.functional.edge_softmax(gso, *score)
    assert torch.allclose(torch.func.vmap(lambda t: mpssm.functional.edge_softmax(gso, t, score[1]))(
        score[:1])[0], expected, atol=1e-14)
    assert mpssm.functional.edge_softmax(gso.to("meta"), *score.to("meta")).shape == (21,)


# ---- modules ---------------------------------------------------------------------------------------


def block_of(kind, gso, **options):
    torch.manual_seed(0)
    return MPSSMBlock(3, 4, hops=3, entries=kind, num_entries=gso.num_nonzeros, **options).double()


def operator_of(block, gso, u):
    """A as its definition says, [N, N]."""
    a, entries = gso.to_dense(DOUBLE), block.entries
    if entries.kind == "free":
        return a.index_put(gso.coordinates(), entries.change, accumulate=True)
    if entries.kind == "gin":
        return a + (1 + entries.epsilon) * torch.eye(gso.num_nodes, dtype=DOUBLE)
    target, source = (u @ block.w_in @ entries.attention).unbind(1)
    score = torch.nn.functional.leaky_relu(target.unsqueeze(1) + source, 0.2)
    there = torch.zeros_like(a, dtype=torch.bool)
    there[gso.coordinates()] = True
    # A node without neighbours receives nothing.
    return torch.softmax(score.masked_fill(~there, -torch.inf), 1).nan_to_num(0.0)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("kind", ["free", "gin", "attention"])
@pytest.mark.parametrize("state", ["stable", "dense"])
def test_blocks_learn_their_entries(name, kind, state):
    gso = OPERATORS[name]()
    block, u = block_of(kind, gso, state=state), numbers(gso.num_nodes, 3).requires_grad_()
    with torch.no_grad():
        for parameter in block.entries.parameters():
            parameter.add_(numbers(*parameter.shape, seed=9, scale=0.2))
    got = block.recur(u, gso)
    w, a = as_matrix(block.w_state()), operator_of(block, gso, u)
    x = torch.zeros_like(got)
    for _ in range(4):
        x = a @ x @ w + u @ block.w_in
    assert torch.allclose(got, x, atol=1e-12)
    leaves = [u, block.w_in, *block.entries.parameters(), *block.w_state.parameters()]
    weights = numbers(*x.shape, seed=12)
    for one, other in zip(*[torch.autograd.grad((y * weights).sum(), leaves) for y in (got, x)]):
        assert torch.allclose(one, other, atol=1e-11)


def test_models_learn_their_entries():
    gso, x = ring(30), numbers(30, 2, dtype=torch.float32)
    target = x.roll(3, 0)[:, :1]
    for kind, name in (("free", "change"), ("gin", "epsilon"), ("attention", "attention")):
        torch.manual_seed(0)
        model = MPSSM(2, 8, 1, num_blocks=1, entries=kind, num_entries=gso.num_nonzeros)
        learned = dict(model.named_parameters())[f"block_0.entries.{name}"]
        before, adam, losses = learned.detach().clone(), torch.optim.Adam(model.parameters(), 1e-2), []
        for _ in range(30):
            adam.zero_grad()
            losses.append((model(x, gso) - target).square().mean())
            losses[-1].backward()
            adam.step()
        assert losses[-1] < losses[0] and not torch.equal(learned, before)
        again = MPSSM(2, 8, 1, num_blocks=1, entries=kind, num_entries=gso.num_nonzeros)
        again.load_state_dict(model.state_dict())
        assert torch.equal(again(x, gso), model(x, gso))


def test_a_whole_diagonal():
    gso = mpssm.Gso.from_edge_index(torch.tensor([[0, 1, 2], [1, 2, 2]]), num_nodes=4, kind="adjacency")
    whole = gso.with_whole_diagonal()
    assert torch.equal(whole.to_dense(), gso.to_dense()) and whole.num_nonzeros == 6
    assert whole.with_whole_diagonal() is whole


def test_modules_say_what_does_not_fit():
    gso = ring()
    with pytest.raises(ValueError, match="entries: expected fixed, free, attention, gin, got 'mine'"):
        MPSSMBlock(3, 4, entries="mine")
    with pytest.raises(ValueError, match="free entries need the number of entries"):
        MPSSMBlock(3, 4, entries="free")
    with pytest.raises(ValueError, match="has 5 free entries, got an operator with 21"):
        MPSSMBlock(3, 4, entries="free", num_entries=5)(numbers(7, 3, dtype=torch.float32), gso)
    with pytest.raises(ValueError, match="entries by attention need temporal=False"):
        MPSSM(3, 4, 1, temporal=True, readout="forecast", entries="attention")
    with pytest.raises(ValueError, match=r"attention takes the features of one graph, \[N=7, C=4\]"):
        MPSSMBlock(3, 4, entries="attention")(numbers(2, 7, 3, dtype=torch.float32), gso)
