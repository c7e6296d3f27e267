#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the program in a folder of its own, and writes the files that it reads, byte by byte."""

import collections
import hashlib
import json
import os
import struct
import subprocess
import tempfile
import unittest
import zipfile
from pathlib import Path

import loaded

DEFAULT = Path(__file__).resolve().parents[2] / "build" / "bin" / "mpssm"
PROGRAM = os.path.abspath(os.environ.get("MPSSM") or DEFAULT)
CODES = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "|u1": "B", "|b1": "?"}
TINY = ["--set", "train.epochs=3", "--set", "model.channels=4", "--set", "model.blocks=1"]
NODES = "id,height,colour,label\na,1.5,red,yes\nb,2.5,blue,no\nc,1.0,red,yes\nd,3.5,blue,no\ne,2.0,red,yes\n"
EDGES = "src,dst\na,b\nb,c\nc,d\nd,e\ne,a\n"

LOADED = loaded.Library(PROGRAM)

Result = collections.namedtuple("Result", "code out err")


def environment(folder):
    """Nothing outside the folder is found: no data, no cache."""
    kept = {key: value for key, value in os.environ.items() if key not in ("MPSSM_DATA", "XDG_CACHE_HOME")}
    # c10d asks for the name of every address it connects to: where nobody answers, that takes 5 s each.
    return {**kept, "HOME": str(folder), "OMP_WAIT_POLICY": "passive", "RES_OPTIONS": "timeout:1 attempts:1"}


def start(args, folder, **options):
    """A running program; its output comes through pipes."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    command = [PROGRAM, *map(str, args)]
    return subprocess.Popen(command, cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL, **options)


def wait(process, timeout=120):
    """Waits for the end; bytes that are no text show as \\x.."""
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return _result(process.returncode, out, err)


def _result(code, out, err):
    return Result(code, *((text or b"").decode(errors="backslashreplace") for text in (out, err)))


def run(args, folder, timeout=120, **options):
    """From start to end; in a process that was not started for it, unless there are options for one."""
    if options or not LOADED.can_run(args):
        return wait(start(args, folder, **options), timeout)
    return _result(*LOADED.run(args, folder, environment(folder), timeout))


def run_measured(args, folder):
    """The result, and the most memory in MiB that the program had; for those that say little."""
    process = start(args, folder)
    out, err = (pipe.read().decode(errors="backslashreplace") for pipe in (process.stdout, process.stderr))
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    process.stderr.close()
    return Result(process.returncode, out, err), usage.ru_maxrss / 1024


def npy(dtype, shape, values):
    """One array in NumPy's format."""
    return npy_raw(dtype, repr(tuple(shape)), struct.pack(f"<{len(values)}{CODES[dtype][-1]}", *values))


def npy_raw(dtype, shape, data):
    """The same with any text for the shape and any bytes for the numbers."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


def write_npz(path, arrays, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in arrays.items():
            archive.writestr(name + ".npy", content)


def graph_arrays(features=2):
    """A ring of eight nodes in two classes."""
    ends = [end for node in range(8) for end in (node, (node + 1) % 8)]
    values = [0.25 * (i % 7) for i in range(8 * features)]
    return {"node_features": npy("<f4", (8, features), values),
            "node_labels": npy("<i8", (8,), [0, 0, 0, 0, 1, 1, 1, 1]),
            "edges": npy("<i8", (8, 2), ends)}


def series_arrays(steps=30, values=None):
    """Three nodes in a row, one number each per step."""
    values = values or [float((7 * i) % 11) for i in range(steps * 3)]
    return {"x": npy("<f4", (steps, 3), values), "edges": npy("<i8", (2, 2), [0, 1, 1, 2])}


def read_safetensors(path):
    """Header as a dictionary, and the bytes behind it."""
    content = Path(path).read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8:8 + size]), content[8 + size:]


def write_safetensors(path, header, data):
    """The header may be any text."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def contents(folder):
    """Every path below the folder with a digest of what it holds."""
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            for path in Path(folder).rglob("*")}


class ProgramTest(unittest.TestCase):
    """A test with a folder of its own, two levels below the temporary one."""

    def setUp(self):
        top = tempfile.TemporaryDirectory()
        self.addCleanup(top.cleanup)
        self.folder = Path(top.name) / "work"
        self.folder.mkdir()

    def run_program(self, *args, **options):
        return run(args, self.folder, **options)

    def succeed(self, *args, **options):
        result = self.run_program(*args, **options)
        self.assertEqual(result.code, 0, f"{args}: {result.err}")
        return result

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def write_tables(self, name="own", nodes=NODES, edges=EDGES):
        for file, content in (("nodes.csv", nodes), ("edges.csv", edges)):
            if content is not None:
                self.write(f"{name}/{file}", content)
        return name
