"""The programs of docs/engines/ray.md, with SmolLM2 as the model, on a Ray of this machine."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import logitree as lt
from data_files import smollm2
from servers import free_port

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]
ray = pytest.importorskip("ray", reason="ray is not installed")
pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "engines" / "ray.md"


def printed(said: io.StringIO) -> str:
    """What a program has printed, without the lines that Ray's processes add."""
    return "".join(line for line in said.getvalue().splitlines(True) if "(raylet)" not in line)


def test_the_programs_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"^```(py|text)\n(.*?)^```\n", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    os.symlink(smollm2(), tmp_path / "model.gguf")
    monkeypatch.chdir(tmp_path)
    paths = os.pathsep.join([str(Path(lt.__file__).parents[1]), *sys.path])
    port, names, said = free_port(), {"__name__": "__main__"}, io.StringIO()
    options: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    monkeypatch.setenv("PYTHONPATH", paths)
    ray.init(num_cpus=4, **options)
    try:
        for kind, block in blocks:
            if kind == "text":
                assert printed(said) == block
                said = io.StringIO()
                continue
            block = block.replace('"model.gguf"', repr(str(tmp_path / "model.gguf"))).replace("8123", str(port))
            block = block.replace('"answers.parts"', repr(str(tmp_path / "parts")))
            with contextlib.redirect_stdout(said), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(block, names)
    finally:
        ray.shutdown()
    assert printed(said) == ""
