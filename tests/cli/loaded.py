# SPDX-License-Identifier: MIT
"""The program without its start: its library is loaded once, and each call is a fork of this process. Loading libtorch
takes a fifth of a second, and the tests call the program hundreds of times."""

import ctypes
import os
import signal
import tempfile
import time
from pathlib import Path

# Read by libgomp while it is loaded, so it cannot be given to a single call (cli/launch.cpp).
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

POLL_SECONDS = 0.002


class Library:
    def __init__(self, program):
        self.path = Path(program).parents[1] / "lib" / "libmpssm_cli.so"
        self.library = None

    def can_run(self, args):
        """Ranks start the program anew, by the file of the process that they are started from."""
        return "--ranks" not in args and self.path.exists() and "OMP_NUM_THREADS" not in os.environ

    def run(self, args, folder, environment, timeout):
        """Exit code (negative: the signal that ended it), stdout and stderr, as bytes."""
        self.library = self.library or ctypes.CDLL(str(self.path), ctypes.RTLD_GLOBAL)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                self._become(args, folder, environment, out.fileno(), err.fileno())
            code = _wait(child, timeout)
            return code, _content(out), _content(err)

    def _become(self, args, folder, environment, out, err):
        """What a new process would be; never returns."""
        code = 127
        try:
            os.chdir(folder)
            with open(os.devnull) as nothing:
                os.dup2(nothing.fileno(), 0)
            os.dup2(out, 1)
            os.dup2(err, 2)
            os.closerange(3, 256)
            os.environ.clear()
            os.environ.update(environment)
            for name in (signal.SIGINT, signal.SIGPIPE):
                signal.signal(name, signal.SIG_DFL)
            words = [b"mpssm", *(os.fsencode(str(word)) for word in args)]
            code = self.library.mpssm_main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None))
            ctypes.CDLL(None).fflush(None)
        finally:
            os._exit(code)


def _wait(child, timeout):
    end = time.monotonic() + timeout
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise TimeoutError(f"the program took longer than {timeout} seconds")
        time.sleep(POLL_SECONDS)


def _content(file):
    file.seek(0)
    return file.read()
