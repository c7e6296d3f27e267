#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Link prediction from files to answers: what is held out never takes part in training, a run keeps it,
and the model finds more than counts of common neighbours do where features say more than edges."""

import csv
import io
import json
import math
import random
import unittest

import program
from program import TINY


def circle_world(draw, count=260):
    """People around a circle who know those near them; two coordinates say where one is."""
    place = [draw.random() for _ in range(count)]
    near = lambda a, b: min(abs(a - b), 1 - abs(a - b))
    pairs = [(i, j) for i in range(count) for j in range(i) if near(place[i], place[j]) < 0.02 and draw.random() < 0.7]
    nodes = "id,east,north\n" + "".join(f"p{i},{math.cos(2 * math.pi * x) + draw.gauss(0, 0.02):.4f},"
                                       f"{math.sin(2 * math.pi * x) + draw.gauss(0, 0.02):.4f}\n" for i, x in enumerate(place))
    edges = "src,dst\n" + "".join(f"p{i},p{j}\n" for i, j in pairs)
    return nodes, edges, {frozenset((f"p{i}", f"p{j}")) for i, j in pairs}


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


class Links(program.ProgramTest):
    def train(self, path, *options):
        result = self.succeed("train", path, "--task", "links", "--quiet", "--out", "run", *options, timeout=600)
        read = lambda name: json.loads((self.folder / "run" / name).read_text())
        self.record, self.card, self.kept = read("record.json"), read("card.json"), read("data.json")
        return result

    def test_from_tables_to_missing_edges(self):
        nodes, edges, known = circle_world(random.Random(3))
        self.write_tables("own", nodes, edges)
        self.train("own", "--set", "train.epochs=150")
        self.assertEqual((self.card["task"], self.card["samples"], self.card["edges"]), ("links", "edges", len(known)))
        self.assertEqual(sum(self.card["parts"].values()), len(known))
        test, references = self.record["metrics"]["test"], self.record["references"]
        self.assertEqual(set(references), {"common neighbours", "Adamic-Adar", "product of degrees", "likeness of features"})
        self.assertGreater(test["roc_auc"], 0.9)
        self.assertGreater(test["roc_auc"], references["common neighbours"]["roc_auc"])
        self.assertEqual(json.loads(self.succeed("evaluate", "run", "--json").out.splitlines()[-1])["metrics"]["roc_auc"],
                         test["roc_auc"])
        best = rows_of(self.succeed("predict", "run", "--top", "25").out)
        self.assertEqual(len(best), 25)
        for row in best:
            self.assertNotIn(frozenset((row["src"], row["dst"])), known)
        scores = [float(row["score"]) for row in best]
        self.assertEqual(scores, sorted(scores, reverse=True))
        self.write("asked.csv", "src,dst\np0,p1\np2,p3\n")
        asked = rows_of(self.succeed("predict", "run", "--pairs", "asked.csv").out)
        self.assertEqual([(row["src"], row["dst"]) for row in asked], [("p0", "p1"), ("p2", "p3")])
        page = (self.folder / "run/report.html").read_text()
        self.assertTrue('id="classes"' in page and "hits_20" in page)

    def test_what_is_held_out_is_kept_and_in_no_operator(self):
        nodes, edges, known = circle_world(random.Random(4), 120)
        self.write_tables("own", nodes, edges)
        self.train("own", *TINY)
        held = self.kept["links"]
        pairs = lambda text: {tuple(map(int, pair)) for pair in zip(*[iter(text.split())] * 2)}
        val, test = pairs(held["val"]["edges"]), pairs(held["test"]["edges"])
        self.assertFalse(val & test)
        self.assertEqual((len(val), len(test)), (self.card["parts"]["val"], self.card["parts"]["test"]))
        predictions = rows_of((self.folder / "run/predictions.csv").read_text())
        told = {(row["split"], row["edge"]): 0 for row in predictions}
        for row in predictions:
            told[row["split"], row["edge"]] += 1
            self.assertEqual(frozenset((row["src"], row["dst"])) in known, row["edge"] == "yes")
        self.assertEqual(told, {("val", "yes"): len(val), ("val", "no"): len(val), ("test", "yes"): len(test), ("test", "no"): len(test)})
        self.write("own/edges.csv", edges + "p0,p1\n")
        result = self.run_program("evaluate", "run")
        self.assertEqual(result.code, 1)
        self.assertIn("edges.csv has changed", result.err)

    def test_held_out_edges_do_not_reach_the_training(self):
        """The same training edges with other held-out ones train in the same way, step by step."""
        ring = [(i, (i + k) % 40, "train") for i in range(40) for k in (1, 3)]
        loss = {}
        for name, steps in (("a", (7, 11)), ("b", (9, 13))):
            held = [(i, (i + step) % 40, part) for i in range(12) for step, part in zip(steps, ("val", "test"))]
            self.write(f"{name}/edges.csv", "src,dst,split\n" + "".join(f"{a},{b},{part}\n" for a, b, part in ring + held))
            self.succeed("train", name, "--task", "links", "--quiet", "--out", f"run-{name}", *TINY)
            rows = rows_of((self.folder / f"run-{name}/metrics.csv").read_text())
            loss[name] = [row["train_loss"] for row in rows]
            self.assertEqual(len(json.loads((self.folder / f"run-{name}/data.json").read_text())["links"]["test"]["edges"].split()), 24)
        self.assertEqual(loss["a"], loss["b"])

    def test_references_are_what_they_say(self):
        """Counted here once more, from the tables and from what the run has held out."""
        nodes, edges, _ = circle_world(random.Random(6), 130)
        self.write_tables("own", nodes, edges)
        self.train("own", *TINY)
        pairs = lambda part, kind: [tuple(map(int, pair)) for pair in zip(*[iter(self.kept["links"][part][kind].split())] * 2)]
        number = {row["id"]: i for i, row in enumerate(rows_of(nodes))}
        near = {i: set() for i in number.values()}
        for row in rows_of(edges):
            a, b = number[row["src"]], number[row["dst"]]
            if (min(a, b), max(a, b)) not in pairs("val", "edges") + pairs("test", "edges"):
                near[a].add(b)
                near[b].add(a)
        scores = {"common neighbours": lambda a, b: len(near[a] & near[b]),
                  "Adamic-Adar": lambda a, b: sum(1 / math.log(max(len(near[w]), 2)) for w in near[a] & near[b]),
                  "product of degrees": lambda a, b: len(near[a]) * len(near[b])}
        for name, score in scores.items():
            with_edge, without = ([score(*pair) for pair in pairs("test", kind)] for kind in ("edges", "others"))
            won = sum((a > b) + (a == b) / 2 for a in with_edge for b in without) / len(with_edge) / len(without)
            bar = sorted(without, reverse=True)[19] if len(without) >= 20 else None
            found = self.record["references"][name]
            self.assertAlmostEqual(found["roc_auc"], won, 6, name)
            if bar is not None:
                self.assertAlmostEqual(found["hits_20"], sum(a > bar for a in with_edge) / len(with_edge), 6, name)
        self.assertGreaterEqual(len(pairs("test", "others")), 20)

    def test_edges_alone_one_way_and_other_data(self):
        rows = "".join(f"{i},{(i + k) % 60}\n" for i in range(60) for k in (1, 2, 5))
        self.write("calls.csv", "src,dst\n" + rows)
        result = self.train("calls.csv", "--set", "data.directed=forward", *TINY)
        self.assertIn("no table of nodes", result.err)
        self.assertTrue(self.card["directed"])
        self.assertEqual(self.kept["columns"][0]["name"], "degree")
        self.write("more/edges.csv", "src,dst\n" + rows.replace("5", "6"))
        measured = self.succeed("evaluate", "run", "--data", "more")
        self.assertIn("labelled", measured.out)
        best = rows_of(self.succeed("predict", "run", "--data", "more", "--top", "5").out)
        self.assertEqual(len(best), 5)

    def test_any_number_of_threads_gives_the_same_run(self):
        nodes, edges, _ = circle_world(random.Random(5), 80)
        self.write_tables("own", nodes, edges)
        options = ["--set", "model.channels=8", "--set", "model.blocks=1"]
        self.succeed("train", "own", "--task", "links", "--quiet", "--out", "whole", "--set", "train.epochs=6", *options)
        self.assertEqual(self.succeed("evaluate", "whole", "--part", "train").code, 0)
        metrics = lambda run: json.loads((self.folder / run / "record.json").read_text())["metrics"]
        self.succeed("train", "own", "--task", "links", "--quiet", "--out", "threads", "--threads", "1",
                     "--set", "train.epochs=6", *options)
        self.assertEqual(metrics("threads"), metrics("whole"))

    def test_metrics_that_are_not_defined_say_so(self):
        self.write_tables("own", "id,x,label\n" + "".join(f"{i},{i % 5},{i / 4}\n" for i in range(4)),
                          "src,dst\n0,1\n1,2\n2,3\n")
        self.succeed("train", "own", "--quiet", "--out", "run", *TINY)
        shown = self.succeed("evaluate", "run").out
        self.assertNotIn("nan", shown)
        self.assertIn("r2 is not defined: it needs two different values", shown)


if __name__ == "__main__":
    unittest.main()
