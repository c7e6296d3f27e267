# SPDX-License-Identifier: MIT
"""Message-passing state-space models: linear recurrences on graphs, on the CPU at full speed."""

from mpssm import distributed, functional, nn, portable, sensitivity
from mpssm._convert import convert
from mpssm._encodings import encode_nodes
from mpssm._engine import num_threads, version
from mpssm.estimators import Forecaster, NodeClassifier, NodeRegressor
from mpssm.functional import recurrence, spmm
from mpssm.gso import Gso
from mpssm.gso_sequence import GsoSequence
from mpssm.run import Run, load

__version__ = version()
__all__ = ["Forecaster", "Gso", "GsoSequence", "NodeClassifier", "NodeRegressor", "Run", "convert",
           "distributed", "encode_nodes", "functional", "load", "nn", "num_threads", "portable", "recurrence",
           "sensitivity", "spmm"]
