"""Models that mlx-lm loads, on Apple silicon or on a CPU."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import _core
from .._errors import EngineError
from .._vocabulary import cut, model_name
from ._cached import CachedEngine, CachedSequence, check_sizes
from ._paths import folder_without_model, missing_model
from ._session import Logits
from ._tokenizer_engine import TokenizerEngine

PASS_TOKENS = 512
"""Tokens of one pass, where nothing else is asked for: what mlx-lm's own server takes for a prompt is 2048."""


class MlxLm(CachedEngine, TokenizerEngine):
    """A language model of mlx-lm.

    Args:
        model: what `mlx_lm.load` returns first.
        tokenizer: what it returns second, or a tokenizer of transformers; None: prompts are token ids.
        n_ctx: tokens of one sequence; None: what the model's settings say, or any number.
        n_batch: tokens of one pass, the grain of progress and cancelling.

    Raises:
        EngineError: mlx-lm is missing, this is no such model, or `n_ctx` or `n_batch` is out of range.
    """

    n_batch: int

    def __init__(
        self, model: Any, tokenizer: Any = None, *, n_ctx: int | None = None, n_batch: int = PASS_TOKENS
    ) -> None:
        if not callable(model) or not hasattr(model, "layers"):
            raise EngineError(f"cannot run a {type(model).__name__}", help="give what mlx_lm.load returns")
        self.model = model
        """What evaluates the tokens."""
        self.tokenizer = getattr(tokenizer, "_tokenizer", tokenizer)  # mlx-lm wraps that of transformers
        self._ends = tuple(getattr(tokenizer, "eos_token_ids", ()))
        trained = getattr(getattr(model, "args", None), "max_position_embeddings", None)
        check_sizes(n_ctx, n_batch, trained)
        self.n_ctx: int | None = trained if n_ctx is None else n_ctx
        """Tokens of one sequence; None: the model does not say."""
        self.n_batch = n_batch
        """Tokens of one pass."""
        self.name = model_name(str(getattr(self.tokenizer, "name_or_path", "") or "")) or type(model).__module__
        """What to call the model."""
        self._size = int(_forward(model, [0], _cache(model)).shape[-1])
        self._cached = self._new_cache()

    @staticmethod
    def load(folder: str | os.PathLike[str], *, n_ctx: int | None = None, n_batch: int = PASS_TOKENS) -> MlxLm:
        """Loads model and tokenizer from a local folder, as `mlx_lm.convert` or `save_pretrained` writes it.

        Downloads nothing.

        Raises:
            EngineError: mlx-lm is missing, or the folder cannot be loaded.
        """
        path = Path(folder)
        if not (path / "config.json").is_file():
            raise folder_without_model(path) if path.is_dir() else missing_model(folder)
        try:
            model, tokenizer, *_ = _module("mlx_lm").load(str(path))
        except EngineError:
            raise
        except Exception as error:
            # Missing weights, unknown models, broken files: each library raises its own kind.
            raise EngineError(f"cannot load the model: {error}", place=str(path)) from error
        return MlxLm(model, tokenizer, n_ctx=n_ctx, n_batch=n_batch)

    @functools.cached_property
    def vocabulary(self) -> _core.Vocabulary:  # type: ignore[override]
        """The tokenizer's vocabulary as far as the model's logits reach, with mlx-lm's end tokens too.

        Raises:
            EngineError: there is no tokenizer.
            VocabularyError: the tokenizer cannot be read.
        """
        vocabulary = _core.Vocabulary.from_transformers(self._tokenizer())
        ends = sorted({*vocabulary.end_tokens, *self._ends})
        return cut(vocabulary.replace(end_tokens=ends), self._size)

    def __repr__(self) -> str:
        return f"MlxLm({self.name!r})"

    def _new_cache(self) -> _ModelCache:
        return _ModelCache(self.model, self._size, self.n_ctx, self.n_batch)


class _ModelCache(CachedSequence):
    """The prompt cache of a model of mlx-lm."""

    def __init__(self, model: Any, vocabulary_size: int, n_ctx: int | None, pass_tokens: int) -> None:
        super().__init__(vocabulary_size, n_ctx)
        self._model, self._pass_tokens = model, pass_tokens
        self._cache: Any = None

    def cut(self, n: int) -> bool:
        caches = _module("mlx_lm.models.cache")
        return bool(caches.can_trim_prompt_cache(self._cache)) and caches.trim_prompt_cache(self._cache, n) == n

    def clear(self) -> None:
        super().clear()
        self._cache = None

    def append(self, tokens: Sequence[int]) -> Logits:
        held, cache, size = self.tokens, self._cache or _cache(self._model), self._pass_tokens
        self.clear()
        for start in range(0, len(tokens), size):
            logits = _forward(self._model, tokens[start : start + size], cache)
        self.tokens, self._cache = [*held, *tokens], cache
        return logits


def _forward(model: Any, tokens: Sequence[int], cache: Any) -> Logits:
    """Appends tokens to a cache in one pass; float32 [V] after the last one, read-only."""
    mx = _module("mlx.core")
    try:
        logits = np.array(model(mx.array([tokens]), cache=cache)[0, -1].astype(mx.float32))
    except Exception as error:
        # Models raise what Python raises, and MLX a RuntimeError or a ValueError.
        raise EngineError(f"the model fails: {error}") from error
    logits.flags.writeable = False
    return logits


def _cache(model: Any) -> Any:
    """An empty cache of the kind that the model wants."""
    return _module("mlx_lm.models.cache").make_prompt_cache(model)


def _module(name: str) -> Any:
    """A module of mlx or mlx-lm, or an EngineError that says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as missing:
        raise EngineError(
            f"mlx-lm is not usable: {missing}", help="pip install 'logitree[mlx]'; on Linux 'mlx[cpu]' too"
        ) from missing
