#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the commands that the documents show, as a reader would: one block after the other, in an
empty folder, with mpssm on the PATH and no dataset at hand. Blocks that call ./dev are left out.

What a document prints right below such a block, as ```text or as a table, is compared with what
the commands wrote to stdout:

- a line of ```text is a line of the output, in the same order; `...` stands for any lines;
- a row of a table whose cells are numbers is a line with just these numbers;
- numbers may differ by TOLERANCE of their size, and by what rounding to the printed digits does:
  another processor rounds in another order, and training multiplies what it does;
- whole numbers may not differ;
- seconds, MiB and the step that was best differ from run to run and from machine to machine: any."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from program import PROGRAM

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TOLERANCE = 0.05
ANY = re.compile(r"\d+(?:\.\d+)? (?=s\b|MiB\b)|(?<=best step )\d+")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def blocks_of(text):
    """(commands, what is printed below them) for each block of commands."""
    block = re.compile(r"^```sh\n(.*?)^```\n+((?:```text\n.*?^```)|(?:\|.*?(?=\n\n|\Z)))?", re.MULTILINE | re.DOTALL)
    return [(commands, printed or "") for commands, printed in block.findall(text) if "./dev" not in commands]


def last_digit(number):
    """The size of one in the last digit: 0.01 for 3.14."""
    digits, _, exponent = number.partition("e")
    return 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))


def is_near(printed, number):
    slack = TOLERANCE * abs(float(number)) + 0.51 * last_digit(printed)
    return abs(float(printed) - float(number)) <= (0 if printed.isdigit() and number.isdigit() else slack)


def is_same(printed, line):
    """Whether a line of a document is a line of the output, but for what may differ."""
    printed, line = (ANY.sub("", " ".join(text.split())) for text in (printed, line))
    if NUMBER.sub("#", printed) != NUMBER.sub("#", line):
        return False
    return all(map(is_near, NUMBER.findall(printed), NUMBER.findall(line)))


def rows_of(printed):
    """The lines to look for, of a text or of a table."""
    if printed.startswith("|"):
        rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in printed.splitlines())
        return [line for row in rows if all(map(NUMBER.fullmatch, row)) for line in ("...", " ".join(row))] + ["..."]
    return [line for line in printed.splitlines()[1:-1] if line.strip()]


def first_difference(printed, output):
    """What the document prints and the output does not have, or None."""
    found = iter([line for line in output.splitlines() if line.strip()])
    skips = False
    for row in rows_of(printed):
        if row == "...":
            skips = True
            continue
        line = next((line for line in found if not skips or is_same(row, line)), None)
        if line is None or not is_same(row, line):
            return f"the document has\n  {row}\nthe output\n  {line}"
        skips = False
    rest = next(found, None)
    return None if skips or rest is None else f"the output goes on with\n  {rest}"


class Documents(unittest.TestCase):
    def check(self, name, least, least_printed=0):
        blocks = blocks_of((ROOT / name).read_text(encoding="utf-8"))
        self.assertGreaterEqual(len(blocks), least)
        self.assertGreaterEqual(sum(bool(printed) for _, printed in blocks), least_printed)
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "PATH": f"{Path(PROGRAM).parent}:{os.environ['PATH']}"}
            environment.pop("MPSSM_DATA", None)
            for block, printed in blocks:
                run = subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=folder,
                                     env=environment, capture_output=True, text=True)
                self.assertEqual(run.returncode, 0, f"{name}:\n{block}\n{run.stderr}")
                if printed:
                    difference = first_difference(printed, run.stdout)
                    self.assertIsNone(difference, f"{name}:\n{block}\n{difference}\nof\n{run.stdout}")

    def test_commands_of_the_readme_work(self):
        self.check("README.md", 3)

    def test_commands_of_the_data_page_work(self):
        self.check("docs/data.md", 4, least_printed=1)

    def test_commands_of_the_page_of_defaults_work(self):
        self.check("docs/defaults.md", 3)

    def test_commands_of_the_report_page_work(self):
        self.check("docs/report.md", 2)

    def test_commands_of_the_advice_page_work(self):
        self.check("docs/advise.md", 3, least_printed=1)

    def test_commands_of_the_sensitivity_page_work(self):
        self.check("docs/sensitivity.md", 3, least_printed=1)

    def test_commands_of_the_page_of_compared_networks_work(self):
        self.check("docs/compared.md", 1)

    def test_commands_of_the_page_of_scale_work(self):
        self.check("docs/scale.md", 4)

    def test_no_document_with_commands_is_left_out(self):
        checked = set(re.findall(r'self\.check\("([^"]+)"', Path(__file__).read_text(encoding="utf-8")))
        checked.add("docs/python.md")  # by python/tests/test_examples.py
        for path in DOCUMENTS:
            if blocks_of(path.read_text(encoding="utf-8")):
                self.assertIn(path.relative_to(ROOT).as_posix(), checked)

    def test_all_that_is_printed_stands_below_its_commands(self):
        for path in DOCUMENTS:
            text = path.read_text(encoding="utf-8")
            compared = [printed for _, printed in blocks_of(text) if printed.startswith("```text")]
            self.assertEqual(len(re.findall("^```text", text, re.MULTILINE)), len(compared), path)


class Comparison(unittest.TestCase):
    """The comparison itself must be able to fail."""

    PRINTED = "```text\nown, best step 12 of 30, 1.5 s\nmae  0.500\n...\nb,2\n```"

    def compare(self, output):
        return first_difference(self.PRINTED, output)

    def test_takes_what_may_differ(self):
        self.assertIsNone(self.compare("own, best step 9 of 30, 22 s\n\nmae 0.508\nx\ny\nb,2\n"))

    def test_sees_what_must_not(self):
        good = "own, best step 12 of 30, 1.5 s\nmae  0.500\nb,2\n"
        self.assertIsNone(self.compare(good))
        for old, new in (("0.500", "0.530"), ("of 30", "of 31"), ("0.500", "0.470"), ("own", "its"), ("b,2", "c,2"), ("b,2\n", ""),
                         ("b,2\n", "b,2\nc,3\n"), ("mae  0.500\n", "")):
            self.assertIsNotNone(self.compare(good.replace(old, new)), (old, new))

    def test_finds_rows_of_a_table(self):
        table = "| k | a |\n|---|---|\n| 1 | 0.5 |\n| 2 | 2e-5 |"
        self.assertIsNone(first_difference(table, "k  a\n1  0.5\n2  2e-05\n"))
        self.assertIsNotNone(first_difference(table, "k  a\n1  0.6\n2  2e-05\n"))
        self.assertIsNotNone(first_difference(table, "k  a\n2  2e-05\n"))

    def test_finds_what_is_printed_below_commands(self):
        text = "```sh\na\n```\n\n```text\nb\n```\n\n```sh\nc\n```\nwords\n\n```sh\n./dev d\n```\n\n| 1 |\n"
        self.assertEqual(blocks_of(text), [("a\n", "```text\nb\n```"), ("c\n", "")])


if __name__ == "__main__":
    unittest.main()
