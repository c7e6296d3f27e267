# SPDX-License-Identifier: MIT
"""./dev sanitize fails on a race, and when it could not have seen one."""

import io
import sys
import tempfile
import unittest
from contextlib import redirect_stderr
from pathlib import Path

from load_dev import load_dev

# A stand-in for the program under the thread sanitizer: two tests. SEES: those in which a planted race is
# reported; FINDS: whether there is one that nobody planted.
FAKE_PROGRAM = '''#!{python}
import os, sys

if "--gtest_list_tests" in sys.argv:
    print("Running main() from gtest_main.cc\\nThreads/0.  # TypeParam = float\\n  Rows\\nGelu.\\n  Numbers")
    sys.exit(0)
test = next((word.split("=")[1] for word in sys.argv if word.startswith("--gtest_filter=")), "")
planted = "MPSSM_PLANTED_RACE" in os.environ
if planted and test in {sees} or not planted and {finds}:
    print("WARNING: ThreadSanitizer: data race (pid=1)", file=sys.stderr)
    sys.exit(66)
'''


class CheckThreads(unittest.TestCase):
    def check(self, sees, finds=False):
        """What it says, and the code it ends with (0: it went on)."""
        dev = load_dev()
        said = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, redirect_stderr(said):
            dev.ROOT = dev.LOGS = Path(folder)
            program = Path(folder) / "fake"
            program.write_text(FAKE_PROGRAM.format(python=sys.executable, sees=sees, finds=finds))
            program.chmod(0o755)
            try:
                dev.check_threads(program)
                return said.getvalue(), 0
            except SystemExit as end:
                return said.getvalue(), end.code

    def test_passes_when_every_planted_race_is_seen(self):
        said, code = self.check(["Threads/0.Rows", "Gelu.Numbers"])
        self.assertEqual(code, 0, said)
        self.assertIn("a planted race seen in each of 2 tests", said)

    def test_fails_when_a_planted_race_is_not_seen(self):
        said, code = self.check(["Threads/0.Rows"])
        self.assertEqual(code, 1, said)
        self.assertIn("does not see the race planted in: Gelu.Numbers", said)

    def test_fails_on_a_race_that_nobody_planted(self):
        said, code = self.check(["Threads/0.Rows", "Gelu.Numbers"], finds=True)
        self.assertEqual(code, 1, said)
        self.assertIn("tsan failed", said)


if __name__ == "__main__":
    unittest.main()
