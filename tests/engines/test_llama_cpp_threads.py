"""llama.cpp's threads beside other processes: the spins that they are loaded with, and the notice."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from logitree.engines import _llama_cpp_threads as threads

LOADS = """
import ctypes, os
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
seen = []
import importlib.abc, sys
class Look(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "llama_cpp":
            seen.append(getenv(b"GOMP_SPINCOUNT"))
sys.meta_path.insert(0, Look())
from logitree.engines._llama_cpp_threads import library
library()
library()
print(seen, os.environ.get("GOMP_SPINCOUNT"))
"""


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({}, "[b'600'] None"),
        ({"GOMP_SPINCOUNT": "5"}, "[b'5'] 5"),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, "[None] None"),
    ],
)
def test_spins_are_set_while_the_library_is_loaded(given: dict[str, str], seen: str) -> None:
    pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    env = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")} | given
    ran = subprocess.run([sys.executable, "-c", LOADS], env=env, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == seen


class Waits:
    """A schedstat whose second field grows by a share of the time."""

    def __init__(self, path: Path, share: float) -> None:
        self._path, self._share, self._begun = path, share, time.perf_counter()
        self.write()

    def write(self) -> None:
        self._path.write_text(f"1 {int((time.perf_counter() - self._begun) * 1e9 * self._share)} 3\n")


def passes(cores: threads.Cores, waits: Waits, count: int) -> None:
    for _ in range(count):
        with cores:
            time.sleep(0.004)
        waits.write()


@pytest.mark.parametrize(("share", "count", "says"), [(0.5, 2, True), (0.05, 2, False), (0.5, 1, False)])
def test_a_notice_when_cores_are_short(
    share: float,
    count: int,
    says: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(threads, "SECONDS", 0.02)
    monkeypatch.setattr(threads, "_SCHEDULE", str(tmp_path / "schedstat"))
    waits = Waits(tmp_path / "schedstat", share)
    with caplog.at_level(logging.WARNING, "logitree"):
        passes(threads.Cores(count), waits, 30)
    assert len(caplog.records) == says
    if says:
        assert "n_threads=1" in caplog.text


@pytest.mark.parametrize("content", [None, "", "1 x 2"])
def test_without_counts_there_is_no_notice(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "schedstat"
    if content is not None:
        path.write_text(content)
    monkeypatch.setattr(threads, "_SCHEDULE", str(path))
    cores = threads.Cores(2)
    for _ in range(3):
        with cores:
            pass
    assert not cores._looks
