# SPDX-License-Identifier: MIT
"""Large operators whose nodes come in no good order are computed in a better one: the same numbers."""

import copy
import pickle

import pytest
import torch
from graphs import DOUBLE, dense_w, diagonal_w, numbers

import mpssm

SIDE = 260  # so many squared are enough nodes for the engine to ask for an order


@pytest.fixture(scope="module", params=["sym_normalized", "random_walk", "directed"])
def shuffled_grid(request):
    cells = torch.randperm(SIDE * SIDE, generator=torch.Generator().manual_seed(0)).view(SIDE, SIDE)
    edges = torch.cat([torch.stack([cells[:, :-1].flatten(), cells[:, 1:].flatten()]),
                       torch.stack([cells[:-1].flatten(), cells[1:].flatten()])], 1)
    if request.param == "directed":
        return mpssm.Gso.from_edge_index(torch.cat([edges, edges[:, ::3].flip(0)], 1),
                                         kind="random_walk")
    return mpssm.Gso.from_edge_index(torch.cat([edges, edges.flip(0)], 1), kind=request.param)


def without_order(gso):
    plain = copy.copy(gso)
    plain.__dict__["_orders"] = {torch.float32: (), DOUBLE: ()}
    return plain


def results(gso, w, dtype, **options):
    leaves = [numbers(gso.num_nodes, 4, dtype=dtype).requires_grad_(), w.clone().requires_grad_()]
    y = mpssm.recurrence(gso, *leaves, steps=18, **options)
    weights = numbers(*y.shape, seed=7, dtype=dtype)
    return [y, *torch.autograd.grad((y * weights).sum(), leaves)]


@pytest.mark.parametrize(("plan", "dtype"), [("diagonal", torch.float32), ("doubling", torch.float32),
                                             ("diagonal", DOUBLE)])
def test_no_bit_of_outputs_and_input_gradients_changes(shuffled_grid, plan, dtype):
    w = (diagonal_w if plan == "diagonal" else dense_w)(4, dtype=dtype)
    ordered = results(shuffled_grid, w, dtype, plan=plan)
    assert len(shuffled_grid.order_arrays(dtype)) == 9  # it was worth it
    given = results(without_order(shuffled_grid), w, dtype, plan=plan)
    assert torch.equal(ordered[0], given[0]) and torch.equal(ordered[1], given[1])
    # A sum over the nodes, in another order.
    assert torch.allclose(ordered[2], given[2], rtol=1e-3 if dtype == torch.float32 else 1e-9)


def test_the_order_goes_along_with_copies(shuffled_grid):
    first = shuffled_grid.order_arrays(torch.float32)
    assert shuffled_grid.order_arrays(torch.float32) is first
    for other in (copy.deepcopy(shuffled_grid), pickle.loads(pickle.dumps(shuffled_grid))):
        assert all(torch.equal(a, b) for a, b in zip(other.__dict__["_orders"][torch.float32], first))
    _, node, place, row_ptr, col, value, *_ = first
    assert torch.equal(node[place.long()], torch.arange(SIDE * SIDE, dtype=torch.int32))
    rows = torch.repeat_interleave(row_ptr.diff())
    ordered = torch.sparse_coo_tensor(torch.stack([node[rows], node[col.long()]]).long(), value,
                                      (SIDE * SIDE,) * 2).coalesce()
    given = torch.sparse_coo_tensor(torch.stack(shuffled_grid.coordinates()), shuffled_grid.value,
                                    (SIDE * SIDE,) * 2).coalesce()
    assert torch.equal(ordered.indices(), given.indices())
    assert torch.equal(ordered.values(), given.values())


def test_compiles_before_and_after_it_was_found(shuffled_grid):
    fresh = pickle.loads(pickle.dumps(shuffled_grid))
    fresh.__dict__.pop("_orders", None)
    u = numbers(fresh.num_nodes, 32, dtype=torch.float32).requires_grad_()
    w = diagonal_w(32, dtype=torch.float32)

    def run(gso, u):
        return mpssm.recurrence(gso, u, w, steps=18)

    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(fresh, u), run(shuffled_grid, u))
    assert "_orders" not in fresh.__dict__
    run(fresh, u)
    assert torch.equal(compiled(fresh, u), run(shuffled_grid, u))


def test_small_operators_and_those_without_locality_have_none():
    index = torch.randint(70_000, (2, 280_000), generator=torch.Generator().manual_seed(0))
    for edges, nodes in ((index % 1000, 1000), (index, 70_000)):
        assert mpssm.Gso.from_edge_index(edges, num_nodes=nodes).order_arrays(torch.float32) == ()
