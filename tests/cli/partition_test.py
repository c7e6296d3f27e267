#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A graph in parts: cut once, trained on by any number of ranks with the same bits, and up to rounding like the
whole graph in one process."""

import json
import os
import shutil
import signal
import tempfile
import unittest
from pathlib import Path

from program import run, start, wait
from ranks_test import HAS_GLOO, wait_for

FILES = ("model.safetensors", "metrics.csv", "predictions.csv")
SETTINGS = ["--quiet", "--set", "model.channels=8", "--set", "model.blocks=2", "--set", "model.hops=3", "--set",
            "model.dropout=0.2", "--set", "train.checkpoint_seconds=0.05"]
BOARD = "board:30x30"
# Sums over 900 nodes in another order, through a few steps of Adam.
ROUNDING = 2e-3


class Parts(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="mpssm-parts-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def cut(self, *args, data=BOARD, parts=4, out="parts"):
        return run(["data", "partition", data, "--parts", parts, "--out", out, *args], self.folder)

    def train(self, data, out, *args, epochs=6):
        return run(["train", data, *SETTINGS, "--set", f"train.epochs={epochs}", "--out", out, *args], self.folder)

    def assert_ended(self, result):
        self.assertEqual(result.code, 0, result.err)

    def assert_same(self, one, other):
        for name in FILES:
            self.assertTrue((self.folder / one / name).read_bytes() == (self.folder / other / name).read_bytes(),
                            f"{name} of {other}")

    def record(self, name):
        return json.loads((self.folder / name / "record.json").read_text())

    def assert_like_the_whole(self, name, whole):
        mine, all_of_it = self.record(name), self.record(whole)
        for part in ("val", "test"):
            for metric, value in all_of_it["metrics"][part].items():
                self.assertAlmostEqual(mine["metrics"][part][metric], value, delta=ROUNDING * max(1, abs(value)), msg=metric)
        rows = [[line.split(",") for line in (self.folder / run_name / "predictions.csv").read_text().splitlines()]
                for run_name in (name, whole)]
        self.assertEqual([row[:3] for row in rows[0]], [row[:3] for row in rows[1]])
        for one, other in zip(rows[0][1:], rows[1][1:]):
            self.assertAlmostEqual(float(one[-1]), float(other[-1]), delta=ROUNDING)

    def test_any_number_of_ranks_ends_with_the_same_bits_and_like_the_whole(self):
        self.assert_ended(self.cut())
        index = json.loads((self.folder / "parts" / "partition.json").read_text())
        self.assertEqual(sum(part["nodes"] for part in index["parts"]), 900)
        for state in ("stable", "dense"):
            extra = ["--set", f"model.state={state}"]
            self.assert_ended(self.train(BOARD, f"whole-{state}", *extra))
            # What a dataset known by name has for settings, its parts have not.
            extra += ["--config", f"whole-{state}/config.toml"]
            self.assert_ended(self.train("parts", f"one-{state}", *extra))
            self.assert_like_the_whole(f"one-{state}", f"whole-{state}")
            for ranks in (2, 3, 4) if HAS_GLOO else ():
                result = self.train("parts", f"{state}-by-{ranks}", *extra, "--ranks", ranks)
                self.assert_ended(result)
                self.assertIn(f"{ranks} rank(s) have 4 part(s) of the graph", result.err)
                self.assert_same(f"one-{state}", f"{state}-by-{ranks}")

    def test_values_are_learned_as_well(self):
        nodes = ["id,size,label,split"]
        for i in range(60):
            nodes.append(f"n{i},{i % 7},{(i * 3) % 11 + 0.5},{('train', 'val', 'test')[i % 3]}")
        (self.folder / "nodes.csv").write_text("\n".join(nodes) + "\n")
        (self.folder / "edges.csv").write_text("src,dst\n" + "".join(f"n{i},n{(i + 1) % 60}\n" for i in range(60)))
        extra = ["--set", "model.gso=random_walk"]
        self.assert_ended(self.cut("--gso", "random_walk", data=".", parts=3, out="parts"))
        whole = Path(tempfile.mkdtemp(dir=self.folder))
        for name in ("nodes.csv", "edges.csv"):
            shutil.copy(self.folder / name, whole)
        self.assert_ended(self.train(whole, "whole", *extra))
        self.assert_ended(self.train("parts", "one", *extra))
        self.assert_like_the_whole("one", "whole")
        if HAS_GLOO:
            self.assert_ended(self.train("parts", "three", *extra, "--ranks", 3))
            self.assert_same("one", "three")

    def test_defaults_are_those_that_parts_can_have(self):
        features = range(120)  # many for 20 labels: of the whole graph half of what comes in is dropped
        nodes = [",".join(["id", *(f"x{j}" for j in features), "label", "split"])]
        for i in range(60):
            numbers = (str((i + 1) * (j + 3) % 13) for j in features)
            nodes.append(",".join([f"n{i}", *numbers, "ab"[i // 5 % 2], ("train", "val", "test")[i % 3]]))
        (self.folder / "own").mkdir()
        (self.folder / "own/nodes.csv").write_text("\n".join(nodes) + "\n")
        (self.folder / "own/edges.csv").write_text("src,dst\n" + "".join(f"n{i},n{(i + 1) % 60}\n" for i in range(60)))
        self.assert_ended(self.cut(data="own", parts=2))
        for data, dropout in (("own", "input_dropout = 0.5\n"), ("parts", "input_dropout = 0.0\n")):
            self.assert_ended(self.train(data, f"run-{data}", epochs=2))
            self.assertIn(dropout, (self.folder / f"run-{data}" / "config.toml").read_text())

    @unittest.skipUnless(HAS_GLOO, "this libtorch has no Gloo")
    def test_goes_on_with_another_number_of_ranks(self):
        self.assert_ended(self.cut())
        self.assert_ended(self.train("parts", "unbroken", epochs=60))
        state = self.folder / "broken" / "state.safetensors"
        process = start(["train", "parts", *SETTINGS, "--set", "train.epochs=60", "--out", "broken", "--ranks", "4"],
                        self.folder)
        wait_for(state)
        process.send_signal(signal.SIGINT)
        self.assertIn(wait(process).code, (0, 130))
        process = start(["train", "broken", "--resume", "--quiet", "--ranks", "2"], self.folder)
        wait_for(state, os.stat(state).st_mtime_ns)
        process.send_signal(signal.SIGINT)
        self.assertIn(wait(process).code, (0, 130))
        self.assert_ended(run(["train", "broken", "--resume", "--quiet", "--ranks", "3"], self.folder))
        self.assert_same("unbroken", "broken")

    def test_a_plan_knows_the_settings(self):
        self.assert_ended(self.cut())

        def halo_numbers(channels, hops):
            settings = ["--set", f"model.channels={channels}", "--set", f"model.hops={hops}", "--set", "model.blocks=2"]
            result = run(["plan", "parts", "--json", *settings], self.folder)
            self.assert_ended(result)
            plan = json.loads(result.out)
            self.assertEqual(plan["ranks"], 4)
            way = next(way for way in plan["ways"] if way["way"] == "node-partitioned")
            return way["bytes_sent"] / 4, 2 * 2 * hops * plan["halo"] * channels

        (sent, rows), (sent_deeper, rows_deeper) = halo_numbers(8, 3), halo_numbers(8, 9)
        self.assertGreater(sent, rows)
        self.assertAlmostEqual(sent_deeper - sent, rows_deeper - rows, delta=1)

    def ask(self, graph, *args):
        result = run(["sensitivity", graph, "--json", *args], self.folder)
        self.assert_ended(result)
        return json.loads(result.out)

    def assert_same_profile(self, found, whole):
        """To the bit, but for sums over nodes, which go part by part."""
        for one, other in zip(found["profile"], whole["profile"], strict=True):
            total = other.pop("total", 0.0)
            self.assertAlmostEqual(one.pop("total", 0.0), total, delta=1e-12 * total)
            self.assertEqual(one, other)
        for known in ("graph", "nodes", "edges", "components", "source", "target", "w", "gso"):
            self.assertEqual(found[known], whole[known], known)
        self.assertEqual(found.get("hops"), whole.get("hops"))

    def test_sensitivity_is_that_of_the_whole_graph(self):
        (self.folder / "own").mkdir()
        nodes = "".join(f"n{i},{i % 7},{'ab'[i % 2]},{('train', 'val', 'test')[i % 3]}\n" for i in range(60))
        (self.folder / "own" / "nodes.csv").write_text("id,size,label,split\n" + nodes)
        edges = "".join(f"n{i},n{(i + 1) % 55}\nn{i},n{(7 * i + 3) % 55}\n" for i in range(55))
        (self.folder / "own" / "edges.csv").write_text("src,dst\n" + edges)
        cases = ((BOARD, ["--parts", 4], ["--w", "0.9"], ("17", "871")),
                 ("own", ["--gso", "random_walk", "--parts", 5], ["--gso", "random_walk"], ("n3", "n50")),
                 ("own", ["--gso", "sym_normalized", "--parts", 5], [], ("n3", "n57")))
        for number, (data, how, extra, (source, target)) in enumerate(cases):
            parts = f"parts-{number}"
            self.assert_ended(run(["data", "partition", data, "--out", parts, *how], self.folder))
            for ends in (["--source", source, "--target", target], ["--source", source], ["--target", target]):
                question = [*ends, "--tau", "0:40:8", *extra]
                whole = self.ask(data, *question)
                for ranks in (1, 2, 3, 4) if HAS_GLOO else (1,):
                    with self.subTest(data=data, ends=ends, ranks=ranks):
                        self.assert_same_profile(self.ask(parts, *question, "--ranks", ranks), json.loads(json.dumps(whole)))
        result = run(["sensitivity", "parts-0", "--source", "17", "--plot", "curve.svg"], self.folder)
        self.assert_ended(result)
        self.assertIn("what node 17 sends", result.out)
        self.assertTrue((self.folder / "curve.svg").exists())
        for args, why in ((["--source", "900"], "board:30x30: expected a node from 0 to 899, got '900'"),
                          ([], "--source or --target of a graph in parts"),
                          (["--source", "1", "--gso", "laplacian"], "--gso: expected sym_normalized, which the graph was cut with"),
                          (["--source", "1", "--worst", "3"], "--worst is for a whole graph, got parts-0"),
                          (["--source", "1", "--ranks", "5"], "--ranks: expected at most 4, a part of the graph for each")):
            if "--ranks" in args and not HAS_GLOO:
                continue
            result = run(["sensitivity", "parts-0", *args], self.folder)
            self.assertEqual(result.code, 1)
            self.assertIn(why, result.err)
            self.assertEqual(result.err.count("mpssm: "), 1, result.err)
        if HAS_GLOO:
            result = run(["sensitivity", "own", "--source", "n3", "--ranks", "2"], self.folder)
            self.assertEqual(result.err, "mpssm: --ranks: expected a graph in parts; cut it: mpssm data partition\n")

    def test_says_what_cannot_be_done(self):
        self.assert_ended(self.cut(parts=2))
        self.assertIn("is there already", self.cut(parts=2).err)
        self.assertIn("--parts: expected 1 to 900, a node for each, got 901", self.cut(parts=901, out="many").err)
        self.assertIn("expected one graph to cut", self.cut(data="properties:sssp:24", out="many").err)
        result = self.train("parts", "other", "--set", "model.gso=random_walk")
        self.assertEqual(result.code, 1)
        self.assertIn("model.gso: expected sym_normalized, which the graph was cut with, got random_walk", result.err)
        result = self.train("parts", "batch", "--set", "model.norm=batch")
        self.assertIn("a graph in parts cannot be trained on like this: batch norm looks at all nodes at once", result.err)
        if HAS_GLOO:
            result = self.train("parts", "three", "--ranks", 3)
            self.assertIn("--ranks: expected at most 2, a part of the graph for each, got 3", result.err)
            self.assertIn("mpssm data partition", result.err)
        self.assert_ended(self.train("parts", "run", epochs=1))
        result = run(["predict", "run"], self.folder)
        self.assertEqual(result.code, 1)
        self.assertIn("is a graph in parts, which only mpssm train reads", result.err)
        self.assert_ended(run(["predict", "run", "--data", BOARD, "--out", "again.csv"], self.folder))
        part = self.folder / "parts" / "part-1.safetensors"
        content = bytearray(part.read_bytes())
        content[-1] ^= 1
        part.write_bytes(content)
        result = self.train("parts", "damaged")
        self.assertEqual(result.code, 1)
        self.assertIn("part-1.safetensors: is not what the index says", result.err)
        (self.folder / "parts" / "partition.json").write_text("{}")
        self.assertIn("is no index of parts", self.train("parts", "damaged").err)


if __name__ == "__main__":
    unittest.main()
