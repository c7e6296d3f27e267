#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One list of inputs that nobody can use: files of other programs, links to predict, what is known of
edges, and where results go. Each is refused in one line that names the file or setting and the place,
what was expected, what came instead, and what to do about it."""

import unittest

import program
from program import TINY, npy
from refusal import BadInput

RING = "src,dst\n" + "".join(f"n{i},n{(i + 1) % 30}\n" for i in range(30))
GRAPH = '<graph edgedefault="undirected">'
OGB = {"raw/num-node-list.csv": "4\n", "raw/num-edge-list.csv": "3\n", "raw/edge.csv": "0,1\n1,2\n2,3\n",
       "raw/node-feat.csv": "1,2\n3,4\n5,6\n7,8\n", "raw/node-label.csv": "0\n1\n0\n1\n",
       "split/s/train.csv": "0\n1\n", "split/s/valid.csv": "2\n", "split/s/test.csv": "3\n"}


def graphml(body):
    return f"<graphml>\n{body}\n</graphml>\n"


def ogb(**changes):
    """The good folder with files replaced (raw_edge for raw/edge.csv), or left out where they are None."""
    files = dict(OGB)
    for name, content in changes.items():
        files["/".join(name.split("__")).replace("_", "-") + ".csv"] = content
    return {f"ogb/{name}": content for name, content in files.items() if content is not None}


def arrays(**changes):
    return {**program.graph_arrays(), **changes}


# What it is, the files, the arguments, and what the line must hold beside "expected", "got" and a remedy.
CASES = [
    # GraphML
    ("an empty GraphML file", {"g.graphml": ""}, ["data", "info", "g.graphml"], ["g.graphml:1", "no element"]),
    ("a web page", {"g.graphml": "<html></html>"}, ["data", "info", "g.graphml"], ["g.graphml:1", "<graphml>", "<html>"]),
    ("GraphML without a graph", {"g.graphml": graphml("")}, ["data", "info", "g.graphml"], ["g.graphml", "<graph>"]),
    ("a node without id", {"g.graphml": graphml(GRAPH + "<node/></graph>")}, ["data", "info", "g.graphml"],
     ["g.graphml:2", "<node> with 'id'"]),
    ("an edge without target", {"g.graphml": graphml(GRAPH + "\n<edge source='a'/></graph>")}, ["data", "info", "g.graphml"],
     ["g.graphml:3", "'target'"]),
    ("two graphs in one file", {"g.graphml": graphml(GRAPH + "</graph>" + GRAPH + "</graph>")}, ["data", "info", "g.graphml"],
     ["one <graph>", "another"]),
    ("a hyperedge", {"g.graphml": graphml(GRAPH + "<hyperedge/></graph>")}, ["data", "info", "g.graphml"],
     ["g.graphml:2", "<hyperedge>"]),
    ("data without a key", {"g.graphml": graphml(GRAPH + "<node id='a'><data key='k9'>1</data></node></graph>")},
     ["data", "info", "g.graphml"], ["g.graphml:2", "'k9'"]),
    ("a tag that is not closed", {"g.graphml": graphml(GRAPH + "<node id='a'></graph>")}, ["data", "info", "g.graphml"],
     ["g.graphml:2", "mismatched tag"]),
    ("elements without end", {"g.graphml": graphml("<x>" * 5000)}, ["data", "info", "g.graphml"], ["g.graphml:2", "64 deep"]),
    ("entities that grow", {"g.graphml": '<!DOCTYPE g [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>' + graphml("")},
     ["data", "info", "g.graphml"], ["g.graphml:1", "entities"]),
    ("GraphML without nodes", {"g.graphml": graphml(GRAPH + "</graph>")}, ["data", "info", "g.graphml"],
     ["g.graphml: nodes", "at least one"]),
    ("GraphML without edges", {"g.graphml": graphml(GRAPH + "<node id='a'/></graph>")}, ["data", "info", "g.graphml"],
     ["g.graphml: edges", "'source' and 'target'"]),
    # GML
    ("a GML file that holds something else", {"g.gml": 'version 1 name "x"\n'}, ["data", "info", "g.gml"], ["g.gml", "graph ["]),
    ("a GML file cut off", {"g.gml": "graph [\nnode [ id 0"}, ["data", "info", "g.gml"], ["g.gml:2", "end of the file"]),
    ("a node of GML without id", {"g.gml": 'graph [\n\nnode [ label "a" ] ]'}, ["data", "info", "g.gml"],
     ["g.gml:3", "node with 'id'"]),
    ("an edge of GML to nowhere", {"g.gml": "graph [ node [ id 0 ]\nedge [ source 0 target 4 ] ]"}, ["data", "info", "g.gml"],
     ["g.gml:2", "the id of a node", "got 4"]),
    ("an id of GML twice", {"g.gml": "graph [ node [ id 0 ]\nnode [ id 0 ] ]"}, ["data", "info", "g.gml"], ["g.gml:2", "0 again"]),
    ("a word of GML without quotes", {"g.gml": "graph [ node [ id zero ] ]"}, ["data", "info", "g.gml"], ["g.gml:1", "'zero'"]),
    ("a quote of GML that stays open", {"g.gml": 'graph [\nnode [ id 0 label "a ] ]'}, ["data", "info", "g.gml"],
     ["g.gml:2", "ends with a quote"]),
    ("a node of GML that is a number", {"g.gml": "graph [ node 7 ]"}, ["data", "info", "g.gml"], ["g.gml:1", "expected ["]),
    ("GML with other signs", {"g.gml": "graph = {}"}, ["data", "info", "g.gml"], ["g.gml:1", "'='"]),
    ("lists of GML without end", {"g.gml": "x [ " * 5000}, ["data", "info", "g.gml"], ["g.gml:1", "64 deep"]),
    ("GML in another encoding", {"g.gml": 'graph [ node [ id 0 label "M\xe4rz" ] ]'.encode("latin-1")}, ["data", "info", "g.gml"],
     ["g.gml", "UTF-8"]),
    # Folders of the Open Graph Benchmark
    ("a graph of no node", ogb(raw__num_node_list="0\n"), ["data", "info", "ogb"], ["num-node-list.csv:1", "1 or more", "got 0"]),
    ("an edge of three ends", ogb(raw__edge="0,1\n1,2,3\n"), ["data", "info", "ogb"], ["edge.csv:2", "2 cells", "got 3"]),
    ("a header where there is none", ogb(raw__edge="src,dst\n0,1\n"), ["data", "info", "ogb"], ["edge.csv:1", "'src'", "no header"]),
    ("an edge beyond the nodes", ogb(raw__edge="0,1\n1,2\n2,9\n"), ["data", "info", "ogb"], ["edge.csv:3", "[0, 4)", "got 9"]),
    ("fewer edges than announced", ogb(raw__edge="0,1\n1,2\n"), ["data", "info", "ogb"], ["edge.csv", "3 rows", "got 2"]),
    ("features of too few nodes", ogb(raw__node_feat="1,2\n"), ["data", "info", "ogb"], ["node-feat.csv", "4 rows", "got 1"]),
    ("a feature that is no number", ogb(raw__node_feat="1,2\n3,nan\n5,6\n7,8\n"), ["data", "info", "ogb"],
     ["node-feat.csv:2", "finite", "nan"]),
    ("labels of too many tasks", ogb(raw__node_label="0,1\n" * 4), ["data", "info", "ogb"], ["node-label.csv", "one label"]),
    ("no labels", ogb(raw__node_label=None), ["data", "info", "ogb"], ["ogb/raw", "node-label.csv.gz", "--task links"]),
    ("a split beyond the nodes", ogb(split__s__test="7\n"), ["data", "info", "ogb"], ["test.csv:1", "[0, 4)", "got 7"]),
    ("a node in two parts", ogb(split__s__test="3\n2\n"), ["data", "info", "ogb"], ["test.csv:2", "one part", "2 again"]),
    ("half a split", ogb(split__s__valid=None), ["data", "info", "ogb"], ["split/s", "valid.csv.gz"]),
    ("no list of edges", ogb(raw__edge=None), ["data", "info", "ogb"], ["ogb/raw", "edge.csv.gz"]),
    ("an empty table", ogb(raw__node_feat=""), ["data", "info", "ogb"], ["node-feat.csv", "empty file"]),
    # Links
    ("too few edges to hold some out", {"e.csv": "src,dst\na,b\nb,c\n"}, ["train", "e.csv", "--task", "links", "--out", "o"],
     ["e.csv", "at least 10 edges", "got 2"]),
    ("a graph where all edges are there", {"e.csv": "src,dst\n" + "".join(f"{i},{j}\n" for i in range(6) for j in range(i))},
     ["train", "e.csv", "--task", "links", "--out", "o"], ["e.csv", "without an edge", "got 0"]),
    ("an edge in a part that is none", {"e.csv": "src,dst,split\n" + "".join(f"{i},{i + 1},trian\n" for i in range(20))},
     ["train", "e.csv", "--task", "links", "--out", "o"], ["e.csv: row 1: column 'split'", "'trian'"]),
    ("edges of no test part", {"e.csv": "src,dst,split\n" + "".join(f"{i},{i + 1},{'train' if i else 'val'}\n" for i in range(20))},
     ["train", "e.csv", "--task", "links", "--out", "o"], ["e.csv: column 'split'", "in test"]),
    ("pairs of unknown nodes", {"p.csv": "src,dst\nn1,zoe\n"}, ["predict", "run", "--pairs", "p.csv"],
     ["p.csv:2: column 'dst'", "'zoe'"]),
    ("a pair of one node", {"p.csv": "src,dst\nn1,n2\nn1,n1\n"}, ["predict", "run", "--pairs", "p.csv"],
     ["p.csv:3", "two different nodes"]),
    ("no pair at all", {"p.csv": "src,dst\n"}, ["predict", "run", "--pairs", "p.csv"], ["p.csv", "at least one pair"]),
    # What is known of edges
    ("features of too few edges", {"g.npz": arrays(edge_attr=npy("<f4", (2, 1), [1, 2]))}, ["data", "info", "g.npz"],
     ["'edge_attr'", "shape [8]", "first of 2"]),
    ("edges that are none", {"g.npz": arrays(edge_attr=npy("<f4", (1, 1), [1]), listed_edges=npy("<i8", (1, 2), [0, 9]))},
     ["data", "info", "g.npz"], ["'listed_edges': [0, 1]", "[0, 8)", "got 9"]),
    ("words that are not there", {"g.npz": arrays(edge_attr=npy("<f4", (8, 1), [0, 1, 2, 3, 4, 5, 6, 7]),
                                                  edge_words_0=npy("|u1", (4,), [97, 0, 98, 0]))},
     ["data", "info", "g.npz"], ["'edge_attr'", "2 words", "got 2"]),
    # Where results go
    ("many graphs as one", {"m/nodes.csv": "graph,id,x\n" + "".join(f"{g},{i},{i}\n" for g in "abcd" for i in range(2)),
                            "m/edges.csv": "graph,src,dst\n" + "".join(f"{g},0,1\n" for g in "abcd"),
                            "m/graphs.csv": "graph,label\na,1.5\nb,2\nc,2.5\nd,1\n"},
     ["data", "convert", "m", "--out", "m.graphml"], ["m.graphml", "one graph", "many graphs", ".npz"]),
]
# Refusals of settings, which say why instead of what was expected.
SETTINGS = [
    (["train", "e.csv", "--task", "links", "--target", "x", "--out", "o"], ["data.target", "leave the setting out"]),
    (["train", "e.csv", "--task", "links", "--set", "data.split=1", "--out", "o"], ["data.split", "data.split_seed"]),
    (["train", "e.csv", "--task", "link", "--out", "o"], ["data.task", "expected one of", "links", "got 'link'"]),
    (["train", "own", "--set", "data.text=color", "--out", "o"], ["data.text", "'color'", "did you mean 'colour'?"]),
    (["train", "g.npz", "--set", "data.text=colour", "--out", "o"], ["data.text", "no table", "leave the setting out"]),
    (["predict", "other", "--pairs", "e.csv"], ["--pairs", "task links", "leave it out"]),
    (["predict", "other", "--top", "3"], ["--top", "task links", "leave it out"]),
]


class BadInputs(BadInput):
    def put_files(self, files):
        for name, content in files.items():
            if isinstance(content, dict):
                program.write_npz(self.folder / name, content)
            else:
                self.write(name, content)

    def train_links(self):
        self.write("ring.csv", RING)
        self.succeed("train", "ring.csv", "--task", "links", "--quiet", "--out", "run", *TINY)

    def test_each_of_the_list_is_refused_in_one_line(self):
        self.train_links()
        for what, files, args, phrases in CASES:
            with self.subTest(what):
                self.put_files(files)
                self.refuse(args, *phrases, "expected ", ", got ", "; ")
                for name in files:
                    (self.folder / name).unlink()

    def test_there_are_forty_of_them_and_no_two_alike(self):
        self.assertGreaterEqual(len(CASES), 40)
        self.assertEqual(len({what for what, *_ in CASES}), len(CASES))
        self.assertEqual(len({str((files, args)) for _, files, args, _ in CASES}), len(CASES))

    def test_settings_that_mean_nothing_there(self):
        self.write_tables()
        self.write("e.csv", RING)
        program.write_npz(self.folder / "g.npz", program.graph_arrays())
        self.succeed("train", "own", "--quiet", "--out", "other", *TINY)
        for args, phrases in SETTINGS:
            self.refuse(args, *phrases)

    def test_a_file_of_somebody_else_stays(self):
        self.write_tables()
        for name in ("mine.json", "mine.graphml", "mine.gml"):
            self.write(name, "something dear to me\n")
            self.refuse(["data", "convert", "own", "--out", name], name)


if __name__ == "__main__":
    unittest.main()
