"""The types that a user's program sees: `typing_program.py` passes mypy --strict and leaves no public name out."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import logitree as lt

PROGRAM = Path(__file__).resolve().parents[1] / "support" / "typing_program.py"


def test_every_public_name_is_used() -> None:
    assert set(re.findall(r"\blt\.(\w+)", PROGRAM.read_text(encoding="utf-8"))) >= set(lt.__all__)


def test_a_program_over_the_whole_surface_is_typed(tmp_path: Path) -> None:
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(PROGRAM)]
    done = subprocess.run(command, cwd=PROGRAM.parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
