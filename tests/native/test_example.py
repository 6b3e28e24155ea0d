"""The C example: libllama loaded at run time, a token tree as a link of its chain, a real model."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from data_files import package_file

ROOT = Path(__file__).resolve().parents[2]
ACTIONS = ["REPLY", "SEND_MESSAGE", "SEND_FILE", "IGNORE"]
PROMPT = "Request: Send Anna the picture of the cat."


def test_a_token_tree_chooses_an_action(
    build: Callable[..., Path], run: Callable[..., str], smollm2_gguf: Path
) -> None:
    package = package_file("llama_cpp")
    library = next(iter((package / "lib").glob("libllama.so*")), None)
    headers = [folder for folder in (package / "include", package.parent / "include") if (folder / "llama.h").exists()]
    if library is None or not headers or sys.platform != "linux":
        pytest.skip("llama-cpp-python has no libllama.so or no headers here")
    flags = ("-std=gnu11", "-Wno-pedantic", *(f"-I{folder}" for folder in headers), "-ldl")
    program = build(ROOT / "examples" / "c" / "token_tree.c", *flags)
    action, counts = run(program, library, smollm2_gguf, PROMPT, *ACTIONS).splitlines()
    assert action == "SEND_FILE"
    sums = json.loads(counts)
    assert sums["skip_ratio"] / sums["steps"] > 0.99
    assert run(program, library, smollm2_gguf, PROMPT, "IGNORE").splitlines()[0] == "IGNORE"
