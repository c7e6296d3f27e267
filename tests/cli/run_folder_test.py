#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One writer per run folder, nothing of others is touched, and signals save."""

import os
import signal
import time
import unittest

import program
import refusal
from program import TINY

LONG = ["--set", "train.epochs=1000000", "--set", "model.channels=4", "--set", "model.blocks=1",
        "--set", "train.checkpoint_seconds=0.01"]


class RunFolder(refusal.BadInput):
    def start_long(self, *args, out="run"):
        process = program.start(["train", "board:6x6", "--quiet", "--out", out, *LONG, *args], self.folder)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        while not (self.folder / out / "state.safetensors").exists():
            self.assertIsNone(process.poll(), process.communicate() if process.poll() is not None else "")
            time.sleep(0.01)
        return process


class OneWriter(RunFolder):
    def test_the_second_is_told_who_holds_it_and_the_first_goes_on(self):
        process = self.start_long()
        for args in (["train", "run", "--resume", "--quiet"],
                     ["train", "board:6x6", "--quiet", "--out", "run", *TINY]):
            result = self.run_program(*args)
            self.check_message(result, ["run", f"process {process.pid}"], 1)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(program.wait(process).code, 130)

    def test_a_refused_command_leaves_the_temporary_files_of_the_first(self):
        process = self.start_long()
        process.send_signal(signal.SIGSTOP)
        mark = self.write(f"run/.state.safetensors.tmp-{process.pid}-7", "half")
        self.run_program("train", "board:6x6", "--quiet", "--out", "run", *TINY)
        self.assertEqual(mark.read_text(), "half")
        process.send_signal(signal.SIGCONT)

    def test_the_lock_of_a_dead_process_is_taken_over(self):
        process = self.start_long("--set", "train.epochs=400")
        process.kill()
        process.communicate()
        self.assertTrue((self.folder / "run" / ".mpssm-lock").exists())
        self.write("run/.state.safetensors.tmp-1", "half")
        self.write("run/.keep.tmp-notes", "mine")
        self.succeed("train", "run", "--resume", "--quiet")
        names = {path.name for path in (self.folder / "run").iterdir()}
        self.assertIn(".keep.tmp-notes", names)
        self.assertNotIn(".mpssm-lock", names)
        self.assertNotIn(".state.safetensors.tmp-1", names)


class NothingOfOthers(RunFolder):
    def test_train_does_not_write_over_the_files_of_others(self):
        for name in ("config.toml", "predictions.csv", "record.json", "data.json", "model.safetensors"):
            self.write(f"theirs-{name}/{name}", "precious")
            for more in ([], ["--resume"]):
                self.refuse(["train", "board:6x6", "--quiet", "--out", f"theirs-{name}", *TINY, *more], name)

    def test_a_run_that_never_got_to_a_checkpoint_may_be_started_again(self):
        process = program.start(["train", "board:6x6", "--quiet", "--out", "run", *LONG, "--set",
                                 "train.checkpoint_seconds=1e6"], self.folder)
        while not (self.folder / "run" / "config.toml").exists():
            self.assertIsNone(process.poll())
        process.kill()
        process.communicate()
        self.succeed("train", "board:6x6", "--quiet", "--out", "run", *TINY)

    def test_predict_replaces_predictions_and_nothing_else(self):
        self.write_tables()
        self.succeed("train", "own", "--quiet", "--out", "run", *TINY)
        self.refuse(["predict", "run", "--out", "own/nodes.csv"], "own/nodes.csv", "already")
        self.refuse(["predict", "run", "--out", "run/config.toml"], "config.toml", "already")
        self.succeed("predict", "run", "--out", "p.csv")
        self.succeed("predict", "run", "--out", "p.csv")

    def refuse_to_replace(self, path, *args):
        self.refuse(args, path, "is there already", "choose another name, or remove it first")

    def test_a_picture_replaces_pictures_of_ours_and_nothing_else(self):
        draw = ["sensitivity", "--make", "ring:6", "--source", "0", "--target", "3", "--tau", "1:3", "--plot"]
        for name, content in (("table.csv", "a,b\n"), ("theirs.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>")):
            self.write(name, content)
            self.refuse_to_replace(name, *draw, name)
        self.succeed(*draw, "ours.svg")
        self.succeed(*draw, "ours.svg")

    def test_arrays_replace_arrays_of_ours_and_nothing_else(self):
        program.write_npz(self.folder / "theirs.npz", program.graph_arrays())
        self.write("edges.csv", program.EDGES)
        for name in ("theirs.npz", "edges.csv"):
            self.refuse_to_replace(name, "data", "make", "board:6x6", "--out", name)
        self.refuse_to_replace("theirs.npz", "data", "import", "theirs.npz", "--out", "theirs.npz")
        self.succeed("data", "import", "theirs.npz", "--out", "ours.npz")
        self.succeed("data", "make", "board:6x6", "--out", "ours.npz")
        self.assertIn("36", self.succeed("data", "info", "ours.npz").out)

    def test_what_many_runs_write_together_is_looked_at_before_the_first(self):
        self.write("many/summary.json", '{"mine": 1}')
        self.refuse_to_replace("many/summary.json", "train", "board:6x6", "--seeds", "0-1", "--out", "many", *TINY)
        self.write("search/trials.csv", "mine\n1\n")
        self.refuse_to_replace("search/trials.csv", "tune", "board:6x6", "--grid", "model.hops=1,2", "--out", "search",
                               *TINY)
        self.write("page.md", "# Mine\n")
        self.refuse_to_replace("page.md", "reproduce", "--page", "page.md", "--results", "none")
        self.write("out/quick/results/figure.svg", "<svg/>")
        self.refuse_to_replace("figure.svg", "reproduce", "figure", "--quick", "--out", "out")
        for name in ("runtime", "figure"):
            self.write(f"{name}/quick/results/{name}.json", '{"nodes": [], "links": []}')
            self.refuse(["reproduce", name, "--quick", "--out", name], f"{name}.json", "not a measurement")

    def test_a_failed_start_leaves_no_folder(self):
        self.refuse(["train", "board:6x6", "--quiet", "--out", "out", "--memory-limit", "1"], "MiB")


class Signals(RunFolder):
    def test_each_saves_and_says_so_at_once(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number):
                out = f"run-{number}"
                process = self.start_long(out=out)
                process.send_signal(number)
                result = program.wait(process)
                self.assertEqual(result.code, 130)
                self.assertIn("will save and stop", result.err)
                self.assertIn(f"mpssm train {out} --resume", result.err)
                self.assertFalse((self.folder / out / ".mpssm-lock").exists())

    def test_it_is_said_before_a_long_step_ends(self):
        read, write = os.pipe()
        process = program.start(["train", "board:300x300", "--quiet", "--out", "big", "--set", "model.hops=64"],
                                self.folder, stderr=write)
        os.close(write)
        while not (self.folder / "big" / "config.toml").exists():
            self.assertIsNone(process.poll())
        time.sleep(1.0)  # within the first step, which takes longer
        process.send_signal(signal.SIGTERM)
        self.assertIn(b"will save and stop", os.read(read, 4096))
        self.assertIsNone(process.poll())
        process.kill()
        process.communicate()
        os.close(read)


if __name__ == "__main__":
    unittest.main()
