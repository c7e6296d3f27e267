# SPDX-License-Identifier: MIT
"""Runs of the program opened in Python predict the program's numbers."""

import csv
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

import mpssm
from mpssm import run as module

ROOT = Path(__file__).parents[2]
PROGRAM = Path(os.environ.get("MPSSM_PROGRAM", ROOT / "build" / "bin" / "mpssm"))
needs_program = pytest.mark.skipif(not PROGRAM.exists(), reason="build/bin/mpssm is not built")


def run(folder, *arguments):
    done = subprocess.run([PROGRAM, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def make_graph(nodes=40, seed=0):
    draw = np.random.default_rng(seed)
    edges = np.array([(i, draw.integers(i)) for i in range(1, nodes)]
                     + [tuple(draw.integers(nodes, size=2)) for _ in range(nodes)])
    edges = np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], 1), axis=0)
    features = draw.normal(size=(nodes, 3)).astype(np.float32)
    return features, edges


def both_ways(edges):
    pairs = torch.from_numpy(edges).t()
    return torch.cat([pairs, pairs.flip(0)], 1)


@needs_program
@pytest.mark.parametrize("state", ["stable", "dense"])
@pytest.mark.parametrize("labels", ["classes", "binary", "numbers"])
def test_nodes(tmp_path, state, labels):
    features, edges = make_graph()
    score = features[:, 0] + features[:, 1]
    targets = {"classes": np.digitize(score, [-0.5, 0.5]), "binary": (score > 0).astype(np.int64),
               "numbers": 100.0 + 7.0 * score}[labels]
    np.savez(tmp_path / "graph.npz", node_features=features, node_labels=targets, edges=edges)
    run(tmp_path, "train", "graph.npz", "--out", "run", "--set", "train.epochs=4", "--set",
        "model.channels=8", "--set", "model.blocks=2", "--set", f"model.state={state}")
    opened = mpssm.load(tmp_path / "run")
    got = opened.predict(torch.from_numpy(features), both_ways(edges))
    rows = table(tmp_path / "run" / "predictions.csv")
    columns = ["predicted"] if labels == "numbers" else [f"p({name})" for name in opened.class_names]
    expected = torch.tensor([[float(row[column]) for column in columns] for row in rows])
    # The program prints six places, or seven digits.
    assert torch.allclose(got, expected, rtol=2e-7, atol=1.5e-6 if labels != "numbers" else 1e-4)
    assert opened.record["task"] == {"classes": "node_classes", "binary": "node_binary",
                                     "numbers": "node_regression"}[labels]


@needs_program
@pytest.mark.parametrize("state", ["stable", "dense"])
def test_bfloat16_is_that_of_the_program(tmp_path, state):
    x, graph, _ = node_run(tmp_path, "classes", "train.precision=bf16", f"model.state={state}")
    opened = mpssm.load(tmp_path / "run")
    assert opened.model.precision == "bf16"
    columns = [f"p({name})" for name in opened.class_names]
    got = opened.predict(x, graph)
    opened.save(tmp_path / "same")
    # Both to the same bits; the program prints six places.
    assert torch.equal(mpssm.load(tmp_path / "same").predict(x, graph), got)
    assert torch.allclose(got, predictions(tmp_path, "run", columns), atol=1.5e-6)
    assert torch.allclose(got, predictions(tmp_path, "same", columns), atol=1.5e-6)


@needs_program
def test_graphs(tmp_path):
    draw = np.random.default_rng(1)
    sizes = draw.integers(3, 9, size=24)
    node_ptr = np.concatenate([[0], sizes.cumsum()])
    src = np.concatenate([np.concatenate([np.arange(n), (np.arange(n) + 1) % n]) for n in sizes])
    dst = np.concatenate([np.concatenate([(np.arange(n) + 1) % n, np.arange(n)]) for n in sizes])
    features = draw.normal(size=(node_ptr[-1], 2)).astype(np.float32)
    np.savez(tmp_path / "graphs.npz", node_ptr=node_ptr, edge_ptr=2 * node_ptr, edge_src=src,
             edge_dst=dst, node_features=features, labels=sizes[:, None] / 2.0 + 0.25)
    run(tmp_path, "train", "graphs.npz", "--out", "run", "--set", "train.epochs=3", "--set",
        "model.channels=8", "--set", "model.blocks=2", "--set", "model.pooling=sum_max_mean")
    opened = mpssm.load(tmp_path / "run")
    batch = torch.from_numpy(np.repeat(np.arange(24), sizes))
    shift = torch.from_numpy(np.repeat(node_ptr[:-1], 2 * sizes))
    index = torch.stack([torch.from_numpy(src), torch.from_numpy(dst)]) + shift
    got = opened.predict(torch.from_numpy(features), index, batch=batch)
    run(tmp_path, "predict", "run", "--data", "graphs.npz", "--out", "all.csv")
    rows = table(tmp_path / "all.csv")
    column = [name for name in rows[0] if name.startswith("predicted")][0]
    expected = torch.tensor([float(row[column]) for row in rows])
    assert torch.allclose(got[:, 0], expected, rtol=1e-6, atol=1e-5)


@needs_program
def test_series(tmp_path):
    draw = np.random.default_rng(2)
    steps, nodes = 60, 5
    values = 50 + 10 * np.sin(np.arange(steps)[:, None] / 3 + np.arange(nodes)) + draw.normal(
        size=(steps, nodes))
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 4]])
    np.savez(tmp_path / "series.npz", values=values, edges=edges)
    run(tmp_path, "train", "series.npz", "--out", "run", "--set", "train.epochs=3", "--set",
        "model.channels=8", "--set", "model.blocks=2", "--set", "data.horizon=2")
    opened = mpssm.load(tmp_path / "run")
    rows = table(tmp_path / "run" / "predictions.csv")
    lags = 4
    series = torch.from_numpy(values).float().unsqueeze(-1)
    for row in (rows[0], rows[-1]):
        window, node = int(row["window"]), int(row["node"])
        got = opened.predict(series[window : window + lags], both_ways(edges))[node]
        expected = torch.tensor([float(row["step_1"]), float(row["step_2"])])
        assert torch.allclose(got, expected, rtol=1e-6)


SETTINGS = {
    "groups": ["model.gso=sym_normalized:2,random_walk,transpose"],
    "groups, dense W": ["model.gso=sym_normalized:2,random_walk,transpose", "model.state=dense"],
    "free entries": ["model.entries=free"],
    "attention": ["model.entries=attention"],
    "gin, dense W": ["model.entries=gin", "model.state=dense"],
    "encodings": ["data.encodings=rwse:4,lap:2,degree"],
}


@needs_program
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_nodes_with_other_operators_and_inputs(tmp_path, settings):
    x, graph, _ = node_run(tmp_path, "classes", *settings)
    opened = mpssm.load(tmp_path / "run")
    got = opened.predict(x, graph)
    columns = [f"p({name})" for name in opened.class_names]
    assert torch.allclose(got, predictions(tmp_path, "run", columns), atol=1.5e-6)


@needs_program
def test_encodings_are_made_of_edges_or_given(tmp_path):
    x, graph, _ = node_run(tmp_path, "classes", "data.encodings=rwse:4,degree")
    opened, gso = mpssm.load(tmp_path / "run"), mpssm.Gso.from_edge_index(graph)
    with pytest.raises(ValueError, match="expected an edge_index, from which data.encodings=rwse:4,degree are "
                                         "made, got Gso; or append mpssm.encode_nodes"):
        opened.predict(x, gso)
    both = torch.cat([x, mpssm.encode_nodes(graph, "rwse:4,degree")], 1)
    assert torch.equal(opened.predict(both, gso), opened.predict(x, graph))


@needs_program
@pytest.mark.parametrize("entries", ["fixed", "attention"])
def test_a_converted_run_is_one_that_python_converts(tmp_path, entries):
    x, graph, _ = node_run(tmp_path, "classes", "model.state=dense", f"model.entries={entries}")
    run(tmp_path, "convert", "run", "--to", "diagonal", "--out", "diagonal")
    columns = ["p(0)", "p(1)", "p(2)"]
    opened, converted = mpssm.load(tmp_path / "run"), mpssm.load(tmp_path / "diagonal")
    assert torch.allclose(converted.predict(x, graph), predictions(tmp_path, "diagonal", columns), atol=1.5e-6)
    ours = mpssm.convert(opened.model)
    theirs = converted.model.state_dict()
    for name, value in ours.state_dict().items():
        assert value.shape == theirs[name].shape, name
    opened.save(tmp_path / "ours", ours)
    got = mpssm.load(tmp_path / "ours").predict(x, graph)
    assert torch.allclose(got, opened.predict(x, graph), atol=1e-5)
    assert torch.allclose(got, predictions(tmp_path, "ours", columns), atol=1.5e-6)


def changing_series(folder, steps=60, nodes=5):
    """A series and three graphs, from steps 0, 20 and 45 on."""
    draw = np.random.default_rng(2)
    values = 50 + 10 * np.sin(np.arange(steps)[:, None] / 3 + np.arange(nodes)) + draw.normal(
        size=(steps, nodes))
    graphs = {0: [[0, 1], [1, 2], [2, 3], [3, 4]], 20: [[0, 2], [2, 4]], 45: [[0, 1], [1, 4], [3, 4]]}
    np.savez(folder / "series.npz", values=values, edges=np.concatenate(list(graphs.values())),
             edge_step=np.concatenate([[first] * len(edges) for first, edges in graphs.items()]))
    index = np.digitize(np.arange(steps), [20, 45])
    return torch.from_numpy(values).float().unsqueeze(-1), [np.array(edges) for edges in graphs.values()], index


@needs_program
@pytest.mark.parametrize("settings", [(), ("model.state=dense",), ("model.hops_per_step=3",)])
def test_a_series_on_graphs_that_change(tmp_path, settings):
    series, graphs, index = changing_series(tmp_path)
    run(tmp_path, "train", "series.npz", "--out", "run", "--set", "train.epochs=2", "--set",
        "model.channels=8", "--set", "model.blocks=2", "--set", "data.graph_over_time=true",
        *[word for setting in settings for word in ("--set", setting)])
    opened = mpssm.load(tmp_path / "run")
    over_time = mpssm.GsoSequence([mpssm.Gso.from_edge_index(both_ways(edges), num_nodes=5, kind=opened.model.kind)
                                   for edges in graphs], torch.from_numpy(index))
    rows = table(tmp_path / "run" / "predictions.csv")
    for row in (rows[0], rows[-1]):
        begin, node = int(row["window"]), int(row["node"])
        end = begin + int(opened.data.get("lags", 4))
        got = opened.predict(series[begin:end], over_time.window(begin, end))[node, 0]
        assert abs(got.item() - float(row["step_1"])) <= 1e-6 * abs(float(row["step_1"])) + 1e-6
    with pytest.raises(ValueError, match="expected a mpssm.GsoSequence with a graph for each step, .*got Tensor"):
        opened.predict(series[:4], both_ways(graphs[0]))


# ---- models of Python as runs of the program --------------------------------------------------------


def node_run(folder, labels="classes", *settings):
    """A short run of the program, its features and graph; the data file has a name to be quoted."""
    features, edges = make_graph()
    score = features[:, 0] + features[:, 1]
    targets = np.digitize(score, [-0.5, 0.5]) if labels == "classes" else 100.0 + 7.0 * score
    np.savez(folder / 'our "graph".npz', node_features=features, node_labels=targets, edges=edges)
    run(folder, "train", 'our "graph".npz', "--out", "run", "--set", "train.epochs=2", "--set",
        "model.channels=8", "--set", "model.blocks=2",
        *[word for setting in settings for word in ("--set", setting)])
    return torch.from_numpy(features), both_ways(edges), torch.from_numpy(targets)


def predictions(folder, name, columns):
    run(folder, "predict", name, "--out", f"{name}.csv")
    return torch.tensor([[float(row[column]) for column in columns]
                         for row in table(folder / f"{name}.csv")])


OTHER = {"num_blocks": 1, "hops": 7, "state": "dense", "activation": "relu", "norm": "batch",
         "state_norm": "none", "residual": False, "dropout": 0.1, "readout_layers": 2,
         "kind": "random_walk", "plan": "doubling"}


@needs_program
@pytest.mark.parametrize("other", [{}, OTHER, {"num_blocks": 3, "plan": "spectral", "hops": 40}])
def test_a_model_trained_in_python_is_a_run_of_the_program(tmp_path, other):
    x, graph, target = node_run(tmp_path)
    opened = mpssm.load(tmp_path / "run")
    model = mpssm.nn.MPSSM(3, 6, 3, **other) if other else opened.model
    before = opened.predict(x, graph)
    adam = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(30):
        adam.zero_grad()
        torch.nn.functional.cross_entropy(model.train()(x, graph), target).backward()
        adam.step()
    opened.save(tmp_path / "deep" / "ours", model)
    again = mpssm.load(tmp_path / "deep" / "ours")
    got = again.predict(x, graph)
    assert not torch.allclose(got, before, atol=1e-2)
    columns = [f"p({name})" for name in again.class_names]
    (tmp_path / "deep" / "ours").rename(tmp_path / "ours")
    # The program prints six places.
    assert torch.allclose(got, predictions(tmp_path, "ours", columns), atol=1.5e-6)
    run(tmp_path, "evaluate", "ours")
    run(tmp_path, "sensitivity", "ours", "--target", "0")
    assert again.record == {} and again.task == "node_classes"


@needs_program
def test_a_saved_forecast_forecasts(tmp_path):
    values = 50 + 10 * np.sin(np.arange(60)[:, None] / 3 + np.arange(5))
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 4]])
    np.savez(tmp_path / "series.npz", values=values, edges=edges)
    run(tmp_path, "train", "series.npz", "--out", "run", "--set", "train.epochs=1", "--set",
        "model.channels=8", "--set", "model.blocks=2", "--set", "model.skip=true", "--set",
        "model.node_embedding=true")
    opened = mpssm.load(tmp_path / "run")
    with torch.no_grad():
        for parameter in opened.model.parameters():
            parameter.add_(0.01)
    opened.save(tmp_path / "ours")
    series = torch.from_numpy(values).float().unsqueeze(-1)
    got = mpssm.load(tmp_path / "ours").predict(series[-4:], both_ways(edges))
    assert torch.allclose(got, predictions(tmp_path, "ours", ["step_1"]), rtol=1e-6)


@needs_program
def test_what_cannot_be_saved_is_said(tmp_path):
    node_run(tmp_path)
    opened = mpssm.load(tmp_path / "run")
    with pytest.raises(ValueError, match="save: expected a folder that is new or empty, got .*run"):
        opened.save(tmp_path / "run")
    with pytest.raises(ValueError, match="expected a model with out_channels=3, .*got 2"):
        opened.save(tmp_path / "new", mpssm.nn.MPSSM(3, 8, 2))
    assert not (tmp_path / "new").exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@needs_program
def test_what_python_does_not_know_is_refused(tmp_path):
    node_run(tmp_path)
    written = (tmp_path / "run" / "config.toml").read_text()
    for table, line, said in (("model", 'kind = "gcn"', "model.kind=gcn in .*: compared networks are"),
                              ("data", "deviation = true", "data.deviation=True in .*: a window has no place"),
                              ("data", "harmonics = 2", "data.harmonics=2 in .*: a window has no place in"),
                              ("data", 'encodings = "rwse:4,edges"', "data.encodings=rwse:4,edges in .*: what"),
                              ("model", 'gso = "adjacency,random_walk(kind=a)"',
                               r"model.gso=adjacency,random_walk\(kind=a\) in .*: what is known of edges"),
                              ("model", 'gso = "adjacency:3,virtual_node"',
                               "model.gso=adjacency:3,virtual_node in .*: operators of low rank"),
                              ("model", 'gso = "adjacency,adaptive"',
                               "model.gso=adjacency,adaptive in .*: operators of low rank")):
        kept = [each for each in written.splitlines() if each.split(" = ")[0] != line.split(" = ")[0]]
        at = kept.index(f"[{table}]")
        (tmp_path / "run" / "config.toml").write_text("\n".join([*kept[:at + 1], line, *kept[at + 1:]]))
        with pytest.raises(ValueError, match=f"^load: expected a run that Python can compute, got {said} "
                                             ".*; `mpssm predict .*` has it$"):
            mpssm.load(tmp_path / "run")
    (tmp_path / "run" / "config.toml").write_text(written)
    # A setting that is new in the program: somebody has to say whether it is done here.
    settings = set(mpssm.load(tmp_path / "run").config["model"])
    refused = {name.partition(".")[2] for name in module._NOT_DONE if name.startswith("model.")}
    assert settings <= module._DONE | module._OF_OTHER_KINDS | refused
    (tmp_path / "run" / "config.toml").write_text(written.replace("blocks = 2", "blocks = 1"))
    with pytest.raises(ValueError, match="^load: expected the parameters of such a model, .*block_1"):
        mpssm.load(tmp_path / "run")


@needs_program
@pytest.mark.parametrize("options", [{"entries": "gin"}, {"entries": "attention"},
                                     {"entries": "free", "num_entries": True},
                                     {"kind": "sym_normalized:2,random_walk", "state": "dense"},
                                     {"kind": "transpose,identity", "state": "stable"},
                                     {"state_channels": 10, "state": "diagonal"},
                                     {"state_channels": 4, "state_norm": "none"},
                                     {"readout_layers": 2, "readout_shape": "constant",
                                      "input_dropout": 0.2, "readout_dropout": 0.1}])
def test_what_can_be_saved_opens_again(tmp_path, options):
    x, graph, _ = node_run(tmp_path)
    gso = graph if "kind" in options else mpssm.Gso.from_edge_index(graph)
    if "num_entries" in options:
        options = {**options, "num_entries": gso.num_nonzeros}
    torch.manual_seed(0)
    model = mpssm.nn.MPSSM(3, 6, 3, num_blocks=1, **options)
    mpssm.load(tmp_path / "run").save(tmp_path / "ours", model)
    again = mpssm.load(tmp_path / "ours")
    assert torch.equal(again.model(x, gso), model.eval()(x, gso))
    assert all(getattr(again.model, name, value) == value for name, value in options.items())
    # The program computes the same; it prints six places.
    columns = [f"p({name})" for name in again.class_names]
    assert torch.allclose(again.predict(x, graph), predictions(tmp_path, "ours", columns), atol=1.5e-6)


def test_a_folder_that_is_no_run_is_said():
    with pytest.raises(ValueError, match="expected the folder of a finished run"):
        mpssm.load("no/such/run")
