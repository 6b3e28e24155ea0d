"""Adapters to what runs a model, and the interface that they share.

An engine turns tokens into logits and text into tokens. It knows nothing of constraints, samplers, the
command line or other engines; `logitree.generate` is the loop that brings them together.

```text
engine.session()                         one row of tokens    session.evaluate(tokens)       [V]
engine.batch_session(rows)               several rows         session.evaluate_rows(lists)   [R, V]
engine.batch_session(rows, forks=True)   rows that fork       session.reorder(parents)
```

`Engine` and `Session` are base classes: few members are required, and what an engine may have beside them has a
default.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import _renamed
from ._costs import PassCosts
from ._engine import Engine, Messages
from ._old import OldEngine
from ._paths import missing_model
from ._session import ContextFull, Logits, Rows, Session

__all__ = [
    "ContextFull",
    "Engine",
    "Logits",
    "Messages",
    "OnLoad",
    "PassCosts",
    "Rows",
    "Session",
    "cache_info",
    "clear_caches",
    "open",
]

OnLoad = Callable[[float], None]
"""Called with the fraction of the model that is loaded, 0.0 to 1.0."""


def open(model: Any, *, on_load: OnLoad | None = None) -> Engine:
    """The engine of a model.

    Args:
        model: an engine, which is returned as it is; the path of a GGUF file or a `llama_cpp.Llama` (llama.cpp); the
            path of a folder that transformers saved, or a pair of a loaded model and its tokenizer (transformers; what
            `mlx_lm.load` returns: mlx-lm); the path of a folder with genai_config.json (ONNX Runtime GenAI).
        on_load: called with the fraction that is loaded, where the runtime reports it.

    Raises:
        EngineError: the runtime is missing, or the model cannot be loaded. Nothing is downloaded: an id of Hugging Face
            is no model.
        TypeError: the value is no model.
    """
    if isinstance(model, Engine):
        return model
    if not isinstance(model, type) and all(hasattr(model, name) for name in ("encode", "session")):
        _renamed.deprecated("engine", name=type(model).__name__, stacklevel=4)
        return OldEngine(model)
    if isinstance(model, tuple) and len(model) == 2:
        if type(model[1]).__module__.startswith("mlx_lm."):
            from .mlx import MlxLm

            return MlxLm(*model)
        from .transformers import Transformers

        return Transformers(*model)
    if isinstance(model, str | os.PathLike):
        if os.path.isfile(os.path.join(model, "genai_config.json")):
            from .onnx import OnnxGenAI

            return OnnxGenAI(model)
        if os.path.isdir(model):
            from .transformers import Transformers

            return Transformers.load(model)
        if not os.path.exists(model):
            raise missing_model(model)
        from .llama_cpp import LlamaCpp

        return LlamaCpp(model, on_load=on_load)
    if type(model).__module__.partition(".")[0] == "llama_cpp":
        from .llama_cpp import LlamaCpp

        return LlamaCpp(model)
    help = (
        "give an engine, the path of a GGUF file or of a transformers folder, a llama_cpp.Llama, or (model, tokenizer)"
    )
    shown = "None" if model is None else f"{model!r:.60} ({type(model).__name__})"
    raise TypeError(f"{shown} is no model: {help}")


def cache_info() -> dict[str, dict[str, int]]:
    """What generations keep for later ones, by name: entries, capacity, hits, misses.

    "canonical": constraints in a tokenizer's own spelling. "healed": constraints after the end of a prompt.
    "not_canonical": constraints that have no such spelling.
    """
    from .._spelling import cache_info

    return cache_info()


def clear_caches() -> None:
    """Forgets what `cache_info` counts. `Vocabulary.clear_bindings` forgets what a vocabulary keeps."""
    from .._spelling import clear_caches

    clear_caches()


if not TYPE_CHECKING:  # a type checker knows no old names, so that it marks misspelled ones

    def __getattr__(name: str) -> Any:
        return _renamed.of_module(__name__, name)
