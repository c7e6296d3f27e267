# SPDX-License-Identifier: MIT
"""Modules: shapes, the recurrence against PyG's layers that are instances of it, drop-in use."""

import copy

import pytest
import torch
from graphs import DOUBLE, directed, numbers, ring

import mpssm
from mpssm.nn import MPSSM, MPSSMBlock, MPSSMCell, MPSSMConv, MPSSMRecurrent, StateMatrix

pyg = pytest.importorskip("torch_geometric.nn")

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0, 4], [1, 0, 2, 1, 3, 2, 0, 3, 4]])
TOLERANCE = 1e-12


def operator():
    return mpssm.Gso.from_edge_index(EDGES)


# ---- instances of the recurrence --------------------------------------------------------------


def test_gcn_conv_is_one_hop_and_the_input():
    x, weight = numbers(5, 3), numbers(3, 4, seed=1)
    conv = pyg.GCNConv(3, 4, bias=False).double()
    conv.lin.weight.data = weight.t().contiguous()
    # Two steps with W = I: x B + A x B.
    y = mpssm.recurrence(operator(), x, torch.eye(4, dtype=DOUBLE), weight, steps=2)
    assert torch.allclose(y - x @ weight, conv(x, EDGES), atol=TOLERANCE)


@pytest.mark.parametrize("alpha", [0.0, 0.3])
@pytest.mark.parametrize(("diagonal", "plan"), [(False, "stepwise"), (False, "doubling"),
                                                (True, "diagonal")])
def test_ssg_conv_is_w_identity(diagonal, plan, alpha):
    hops = 7
    x = numbers(5, 4)
    conv = pyg.SSGConv(4, 4, alpha=alpha, K=hops, bias=False).double()
    conv.lin.weight.data = torch.eye(4, dtype=DOUBLE)
    w = torch.ones(2, dtype=torch.complex128) if diagonal else torch.eye(4, dtype=DOUBLE)
    # SSGConv averages A x, ..., A^K x and mixes x in; ours adds x as well.
    total = mpssm.recurrence(operator(), x, w, steps=hops + 1, plan=plan)
    expected = conv(x, EDGES)
    assert torch.allclose(alpha * x + (1 - alpha) * (total - x) / hops, expected, atol=TOLERANCE)


@pytest.mark.parametrize(("diagonal", "plan"), [(False, "stepwise"), (False, "doubling"),
                                                (True, "diagonal")])
def test_appnp_is_w_a_multiple_of_identity(diagonal, plan):
    hops, alpha = 9, 0.2
    x = numbers(5, 4)
    conv = pyg.APPNP(hops, alpha)
    w = (1 - alpha) * (torch.ones(2, dtype=torch.complex128) if diagonal else torch.eye(4, dtype=DOUBLE))
    y = mpssm.recurrence(operator(), alpha * x, w, steps=hops, initial=x, plan=plan)
    assert torch.allclose(y, conv(x, EDGES), atol=TOLERANCE)


# ---- modules ----------------------------------------------------------------------------------


def test_conv_takes_what_gcn_conv_takes():
    conv, x, weight = MPSSMConv(3, 5, hops=6), numbers(5, 3, dtype=torch.float32), torch.rand(9)
    plain = conv(x, EDGES)
    assert plain.shape == (5, 5)
    assert torch.equal(plain, conv(x, operator()))
    assert torch.allclose(plain, conv(x, operator().to_dense().to_sparse()), atol=1e-6)
    assert not torch.allclose(plain, conv(x, EDGES, weight), atol=1e-3)
    assert conv(torch.stack([x, x]), EDGES).shape == (2, 5, 5)
    assert repr(conv).startswith("MPSSMConv(\n  3, 5, hops=6")
    with pytest.raises(ValueError, match="edge weights cannot be learned"):
        conv(x, EDGES, weight.requires_grad_())


def test_cached_conv_keeps_its_first_graph():
    conv, x = MPSSMConv(3, 4, cached=True), numbers(5, 3, dtype=torch.float32)
    first = conv(x, EDGES)
    assert torch.equal(conv(x, EDGES[:, :2]), first)
    assert torch.equal(copy.deepcopy(conv)(x, EDGES), first)
    conv.reset_parameters()
    assert conv._cached_gso is None


@pytest.mark.parametrize("state", ["dense", "diagonal", "stable"])
def test_every_parameter_of_a_model_learns(state):
    torch.manual_seed(0)
    model = MPSSM(3, 8, 2, num_blocks=2, state=state, dropout=0.2, readout_layers=2)
    before = copy.deepcopy(model.state_dict())
    adam = torch.optim.Adam(model.parameters(), 1e-2)
    x, target = numbers(5, 3, dtype=torch.float32), numbers(5, 2, dtype=torch.float32, seed=1)
    losses = []
    for _ in range(40):
        adam.zero_grad()
        loss = (model(x, operator()) - target).square().mean()
        loss.backward()
        adam.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.5 * losses[0]
    assert all(not torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_gradients_of_a_block_equal_differences():
    for state in ("dense", "stable"):
        block = MPSSMBlock(2, 2, hops=3, state=state, activation="tanh").double()
        x = numbers(6, 2).requires_grad_()
        torch.autograd.gradcheck(lambda t, b=block: b(t, directed()), (x,))


def test_shapes_of_models():
    x = numbers(4, 7, 3, dtype=torch.float32)
    gso = ring()
    assert MPSSM(3, 8, 2)(x, gso).shape == (4, 7, 2)
    assert MPSSM(3, 8, 2, temporal=True)(x, gso).shape == (4, 7, 2)
    forecast = MPSSM(3, 8, 5, temporal=True, readout="forecast", skip_steps=3, num_embedded_nodes=7)
    assert forecast(x, gso).shape == (7, 5)
    batch = torch.tensor([0, 0, 0, 1, 1])
    graphs = MPSSM(3, 8, 2, readout="graph", pooling="sum_max_mean", norm="batch")
    index = torch.tensor([[0, 3], [1, 4]])
    assert graphs(numbers(5, 3, dtype=torch.float32), index, None, batch).shape == (2, 2)
    with pytest.raises(ValueError, match=r"expected x of shape \[..., N, in_channels=3\], got \[7, 2\]"):
        MPSSM(3, 8, 2)(torch.ones(7, 2), gso)
    with pytest.raises(ValueError, match="an even number of channels"):
        StateMatrix(5)
    with pytest.raises(ValueError, match="activation: expected gelu, relu, .* got 'swish'"):
        MPSSMBlock(2, 2, activation="swish")


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiles_and_exports(backend):
    model, x, gso = MPSSM(3, 8, 2, num_blocks=2), numbers(7, 3, dtype=torch.float32), ring()
    expected = model(x, gso)
    compiled = torch.compile(model, fullgraph=True, backend=backend)(x, gso)
    assert torch.allclose(compiled, expected, atol=1e-5)
    grads = [torch.autograd.grad(y.square().sum(), list(model.parameters()))
             for y in (compiled, expected)]
    for one, other in zip(*grads):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-4)
    program = torch.export.export(model, (x, gso))
    assert torch.allclose(program.module()(x, gso), expected, atol=1e-5)


def test_state_is_carried_on():
    gso, x = directed(), numbers(5, 6, 3, dtype=torch.float32)
    layer = MPSSMRecurrent(3, 4)
    whole = layer(x, gso)
    first = layer(x[:2], gso)
    assert torch.allclose(layer(x[2:], gso, h=first[-1]), whole[2:], atol=1e-6)
    cell = MPSSMCell(3, 4)
    cell.load_state_dict(layer.state_dict())
    h = None
    for step, expected in zip(x, whole):
        h = cell(step, gso, None, h)
        assert torch.allclose(h, expected, atol=1e-6)
