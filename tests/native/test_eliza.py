"""The design's own names of the token-trie sampler, from C, with libllama and a real model."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from data_files import package_file

HERE = Path(__file__).resolve().parent


def test_callers_of_the_design_link_and_run(
    build: Callable[..., Path], run: Callable[..., str], smollm2_gguf: Path
) -> None:
    if sys.platform != "linux":
        pytest.skip("this is not Linux")
    library = next(package_file("llama_cpp", "lib").glob("libllama.so*"))
    program = build(HERE / "eliza.c", "-D_GNU_SOURCE", "-ldl")
    assert int(run(program, library, smollm2_gguf).split()[0]) > 50
