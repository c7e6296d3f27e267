#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A training whose file operations fail leaves a whole folder and can be resumed; tools/faults says so."""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from program import PROGRAM

TOOL = Path(__file__).resolve().parents[2] / "tools" / "faults"

# A stand-in for mpssm that writes three files and a record. WAY: "hasty" writes in place and so leaves halves
# behind, "careless" does not look whether it worked, "raw" ends with whatever the language says.
FAKE_PROGRAM = '''#!{python}
import os, sys

def write(name, content):
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(file, content[:5])
    os.write(file, content[5:])
    os.close(file)

def main():
    os.makedirs("run", exist_ok=True)
    for name in ("model.safetensors", "metrics.csv", "predictions.csv"):
        empty = bytes([2, 0, 0, 0, 0, 0, 0, 0]) + b"{{}}"
        write("run/" + name, empty if name.startswith("model") else b"step,loss\\n1,0.5\\n")
    write("run/record.json", b'{{"metrics": 1}}')

way = "{way}"
try:
    main()
except OSError as error:
    if way == "raw":
        raise
    if way != "careless":
        sys.exit("mpssm: cannot write: " + str(error))
'''


class Faults(unittest.TestCase):
    def run_tool(self, *args, program=PROGRAM):
        command = [sys.executable, TOOL, "--program", program, *args]
        return subprocess.run(command, capture_output=True, text=True)

    def run_stand_in(self, way):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "fake"
            program.write_text(FAKE_PROGRAM.format(python=sys.executable, way=way))
            program.chmod(0o755)
            return self.run_tool("--kills", "0", program=program)

    def test_some_failures_of_every_kind_leave_whole_folders_and_exact_resumes(self):
        run = self.run_tool("--quick")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        for title in ("train", "resume"):
            summary = rf"^{title}: (\d+) operations tried, \1 ended well, \1 folders whole, \1 resumes exact$"
            found = re.search(summary, run.stdout, re.MULTILINE)
            self.assertTrue(found, run.stdout)
            self.assertGreater(int(found[1]), 5)
        self.assertRegex(run.stdout.splitlines()[-1], r"^(\d+) of \1 identical, each killed in mid-training")

    def test_halves_of_files_are_seen(self):
        run = self.run_stand_in("hasty")
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertRegex(run.stdout, r"write run/metrics.csv \(once, \d+\): metrics.csv is not whole")
        self.assertRegex(run.stdout, r"model.safetensors \(full, \d+\): model.safetensors is not whole")
        self.assertRegex(run.stdout, r"train: (\d+) operations tried, \1 ended well, (?!\1)\d+ folders whole, \1 resumes")

    def test_a_failure_that_was_not_noticed_is_seen(self):
        run = self.run_stand_in("careless")
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertRegex(run.stdout, r"write run/record.json \(once, \d+\): ")
        self.assertRegex(run.stdout, r"create run/predictions.csv \(once, \d+\): predictions.csv is missing")
        self.assertRegex(run.stdout, r"train: (\d+) operations tried, \1 ended well, \d+ folders whole, (?!\1)\d+ res")

    def test_a_raw_message_is_seen(self):
        run = self.run_stand_in("raw")
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertIn("raw message: Traceback", run.stdout)


if __name__ == "__main__":
    unittest.main()
