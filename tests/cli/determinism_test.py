#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The same seed gives the same bits for any number of threads, for every kind of problem and of W.

Small trainings, in sizes that give seven threads something to do (24 and 64 channels, some thousand
rows). What a run folder holds must agree byte by byte.
"""

import hashlib
import math
import os
import unittest

import program
from program import ProgramTest, npy

THREADS = ("1", "2", "3", "4", "7")
STATES = ("dense", "diagonal", "stable")
FILES = ("model.safetensors", "metrics.csv", "predictions.csv")


def wave(steps, nodes):
    """A series that has something to learn: every node a wave with a phase and a trend of its own."""
    return [math.sin(0.3 * t + 0.7 * i) + 0.01 * t * (i % 3) for t in range(steps) for i in range(nodes)]


class Determinism(ProgramTest):
    def digests(self, dataset, state, threads, settings, environment=None):
        self.count = getattr(self, "count", 0) + 1
        out = f"run-{self.count}"
        args = ["train", dataset, "--quiet", "--out", out, "--set", f"model.state={state}"]
        if threads:
            args += ["--threads", threads]
        for setting in settings:
            args += ["--set", setting]
        old = dict(os.environ)
        os.environ.update(environment or {})
        try:
            self.succeed(*args)
        finally:
            os.environ.clear()
            os.environ.update(old)
        found = {name: hashlib.sha256((self.folder / out / name).read_bytes()).hexdigest()
                 for name in FILES if (self.folder / out / name).exists()}
        self.assertIn("model.safetensors", found)
        self.assertIn("metrics.csv", found)
        return found

    def expect_same(self, dataset, settings):
        for state in STATES:
            first = self.digests(dataset, state, THREADS[0], settings)
            for threads in THREADS[1:]:
                with self.subTest(dataset=dataset, state=state, threads=threads):
                    self.assertEqual(self.digests(dataset, state, threads, settings), first)

    def test_a_node_problem(self):
        self.expect_same("board:40x40", ["train.epochs=3", "model.channels=64", "model.blocks=2",
                                         "model.dropout=0.2"])

    def test_in_bf16(self):
        self.expect_same("board:40x40", ["train.epochs=3", "model.channels=64", "model.blocks=2",
                                         "model.dropout=0.2", "train.precision=bf16"])

    def test_a_graph_problem(self):
        self.expect_same("properties:diameter:60", ["train.epochs=2", "model.channels=24", "model.blocks=2"])

    def test_a_series_problem(self):
        nodes, steps = 20, 150
        ends = [end for node in range(nodes) for end in (node, (node + 1) % nodes)]
        program.write_npz(self.folder / "own.npz", {"x": npy("<f4", (steps, nodes), wave(steps, nodes)),
                                                    "edges": npy("<i8", (nodes, 2), ends)})
        for skip in ("false", "true"):
            self.expect_same("own.npz", ["train.epochs=2", "model.channels=24", "model.blocks=1",
                                         "train.batch=32", f"model.skip={skip}"])

    def test_the_environment_counts_where_no_option_is_given(self):
        """MPSSM_NUM_THREADS: nonsense there is an error, so it is read."""
        settings = ["train.epochs=1", "model.channels=4", "model.blocks=1"]
        first = self.digests("board:12x12", "dense", "1", settings)
        self.assertEqual(self.digests("board:12x12", "dense", "", settings, {"MPSSM_NUM_THREADS": "3"}), first)
        os.environ["MPSSM_NUM_THREADS"] = "4294967297"
        self.addCleanup(os.environ.pop, "MPSSM_NUM_THREADS")
        result = self.run_program("train", "board:4x4", *program.TINY)
        self.assertNotEqual(result.code, 0)
        self.assertIn("MPSSM_NUM_THREADS", result.err)


if __name__ == "__main__":
    unittest.main()
