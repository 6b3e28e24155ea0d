"""The program of docs/engines/transformers.md, with SmolLM2 as the page says."""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path

import pytest

import vllm_model

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]
for package in ("torch", "transformers", "gguf", "accelerate"):
    pytest.importorskip(package, reason=f"{package} is not installed")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "engines" / "transformers.md"


def test_the_program_prints_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = PAGE.read_text("utf-8")
    program = re.search(r"^```py\n(.*?)^```\n", page, re.DOTALL | re.MULTILINE)
    printed = re.search(r"^Prints, .*?:\n\n```text\n(.*?)^```\n", page, re.DOTALL | re.MULTILINE)
    assert program is not None
    assert printed is not None
    os.symlink(vllm_model.folder(), tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(program[1], {"__name__": "__main__"})
    assert said.getvalue() == printed[1]
