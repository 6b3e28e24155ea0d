"""llama.cpp's threads beside other processes: how long they wait for each other, and a notice when cores are short.

llama.cpp's threads meet after every operation. GNU's OpenMP lets a thread that waits there spin for 300,000 rounds,
which keeps its core from the thread that it waits for when another process has the other core. The slower one of two
processes of two threads each on two cores then makes 0.5 tokens per second where one alone makes 92.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from .._errors import EngineError

SPINS = "600"
"""Rounds that a thread spins before it sleeps. The slower of two processes then makes 0.70 of its fair share, and one
alone is as fast as ever. With 300 that is 0.90, and alone is 0.87 as fast; with 1,000 0.57, with 10,000 0.10
(bench/results/processes.json)."""

SHARE = 0.2
"""The notice comes where a thread waits for a core for this part of the time. Alone it waits 0.005 of it, beside
another process of as many threads 0.45."""

SECONDS = 1.0
"""Of passes, between two looks at it."""

_SCHEDULE = "/proc/thread-self/schedstat"


def library() -> Any:
    """llama_cpp, whose threads spin for `SPINS` rounds if this loads it first and the environment says nothing else.

    Raises:
        EngineError: llama-cpp-python is missing or cannot be loaded.
    """
    try:
        with _spins():
            import llama_cpp
    except ImportError as error:
        raise EngineError(f"llama-cpp-python is not usable: {error}", help="pip install 'logitree[llama]'") from error
    return llama_cpp


@contextlib.contextmanager
def _spins() -> Iterator[None]:
    """GOMP_SPINCOUNT in the environment while OpenMP's library is loaded, which reads it then and never again."""
    if "llama_cpp" in sys.modules or not os.environ.keys().isdisjoint(("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")):
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = SPINS
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


class Cores:
    """Whether a context's threads get the cores that they wait for each other on.

    Args:
        threads: how many evaluate a batch.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._looks = threads > 1
        self._begun = self._spent = 0.0
        self._waited: float | None = None
        """Seconds that this thread had waited for a core when it was last looked at."""
        self._thread = 0

    def __enter__(self) -> None:
        """A pass begins."""
        self._begun = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        """A pass ends. Where cores are short, the logger "logitree" has a warning, once."""
        if not self._looks:
            return
        self._spent += time.perf_counter() - self._begun
        thread = threading.get_ident()
        if thread != self._thread or self._waited is None:
            self._look(thread)
        elif self._spent >= SECONDS:
            before, spent = self._waited, self._spent
            self._look(thread)
            if self._waited is not None and self._waited - before >= SHARE * spent:
                self._tell((self._waited - before) / spent)

    def _look(self, thread: int) -> None:
        self._thread, self._spent = thread, 0.0
        try:
            with open(_SCHEDULE, encoding="ascii") as file:
                self._waited = int(file.read().split()[1]) / 1e9
        except (OSError, ValueError, IndexError):  # no Linux, or a kernel without these counts
            self._looks = False

    def _tell(self, share: float) -> None:
        self._looks = False
        logging.getLogger("logitree").warning(
            "other processes use the cores of llama.cpp's %d threads, which wait %.0f %% of the time for one: "
            "give each process cores of its own, by n_threads=1 or by taskset",
            self._threads,
            100 * share,
        )
