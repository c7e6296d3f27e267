# SPDX-License-Identifier: MIT
"""engine_bench writes the rows it promises, with a peak of memory that belongs to the contender and
a share of the machine's roofs."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

PROGRAM = os.environ["ENGINE_BENCH"]


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)


def rows_of(pattern, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.json"
        done = run("--quick", "--only", pattern, "--json", str(file), *arguments)
        if done.returncode != 0:
            raise RuntimeError(done.stdout + done.stderr)
        return json.loads(file.read_text())


# The graph of the short round: 2906 edges and self-loops.
NODES = 2000
ENTRIES = 2 * 2906 + NODES


class EngineBench(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rows = {row["contender"]: row for row in rows_of("training-diagonal")}

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

    def test_bf16_is_beside_float32_of_ours_and_of_torch(self):
        rows = [row["contender"] for row in rows_of("forward-dense-bf16")]
        self.assertEqual(rows[:3], ["mpssm bf16", "mpssm auto", "torch bag"])

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

    def test_roofs_are_rows_with_a_rate(self):
        rows = rows_of("roof-*")
        self.assertEqual([row["case"].removeprefix("roof-") for row in rows],
                         ["fma", "read-l2", "read-l3", "read-dram",
                          "gather-3MB", "gather-26MB", "gather-128MB"])
        for row in rows:
            self.assertEqual(row["contender"], "machine")
            self.assertEqual(row["unit"], "GFLOP/s" if row["case"] == "roof-fma" else "GB/s")
            self.assertGreater(row["rate"], 0)
            self.assertGreaterEqual(row["milliseconds_median"], row["milliseconds"])

    def expect_share(self, row, **work):
        for key in ("flops", "gathered_bytes"):
            self.assertEqual(row.get(key), work.get(key), row["case"])
        self.assertGreater(row["roof_milliseconds"], 0)
        self.assertAlmostEqual(row["share_of_roof"], row["roof_milliseconds"] / row["milliseconds"])

    def test_products_know_their_share_of_the_roof(self):
        for row in rows_of("*-2000-*"):
            if row["case"].startswith("spmm-"):
                self.expect_share(row, gathered_bytes=4 * ENTRIES * 32)
            elif row["case"].endswith("-bf16"):  # the roof is that of floats
                self.assertNotIn("share_of_roof", row)
            else:
                self.assertIn(row["case"], ("gemm-2000-c64", "gram-2000-c64"))
                self.expect_share(row, flops=2 * NODES * 64 * 64)

    def test_plans_know_their_share_of_the_roof(self):
        hops = 16
        for name, row in self.rows.items():
            if name.startswith("torch"):  # may do its work in another way
                self.assertNotIn("share_of_roof", row)
            else:
                self.expect_share(row, gathered_bytes=2 * hops * 4 * ENTRIES * 64)
        rows = {row["contender"]: row for row in rows_of("training-dense")}
        gathered, product = 2 * hops * 4 * ENTRIES * 64, 3 * 2 * NODES * 64 * 64
        self.expect_share(rows["mpssm stepwise"], gathered_bytes=gathered, flops=hops * product)
        # 17 = 10001 in binary: four doublings, one increment.
        self.expect_share(rows["mpssm doubling"], gathered_bytes=gathered, flops=5 * product)

    def test_roofs_of_one_thread_are_none_of_two(self):
        for row in rows_of("gram-*", "--threads", "2"):
            self.assertNotIn("share_of_roof", row)

    def test_sizes_are_compared_by_the_cost_of_an_entry(self):
        first, *others = rows_of("grids-forward")
        self.assertEqual(first["ratio"], 1.0)
        self.assertEqual(len(others), 2)
        for row in others:
            cost, unit = (r["milliseconds"] / r["gathered_bytes"] for r in (row, first))
            self.assertAlmostEqual(row["ratio"], cost / unit)


if __name__ == "__main__":
    unittest.main()
