# SPDX-License-Identifier: MIT
"""Sensitivity against dense powers of A, and against the program."""

import builtins
import json
import subprocess

import networkx
import numpy as np
import pytest
import torch

import mpssm
from mpssm import sensitivity

from graphs import OPERATORS, directed, ring
from test_run import PROGRAM, both_ways, make_graph, needs_program, run

TAUS = [0, 1, 2, 5, 17, 60]
LIMITED = {
    "ring": ring,
    "barbell": lambda: mpssm.Gso.from_networkx(networkx.barbell_graph(5, 3)),
    "two parts": lambda: mpssm.Gso.from_networkx(
        networkx.disjoint_union(networkx.path_graph(4), networkx.complete_graph(3))),
    "weighted": lambda: mpssm.Gso.from_edge_index(
        torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), torch.tensor([0.5, 0.5, 3.0, 3.0])),
}


def power(gso, tau):
    return np.linalg.matrix_power(gso.to_dense(torch.float64).numpy(), tau)


def test_pair_profile_is_the_entry_of_the_power():
    for name, make in OPERATORS.items():
        gso = make()
        for source, target in [(0, 0), (1, 2), (2, 1)]:
            found = sensitivity.profile(gso, TAUS, source=source, target=target, w=-0.9)
            expected = [abs(power(gso, tau)[target, source]) * 0.9**tau for tau in TAUS]
            np.testing.assert_allclose(found["value"], expected, rtol=1e-9, atol=1e-300,
                                       err_msg=name)
            assert found["tau"].tolist() == TAUS


def test_profile_of_one_node_counts_and_sums_what_it_sends_or_hears():
    for make in OPERATORS.values():
        gso = make()
        for end in ("source", "target"):
            found = sensitivity.profile(gso, TAUS, **{end: 2})
            for row, tau in enumerate(TAUS):
                dense = np.abs(power(gso, tau))
                line = dense[:, 2] if end == "source" else dense[2]
                assert found["nodes"][row] == (line > 0).sum()
                np.testing.assert_allclose(found["total"][row], line.sum(), rtol=1e-9)
                np.testing.assert_allclose(found["largest"][row], line.max(), rtol=1e-9)
                if (line > 0).any():
                    np.testing.assert_allclose(found["smallest"][row], line[line > 0].min(),
                                               rtol=1e-9)


def test_profile_of_all_pairs_has_their_extremes():
    gso = ring(9)
    found = sensitivity.profile(gso, TAUS)
    for row, tau in enumerate(TAUS):
        dense = power(gso, tau)
        np.testing.assert_allclose(found["least"][row], dense.min(), atol=1e-15)
        np.testing.assert_allclose(found["largest"][row], dense.max(), rtol=1e-12)
        assert found["zeros"][row] == (dense == 0).sum()
        least = dense[found["least_target"][row], found["least_source"][row]]
        np.testing.assert_allclose(least, dense.min(), atol=1e-15)


@pytest.mark.parametrize("name", LIMITED)
def test_limit_is_where_the_powers_end(name):
    gso = LIMITED[name]()
    expected = power(gso, 20_000)
    np.testing.assert_allclose(sensitivity.limit(gso), expected, rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(sensitivity.limit(gso, source=1), sensitivity.limit(gso)[:, 1])
    np.testing.assert_array_equal(sensitivity.limit(gso, target=2), sensitivity.limit(gso)[2])
    assert sensitivity.limit(gso, source=1, target=2) == sensitivity.limit(gso)[2, 1]


def test_limit_needs_no_word_of_how_the_operator_was_made():
    gso = ring()
    again = mpssm.Gso.from_csr(gso.row_ptr, gso.col, gso.double_value)
    assert again.kind == "custom"
    np.testing.assert_array_equal(sensitivity.limit(again), sensitivity.limit(gso))


@pytest.mark.parametrize("name", LIMITED)
def test_bounds_of_pairs_hold(name):
    gso = LIMITED[name]()
    for source in range(gso.num_nodes):
        for target in (0, 2):
            found = sensitivity.bounds(gso, TAUS, source=source, target=target, w=0.5)
            assert found.facts["hold"]
            assert (found["lower"] <= found["value"] + 1e-12).all()
            assert (found["value"] <= found["upper"] + 1e-12).all()
    # Tight in the end: the bounds close on the limit.
    last = sensitivity.bounds(gso, [20_000], source=1, target=2)
    np.testing.assert_allclose(last["upper"] - last["lower"], 0.0, atol=1e-9)


def test_bounds_of_all_pairs_hold():
    for make in (*OPERATORS.values(), *LIMITED.values()):
        gso = make()
        found = sensitivity.bounds(gso, TAUS)
        assert found.facts["hold"]
        for row, tau in enumerate(TAUS):
            dense = np.abs(power(gso, tau))
            assert dense.max() >= found["largest_bound"][row] - 1e-12
            if "least_bound" in found:
                assert dense.min() >= found["least_bound"][row] - 1e-12
    assert "least_bound" in sensitivity.bounds(ring(), TAUS)
    assert "least_bound" not in sensitivity.bounds(LIMITED["two parts"](), TAUS)


@pytest.mark.parametrize("name", LIMITED)
def test_depth_is_the_least(name):
    gso = LIMITED[name]()
    q = sensitivity.limit(gso)
    for share in (0.1, 0.5, 0.9):
        enough = next(tau for tau in range(10_000)
                      if (power(gso, tau)[q > 0] >= share * q[q > 0] * (1 - 1e-12)).all())
        found = sensitivity.depth(gso, share)
        assert found.tau == enough
        assert q[found.last_target, found.last_source] > 0
        pair = sensitivity.depth(gso, share, source=0, target=2)
        assert pair.tau == next(tau for tau in range(10_000)
                                if power(gso, tau)[2, 0] >= share * q[2, 0] * (1 - 1e-12))
        assert pair.sure_from >= pair.tau
        assert sensitivity.depth(gso, share, max_tau=found.tau - 1).tau is None


def test_worst_pairs_are_the_least_of_all_pairs():
    gso = LIMITED["barbell"]()
    nodes, tau = gso.num_nodes, 6
    dense, q = power(gso, tau), sensitivity.limit(gso)
    for by, rank in (("value", dense), ("share", dense / q)):
        found = sensitivity.worst_pairs(gso, tau, 20, by=by)
        pairs = [(target, source) for source in range(nodes) for target in range(source + 1, nodes)]
        expected = np.sort([rank[pair] for pair in pairs])[:20]
        got = rank[found["target"], found["source"]]
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-300)
        np.testing.assert_allclose(found["value"], dense[found["target"], found["source"]],
                                   rtol=1e-12)
        np.testing.assert_allclose(found["share"] * found["limit"], found["value"], rtol=1e-12)
        # Two cliques at the ends of a path: whoever is worst is beyond all of its four edges.
        assert found["hops"][0] == 6 and found["bridges"][0] == 4


def test_influence_is_the_jacobian_by_finite_differences():
    gso = LIMITED["barbell"]()
    torch.manual_seed(0)
    model = mpssm.nn.MPSSM(2, 8, 3, num_blocks=2, hops=2, dropout=0.5).double().train()
    x = torch.randn(gso.num_nodes, 2, dtype=torch.float64)
    found = sensitivity.influence(model, gso, x, 3)
    assert model.training and all(p.grad is None for p in model.parameters())
    model.eval()
    step = 1e-6
    expected = np.zeros(gso.num_nodes)
    for j in range(gso.num_nodes):
        for g in range(2):
            moved = [x.clone(), x.clone()]
            moved[0][j, g] += step
            moved[1][j, g] -= step
            with torch.no_grad():
                change = (model(moved[0], gso)[3] - model(moved[1], gso)[3]) / (2 * step)
            expected[j] += float(change.abs().sum())
    np.testing.assert_allclose(found.of_node, expected, rtol=1e-5, atol=1e-9)
    distances = networkx.single_source_shortest_path_length(networkx.barbell_graph(5, 3), 3)
    assert found.hops.tolist() == [distances[node] for node in range(gso.num_nodes)]
    np.testing.assert_allclose(found.of_hop.sum(), found.of_node.sum())
    assert found.nodes_at.sum() == gso.num_nodes
    assert found.top(2) == np.argsort(-expected)[:2].tolist()
    assert found.of_node[found.hops > 4].sum() == 0.0  # two blocks of two hops


def test_influence_over_time_adds_up_the_steps():
    gso = ring()
    torch.manual_seed(1)
    model = mpssm.nn.MPSSM(1, 8, 2, temporal=True, readout="forecast", num_blocks=1).eval()
    found = sensitivity.influence(model, gso, torch.randn(4, gso.num_nodes, 1), 0)
    assert found.jacobian.shape == (2, 4, gso.num_nodes, 1)
    np.testing.assert_allclose(found.of_node, found.jacobian.double().abs().sum((0, 1, 3)).numpy())


def test_tables_become_frames_and_pictures():
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    matplotlib.use("Agg")
    gso = LIMITED["barbell"]()
    found = sensitivity.bounds(gso, TAUS, source=0, target=9)
    frame = found.to_pandas()
    assert frame.index.tolist() == TAUS and frame.attrs["hold"]
    np.testing.assert_array_equal(frame["value"], found["value"])
    labels = found.plot().get_legend_handles_labels()[1]
    assert labels == ["value", "lower", "upper", "limit"]
    assert len(sensitivity.worst_pairs(gso, 5, 7).plot().patches) == 7
    sensitivity.profile(gso, TAUS).plot()
    model = mpssm.nn.MPSSM(2, 8, 3, num_blocks=1, hops=3)
    seen = sensitivity.influence(model, gso, torch.randn(gso.num_nodes, 2), 0)
    assert len(seen.plot().patches) == len(seen.of_hop)
    assert seen.to_pandas()["hops"].max() == len(seen.of_hop) - 1
    assert "lambda_star" in repr(found)


def test_what_is_missing_is_named(monkeypatch):
    kept = builtins.__import__

    def without(name, *arguments, **options):
        if name.split(".")[0] in ("matplotlib", "pandas"):
            raise ImportError(name)
        return kept(name, *arguments, **options)

    found = sensitivity.profile(ring(), [1], source=0, target=1)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        found.plot()
    with pytest.raises(ImportError, match="pip install pandas"):
        found.to_pandas()


def test_same_bits_for_any_number_of_threads():
    gso = mpssm.Gso.from_networkx(networkx.barbell_graph(40, 9))
    before = torch.get_num_threads()
    try:
        answers = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            answers.append((sensitivity.profile(gso, TAUS), sensitivity.worst_pairs(gso, 30, 50)))
        for other in answers[1:]:
            for first, second in zip(answers[0], other):
                for name in first:
                    np.testing.assert_array_equal(first[name], second[name])
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("call, words", [
    (lambda gso: sensitivity.profile(gso, [2, 1]), "expected taus as whole numbers that ascend"),
    (lambda gso: sensitivity.profile(gso, [-1]), "expected taus"),
    (lambda gso: sensitivity.profile(gso, [0.5]), "expected taus"),
    (lambda gso: sensitivity.profile(gso, 1, source=7), "expected source from 0 to 6, got 7"),
    (lambda gso: sensitivity.profile(gso, 1, target=-1), "expected target from 0 to 6, got -1"),
    (lambda gso: sensitivity.profile(gso, 1, w=float("inf")), "expected a finite w"),
    (lambda gso: sensitivity.bounds(gso, 1, source=0), "expected source and target, or neither"),
    (lambda gso: sensitivity.depth(gso, 1.5), "expected a share between 0 and 1, got 1.5"),
    (lambda gso: sensitivity.worst_pairs(gso, 1, by="age"), "expected by value or share, got 'age'"),
    (lambda gso: sensitivity.worst_pairs(gso, 1, 0), "expected a count"),
    (lambda gso: sensitivity.influence(mpssm.nn.MPSSM(1, 4, 1), gso, torch.ones(7, 1), 7),
     "expected target from 0 to 6, got 7"),
])
def test_errors_say_what_was_expected(call, words):
    with pytest.raises(ValueError, match=words):
        call(ring())


def test_operators_without_a_limit_are_refused():
    for call in (lambda gso: sensitivity.limit(gso, source=0, target=1),
                 lambda gso: sensitivity.depth(gso),
                 lambda gso: sensitivity.bounds(gso, 1, source=0, target=1),
                 lambda gso: sensitivity.worst_pairs(gso, 1, by="share")):
        with pytest.raises(ValueError, match="there is no limit: it is known for"):
            call(directed())
    assert "limit" not in sensitivity.worst_pairs(directed(), 3)
    with pytest.raises(TypeError, match="expected a mpssm.Gso, got Tensor"):
        sensitivity.limit(torch.eye(2))


def chain_of_cliques():
    """The program's clique-chain:4x5, numbered like it."""
    graph = networkx.disjoint_union_all([networkx.complete_graph(5)] * 4)
    graph.add_edges_from([(4, 20), (20, 5), (9, 21), (21, 10), (14, 22), (22, 15)])
    return mpssm.Gso.from_networkx(graph)


def ask_program(*arguments, folder=None):
    about = ["--make", "clique-chain:4x5"] if folder is None else ["run"]
    done = subprocess.run([PROGRAM, "sensitivity", *about, "--json", *arguments], cwd=folder,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def same(found, said, key):
    np.testing.assert_allclose(found, [row[key] for row in said], rtol=1e-12, atol=1e-13)


@needs_program
def test_of_a_pair_the_program_says_the_same():
    gso, taus = chain_of_cliques(), range(1, 41)
    said = ask_program("--tau", "1:40", "--bounds", "--depth", "0.5", "--source", "0", "--target",
                       "19", "--w", "0.9")
    found = sensitivity.bounds(gso, taus, source=0, target=19, w=0.9)
    same(found["value"], said["profile"], "value")
    same(found["lower"], said["bounds"]["at"], "lower")
    same(found["upper"], said["bounds"]["at"], "upper")
    assert found.facts["limit"] == pytest.approx(said["limit"], rel=1e-14)
    assert found.facts["lambda_star"] == pytest.approx(said["lambda_star"], rel=1e-12)
    pair = sensitivity.profile(gso, taus, source=0, target=19, w=0.9)
    np.testing.assert_array_equal(pair["value"], found["value"])
    assert pair.facts["hops"] == said["hops"]
    depth = sensitivity.depth(gso, 0.5, source=0, target=19)
    assert (depth.tau, depth.sure_from) == (said["depth"]["tau"], said["depth"]["sure_from"])


@needs_program
def test_of_all_pairs_the_program_says_the_same():
    gso = chain_of_cliques()
    said = ask_program("--tau", "1:40", "--bounds", "--depth", "0.5", "--all", "--worst", "7")
    found = sensitivity.bounds(gso, range(1, 41))
    same(found["largest"], said["profile"], "value")
    same(found["zeros"], said["profile"], "zero_pairs")
    for name in ("least", "least_source", "least_target"):
        same(found[name], said["profile"], name)
    same(found["least_bound"], said["bounds"]["at"], "least_at_least")
    same(found["largest_bound"], said["bounds"]["at"], "global_at_least")
    depth = sensitivity.depth(gso, 0.5)
    assert depth.tau == said["depth"]["tau"]
    worst = sensitivity.worst_pairs(gso, 40, 7)
    for name in ("source", "target", "hops", "value", "limit"):
        same(worst[name], said["worst"], name)
    assert worst["bridges"].tolist() == [len(pair["bridges"]) for pair in said["worst"]]


@needs_program
def test_of_a_run_the_program_says_the_same(tmp_path):
    features, edges = make_graph()
    np.savez(tmp_path / "graph.npz", node_features=features, edges=edges,
             node_labels=np.digitize(features[:, 0], [-0.5, 0.5]))
    run(tmp_path, "train", "graph.npz", "--out", "run", "--set", "train.epochs=4", "--set",
        "model.channels=8", "--set", "model.blocks=2", "--set", "model.hops=2")
    (said,) = ask_program("--target", "5", "--top", "6", folder=tmp_path)["predictions"]["each"]
    opened = mpssm.load(tmp_path / "run")
    gso = mpssm.Gso.from_edge_index(both_ways(edges), num_nodes=len(features))
    found = sensitivity.influence(opened.model, gso, torch.from_numpy(features), 5)
    np.testing.assert_allclose(found.of_hop, [hop["influence"] for hop in said["hops"]], rtol=1e-4)
    assert found.nodes_at.tolist() == [hop["nodes"] for hop in said["hops"]]
    assert found.mean_hop == pytest.approx(said["mean_hop"], rel=1e-4)
    assert found.top(6) == [top["node"] for top in said["top"]]
