"""The design's own names of the token-trie sampler, from C, with libllama and a real model."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def test_callers_of_the_design_link_and_run(
    build: Callable[..., Path], run: Callable[..., str], smollm2_gguf: Path
) -> None:
    spec = importlib.util.find_spec("llama_cpp")
    if spec is None or spec.origin is None or sys.platform != "linux":
        pytest.skip("llama-cpp-python is not installed, or this is not Linux")
    library = next((Path(spec.origin).parent / "lib").glob("libllama.so*"))
    program = build(HERE / "eliza.c", "-D_GNU_SOURCE", "-ldl")
    assert int(run(program, library, smollm2_gguf).split()[0]) > 50
