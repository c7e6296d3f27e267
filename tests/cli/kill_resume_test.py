#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A training that is killed and resumed ends like one that was not; tools/kill_resume says so."""

import subprocess
import sys
import unittest
from pathlib import Path

from program import PROGRAM

TOOL = Path(__file__).resolve().parents[2] / "tools" / "kill_resume"
TRAINING = ["board:10x10", "--set", "train.epochs=300", "--set", "model.channels=16", "--set",
            "train.checkpoint_seconds=0.05"]


class KillResume(unittest.TestCase):
    def run_tool(self, *args):
        command = [sys.executable, TOOL, "--program", PROGRAM, *args]
        return subprocess.run(command, capture_output=True, text=True, timeout=300)

    def test_three_killed_runs_end_like_the_unbroken_one(self):
        run = self.run_tool("--times", "3", "--", *TRAINING)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(run.stdout.splitlines()[-1], "3 of 3 identical")
        self.assertEqual(len(run.stdout.splitlines()), 5)

    def test_a_training_that_cannot_run_is_an_error(self):
        run = self.run_tool("--times", "1", "--", "no-such-data")
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertIn("no-such-data", run.stderr)


if __name__ == "__main__":
    unittest.main()
