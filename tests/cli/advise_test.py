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

    def own_run(self, *settings):
        (self.folder / "own").mkdir(exist_ok=True)
        names = [f"n{k}" for k in range(20)]
        edges = [(names[k], names[(k + step) % 20]) for k in range(20) for step in (1, 3)]
        (self.folder / "own" / "nodes.csv").write_text("id,height,label\n" + "".join(
            f"{name},{(7 * k) % 11 * 0.7:.1f},{'ab'[k % 2]}\n" for k, name in enumerate(names)))
        (self.folder / "own" / "edges.csv").write_text(table(edges))
        self.mpssm("train", "own", "--out", "run", "--quiet", "--set", "model.blocks=2", "--set", "train.epochs=4", *settings)
        return edges

    def test_edges_that_harm_and_training_without_them(self):
        edges = self.own_run()
        found = json.loads(self.mpssm("advise", "run", "--edges", "3", "--save", "less.json", "--json"))["edges"]
        self.assertEqual(found["count"], len(edges))
        for edge in found["harmful"]:
            self.assertIn(tuple(edge["edge"]), {*edges, *((v, u) for u, v in edges)})
            self.assertIsNotNone(edge["loss_without"])
        if not found["harmful"]:
            self.skipTest("nothing harms")
        # What is said of the loss without them is what evaluate says of the run on that graph.
        gone = {frozenset(edge["edge"]) for edge in found["harmful"]}
        trained = program.run(["train", "own", "--rewired", "less.json", "--out", "less", "--quiet", "--set", "train.epochs=2"],
                              self.folder)
        self.assertEqual(trained.code, 0, trained.err)
        self.assertIn("val values judge this run too kindly", trained.err)
        pins = json.loads((self.folder / "less" / "data.json").read_text())
        self.assertEqual(len(pins["edit"]["remove"]), len(gone))
        card = json.loads((self.folder / "less" / "card.json").read_text())
        self.assertIn(str(len(edges) - len(gone)), json.dumps(card))

    def test_a_run_keeps_its_rewired_graph_without_the_file(self):
        self.own_run()
        self.mpssm("advise", "run", "--rounds", "2", "--tau", "4", "--save", "new.json")
        edit = json.loads((self.folder / "new.json").read_text())
        self.assertEqual(len(edit["add"]), 2)
        self.mpssm("train", "own", "--rewired", "new.json", "--out", "rewired", "--quiet", "--set", "train.epochs=3")
        before = self.mpssm("predict", "rewired")
        (self.folder / "new.json").unlink()
        self.assertEqual(self.mpssm("predict", "rewired"), before)
        self.mpssm("evaluate", "rewired")
        # It is the graph with these edges: the run on tables that have them predicts the same.
        (self.folder / "with").mkdir()
        (self.folder / "with" / "nodes.csv").write_text((self.folder / "own" / "nodes.csv").read_text())
        rows = (self.folder / "own" / "edges.csv").read_text()
        (self.folder / "with" / "edges.csv").write_text(rows + "".join(f"{u},{v}\n" for u, v in edit["add"]))
        self.mpssm("train", "with", "--out", "same", "--quiet", "--set", "train.epochs=3")
        self.assertEqual(self.mpssm("predict", "same"), before)

    def test_shares_add_up_and_are_named(self):
        self.own_run()
        found = json.loads(self.mpssm("advise", "run", "--target", "n4", "--attribute", "--json"))["attribution"]
        self.assertAlmostEqual(sum(share["share"] for share in found["state"]["shares"]), 1.0, delta=1e-9)
        path = found["prediction"]
        self.assertAlmostEqual(sum(share["share"] for share in path["shares"]) + path["gap"],
                               path["value"] - path["baseline"], delta=1e-5)
        result = program.run(["advise", "run", "--target", "n4", "--attribute", "--block", "9"], self.folder)
        self.assertEqual((result.code, result.err.count("\n")), (1, 1), result.err)
        self.assertIn("a block from 1 to 2, got 9", result.err)
        text = self.mpssm("advise", "run", "--target", "n4", "--attribute")
        self.assertIn("Shapley", text)
        self.assertIn("Integrated gradients", text)

    def test_bounds_hold_and_pages_are_written(self):
        self.own_run()
        found = json.loads(self.mpssm("advise", "run", "--target", "n4", "--epsilon", "0.1", "--move", "n4,n5", "--html",
                                      "page.html", "--json"))["robustness"]
        self.assertEqual(found["nodes"], ["n4", "n5"])
        for state in found["states"]:
            self.assertLessEqual(state["found"], state["bound"])
        self.assertTrue((self.folder / "page.html").read_text().startswith("<!doctype html>\n<!-- mpssm report -->"))

    def test_spare_edges_are_told_on_the_graph_without_them(self):
        advice = json.loads(self.mpssm("advise", "edges.csv", "--spare", "2", "--tau", "6", "--json"))["spare"]
        pair = advice["source"], advice["target"]
        for edge in advice["edges"]:
            rest = [e for e in EDGES if set(e) != set(edge["edge"])]
            self.assertAlmostEqual(edge["value"], self.sensitivity(rest, *pair, 6), delta=1e-12)
        self.assertEqual(advice["candidates"] + advice["bridges"], len(EDGES))

    def test_what_does_not_fit_is_one_line(self):
        (self.folder / "nobody.csv").write_text("src,dst\n")
        for args, words in ((["edges.csv", "--remove", "ann,fay"], "--remove ann,fay: there is no such edge"),
                            (["edges.csv", "--add", "ann,bob"], "there already"),
                            (["edges.csv", "--add", "ann"], "expected u,v"),
                            (["edges.csv", "--add", "ann,zoe"], "zoe"),
                            (["edges.csv", "--rewire", "1", "--source", "ann"], "neither"),
                            (["edges.csv", "--edges", "2"], "--edges: expected a run"),
                            (["edges.csv", "--attribute"], "--attribute: expected a run"),
                            (["edges.csv", "--move", "ann"], "--move: expected --epsilon"),
                            (["edges.csv", "--depth", "0.5", "--save", "x.json"], "--save: no edge is advised"),
                            (["edges.csv", "--rewire", "1", "--save", "edges.csv"], "edges.csv"),
                            (["nothing.csv"], "nothing.csv")):
            result = program.run(["advise", *args], self.folder)
            self.assertEqual((result.code, result.err.count("\n")), (1, 1), result.err)
            self.assertIn(words, result.err)


    def test_edges_that_do_not_fit_the_data_are_one_line(self):
        self.own_run()
        (self.folder / "bad.json").write_text('{"mpssm_edges":1,"graph":"g","weight":1,"add":[["n1","zoe"]],"remove":[]}')
        (self.folder / "there.json").write_text('{"mpssm_edges":1,"graph":"g","weight":1,"add":[["n1","n2"]],"remove":[]}')
        (self.folder / "other.json").write_text('{"edges": []}')
        for name, words in (("bad.json", "zoe"), ("there.json", "there already"), ("other.json", "mpssm advise --save"),
                            ("none.json", "none.json"), ("own/nodes.csv", "mpssm advise --save")):
            result = program.run(["train", "own", "--rewired", name, "--out", "refused"], self.folder)
            self.assertEqual(result.code, 1, result.err)
            self.assertIn(words, result.err)


if __name__ == "__main__":
    unittest.main()
