# SPDX-License-Identifier: MIT
"""plan_bench times every plan that a problem leaves open, and says how good the planner's choice was."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

PROGRAM = os.environ["PLAN_BENCH"]


def result_of(*arguments):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "result.json"
        done = subprocess.run([PROGRAM, "--quick", "--json", str(file), *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stdout + done.stderr)
        return json.loads(file.read_text()), done.stdout


class PlanBench(unittest.TestCase):
    def test_ratios_are_those_of_the_times(self):
        result, text = result_of()
        self.assertEqual(len(result["rows"]), result["problems"])
        for row in result["rows"]:
            times = row["milliseconds"]
            self.assertGreaterEqual(len(times), 2)
            self.assertIn(row["auto"], times)
            self.assertAlmostEqual(row["ratio"], times[row["auto"]] / min(times.values()), places=6)
            self.assertEqual(set(row["planned"]), set(times))
        self.assertEqual(result["good"], sum(row["ratio"] <= 1.1 for row in result["rows"]))
        self.assertIn(f"in {result['good']} of {result['problems']} problems", text)

    def test_problems_do_not_depend_on_what_was_measured(self):
        builtin, measured = (result_of(*arguments)[0] for arguments in ((), ("--calibrate",)))
        self.assertEqual([row["problem"] for row in builtin["rows"]], [row["problem"] for row in measured["rows"]])
        self.assertFalse(builtin["calibrated"])
        self.assertNotEqual(builtin["prices"], measured["prices"])

    def test_wrong_words(self):
        for arguments in (["--fast"], ["--rounds"]):
            self.assertEqual(subprocess.run([PROGRAM, *arguments], capture_output=True).returncode, 2)


if __name__ == "__main__":
    unittest.main()
