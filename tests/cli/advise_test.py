#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mpssm advise as a user sees it: its numbers are those of mpssm sensitivity on the graph it speaks of."""

import csv
import json
import tempfile
import unittest
from pathlib import Path

import program

EDGES = [("ann", "bob"), ("bob", "cy"), ("cy", "dee"), ("dee", "eve"), ("eve", "fay"), ("fay", "gil"), ("bob", "dee")]


def table(edges):
    return "src,dst\n" + "".join(f"{u},{v}\n" for u, v in edges)


class Advise(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        (self.folder / "edges.csv").write_text(table(EDGES))

    def mpssm(self, *args):
        result = program.run(args, self.folder)
        self.assertEqual(result.code, 0, result.err)
        return result.out

    def sensitivity(self, edges, source, target, tau):
        (self.folder / "other.csv").write_text(table(edges))
        out = self.mpssm("sensitivity", "other.csv", "--source", source, "--target", target, "--tau", str(tau), "--json")
        return json.loads(out)["profile"][0]["value"]

    def test_an_advised_edge_does_what_is_said(self):
        advice = json.loads(self.mpssm("advise", "edges.csv", "--rewire", "2", "--tau", "6", "--json"))["rewire"]
        pair = advice["source"], advice["target"]
        self.assertAlmostEqual(advice["value"], self.sensitivity(EDGES, *pair, 6), delta=1e-12)
        for edge in advice["edges"]:
            self.assertAlmostEqual(edge["value"], self.sensitivity([*EDGES, edge["edge"]], *pair, 6), delta=1e-12)
        self.assertGreaterEqual(advice["edges"][0]["value"], advice["edges"][1]["value"])

    def test_what_if_is_the_other_graph(self):
        answer = json.loads(self.mpssm("advise", "edges.csv", "--remove", "cy,dee", "--add", "ann,eve", "--tau", "4", "--source",
                                       "ann", "--target", "fay", "--json"))["what_if"]
        changed = [edge for edge in EDGES if edge != ("cy", "dee")] + [("ann", "eve")]
        self.assertAlmostEqual(answer["pair"]["before"], self.sensitivity(EDGES, "ann", "fay", 4), delta=1e-12)
        self.assertAlmostEqual(answer["pair"]["after"], self.sensitivity(changed, "ann", "fay", 4), delta=1e-12)

    def test_depth_is_that_of_sensitivity(self):
        advice = json.loads(self.mpssm("advise", "edges.csv", "--depth", "0.5", "--json"))["depth"]
        whole = json.loads(self.mpssm("sensitivity", "edges.csv", "--all", "--tau", "1", "--depth", "0.5", "--json"))
        self.assertEqual(advice["steps"][-1]["hops"], whole["depth"]["tau"])

    def test_without_a_question_all_is_told(self):
        text = self.mpssm("advise", "edges.csv")
        self.assertIn("50 % of the limit", text)
        self.assertIn("with the edge", text)

    def test_of_a_run(self):
        self.mpssm("train", "board:6x6", "--out", "run", "--quiet", *program.TINY)
        self.assertIn("board:6x6", self.mpssm("advise", "run", "--rewire", "1", "--tau", "8"))

    def test_what_if_predicts_what_the_run_predicts_on_the_other_graph(self):
        nodes = "id,height,label\n" + "".join(f"{name},{k * 0.7:.1f},{'ab'[k % 2]}\n" for k, name in
                                              enumerate(("ann", "bob", "cy", "dee", "eve", "fay", "gil")))
        changed = [edge for edge in EDGES if edge != ("cy", "dee")] + [("ann", "eve")]
        for folder, edges in (("own", EDGES), ("other", changed)):
            (self.folder / folder).mkdir()
            (self.folder / folder / "nodes.csv").write_text(nodes)
            (self.folder / folder / "edges.csv").write_text(table(edges))
        self.mpssm("train", "own", "--out", "run", "--quiet", "--set", "model.blocks=2", *program.TINY[:2])
        answer = json.loads(self.mpssm("advise", "run", "--remove", "cy,dee", "--add", "ann,eve", "--json"))
        found = answer["what_if"]["predictions"]
        self.assertGreater(found["changed"], 2)
        tables = [list(csv.DictReader(self.mpssm("predict", "run", *data).splitlines()))
                  for data in ([], ["--data", "other"])]
        before, after = ({row["id"]: row for row in rows} for rows in tables)
        for change in found["largest"]:
            name, column = change["node"], f"p({change['predicted']['before']})"
            self.assertEqual(change["predicted"], {"before": before[name]["predicted"], "after": after[name]["predicted"]})
            self.assertAlmostEqual(change["value"]["before"], float(before[name][column]), delta=2e-6)
            self.assertAlmostEqual(change["value"]["after"], float(after[name][column]), delta=2e-6)

    def test_what_does_not_fit_is_one_line(self):
        (self.folder / "nobody.csv").write_text("src,dst\n")
        for args, words in ((["edges.csv", "--remove", "ann,fay"], "--remove ann,fay: there is no such edge"),
                            (["edges.csv", "--add", "ann,bob"], "there already"),
                            (["edges.csv", "--add", "ann"], "expected u,v"),
                            (["edges.csv", "--add", "ann,zoe"], "zoe"),
                            (["edges.csv", "--rewire", "1", "--source", "ann"], "neither"),
                            (["nothing.csv"], "nothing.csv")):
            result = program.run(["advise", *args], self.folder)
            self.assertEqual((result.code, result.err.count("\n")), (1, 1), result.err)
            self.assertIn(words, result.err)


if __name__ == "__main__":
    unittest.main()
