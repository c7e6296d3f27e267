#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tables as people have them go from files to predictions with `mpssm train PATH` and no option, the
card says what they are, and where the graph carries the signal the model beats what looks at features
alone."""

import csv
import gzip
import io
import json
import math
import random
import unittest

import program
from program import TINY

LINEAR = "regression on features alone"


def text_of(rows, separator=","):
    """CSV with quotes where they are needed."""
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator="\n").writerows(rows)
    return out.getvalue()


def cluster_edges(draw, groups, degree=4, same=0.9):
    """Pairs of nodes, `same` of them inside a group."""
    members = {}
    for node, group in enumerate(groups):
        members.setdefault(group, []).append(node)
    pairs = set()
    for node, group in enumerate(groups):
        for _ in range(degree):
            other = draw.choice(members[group]) if draw.random() < same else draw.randrange(len(groups))
            if other != node:
                pairs.add((min(node, other), max(node, other)))
    return sorted(pairs)


class OwnData(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.draw = random.Random(7)

    def put(self, name, rows, separator=","):
        self.write(name, text_of(rows, separator))

    def train(self, path, *options):
        """The record and the card of a run without any option but where to write."""
        result = self.succeed("train", path, "--quiet", "--out", "run", *options, timeout=600)
        self.notes = [line for line in result.err.splitlines() if line.startswith("note: ")]
        read = lambda name: json.loads((self.folder / "run" / name).read_text())
        self.record, self.card = read("record.json"), read("card.json")
        rows = list(csv.DictReader(io.StringIO(self.succeed("predict", "run").out)))
        self.assertGreater(len(rows), 0)
        self.succeed("evaluate", "run")
        return rows

    def assert_on_page(self, *texts):
        page = (self.folder / "run" / "report.html").read_text()
        for text in texts:
            self.assertIn(text, page)

    def columns(self):
        return {column["name"]: column for column in self.card["columns"]}

    def score(self, name=None):
        return self.record["metrics"]["test"][name or self.record["selected_by"]]

    def reference(self, part):
        found = [test for name, test in self.record["references"].items() if part in name]
        self.assertEqual(len(found), 1, self.record["references"])
        return found[0]

    def groups(self, count, kinds):
        return [self.draw.randrange(kinds) for _ in range(count)]

    def test_mixed_columns_with_gaps(self):
        groups = self.groups(240, 3)
        rows = [["id", "name", "age", "income", "city", "member", "joined", "row", "source", "label"]]
        for i, group in enumerate(groups):
            age = "NA" if i % 9 == 0 else self.draw.randrange(18, 90)
            income = "" if i % 7 == 0 else f"{self.draw.gauss(3000 + 100 * group, 900):.2f}"
            city = self.draw.choice(["Oslo", "Bern", "Wien", "-"])
            joined = f"20{self.draw.randrange(10, 24)}-0{self.draw.randrange(1, 10)}-1{i % 10}"
            label = "" if i % 6 == 0 else f"g{group}"
            rows.append([f"p{i}", f"Person {i}", age, income, city, ["yes", "no"][i % 2], joined, i, "survey", label])
        self.put("own/nodes.csv", rows)
        self.put("own/edges.csv", [["src", "dst"]] + [[f"p{a}", f"p{b}"] for a, b in cluster_edges(self.draw, groups)])
        predictions = self.train("own")
        columns = self.columns()
        self.assertEqual((columns["age"]["type"], columns["age"]["features"]), ("number", 2))
        self.assertEqual(columns["age"]["missing"], 27)
        self.assertEqual(columns["city"]["type"], "categories")
        self.assertEqual(columns["member"]["type"], "yes/no")
        self.assertEqual(columns["joined"]["type"], "date")
        for name in ("name", "row", "source"):
            self.assertIn("not_used", columns[name])
            self.assertTrue(any(f"'{name}' is not used" in note for note in self.notes), self.notes)
        self.assertEqual(self.card["task"], "node_classes")
        self.assertEqual(self.card["unlabelled"], 40)
        self.assertGreater(self.card["homophily"]["share"], 2 * self.card["homophily"]["by_chance"])
        self.assertTrue(all(row["predicted"] in ("g0", "g1", "g2") for row in predictions))
        self.assert_on_page("What each column became", "not used: ", '<h2 id="classes"')
        self.assertGreater(self.score(), self.reference(LINEAR)["accuracy"] + 0.1)

    def test_european_numbers(self):
        groups = self.groups(160, 2)
        rows = [["id", "Größe", "Anteil", "Preis"]]
        for i, group in enumerate(groups):
            size = f"{self.draw.gauss(1500, 400):.1f}".replace(".", ",")
            size = size if len(size) < 6 else f"{size[:-5]}.{size[-5:]}"
            price = f"{20 * group + self.draw.gauss(50, 2):.2f}".replace(".", ",")
            rows.append([f"n{i}", size, f"{self.draw.randrange(100)} %", price])
        self.put("own/nodes.csv", rows, ";")
        edges = cluster_edges(self.draw, groups)
        self.put("own/edges.csv", [["von", "nach"]] + edges, ";")
        self.assertEqual(self.run_program("data", "info", "own", "--target", "Preis").code, 1)
        self.put("own/edges.csv", [["from", "to", "weight"]] + [[f"n{a}", f"n{b}", "1,5"] for a, b in edges], ";")
        self.train("own", "--target", "Preis")
        self.assertEqual(self.card["task"], "node_regression")
        self.assertIn("decimal comma", self.columns()["Größe"]["encoding"])
        self.assertEqual(self.columns()["Anteil"]["type"], "number")
        self.assertLess(self.score("mae"), self.reference(LINEAR)["mae"])

    def test_unicode_everywhere(self):
        groups = self.groups(60, 2)
        rows = [["id", "färg", "label"]]
        rows += [[f"знак{i}", "röd" if self.draw.random() < 0.3 + 0.4 * g else "blå", ("はい", "いいえ")[g]]
                 for i, g in enumerate(groups)]
        self.put("Ωmega/nodes.csv", rows)
        self.put("Ωmega/edges.csv", [["src", "dst"]] + [[f"знак{a}", f"знак{b}"] for a, b in cluster_edges(self.draw, groups)])
        predictions = self.train("Ωmega")
        self.assertEqual(predictions[0]["id"], "знак0")
        self.assertEqual({one["name"] for one in self.card["classes"]}, {"はい", "いいえ"})

    def many_graphs(self, count, kinds):
        """Rings and stars: the classes differ by their edges alone."""
        nodes, edges, graphs = [["graph", "id", "mass"]], [["graph", "src", "dst"]], []
        for g in range(count):
            kind, size = g % kinds, self.draw.randrange(6, 12)
            nodes += [[f"m{g}", i, f"{self.draw.random():.3f}"] for i in range(size)]
            edges += [[f"m{g}", i, (i + 1) % size if kind == 0 else 0] for i in range(1 if kind else 0, size)]
            if kind == 2:
                edges += [[f"m{g}", i, i + 1] for i in range(1, size - 1)]
            graphs.append((f"m{g}", kind))
        self.put("own/nodes.csv", nodes)
        self.put("own/edges.csv", edges)
        return graphs

    def test_many_graphs_of_two_classes(self):
        graphs = self.many_graphs(60, 2)
        self.put("own/graphs.csv", [["graph", "label"]] + [[g, ("ring", "star")[kind]] for g, kind in graphs])
        predictions = self.train("own")
        self.assertEqual((self.card["task"], self.card["graphs"]), ("graph_binary", 60))
        self.assertGreater(self.score("roc_auc"), self.reference(LINEAR)["roc_auc"] + 0.1)
        self.assertIn(predictions[0]["predicted"], ("ring", "star"))
        self.assert_on_page('<h2 id="classes"', "60 graphs")

    def test_many_graphs_of_three_classes_and_new_ones(self):
        graphs = self.many_graphs(60, 3)
        self.put("own/graphs.csv", [["graph", "label"]] + graphs)
        self.train("own")
        self.assertEqual(self.card["task"], "graph_classes")
        self.assertGreater(self.score("accuracy"), self.reference(LINEAR)["accuracy"] + 0.1)
        self.put("new/nodes.csv", [["graph", "id", "mass"]] + [["q", i, 0.5] for i in range(8)])
        self.put("new/edges.csv", [["graph", "src", "dst"]] + [["q", i, (i + 1) % 8] for i in range(8)])
        new = list(csv.DictReader(io.StringIO(self.succeed("predict", "run", "--data", "new").out)))
        self.assertEqual([row["graph"] for row in new], ["q"])

    def test_several_labels_for_each_graph(self):
        graphs = self.many_graphs(48, 2)
        rows = [[g, kind, self.draw.choice(["yes", "no"]) if i % 11 else ""] for i, (g, kind) in enumerate(graphs)]
        self.put("own/graphs.csv", [["graph", "label_ring", "label_other"]] + rows)
        self.train("own")
        self.assertEqual(self.card["task"], "graph_labels")
        self.assertGreater(self.score("average_precision"), 0.5)

    def test_nodes_of_many_graphs(self):
        nodes, edges = [["graph", "id", "x", "label"]], [["graph", "src", "dst"]]
        for g in range(30):
            size = self.draw.randrange(6, 10)
            marked = self.draw.randrange(size)
            for i in range(size):
                near = min((i - marked) % size, (marked - i) % size) <= 1
                nodes.append([g, i, int(i == marked), "near" if near else "far"])
                edges.append([g, i, (i + 1) % size])
        self.put("own/nodes.csv", nodes)
        self.put("own/edges.csv", edges)
        self.train("own")
        self.assertEqual((self.card["task"], self.card["graphs"]), ("node_binary", 30))
        self.assert_on_page('<h2 id="classes"')
        self.assertGreater(self.score("roc_auc"), 0.95)
        self.assertGreater(self.score("roc_auc"), self.reference(LINEAR)["roc_auc"] + 0.05)

    def series(self, steps=260, nodes=6):
        """A wave that runs from node to node."""
        return [[math.sin(0.3 * (t - 2 * i)) * 10 + 50 + self.draw.gauss(0, 0.3) for i in range(nodes)] for t in range(steps)]

    def test_a_long_series_with_gaps(self):
        rows = [["time", "node", "value"]]
        for t, values in enumerate(self.series()):
            for i, value in enumerate(values):
                if self.draw.random() > 0.01:
                    rows.append([f"2024-{1 + t // 24 // 28:02}-{1 + t // 24 % 28:02} {t % 24:02}:00", f"s{i}", f"{value:.2f}"])
        self.put("own/series.csv", rows)
        self.put("own/edges.csv", [["src", "dst"]] + [[f"s{i}", f"s{i + 1}"] for i in range(5)])
        predictions = self.train("own")
        self.assertEqual((self.card["task"], self.card["series"]["steps"], self.card["nodes"]), ("forecast", 260, 6))
        self.assertTrue(any("values are missing" in note for note in self.notes), self.notes)
        self.assertEqual(len(predictions), 6)
        self.assertLess(self.score("mae"), self.reference("last observed value")["mae"])

    def test_a_wide_series_with_distances(self):
        rows = [["time", *(f"s{i}" for i in range(6))]]
        rows += [[t, *(f"{value:.2f}" for value in values)] for t, values in enumerate(self.series())]
        self.put("own/series.csv", rows)
        self.put("own/distances.csv", [["from", "to", "distance"]] +
                 [[f"s{a}", f"s{b}", abs(a - b)] for a in range(6) for b in range(6) if a < b] + [["s0", "elsewhere", 3]])
        self.train("own")
        self.assertTrue(any("distances become weights" in note for note in self.notes), self.notes)
        self.assertLess(self.card["edges"], 15)
        self.assertLess(self.score("mae"), self.reference("last value")["mae"])

    def test_features_of_edges_and_a_direction(self):
        groups = self.groups(120, 2)
        self.put("own/nodes.csv", [["id", "x", "label"]] + [[i, f"{self.draw.gauss(g, 2):.2f}", "uv"[g]] for i, g in enumerate(groups)])
        edges = cluster_edges(self.draw, groups)
        rows = [[a, b, 1.5, "phone"] for a, b in edges] + [[b, a, 0.5, "mail"] for a, b in edges[:40]]
        self.put("own/edges.csv", [["src", "dst", "weight", "kind"]] + rows)
        self.train("own")
        self.assertTrue(self.card["directed"] and self.card["weighted"])
        self.assertTrue(any("edges run one way" in note for note in self.notes), self.notes)
        self.assertTrue(any("used by the model with data.encodings=edges or model.gso only: column 'kind'" in note for note in self.notes), self.notes)
        self.assertEqual(self.card["edge_columns"], ["kind"])

    def test_forty_classes_in_a_compressed_table(self):
        groups = [i % 40 for i in range(480)]
        rows = [["id", "x", "label"]] + [[i, f"{self.draw.random():.3f}", f"c{g:02}"] for i, g in enumerate(groups)]
        path = self.write("own/nodes.csv.gz", "")
        path.write_bytes(gzip.compress(text_of(rows).encode()))
        self.put("own/edges.csv", [["src", "dst"]] + cluster_edges(self.draw, groups, same=0.95))
        self.train("own")
        self.assertEqual((self.card["task"], len(self.card["classes"])), ("node_classes", 40))
        self.assertGreater(self.score(), self.reference(LINEAR)["accuracy"] + 0.1)

    def test_a_tiny_table_with_a_class_that_test_does_not_have(self):
        self.put("own/nodes.csv", [["id", "x", "label", "split"], ["a", 1, "u", "train"], ["b", 2, "v", "train"],
                                   ["c", 3, "w", "train"], ["d", 4, "u", "val"], ["e", 5, "v", "test"], ["f", 6, "", ""]])
        self.put("own/edges.csv", [["src", "dst"], ["a", "b"], ["b", "c"], ["c", "d"], ["d", "e"], ["e", "f"]])
        predictions = self.train("own")
        self.assertEqual((self.card["parts"]["test"], len(predictions)), (1, 6))

    def test_arrays_by_the_names_of_pyg(self):
        groups = self.groups(90, 3)
        pairs = cluster_edges(self.draw, groups)
        both = pairs + [(b, a) for a, b in pairs]
        part = [self.draw.randrange(3) for _ in groups]
        masks = {f"{name}_mask": program.npy("|b1", (90,), [p == i for p in part]) for i, name in enumerate(("train", "val", "test"))}
        arrays = {"x": program.npy("<f4", (90, 2), [self.draw.random() for _ in range(180)]),
                  "edge_index": program.npy("<i8", (2, len(both)), [a for a, _ in both] + [b for _, b in both]),
                  "y": program.npy("<i8", (90,), groups), **masks}
        program.write_npz(self.folder / "pyg.npz", arrays)
        self.train("pyg.npz")
        self.assertEqual((self.card["task"], self.card["nodes"], self.card["edges"]), ("node_classes", 90, len(pairs)))
        self.assertGreater(self.score(), self.reference(LINEAR)["accuracy"] + 0.1)


class Pinned(program.ProgramTest):
    def test_what_was_learned_of_columns_is_applied_to_other_tables(self):
        nodes = "id,h,k,d,label,split\na,1,u,2024-01-01,x,train\nb,,v,2024-02-01,y,train\nc,5,,2024-03-01,x,train\n" \
                "d,3,u,,y,val\ne,2,v,2024-01-05,x,test\n"
        self.write_tables(nodes=nodes)
        self.succeed("train", "own", "--quiet", "--out", "run", *TINY)
        before = self.succeed("predict", "run").out
        kept = {column["name"]: column for column in json.loads((self.folder / "run/data.json").read_text())["columns"]}
        self.assertEqual((kept["h"]["fill"], kept["h"]["marks_missing"]), (3.0, True))
        # Other rows beside the same ones, and far from them: theirs are read in the same way.
        self.write_tables("more", nodes=nodes + "z,1000,w,1990-01-01,x,test\n")
        after = self.succeed("predict", "run", "--data", "more").out
        rows = lambda text: {row["id"]: row["p(x)"] for row in csv.DictReader(io.StringIO(text))}
        self.assertEqual({name: rows(after)[name] for name in "abcde"}, rows(before))


if __name__ == "__main__":
    unittest.main()
