# SPDX-License-Identifier: MIT
"""The examples run and show what they say; the documents' Python runs as it is printed."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

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


def test_node_classification_of_a_file(tmp_path):
    """The layout of PyTorch Geometric's own npz datasets."""
    pytest.importorskip("torch_geometric")
    draw = np.random.default_rng(0)
    x = draw.normal(size=(300, 4)).astype(np.float32)
    ring = np.stack([np.arange(300), (np.arange(300) + 1) % 300], 1)
    train = draw.random((3, 300)) < 0.5
    np.savez(tmp_path / "ring.npz", node_features=x, node_labels=(x[:, 0] + x[:, 1] > 0).astype(int),
             edges=ring, train_masks=train, val_masks=train & False, test_masks=~train)
    assert float(example("node_classification.py", tmp_path / "ring.npz").split()[-1]) > 0.8
    assert float(example("node_classification.py", "--layer", "gcn",
                         tmp_path / "ring.npz").split()[-1]) > 0.6


def test_two_lines_make_a_gcn_ours():
    """The script of the document, before and after its change, learns the same task."""
    pytest.importorskip("torch_geometric")
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    (diff,) = re.findall(r"^```diff\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    changed = [line for line in diff.splitlines() if line.startswith(("+", "-"))]
    assert len(changed) == 4  # two lines for two
    nodes = torch.arange(12)
    edge_index = torch.stack([torch.cat([nodes[:-1], nodes[1:]]), torch.cat([nodes[1:], nodes[:-1]])])
    for sign in "-+":
        lines = [line[1:] for line in diff.splitlines() if line[:1] in (" ", sign, "")]
        scope = {"torch": torch, "F": torch.nn.functional}
        exec(compile("\n".join(lines), "docs/python.md", "exec"), scope)
        torch.manual_seed(0)
        net = scope["Net"](5, 16, 3)
        x, y = torch.randn(12, 5), torch.randint(3, (12,))
        adam = torch.optim.Adam(net.parameters(), 1e-2)
        losses = []
        for _ in range(60):
            adam.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(x, edge_index), y)
            loss.backward()
            adam.step()
            losses.append(float(loss.detach()))
        assert losses[-1] < 0.7 * losses[0], sign  # made-up labels: that it learns is enough


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
