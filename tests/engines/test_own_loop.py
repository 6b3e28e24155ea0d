"""The examples of docs/engines/own-loop.md for PyTorch and JAX; those of NumPy run with the documents."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.peers

PAGE = Path(__file__).resolve().parents[2] / "docs" / "engines" / "own-loop.md"
BLOCK = re.compile(r"^```(python|py)\n(.*?)^```\n(?:\nPrints:\n\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("package", ["torch", "jax"])
def test_the_example_prints_what_it_says(package: str) -> None:
    pytest.importorskip(package, reason=f"{package} is not installed")
    blocks = BLOCK.findall(PAGE.read_text("utf-8"))
    (example,) = [block for block in blocks if block[0] == "py" and f"import {package}" in block[1]]
    names: dict[str, object] = {}
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(blocks[0][1], names)
        exec(example[1], names)
    assert said.getvalue() == example[2]
