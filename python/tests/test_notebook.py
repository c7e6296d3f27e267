# SPDX-License-Identifier: MIT
"""A training in a real notebook kernel shows one line that moves."""

import re

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

CELL = """
import numpy as np
import mpssm

x = np.random.default_rng(0).normal(size=(200, 3))
ring = np.array([np.arange(200), (np.arange(200) + 1) % 200])
model = mpssm.NodeRegressor(channels=8, blocks=1, epochs=30{}).fit(x, x[:, 0], ring)
"""


def outputs(options=""):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL.format(options))])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    return notebook.cells[0].outputs


def test_progress_is_one_bar_that_ends_full():
    (shown,) = outputs()
    assert shown.output_type == "display_data"
    assert re.match(r"\[#{24}\] 30/30 \d+ s  loss .*validation .*best ", shown.data["text/plain"])
    assert '<progress value="30" max="30">' in shown.data["text/html"]


def test_progress_can_be_told_to_be_quiet():
    assert outputs(", verbose=False") == []
