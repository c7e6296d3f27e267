# SPDX-License-Identifier: MIT
"""./dev as a module, to test its parts."""

import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from unittest import mock

DEV = Path(__file__).resolve().parents[2] / "dev"


def load_dev():
    loader = importlib.machinery.SourceFileLoader("dev", str(DEV))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("dev", loader))
    with mock.patch.object(sys, "dont_write_bytecode", True):
        loader.exec_module(module)
    return module
