# SPDX-License-Identifier: MIT
"""engine_bench writes the rows it promises, with a peak of memory that belongs to the contender."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

PROGRAM = os.environ["ENGINE_BENCH"]


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)


class EngineBench(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows.json"
            done = run("--quick", "--only", "training-diagonal", "--json", str(file))
            if done.returncode != 0:
                raise RuntimeError(done.stdout + done.stderr)
            cls.rows = {row["contender"]: row for row in json.loads(file.read_text())}

    def test_contenders_are_diagonal_all(self):
        self.assertEqual(list(self.rows), ["mpssm auto", "mpssm diagonal", "torch csr", "torch bag",
                                           "torch bag, slices of 32"])

    def test_rows_have_what_is_promised(self):
        ours = self.rows["mpssm auto"]["milliseconds"]
        for row in self.rows.values():
            self.assertEqual(row["case"], "training-diagonal")
            self.assertAlmostEqual(row["ratio"], row["milliseconds"] / ours)
            self.assertGreaterEqual(row["milliseconds_median"], row["milliseconds"])
            self.assertEqual(row["threads"], 1)
            self.assertEqual(len(row["load"]), 2)
            self.assertTrue(row["simd"] and row["machine"] and row["libtorch"])

    def test_peak_is_that_of_the_contender_alone(self):
        # 2000 nodes, 64 channels: torch keeps at least the products of 16 hops, we one state.
        array = 2000 * 64 * 4 / 2**20
        ours, torch = (self.rows[name]["peak_mib"] for name in ("mpssm auto", "torch csr"))
        self.assertGreater(torch - self.rows["torch csr"]["arguments_mib"], 16 * array)
        self.assertLess(ours, 0.7 * torch)
        self.assertGreater(ours, 2 * array)

    def test_peak_is_measured_in_a_process_of_its_own(self):
        # Whoever is measured second in one process finds the buffers of the first.
        alone = run("--quick", "--one", "training-diagonal", "torch csr").stdout.split()
        self.assertEqual(len(alone), 2)
        self.assertAlmostEqual(float(alone[1]) / self.rows["torch csr"]["peak_mib"], 1.0, delta=0.2)

    def test_a_pattern_picks_cases(self):
        done = run("--quick", "--only", "spmm-*")
        self.assertEqual(done.returncode, 0, done.stderr)
        cases = {line.split()[0] for line in done.stdout.splitlines()[2:]}
        self.assertEqual(cases, {"spmm-2000-degree2.9-c32"})

    def test_unknown_case_is_refused(self):
        done = run("--quick", "--only", "gone")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no case 'gone'", done.stderr)


if __name__ == "__main__":
    unittest.main()
