#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Settings that nobody has given are chosen from the data, said, and kept; what was given stays."""

import json
import random
import tomllib
import unittest

import program
from program import TINY


class Defaults(program.ProgramTest):
    def setUp(self):
        super().setUp()
        draw = random.Random(3)
        rows = "".join(f"{i},{draw.random():.3f},{'ab'[i % 2]}\n" for i in range(60))
        self.write("own/nodes.csv", "id,x,label\n" + rows)
        self.write("own/edges.csv", "src,dst\n" + "".join(f"{i},{i + 1}\n" for i in range(59)))

    def explained(self, *args):
        result = self.succeed("train", *args, "--explain", "--json")
        self.assertEqual(len(result.out.splitlines()), 1)
        return {one["setting"]: one for one in json.loads(result.out)["choices"]}

    def config(self, run="run"):
        return tomllib.loads((self.folder / run / "config.toml").read_text())

    def test_explain_says_what_it_saw_and_trains_nothing(self):
        before = program.contents(self.folder)
        text = self.succeed("train", "own", "--explain").out
        self.assertEqual(program.contents(self.folder), before)
        self.assertIn("30 labelled nodes to train on", text)
        self.assertIn("59 hops across", text)
        for key in ("model.channels", "model.blocks", "model.hops", "model.dropout", "train.weight_decay", "train.patience",
                    "train.schedule", "train.epochs", "model.gso"):
            self.assertIn(key, text)

    def test_what_is_explained_is_what_is_trained_and_kept(self):
        choices = self.explained("own")
        err = self.succeed("train", "own", "--out", "run").err
        self.assertIn("settings chosen from the data: model.channels=", err)
        config = self.config()
        for key, choice in choices.items():
            section, name = key.split(".")
            value = config[section][name]
            self.assertEqual(str(value).lower() if isinstance(value, bool) else value,
                             type(value)(choice["value"]) if not isinstance(value, bool) else choice["value"], key)

    def test_what_is_given_wins(self):
        self.write("my.toml", "[model]\nblocks = 3\n")
        choices = self.explained("own", "--set", "model.channels=10", "--config", "my.toml")
        self.assertEqual((choices["model.channels"]["value"], choices["model.channels"]["given"]), ("10", True))
        self.assertEqual((choices["model.blocks"]["value"], choices["model.blocks"]["given"]), ("3", True))
        self.assertFalse(choices["model.dropout"]["given"])
        self.succeed("train", "own", "--out", "run", "--quiet", "--set", "model.channels=10", "--config", "my.toml", "--set",
                     "train.epochs=2")
        self.assertEqual((self.config()["model"]["channels"], self.config()["model"]["blocks"]), (10, 3))

    def test_a_run_goes_on_with_what_was_chosen(self):
        self.succeed("train", "own", "--out", "run", "--quiet", *TINY)
        self.succeed("train", "own", "--out", "run", "--quiet", "--resume", *TINY)
        refusal = self.run_program("train", "own", "--out", "run", "--resume", *TINY, "--set", "model.blocks=7")
        self.assertEqual(refusal.code, 1)
        self.assertIn("model.blocks", refusal.err)

    def test_names_have_their_own_settings(self):
        self.assertIn("configs/board.toml", self.succeed("train", "board:6x6", "--explain").out)

    def test_labels_of_val_and_test_choose_nothing(self):
        rows = (self.folder / "own/nodes.csv").read_text().splitlines()
        split = ["split"] + [("train", "val", "test")[i % 3] for i in range(60)]
        self.write("own/nodes.csv", "\n".join(f"{row},{part}" for row, part in zip(rows, split)) + "\n")
        first = self.explained("own")
        flipped = [row.replace(",a,", ",?,").replace(",b,", ",a,").replace(",?,", ",b,") if not row.endswith("train") else row
                   for row in (self.folder / "own/nodes.csv").read_text().splitlines()]
        self.write("own/nodes.csv", "\n".join(flipped) + "\n")
        self.assertEqual(self.explained("own"), first)

    def test_a_series_gets_a_small_network_beside_a_line(self):
        program.write_npz(self.folder / "s.npz", program.series_arrays(steps=60))
        choices = self.explained("s.npz")
        self.assertEqual(choices["model.skip"]["value"], "true")
        self.assertEqual(choices["model.blocks"]["value"], "1")

    def test_learning_by_heart_and_an_early_end_are_said(self):
        # Labels that nothing tells: all that can be learned is learned by heart.
        err = self.succeed("train", "own", "--out", "run", "--set", "model.dropout=0", "--set", "train.weight_decay=0",
                           "--set", "train.epochs=2000", "--set", "train.patience=100", "--set", "train.eval_every=1").err
        self.assertRegex(err, r"note: stopped early, after \d+ of 2000 epochs: no gain on validation in 100 evaluations")
        self.assertRegex(err, r"note: best at step \d+ of \d+: since then the loss of training fell .* learns by heart")


class Longer(program.ProgramTest):
    def test_a_finished_run_is_made_longer(self):
        common = ["board:6x6", "--quiet", "--set", "model.channels=8", "--set", "train.eval_every=2"]
        self.succeed("train", *common, "--out", "whole", "--set", "train.epochs=8")
        self.succeed("train", *common, "--out", "parts", "--set", "train.epochs=4")
        self.succeed("train", "parts", "--resume", "--quiet", "--set", "train.epochs=8")
        for name in ("model.safetensors", "metrics.csv", "predictions.csv"):
            self.assertEqual((self.folder / "parts" / name).read_bytes(), (self.folder / "whole" / name).read_bytes(), name)
        record = json.loads((self.folder / "parts/record.json").read_text())
        self.assertEqual(record["steps"], 8)
        self.assertEqual(tomllib.loads((self.folder / "parts/config.toml").read_text())["train"]["epochs"], 8)

    def test_only_its_length_may_change(self):
        self.succeed("train", "board:6x6", "--quiet", "--out", "run", *TINY)
        before = program.contents(self.folder / "run")
        for setting in ("train.epochs=2", "model.dropout=0.5", "train.lr=1"):
            result = self.run_program("train", "run", "--resume", "--set", setting)
            self.assertEqual(result.code, 1, setting)
            self.assertIn("cannot go on with other settings: " + setting.split("=")[0], result.err)
        self.assertEqual(program.contents(self.folder / "run"), before)


if __name__ == "__main__":
    unittest.main()
