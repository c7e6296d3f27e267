#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the commands that the documents show, as a reader would: one block after the other, in an
empty folder, with mpssm on the PATH and no dataset at hand. Blocks that call ./dev are left out."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from program import PROGRAM

ROOT = Path(__file__).resolve().parents[2]


def shell_blocks(document):
    blocks = re.findall(r"^```sh\n(.*?)^```", document.read_text(encoding="utf-8"),
                        re.MULTILINE | re.DOTALL)
    return [block for block in blocks if "./dev" not in block]


class Documents(unittest.TestCase):
    def check(self, name, least):
        blocks = shell_blocks(ROOT / name)
        self.assertGreaterEqual(len(blocks), least)
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "PATH": f"{Path(PROGRAM).parent}:{os.environ['PATH']}"}
            environment.pop("MPSSM_DATA", None)
            for block in blocks:
                run = subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=folder,
                                     env=environment, capture_output=True, text=True, timeout=300)
                self.assertEqual(run.returncode, 0, f"{name}:\n{block}\n{run.stderr}")

    def test_commands_of_the_readme_work(self):
        self.check("README.md", 3)

    def test_commands_of_the_data_page_work(self):
        self.check("docs/data.md", 4)

    def test_commands_of_the_sensitivity_page_work(self):
        self.check("docs/sensitivity.md", 3)


if __name__ == "__main__":
    unittest.main()
