#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Memory is known beforehand: what is announced against what a process of its own takes at its peak."""

import os
import re
import unittest

import program

NODES, STEPS, TOWNS = 60, 400, 10_000


def settings(**values):
    return [word for key, value in values.items() for word in ("--set", f"{key.replace('__', '.')}={value}")]


class Memory(program.ProgramTest):
    def peak(self, *args):
        """MiB announced, and MiB at the peak of the process."""
        process = program.start(["train", *map(str, args), "--out", f"run-{self.count}"], self.folder)
        self.count += 1
        _, err = process.stdout.read(), process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stdout.close()
        process.stderr.close()
        self.assertEqual(process.returncode, 0, err)
        return float(re.search(r"about (\d+) MiB per step", err)[1]), usage.ru_maxrss / 1024

    def setUp(self):
        super().setUp()
        self.count = 0
        values = [((7 * i) % 101) / 50 for i in range(STEPS * NODES)]
        ends = [end for node in range(NODES) for end in (node, (node + 1) % NODES)]
        program.write_npz(self.folder / "series.npz", {"x": program.npy("<f4", (STEPS, NODES), values),
                                                       "edges": program.npy("<i8", (NODES, 2), ends)})
        ends = [end for node in range(TOWNS) for step in (1, 100) for end in (node, (node + step) % TOWNS)]
        program.write_npz(self.folder / "towns.npz", {
            "node_features": program.npy("<f4", (TOWNS, 4), [((7 * i) % 101) / 50 for i in range(4 * TOWNS)]),
            "node_labels": program.npy("<i8", (TOWNS,), [i % 2 for i in range(TOWNS)]),
            "edges": program.npy("<i8", (2 * TOWNS, 2), ends),
            "edge_attr": program.npy("<i8", (2 * TOWNS, 1), [i % 3 for i in range(2 * TOWNS)])})
        # Pages of libraries count only once they are in the system's cache, and then come in many at a time:
        # read them all, so that the idle process has as many as the others.
        self.peak("series.npz", *settings(train__epochs=1, model__blocks=1, model__channels=2))
        # The same program with next to nothing to do.
        idle = ["board:4x4", *settings(train__epochs=1, model__channels=2, model__blocks=1)]
        peaks = [self.peak(*idle)[1] for _ in range(3)]
        self.idle, self.least_idle = max(peaks), min(peaks)

    def test_the_estimate_is_between_the_peak_and_1_65_times_the_peak(self):
        board = ["board:100x100", *settings(train__epochs=2)]
        # Large enough to count: own series start from a small network.
        series = ["series.npz", *settings(train__epochs=1, train__batch=64, model__channels=64, model__skip="false",
                                          model__dropout=0.2)]
        three_groups = settings(model__gso="sym_normalized:2,random_walk,adjacency")
        cases = {
            "eight blocks": board,
            "two wide blocks": [*board, *settings(model__channels=128, model__blocks=2, model__dropout=0)],
            "dense W": [*board, *settings(model__state="dense", model__blocks=4)],
            "many hops of a dense W": [*board, *settings(model__state="dense", model__blocks=3, model__hops=32)],
            "states kept one by one": [*board, *settings(model__state="dense", model__blocks=2, model__hops=24,
                                                        model__plan="stepwise")],
            "eight blocks in bf16": [*board, *settings(train__precision="bf16")],
            "dense W in bf16": [*board, *settings(model__state="dense", model__blocks=4, train__precision="bf16")],
            "gcn": [*board, *settings(model__kind="gcn", model__blocks=8)],
            "sage": [*board, *settings(model__kind="sage", model__blocks=8)],
            "gps": [*board, *settings(model__kind="gps", model__blocks=4)],
            "drew": [*board, *settings(model__kind="drew", model__blocks=6)],
            "blocks run again": [*board, *settings(model__channels=128, model__blocks=12), "--memory-limit", 200],
            "three groups": [*board, *three_groups],
            "three groups of a dense W": [*board, *three_groups, *settings(model__state="dense", model__blocks=4)],
            "three groups in bf16": [*board, *three_groups, *settings(train__precision="bf16")],
            "three groups run again": [*board, *three_groups, *settings(model__channels=128, model__blocks=12),
                                       "--memory-limit", 200],
            "groups of edges of a kind": ["towns.npz", *settings(train__epochs=3, model__channels=64, model__blocks=8,
                                                                 model__gso="sym_normalized,random_walk(edge_attr)")],
            "free entries": [*board, *settings(model__entries="free")],
            "entries by attention": [*board, *settings(model__entries="attention")],
            "entries of a dense W": [*board, *settings(model__entries="gin", model__state="dense", model__blocks=4)],
            "encodings": [*board, *settings(data__encodings="rwse:16,lap:8,degree")],
            "encodings of a series": [*series, *settings(model__blocks=2, data__encodings="rwse:8,lap:4")],
            "series in three groups": [*series, *three_groups, *settings(model__blocks=2)],
            "free entries of a series": [*series, *settings(model__blocks=2, model__entries="free")],
            "series": [*series, *settings(model__blocks=2)],
            "ggrnn": [*series, *settings(model__kind="ggrnn", model__blocks=2, model__hops=2)],
            "graphssm": [*series, *settings(model__kind="graphssm", model__blocks=2)],
            "series in bf16": [*series, *settings(model__blocks=2, train__precision="bf16")],
            "series, one window at a time": [*series, *settings(model__blocks=8, train__batch=1)],
        }
        for name, args in cases.items():
            with self.subTest(name):
                announced, peak = self.peak(*args)
                ratio = announced / (peak - self.idle)
                print(f"{name}: announced {announced:.0f} MiB, taken {peak - self.idle:.0f}, ratio {ratio:.2f}")
                self.assertGreaterEqual(ratio, 1.0)
                # Idle processes differ by some MiB, which is some percent of what small ones take.
                self.assertLessEqual(announced / (peak - self.least_idle), 1.65)


if __name__ == "__main__":
    unittest.main()
