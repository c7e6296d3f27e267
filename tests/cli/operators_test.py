#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Operators that are learned, of low rank, directed, and those that change from step to step: trained, resumed, opened again
and explained through the program; what cannot be combined is refused in one line."""

import json
import unittest

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
