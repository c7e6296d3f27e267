# SPDX-License-Identifier: MIT
"""tools/check_layers accepts a clean tree and names file and line of each kind of breach."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_layers"
SPDX = "// SPDX-License-Identifier: MIT\n"


class CheckLayers(unittest.TestCase):
    def run_on(self, path, text):
        files = {"mpssm/ops/secret.h": SPDX + "// Private to ops/.\n#include <torch/custom_class.h>\n",
                 "mpssm/analysis/answers.h": SPDX + "#include <vector>\n",
                 "mpssm/analysis/tensors.h": SPDX + "#include <ATen/core/Tensor.h>\n",
                 "mpssm/analysis/models.h": SPDX + '#include "mpssm/analysis/tensors.h"\n'}
        with tempfile.TemporaryDirectory() as root:
            for name, content in {**files, path: text}.items():
                file = Path(root) / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content)
            return subprocess.run([sys.executable, TOOL, "--root", root], capture_output=True, text=True)

    def expect_clean(self, path, text):
        run = self.run_on(path, SPDX + text)
        self.assertEqual((run.returncode, run.stdout), (0, ""), run.stderr)

    def expect_breach(self, path, text, message):
        run = self.run_on(path, SPDX + text)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn(f"{path}:2: ", run.stdout)
        self.assertIn(message, run.stdout)

    def test_downward_includes_pass(self):
        self.expect_clean("mpssm/nn/a.h", '#include <torch/nn.h>\n#include "mpssm/ops/b.h"\n')
        self.expect_clean("mpssm/ops/a.h", "#include <ATen/core/Tensor.h>\n")
        self.expect_clean("mpssm/ops/a.cpp", "#include <ATen/ATen.h>\n")
        self.expect_clean("mpssm/ops/a.cpp", '#include "mpssm/ops/secret.h"\n')
        self.expect_clean("mpssm/graph/a.h", '#include <vector>\n#include "mpssm/kernels/b.h"\n')
        self.expect_clean("mpssm/kernels/a.cpp", '#include "mpssm/kernels/b-inl.h"\n')
        self.expect_clean("mpssm/study/a.cpp", '#include "mpssm/train/b.h"\n#include "mpssm/analysis/b.h"\n')
        self.expect_clean("tests/nn/a.cpp", '#include <iostream>\n#include "mpssm/nn/b.h"\n')

    def test_upward_include_fails(self):
        self.expect_breach("mpssm/graph/a.h", '#include "mpssm/ops/b.h"\n', "allowed: base, graph, kernels")
        self.expect_breach("mpssm/nn/a.cpp", '#include "mpssm/train/b.h"\n', "nn/ includes")
        self.expect_breach("mpssm/train/a.cpp", '#include "mpssm/study/b.h"\n', "train/ includes")
        self.expect_breach("mpssm/nn/a.cpp", '#include "tests/support/b.h"\n', "never included")
        self.expect_breach("mpssm/study/a.cpp", '#include "bench/b.h"\n', "never included")

    def test_torch_where_it_must_not_be_fails(self):
        self.expect_breach("mpssm/kernels/a.cpp", "#include <ATen/Parallel.h>\n", "free of torch")
        self.expect_breach("mpssm/ops/a.h", "#include <torch/nn.h>\n", "public header of ops/")
        self.expect_breach("mpssm/nn/a.h", "#include <torch/torch.h>\n", "costs every includer")

    def test_report_includes_of_analysis_what_knows_no_torch(self):
        self.expect_clean("mpssm/report/a.h", '#include "mpssm/analysis/answers.h"\n')
        for header in ("tensors", "models"):
            self.expect_breach("mpssm/report/a.cpp", f'#include "mpssm/analysis/{header}.h"\n', "brings in <ATen/")

    def test_private_or_relative_header_fails(self):
        self.expect_breach("tests/a.cpp", '#include "mpssm/kernels/b-inl.h"\n', "private")
        self.expect_breach("mpssm/ops/a.h", '#include "mpssm/ops/secret.h"\n', "private to ops/")
        self.expect_breach("mpssm/nn/a.cpp", '#include "mpssm/ops/secret.h"\n', "private to ops/")
        self.expect_breach("mpssm/ops/a.cpp", '#include "b.h"\n', "from the root")

    def test_users_keep_to_themselves_and_the_library(self):
        self.expect_clean("cli/a.cpp", '#include "cli/b.h"\n#include "mpssm/run/experiment.h"\n')
        self.expect_clean("tests/ops/a.cpp", '#include "mpssm/ops/secret.h"\n#include <torch/torch.h>\n')
        self.expect_breach("cli/a.cpp", '#include "bench/measure.h"\n', 'allowed: "cli/..." and "mpssm/..."')
        self.expect_breach("cli/a.cpp", "#include <torch/types.h>\n", "words and options")
        self.expect_breach("bench/a.cpp", '#include "tests/support/tensors.h"\n', 'in bench/')
        self.expect_breach("bench/a.cpp", '#include "mpssm/ops/secret.h"\n', "private to ops/")

    def test_printing_fails_but_not_in_a_comment(self):
        self.expect_breach("mpssm/ops/a.cpp", "#include <iostream>\n", "does not print")
        self.expect_breach("mpssm/ops/a.cpp", 'void f() { std::printf("x"); }\n', "does not print")
        self.expect_clean("mpssm/ops/a.cpp", "// printf(x) would be wrong here\nint snprintf_like;\n")

    def test_missing_licence_line_fails(self):
        run = self.run_on("bench/a.cpp", "int x;\n")
        self.assertEqual(run.returncode, 1)
        self.assertIn("bench/a.cpp:1: ", run.stdout)

    def test_unknown_folder_fails(self):
        run = self.run_on("mpssm/misc/a.h", SPDX)
        self.assertEqual(run.returncode, 1)
        self.assertIn("has no rule", run.stdout)


if __name__ == "__main__":
    unittest.main()
