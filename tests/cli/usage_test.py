#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The program does what its help promises: train, evaluate, predict, data, tune, stop and go on."""

import csv
import io
import json
import signal
import subprocess
import time
import unittest

import program
from program import NODES, TINY

RUN_FILES = {"card.json", "config.toml", "data.json", "metrics.csv", "model.safetensors", "state.safetensors",
             "predictions.csv", "record.json", "report.html"}
SPLIT_NODES = ("id,height,colour,label,split\na,1.5,red,yes,train\nb,2.5,blue,no,train\nc,1.0,red,yes,val\n"
               "d,3.5,blue,no,val\ne,2.0,red,yes,test\nf,3.0,blue,no,test\n")
SPLIT_EDGES = program.EDGES + "e,f\n"


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


class Usage(program.ProgramTest):
    def read(self, path):
        return (self.folder / path).read_bytes()

    def assert_same_run(self, one, other):
        for name in ("model.safetensors", "metrics.csv", "predictions.csv"):
            self.assertEqual(self.read(f"{one}/{name}"), self.read(f"{other}/{name}"), name)

    def assert_probabilities(self, rows, ids):
        self.assertEqual([row["id"] for row in rows], list(ids))
        for row in rows:
            self.assertIn(row["predicted"], ("yes", "no"))
            self.assertAlmostEqual(float(row["p(yes)"]) + float(row["p(no)"]), 1.0, places=5)


class ThreeCommands(Usage):
    def test_two_tables_of_five_lines_are_enough(self):
        self.write_tables()
        self.succeed("train", "own", "--out", "run", *TINY)
        self.assertEqual({path.name for path in (self.folder / "run").iterdir()}, RUN_FILES)
        self.assertIn("loss", self.succeed("evaluate", "run").out)
        self.succeed("predict", "run", "--out", "p.csv")
        self.assert_probabilities(rows_of(self.read("p.csv").decode()), "abcde")

    def test_the_run_is_named_by_data_and_time_unless_told(self):
        self.write_tables()
        self.succeed("train", "own", "--quiet", *TINY)
        runs = list((self.folder / "runs").iterdir())
        self.assertEqual(len(runs), 1)
        self.assertRegex(runs[0].name, r"^own-\d{8}-\d{6}$")

    def test_json_is_the_last_line_of_stdout(self):
        self.write_tables(nodes=SPLIT_NODES, edges=SPLIT_EDGES)
        out = self.succeed("train", "own", "--out", "run", "--json", "--set", "seed=7", *TINY).out
        record = json.loads(out.splitlines()[-1])
        self.assertEqual((record["run"], record["seed"]), ("run", 7))
        self.assertIn(record["best_step"], (1, 2, 3))
        for part in ("val", "test"):
            self.assertIn(record["metrics"][part]["roc_auc"], (0.0, 0.5, 1.0))
        self.assertGreater(record["seconds"], 0)
        self.assertGreater(record["peak_mib"], 1)
        self.assertEqual(json.loads(self.read("run/record.json"))["metrics"], record["metrics"])
        out = self.succeed("evaluate", "run", "--json").out
        self.assertEqual(json.loads(out.splitlines()[-1])["metrics"], record["metrics"]["test"])

    def test_stdout_holds_data_only(self):
        self.write_tables()
        self.succeed("train", "own", "--out", "run", *TINY)
        result = self.succeed("predict", "run")
        self.assert_probabilities(rows_of(result.out), "abcde")
        self.assertEqual(result.out.encode(), self.read("run/predictions.csv"))

    def test_every_verb_explains_itself_with_examples(self):
        for verb in ([], ["data"], ["train"], ["evaluate"], ["predict"], ["tune"]):
            with self.subTest(verb):
                self.assertIn("Examples", self.succeed(*verb, "--help").out)
        self.assertRegex(self.succeed("--version").out, r"^mpssm \d+\.\d+\.\d+\n$")
        self.assertIn("train.lr", self.succeed("train", "--keys").out)


class NewData(Usage):
    def test_a_new_graph_with_the_same_columns_is_predicted(self):
        self.write_tables()
        self.succeed("train", "own", "--quiet", "--out", "run", *TINY)
        self.write_tables("new", nodes="id,colour,height\nx,blue,2\ny,green,3\n", edges="src,dst\nx,y\n")
        result = self.succeed("predict", "run", "new")
        self.assert_probabilities(rows_of(result.out), "xy")
        self.assertIn("note: ", result.err)  # green is a colour that it has not learned

    def test_all_labels_of_new_data_without_a_split_are_tested_on(self):
        self.write_tables(nodes=SPLIT_NODES, edges=SPLIT_EDGES)
        self.succeed("train", "own", "--quiet", "--out", "run", *TINY)
        self.write_tables("new", nodes=NODES)
        metrics = json.loads(self.succeed("evaluate", "run", "new", "--json").out.splitlines()[-1])["metrics"]
        self.assertGreater(metrics["loss"], 0.0)
        self.assertIsNotNone(metrics["roc_auc"])

    def test_new_data_have_nothing_to_do_with_the_split_trained_on(self):
        program.write_npz(self.folder / "new.npz", program.graph_arrays(features=7))
        self.succeed("train", "board:6x6", "--quiet", "--out", "run", "--set", "data.split=3", *TINY)
        self.assertEqual(len(rows_of(self.succeed("predict", "run", "new.npz").out)), 8)

    def test_a_run_can_be_used_from_another_folder(self):
        program.write_npz(self.folder / "g.npz", program.graph_arrays())
        self.write_tables()
        (self.folder / "elsewhere").mkdir()
        for dataset in ("g.npz", "own"):
            with self.subTest(dataset):
                self.succeed("train", dataset, "--quiet", "--out", dataset + "-run", *TINY)
                result = program.run(["predict", f"../{dataset}-run"], self.folder / "elsewhere")
                self.assertEqual(result.code, 0, result.err)
                self.assertEqual(result.out.encode(), self.read(f"{dataset}-run/predictions.csv"))

    def test_a_series_is_continued(self):
        program.write_npz(self.folder / "s.npz", program.series_arrays())
        self.succeed("train", "s.npz", "--quiet", "--out", "run", *TINY)
        rows = rows_of(self.succeed("predict", "run").out)
        self.assertEqual([row["node"] for row in rows], ["0", "1", "2"])
        program.write_npz(self.folder / "window.npz", program.series_arrays(steps=4))
        self.assertEqual(len(rows_of(self.succeed("predict", "run", "window.npz").out)), 3)

    def test_new_graphs_need_no_labels_and_no_split(self):
        self.succeed("train", "properties:diameter:8", "--quiet", "--out", "run", *TINY)
        program.write_npz(self.folder / "new.npz", {
            "node_ptr": program.npy("<i8", (2,), [0, 3]),
            "edge_ptr": program.npy("<i8", (2,), [0, 4]),
            "edge_src": program.npy("<i8", (4,), [0, 1, 1, 2]),
            "edge_dst": program.npy("<i8", (4,), [1, 0, 2, 1]),
            "node_features": program.npy("<f4", (3, 2), [1, 0.5, 0, 0.25, 0, 0.75])})
        rows = rows_of(self.succeed("predict", "run", "new.npz").out)
        self.assertEqual(len(rows), 1)
        self.assertTrue(float(rows[0][list(rows[0])[-1]]))


class Data(Usage):
    def test_made_data_are_trained_on_like_the_name(self):
        self.succeed("data", "make", "board:6x7", "--out", "board.npz")
        self.succeed("train", "board:6x7", "--quiet", "--out", "name", *TINY)
        # The name has settings of its own, which its run has written down.
        self.succeed("train", "board.npz", "--quiet", "--out", "file", "--config", "name/config.toml")
        self.assertEqual(self.read("file/predictions.csv"), self.read("name/predictions.csv"))

    def test_import_keeps_what_was_read(self):
        self.write_tables()
        self.succeed("data", "import", "own", "--out", "own.npz")
        self.succeed("data", "import", "own.npz", "--out", "again.npz")
        self.assertEqual(self.read("own.npz"), self.read("again.npz"))
        self.succeed("train", "own", "--quiet", "--out", "tables", *TINY)
        self.succeed("train", "own.npz", "--quiet", "--out", "arrays", *TINY)
        self.assertEqual(self.read("tables/predictions.csv"), self.read("arrays/predictions.csv"))

    def test_list_and_info_tell_in_json_too(self):
        names = [item["name"] for item in json.loads(self.succeed("data", "list", "--json").out.splitlines()[-1])]
        self.assertIn("minesweeper", names)
        info = json.loads(self.succeed("data", "info", "board:6x7", "--json").out.splitlines()[-1])
        self.assertEqual(int(info["nodes"]), 42)


class ManyRuns(Usage):
    def test_seeds_and_splits_are_combined(self):
        args = ["train", "board:6x6", "--quiet", "--out", "many", "--seeds", "0-1", "--splits", "0,2", "--json", *TINY]
        summary = json.loads(self.succeed(*args).out.splitlines()[-1])
        self.assertEqual((summary["count"], len(summary["runs"])), (4, 4))
        self.assertEqual({(run["split"], run["seed"]) for run in summary["runs"]}, {(0, 0), (0, 1), (2, 0), (2, 1)})
        self.assertEqual(json.loads(self.read("many/summary.json"))["test_mean"], summary["test_mean"])

    def test_tune_selects_on_validation_and_uses_finished_trials_again(self):
        args = ["tune", "board:6x6", "--out", "trials", "--grid", "model.hops=1,2", "--json", *TINY]
        first = json.loads(self.succeed(*args).out.splitlines()[-1])
        self.assertIn(first["best"], (["model.hops=1"], ["model.hops=2"]))
        trials = sorted(float(row["val_mean"]) for row in rows_of(self.read("trials/trials.csv").decode()))
        self.assertAlmostEqual(first["val"], trials[-1], places=6)
        states = {path: path.stat().st_mtime_ns for path in (self.folder / "trials").rglob("state.safetensors")}
        self.assertEqual(len(states), 2)
        self.assertEqual(json.loads(self.succeed(*args).out.splitlines()[-1]), first)
        self.assertEqual({path: path.stat().st_mtime_ns for path in states}, states)

    def test_a_full_disk_ends_a_search(self):
        command = ["sh", "-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh", program.PROGRAM, "tune", "board:6x6", "--out",
                   "trials", "--grid", "model.hops=1,2", *TINY]
        result = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write", result.stderr)
        self.assertFalse((self.folder / "trials" / "trials.csv").exists())

    def test_the_number_of_threads_does_not_change_the_result(self):
        for threads in ("1", "2"):
            self.succeed("train", "board:30x30", "--quiet", "--out", "t" + threads, "--threads", threads, "--set",
                         "train.epochs=4")
        self.assert_same_run("t1", "t2")

    def test_another_seed_gives_another_model(self):
        for seed in ("0", "1"):
            self.succeed("train", "board:6x6", "--quiet", "--out", "s" + seed, "--set", "seed=" + seed, *TINY)
        self.assertNotEqual(self.read("s0/model.safetensors"), self.read("s1/model.safetensors"))


class Interruption(Usage):
    ARGS = ["--quiet", "--set", "train.epochs=400", "--set", "train.checkpoint_seconds=0.1", "--set",
            "model.channels=16"]

    def interrupt(self, out):
        """Ctrl-C as soon as there is a checkpoint."""
        process = program.start(["train", "board:12x12", "--out", out, *self.ARGS], self.folder)
        deadline = time.monotonic() + 60
        while not (self.folder / out / "state.safetensors").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        return program.wait(process)

    def test_a_run_that_was_interrupted_ends_like_one_that_was_not(self):
        self.succeed("train", "board:12x12", "--out", "whole", *self.ARGS)
        result = self.interrupt("parts")
        self.assertEqual(result.code, 130, result.err)
        self.assertIn("mpssm train parts --resume", result.err.splitlines()[-1])
        self.assertFalse((self.folder / "parts" / "record.json").exists())
        self.succeed("train", "parts", "--resume", "--quiet")
        self.assert_same_run("whole", "parts")

    def test_resuming_a_finished_run_gives_its_result_again(self):
        first = json.loads(self.succeed("train", "board:6x6", "--out", "run", "--json", *TINY).out.splitlines()[-1])
        again = json.loads(self.succeed("train", "run", "--resume", "--json").out.splitlines()[-1])
        self.assertEqual(again["metrics"], first["metrics"])


if __name__ == "__main__":
    unittest.main()
