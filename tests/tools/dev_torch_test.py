# SPDX-License-Identifier: MIT
"""./dev takes a CPU build of torch from where there is one, and never downloads one for GPUs."""

import http.server
import importlib.util
import io
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile
from contextlib import redirect_stderr
from pathlib import Path
from unittest import mock

from load_dev import load_dev

GPU_WANTS = ["filelock", 'nvidia-cublas-cu12==12.8; platform_system == "Linux"', "triton==3.5"]
CPU = {"version": "2.13.0+cpu", "wants": ["filelock"]}
PLAIN_CPU = {"version": "2.13.0", "wants": ["filelock", "optree; extra == 'optree'"]}
GPU = {"version": "2.13.0", "wants": GPU_WANTS}

# A stand-in for .venv/bin/python -m pip. offers.json: what there is behind "cpu" and "default", each a
# version and what it wants, or null. calls.txt gets one line for each thing that pip was asked.
FAKE_PYTHON = '''#!{python}
import json, sys
from pathlib import Path

place = Path(__file__).resolve().parents[1]
arguments = sys.argv[1:]
assert arguments[:3] == ["-m", "pip", "install"], arguments
index = "default"
if "--index-url" in arguments:
    assert arguments[arguments.index("--index-url") + 1] == "{cpu_index}"
    index = "cpu"
wanted = next(word for word in arguments if word.startswith("torch==")).split("==")[1]
kind = "ask" if "--dry-run" in arguments else "install"
with open(place / "calls.txt", "a") as calls:
    calls.write(f"{{kind}} {{wanted}} from {{index}}\\n")
offer = json.loads((place / "offers.json").read_text())[index]
if not offer or offer.get("broken") and kind == "install" or wanted not in (
        offer["version"], offer["version"].split("+")[0]):
    sys.exit("ERROR: No matching distribution found for torch==" + wanted)
if kind == "ask":
    print(json.dumps({{"version": "1", "install": [
        {{"metadata": {{"version": offer["version"], "requires_dist": offer["wants"]}}}}]}}))
    sys.exit(0)
packages = place / "lib/python3.11/site-packages"
(packages / "torch/share/cmake/Torch").mkdir(parents=True)
(packages / "torch/lib").mkdir()
if any(name.startswith("nvidia") for name in offer["wants"]):
    (packages / "torch/lib/libtorch_cuda.so").touch()
record = packages / f"torch-{{offer['version']}}.dist-info/RECORD"
record.parent.mkdir()
record.touch()
'''


class Quiet(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass


def serve(test, handler):
    """Address of a web server that lives as long as the test."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    test.addCleanup(server.server_close)
    test.addCleanup(server.shutdown)
    return f"http://127.0.0.1:{server.server_port}"


def closed_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{held.getsockname()[1]}"


class DevTest(unittest.TestCase):
    def setUp(self):
        top = tempfile.TemporaryDirectory()
        self.addCleanup(top.cleanup)
        self.dev = load_dev()
        self.dev.VENV = Path(top.name).resolve() / ".venv"
        self.dev.LOGS = Path(top.name) / "log"
        self.dev.DEBIAN_TORCH = False
        self.debian = []
        self.dev.need_packages = self.debian.extend
        clean = {key: value for key, value in os.environ.items()
                 if key != "Torch_DIR" and not key.startswith("PIP_") and not key.lower().endswith("_proxy")}
        patch = mock.patch.dict(os.environ, {**clean, "PIP_CONFIG_FILE": os.devnull}, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def set_up_torch(self, **options):
        self.said = io.StringIO()
        with redirect_stderr(self.said):
            return self.dev.set_up_torch(**options)


class WithAStandInForPip(DevTest):
    def prepare(self, default, cpu=None, cpu_index=None):
        self.dev.CPU_INDEX = cpu_index or closed_port()
        bin = self.dev.VENV / "bin"
        bin.mkdir(parents=True)
        (bin / "pip").touch()
        python = bin / "python"
        python.write_text(FAKE_PYTHON.format(python=sys.executable, cpu_index=self.dev.CPU_INDEX))
        python.chmod(python.stat().st_mode | stat.S_IXUSR)
        (self.dev.VENV / "offers.json").write_text(json.dumps({"cpu": cpu, "default": default}))

    def pytorch_index(self):
        class Index(Quiet):
            def do_GET(self):
                self.send_response(200 if self.path == "/torch/" else 404)
                self.end_headers()
                self.wfile.write(b"<html>")
        return serve(self, Index)

    def calls(self):
        file = self.dev.VENV / "calls.txt"
        return file.read_text().splitlines() if file.exists() else []

    def expect_pip(self, result):
        torch = self.dev.VENV / "lib/python3.11/site-packages/torch/share/cmake/Torch"
        self.assertEqual(result, [f"-DTorch_DIR={torch}"])
        self.assertEqual(self.debian, [])
        self.assertFalse((self.dev.VENV / "torch-not-available").exists())

    def expect_debian(self, result):
        self.assertEqual(result, ["-DCMAKE_PREFIX_PATH=/usr"])
        self.assertEqual(self.debian, ["libtorch-dev"])
        self.assertIn("taking Debian's libtorch-dev", self.said.getvalue())
        self.assertTrue((self.dev.VENV / "torch-not-available").exists())

    def test_the_cpu_index_comes_first(self):
        self.prepare(GPU, CPU, self.pytorch_index())
        self.expect_pip(self.set_up_torch())
        self.assertEqual(self.calls(), ["install 2.13.0+cpu from cpu"])

    def test_without_the_cpu_index_a_cpu_build_of_the_default_index_is_taken(self):
        self.prepare(CPU)
        self.expect_pip(self.set_up_torch())
        self.assertEqual(self.calls(), ["install 2.13.0+cpu from default"])

    def test_a_cpu_build_without_the_label_is_known_by_what_it_wants(self):
        self.prepare(PLAIN_CPU)
        self.expect_pip(self.set_up_torch())
        self.assertEqual(self.calls()[1:], ["ask 2.13.0 from default", "install 2.13.0 from default"])

    def test_a_build_for_gpus_is_not_downloaded(self):
        for offer in (GPU, {"version": "2.13.0+cu128", "wants": ["filelock"]}):
            with self.subTest(offer["version"]):
                self.setUp()
                self.prepare(offer)
                self.expect_debian(self.set_up_torch())
                self.assertEqual(self.calls(), ["install 2.13.0+cpu from default", "ask 2.13.0 from default"])
                self.assertFalse((self.dev.VENV / "lib").exists())

    def test_a_cpu_index_that_breaks_off_is_no_obstacle(self):
        self.prepare(CPU, {**CPU, "broken": True}, self.pytorch_index())
        self.expect_pip(self.set_up_torch())
        self.assertEqual(self.calls(), ["install 2.13.0+cpu from cpu", "install 2.13.0+cpu from default"])

    def test_when_no_index_has_anything_debian_is_left_and_setup_tries_again(self):
        self.prepare(None)
        self.expect_debian(self.set_up_torch())
        asked = self.calls()
        self.set_up_torch()
        self.assertEqual(self.calls(), asked, "a build asked again")
        (self.dev.VENV / "offers.json").write_text(json.dumps({"cpu": None, "default": CPU}))
        self.debian.clear()
        self.expect_pip(self.set_up_torch(retry=True))

    def test_when_debian_has_nothing_either_the_way_out_is_named(self):
        self.prepare(None)
        self.dev.need_packages = load_dev().need_packages
        self.dev.need_packages.__globals__["apt_install"] = lambda packages: False
        with self.assertRaises(SystemExit) as end:
            self.set_up_torch()
        self.assertEqual(end.exception.code, 1)
        self.assertIn("taking Debian's libtorch-dev", self.said.getvalue())

    def test_what_is_there_is_not_asked_for_again(self):
        self.prepare(CPU)
        self.set_up_torch()
        self.expect_pip(self.set_up_torch(retry=True))
        self.assertEqual(self.calls(), ["install 2.13.0+cpu from default"])


class Answers(DevTest):
    def test_a_server_that_never_answers_is_left_alone_after_the_time_limit(self):
        ask = threading.Event()
        self.addCleanup(ask.set)

        class Silent(Quiet):
            def do_GET(self):
                ask.wait()
        self.dev.PROBE_SECONDS = 1
        self.assertFalse(self.dev.answers(serve(self, Silent) + "/torch/"))

    def test_refusals_and_closed_ports_are_no_answer(self):
        class Refusing(Quiet):
            def do_GET(self):
                self.send_error(403)
        self.assertFalse(self.dev.answers(serve(self, Refusing) + "/torch/"))
        self.assertFalse(self.dev.answers(closed_port() + "/torch/"))
        self.assertFalse(self.dev.answers("http://no-such-host.invalid/torch/"))


class IsCpuBuild(DevTest):
    def test_label_or_wants_decide(self):
        cases = [("2.13.0+cpu", GPU_WANTS, True), ("2.13.0", ["filelock", "sympy>=1.13"], True),
                 ("2.13.0", GPU_WANTS, False), ("2.13.0", ["cuda-bindings<14"], False),
                 ("2.13.0", ["triton==3.5"], False), ("2.13.0", ["NVIDIA-cudnn"], False),
                 ("2.13.0+cu128", [], False), ("2.13.0+rocm7", [], False)]
        for version, wants, expected in cases:
            with self.subTest(version=version, wants=wants):
                offer = {"metadata": {"version": version, "requires_dist": wants}}
                self.assertEqual(self.dev.is_cpu_build(offer), expected)


def wheel(version, wants, size):
    """A wheel named torch with `size` bytes that do not compress, and its metadata."""
    metadata = "".join([f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n",
                        *(f"Requires-Dist: {name}\n" for name in wants)]).encode()
    info = f"torch-{version}.dist-info"
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("torch/lib/big.so", os.urandom(size))
        archive.writestr(f"{info}/METADATA", metadata)
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return content.getvalue(), metadata


@unittest.skipUnless(importlib.util.find_spec("ensurepip"), "this Python makes no environment with pip")
class WithTheRealPip(DevTest):
    """The installed pip against an index on this machine: how much does it fetch to answer?"""

    def test_the_question_costs_next_to_nothing(self):
        size = 64 * 2**20
        content, metadata = wheel("2.13.0", GPU_WANTS, size)
        name = "torch-2.13.0-py3-none-any.whl"
        sent = []

        class Index(Quiet):
            def do_GET(self):
                page = f'<a href="/{name}" data-dist-info-metadata="true">{name}</a>'.encode()
                answers = {"/simple/torch/": page, f"/{name}": content, f"/{name}.metadata": metadata}
                answer = answers.get(self.path)
                self.send_response(200 if answer else 404)
                self.send_header("Content-Type", "text/html" if answer is page else "application/octet-stream")
                self.send_header("Content-Length", str(len(answer or b"")))
                self.end_headers()
                try:
                    for start in range(0, len(answer or b""), 65536):
                        sent.append(self.wfile.write(answer[start:start + 65536]))
                except OSError:
                    pass  # pip has heard enough

        os.environ["PIP_INDEX_URL"] = serve(self, Index) + "/simple"
        self.dev.CPU_INDEX = closed_port()
        subprocess.run([sys.executable, "-m", "venv", self.dev.VENV], check=True, capture_output=True)
        self.assertEqual(self.set_up_torch(), ["-DCMAKE_PREFIX_PATH=/usr"])
        self.assertEqual(self.debian, ["libtorch-dev"])
        self.assertGreater(sum(sent), 0)
        self.assertLess(sum(sent), size // 4)


if __name__ == "__main__":
    unittest.main()
