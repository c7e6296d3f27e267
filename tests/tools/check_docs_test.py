# SPDX-License-Identifier: MIT
"""tools/check_docs accepts true statements and names file and line of each kind of lie."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_docs"
FILES = {
    "dev": "def verb_test(args):\n    pass\n",
    "CMakePresets.json": '{"configurePresets": [{"name": "release"}]}',
    "CMakeLists.txt": "add_executable(quickstart)\n",
    "bench/CMakeLists.txt": "mpssm_add_bench(engine)\n",
    "mpssm/ops/spmm.h": "",
    "mpssm/ops/spmm.cpp": "",
    "docs/notation.md": "",
}


class CheckDocs(unittest.TestCase):
    def run_on(self, text, document="README.md"):
        with tempfile.TemporaryDirectory() as root:
            for name, content in {**FILES, document: text}.items():
                file = Path(root) / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content)
            return subprocess.run([sys.executable, TOOL, "--root", root], capture_output=True, text=True)

    def expect_clean(self, text, **where):
        run = self.run_on(text, **where)
        self.assertEqual((run.returncode, run.stdout), (0, ""), run.stderr)

    def expect_lie(self, text, message):
        run = self.run_on("A title\n" + text)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("README.md:2: ", run.stdout)
        self.assertIn(message, run.stdout)

    def test_true_statements_pass(self):
        self.expect_clean("`./dev test -R X`, `mpssm/ops/spmm.{h,cpp}`, `ops/spmm.h`, `spmm.h`, `mpssm/`")
        self.expect_clean("[notation](docs/notation.md#gso), [far](https://example.org/x.md)")
        self.expect_clean("[gso](notation.md), [presets](../CMakePresets.json) `docs/*.md`", document="docs/tour.md")
        self.expect_clean("`build/bin/engine_bench`, `cmake --preset release`, `build/bin/quickstart`")

    def test_what_is_no_path_of_ours_passes(self):
        self.expect_clean("`mpssm/ops/<name>.cpp`, `torch/torch.h`, `x/y`, `edges.csv`, `a.b`, `1/2`")
        self.expect_clean("`build/x`, `mpssm::ops`, `[T, N, C]`, `out.json`")

    def test_missing_path_fails(self):
        self.expect_lie("see `mpssm/ops/gone.h`", "mpssm/ops/gone.h")
        self.expect_lie("see `mpssm/ops/spmm.{h,cc}`", "no such path")
        self.expect_lie("see `gone.cpp`", "gone.cpp")
        self.expect_lie("see `docs/gone/`", "docs/gone/")
        self.expect_lie("see [notation](docs/gone.md)", "broken link")

    def test_missing_verb_preset_or_target_fails(self):
        self.expect_lie("`./dev fly`", "no verb 'fly'")
        self.expect_lie("`cmake --preset gone`", "no preset 'gone'")
        self.expect_lie("`build/bin/gone_bench`", "no target 'gone_bench'")
        self.expect_lie("`cmake --build build --target gone`", "no target 'gone'")

    def test_a_target_of_another_program_is_none_of_ours(self):
        self.assertEqual(self.run_on("`mpssm sensitivity runs/mine --target 17`").returncode, 0)

    def test_verbs_in_fenced_code_are_checked(self):
        run = self.run_on("```sh\n./dev test\n./dev fly\n```\n")
        self.assertEqual((run.returncode, run.stdout), (1, "README.md:3: ./dev has no verb 'fly'\n"))


if __name__ == "__main__":
    unittest.main()
