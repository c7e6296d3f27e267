# SPDX-License-Identifier: MIT
"""Operators per group of channels, and several hops per step."""

import pytest
import torch
from graphs import DOUBLE, dense_w, diagonal_w, directed, formula, numbers
from torch.library import opcheck

import mpssm
from mpssm.nn import MPSSM, MPSSMBlock


def operators():
    """Three on the same nodes, with shares of 8 channels as 2, 4 and 2."""
    one = directed()
    back = mpssm.Gso.from_torch_sparse(one.to_dense(DOUBLE).t().to_sparse())
    other = mpssm.Gso.from_edge_index(torch.tensor([[0, 1, 2, 4], [1, 2, 5, 0]]), num_nodes=6,
                                      kind="adjacency")
    return [one, (back, 2), (other, 1)]


BEGINS = (0, 2, 6, 8)


def weights(diagonal):
    if diagonal:
        return diagonal_w(8)
    return [dense_w(end - begin, seed=begin) for begin, end in zip(BEGINS, BEGINS[1:])]


def parts(w):
    if isinstance(w, list):
        return w
    return [w[begin // 2:end // 2] for begin, end in zip(BEGINS, BEGINS[1:])]


def hop_by_hop(gso, u, w, steps, hops, initial, outputs):
    """X(t+1) = A^r X(t) W^r + U(t+1) as so many steps, all but one of r without input."""
    inputs = [u] * steps if steps is not None else list(u.unbind(-3))
    zero = torch.zeros_like(inputs[0])
    spread = torch.stack([each for one in inputs for each in [zero] * (hops - 1) + [one]], -3)
    states = formula(gso, spread, w, initial=initial, outputs="all")
    every = states[..., hops - 1::hops, :, :]
    return every if outputs == "all" else every[..., -1, :, :]


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("temporal", [False, True])
@pytest.mark.parametrize("hops", [1, 3])
@pytest.mark.parametrize("with_initial", [False, True])
def test_each_group_has_its_operator(diagonal, temporal, hops, with_initial):
    u = numbers(2, 5, 6, 8) if temporal else numbers(2, 6, 8)
    initial = numbers(2, 6, 8, seed=3) if with_initial else None
    w, how = weights(diagonal), {"outputs": "all"} if temporal else {"steps": 5}
    each = [one[0] if isinstance(one, tuple) else one for one in operators()]
    expected = torch.cat([
        hop_by_hop(gso, u[..., begin:end], own, how.get("steps"), hops,
                   None if initial is None else initial[..., begin:end], how.get("outputs", "last"))
        for gso, begin, end, own in zip(each, BEGINS, BEGINS[1:], parts(w))], -1)
    plans = ("auto", "reference", *(["stepwise", "diagonal"] if diagonal else ["stepwise"]))
    for plan in plans:
        got = mpssm.recurrence(operators(), u, w, initial=initial, plan=plan, hops_per_step=hops, **how)
        assert torch.allclose(got, expected, atol=1e-11), plan


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("temporal", [False, True])
@pytest.mark.parametrize("hops", [1, 2])
def test_gradients_equal_differences(diagonal, temporal, hops):
    u = (numbers(2, 3, 6, 8) if temporal else numbers(2, 6, 8)).requires_grad_()
    leaves = [torch.view_as_real(diagonal_w(8)).clone()] if diagonal else weights(False)
    leaves = [leaf.requires_grad_() for leaf in leaves]
    how = {"outputs": "all"} if temporal else {"steps": 4}

    def run(u, *leaves):
        w = torch.view_as_complex(leaves[0]) if diagonal else list(leaves)
        return mpssm.recurrence(operators(), u, w, hops_per_step=hops, **how)

    torch.autograd.gradcheck(run, (u, *leaves))


def test_one_operator_takes_several_hops_and_one_share():
    gso, u, w = directed(), numbers(4, 6, 8), diagonal_w(8)
    assert torch.equal(mpssm.recurrence([gso], u, w), mpssm.recurrence(gso, u, w))
    assert torch.equal(mpssm.recurrence([(gso, 7)], u, [dense_w(8)]), mpssm.recurrence(gso, u, dense_w(8)))
    expected = hop_by_hop(gso, u, w, None, 3, None, "last")
    assert torch.allclose(mpssm.recurrence(gso, u, w, hops_per_step=3), expected, atol=1e-12)


def test_opcheck_compile_and_other_types():
    u, pairs = numbers(2, 6, 8).requires_grad_(), torch.view_as_real(diagonal_w(8)).clone().requires_grad_()
    sigma = diagonal_w(8).requires_grad_()
    first, *rest = [one[0] if isinstance(one, tuple) else one for one in operators()]
    opcheck(torch.ops.mpssm_engine.recurrence.default,
            (*first.arrays(DOUBLE), [], [], u, sigma, None, 4, False, False, "auto", 3, 0, 0, False, 1,
             [tensor for one in rest for tensor in one.arrays(DOUBLE)], [1, 2, 1], None))

    def run(u, pairs):
        return mpssm.recurrence(operators(), u, torch.view_as_complex(pairs), steps=4)

    several = operators()
    compiled = torch.compile(lambda u, pairs: mpssm.recurrence(
        several, u, torch.view_as_complex(pairs), steps=4), fullgraph=True, backend="aot_eager")
    for one, other in zip(*[[y, *torch.autograd.grad(y.square().sum(), (u, pairs))]
                            for y in (run(u, pairs), compiled(u, pairs))]):
        assert torch.allclose(one, other, atol=1e-13)
    half = mpssm.recurrence(operators(), u.half(), weights_half(), steps=4)
    assert torch.allclose(half.double(), mpssm.recurrence(operators(), u, weights(False), steps=4), atol=5e-2)


def weights_half():
    return [w.half() for w in weights(False)]


def test_same_bits_for_any_number_of_threads():
    draw = torch.Generator().manual_seed(0)
    gsos = [mpssm.Gso.from_edge_index(torch.randint(3000, (2, 9000), generator=draw), num_nodes=3000)
            for _ in range(2)]
    u = numbers(3000, 16, dtype=torch.float32).requires_grad_()
    threads, results = torch.get_num_threads(), []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            y = mpssm.recurrence(gsos, u, diagonal_w(16, dtype=torch.float32), steps=6)
            results.append([y, *torch.autograd.grad(y.square().sum(), u)])
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(one, other) for one, other in zip(*results))


@pytest.mark.parametrize("readout", ["node", "graph", "forecast"])
def test_models_take_several_operators(readout):
    torch.manual_seed(0)
    temporal = readout == "forecast"
    model = MPSSM(3, 8, 2, num_blocks=2, hops=3, readout=readout, temporal=temporal).double()
    x = numbers(4, 6, 3) if temporal else numbers(6, 3)
    got = model(x, operators())
    assert got.shape == ((1, 2) if readout == "graph" else (6, 2))
    gso = directed()
    assert torch.allclose(model(x, [gso, gso, (gso, 3)]), model(x, gso), atol=1e-12)
    assert not torch.allclose(got, model(x, gso), atol=1e-3)
    with pytest.raises(ValueError, match="expected one operator for all channels and steps where entries are"):
        MPSSM(3, 8, 2, entries="gin")(numbers(6, 3, dtype=torch.float32), operators())


@pytest.mark.parametrize("state", ["stable", "dense"])
def test_models_make_the_operators_of_their_kinds(state):
    torch.manual_seed(0)
    index = torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 3]])
    model = MPSSM(3, 8, 2, num_blocks=1, state=state, kind="random_walk, random_walk_reversed:2,transpose").double()
    given = [mpssm.Gso.from_edge_index(index, kind="random_walk"),
             (mpssm.Gso.from_edge_index(index, kind="random_walk_reversed"), 2),
             mpssm.Gso.from_edge_index(index, kind="transpose")]
    x = numbers(6, 3)
    assert torch.equal(model(x, index), model(x, given))
    if state == "dense":
        shapes = {name: tuple(w.shape) for name, w in model.block_0.w_state.named_parameters()}
        assert shapes == {"weight_0": (2, 2), "weight_1": (4, 4), "weight_2": (2, 2)}
    model(x, index).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.block_0.w_state.parameters())
    with pytest.raises(ValueError, match="expected a share of at least 1 behind the colon, got 'adjacency:x'"):
        MPSSM(3, 8, 2, kind="adjacency:x")


def test_blocks_take_several_hops_per_step():
    torch.manual_seed(0)
    gso, u = directed(), numbers(4, 6, 3)
    block = MPSSMBlock(3, 8, hops_per_step=3).double()
    expected = hop_by_hop(gso, u @ block.w_in, block.w_state(), None, 3, None, "all")
    assert torch.allclose(block.recur(u, gso, temporal=True, outputs="all"), expected, atol=1e-12)


def test_what_does_not_fit_is_said():
    u, w = numbers(2, 6, 8), diagonal_w(8)
    small = mpssm.Gso.from_edge_index(torch.tensor([[0], [1]]))
    for gso, weight, options, words in (
            ([directed(), small], w, {}, "expected operators on the same nodes and graphs, got 2 nodes"),
            ([(directed(), 0)], w, {}, "expected shares of at least 1, got 0"),
            (operators(), dense_w(8), {}, "expected a list of dense W with several operators"),
            (operators(), [dense_w(4), dense_w(4)], {}, r"expected a dense W of each group of 8 channels, "
                                                        r"\[2, 2\], \[4, 4\], \[2, 2\], got \[4, 4\]"),
            (operators(), w, {"plan": "spectral"}, "all channels and steps with plan spectral, got 3"),
            (operators(), w, {"values": torch.zeros(3, dtype=DOUBLE)}, "with values, got 3"),
            (directed(), w, {"hops_per_step": 0}, "expected at least one hop per step, got 0"),
            (operators(), diagonal_w(4), {"u": numbers(2, 6, 4)}, "a pair of channels or more for each of 3")):
        with pytest.raises(ValueError, match=words):
            mpssm.recurrence(gso, **{"u": u, "w": weight, "steps": 3, **options})
    with pytest.raises(TypeError, match="expected a mpssm.Gso, a list of them, one for each group"):
        mpssm.recurrence([], u, w, steps=3)
