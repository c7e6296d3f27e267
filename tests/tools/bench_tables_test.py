# SPDX-License-Identifier: MIT
"""tools/bench_tables writes what the recorded benches give, and the pages of this repository are
what it would write."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "bench_tables"


def row(case, contender, milliseconds, ratio, peak_mib, **more):
    return {"case": case, "contender": contender, "milliseconds": milliseconds, "ratio": ratio,
            "milliseconds_median": milliseconds * 1.25, "peak_mib": peak_mib, "threads": 1,
            "load": [1.0, 1.5], "machine": "Abacus, 2 cores", "libtorch": "2.0", **more}


ENGINE = [
    row("spmm-100-degree3-c32", "mpssm", 2.0, 1.0, 1.0, simd="AVX2"),
    row("spmm-100-degree3-c32", "torch bag", 1.0, 0.5, 1.0),
    row("spmm-100-degree3-c128", "mpssm", 2.0, 1.0, 1.0),
    row("spmm-100-degree3-c128", "torch bag", 5.0, 2.5, 1.0),
    row("forward-dense", "mpssm auto", 10.0, 1.0, 50.0),
    row("forward-dense", "torch csr", 40.0, 4.0, 80.0),
    row("training-dense", "mpssm auto", 20.0, 1.0, 100.0),
    row("training-dense", "torch csr", 80.0, 4.0, 900.0),
    row("training-dense-k1024", "mpssm auto", 900.0, 1.0, 170.0),
    row("forward-diagonal", "mpssm auto", 5.0, 1.0, 40.0),
    row("forward-diagonal", "torch csr", 30.0, 6.0, 80.0),
    row("training-diagonal", "mpssm auto", 10.0, 1.0, 60.0),
    row("training-diagonal", "torch csr", 70.0, 7.0, 900.0),
    row("training-diagonal-k1024", "mpssm auto", 900.0, 1.0, 60.0),
]
ROOFS = [
    row("roof-fma", "machine", 4.0, 1.0, 0.0, size="multiply-adds", rate=115.3, unit="GFLOP/s"),
    row("roof-gather-3MB", "machine", 0.5, 1.0, 3.0, size="rows at random", rate=61.7, unit="GB/s"),
]
PEERS = [
    row("spmm-100-degree3-c32", "mpssm", 2.0, 1.0, 1.0, torch_geometric="2.8", scipy="1.17"),
    row("spmm-100-degree3-c32", "SciPy", 6.0, 3.0, 1.0),
    row("spmm-100-degree3-c128", "mpssm", 2.0, 1.0, 1.0),
    row("spmm-100-degree3-c128", "SciPy", 8.0, 4.0, 1.0),
    row("forward-dense", "torch bag, compiled", 32.0, 3.2, 70.0),
    row("forward-dense", "PyG csr", 60.0, 6.0, 70.0),
    row("training-dense", "PyG csr", 160.0, 8.0, 900.0),
    row("forward-diagonal", "PyG csr", 60.0, 12.0, 70.0),
    row("training-diagonal", "PyG csr", 90.0, 9.0, 900.0),
]


class BenchTables(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        self.write("results/bench/engine.json", json.dumps(ENGINE))
        self.write("results/bench/peers.json", json.dumps(PEERS))
        self.write("README.md", "")
        self.write("docs/performance.md", "")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def run_tool(self, *arguments):
        return subprocess.run([sys.executable, TOOL, "--root", self.root, *arguments],
                              capture_output=True, text=True)

    def table(self, what):
        self.write("README.md", f"before\n<!-- bench:{what} -->\nold\n<!-- /bench -->\nafter\n")
        run = self.run_tool()
        self.assertEqual(run.returncode, 0, run.stderr)
        begin, *lines, end = (self.root / "README.md").read_text().splitlines()[1:-1]
        self.assertEqual((begin, end), (f"<!-- bench:{what} -->", "<!-- /bench -->"))
        return lines

    def test_rows_name_minimum_and_median(self):
        self.assertEqual(self.table("rows engine forward-d*")[:4], [
            "| case | contender | min ms | median ms | over ours | peak MiB |",
            "| --- | --- | --- | --- | --- | --- |",
            "| forward-dense | mpssm auto | 10 | 12.5 | 1.00 | 50 |",
            "| forward-dense | torch csr | 40 | 50 | 4.0 | 80 |"])

    def test_headline_takes_the_best_of_each_kind_and_like_for_like(self):
        dense, diagonal = self.table("headline")[2:]
        self.assertEqual(dense, "| dense W, plan doubling | 3.2x (bag, compiled) | 6.0x (csr) | "
                                "4.0x (csr) | 8.0x (csr) | 1.7 |")
        self.assertEqual(diagonal, "| diagonal W, plan diagonal | 6.0x (csr) | 12.0x (csr) | "
                                   "7.0x (csr) | 9.0x (csr) | 1.0 |")

    def test_products_show_where_we_are_slower(self):
        self.assertEqual(self.table("spmm")[2], "| 100, 3 | 32 / 128 | 0.50 / 2.5 | 3.0 / 4.0 |")

    def record_with_roofs(self):
        shares = {("spmm-100-degree3-c32", "mpssm"): 0.7, ("spmm-100-degree3-c128", "mpssm"): 0.858,
                  ("forward-dense", "mpssm auto"): 0.799}
        rows = [{**row, "share_of_roof": shares[row["case"], row["contender"]]}
                if (row["case"], row["contender"]) in shares else row for row in ENGINE]
        self.write("results/bench/engine.json", json.dumps(ROOFS + rows))

    def test_roofs_are_named_with_rate_and_unit(self):
        self.record_with_roofs()
        self.assertEqual(self.table("roofs"), [
            "| roof | one thread | at best |",
            "| --- | --- | --- |",
            "| fma | multiply-adds | 115 GFLOP/s |",
            "| gather-3MB | rows at random | 61.7 GB/s |"])

    def test_shares_of_roofs_stand_where_they_are_known(self):
        self.record_with_roofs()
        self.assertEqual(self.table("rows engine forward-dense"), [
            "| case | contender | min ms | median ms | over ours | peak MiB | % of roof |",
            "| --- | --- | --- | --- | --- | --- | --- |",
            "| forward-dense | mpssm auto | 10 | 12.5 | 1.00 | 50 | 80 |",
            "| forward-dense | torch csr | 40 | 50 | 4.0 | 80 |  |"])
        self.assertNotIn("roof", self.table("rows engine forward-diagonal")[0])
        head, _, line = self.table("spmm")
        self.assertTrue(head.endswith(" | ours, % of roof |"), head)
        self.assertTrue(line.endswith(" | 70 / 86 |"), line)

    def test_roofs_are_no_condition_of_the_contenders(self):
        roofs = [{**roof, "threads": 7} for roof in ROOFS]
        self.write("results/bench/engine.json", json.dumps(roofs + ENGINE))
        self.assertIn("1 thread for", " ".join(self.table("conditions")))

    def test_a_record_may_be_older_than_a_new_case(self):
        old = self.table("new-rows engine gram-* gemm-*")
        self.assertEqual(old, self.table("roofs"))
        self.assertEqual(len(old), 1)
        self.write("results/bench/engine.json",
                   json.dumps(ENGINE + [row("gram-100-c64", "mpssm", 10.0, 1.0, 50.0)]))
        self.assertEqual(self.table("new-rows engine gram-* gemm-*"), self.table("rows engine gram-*"))

    def test_a_roof_without_its_rate_is_refused(self):
        self.write("results/bench/engine.json",
                   json.dumps(ENGINE + [row("roof-fma", "machine", 4.0, 1.0, 0.0)]))
        run = self.run_tool()
        self.assertEqual(run.returncode, 2)
        self.assertIn("roof-fma without 'rate'", run.stderr)

    def test_conditions_are_those_of_the_record(self):
        text = " ".join(self.table("conditions"))
        for part in ("Abacus, 2 cores, AVX2", "libtorch 2.0", "1 thread for", "1.0 and 1.5"):
            self.assertIn(part, text)

    def test_check_finds_a_table_that_was_edited_by_hand(self):
        self.table("rows engine training-dense")
        self.assertEqual(self.run_tool("--check").returncode, 0)
        page = (self.root / "README.md").read_text()
        self.write("README.md", page.replace("| 4.0 |", "| 20.4 |"))
        run = self.run_tool("--check")
        self.assertEqual(run.returncode, 1)
        self.assertIn("README.md: ", run.stdout)
        self.assertIn("20.4", (self.root / "README.md").read_text())

    def test_what_is_missing_is_named(self):
        for text, message in (("<!-- bench:rows engine gone -->\n<!-- /bench -->", "no case gone"),
                              ("<!-- bench:new-rows gone call -->\n<!-- /bench -->", "no file 'gone'"),
                              ("<!-- bench:gone -->\n<!-- /bench -->", "no table 'bench:gone'"),
                              ("<!-- bench:spmm -->\n", "without its")):
            self.write("README.md", text)
            run = self.run_tool()
            self.assertEqual(run.returncode, 2)
            self.assertIn(message, run.stderr)

    def test_pages_are_what_the_recorded_benches_give(self):
        run = subprocess.run([sys.executable, TOOL, "--check"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        for page in ("README.md", "docs/performance.md"):
            self.assertIn("<!-- bench:", (ROOT / page).read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
