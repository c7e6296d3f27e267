# SPDX-License-Identifier: MIT
"""One line that says how far a training is: on a terminal or in a notebook, else nowhere."""

from __future__ import annotations

import html
import sys
import time
from typing import Any, Optional, Tuple

_WIDTH = 24
_SECONDS = 0.2  # between two pictures


def _notebook_display() -> Optional[Any]:
    """IPython's display if this is a kernel with a page to show it on."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display

    return display


class Progress:
    """``verbose`` None: where somebody can see it; True: always; False: never."""

    def __init__(self, total: int, verbose: Optional[bool]):
        self._total, self._start, self._last = total, time.monotonic(), 0.0
        self._display = None if verbose is False else _notebook_display()
        self._handle: Any = None
        self._unseen: Optional[Tuple[int, str]] = None
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._visible = verbose is True or verbose is None and (
            self._display is not None or is_terminal)

    def show(self, done: int, text: str) -> None:
        if not self._visible:
            return
        now = time.monotonic()
        self._unseen = done, f"{done}/{self._total} {now - self._start:.0f} s  {text}"
        if now - self._last >= _SECONDS:
            self._last = now
            self._write(*self._unseen)
            self._unseen = None

    def _write(self, done: int, text: str) -> None:
        filled = _WIDTH * done // max(self._total, 1)
        line = f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {text}"
        if self._display is None:
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
            return
        bar = f'<progress value="{done}" max="{self._total}"></progress> {html.escape(text)}'
        shown = {"text/plain": line, "text/html": bar}
        if self._handle is None:
            self._handle = self._display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)

    def close(self) -> None:
        """The end, which may have come early, is seen in any case."""
        if self._unseen is not None:
            self._write(*self._unseen)
        if self._visible and self._display is None and self._last:
            print(file=sys.stderr, flush=True)
