#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The program does what its help promises: train, evaluate, predict, data, tune, stop and go on."""

import csv
import io
import json
import os
import pty
import re
import shutil
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

    def test_stdout_of_json_is_json_alone(self):
        self.write_tables(nodes=SPLIT_NODES, edges=SPLIT_EDGES)
        out = self.succeed("train", "own", "--out", "run", "--json", "--set", "seed=7", *TINY).out
        record = json.loads(out)
        self.assertEqual((record["run"], record["seed"]), ("run", 7))
        self.assertIn(record["best_step"], (1, 2, 3))
        for part in ("val", "test"):
            self.assertIn(record["metrics"][part]["roc_auc"], (0.0, 0.5, 1.0))
        self.assertGreater(record["seconds"], 0)
        self.assertGreater(record["peak_mib"], 1)
        self.assertEqual(json.loads(self.read("run/record.json"))["metrics"], record["metrics"])
        out = self.succeed("evaluate", "run", "--json").out
        self.assertEqual(json.loads(out)["metrics"], record["metrics"]["test"])
        for args in (["data", "list"], ["data", "info", "own"], ["train", "own", "--explain"], ["evaluate", "run", "run"],
                     ["train", "own", "--out", "many", "--seeds", "0-1", *TINY],
                     ["tune", "own", "--grid", "model.hops=1,2", *TINY]):
            with self.subTest(args):
                self.assertEqual(self.succeed(*args, "--json").out.count("\n"), 1)

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

    def test_the_best_of_a_search_is_a_config_to_train_with(self):
        result = self.succeed("tune", "board:6x6", "--out", "t", "--grid", "model.hops=1,2", "--splits", "0,1", "--seeds",
                              "0-1", *TINY)
        self.assertIn("best on validation of 2 settings tried", result.out)
        self.assertIn("next: mpssm train --config t/best.toml", result.err)
        self.assertEqual(len(list((self.folder / "t").rglob("record.json"))), 8)
        outcome = json.loads(self.read("t/tune.json"))
        self.assertEqual((outcome["settings_tried"], outcome["runs"]), (2, 4))
        self.succeed("train", "--config", "t/best.toml", "--out", "best", "--quiet")
        self.assertIn(outcome["best"][0].split("=")[1], self.read("best/config.toml").decode())
        self.assert_same_run("best", f"t/{outcome['best'][0].split('.')[1]}/split-0-seed-0")

    def test_a_search_needs_no_grid_and_stops_when_time_is_up(self):
        self.write_tables(nodes=SPLIT_NODES, edges=SPLIT_EDGES)
        outcome = json.loads(self.succeed("tune", "own", "--random", "3", "--out", "t", "--json", "--set", "train.epochs=2").out)
        self.assertEqual((outcome["settings_tried"], outcome["settings_planned"]), (3, 3))
        self.assertTrue((self.folder / "t/defaults/split-0-seed-0/record.json").exists())
        result = self.succeed("tune", "own", "--minutes", "0.02", "--out", "u", "--set", "train.epochs=100000", "--set",
                              "train.patience=0")
        self.assertIn("time is up; go on with the same command", result.err)
        self.assertFalse(list((self.folder / "u").rglob("record.json")))
        self.assertEqual(len(list((self.folder / "u").rglob("state.safetensors"))), 1)

    def test_halving_trains_the_best_third_longer(self):
        args = ["tune", "board:6x6", "--out", "t", "--grid", "model.hops=1,2,3", "--halving", "--json", *TINY, "--set",
                "train.epochs=9"]
        outcome = json.loads(self.succeed(*args).out)
        self.assertEqual(outcome["settings_tried"], 3)
        rows = rows_of(self.read("t/trials.csv").decode())
        self.assertEqual(sorted(int(row["epochs"]) for row in rows), [3, 3, 3, 9])
        self.assertEqual(rows[0]["settings"], outcome["best"][0])
        self.assertEqual(rows[0]["epochs"], "9")

    def test_several_runs_are_evaluated_together(self):
        self.succeed("train", "board:6x6", "--quiet", "--out", "many", "--seeds", "0-2", *TINY)
        summary = json.loads(self.succeed("evaluate", "many", "--json").out)
        tests = [json.loads(path.read_text())["metrics"]["test"]["roc_auc"]
                 for path in (self.folder / "many").rglob("record.json")]
        mean = summary["means"]["roc_auc"]
        self.assertEqual(summary["count"], 3)
        self.assertAlmostEqual(mean["mean"], sum(tests) / 3)
        self.assertLess(mean["low"], mean["mean"])
        self.assertAlmostEqual(mean["high"] - mean["mean"], 4.302653 * mean["std"] / 3 ** 0.5, places=5)
        several = self.succeed("evaluate", "many/split-0-seed-0", "many/split-0-seed-2")
        self.assertIn("95 % interval", several.out)
        self.write_tables()
        self.succeed("train", "own", "--quiet", "--out", "own-run", "--set", "train.metric=loss", *TINY)
        self.assertIn("sum up runs of one task", self.run_program("evaluate", "many", "own-run").err)

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


class Terminal(Usage):
    def test_help_is_a_verb_too(self):
        self.assertEqual(self.succeed("help").out, self.succeed("--help").out)
        self.assertEqual(self.succeed("help", "train").out, self.succeed("train", "--help").out)
        self.assertEqual(self.succeed("help", "data", "info").out, self.succeed("data", "info", "--help").out)
        refusal = self.run_program("help", "trian")
        self.assertEqual(refusal.code, 1)
        self.assertIn("no verb 'trian'", refusal.err)

    def complete(self, *words):
        """What bash offers for the last word."""
        script = self.succeed("completion", "bash").out
        ask = script + f"compopt() {{ :; }}; COMP_WORDS=(mpssm {' '.join(words)}); " \
            f"[ ${{#COMP_WORDS[@]}} -le {len(words)} ] && COMP_WORDS+=(''); COMP_CWORD={len(words)}; _mpssm; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        run = subprocess.run(["bash", "-c", ask], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return set(run.stdout.split())

    def test_bash_completes_what_the_program_takes(self):
        self.assertEqual(self.complete("tra"), {"train"})
        self.assertLessEqual({"data", "train", "tune", "help"}, self.complete("''"))
        self.assertEqual(self.complete("train", "--expl"), {"--explain"})
        self.assertEqual(self.complete("train", "--set", "model.hops_"), {"model.hops_per_step="})
        self.assertEqual(self.complete("data", "inf"), {"info"})
        self.assertEqual(self.complete("data", "info", "--tar"), {"--target"})
        self.assertEqual(self.complete("train", "minesw"), {"minesweeper"})

    def test_every_option_of_the_help_is_completed(self):
        scripts = {shell: self.succeed("completion", shell).out for shell in ("bash", "zsh", "fish")}
        for verb in (["train"], ["tune"], ["evaluate"], ["predict"], ["sensitivity"], ["reproduce"], ["data", "info"]):
            for option in set(re.findall(r"^ +(?:-\w,)?--([a-z-]+)", self.succeed(*verb, "--help").out, re.MULTILINE)):
                for shell, script in scripts.items():
                    self.assertIn(f"-l {option} " if shell == "fish" else f"--{option}", script, (verb, shell))
        for shell, check in (("bash", ["bash", "-n"]), ("zsh", ["zsh", "-n"]), ("fish", ["fish", "-n"])):
            if shutil.which(shell):
                path = self.write("script." + shell, scripts[shell])
                self.assertEqual(subprocess.run([*check, path], capture_output=True, text=True).stderr, "")

    def on_terminal(self, *args, **environment):
        """What the program writes to a terminal."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([program.PROGRAM, *args], cwd=self.folder, stdout=theirs, stderr=theirs,
                                   env={**os.environ, "TERM": "xterm", **environment})
        os.close(theirs)
        text = b""
        try:
            while piece := os.read(ours, 65536):
                text += piece
        except OSError:
            pass  # the other end is closed
        os.close(ours)
        process.wait()
        return text.decode()

    def test_colours_on_a_terminal_only_and_not_against_the_will(self):
        self.assertIn("\033[1;31mmpssm:\033[0m", self.on_terminal("evaluate", "nothing"))
        self.assertIn("\033[1m", self.on_terminal("data", "list"))
        for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertNotIn("\033[", self.on_terminal("data", "list", **environment))
        result = self.run_program("evaluate", "nothing")
        self.assertNotIn("\033[", result.out + result.err)


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
