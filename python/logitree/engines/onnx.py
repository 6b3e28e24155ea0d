"""Models that ONNX Runtime GenAI runs: folders with genai_config.json."""

from __future__ import annotations

import functools
import importlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import _core
from .._errors import EngineError
from .._vocabulary import cut
from ._cached import CachedEngine, CachedSequence, check_sizes
from ._engine import Messages
from ._messages import read_messages
from ._paths import missing_model
from ._session import Logits

DEFAULT_CONTEXT = 4096
"""Tokens of one sequence when none are asked for and the model was trained for at least as many: the runtime takes the
memory of all of them at once."""

PASS_TOKENS = 512
"""Tokens of one pass, where nothing else is asked for."""


class OnnxGenAI(CachedEngine):
    """A model of ONNX Runtime GenAI, on the devices that its genai_config.json names.

    Args:
        folder: with genai_config.json, the model and tokenizer.json, as the runtime's model builder writes it.
        n_ctx: tokens of one sequence, at most what the model was trained for; None: that, but no more than 4096.
        n_batch: tokens of one pass, the grain of progress and cancelling.

    Raises:
        EngineError: onnxruntime-genai is missing, the folder cannot be loaded, or `n_ctx` or `n_batch` is out of range.
    """

    n_ctx: int
    n_batch: int

    def __init__(self, folder: str | os.PathLike[str], *, n_ctx: int | None = None, n_batch: int = PASS_TOKENS) -> None:
        path = Path(folder)
        settings = _settings(path)
        self._folder, self._module = path, _runtime()
        self.name = path.resolve().name
        try:
            self._size, trained = int(settings["vocab_size"]), int(settings["context_length"])
            ends = settings["eos_token_id"]
            self._ends = [int(end) for end in (ends if isinstance(ends, list) else [ends])]
        except (KeyError, TypeError, ValueError) as error:
            raise EngineError(
                f"genai_config.json has no usable {error}", place=str(path), help="build the model again"
            ) from error
        check_sizes(n_ctx, n_batch, trained)
        self.n_ctx = n_ctx or min(trained, DEFAULT_CONTEXT)
        """Tokens of one sequence."""
        self.n_batch = n_batch
        """Tokens of one pass."""
        try:
            self.model: Any = self._module.Model(str(path))
            """The runtime's model."""
            self._encoder = self._module.Tokenizer(self.model)
        except Exception as error:
            # The runtime raises RuntimeError and its own kinds.
            raise EngineError(f"cannot load the model: {error}", place=str(path)) from error
        self._cached = self._new_cache()

    @functools.cached_property
    def vocabulary(self) -> _core.Vocabulary:  # type: ignore[override]
        """The vocabulary of tokenizer.json as far as the model's logits reach, with genai_config.json's end tokens too.

        Raises:
            FileError: there is no tokenizer.json.
            VocabularyError: it cannot be read.
        """
        vocabulary = _core.Vocabulary.from_tokenizer_json(self._folder / "tokenizer.json")
        ends = sorted({*vocabulary.end_tokens, *self._ends})
        return cut(vocabulary.replace(end_tokens=ends, name=self.name), self._size)

    def read_tokenizer(self) -> _core.Tokenizer:
        """The tokenizer of the folder's tokenizer.json."""
        return _core.Tokenizer.from_tokenizer_json(self._folder / "tokenizer.json")

    def tokenize(self, text: str) -> list[int]:
        """The model's own tokenisation of a text, no special tokens added or recognised."""
        tokenizer = self.own_tokenizer
        assert tokenizer is not None
        return tokenizer.encode(text)

    @functools.cached_property
    def chat_template(self) -> str | None:  # type: ignore[override]
        """The folder's chat template, in Jinja; None: there is none."""
        written = self._folder / "chat_template.jinja"
        if written.is_file():
            return written.read_text(encoding="utf-8")
        template = _json(self._folder / "tokenizer_config.json").get("chat_template")
        return template if isinstance(template, str) else None

    def encode(self, prompt: str | Messages, *, chat: bool | None = None) -> list[int]:
        """The prompt's tokens.

        Args:
            prompt: text, or messages with "role" and "content".
            chat: True applies the folder's template, text being one message of the user; False takes the text as it is;
                None: where there is a template.

        Raises:
            EngineError: messages or `chat=True` and no template; a part that is no text; or the template refuses the
                messages.
            TypeError: these are no messages.
        """
        if chat is False or self.chat_template is None:
            if chat or not isinstance(prompt, str):
                raise EngineError(
                    "the folder has no chat template" if chat is not False else "messages need a chat template",
                    help="give the whole prompt as text with chat=False",
                )
            text = prompt
        else:
            messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else read_messages(prompt)
            try:
                text = self._encoder.apply_chat_template(json.dumps(messages), add_generation_prompt=True)
            except Exception as error:
                # The runtime raises what its own Jinja says.
                raise EngineError(f"the folder's chat template refuses these messages: {error}") from error
        return [int(token) for token in self._encoder.encode(text)]

    def __repr__(self) -> str:
        return f"OnnxGenAI({self.name!r})"

    def _new_cache(self) -> _GeneratorCache:
        return _GeneratorCache(self._module, self.model, self._size, self.n_ctx, self.n_batch)


class _GeneratorCache(CachedSequence):
    """A generator of the runtime, which holds one sequence."""

    n_ctx: int

    def __init__(self, module: Any, model: Any, vocabulary_size: int, n_ctx: int, pass_tokens: int) -> None:
        super().__init__(vocabulary_size, n_ctx)
        self._module, self._model, self._pass_tokens = module, model, pass_tokens
        self._generator: Any = None

    def cut(self, n: int) -> bool:
        try:
            self._generator.rewind_to(len(self.tokens) - n)
        except Exception:
            # A runtime that cannot says so by an exception of its own; then the sequence is evaluated again.
            return False
        return True

    def clear(self) -> None:
        super().clear()
        self._generator = None

    def append(self, tokens: Sequence[int]) -> Logits:
        held, generator, size = self.tokens, self._generator, self._pass_tokens
        self.clear()
        try:
            if generator is None:
                params = self._module.GeneratorParams(self._model)
                params.set_search_options(max_length=self.n_ctx, batch_size=1)
                generator = self._module.Generator(self._model, params)
            for start in range(0, len(tokens), size):
                generator.append_tokens(np.array(tokens[start : start + size], np.int32))
            logits = np.array(generator.get_logits()[0, -1], np.float32)
        except Exception as error:
            # What the runtime raises is a RuntimeError, or an exception of its own.
            raise EngineError(f"the model fails: {error}") from error
        logits.flags.writeable = False
        self.tokens, self._generator = [*held, *tokens], generator
        return logits


def _runtime() -> Any:
    """The runtime's module, or an EngineError that says how to install it."""
    try:
        return importlib.import_module("onnxruntime_genai")
    except ImportError as missing:
        raise EngineError(
            f"onnxruntime-genai is not usable: {missing}", help="pip install 'logitree[onnx]'"
        ) from missing


def _settings(folder: Path) -> dict[str, Any]:
    """The model's part of genai_config.json."""
    file = folder / "genai_config.json"
    if not file.is_file():
        if not folder.exists():
            raise missing_model(folder)
        raise EngineError(
            "no genai_config.json in this folder",
            place=str(folder),
            help="python -m onnxruntime_genai.models.builder makes such a folder of a model",
        )
    model = _json(file).get("model")
    if not isinstance(model, dict):
        raise EngineError('genai_config.json has no "model"', place=str(folder), help="build the model again")
    return model


def _json(file: Path) -> dict[str, Any]:
    """A file's JSON object; empty where the file is missing."""
    if not file.is_file():
        return {}
    try:
        made = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise EngineError(f"{file.name} cannot be read: {error}", place=str(file.parent)) from error
    return made if isinstance(made, dict) else {}
