#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Damaged and hostile files end with one line that says what is wrong and where."""

import gzip
import json
import os
import struct
import unittest
import zipfile
import zlib

import program
from program import NODES, npy, npy_raw
from refusal import BadInput


class BadArrays(BadInput):
    def refuse_arrays(self, *phrases, **changes):
        """The good graph with some arrays replaced, or left out where they are None."""
        arrays = {**program.graph_arrays(), **changes}
        program.write_npz(self.folder / "g.npz", {k: v for k, v in arrays.items() if v is not None})
        self.refuse_file("g.npz", *phrases)

    def refuse_file(self, name, *phrases):
        self.refuse(["data", "import", name, "--out", "new.npz"], name, *phrases)

    def good_file(self):
        path = self.folder / "good.npz"
        program.write_npz(path, program.graph_arrays(), zipfile.ZIP_DEFLATED)
        return path.read_bytes()

    def test_a_file_that_is_no_archive_is_refused(self):
        self.write("text.npz", "no archive at all\n")
        self.refuse_file("text.npz", "expected a zip archive")
        self.write("empty.npz", "")
        self.refuse_file("empty.npz", "expected a zip archive")

    def test_an_archive_cut_off_or_damaged_is_refused(self):
        good = self.good_file()
        self.write("half.npz", good[:len(good) // 2])
        self.refuse_file("half.npz", "cut off")
        self.write("tail.npz", good[-200:])
        self.refuse_file("tail.npz", "damaged zip archive")
        middle = 90  # inside the packed numbers of the first array
        self.write("bits.npz", good[:middle] + bytes([good[middle] ^ 0x55]) + good[middle + 1:])
        self.refuse_file("bits.npz", "node_features")

    def test_a_declared_size_that_cannot_be_true_is_refused(self):
        bomb = bytearray(self.good_file())
        entry = bomb.find(b"PK\x01\x02")
        bomb[entry + 24:entry + 28] = struct.pack("<I", 0xFFFFFF00)
        self.write("bomb.npz", bytes(bomb))
        self.refuse_file("bomb.npz", "'node_features'", str(0xFFFFFF00))

    def test_a_type_that_is_no_number_is_refused(self):
        self.refuse_arrays("'node_features'", "'<c8'", node_features=npy_raw("<c8", "(8, 1)", bytes(64)))
        self.refuse_arrays("'node_features'", "'<U4'", node_features=npy_raw("<U4", "(8, 1)", bytes(128)))
        self.refuse_arrays("'node_labels'", "pickle", node_labels=npy_raw("|O", "(8,)", b"\x80\x04K\x01."))

    def test_a_shape_that_does_not_fit_is_refused(self):
        data = bytes(64)
        for shape in ("(4611686018427387904, 4611686018427387904)", "(99999999999999999999, 2)", "(-8, 2)",
                      "(800000, 2)", "(8, 2", "8"):
            self.refuse_arrays("'node_features'", node_features=npy_raw("<f4", shape, data))
        self.refuse_arrays("'node_features'", "[16]", node_features=npy("<f4", (16,), [0.0] * 16))
        self.refuse_arrays("'node_labels'", "[7]", node_labels=npy("<i8", (7,), [0, 1] * 3 + [0]))
        self.refuse_arrays("at least one node", node_features=npy("<f4", (0, 2), []),
                           node_labels=npy("<i8", (0,), []), edges=npy("<i8", (0, 2), []))

    def test_a_missing_array_is_named(self):
        self.refuse_arrays("'edges'", edges=None)
        self.refuse_arrays("'node_labels'", node_labels=None)
        self.refuse_arrays("'node_features'", node_features=None)

    def test_an_edge_to_no_node_is_refused(self):
        self.refuse_arrays("'edges'", "[1, 0]", "-1", edges=npy("<i8", (2, 2), [0, 1, -1, 2]))
        self.refuse_arrays("'edges'", "[1, 1]", "got 8", edges=npy("<i8", (2, 2), [0, 1, 1, 8]))
        self.refuse_arrays("'edges'", "0.5", edges=npy("<f4", (1, 2), [0.0, 0.5]))
        self.refuse_arrays("nan", edges=npy("<i8", (1, 2), [0, 1]), weights=npy("<f8", (1,), [float("nan")]))

    def test_a_number_that_is_not_finite_is_refused(self):
        values = [0.0] * 16
        values[5] = float("nan")
        self.refuse_arrays("'node_features'", "[2, 1]", "nan", node_features=npy("<f4", (8, 2), values))

    def test_a_label_that_is_no_class_is_refused(self):
        self.refuse_arrays("'node_labels'", "[7]", "-2", node_labels=npy("<i8", (8,), [0, 1] * 3 + [0, -2]))
        self.refuse_arrays("'node_labels'", "[0]", "1000000", node_labels=npy("<i8", (8,), [10**6] + [1] * 7))
        self.refuse_arrays("two classes", node_labels=npy("<i8", (8,), [0] * 8))

    def test_masks_that_overlap_or_are_empty_are_refused(self):
        masks = {"train_masks": npy("|b1", (1, 8), [True] * 8), "val_masks": npy("|b1", (1, 8), [True] + [False] * 7),
                 "test_masks": npy("|b1", (1, 8), [False] * 8)}
        self.refuse_arrays("'val_masks'", "[0, 0]", "train", **masks)
        masks["val_masks"] = masks["test_masks"]
        self.refuse_arrays("split 0", "in val", **masks)


class SmallFilesThatGrow(BadInput):
    """Zeros compress a thousand times and expand as numbers, names, edges and splits."""

    MANY = 200_000_000
    LIMIT_MIB = 512 + 30 + 100  # beside an idle program: what is allowed, for the file, for the rest

    def setUp(self):
        super().setUp()
        program.write_npz(self.folder / "good.npz", program.graph_arrays())
        result, self.idle = program.run_measured(["data", "info", "good.npz"], self.folder)
        self.assertEqual(result.code, 0, result.err)

    def refuse_small(self, arrays, name, shape, count, value=0):
        """`arrays`, and one of that shape that is `count` times one byte."""
        path = self.folder / "small.npz"
        # In pieces: what this process holds counts as the program's, which starts as a copy of it.
        piece = bytes([value]) * (count // 100)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for other, content in arrays.items():
                if other != name:
                    archive.writestr(other + ".npy", content)
            with archive.open(name + ".npy", "w") as file:
                file.write(npy_raw("|u1", shape, b""))
                for _ in range(100):
                    file.write(piece)
        self.assertLess(path.stat().st_size, 250_000)
        result, peak = program.run_measured(["data", "info", path.name], self.folder)
        self.check_message(result, ("small.npz", f"'{name}'", "to become at most", "numpy.savez"), 1)
        self.assertLess(peak - self.idle, self.LIMIT_MIB)

    def refuse_graph(self, name, shape):
        self.refuse_small(program.graph_arrays(), name, shape, self.MANY)

    def test_edges(self):
        self.refuse_graph("edges", f"({self.MANY // 2}, 2)")

    def test_features(self):
        self.refuse_graph("node_features", f"({self.MANY}, 1)")
        self.refuse_graph("node_features", f"(8, {self.MANY // 8})")

    def test_names(self):
        self.refuse_graph("node_ids", f"({self.MANY},)")
        self.refuse_graph("class_names", f"({self.MANY},)")

    def test_splits(self):
        self.refuse_graph("train_masks", f"({self.MANY // 8}, 8)")

    def test_a_matrix_of_ones_as_graph(self):
        nodes = 14_000
        series = {"x": npy_raw("|u1", f"(20, {nodes})", bytes(20 * nodes))}
        self.refuse_small(series, "adj", f"({nodes}, {nodes})", nodes**2, value=1)


class BadTables(BadInput):
    def refuse_tables(self, *phrases, nodes=NODES, edges=program.EDGES):
        name = self.write_tables(f"t{len(list(self.folder.iterdir()))}", nodes, edges)
        self.refuse(["data", "import", name, "--out", "new.npz"], name, *phrases)

    def replace(self, old, new):
        self.assertIn(old, NODES)
        return NODES.replace(old, new)

    def test_rows_that_do_not_fit_the_header_are_refused(self):
        self.refuse_tables("nodes.csv:3:", "expected 4 cells", nodes=self.replace("b,2.5,blue,no", "b,2.5,blue"))
        self.refuse_tables("nodes.csv:4:", "got 5", nodes=self.replace("c,1.0", "c,1,0"))
        self.refuse_tables("nodes.csv:2:", nodes=self.replace("a,1.5,red", 'a,1.5,"red'))
        self.refuse_tables("edges.csv:2:", "expected 2 cells", edges="src,dst\na\n")

    def test_cells_that_no_number_can_hold_are_refused(self):
        for cell in ("inf", "-Infinity", "1e999"):
            self.refuse_tables("nodes.csv:3: column 'height'", f"'{cell}'", "finite", nodes=self.replace("2.5", cell))
        self.refuse_tables("edges.csv:2:", "'1,2,3'", edges="src;dst;weight\na;b;1,2,3\n")
        self.refuse_tables("edges.csv:2:", "'heavy'", edges="src,dst,weight\na,b,heavy\n")

    def test_labels_that_are_no_labels_are_refused(self):
        labels = "id,x,label\na,1,0.5\nb,2,inf\nc,3,0.25\nd,4,1\n"
        self.refuse_tables("nodes.csv:3: column 'label'", "'inf'", nodes=labels, edges="src,dst\na,b\n")
        self.refuse_tables("'label'", "two classes", nodes=NODES.replace(",no", ",yes"))
        self.refuse_tables("'label'", "empty cells", nodes="id,x,label\na,1,\nb,2,\n",
                           edges="src,dst\na,b\n")
        self.refuse_tables("'label'", "id, height, colour, kind", nodes=self.replace("label", "kind"))
        self.refuse_tables("labelled samples", nodes="id,x,label\na,1,u\nb,2,v\n", edges="src,dst\na,b\n")

    def test_ids_that_do_not_match_are_refused(self):
        self.refuse_tables("nodes.csv:5: column 'id'", "'a' again", "line 2", nodes=self.replace("d,3.5", "a,3.5"))
        self.refuse_tables("nodes.csv:5: column 'id'", "got none", nodes=self.replace("d,3.5", ",3.5"))
        self.refuse_tables("edges.csv:3:", "'zoe'", edges="src,dst\na,b\nb,zoe\n")
        self.refuse_tables("nodes.csv", "'id'", nodes=self.replace("id,", "name,"))
        self.refuse_tables("edges.csv", "src", edges="one,two\na,b\n")

    def test_a_missing_table_is_named(self):
        self.refuse_tables("no nodes.csv", nodes=None)
        self.refuse_tables("no edges.csv", edges=None)

    def test_a_split_that_cannot_be_used_is_refused(self):
        head = "id,x,label,split\n"
        self.refuse_tables("nodes.csv:3: column 'split'", "'trian'",
                           nodes=head + "a,1,u,train\nb,2,v,trian\nc,3,u,val\nd,4,v,test\ne,5,u,test\n")
        self.refuse_tables("class 'v' is missing in train",
                           nodes=head + "a,1,u,train\nb,2,v,val\nc,3,u,val\nd,4,v,test\ne,5,u,test\n")
        self.refuse_tables("in test, got none",
                           nodes=head + "a,1,u,train\nb,2,v,train\nc,3,u,val\nd,4,v,val\ne,5,u,val\n")

    def test_free_text_is_refused_with_the_way_out(self):
        rows = "".join(f"{i},we came here {i} times,{'uv'[i % 2]}\n" for i in range(30))
        self.refuse_tables("nodes.csv:2: column 'note'", "free text", "data.ignore=note",
                           nodes="id,note,label\n" + rows, edges="src,dst\n0,1\n")

    def test_columns_that_are_not_there_are_named(self):
        self.write_tables()
        for key in ("ignore", "categorical", "numeric"):
            self.refuse_train("own", ["--set", f"data.{key}=height,hight"], f"data.{key}", "'hight'", "did you mean 'height'?")
        self.refuse_train("own", ["--set", "data.id=name"], "nodes.csv", "'name'", "data.id")
        self.refuse_train("own", ["--target", "labell"], "nodes.csv", "'labell'", "did you mean 'label'?")
        self.refuse_train("own", ["--set", "data.numeric=colour"], "nodes.csv:2: column 'colour'", "finite number", "'red'")
        self.refuse_train("own", ["--set", "data.directed=sideways"], "data.directed", "both, forward, backward")
        program.write_npz(self.folder / "g.npz", program.graph_arrays())
        self.refuse_train("g.npz", ["--set", "data.ignore=height"], "data.ignore", "no table")

    def test_weights_that_differ_are_refused_if_edges_must_count_both_ways(self):
        self.write_tables(edges="src,dst,weight\na,b,1\nb,a,2\n")
        self.refuse_train("own", ["--set", "data.directed=both"], "edges.csv", "backwards", "data.directed=forward")

    def test_a_compressed_table_that_is_none_is_refused(self):
        self.write_tables(nodes=None)
        packed = gzip.compress(NODES.encode())
        for content, phrase in ((b"id,label", "gzip"), (packed[:-9], "cut off"), (packed[:20], "cut off"), (b"", "cut off"),
                                (packed[:30] + b"xxxx" + packed[34:], "gzip"), (gzip.compress(b""), "empty file")):
            self.write("own/nodes.csv.gz", content)
            self.refuse(["data", "info", "own"], "nodes.csv.gz", phrase)
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)  # a thousand times as much as the file
        self.write("own/nodes.csv.gz", b"".join(packer.compress(bytes(1 << 20)) for _ in range(640)) + packer.flush())
        self.refuse(["data", "info", "own"], "nodes.csv.gz", "MiB", "unpack")

    def test_kinds_of_files_that_are_not_read_say_what_to_do(self):
        for name, way in (("d.pt", "numpy.savez"), ("d.pkl", "numpy.savez"), ("d.parquet", "to_csv"),
                          ("d.gexf", "write_graphml"), ("d.xlsx", "CSV"), ("d.h5", "npz")):
            self.write(name, b"anything")
            self.refuse(["data", "info", name], name, "expected", way)

    def test_a_file_that_is_no_table_is_refused(self):
        self.refuse_tables("nodes.csv", nodes=bytes(range(256)) * 8)
        self.refuse_tables("nodes.csv", "empty file", nodes="")
        self.refuse_tables("nodes.csv", "at least one node", nodes="id,x,label\n")
        self.refuse_tables("nodes.csv:1:", "'x' twice", nodes=self.replace("colour", "x").replace("height", "x"))
        self.refuse_tables("edges.csv", edges=b"\x00\x01\x02")

    def test_numbers_beyond_32_bits_are_refused_where_they_stand(self):
        self.refuse_tables("edges.csv:3: column 'weight'", "32 bits", "'1e308'",
                           edges="src,dst,weight\na,b,1\nb,c,1e308\n")
        self.refuse_tables("nodes.csv:3: column 'label'", "32 bits", "'1e308'",
                           nodes="id,x,label\na,1,0.5\nb,2,1e308\nc,3,0.25\nd,4,1\ne,5,1\n")

    def test_a_path_that_leads_nowhere_says_so(self):
        self.refuse(["data", "info", "moved/own"], "moved/own", "got none there")
        self.refuse(["data", "info", "/dev/null"], "/dev/null", "device")
        os.mkfifo(self.folder / "fifo")
        os.symlink("loop", self.folder / "loop")
        for name, what in (("fifo", "pipe"), ("loop", "link")):
            result = self.run_program("data", "info", name)
            self.check_message(result, (name, what), 1)

    def test_a_path_that_cannot_be_read_is_refused(self):
        self.write("notes.txt", "hello")
        self.refuse(["data", "info", "notes.txt"], "notes.txt", "'.txt'")
        (self.folder / "folder.npz").mkdir()
        self.refuse(["data", "info", "folder.npz"], "folder.npz", "nodes.csv")


class BadGraphTables(BadInput):
    """Many graphs as tables."""

    NODES = "graph,id,x\n" + "".join(f"{g},{i},{i}\n" for g in "abcdef" for i in range(3))
    EDGES = "graph,src,dst\n" + "".join(f"{g},0,1\n" for g in "abcdef")
    GRAPHS = "graph,label\n" + "".join(f"{g},{'uv'[i % 2]}\n" for i, g in enumerate("abcdef"))

    def refuse_graphs(self, *phrases, nodes=NODES, edges=EDGES, graphs=GRAPHS):
        for name, content in (("nodes", nodes), ("edges", edges), ("graphs", graphs)):
            self.write(f"many/{name}.csv", content)
        self.refuse(["data", "info", "many"], *phrases)

    def test_rows_of_unknown_graphs_and_nodes(self):
        self.refuse_graphs("nodes.csv:20: column 'graph'", "'z'", "graphs.csv", nodes=self.NODES + "z,0,1\n")
        self.refuse_graphs("nodes.csv", "graph 'g'", "got none", graphs=self.GRAPHS + "g,u\n")
        self.refuse_graphs("edges.csv:8: column 'graph'", "'z'", edges=self.EDGES + "z,0,1\n")
        self.refuse_graphs("edges.csv:8: column 'dst'", "'7'", edges=self.EDGES + "a,0,7\n")
        self.refuse_graphs("nodes.csv:20: column 'id'", "each id once", "'0'", nodes=self.NODES + "a,0,1\n")
        self.refuse_graphs("graphs.csv:8", "'a' again", graphs=self.GRAPHS + "a,u\n")

    def test_an_edge_between_graphs(self):
        nodes = "graph,id,x\n" + "".join(f"{g},{g}{i},{i}\n" for g in "abcdef" for i in range(3))
        self.refuse_graphs("edges.csv:2: column 'dst'", "graph 'a'", "'b1' of graph 'b'", "another name",
                           nodes=nodes, edges="src,dst\na0,b1\n")

    def test_tables_that_do_not_say_which_graph(self):
        self.refuse_graphs("edges.csv", "a column 'graph'", "several graphs", edges="src,dst\n0,1\n")
        self.refuse_graphs("nodes.csv", "'graph'", nodes="id,x\n0,1\n")

    def test_labels_and_splits_of_graphs(self):
        self.refuse_graphs("graphs.csv", "two classes", graphs=self.GRAPHS.replace(",v", ",u"))
        self.refuse_graphs("graphs.csv:3: column 'label_b'", "'maybe'",
                           graphs="graph,label_a,label_b\n" + "".join(f"{g},1,{'no' if g == 'a' else 'maybe'}\n" for g in "abcdef"))
        split = ("train", "val", "train", "test", "val", "test")
        self.refuse_graphs("graphs.csv", "class 'v' is missing in train",
                           graphs="graph,label,split\n" + "".join(f"{g},{'uv'[i % 2]},{split[i]}\n" for i, g in enumerate("abcdef")))

    def test_weights_of_many_graphs(self):
        self.refuse_graphs("edges.csv:2: column 'weight'", "'x'", edges="graph,src,dst,weight\na,0,1,x\n")


class BadSeriesTables(BadInput):
    LONG = "time,node,value\n" + "".join(f"{t},{n},{t % 5}\n" for t in range(30) for n in "ab")
    WIDE = "time,a,b\n" + "".join(f"{t},{t % 5},{t % 3}\n" for t in range(30))
    EDGES = "src,dst\na,b\n"

    def refuse_series(self, *phrases, series=LONG, edges=EDGES, distances=None):
        for name, content in (("series", series), ("edges", edges), ("distances", distances)):
            path = self.write(f"own/{name}.csv", content or "")
            if content is None:
                path.unlink()
        self.refuse(["data", "info", "own"], *phrases)

    def test_times_that_are_none_or_come_twice(self):
        self.refuse_series("series.csv:3: column 'time'", "'later'", "date", series=self.LONG.replace("0,b", "later,b", 1))
        self.refuse_series("series.csv:62: column 'node'", "each node once", "'a'", series=self.LONG + "3,a,1\n")
        self.refuse_series("series.csv:32: column 'time'", "each time once", "'3'", series=self.WIDE + "3,1,1\n")
        self.refuse_series("series.csv", "'time'", series=self.LONG.replace("time,", "when,"))

    def test_values_that_are_none(self):
        self.refuse_series("series.csv:2: column 'value'", "'x'", series=self.LONG.replace("0,a,0", "0,a,x", 1))
        self.refuse_series("series.csv:2: column 'value'", "'1e99'", series=self.LONG.replace("0,a,0", "0,a,1e99", 1))
        self.refuse_series("node 'c'", "got none", series=self.WIDE.replace("\n", ",\n").replace("a,b,\n", "a,b,c\n", 1))
        self.refuse_series("'value'", series="time,node\n1,a\n")
        self.refuse_series("only times", series="time\n1\n2\n")
        self.refuse_series("series.csv", "at least one step", series="time,node,value\n")

    def test_graphs_of_series(self):
        self.refuse_series("edges.csv", "such as 'a'", "'q' is none of them", edges="src,dst\np,q\n".replace("p,q", "q,a"))
        self.refuse_series("edges.csv or distances.csv", edges=None)
        self.refuse_series("distances.csv:2: column 'distance'", "0 or more", "'-3'", edges=None, distances="from,to,distance\na,b,-3\n")
        self.refuse_series("windows", series="time,a,b\n1,2,3\n2,3,4\n")


class BadSeries(BadInput):
    def refuse_series(self, arrays, *phrases, name="s.npz"):
        program.write_npz(self.folder / name, arrays)
        self.refuse(["data", "import", name, "--out", "new.npz"], name, *phrases)

    def refuse_json(self, text, *phrases):
        self.write("s.json", text if isinstance(text, str) else json.dumps(text))
        self.refuse(["data", "import", "s.json", "--out", "new.npz"], "s.json", *phrases)

    def test_a_series_with_infinite_values_or_too_few_steps_is_refused(self):
        values = [1.0] * 90
        values[4] = float("inf")
        self.refuse_series(program.series_arrays(values=values), "step 1, node 1", "inf")
        self.refuse_series(program.series_arrays(steps=5), "windows")
        self.refuse_series(program.series_arrays(steps=2), "steps")
        arrays = program.series_arrays()
        self.refuse_series({"x": arrays["x"]}, "'edges'")

    def test_json_that_is_malformed_is_refused(self):
        self.refuse_json('{"FX": [[1, 2], [3', "expected JSON")
        self.refuse_json("", "expected JSON")
        self.refuse_json("[1, 2]", "expected an object")
        self.refuse_json("[" * 100000, "s.json")
        self.refuse_json({"edges": []}, "'X'")
        self.refuse_json({"FX": [[1, 2], [3]], "edges": []}, "'FX' step 1")
        self.refuse_json({"FX": [[1, "two"]], "edges": []}, "'FX' step 0, node 1")
        self.refuse_json({"FX": [[1, 2]] * 30, "edges": [[0, 2]]}, "'edges' 0", "got 2")
        self.refuse_json({"FX": [[1, 2]] * 30, "edges": [[0, -1]]}, "'edges' 0", "got -1")
        self.refuse_json({"FX": [[1, 2]] * 30, "edges": [[0, 1]], "weights": []}, "'weights'")

    def test_settings_that_a_series_does_not_have_are_refused(self):
        program.write_npz(self.folder / "s.npz", program.series_arrays())
        self.refuse_train("s.npz", ["--set", "data.split=1"], "data.split", "by time")
        self.refuse_train("s.npz", ["--set", "model.kind=gcn"], "model.kind", "gcn")
        self.refuse_train("s.npz", ["--set", "data.lags=40"], "s.npz", "40")
        self.refuse_train("s.npz", ["--set", "train.metric=roc_auc"], "train.metric", "'roc_auc'")


if __name__ == "__main__":
    unittest.main()
