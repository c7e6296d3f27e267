#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A training that is killed and resumed ends like one that was not; tools/kill_resume says so."""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from program import PROGRAM

TOOL = Path(__file__).resolve().parents[2] / "tools" / "kill_resume"
TRAINING = ["board:10x10", "--set", "train.epochs=300", "--set", "model.channels=16", "--set",
            "train.checkpoint_seconds=0.05"]

# A stand-in for mpssm: `train WHAT ... --out FOLDER` takes 40 steps with a checkpoint after each. WHAT
# "instant" has all of it done at once, "forgetful" ends differently when it was resumed.
FAKE_PROGRAM = '''#!{python}
import json, os, struct, sys, time
from pathlib import Path

arguments = sys.argv[2:]
resumes = "--resume" in arguments
folder = Path(arguments[arguments.index("--out") + 1] if "--out" in arguments else arguments[0])
folder.mkdir(exist_ok=True)
config = folder / "config.toml"
what = config.read_text() if config.exists() else arguments[0]

def write(name, content):
    (folder / ("." + name)).write_bytes(content)
    os.rename(folder / ("." + name), folder / name)

def write_state(step):
    position = json.dumps({{"step": step, "finished": step == 40}})
    header = json.dumps({{"__metadata__": {{"position": position}}}}).encode()
    write("state.safetensors", struct.pack("<Q", len(header)) + header)

write("config.toml", what.encode())
step = 0
if (folder / "state.safetensors").exists():
    content = (folder / "state.safetensors").read_bytes()
    step = json.loads(json.loads(content[8:])["__metadata__"]["position"])["step"]
while step < 40:
    step = 40 if what == "instant" else step + 1
    write_state(step)
    time.sleep(0 if what == "instant" else 0.02)
for name in ("model.safetensors", "metrics.csv", "predictions.csv"):
    write(name, b"resumed" if what == "forgetful" and resumes else b"whole")
write("record.json", b"{{}}")
time.sleep(0.2 if what == "instant" else 0)
'''


class KillResume(unittest.TestCase):
    def run_tool(self, *args, program=PROGRAM):
        command = [sys.executable, TOOL, "--program", program, *args]
        return subprocess.run(command, capture_output=True, text=True)

    def run_stand_in(self, *args):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "fake"
            program.write_text(FAKE_PROGRAM.format(python=sys.executable))
            program.chmod(0o755)
            return self.run_tool(*args, program=program)

    def test_three_runs_killed_in_mid_training_end_like_the_unbroken_one(self):
        run = self.run_tool("--times", "3", "--", *TRAINING)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.check_counts(run.stdout, 3)

    def check_counts(self, output, times):
        lines = output.splitlines()
        last = re.fullmatch(rf"{times} of {times} identical, each killed in mid-training \((\d+) such kills\)", lines[-1])
        self.assertTrue(last, output)
        self.assertGreaterEqual(int(last[1]), times)
        counted = [line for line in lines if re.match(r" *\d+: ", line)]
        self.assertEqual(len(counted), times, output)
        for line in counted:
            self.assertRegex(line, r"at step \d+(;|:)")
            self.assertTrue(line.endswith(": identical"), line)

    def test_each_run_that_counts_was_killed_in_mid_training(self):
        run = self.run_stand_in("--times", "12", "--", "steady")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.check_counts(run.stdout, 12)

    def test_a_training_that_is_over_before_it_can_be_killed_is_an_error(self):
        run = self.run_stand_in("--times", "3", "--", "instant")
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn("not caught in mid-training", run.stderr)
        for line in run.stdout.splitlines()[1:]:
            self.assertTrue(line.startswith("not counted: "), line)

    def test_a_resumed_run_that_ends_differently_is_an_error(self):
        run = self.run_stand_in("--times", "2", "--", "forgetful")
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn("differs in model.safetensors, metrics.csv, predictions.csv", run.stdout)
        self.assertTrue(run.stdout.splitlines()[-1].startswith("0 of 2 identical"), run.stdout)

    def test_a_training_that_cannot_run_is_an_error(self):
        run = self.run_tool("--times", "1", "--", "no-such-data")
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertIn("no-such-data", run.stderr)


if __name__ == "__main__":
    unittest.main()
