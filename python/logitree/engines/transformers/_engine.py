"""A transformers model as an engine: loading, prompts, vocabulary, and the sessions that it opens."""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ... import _core
from ..._errors import EngineError
from ..._vocabulary import cut, model_name
from .._cached import CachedEngine, check_sizes
from .._lens import Layers
from .._paths import folder_without_model, missing_model
from .._rows import checked_tokens
from .._session import ContextFull, Session
from .._tokenizer_engine import TokenizerEngine
from .._trees import Evaluated, Read
from ._continuations import tree_logits
from ._forward import PASS_TOKENS_CPU, PASS_TOKENS_DEVICE, ModelCache, Runner, import_torch
from ._lens import layers
from ._rows import TransformersRows

_MAX_CONTEXT = 10**9
"""A larger `model_max_length` means that the tokenizer sets no limit."""


class Transformers(CachedEngine, TokenizerEngine):
    """A causal language model of transformers.

    Args:
        model: a loaded model with a cache, in evaluation mode, on any device.
        tokenizer: its tokenizer; without one, prompts are token ids and there is no vocabulary.
        n_ctx: tokens of one sequence; None: what the model was trained for.
        n_batch: tokens of one pass, the grain of progress and cancelling; None: 512 on a CPU, 2048 on
            an accelerator, a whole prompt where the model is recurrent.

    Raises:
        EngineError: torch is missing, this is no such model, or `n_ctx` or `n_batch` is out of range.
    """

    n_batch: int
    beam_rows = None
    has_lens = True
    _cached: ModelCache

    def __init__(
        self, model: Any, tokenizer: Any = None, *, n_ctx: int | None = None, n_batch: int | None = None
    ) -> None:
        self.runner = Runner(model)
        """What evaluates the model."""
        self.model, self.tokenizer = model, tokenizer
        self.name = model_name(str(getattr(model.config, "name_or_path", "") or "")) or type(model).__name__
        """What to call the model."""
        trained = _context(self.runner.config, tokenizer)
        check_sizes(n_ctx, n_batch, trained)
        self.n_ctx: int | None = trained if n_ctx is None else n_ctx
        """Tokens of one sequence; None: neither model nor tokenizer says."""
        usual = PASS_TOKENS_CPU if self.runner.device.type == "cpu" else PASS_TOKENS_DEVICE
        self.n_batch = n_batch or ((self.n_ctx or sys.maxsize) if self.runner.is_recurrent else usual)
        """Tokens of one pass."""
        self._cached = self._new_cache()

    @staticmethod
    def load(
        folder: str | os.PathLike[str],
        device: Any = None,
        dtype: Any = None,
        *,
        n_ctx: int | None = None,
        n_batch: int | None = None,
    ) -> Transformers:
        """Loads model and tokenizer from a local folder, as `save_pretrained` writes it. Downloads nothing.

        Args:
            folder: with config.json, the weights and the tokenizer's files.
            device: as torch names it; None: "cuda" where there is one, otherwise "cpu".
            dtype: of the weights, such as "float32" or `torch.bfloat16`; None: as the folder has it.
            n_ctx, n_batch: as of the class.

        Raises:
            EngineError: torch or transformers is missing, or the folder cannot be loaded.
        """
        path = Path(folder)
        if not (path / "config.json").is_file():
            raise folder_without_model(path) if path.is_dir() else missing_model(folder)
        torch = import_torch()
        try:
            transformers = importlib.import_module("transformers")
        except ImportError as missing:
            raise EngineError(
                f"transformers is not usable: {missing}", help="pip install 'logitree[transformers]'"
            ) from missing
        if device is None:
            device = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(path, local_files_only=True)
            model = transformers.AutoModelForCausalLM.from_pretrained(
                path, dtype="auto" if dtype is None else dtype, local_files_only=True
            )
            model = model.to(device).eval()
        except Exception as error:
            # Missing files, unknown models, a device that is not there: each library raises its own kind.
            raise EngineError(f"cannot load the model: {error}", place=str(path)) from error
        return Transformers(model, tokenizer, n_ctx=n_ctx, n_batch=n_batch)

    @functools.cached_property
    def vocabulary(self) -> _core.Vocabulary:  # type: ignore[override]
        """The tokenizer's vocabulary, its ends of generation those of tokenizer and model together.

        Ids that only one of model and tokenizer has are not in it: padding of the logits is never allowed.

        Raises:
            EngineError: there is no tokenizer.
            VocabularyError: the tokenizer cannot be read.
        """
        return vocabulary_of(self._tokenizer(), self.model)

    def batch_session(self, rows: int | None, tokens: int | None = None, *, forks: bool = False) -> Session:
        """A new session of at most `rows` rows, with a cache of its own, which grows as they do.

        Models whose cache is more than plain attention (sliding windows, recurrent states), or that take no
        `position_ids`, cannot be padded between tokens: their rows are evaluated one after the other, or together where
        they fork.
        """
        if rows is not None and rows < 1:
            raise EngineError(f"a session of {rows} rows", help="use 1 or more")
        if rows is None or forks or self.runner.is_padded:
            return TransformersRows(self, rows)
        return super().batch_session(rows, tokens)

    def tree_logits(
        self, prompt: Sequence[int], parents: Sequence[int], tokens: Sequence[int], read: Read
    ) -> Evaluated:
        """In one pass after the prompt's, with a row for each leaf; see `Engine.tree_logits`."""
        return tree_logits(self, prompt, parents, tokens, read)

    def lens(self, tokens: Sequence[int], top: int = 5) -> Layers:
        """By the logit lens: each layer's state goes through the last normalisation and the output matrix.

        Raises:
            ContextFull, EngineError: as of `Engine.lens`; or the model's logits are made in another way.
        """
        if self.n_ctx is not None and len(tokens) > self.n_ctx:
            raise ContextFull
        checked_tokens(tokens, self.runner.vocabulary_size)
        return layers(self.runner, self._new_cache(), tokens, top)

    def __repr__(self) -> str:
        return f"Transformers({self.name!r})"

    def _new_cache(self) -> ModelCache:
        return ModelCache(self.runner, self.n_batch, self.n_ctx)


def vocabulary_of(tokenizer: Any, model: Any = None) -> _core.Vocabulary:
    """The vocabulary of a tokenizer, as far as the model's logits reach, with the model's ends of generation too."""
    vocabulary = _core.Vocabulary.from_transformers(tokenizer, getattr(model, "generation_config", None))
    return vocabulary if model is None else cut(vocabulary, int(model.config.get_text_config().vocab_size))


def _context(config: Any, tokenizer: Any) -> int | None:
    """How many tokens a sequence may have, as far as model or tokenizer says."""
    trained = getattr(config, "max_position_embeddings", None) or getattr(tokenizer, "model_max_length", None)
    return int(trained) if trained and trained < _MAX_CONTEXT else None
