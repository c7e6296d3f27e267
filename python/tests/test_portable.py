# SPDX-License-Identifier: MIT
"""The way in plain torch operations, for devices without kernels of ours: the engine's numbers, and
what it keeps for the gradient."""

import math

import pytest
import torch
from graphs import OPERATORS, dense_w, diagonal_w, formula, numbers, ring

import mpssm
from mpssm import portable

NODES, CHANNELS = 50, 8
STATE = NODES * CHANNELS * 8  # bytes of one state in double


def kept_bytes(w, steps, plan="auto"):
    """Bytes that autograd holds after a forward pass, each storage once, without those of the graph."""
    gso, u = ring(NODES), numbers(NODES, CHANNELS).requires_grad_()
    graph = {tensor.untyped_storage().data_ptr() for tensor in (
        gso.row_ptr, gso.col, gso.value, gso.double_value)}
    held = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        # Indices and values of edges, made anew at each hop, are the graph's as well.
        if storage.data_ptr() not in graph and tensor.shape[0] != gso.num_nonzeros:
            held[storage.data_ptr()] = (storage.nbytes(), tensor)  # alive, so that no place comes twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = portable.recurrence(gso, u, w.requires_grad_(), steps=steps, plan=plan)
    total = sum(size for size, _ in held.values())
    y.sum().backward()
    return total


def test_a_diagonal_w_keeps_the_input_alone():
    few, many = (kept_bytes(diagonal_w(CHANNELS), steps) for steps in (3, 300))
    assert few == many <= STATE + 1000


def test_a_dense_w_keeps_a_number_of_states_that_grows_with_the_logarithm():
    sizes = {steps: kept_bytes(dense_w(CHANNELS), steps) for steps in (16, 64, 256)}
    # At most two moves a bit, each with its state before and its product with A^m.
    for steps, size in sizes.items():
        assert size <= 4.5 * STATE * math.log2(steps)
    assert sizes[256] < 2.5 * sizes[16]
    assert kept_bytes(dense_w(CHANNELS), 256, "reference") > 200 * STATE  # one for every step


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 7, 12])
def test_gradients_equal_differences(name, diagonal, steps):
    gso = OPERATORS[name]()
    u = numbers(gso.num_nodes, 2).requires_grad_()
    w = (diagonal_w(2) if diagonal else dense_w(2)).clone().requires_grad_()
    torch.autograd.gradcheck(lambda x, y: portable.recurrence(gso, x, y, steps=steps), (u, w))


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("outputs", ["last", "all"])
@pytest.mark.parametrize("constant", [False, True])
def test_equals_the_formula_and_the_engine(diagonal, outputs, constant):
    gso = ring()
    u = numbers(2, 7, 3) if constant else numbers(2, 5, 7, 3)
    w, b, start = diagonal_w(4) if diagonal else dense_w(4), numbers(3, 4, seed=1), numbers(2, 7, 4, seed=2)
    for initial in (None, start):
        call = {"steps": 5 if constant else None, "initial": initial, "outputs": outputs}
        got = portable.recurrence(gso, u, w, b, **call)
        assert torch.allclose(got, formula(gso, u, w, b, **call), atol=1e-13)
        assert torch.allclose(got, mpssm.recurrence(gso, u, w, b, **call), atol=1e-13)


@pytest.mark.parametrize("options", [{}, {"state": "dense"}, {"readout": "graph", "pooling": "max"},
                                     {"temporal": True, "readout": "forecast"}])
def test_whole_models_have_shapes_on_meta(options):
    """Values are nowhere there, but every call of forward and backward is made."""
    model = mpssm.nn.MPSSM(3, 8, 2, num_blocks=2, dropout=0.2, **options).to("meta")
    x = torch.empty(*([4] if options.get("temporal") else []), 7, 3, device="meta")
    y = model(x, ring().to("meta"))
    assert y.is_meta and y.shape == ((1 if options.get("readout") == "graph" else 7), 2)
    y.sum().backward()
    for parameter in model.parameters():
        assert parameter.grad.is_meta and parameter.grad.shape == parameter.shape
    with torch.device("meta"):
        u, w = torch.empty(7, 4, requires_grad=True), torch.empty(4, 4)
    portable.recurrence(ring().to("meta"), u, w, steps=9).sum().backward()
    assert u.grad.shape == (7, 4)
    sigma = torch.empty(2, dtype=torch.complex64, device="meta", requires_grad=True)
    portable.recurrence(ring().to("meta"), u, sigma, steps=9).sum().backward()
    assert sigma.grad.shape == (2,)


def test_bfloat16_model_trains_by_torch_operations():
    torch.manual_seed(0)
    model = mpssm.nn.MPSSM(3, 8, 2, num_blocks=1, state="dense")
    x = numbers(7, 3, dtype=torch.float32)
    expected = model(x, ring())
    got = model.bfloat16()(x.bfloat16(), ring())
    assert got.dtype == torch.bfloat16
    assert torch.allclose(got.float(), expected, atol=0.1)
    got.sum().backward()
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters())
