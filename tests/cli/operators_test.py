#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Operators that are learned, of low rank, directed, of some of the edges, and those that change from step to step: trained,
resumed, opened again and explained through the program; what cannot be combined is refused in one line."""

import csv
import io
import json
import random
import unittest

import program
from program import TINY
from refusal import BadInput

KINDS = ("free", "attention", "gin")


def series(steps=60):
    """A value that goes from a to b in the first half of the time, from a to c in the second."""
    rows, a = ["time,a,b,c"], [float((7 * t * t + 3 * t) % 11) for t in range(steps)]
    for t in range(steps):
        before = a[t - 1] if t else 0.0
        rows.append(f"{t},{a[t]},{before if t < steps // 2 else 5.0},{5.0 if t < steps // 2 else before}")
    return "\n".join(rows) + "\n"


class LearnedEntries(BadInput):
    def train(self, kind, *options, out="run"):
        settings = ["--set", f"model.entries={kind}", "--set", "model.channels=8", "--set", "model.blocks=2"]
        self.succeed("train", "board:8x8", "--quiet", "--out", out, *settings, *options, timeout=300)
        return json.loads((self.folder / out / "record.json").read_text())

    def test_a_run_is_trained_opened_and_explained(self):
        for kind in KINDS:
            with self.subTest(kind):
                self.train(kind, "--set", "train.epochs=20", out=kind)
                self.assertIn(f'entries = "{kind}"', (self.folder / kind / "config.toml").read_text())
                self.succeed("evaluate", kind)
                self.succeed("predict", kind)
                self.succeed("sensitivity", kind, "--source", "3", "--target", "20")
                self.assertIn("report.html", [path.name for path in (self.folder / kind).iterdir()])

    def test_a_stopped_run_goes_on_to_the_same_numbers(self):
        # With a cosine a longer run is another one from its first step on.
        steady = ["--set", "train.schedule=constant", "--set", "train.eval_every=1"]
        self.train("attention", "--set", "train.epochs=12", *steady, out="whole")
        self.train("attention", "--set", "train.epochs=6", *steady, out="part")
        self.succeed("train", "part", "--resume", "--quiet", "--set", "train.epochs=12")
        weights = [(self.folder / run / "model.safetensors").read_bytes() for run in ("whole", "part")]
        self.assertTrue(weights[0] == weights[1])
        metrics = [json.loads((self.folder / run / "record.json").read_text())["metrics"]["test"]
                   for run in ("whole", "part")]
        self.assertEqual(metrics[0], metrics[1])

    def test_what_cannot_be_combined_is_refused(self):
        for settings, phrases in (
                (("model.entries=learned",), ("model.entries", "'learned'", "attention")),
                (("model.entries=gin", "model.kind=gcn"), ("model.entries", "fixed with model.kind = gcn")),
                (("model.entries=gin", "model.plan=spectral"), ("model.plan", "stepwise, diagonal"))):
            self.refuse_train("board:4x4", [arg for setting in settings for arg in ("--set", setting)], *phrases)
        self.write("s/series.csv", series())
        self.write("s/edges.csv", "src,dst\na,b\na,c\n")
        self.refuse_train("s", ["--set", "model.entries=attention"], "model.entries", "a series")
        self.train("free", "--set", "train.epochs=2")
        self.refuse(["advise", "run", "--edges", "3"], "learns the operator's entries")


class LowRank(BadInput):
    def test_a_virtual_node_beside_the_graph(self):
        gso = ["--set", "model.gso=sym_normalized:3,virtual_node", *TINY]
        for data, state in (("board:8x8", "dense"), ("board:8x8", "stable"), ("properties:diameter", "stable")):
            with self.subTest(data=data, state=state):
                out = f"{data.split(':')[0]}-{state}"
                self.succeed("train", data, "--quiet", "--out", out, *gso, "--set", f"model.state={state}", timeout=300)
                self.assertIn('gso = "sym_normalized:3,virtual_node"', (self.folder / out / "config.toml").read_text())
                self.succeed("evaluate", out)
                self.succeed("predict", out)
        answer = json.loads(self.succeed("sensitivity", "board-stable", "--source", "3", "--target", "60", "--tau", "0,1,9",
                                         "--json").out)
        group = answer["groups"][1]
        self.assertEqual(group["operator"], "virtual_node")
        # A^tau = A, each entry 1/64: what is left of it is W's.
        values = [row["value"] for row in group["profile"]]
        self.assertEqual(values[0], 0.0)
        self.assertGreater(values[1], values[2])

    def test_an_adaptive_operator_is_learned(self):
        self.write("s/series.csv", series())
        self.write("s/edges.csv", "src,dst\na,b\na,c\n")
        gso = ["--set", "model.gso=sym_normalized,adaptive", "--set", "model.adaptive_rank=2", *TINY]
        for data in ("s", "board:8x8"):
            out = data.partition(":")[0]
            self.succeed("train", data, "--quiet", "--out", out, *gso)
            self.succeed("evaluate", out)
            self.succeed("predict", out)
            self.succeed("sensitivity", out, "--source", "a" if data == "s" else "3", "--target", "b" if data == "s" else "60")
        # With a cosine a longer run is another one from its first step on.
        steady = ["--set", "train.schedule=constant", "--set", "train.eval_every=1", "--set", "train.patience=0"]
        self.succeed("train", "s", "--quiet", "--out", "whole", *gso, *steady, "--set", "train.epochs=6")
        self.succeed("train", "s", "--quiet", "--out", "part", *gso, *steady, "--set", "train.epochs=3")
        self.succeed("train", "part", "--resume", "--quiet", "--set", "train.epochs=6")
        weights = [(self.folder / run / "model.safetensors").read_bytes() for run in ("whole", "part")]
        self.assertTrue(weights[0] == weights[1])

    def test_what_cannot_be_combined_is_refused(self):
        self.refuse_train("properties:diameter", ["--set", "model.gso=sym_normalized,adaptive"],
                          "model.gso", "many graphs")
        for settings, phrases in (
                (("model.gso=sym_normalized,adaptive", "model.adaptive_rank=0"), ("model.adaptive_rank", "1 to 4096")),
                (("model.gso=sym_normalized,adaptive", "model.entries=gin"), ("model.entries", "groups of channels")),
                (("model.gso=virtual_node",), ("model.gso", "an operator of the graph beside 'virtual_node'")),
                (("model.gso=sym_normalized,virtual_node", "model.kind=gcn"), ("model.gso", "one operator with model.kind"))):
            self.refuse_train("board:4x4", [arg for setting in settings for arg in ("--set", setting)], *phrases)
        self.refuse(["sensitivity", "--make", "grid:4x4", "--gso", "virtual_node"], "--gso: virtual_node not in", code=2)

    def test_ranks_share_batches_and_refuse_one_graph(self):
        self.write("s/series.csv", series())
        self.write("s/edges.csv", "src,dst\na,b\na,c\n")
        pieces = ["--set", "train.batch=8", "--set", "train.pieces=2", *TINY]
        for data, gso in (("properties:diameter:40", "sym_normalized:3,virtual_node"), ("s", "sym_normalized,adaptive"),
                          ("s", "sym_normalized,virtual_node,adaptive")):
            with self.subTest(data=data, gso=gso):
                runs = [f"{len(gso)}-{data[0]}-{ranks}" for ranks in (1, 2)]
                for ranks, out in enumerate(runs, 1):
                    self.succeed("train", data, "--quiet", "--out", out, *pieces, "--set", "model.channels=6", "--set",
                                 f"model.gso={gso}", *(["--ranks", "2"] if ranks == 2 else []), timeout=300)
                weights = [(self.folder / out / "model.safetensors").read_bytes() for out in runs]
                self.assertTrue(weights[0] == weights[1])
        self.succeed("data", "partition", "board:8x8", "--parts", "2", "--out", "parts")
        for gso in ("sym_normalized:3,virtual_node", "sym_normalized,adaptive"):
            self.refuse_train("board:8x8", ["--ranks", "2", "--set", f"model.gso={gso}", *TINY],
                              "2 ranks cannot share one graph: groups of channels have operators of their own")
            self.refuse_train("parts", ["--ranks", "2", "--set", f"model.gso={gso}", *TINY],
                              "model.gso", "one operator for all channels of a graph in parts", f"got {gso}")
            self.refuse(["data", "partition", "board:8x8", "--parts", "2", "--gso", gso, "--out", "other"],
                        "--gso", "one operator for all channels", f"got {gso}")

    def test_advice_is_of_the_graph_alone_and_the_page_has_no_explorer(self):
        section = 'id="explorer"'
        self.succeed("train", "board:8x8", "--quiet", "--out", "plain", *TINY)
        self.assertIn(section, (self.folder / "plain" / "report.html").read_text())
        for gso in ("sym_normalized:3,virtual_node", "sym_normalized,adaptive"):
            out = gso.split(",")[1]
            self.succeed("train", "board:8x8", "--quiet", "--out", out, *TINY, "--set", f"model.gso={gso}")
            page = (self.folder / out / "report.html").read_text()
            self.assertNotIn(section, page)
            self.assertIn("</html>", page)
            for question in (["--edges", "3"], ["--target", "60", "--attribute"], ["--target", "60", "--epsilon", "0.1"]):
                self.refuse(["advise", out, *question], "take one operator for all channels; the run has groups")
            # What an edge does to predictions: all groups take part.
            text = self.succeed("advise", out, "--remove", "0,1", "--remove", "0,8", "--remove", "0,9").out
            self.assertIn("nodes predicted otherwise", text)


def rail_and_road(nodes=300):
    """A node says yes if most of those that it reaches by rail are marked; the roads say nothing."""
    draw = random.Random(5)
    marks = [draw.choice((0, 1)) for _ in range(nodes)]
    edges = [(draw.randrange(nodes), draw.randrange(nodes), draw.choice(("rail", "road"))) for _ in range(2 * nodes)]
    votes = [0] * nodes
    for a, b, kind in edges:
        for src, dst in ((a, b), (b, a)) if kind == "rail" and a != b else ():
            votes[dst] += 2 * marks[src] - 1
    rows = [f"n{i},{mark},{'yes' if vote > 0 else 'no'}\n" for i, (mark, vote) in enumerate(zip(marks, votes))]
    return "id,mark,label\n" + "".join(rows), "src,dst,kind\n" + "".join(f"n{a},n{b},{kind}\n" for a, b, kind in edges)


class EdgesOfAKind(BadInput):
    def setUp(self):
        super().setUp()
        self.nodes, self.edges = rail_and_road()
        self.write("towns/nodes.csv", self.nodes)
        self.write("towns/edges.csv", self.edges)

    def train(self, gso, *options, out="run", data="towns"):
        self.succeed("train", data, "--quiet", "--out", out, "--set", f"model.gso={gso}", *options, timeout=300)
        return (self.folder / out / "config.toml").read_text()

    def test_what_only_the_kinds_tell_is_learned(self):
        small = ["train.epochs=120", "model.channels=16", "model.blocks=2", "model.hops=2", "train.lr=5e-3",
                 "train.eval_every=10"]
        options = [word for setting in small for word in ("--set", setting)]
        best = {}
        for gso in ("random_walk", "random_walk(kind)"):
            self.train(gso, *options, out=gso)
            rows = (self.folder / gso / "metrics.csv").read_text().splitlines()
            column = rows[0].split(",").index("val_roc_auc")
            best[gso] = max(float(row.split(",")[column]) for row in rows[1:])
        self.assertGreater(best["random_walk(kind)"], 0.93)
        self.assertLess(best["random_walk"], 0.85)

    def test_a_run_knows_the_kinds_it_was_trained_with(self):
        config = self.train("sym_normalized:2,random_walk(kind)", *TINY, "--set", "model.channels=8")
        header, *rows = self.edges.splitlines()
        kinds = list(dict.fromkeys(row.rpartition(",")[2] for row in rows))  # in the order of the table
        operators = ["sym_normalized", *(f"random_walk(kind={kind})" for kind in kinds)]
        self.assertIn(f'gso = "{":2,".join(operators[:2])},{operators[2]}"', config)
        self.succeed("evaluate", "run")
        before = (self.folder / "run" / "predictions.csv").read_text()
        self.assertEqual(self.succeed("predict", "run").out, before)
        # Other data with another first kind and one that the run has never met.
        self.write("other/nodes.csv", self.nodes)
        self.write("other/edges.csv", "\n".join([header, "n0,n0,canal", *rows[::-1]]) + "\n")
        here, there = ({row["id"]: float(row["p(yes)"]) for row in
                        csv.DictReader(io.StringIO(self.succeed("predict", "run", *data).out))}
                       for data in ((), ("--data", "other")))
        for node, share in here.items():  # a loop is there in any case: nothing else has changed
            self.assertAlmostEqual(there[node], share, places=4, msg=node)
        answer = json.loads(self.succeed("sensitivity", "run", "--source", "n3", "--target", "n4", "--json").out)
        self.assertEqual([group["operator"] for group in answer["groups"]], operators)
        self.succeed("advise", "run", "--remove", rows[0].rpartition(",")[0])
        self.write("other/edges.csv", "src,dst\nn0,n1\n")
        self.refuse(["predict", "run", "--data", "other"], "model.gso", "'kind'")

    def test_a_stopped_run_goes_on_to_the_same_numbers(self):
        steady = ["--set", "train.schedule=constant", "--set", "train.eval_every=1", "--set", "train.patience=0",
                  "--set", "model.channels=8", "--set", "model.blocks=1"]
        gso = "identity,sym_normalized(kind)"
        self.train(gso, *steady, "--set", "train.epochs=6", out="whole")
        self.train(gso, *steady, "--set", "train.epochs=3", out="part")
        self.succeed("train", "part", "--resume", "--quiet", "--set", "train.epochs=6")
        weights = [(self.folder / run / "model.safetensors").read_bytes() for run in ("whole", "part")]
        self.assertTrue(weights[0] == weights[1])

    def test_molecules_and_series(self):
        graphs, nodes = 30, 6
        ring = [(i, (i + step) % nodes) for i in range(nodes) for step in (1, nodes - 1)]
        program.write_npz(self.folder / "rings.npz", {
            "atom_feat": program.npy("|u1", (graphs * nodes, 1), [(7 * i) % 3 for i in range(graphs * nodes)]),
            "edge_src": program.npy("<i4", (graphs * 2 * nodes,), [src for src, _ in ring] * graphs),
            "edge_dst": program.npy("<i4", (graphs * 2 * nodes,), [dst for _, dst in ring] * graphs),
            "bond_feat": program.npy("|u1", (graphs * 2 * nodes, 1), [min(src, dst) % 2 for src, dst in ring] * graphs),
            "node_ptr": program.npy("<i8", (graphs + 1,), [nodes * g for g in range(graphs + 1)]),
            "edge_ptr": program.npy("<i8", (graphs + 1,), [2 * nodes * g for g in range(graphs + 1)]),
            "labels": program.npy("<f4", (graphs, 1), [g % 5 + 0.5 for g in range(graphs)])})
        self.write("s/series.csv", series())
        self.write("s/edges.csv", "src,dst,kind\na,b,up\na,c,down\n")
        for data, gso, kinds in (("rings.npz", "sym_normalized,adjacency(bond_0)", ("bond_0=0", "bond_0=1")),
                                 ("s", "sym_normalized,adjacency(kind=down)", ("kind=down",))):
            with self.subTest(data):
                config = self.train(gso, *TINY, "--set", "model.channels=6", data=data, out=f"of-{data}")
                for kind in kinds:
                    self.assertIn(f"adjacency({kind})", config)
                self.succeed("evaluate", f"of-{data}")
                self.succeed("predict", f"of-{data}")
        self.train("sym_normalized,adjacency(kind)", *TINY, "--set", "model.channels=6", "--task", "links", out="links")
        self.succeed("evaluate", "links")
        self.succeed("predict", "links", "--top", "3")

    def test_what_cannot_be_combined_is_refused(self):
        for gso, phrases in (
                ("sym_normalized,random_walk(colour)", ("model.gso", "one of kind", "'colour'")),
                ("random_walk(kind=rail)", ("model.gso", "alone")),
                ("identity(kind)", ("model.gso", "whatever the edges")),
                ("sym_normalized(kind", ("model.gso", "')'"))):
            self.refuse_train("towns", ["--set", f"model.gso={gso}"], *phrases)
        self.refuse_train("towns", ["--set", "model.gso=random_walk(kind)", "--set", "model.kind=gcn"],
                          "model.gso", "one operator with model.kind")
        self.refuse_train("towns", ["--set", "model.gso=random_walk(kind)", "--set", "model.entries=gin"],
                          "model.entries", "groups of channels")
        self.refuse_train("board:4x4", ["--set", "model.gso=identity,random_walk(kind)"],
                          "model.gso", "nothing is known")
        self.write("s/series.csv", series())
        self.write("s/edges.csv", "src,dst,kind,time\na,b,up,0\na,c,down,30\n")
        self.refuse_train("s", ["--set", "model.gso=identity,adjacency(kind=up)", "--set", "data.graph_over_time=true"],
                          "data.graph_over_time", "some of the edges")


class DirectedSeries(BadInput):
    def test_messages_run_one_way_and_against_it(self):
        self.write("s/series.csv", series())
        self.write("s/edges.csv", "src,dst\na,b\na,c\n")
        losses = {}
        for way in ("forward", "backward", "both"):
            self.succeed("train", "s", "--quiet", "--out", way, *TINY, "--set", f"data.directed={way}",
                         "--set", "model.gso=random_walk,random_walk_reversed")
            losses[way] = json.loads((self.folder / way / "record.json").read_text())["metrics"]["test"]
            self.succeed("evaluate", way)
            self.succeed("predict", way)
        self.assertEqual(len({json.dumps(loss) for loss in losses.values()}), 3)
        self.succeed("data", "import", "s", "--directed", "--out", "one-way.npz")
        self.succeed("train", "one-way.npz", "--quiet", "--out", "again", *TINY,
                     "--set", "model.gso=random_walk,random_walk_reversed")
        again = json.loads((self.folder / "again" / "record.json").read_text())["metrics"]["test"]
        self.assertEqual(again, losses["forward"])


class ChangingGraph(BadInput):
    def setUp(self):
        super().setUp()
        self.write("s/series.csv", series())
        self.write("s/edges.csv", "src,dst,time\na,b,0\na,c,30\n")

    def test_a_graph_that_changes_is_trained_on_and_kept(self):
        card = self.succeed("data", "info", "s").out
        self.assertIn("2 graphs", card)
        over_time = ["--set", "data.graph_over_time=true", *TINY]
        self.succeed("train", "s", "--quiet", "--out", "run", *over_time)
        self.succeed("train", "s", "--quiet", "--out", "fixed", *TINY)
        losses = [json.loads((self.folder / run / "record.json").read_text())["metrics"]["test"]
                  for run in ("run", "fixed")]
        self.assertNotEqual(losses[0], losses[1])
        self.succeed("evaluate", "run")
        self.assertEqual(len(self.succeed("predict", "run").out.splitlines()), 4)
        for copy in ("s.npz", "tables"):
            self.succeed("data", "convert", "s", "--out", copy)
            self.succeed("train", copy, "--quiet", "--out", f"of-{copy}", *over_time)
            again = json.loads((self.folder / f"of-{copy}" / "record.json").read_text())["metrics"]["test"]
            self.assertEqual(again, losses[0])
        self.refuse(["sensitivity", "run", "--source", "a", "--target", "b"], "changes with time")

    def test_groups_of_channels_have_operators_that_change(self):
        groups = ["--set", "data.graph_over_time=true", "--set", "model.gso=random_walk,transpose:2"]
        for state in ("stable", "dense"):
            with self.subTest(state):
                self.succeed("train", "s", "--quiet", "--out", state, *TINY, *groups, "--set", f"model.state={state}")
                self.succeed("evaluate", state)
                self.assertEqual(len(self.succeed("predict", state).out.splitlines()), 4)

    def test_what_does_not_change_is_refused(self):
        self.write("still/series.csv", series())
        self.write("still/edges.csv", "src,dst\na,b\na,c\n")
        wanted = ["--set", "data.graph_over_time=true"]
        self.refuse_train("still", wanted, "data.graph_over_time", "without times")
        self.refuse_train("board:4x4", wanted, "data.graph_over_time", "for series only")
        self.refuse_train("s", [*wanted, "--set", "model.entries=gin"], "sequence of graphs")


if __name__ == "__main__":
    unittest.main()
