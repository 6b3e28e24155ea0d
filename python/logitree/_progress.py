"""How far long work is: for a callback, or else as a line on a terminal that has waited for a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

OnProgress = Callable[[float], object]
"""Called with a number from 0 to 1. Its exceptions end the work."""

PATIENCE = 1.0
"""Seconds before a line is shown on a terminal."""
_PAUSE = 0.1
"""Seconds between two lines on a terminal."""


@contextmanager
def telling(label: str, on_progress: OnProgress | None) -> Iterator[OnProgress]:
    """What to call with the part that is done: the callback, or a line on standard error where that is a terminal.

    The line changes in place and is taken away at the end.
    """
    if on_progress is not None:
        yield on_progress
        return
    stream = sys.stderr
    if stream is None or not stream.isatty():
        yield lambda _: None
        return
    next_time, is_shown = time.monotonic() + PATIENCE, False

    def tell(fraction: float) -> None:
        nonlocal next_time, is_shown
        now = time.monotonic()
        if now >= next_time:
            next_time, is_shown = now + _PAUSE, True
            stream.write(f"\r\x1b[K  {label} {min(max(fraction, 0.0), 1.0):4.0%}")
            stream.flush()

    try:
        yield tell
    finally:
        if is_shown:
            stream.write("\r\x1b[K")
            stream.flush()
