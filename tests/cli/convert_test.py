#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mpssm convert: the same predictions in another form, or a refusal that says why."""

import json
import unittest

import program
import refusal


class Convert(refusal.BadInput):
    def train(self, run, *settings, data="board:10x10"):
        words = [word for setting in settings for word in ("--set", setting)]
        self.succeed("train", data, "--set", "train.epochs=15", "--set", "model.channels=9", "--set", "model.blocks=2",
                     *words, "--quiet", "--out", run)

    def metrics(self, run):
        return json.loads(self.succeed("evaluate", run, "--json").out)["metrics"]

    def expect_same(self, a, b):
        for name, value in self.metrics(a).items():
            self.assertAlmostEqual(self.metrics(b)[name], value, delta=1e-5 * abs(value), msg=name)

    def test_a_dense_run_becomes_a_diagonal_one_with_the_same_numbers(self):
        for norm in ("none", "layer", "batch"):
            with self.subTest(norm):
                run, out = f"dense-{norm}", f"diagonal-{norm}"
                self.train(run, "model.state=dense", f"model.state_norm={norm}", "model.hops=6")
                text = self.succeed("convert", run, "--to", "diagonal", "--out", out).out
                self.assertIn("cond(V)", text)
                self.assertIn(f"wrote {out}", text)
                self.expect_same(run, out)
                config = (self.folder / out / "config.toml").read_text()
                self.assertIn('state = "diagonal"', config)

    def test_a_series_too(self):
        program.write_npz(self.folder / "s.npz", program.series_arrays(60))
        self.train("dense", "model.state=dense", data="s.npz")
        self.succeed("convert", "dense", "--to", "diagonal", "--out", "diagonal")
        self.expect_same("dense", "diagonal")

    def test_the_new_run_can_be_asked_like_any_other(self):
        self.train("dense", "model.state=dense")
        answer = json.loads(self.succeed("convert", "dense", "--to", "diagonal", "--out", "diagonal", "--json").out)
        self.assertEqual(len(answer["condition"]), 2)
        self.assertGreaterEqual(answer["state_channels"], 10)
        self.assertLess(answer["difference"], 1e-5)
        radius = [json.loads(self.succeed("sensitivity", run, "--json").out)["blocks"][0]["radius"]
                  for run in ("dense", "diagonal")]
        self.assertAlmostEqual(radius[0], radius[1], delta=1e-4)
        views = [json.loads(self.succeed("sensitivity", run, "--multi-hop", "--json").out)["multi_hop"]
                 for run in ("dense", "diagonal")]
        self.assertEqual([len(view) for view in views], [2, 2])
        self.succeed("predict", "diagonal", "--out", "p.csv")
        self.succeed("report", "diagonal")

    def test_what_cannot_be_converted_is_refused(self):
        self.train("stable", "model.channels=8")
        self.train("gcn", "model.kind=gcn")
        self.train("dense", "model.state=dense")
        for args, words in ((["stable", "--to", "diagonal"], ["stable", "diagonal already"]),
                            (["gcn", "--to", "diagonal"], ["model.kind mpssm", "gcn"]),
                            (["dense", "--to", "dense"], ["--to", "expected diagonal"]),
                            (["dense", "--to", "diagonal", "--tolerance", "1e-9"],
                             ["block 1", "condition number", "--tolerance"])):
            self.refuse(["convert", *args, "--out", "out"], *words)
        self.refuse(["convert", "dense", "--to", "diagonal", "--out", "stable"], "stable")


if __name__ == "__main__":
    unittest.main()
