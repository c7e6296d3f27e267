#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A run pins its data: changed files are noticed, and nothing is standardised, numbered or split anew."""

import csv
import io
import json
import unittest

import program
import refusal
from program import TINY

COLOURS = ("red", "green", "blue")
CLASSES = ("a", "b", "c")


def table(count=60, change=None):
    """A ring in three classes; `change` may alter the row of cells of each node."""
    rows = []
    for i in range(count):
        row = [f"n{i}", f"{(7 * i) % 13 / 4}", COLOURS[i % 3], CLASSES[(i + i // 7) % 3]]
        rows.append(change(i, row) if change else row)
    return "id,height,colour,label\n" + "".join(",".join(row) + "\n" for row in rows)


def ring(count=60):
    return "src,dst\n" + "".join(f"n{i},n{(i + 1) % count}\n" for i in range(count))


def one_cell(i, row):
    return [row[0], "3.125", *row[2:]] if i == 5 else row


def rows_of(text):
    return {row["id"]: row for row in csv.DictReader(io.StringIO(text))}


class Pinned(refusal.BadInput):
    def setUp(self):
        super().setUp()
        self.write_tables(nodes=table(), edges=ring())
        self.succeed("train", "own", "--quiet", "--out", "run", "--set", "model.hops=1", *TINY)
        self.before = self.succeed("predict", "run").out

    def change(self, nodes):
        self.write("own/nodes.csv", nodes)

    def own_metrics(self, *args):
        return json.loads(self.succeed("evaluate", "run", "--json", *args).out.splitlines()[-1])


class ChangedFiles(Pinned):
    def test_every_verb_stops_and_says_what_changed(self):
        self.change(table(change=one_cell))
        for args in (["evaluate", "run"], ["predict", "run"], ["sensitivity", "run", "--target", "n3"],
                     ["evaluate", "run/model.safetensors"]):
            self.refuse(args, "nodes.csv has changed", "--data", "put the old file back")

    def test_a_renamed_class_a_blank_label_and_moved_columns_are_changes(self):
        moved = "\n".join(",".join((cells[0], cells[2], cells[1], cells[3]))
                          for cells in (line.split(",") for line in table().splitlines()))
        for nodes in (table().replace(",a\n", ",zebra\n"), table().replace("n7,2.5,green,c", "n7,2.5,green,"), moved):
            self.assertNotEqual(nodes, table())
            self.change(nodes)
            self.refuse(["evaluate", "run"], "nodes.csv has changed")

    def test_edges_count_too(self):
        self.write("own/edges.csv", ring() + "n0,n9\n")
        self.refuse(["predict", "run"], "edges.csv has changed")

    def test_data_that_are_gone(self):
        (self.folder / "own").rename(self.folder / "moved")
        self.refuse(["evaluate", "run"], "not there any more", "say with --data where they are now")
        self.assertEqual(self.succeed("predict", "run", "--data", "moved").out, self.before)

    def test_the_folder_keeps_fingerprints_columns_classes_and_split(self):
        kept = json.loads((self.folder / "run" / "data.json").read_text())
        self.assertEqual([file["path"].rsplit("/", 1)[1] for file in kept["files"]], ["nodes.csv", "edges.csv"])
        self.assertEqual([column["name"] for column in kept["columns"]], ["height", "colour"])
        self.assertEqual(kept["class_names"], list(CLASSES))
        split = {row["id"]: row["split"] for row in rows_of(self.before).values()}
        names = ("train", "val", "test", "")
        self.assertEqual([names[int(part)] for part in kept["parts"]], [split[f"n{i}"] for i in range(60)])


class Resumed(refusal.BadInput):
    LONG = ["--set", "train.epochs=100000", "--set", "model.channels=4", "--set", "model.blocks=1",
            "--set", "train.checkpoint_seconds=0.01"]

    def test_other_data_do_not_go_on(self):
        self.write_tables(nodes=table(), edges=ring())
        process = program.start(["train", "own", "--quiet", "--out", "run", *self.LONG], self.folder)
        while not (self.folder / "run" / "state.safetensors").exists():
            self.assertIsNone(process.poll())
        process.kill()
        process.communicate()
        (self.folder / "run" / ".mpssm-lock").unlink()
        for path in (self.folder / "run").glob(".*.tmp-*"):
            path.unlink()
        self.write("own/nodes.csv", table(change=lambda i, row: [*row[:3], CLASSES[i % 2]]))
        self.refuse(["train", "run", "--resume", "--quiet"], "nodes.csv has changed", "another --out")


class MeasuredCosts(refusal.BadInput):
    """What plans are chosen by is measured once per machine, and stays with the run."""

    MEASURED = ["--set", "model.plan_costs=measured", "--set", "model.hops=3", *TINY]

    def setUp(self):
        super().setUp()
        self.write_tables(nodes=table(), edges=ring())

    def costs_of_training(self, out):
        self.succeed("train", "own", "--quiet", "--out", out, *self.MEASURED)
        lines = (self.folder / out / "config.toml").read_text().splitlines()
        return next(line for line in lines if line.startswith("plan_costs")).split("=", 1)[1].strip().strip("\"'")

    def kept(self):
        return list((self.folder / ".cache" / "mpssm").glob("plan-costs-*.txt"))

    def test_the_machine_is_measured_once_and_the_run_keeps_the_prices(self):
        costs = self.costs_of_training("first")
        self.assertRegex(costs, r"^call=[0-9.e+-]+ task=")
        [file] = self.kept()
        self.assertEqual(file.read_text().splitlines()[1], costs)
        # Other prices, as another measurement would find: new runs go by them, the old one by its own.
        other = costs.replace("call=", "call=1", 1)
        file.write_text(file.read_text().replace(costs, other))
        self.assertEqual(self.costs_of_training("second"), other)
        before = self.succeed("predict", "first").out
        file.unlink()
        self.assertEqual(self.succeed("predict", "first").out, before)
        self.assertEqual(self.kept(), [])

    def test_what_cannot_be_read_is_measured_anew(self):
        self.costs_of_training("first")
        [file] = self.kept()
        machine = file.read_text().splitlines()[0]
        for text in ("", "another machine\ncall=1\n", machine, f"{machine}\ncall=1 task=nan\n"):
            file.write_text(text)
            costs = self.costs_of_training(f"after-{len(text)}")
            self.assertEqual(file.read_text(), f"{machine}\n{costs}\n")

    def test_what_cannot_be_kept_is_not_measured_at_every_start(self):
        self.write(".cache", "a file where a folder should be")
        self.assertEqual(self.costs_of_training("first"), self.costs_of_training("second"))

    def test_a_list_that_is_none(self):
        self.refuse(["train", "own", "--quiet", "--set", "model.plan_costs=cheap"], "model.plan_costs", "call=NUMBER",
                    "builtin")


class NewData(Pinned):
    def test_sensitivity_answers_about_changed_data(self):
        question = ["sensitivity", "run", "--target", "n3", "--json"]
        before = self.succeed(*question).out
        self.assertEqual(self.succeed(*question, "--data", "own").out, before)
        self.write("own/edges.csv", ring() + "n3,n9\n")
        self.refuse(question, "edges.csv has changed", "--data")
        self.assertNotEqual(self.succeed(*question, "--data", "own").out, before)
        self.refuse(["sensitivity", "own", "--data", "own"], "--data is for a run")

    def test_changed_data_are_read_with_the_learned_columns(self):
        self.change(table(change=one_cell))
        after = rows_of(self.succeed("predict", "run", "--data", "own").out)
        before = rows_of(self.before)
        moved = {name for name in before if after[name]["p(a)"] != before[name]["p(a)"]}
        self.assertEqual(moved, {"n4", "n5", "n6"})  # one hop

    def test_nothing_is_called_test(self):
        self.change(table(change=one_cell))
        result = self.succeed("evaluate", "run", "--data", "own")
        self.assertIn("labelled", result.out)
        self.assertNotIn("test", result.out)
        self.assertEqual(self.own_metrics("--data", "own")["part"], "labelled")
        self.assertNotIn("split", self.succeed("predict", "run", "--data", "own").out.splitlines()[0])
        self.refuse(["evaluate", "run", "--data", "own", "--part", "val"], "--part")

    def test_the_same_files_keep_their_parts(self):
        (self.folder / "own").rename(self.folder / "copy")
        self.write_tables(nodes=table(), edges=ring())
        own = self.own_metrics()
        copy = self.own_metrics("--data", "copy")
        self.assertEqual((copy["part"], copy["metrics"]), ("test", own["metrics"]))

    def test_unknown_categories_are_counted_as_other(self):
        self.change(table(change=lambda i, row: [row[0], row[1], "pink" if i < 4 else row[2], row[3]]))
        result = self.succeed("predict", "run", "--data", "own")
        self.assertIn("4 cell(s) hold 1 value(s) that training has not seen, such as 'pink'", result.err)
        self.assertIn('"other"', result.err)

    def test_a_new_class_stops_evaluate_and_not_predict(self):
        self.change(table(change=lambda i, row: [*row[:3], "d"] if i == 2 else row))
        self.refuse(["evaluate", "run", "--data", "own"], "known classes", "'d'")
        result = self.succeed("predict", "run", "--data", "own")
        self.assertIn("never seen", result.err)
        rows = rows_of(result.out)
        self.assertEqual(rows["n2"]["label"], "")
        self.assertEqual({name: row["p(a)"] for name, row in rows.items()},
                         {name: row["p(a)"] for name, row in rows_of(self.before).items()})

    def test_an_npz_with_more_classes(self):
        arrays = program.graph_arrays()
        self.write_npz("g.npz", arrays)
        self.succeed("train", "g.npz", "--quiet", "--out", "two", *TINY)
        arrays["node_labels"] = program.npy("<i8", (8,), [0, 0, 0, 0, 1, 1, 1, 5])
        self.write_npz("g.npz", arrays)
        self.refuse(["predict", "two"], "g.npz has changed")
        self.refuse(["evaluate", "two", "--data", "g.npz"], "expected a class in [0, 2)")
        self.assertIn("never seen", self.succeed("predict", "two", "--data", "g.npz").err)

    def write_npz(self, name, arrays):
        program.write_npz(self.folder / name, arrays)


class OnValidation(program.ProgramTest):
    def test_it_is_said_that_the_val_part_judges_nothing(self):
        program.write_npz(self.folder / "s.npz", program.series_arrays())
        result = self.succeed("train", "s.npz", "--quiet", "--out", "run", "--set", "train.on_validation=true", *TINY)
        self.assertIn("the val part is trained on", result.err)
        self.assertIn("the val part is trained on", self.succeed("evaluate", "run", "--part", "val").err)


class PackedCodes(refusal.BadInput):
    """Graphs whose nodes have codes: how many each column may hold is learned, too."""

    GRAPHS, NODES = 12, 4

    def arrays(self, first, second):
        """Codes of graph 0 as given, those of the others 0 and 1."""
        nodes = self.GRAPHS * self.NODES
        codes = [code for i in range(nodes) for code in ((first[i], second[i]) if i < self.NODES else (i % 2, i // 2 % 2))]
        return {"node_ptr": program.npy("<i8", (self.GRAPHS + 1,), [self.NODES * g for g in range(self.GRAPHS + 1)]),
                "edge_ptr": program.npy("<i8", (self.GRAPHS + 1,), [2 * g for g in range(self.GRAPHS + 1)]),
                "edge_src": program.npy("<i4", (2 * self.GRAPHS,), [0, 1] * self.GRAPHS),
                "edge_dst": program.npy("<i4", (2 * self.GRAPHS,), [1, 0] * self.GRAPHS),
                "atom_feat": program.npy("|u1", (nodes, 2), codes),
                "labels": program.npy("<f4", (self.GRAPHS, 1), [g % 3 + 0.5 for g in range(self.GRAPHS)])}

    def predictions(self, *args):
        return [float(row["predicted_labels0"] if "predicted_labels0" in row else row["predicted_labels"])
                for row in csv.DictReader(io.StringIO(self.succeed("predict", "run", *args).out))]

    def setUp(self):
        super().setUp()
        program.write_npz(self.folder / "g.npz", self.arrays((0, 1, 2, 0), (0, 1, 0, 1)))
        self.succeed("train", "g.npz", "--quiet", "--out", "run", *TINY)

    def test_new_graphs_are_read_with_the_learned_columns(self):
        before = self.predictions()
        # As many codes in all, but one fewer in the first column and one more in the second.
        program.write_npz(self.folder / "new.npz", self.arrays((0, 1, 0, 1), (0, 1, 2, 0)))
        after = self.predictions("--data", "new.npz")
        for old, new in zip(before[1:], after[1:]):
            self.assertAlmostEqual(old, new, 5)
        note = self.succeed("predict", "run", "--data", "new.npz").err
        self.assertIn("column 1: 1 code(s) of 2 and more", note)
        self.assertIn('"other"', note)

    def test_graphs_of_another_kind_are_refused(self):
        arrays = self.arrays((0, 1, 2, 0), (0, 1, 0, 1))
        nodes = self.GRAPHS * self.NODES
        arrays["atom_feat"] = program.npy("|u1", (nodes, 1), [i % 2 for i in range(nodes)])
        program.write_npz(self.folder / "new.npz", arrays)
        self.refuse(["predict", "run", "--data", "new.npz"], "expected the 2 columns", "got 1")
        del arrays["atom_feat"]
        arrays["node_features"] = program.npy("<f4", (nodes, 5), [0.5] * (5 * nodes))
        program.write_npz(self.folder / "new.npz", arrays)
        self.refuse(["predict", "run", "--data", "new.npz"], "atom_feat", "as in training")

    def test_a_hostile_vocabulary(self):
        header, data = program.read_safetensors(self.folder / "run" / "model.safetensors")
        for vocabulary in ([3, -1], [3, 2 ** 31 - 1], [0, 5]):
            kept = {**json.loads(header["__metadata__"]["data"]), "vocabulary": vocabulary}
            changed = {**header, "__metadata__": {**header["__metadata__"], "data": json.dumps(kept)}}
            program.write_safetensors(self.folder / "hostile.safetensors", changed, data)
            self.refuse(["predict", "hostile.safetensors"], "cannot be read")


class Encodings(refusal.BadInput):
    """What the graph and its edges say of nodes: the same when a run is opened again, and on other data."""

    def setUp(self):
        super().setUp()
        edges = "src,dst,kind\n" + "".join(f"n{i},n{(i + 1) % 60},{'xyz'[i % 3]}\n" for i in range(60))
        self.write_tables(nodes=table(), edges=edges)
        self.edges = edges
        self.train("run")

    def train(self, folder):
        self.succeed("train", "own", "--quiet", "--out", folder, "--set", "data.encodings=rwse:4,lap:3,degree,edges",
                     "--set", "train.ema=0.9", *TINY)

    def test_a_run_predicts_the_same_when_it_is_opened_again_and_on_its_data_elsewhere(self):
        before = (self.folder / "run" / "predictions.csv").read_text()
        again = self.succeed("predict", "run").out
        self.assertEqual(again, before)
        (self.folder / "own").rename(self.folder / "moved")
        self.assertEqual(self.succeed("predict", "run", "--data", "moved").out, before)

    def test_they_are_on_the_card(self):
        card = json.loads((self.folder / "run" / "card.json").read_text())
        self.assertEqual(card["encodings"], {"name": "rwse:4,lap:3,degree,edges", "features": 4 + 3 + 1 + 3})

    def test_other_data_are_encoded_in_the_same_way(self):
        # The same graph twice: each half is predicted as the whole was, whatever the names of its kinds' order.
        self.succeed("evaluate", "run")
        rows = table().splitlines()
        nodes = "\n".join(rows + ["m" + row[1:] for row in rows[1:]]) + "\n"
        lines = self.edges.splitlines()
        edges = "\n".join([lines[0]] + [line.replace("n", "m") for line in lines[1:]] + lines[1:]) + "\n"
        self.write("twice/nodes.csv", nodes)
        self.write("twice/edges.csv", edges)
        once = rows_of(self.succeed("predict", "run").out)
        twice = rows_of(self.succeed("predict", "run", "--data", "twice").out)
        for name, row in once.items():
            for other in (name, "m" + name[1:]):
                for column in ("p(a)", "p(b)", "p(c)"):
                    self.assertAlmostEqual(float(twice[other][column]), float(row[column]), places=3, msg=other)

    def test_what_does_not_go_is_refused(self):
        self.refuse(["train", "own", "--set", "data.encodings=rwse:0"], "data.encodings", "rwse:1 to rwse:256")
        self.refuse(["train", "own", "--set", "data.encodings=walks"], "data.encodings", "rwse:K, lap:K, degree, edges")
        self.refuse(["train", "board:8x8", "--set", "data.encodings=edges"], "data.encodings", "nothing is known")
        self.refuse(["advise", "run", "--remove", "n3,n4"], "data.encodings")
        self.write("twice/nodes.csv", table())
        self.write("twice/edges.csv", ring())
        self.refuse(["predict", "run", "--data", "twice"], "expected a column 'kind'")


class ManyReadoutLayers(program.ProgramTest):
    def test_outputs_are_those_of_the_last_layer_not_of_the_ninth(self):
        graphs, nodes = 12, 4
        arrays = {"node_ptr": program.npy("<i8", (graphs + 1,), [nodes * g for g in range(graphs + 1)]),
                  "edge_ptr": program.npy("<i8", (graphs + 1,), [2 * g for g in range(graphs + 1)]),
                  "edge_src": program.npy("<i4", (2 * graphs,), [0, 1] * graphs),
                  "edge_dst": program.npy("<i4", (2 * graphs,), [1, 0] * graphs),
                  "node_features": program.npy("<f4", (nodes * graphs, 1), [i % 5 / 4 for i in range(nodes * graphs)])}
        program.write_npz(self.folder / "unlabelled.npz", arrays)
        arrays["labels"] = program.npy("<f4", (graphs, 2), [i % 3 / 2 + 0.1 for i in range(2 * graphs)])
        program.write_npz(self.folder / "g.npz", arrays)
        self.succeed("train", "g.npz", "--quiet", "--out", "run", *TINY, "--set", "model.readout_layers=12")
        header = self.succeed("predict", "run", "--data", "unlabelled.npz").out.splitlines()[0]
        self.assertEqual(header.count("predicted"), 2, header)


class HostileModels(Pinned):
    def test_class_names_that_do_not_fit_the_model(self):
        header, data = program.read_safetensors(self.folder / "run" / "model.safetensors")
        for names in ([], ["a"], ["a", "b", "c", "d"]):
            kept = json.loads(header["__metadata__"]["data"])
            kept["class_names"] = names
            changed = {**header, "__metadata__": {**header["__metadata__"], "data": json.dumps(kept)}}
            program.write_safetensors(self.folder / "hostile.safetensors", changed, data)
            self.refuse(["predict", "hostile.safetensors"], "class name(s)")

    def test_parts_that_are_none(self):
        header, data = program.read_safetensors(self.folder / "run" / "model.safetensors")
        for parts in ("9" * 60, "0" * 59):
            kept = json.loads(header["__metadata__"]["data"])
            kept["parts"] = parts
            changed = {**header, "__metadata__": {**header["__metadata__"], "data": json.dumps(kept)}}
            program.write_safetensors(self.folder / "hostile.safetensors", changed, data)
            self.refuse(["predict", "hostile.safetensors"])


if __name__ == "__main__":
    unittest.main()
