# SPDX-License-Identifier: MIT
"""Gso: where it can come from, what it is, and what is refused."""

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch
from graphs import DOUBLE, directed, lopsided, ring

import mpssm

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])  # a path of three nodes


def dense(gso):
    return gso.to_dense(DOUBLE)


def normalised(adjacency):
    """D^-1/2 (M + I) D^-1/2"""
    loops = adjacency + torch.eye(len(adjacency), dtype=DOUBLE)
    scale = loops.sum(1).rsqrt()
    return scale[:, None] * loops * scale


PATH = torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=DOUBLE)


def test_default_is_the_operator_of_gcn():
    gso = mpssm.Gso.from_edge_index(EDGES)
    assert torch.allclose(dense(gso), normalised(PATH))
    assert gso.is_symmetric and gso.num_nodes == 3 and gso.num_nonzeros == 7 and gso.num_graphs == 1
    assert repr(gso) == "Gso(sym_normalized, nodes=3, nonzeros=7, graphs=1, device=cpu)"


@pytest.mark.parametrize(("kind", "expected"), [
    ("adjacency", PATH), ("identity", torch.eye(3, dtype=DOUBLE)),
    ("laplacian", torch.diag(PATH.sum(1)) - PATH),
    ("random_walk", (PATH + torch.eye(3, dtype=DOUBLE)) / (PATH.sum(1, keepdim=True) + 1)),
])
def test_kinds(kind, expected):
    assert torch.allclose(dense(mpssm.Gso.from_edge_index(EDGES, kind=kind)), expected)


def test_an_edge_moves_features_from_source_to_destination():
    gso = mpssm.Gso.from_edge_index(torch.tensor([[0], [2]]), num_nodes=3, kind="adjacency")
    x = torch.tensor([[5.0], [0.0], [0.0]])
    assert mpssm.spmm(gso, x).tolist() == [[0.0], [0.0], [5.0]]


def test_weights_and_loops():
    weight = torch.tensor([2.0, 2.0, 3.0, 3.0])
    gso = mpssm.Gso.from_edge_index(EDGES, weight, kind="adjacency")
    assert dense(gso)[1].tolist() == [2.0, 0.0, 3.0]
    loops = torch.tensor([[0, 0], [0, 1]])
    for policy, expected in (("add_missing", 4.0), ("add_all", 5.0), ("keep", 4.0)):
        gso = mpssm.Gso.from_edge_index(loops, torch.tensor([4.0, 1.0]), self_loops=policy,
                                        kind="random_walk")
        assert float(dense(gso)[0, 0]) == 1.0  # the only entry of its row, whatever it weighs
        row = {"add_missing": [0.5, 0.5], "add_all": [0.5, 0.5], "keep": [1.0, 0.0]}[policy]
        assert dense(gso)[1].tolist() == row, expected


def test_batch_of_graphs():
    index = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    gso = mpssm.Gso.from_edge_index(index, batch=torch.tensor([0, 0, 1, 1, 3]))
    assert gso.graph_ptr.tolist() == [0, 2, 4, 4, 5]
    with pytest.raises(ValueError, match=r"row 1: column 2 out of range \[0, 2\)"):
        mpssm.Gso.from_edge_index(torch.tensor([[2], [1]]), batch=torch.tensor([0, 0, 1, 1]))
    with pytest.raises(ValueError, match="expected batch to ascend"):
        mpssm.Gso.from_edge_index(index, batch=torch.tensor([0, 1, 0, 1]))


def test_from_matrices():
    matrix = torch.tensor([[0.0, 2.0, 0.0], [0.5, 0.0, 0.0], [0.0, -1.0, 3.0]], dtype=DOUBLE)
    for gso in (mpssm.Gso.from_torch_sparse(matrix.to_sparse()),
                mpssm.Gso.from_torch_sparse(matrix.to_sparse_csr()),
                mpssm.Gso.from_torch_sparse(matrix.to_sparse_csc()),
                mpssm.Gso.from_scipy(scipy.sparse.coo_array(matrix.numpy())),
                mpssm.Gso.from_scipy(scipy.sparse.csr_matrix(matrix.numpy()))):
        assert torch.equal(dense(gso), matrix) and not gso.is_symmetric
    twice = scipy.sparse.coo_array((np.array([1.0, 2.0]), ([0, 0], [1, 1])), (2, 2))
    assert dense(mpssm.Gso.from_scipy(twice)).tolist() == [[0.0, 3.0], [0.0, 0.0]]


def test_from_networkx():
    graph = networkx.path_graph(["a", "b", "c"])
    assert torch.allclose(dense(mpssm.Gso.from_networkx(graph)), normalised(PATH))
    graph.add_edge("a", "b", weight=4.0)
    gso = mpssm.Gso.from_networkx(graph, kind="adjacency")
    assert dense(gso)[0].tolist() == [0.0, 4.0, 0.0] and gso.is_symmetric
    gso = mpssm.Gso.from_networkx(networkx.DiGraph([(0, 1)]), kind="adjacency")
    assert dense(gso).tolist() == [[0.0, 0.0], [1.0, 0.0]]


def test_from_pyg():
    data = pytest.importorskip("torch_geometric.data")
    one = data.Data(x=torch.ones(3, 1), edge_index=EDGES)
    assert torch.allclose(dense(mpssm.Gso.from_pyg(one)), normalised(PATH))
    gso = mpssm.Gso.from_pyg(data.Batch.from_data_list([one, one]))
    assert gso.graph_ptr.tolist() == [0, 3, 6]


@pytest.mark.parametrize(("arguments", "words"), [
    ((torch.zeros(3, 2, dtype=torch.int64),), r"expected edge_index of whole numbers and shape \[2, E\]"),
    ((torch.zeros(2, 2),), "got .* of torch.float32"),
    ((EDGES, torch.ones(3)), r"expected edge_weight of shape \[4\], got \[3\]"),
    ((EDGES, None, 2), r"edge 2.*out of range \[0, 2\)|node 2"),
    ((EDGES, torch.tensor([1.0, float("nan"), 1.0, 1.0])), "finite"),
])
def test_what_is_no_graph_is_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        mpssm.Gso.from_edge_index(*arguments)


def test_unknown_names_are_listed():
    with pytest.raises(ValueError, match="expected one of sym_normalized, .*got 'gcn'"):
        mpssm.Gso.from_edge_index(EDGES, kind="gcn")
    with pytest.raises(ValueError, match="expected self_loops add_missing, add_all or keep"):
        mpssm.Gso.from_edge_index(EDGES, self_loops="yes")


def test_rows_that_are_none_are_refused():
    with pytest.raises(ValueError, match="expected columns that ascend"):
        mpssm.Gso.from_csr(torch.tensor([0, 2, 2]), torch.tensor([1, 0]), torch.ones(2))
    with pytest.raises(ValueError, match="expected row_ptr to end with 1, got 2"):
        mpssm.Gso.from_csr(torch.tensor([0, 1, 2]), torch.tensor([0]), torch.ones(1))


def test_only_what_differs_is_kept_of_the_transpose():
    assert ring().transposed_col.numel() == 0 and ring().transposed_value.numel() == 0
    assert lopsided().transposed_col.numel() == 0 and lopsided().transposed_value.numel() == 6
    gso = directed()
    assert gso.transposed_col.numel() == gso.num_nonzeros
    assert not gso.is_symmetric


def test_edges_that_count_both_ways():
    once = mpssm.Gso.from_edge_index(torch.tensor([[0, 1], [1, 2]]), directed=False)
    twice = mpssm.Gso.from_edge_index(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    assert torch.equal(once.to_dense(), twice.to_dense())
    also = mpssm.Gso.from_edge_index(torch.tensor([[0, 1, 1], [1, 0, 2]]), directed=False)
    assert torch.equal(also.to_dense(), twice.to_dense())


def test_pandas_names_become_rows():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": ["ridge", "harbour"], "b": ["summit", "ridge"], "km": [2.0, 0.5]})
    gso, names = mpssm.Gso.from_pandas(table, "a", "b", "km", kind="adjacency")
    assert names.tolist() == ["ridge", "harbour", "summit"]
    expected = torch.tensor([[0.0, 0.5, 2.0], [0.5, 0.0, 0.0], [2.0, 0.0, 0.0]])
    assert torch.equal(gso.to_dense(), expected)

    order = ["harbour", "meadow", "summit", "ridge"]
    for nodes in (order, pandas.DataFrame({"height": range(4)}, index=order)):
        gso, names = mpssm.Gso.from_pandas(table, "a", "b", nodes=nodes, directed=True,
                                           kind="adjacency")
        assert names.tolist() == order
        dense = gso.to_dense()
        assert dense[2, 3] == 1.0 and dense[3, 0] == 1.0 and dense.sum() == 2.0  # A[dst, src]

    numbered, names = mpssm.Gso.from_pandas(pandas.DataFrame({"src": [7, 9], "dst": [9, 4]}))
    assert names.tolist() == [7, 9, 4] and numbered.num_nodes == 3


@pytest.mark.parametrize("change, words", [
    (dict(source="from"), "expected columns 'from', 'dst', got 'src', 'dst', 'w'"),
    (dict(nodes=["a", "b"]), "column 'dst', row 1: expected the name of a node, got 'c'"),
    (dict(nodes=["a", "b", "a"]), "expected every node once, got 'a' more than once"),
    (dict(weight="w"), "finite"),
])
def test_pandas_errors_say_where(change, words):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"src": ["a", "b"], "dst": ["b", "c"], "w": [1.0, float("nan")]})
    with pytest.raises(ValueError, match=words):
        mpssm.Gso.from_pandas(table, **change)


def test_encodings_of_nodes():
    first = torch.arange(8)
    index = torch.stack([torch.cat([first, (first + 1) % 8]), torch.cat([(first + 1) % 8, first])])
    got = mpssm.encode_nodes(index, "degree,rwse:4,lap:2")
    assert got.shape == (8, 7) and got.dtype == torch.float32
    # On a ring a walk is back after 2 and 4 steps with 2 of 4 and 6 of 16 ways.
    assert torch.allclose(got[:, :4], torch.tensor([0.0, 0.5, 0.0, 0.375]).expand(8, 4))
    assert torch.allclose(got[:, 4:6].t() @ got[:, 4:6] / 8, torch.eye(2), atol=1e-5)
    assert torch.allclose(got[:, 6], torch.tensor(3.0).log().expand(8))
    assert torch.equal(mpssm.encode_nodes(index[:, :8], "rwse:4", directed=False), got[:, :4])
    with pytest.raises(ValueError, match="expected encodings of the graph alone .*, got edges"):
        mpssm.encode_nodes(index, "edges")
    with pytest.raises(ValueError, match="walk:3"):
        mpssm.encode_nodes(index, "walk:3")
    with pytest.raises(ValueError, match=r"encode_nodes: expected edge_index of whole numbers and shape \[2, E\]"):
        mpssm.encode_nodes(index.t())
