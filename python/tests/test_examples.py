# SPDX-License-Identifier: MIT
"""The examples run and show what they say; the documents' Python runs as it is printed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def example(name, *arguments):
    done = subprocess.run([sys.executable, ROOT / "examples" / "python" / name, *arguments],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_node_classification():
    pytest.importorskip("torch_geometric")
    assert float(example("node_classification.py").split()[-1]) > 0.95
    assert float(example("node_classification.py", "--layer", "gcn").split()[-1]) < 0.75


def test_forecast():
    numbers = [float(number) for number in re.findall(r"\d+\.\d+(?:e[-+]\d+)?",
                                                      example("forecast.py"))]
    error, repeat, apart = numbers
    assert error < 0.2 * repeat
    assert apart < 1e-5


def test_influence():
    printed = example("influence.py")
    assert "nothing before hop 7" in printed and "sees 20 of 20 nodes" in printed


def test_river():
    pytest.importorskip("pandas")
    alone, river = [float(number) for number in re.findall(r"R\^2 (-?[\d.]+)",
                                                           example("river.py"))]
    assert river > alone + 0.5


@pytest.mark.parametrize("document", ["README.md", "docs/python.md"])
def test_code_of_the_documents(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert blocks
    exec(compile("\n".join(blocks), document, "exec"), {"__name__": document})
