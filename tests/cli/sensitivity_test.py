#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mpssm sensitivity as a user sees it: numbers against plain matrix powers, awkward graphs, pictures, runs."""

import csv
import io
import itertools
import json
import math
import shutil
import struct
import tempfile
import unittest
from pathlib import Path
from xml.dom import minidom

import program

KEYS = {"nodes", "edges", "source", "target", "limit", "lambda_star", "profile", "bounds"}
WEIGHTED = ('src,dst,weight\nann,bob,2\nbob,<c&d>,0.5\n<c&d>,ann,1\n<c&d>,"e, f",3\n"e, f",gäb,1.25\nbob,bob,1.5\n'
            'gäb,"""h""",0.25\n')
SMALL = ["--quiet", "--set", "train.epochs=5", "--set", "model.channels=8", "--set", "model.blocks=2", "--set",
         "model.hops=3"]
REACH = 6  # hops, of these blocks


class Reference:
    """Powers of the operator, as lists of rows; (A^tau)_ij goes from j to i."""

    def __init__(self, table, directed=False, gso="sym_normalized", nodes=()):
        edges = [(row["src"], row["dst"], float(row.get("weight", 1))) for row in csv.DictReader(io.StringIO(table))]
        self.ids = list(dict.fromkeys([*nodes, *(end for edge in edges for end in edge[:2])]))
        self.size = len(self.ids)
        self.edges = edges
        m = [[0.0] * self.size for _ in self.ids]
        for source, target, weight in edges:
            j, i = self.ids.index(source), self.ids.index(target)
            m[i][j] = weight
            if not directed:
                m[j][i] = weight
        for i in range(self.size):
            m[i][i] = m[i][i] or 1.0
        self.degree = [sum(row) for row in m]
        if gso == "random_walk":
            self.a = [[entry / self.degree[i] for entry in row] for i, row in enumerate(m)]
        else:
            self.a = [[entry / math.sqrt(self.degree[i] * self.degree[j]) for j, entry in enumerate(row)]
                      for i, row in enumerate(m)]

    def powers(self, count):
        """A^0 ... A^count"""
        power = [[float(i == j) for j in range(self.size)] for i in range(self.size)]
        for _ in range(count + 1):
            yield power
            power = [[sum(a * power[k][j] for k, a in enumerate(row)) for j in range(self.size)] for row in self.a]

    def power(self, tau):
        return list(self.powers(tau))[tau]

    def value(self, tau, source, target):
        return self.power(tau)[self.ids.index(target)][self.ids.index(source)]

    def limit(self, source, target):
        ends = self.degree[self.ids.index(source)] * self.degree[self.ids.index(target)]
        return math.sqrt(ends) / sum(self.degree)  # of a connected graph

    def lambda_star(self):
        """Power iteration on what is left without the limit."""
        left = [[a - self.limit(self.ids[j], self.ids[i]) for j, a in enumerate(row)] for i, row in enumerate(self.a)]
        x = [math.sin(3.0 * i + 1.0) for i in range(self.size)]
        for _ in range(5000):
            y = [sum(a * b for a, b in zip(row, x)) for row in left]
            norm = math.hypot(*y)
            x = [entry / norm for entry in y]
        return norm

    def hops(self, source, target, without=None):
        """None: no way."""
        found = {source}
        for hops in range(self.size):
            if target in found:
                return hops
            found |= {b for s, t, _ in self.edges for a, b in ((s, t), (t, s)) if a in found and {a, b} != without}
        return None

    def bridges(self, source, target):
        ends = [{s, t} for s, t, _ in self.edges]
        return [pair for pair in ends if self.hops(source, target, without=pair) is None]


class Sensitivity(program.ProgramTest):
    def ask(self, *args, notes=()):
        """The answer in JSON, which is all there is on stdout; `notes` are all there is on stderr."""
        result = self.succeed("sensitivity", *args, "--json")
        self.assertEqual(result.out.count("\n"), 1, result.out)
        lines = [line for line in result.err.splitlines() if " % " not in line]  # no progress of slow machines
        self.assertEqual(len(lines), len(notes), result.err)
        for line, note in zip(lines, notes):
            self.assertIn(note, line)
        answer = json.loads(result.out)
        self.assertLessEqual(KEYS, set(answer), args)
        return answer

    def assert_close(self, value, expected, relative=1e-11):
        self.assertLessEqual(abs(value - expected), 1e-14 + relative * abs(expected), f"{value}, not {expected}")

    def assert_profile(self, profile, expected, key="value"):
        """`expected` holds one number for each tau = 0, 1, ..."""
        self.assertEqual([row["tau"] for row in profile], list(range(len(expected))))
        for row, value in zip(profile, expected):
            self.assert_close(row[key], value)

    def draw(self, *args):
        """A picture that a program can read, with numbers that are numbers."""
        path = self.folder / "picture.svg"
        path.unlink(missing_ok=True)
        result = self.succeed("sensitivity", *args, "--plot", path.name)
        self.assertIn("wrote picture.svg", result.err)
        document = minidom.parse(str(path))
        self.assertEqual(document.documentElement.tagName, "svg")
        for element in document.getElementsByTagName("*"):
            for name, value in element.attributes.items():
                if name not in ("class", "id", "font-family", "role"):
                    self.assertNotRegex(value, r"(?i)\b(nan|inf)\b", f"{element.tagName} {name}")
        return "".join(text_of(document))


def text_of(node):
    if node.nodeType == node.TEXT_NODE:
        yield node.data
    for child in node.childNodes:
        yield from text_of(child)


class CliqueChain(Sensitivity):
    def test_between_its_first_and_last_bridge(self):
        answer = self.ask("--make", "clique-chain:6x10", "--tau", "11,12,100,1000", "--limit")
        self.assertEqual([answer[key] for key in ("nodes", "edges", "source", "target", "hops")], [65, 280, 60, 64, 12])
        self.assert_close(answer["limit"], 3 / 625)
        self.assertEqual(round(answer["lambda_star"], 7), 0.9988189)
        self.assertEqual([row["tau"] for row in answer["profile"]], [11, 12, 100, 1000])
        self.assertEqual(answer["profile"][0]["value"], 0.0)
        for row, expected in zip(answer["profile"][1:], (5.759350e-11, 3.9585e-5, 2.7301e-3)):
            self.assert_close(row["value"], expected, relative=1e-4)

    def test_tables_say_the_same(self):
        result = self.succeed("sensitivity", "--make", "clique-chain:6x10", "--tau", "11,12,100,1000", "--limit")
        for words in ("65 nodes, 280 edges, connected", "0.9988189", "from node 60 to node 64: 12 hops", "0.0048"):
            self.assertIn(words, result.out)
        self.assertEqual([line.split()[:2] for line in result.out.splitlines()[-4:]],
                         [["11", "0"], ["12", "5.75935e-11"], ["100", "3.95851e-05"], ["1000", "0.00273007"]])
        self.assertEqual(result.err, "")

    def test_taus_come_in_order_and_once(self):
        profile = self.ask("--make", "path:3", "--source", "0", "--tau", "7,2:10:4,2,0:1")["profile"]
        self.assertEqual([row["tau"] for row in profile], [0, 1, 2, 6, 7, 10])


class AgainstMatrixPowers(Sensitivity):
    def setUp(self):
        super().setUp()
        self.write("g.csv", WEIGHTED)
        self.whole = Reference(WEIGHTED)
        self.walk = Reference(WEIGHTED, directed=True, gso="random_walk")
        self.one_way = ["--directed", "--gso", "random_walk"]

    def test_a_pair(self):
        for source, target in (("ann", '"h"'), ("e, f", "bob"), ("bob", "bob")):
            answer = self.ask("g.csv", "--source", source, "--target", target, "--tau", "0:12", "--w", "0.9")
            self.assertEqual([answer[key] for key in ("nodes", "edges", "source", "target", "hops")],
                             [6, 7, source, target, self.whole.hops(source, target)])
            self.assert_profile(answer["profile"],
                                [self.whole.value(tau, source, target) * 0.9**tau for tau in range(13)])
            self.assert_close(answer["limit"], self.whole.limit(source, target))
            self.assert_close(answer["lambda_star"], self.whole.lambda_star(), relative=1e-9)

    def test_the_sign_of_w_does_not_matter(self):
        pair = ["g.csv", "--source", "ann", "--target", "e, f", "--tau", "0:5"]
        self.assertEqual(self.ask(*pair, "--w=-0.9")["profile"], self.ask(*pair, "--w=0.9")["profile"])
        self.assertEqual([row["value"] for row in self.ask("g.csv", "--source", "ann", "--target", "ann", "--tau",
                                                           "0:3", "--w", "0")["profile"]], [1.0, 0.0, 0.0, 0.0])

    def test_a_pair_of_a_directed_graph(self):
        for source, target in (("ann", "gäb"), ("gäb", "ann"), ("<c&d>", "bob")):
            answer = self.ask("g.csv", "--source", source, "--target", target, "--tau", "0:8", "--w", "0.9",
                              *self.one_way)
            self.assert_profile(answer["profile"],
                                [self.walk.value(tau, source, target) * 0.9**tau for tau in range(9)])
            self.assertIsNone(answer["limit"])
            self.assertIsNone(answer["lambda_star"])
        self.assertIsNone(self.ask("g.csv", "--source", "gäb", "--target", "ann", *self.one_way)["hops"])
        directed = Reference(WEIGHTED, directed=True)
        profile = self.ask("g.csv", "--source", "ann", "--target", "gäb", "--tau", "0:8", "--directed")["profile"]
        self.assert_profile(profile, [directed.value(tau, "ann", "gäb") for tau in range(9)])

    def check_reach(self, profile, lines):
        self.assert_profile(profile, [max(line) for line in lines])
        self.assert_profile(profile, [min(entry for entry in line if entry > 0) for line in lines], "smallest")
        self.assert_profile(profile, [sum(line) for line in lines], "total")
        self.assert_profile(profile, [sum(entry > 0 for entry in line) for line in lines], "nodes")

    def test_what_a_node_sends_and_hears(self):
        for reference, options in ((self.whole, []), (self.walk, self.one_way)):
            for node in ("<c&d>", "gäb"):
                n = reference.ids.index(node)
                scaled = [[[0.9**tau * entry for entry in row] for row in power]
                          for tau, power in enumerate(reference.powers(7))]
                common = ["g.csv", *options, "--tau", "0:7", "--w", "0.9"]
                sent = self.ask(*common, "--source", node)
                self.assertEqual((sent["source"], sent["target"]), (node, None))
                self.check_reach(sent["profile"], [[row[n] for row in power] for power in scaled])
                heard = self.ask(*common, "--target", node)
                self.assertEqual((heard["source"], heard["target"]), (None, node))
                self.check_reach(heard["profile"], [power[n] for power in scaled])

    def test_the_whole_graph(self):
        for reference, options in ((self.whole, []), (self.walk, self.one_way)):
            answer = self.ask("g.csv", *options, "--tau", "0:7", "--w", "0.9")
            entries = [[0.9**tau * entry for row in power for entry in row]
                       for tau, power in enumerate(reference.powers(7))]
            self.assert_profile(answer["profile"], [max(entries[tau]) for tau in range(8)])
            self.assert_profile(answer["profile"], [min(entries[tau]) for tau in range(8)], "least")
            self.assert_profile(answer["profile"], [entries[tau].count(0.0) for tau in range(8)], "zero_pairs")
            for row in answer["profile"]:
                least = reference.value(row["tau"], row["least_source"], row["least_target"])
                self.assert_close(row["least"], least * 0.9**row["tau"])
        ids = self.whole.ids
        least = min(self.whole.limit(*pair) for pair in itertools.product(ids, ids))
        self.assert_close(self.ask("g.csv")["least_limit"], least)

    def check_worst(self, by, key):
        pairs = list(itertools.combinations(self.whole.ids, 2))
        answer = self.ask("g.csv", "--tau", "3,6", "--worst", "8", "--by", by, "--w", "0.9")["worst"]
        expected = sorted(key(*pair) for pair in pairs)[:8]
        for entry, value in zip(answer, expected, strict=True):
            pair = entry["source"], entry["target"]
            self.assert_close(key(*pair), value)
            self.assert_close(entry["value"], self.whole.value(6, *pair) * 0.9**6)
            self.assert_close(entry["limit"], self.whole.limit(*pair))
            self.assertEqual(entry["hops"], self.whole.hops(*pair))
            self.assertCountEqual(map(set, entry["bridges"]), self.whole.bridges(*pair))
        self.assertEqual(len({frozenset((entry["source"], entry["target"])) for entry in answer}), 8)

    def test_the_worst_pairs(self):
        self.check_worst("value", lambda *pair: self.whole.value(6, *pair))
        self.check_worst("share", lambda *pair: self.whole.value(6, *pair) / self.whole.limit(*pair))
        worst = self.ask("g.csv", "--worst", "10000", "--tau", "3")["worst"]
        self.assertEqual(len(worst), 15)  # all there are
        worst = self.ask("g.csv", "--worst", "100", "--tau", "3", *self.one_way)["worst"]
        self.assertEqual(len(worst), 30)  # each way
        for entry in worst:
            self.assert_close(entry["value"], self.walk.value(3, entry["source"], entry["target"]))

    def depth(self, share, pairs):
        for tau, power in enumerate(self.whole.powers(500)):
            if all(power[self.whole.ids.index(t)][self.whole.ids.index(s)] >= share * self.whole.limit(s, t)
                   for s, t in pairs):
                return tau
        return None

    def test_depth(self):
        pair = ("ann", '"h"')
        for share in (0.01, 0.5, 0.95):
            options = ["g.csv", "--depth", share, "--w", "0.5", "--tau", "1"]
            found = self.ask(*options, "--source", pair[0], "--target", pair[1])["depth"]
            self.assertEqual((found["share"], found["tau"]), (share, self.depth(share, [pair])))
            sure = found["sure_from"]
            self.assertGreaterEqual(sure, found["tau"])
            for power in list(self.whole.powers(sure + 20))[sure:]:
                entry = power[self.whole.ids.index(pair[1])][self.whole.ids.index(pair[0])]
                self.assertGreaterEqual(entry, share * self.whole.limit(*pair))
            found = self.ask(*options)["depth"]
            pairs = list(itertools.product(self.whole.ids, self.whole.ids))
            self.assertEqual(found["tau"], self.depth(share, pairs))
            last = found["last_source"], found["last_target"]
            self.assertEqual(self.depth(share, [last]), found["tau"])

    def test_depth_gives_up(self):
        deep = ["g.csv", "--depth", "0.95", "--max-tau", "5", "--tau", "1"]
        self.assertIsNone(self.ask(*deep)["depth"]["tau"])
        self.assertIsNone(self.ask(*deep, "--source", "ann", "--target", '"h"')["depth"]["tau"])
        self.assertIn("within 5 hops", self.succeed("sensitivity", *deep).out)

    def test_bounds_hold(self):
        rate = self.whole.lambda_star()
        pair = ("ann", "gäb")
        answer = self.ask("g.csv", "--source", pair[0], "--target", pair[1], "--tau", "0:40", "--bounds", "--w", "0.9")
        self.assertIs(answer["bounds"]["holds"], True)
        limit = self.whole.limit(*pair)
        spread = math.sqrt(math.prod(1 - self.whole.limit(node, node) for node in pair))
        error = [rate**tau * spread for tau in range(41)]
        self.assert_profile(answer["bounds"]["at"], [max(limit - error[t], 0.0) * 0.9**t for t in range(41)], "lower")
        self.assert_profile(answer["bounds"]["at"], [(limit + error[t]) * 0.9**t for t in range(41)], "upper")
        for row, at in zip(answer["profile"], answer["bounds"]["at"], strict=True):
            self.assertLessEqual(at["lower"], row["value"] + 1e-14)
            self.assertLessEqual(row["value"], at["upper"] + 1e-14)

    def test_bounds_of_the_graph_hold(self):
        for options in ([], ["--gso", "random_walk"], self.one_way):
            notes = ["note: no limit"] if options else []
            answer = self.ask("g.csv", *options, "--tau", "0:30", "--bounds", notes=notes)
            self.assertIs(answer["bounds"]["holds"], True)
            for row, at in zip(answer["profile"], answer["bounds"]["at"], strict=True):
                self.assertGreaterEqual(row["value"], at["global_at_least"] - 1e-12)
                self.assertGreaterEqual(row["least"], at.get("least_at_least", 0.0) - 1e-12)
            self.assertEqual("least_at_least" in answer["bounds"]["at"][0], not options)


class Awkward(Sensitivity):
    def test_two_components(self):
        self.write("g.csv", "src,dst\na,b\nb,c\nd,e\n")
        pair = ["g.csv", "--source", "a", "--target", "d", "--tau", "0:9"]
        answer = self.ask(*pair, "--depth", "0.5", "--bounds", "--limit")
        self.assertEqual((answer["components"], answer["limit"], answer["hops"]), (2, 0.0, None))
        self.assert_profile(answer["profile"], [0.0] * 10)
        self.assertIs(answer["bounds"]["holds"], True)
        self.assertEqual((answer["depth"]["tau"], answer["depth"]["sure_from"]), (None, None))
        result = self.succeed("sensitivity", *pair, "--depth", "0.5")
        self.assertIn("from node a to node d: no way", result.out)
        self.assertIn("no depth is enough", result.out)
        answer = self.ask("g.csv", "--depth", "0.5", "--worst", "100", "--tau", "9", "--bounds")
        self.assertEqual(len(answer["worst"]), 4)  # of one component each
        self.assertEqual((answer["depth"]["tau"], answer["profile"][0]["zero_pairs"]), (2, 0))
        self.assertEqual(self.ask("g.csv", "--source", "d", "--tau", "9")["profile"][0]["nodes"], 2)

    def test_one_node(self):
        self.write("own/nodes.csv", "id\nx\n")
        self.write("own/edges.csv", "src,dst\n")
        self.write("loop.csv", "src,dst\nx,x\n")
        for graph in (["own"], ["loop.csv"], ["--make", "path:1"], ["--make", "star:1"], ["--make", "complete:1"]):
            answer = self.ask(*graph, "--tau", "0,1,1000", "--depth", "0.5", "--bounds", "--worst", "3", "--limit")
            self.assertEqual((answer["nodes"], answer["lambda_star"], answer["worst"]), (1, 0.0, []))
            self.assertEqual([(row["value"], row["least"]) for row in answer["profile"]], [(1.0, 1.0)] * 3)
            self.assertEqual((answer["depth"]["tau"], answer["bounds"]["holds"]), (0, True))
        pair = ["--source", "x", "--target", "x", "--depth", "0.9", "--bounds", "--tau", "0:1"]
        for graph in ("own", "loop.csv"):
            answer = self.ask(graph, *pair)
            self.assertEqual((answer["limit"], answer["hops"], answer["depth"]["tau"]), (1.0, 0, 0))
            self.assert_profile(answer["profile"], [1.0, 1.0])

    def test_tau_0_is_the_identity(self):
        for source, target in ((0, 0), (0, 1), (3, 0)):
            answer = self.ask("--make", "ring:5", "--source", source, "--target", target, "--tau", "0", "--w", "0.5")
            self.assert_profile(answer["profile"], [float(source == target)])
        profile = self.ask("--make", "ring:5", "--tau", "0")["profile"]
        self.assertEqual([(row["value"], row["least"], row["zero_pairs"]) for row in profile], [(1.0, 0.0, 20)])

    def test_a_loop_keeps_its_weight(self):
        table = "src,dst,weight\na,b,1\na,a,7\n"
        self.write("g.csv", table)
        answer = self.ask("g.csv", "--source", "a", "--target", "b", "--tau", "0:6")
        self.assertEqual((answer["nodes"], answer["edges"]), (2, 2))
        self.assert_profile(answer["profile"], [Reference(table).value(tau, "a", "b") for tau in range(7)])
        self.assert_close(answer["limit"], math.sqrt(8 * 2) / 10)

    def test_a_directed_graph_has_no_limit_and_says_so(self):
        self.write("g.csv", "src,dst\na,b\nb,c\nc,a\n")
        for nodes in ([], ["--source", "a"], ["--source", "a", "--target", "c"]):
            answer = self.ask("g.csv", "--directed", "--limit", *nodes, notes=["note: no limit: the graph is directed"])
            self.assertEqual((answer["limit"], answer["lambda_star"], answer["edges"]), (None, None, 3))
            self.ask("g.csv", "--directed", *nodes)  # nobody asked: no note
        self.ask("g.csv", "--gso", "random_walk", "--limit", notes=["sym_normalized only"])

    def test_negative_weights_have_no_limit_either(self):
        table = "src,dst,weight\na,b,-1\nb,c,1\n"
        self.write("g.csv", table)
        answer = self.ask("g.csv", "--source", "a", "--target", "b", "--limit", "--tau", "1", notes=["negative"])
        self.assertIsNone(answer["limit"])
        self.assert_close(answer["profile"][0]["value"], 1 / math.sqrt(2 * 3))

    def test_an_isolated_node(self):
        self.write("own/nodes.csv", "id,colour\na,red\nalone,blue\nb,red\n")
        self.write("own/edges.csv", "src,dst\na,b\n")
        answer = self.ask("own", "--source", "alone", "--tau", "0:3")
        self.assertEqual((answer["nodes"], answer["edges"], answer["components"]), (3, 1, 2))
        self.assert_profile(answer["profile"], [1.0] * 4)
        self.assert_profile(answer["profile"], [1] * 4, "nodes")
        self.assert_profile(self.ask("own", "--source", "a", "--target", "alone", "--tau", "0:3")["profile"], [0.0] * 4)
        self.assertEqual(len(self.ask("own", "--worst", "9")["worst"]), 1)

    def test_random_families_depend_on_the_seed_alone(self):
        def reach(seed):
            return self.ask("--make", "erdos-renyi:40,0.2", "--source", "0", "--tau", "3", "--seed", seed)["profile"]
        self.assertEqual(reach(1), reach(1))
        self.assertNotEqual(reach(1), reach(2))

    def test_vanishing(self):
        rows = self.ask("--make", "ring:6", "--tau", "1", "--vanishing", "--seed", "3")["vanishing"]
        self.assertEqual([row["k"] for row in rows], [1, 2, 4, 8, 16])
        for row in rows:
            self.assert_close(row["paper"], 2 ** (-row["k"] / 2))
            self.assertLess(abs(math.log2(row["orthogonal"] / row["paper"])), 0.2)
            self.assertLess(abs(math.log2(row["rank_one"] / row["rank_one_limit"])), 0.2)
            self.assertTrue(0 < row["gcn"] < 1)


class GraphPictures(Sensitivity):
    def test_every_kind_of_picture(self):
        self.write("g.csv", WEIGHTED)
        pair = ["--source", "<c&d>", "--target", '"h"']
        ids = Reference(WEIGHTED).ids
        for nodes in (pair[:2], pair[2:], pair):
            for options in (["--tau", "0:20"], ["--tau", "2", "--directed"]):
                words = self.draw("g.csv", *nodes, "--picture", "graph", *options)
                self.assertEqual([node for node in ids if node not in words], [])
        for nodes in ([], pair[:2], pair[2:], pair):
            bounds = [] if len(nodes) == 2 else ["--bounds"]
            words = self.draw("g.csv", *nodes, "--picture", "curve", "--tau", "300,500", "--w", "0.9", *bounds)
            self.assertIn("sensitivity S(tau)", words)
            self.assertIn("g: S after 2 hops", self.draw("g.csv", *nodes, "--picture", "map", "--tau", "2"))

    def test_what_is_drawn_unless_told(self):
        self.assertIn("S after 4 hops", self.draw("--make", "ring:6", "--tau", "4"))
        self.assertIn("what 3 sends in 4 hops", self.draw("--make", "ring:6", "--source", "3", "--tau", "4"))
        self.assertIn("what 3 hears in 4 hops", self.draw("--make", "ring:6", "--target", "3", "--tau", "4"))
        self.assertIn("hops tau", self.draw("--make", "ring:6", "--target", "3", "--source", "1", "--tau", "0:4"))

    def test_awkward_graphs_are_drawn(self):
        for graph in (["--make", "path:1"], ["--make", "path:1", "--source", "0"],
                      ["--make", "path:1", "--source", "0", "--target", "0"],
                      ["--make", "path:9", "--source", "0", "--target", "8"]):
            for tau in ("0", "0:3"):
                self.draw(*graph, "--tau", tau)

    def test_a_bound_that_says_nothing_hides_nothing(self):
        chain = ["--make", "clique-chain:6x10", "--bounds"]
        for tau, has_area in (("1:100", False), ("1:5000:7", True)):
            self.assertIn("bound by lambda*", self.draw(*chain, "--tau", tau))
            paths = minidom.parse(str(self.folder / "picture.svg")).getElementsByTagName("path")
            areas = [path for path in paths if path.hasAttribute("fill-opacity")]
            in_plot = [path for path in areas if not path.parentNode.hasAttribute("transform")]
            self.assertEqual(bool(in_plot), has_area)

    def test_a_pair_without_a_way_is_said_to_have_none(self):
        self.write("two.csv", "src,dst\na,b\nc,d\n")
        words = self.draw("two.csv", "--source", "a", "--target", "d")
        self.assertIn("no way", words)
        self.assertIn("nothing to draw", words)

    def test_a_map_of_many_nodes_says_that_it_averages(self):
        self.assertNotIn("mean", self.draw("--make", "grid:5x5", "--tau", "3"))
        self.assertIn("a cell is the mean of 3-4 x 3-4 entries", self.draw("--make", "grid:20x20", "--tau", "3"))

    def test_a_large_graph_is_drawn_around_its_node(self):
        words = self.draw("--make", "grid:300x300", "--source", "0", "--tau", "5")
        self.assertIn("nearest nodes", words)
        self.assertLess((self.folder / "picture.svg").stat().st_size, 1 << 20)


class ExtremeW(Sensitivity):
    PAIR = ["--make", "path:5", "--source", "0", "--target", "4"]

    def test_bounds_hold_where_the_power_of_w_overflows(self):
        for graph in (self.PAIR, self.PAIR[:2]):
            answer = self.ask(*graph, "--tau", "5,500", "--w", "10", "--bounds")
            self.assertIs(answer["bounds"]["holds"], True)
            self.assertIsNone(answer["profile"][1]["value"])  # no double holds it
            self.assertGreater(answer["profile"][0]["value"], 0.0)

    def test_a_w_of_zero_leaves_nothing(self):
        self.assertEqual(self.ask(*self.PAIR, "--tau", "5", "--w", "0")["profile"][0]["value"], 0.0)
        table = self.succeed("sensitivity", *self.PAIR, "--tau", "5", "--w", "0").out
        self.assertNotIn("nan", table)

    def test_all_pairs_of_a_family_with_a_pair_of_its_own(self):
        chain = ["--make", "clique-chain:3x4", "--tau", "9"]
        self.assertEqual(self.ask(*chain)["source"], 12)
        everything = self.ask(*chain, "--all")
        self.assertIsNone(everything["source"])
        self.assertLess(everything["profile"][0]["least"], everything["profile"][0]["value"])


class OfRuns(Sensitivity):
    @classmethod
    def setUpClass(cls):
        top = tempfile.TemporaryDirectory()
        cls.addClassCleanup(top.cleanup)
        cls.store = Path(top.name)
        program.write_npz(cls.store / "s.npz", program.series_arrays())
        cls.make_run("board", "board:10x10")
        cls.make_run("gcn", "board:10x10", "--set", "model.kind=gcn")
        cls.make_run("dense", "board:10x10", "--set", "model.state=dense")
        cls.make_run("graphs", "properties:diameter:24")
        cls.make_run("series", cls.store / "s.npz")

    @classmethod
    def make_run(cls, name, dataset, *settings):
        result = program.run(["train", dataset, "--out", name, *SMALL, *settings], cls.store)
        assert result.code == 0, result.err

    def setUp(self):
        super().setUp()
        self.folder = self.folder / "runs"
        shutil.copytree(self.store, self.folder)

    def hops_on_board(self, i, j):
        return max(abs(i // 10 - j // 10), abs(i % 10 - j % 10))

    def check_top(self, top):
        influence = [row["influence"] for row in top]
        self.assertEqual(influence, sorted(influence, reverse=True))
        self.assertEqual(len({row["node"] for row in top}), len(top))

    def check_prediction(self, each, reach, top=10):
        """Of a node of the board."""
        hops = each["hops"]
        self.assertEqual([row["hop"] for row in hops], list(range(len(hops))))
        self.assertEqual(sum(row["nodes"] for row in hops), 100)
        total = sum(row["influence"] for row in hops)
        self.assert_close(each["mean_hop"], sum(row["hop"] * row["influence"] for row in hops) / total, 1e-9)
        for row in hops:
            self.assertEqual(row["influence"] > 0, row["hop"] <= reach, row)
            at = sum(self.hops_on_board(each["target"], node) == row["hop"] for node in range(100))
            self.assertEqual(row["nodes"], at)
        self.assertEqual(len(each["top"]), top)
        self.check_top(each["top"])
        for row in each["top"]:
            self.assertEqual(row["hops"], self.hops_on_board(each["target"], row["node"]))

    def check_predictions(self, answer, reach, count):
        self.assertEqual(len(answer["each"]), count)
        self.assert_close(sum(answer["share_of_hop"]), 1.0)
        self.assertEqual([share > 0 for share in answer["share_of_hop"]],
                         [hop <= reach for hop in range(len(answer["share_of_hop"]))])
        self.assert_close(answer["mean_hop"], sum(each["mean_hop"] for each in answer["each"]) / count)
        for each in answer["each"]:
            self.check_prediction(each, reach)

    def test_blocks(self):
        answer = self.ask("board", "--tau", "0:20")
        self.assertEqual((answer["run"], answer["kind"], answer["nodes"], answer["edges"]),
                         ("board", "mpssm", 100, 342))
        self.assertEqual([(block["block"], block["hops"]) for block in answer["blocks"]], [(1, 3), (2, 3)])
        for block in answer["blocks"]:
            radius = block["radius"]
            self.assertTrue(0.0 < radius < 1.0)
            self.assert_profile(block["norms"], [radius**tau for tau in range(21)])  # W is diagonal
            self.assert_close(block["norm_at_hops"], radius**3)
            powers = [radius**tau for tau in range(4)]
            self.assert_close(block["mean_hop"], sum(tau * power for tau, power in enumerate(powers)) / sum(powers))
            self.assertEqual(block["forgets_after"], math.floor(math.log(0.01) / math.log(radius)) + 1)
        self.assertEqual(answer["profile"], [])

    def test_a_gcn_has_no_blocks(self):
        self.assertEqual(self.ask("gcn")["blocks"], [])
        self.check_predictions(self.ask("gcn", "--predictions", "3")["predictions"], reach=2, count=3)

    def test_predictions_depend_on_what_the_blocks_reach(self):
        self.check_predictions(self.ask("board", "--predictions", "4")["predictions"], REACH, count=4)
        answer = self.ask("board", "--target", "0", "--top", "100")
        self.assertEqual((answer["target"], answer["source"]), (0, None))
        self.check_prediction(answer["predictions"]["each"][0], REACH, top=100)
        self.assertEqual(answer["predictions"]["each"][0]["top"][0]["node"], 0)
        self.assertEqual(self.ask("board", "--target", "0", "--top", "0")["predictions"]["each"][0]["top"], [])

    def test_predictions_are_those_of_the_test_part_at_most(self):
        each = self.ask("board", "--predictions", "100000")["predictions"]["each"]
        with (self.folder / "board" / "predictions.csv").open() as file:
            tested = [int(row["id"]) for row in csv.DictReader(file) if row["split"] == "test"]
        self.assertEqual([row["target"] for row in each], tested)

    def test_two_runs_side_by_side(self):
        answer = self.ask("board", "--predictions", "3", "--compare", "gcn")
        self.check_predictions(answer["predictions"], REACH, count=3)
        self.check_predictions(answer["compare"], 2, count=3)
        self.assertEqual(answer["compare"]["run"], "gcn")
        alone = self.ask("gcn", "--predictions", "3")["predictions"]
        self.assertEqual({key: answer["compare"][key] for key in alone}, alone)
        answer = self.ask("gcn", "--target", "42", "--compare", "board")
        for side in ("predictions", "compare"):
            self.assertEqual([each["target"] for each in answer[side]["each"]], [42])
        text = self.succeed("sensitivity", "board", "--predictions", "3", "--compare", "gcn").out
        for words in ("mean hop, board", "mean hop, gcn", "% of influence, board", "% of influence, gcn"):
            self.assertIn(words, text)

    def test_a_pair_end_to_end(self):
        def end_to_end(run, source):
            return self.ask(run, "--target", "0", "--source", source, "--tau", "1")["end_to_end"]
        for run, reach in (("board", REACH), ("gcn", 2)):
            inside = end_to_end(run, 11 * reach)
            self.assertGreater(inside["spectral_norm"], 0.0)
            self.assertLessEqual(inside["spectral_norm"], inside["l1"] * (1 + 1e-6))
            self.assertEqual((inside["outputs"], inside["inputs"]), (1, 7))
            outside = end_to_end(run, 11 * (reach + 1))
            self.assertEqual((outside["spectral_norm"], outside["l1"]), (0.0, 0.0))
        self.assertEqual(self.ask("gcn", "--target", "0", "--source", "11")["profile"], [])

    def test_a_pair_inside_a_block(self):
        cells = [(row, column) for row in range(10) for column in range(10)]
        edges = "".join(f"{10 * r + c},{10 * (r + y) + c + x}\n" for r, c in cells
                        for y, x in ((0, 1), (1, -1), (1, 0), (1, 1)) if (r + y, c + x) in cells)
        board = Reference("src,dst\n" + edges, nodes=map(str, range(100)))
        target = [float(node == 23) for node in range(100)]
        walked = []
        for _ in range(9):
            walked.append(target[46])
            target = [sum(a * b for a, b in zip(row, target) if a) for row in board.a]
        for block in (1, 2):
            answer = self.ask("board", "--source", "46", "--target", "23", "--tau", "0:8", "--block", block)
            norms = [row["value"] for row in answer["blocks"][block - 1]["norms"]]
            self.assert_profile(answer["profile"], [abs(a) * norm for a, norm in zip(walked, norms)])
            self.assert_close(answer["limit"], board.limit("46", "23"))
            self.assertIsNone(answer["lambda_star"])
        answer = self.ask("board", "--source", "46", "--target", "23", "--tau", "1", "--limit")
        graph = self.ask("board:10x10", "--source", "46", "--target", "23", "--tau", "1", "--limit")
        self.assertEqual((answer["limit"], answer["lambda_star"]), (graph["limit"], graph["lambda_star"]))

    def test_a_prediction_for_a_whole_graph(self):
        for sample in (0, 5):
            answer = self.ask("graphs", "--sample", sample, "--tau", "1", "--top", "7")
            self.assertEqual((len(answer["top"]), len(answer["blocks"])), (7, 2))
            self.check_top(answer["top"])
            self.assertLess(max(row["node"] for row in answer["top"]), answer["nodes"])
            self.assertNotIn("predictions", answer)
        every = self.ask("graphs", "--top", "1000")
        self.assertEqual(len(every["top"]), every["nodes"])
        self.assertIn("depends most on", self.succeed("sensitivity", "graphs").out)

    def test_a_series(self):
        answer = self.ask("series", "--predictions", "3", "--sample", "2")
        self.assertEqual((answer["nodes"], answer["edges"]), (3, 2))
        self.assert_close(sum(answer["predictions"]["share_of_hop"]), 1.0)
        self.assertEqual([each["target"] for each in answer["predictions"]["each"]], [0, 1, 2])
        steps = answer["blocks"][0]["hops"] + 1
        pair = self.ask("series", "--target", "1", "--source", "0")["end_to_end"]
        self.assertEqual(pair["inputs"] % steps, 0)
        self.assertGreater(pair["spectral_norm"], 0.0)

    def test_nodes_that_nothing_leads_from(self):
        self.write_tables(nodes=program.NODES, edges="src,dst\na,b\nc,d\n")
        self.succeed("train", "own", "--out", "apart", *SMALL)
        each = self.ask("apart", "--target", "a")["predictions"]["each"][0]
        self.assertEqual([row["hops"] for row in each["top"]], [0, 1, None, None, None])
        self.assertEqual([row["influence"] for row in each["top"][2:]], [0.0] * 3)
        self.assertEqual([row["nodes"] for row in each["hops"]], [1, 1])
        answer = self.ask("apart", "--target", "a", "--source", "e", "--tau", "0:3")
        self.assert_profile(answer["profile"], [0.0] * 4)
        self.assertEqual((answer["limit"], answer["end_to_end"]["spectral_norm"]), (0.0, 0.0))
        self.draw("apart", "--target", "e")

    def test_a_model_file_or_another_way_to_the_folder_is_a_run_too(self):
        whole = self.ask("board", "--tau", "1")
        for path in ("board/", "./board", "board/model.safetensors", self.folder / "board"):
            self.assertEqual(self.ask(path, "--tau", "1")["blocks"], whole["blocks"])

    def test_every_kind_of_picture(self):
        for run, *options in (("board",), ("board", "--tau", "0:400"), ("board", "--predictions", "3"),
                              ("board", "--predictions", "3", "--compare", "gcn"), ("gcn", "--predictions", "2"),
                              ("board", "--target", "17", "--picture", "curve"), ("board", "--target", "17"),
                              ("gcn", "--target", "17", "--source", "3", "--picture", "graph"), ("graphs",),
                              ("graphs", "--sample", "3", "--picture", "curve"), ("series",),
                              ("series", "--target", "1"), ("dense", "--tau", "0:5")):
            self.assertTrue(self.draw(run, *options))

    def test_a_nilpotent_w_is_used_up(self):
        path = self.folder / "dense" / "model.safetensors"
        header, data = program.read_safetensors(path)
        ones = struct.pack("<64f", *(float(j > i) for i in range(8) for j in range(8)))
        for name in ("block_0.w_state.weight", "block_1.w_state.weight"):
            self.assertEqual(header[name]["shape"], [8, 8])
            begin, end = header[name]["data_offsets"]
            data = data[:begin] + ones + data[end:]
        program.write_safetensors(path, header, data)
        answer = self.ask("dense", "--tau", "0:12,1000,100000", "--target", "3", "--source", "4")
        for block in answer["blocks"]:
            self.assertLess(block["radius"], 1e-3)
            self.assertEqual(block["forgets_after"], 8)
            norms = [row["value"] for row in block["norms"]]
            self.assert_close(norms[0], 1.0)
            for tau in range(1, 8):
                self.assert_close(norms[tau], norm_of_ones(tau), relative=1e-6)
            self.assertEqual(norms[8:], [0.0] * 7)
        self.assertEqual([row["value"] for row in answer["profile"]][8:], [0.0] * 7)
        self.draw("dense", "--tau", "0:12")


def norm_of_ones(tau):
    """Of the power of the strictly upper triangular 8 x 8 matrix of ones, which counts increasing paths."""
    power = [[math.comb(j - i - 1, tau - 1) if j > i else 0 for j in range(8)] for i in range(8)]
    x = [1.0] * 8
    for _ in range(200):
        y = [sum(a * b for a, b in zip(row, x)) for row in power]
        x = [sum(power[i][j] * y[i] for i in range(8)) for j in range(8)]
        norm = math.hypot(*x)
        x = [entry / norm for entry in x]
    return math.sqrt(norm)


if __name__ == "__main__":
    unittest.main()
