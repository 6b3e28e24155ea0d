"""Adapters to what runs a model, and the interface that they share.

An engine turns tokens into logits and text into tokens. It knows nothing of constraints, samplers, the
command line or other engines; `logitree.generate` is the loop that brings them together.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from .. import _core
from ._costs import PassCosts as PassCosts
from ._paths import missing_model

Logits = npt.NDArray[np.float32]
"""Logits of one position: float32 [vocabulary], borrowed: valid until the session's next `evaluate`."""

OnLoad = Callable[[float], None]
"""Called with the fraction of the model that is loaded, 0.0 to 1.0."""

Messages = Sequence[Mapping[str, Any]]
"""A chat: mappings with at least "role" and "content", a text or a list of parts, `{"type": "text", "text": ...}`."""


class ContextFull(Exception):
    """The engine has no room for the tokens; nothing was evaluated. Never leaves `logitree.generate`."""

    def __init__(self, rows: Sequence[int] = ()) -> None:
        super().__init__("the context is full")
        self.rows = tuple(rows)
        """The rows of a batch session that do not fit; empty: of a session that has one row."""


@runtime_checkable
class Session(Protocol):
    """One sequence of tokens in an engine's memory.

    Sessions of one engine may be used in turns. Optional members that `logitree.generate` uses where they exist:

    - ``begin(tokens) -> int``: announces the beginning of the sequence, so that what memory already holds of it is
      reused. Gives how many of the tokens need no evaluation, at most all but the last.
    - ``evaluate_all(tokens, last) -> Sequence[Logits]``: as `evaluate`, with the logits after each of the last `last`
      tokens, which must be those that `evaluate` would give. With it and `rollback`, certain text and drafts are
      evaluated in one pass.
    - ``rollback(n)``: forgets the last `n` tokens; the next evaluation continues from there.
    - ``can_draft: bool``: whether that costs next to nothing; True where it is missing.
    - ``draft_room: int``: how many more tokens can be evaluated so that `evaluate_all` gives what `evaluate` would; as
      many as fit where it is missing.
    """

    def evaluate(self, tokens: Sequence[int]) -> Logits:
        """Appends tokens, in as few passes as possible.

        Returns:
            The logits after the last token: float32 [V], valid until the engine's next evaluation.

        Raises:
            ContextFull: they do not fit; nothing was evaluated.
            EngineError: the engine failed.
        """
        ...


@runtime_checkable
class BatchSession(Protocol):
    """Several sequences in an engine's memory, evaluated together."""

    def evaluate(self, tokens: Sequence[Sequence[int]]) -> Sequence[Logits]:
        """Appends `tokens[i]` to row i. A row without tokens is left as it is, and its logits are not read.

        Returns:
            The logits after each row's last token: float32 [V] each, valid until the engine's next evaluation.

        Raises:
            ContextFull: the rows that it names do not fit; nothing was evaluated.
            EngineError: the engine failed.
        """
        ...

    def close(self) -> None:
        """Releases the memory. Logits that it handed out must not be read any more."""
        ...


@runtime_checkable
class Engine(Protocol):
    """What `logitree.generate` needs of a model runner.

    Optional members that are used where they exist:

    - ``tokenize(text) -> list[int]``: the model's own tokenisation, no special tokens added or recognised.
    - ``name: str``: what the model is called.
    - ``n_ctx: int | None``: how many tokens fit into one sequence.
    - ``n_batch: int``: how many tokens one pass takes: the grain of progress and of cancelling.
    - ``batch_session(rows, tokens) -> BatchSession``: several sequences in one pass; `tokens` is the most that all of
      them may hold together. ``batch_rows: int | None``: the most rows of one such session.
    - ``beam_session(rows, tokens) -> BeamSession``: for `logitree.beam_search`.
    - ``tree_logits(prompt, parents, tokens, read) -> Evaluated``: calls `read(node, logits)` after a prompt (node -1)
      and after each node of a tree of continuations (`engines._trees`), for `logitree.choose`; without it beams or
      sessions are used.
    - ``own_tokenizer: Tokenizer``: for `tokenizations="canonical"`.
    - ``pass_costs: PassCosts``: what passes cost, as far as it is known; without it proposed tokens count as free.
    """

    @property
    def vocabulary(self) -> _core.Vocabulary:
        """The vocabulary of the model."""
        ...

    def encode(self, prompt: str | Messages, *, chat: bool | None = None) -> list[int]:
        """The prompt's tokens.

        Args:
            prompt: text, or messages with "role" and "content".
            chat: True applies the model's chat template, False does not, None does where there is one.
        """
        ...

    def session(self) -> Session:
        """A new, empty sequence."""
        ...


def open(model: Any, *, on_load: OnLoad | None = None) -> Engine:
    """The engine of a model.

    Args:
        model: an engine, which is returned as it is; the path of a GGUF file or a `llama_cpp.Llama` (llama.cpp); the
            path of a folder that transformers saved, or a pair of a loaded model and its tokenizer (transformers).
        on_load: called with the fraction that is loaded, where the runtime tells.

    Raises:
        EngineError: the runtime is missing, or the model cannot be loaded. Nothing is downloaded: an id of Hugging Face
            is no model.
        TypeError: the value is no model.
    """
    if isinstance(model, Engine) and not isinstance(model, type):
        return model
    if isinstance(model, tuple) and len(model) == 2:
        from .transformers import Transformers

        return Transformers(*model)
    if isinstance(model, str | os.PathLike):
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


Rows = npt.NDArray[np.float32]
"""Logits of several positions: float32 [rows, vocabulary], borrowed: valid until the session's next call."""


@runtime_checkable
class BeamSession(Protocol):
    """Several sequences in an engine's memory, each of which may have several continuations at once."""

    def begin(self, prompts: Sequence[Sequence[int]]) -> Rows:
        """Evaluates the prompts, one row each, and gives the logits after each one's last token: [P, V].

        Raises:
            EngineError: a prompt is empty, they do not fit, or the engine failed.
            TokenError: a token is not in the vocabulary.
        """
        ...

    def step(self, parents: npt.ArrayLike, tokens: npt.ArrayLike) -> Rows:
        """Makes new rows of the old ones: row i is a copy of the old row `parents[i]` and one token more.

        There may be more rows than before or fewer. A row that is no row's parent is forgotten.

        Returns:
            The logits after each new row's token: [R, V].

        Raises:
            StateError: a parent is no row; nothing has changed.
            TokenError: a token is not in the vocabulary; nothing has changed.
            EngineError: the rows do not fit, and nothing has changed; or the engine failed.
        """
        ...

    def close(self) -> None:
        """Gives the memory back. Logits that it handed out must not be looked at any more."""
        ...


@runtime_checkable
class BeamEngine(Protocol):
    """What `logitree.beam_search` needs of a model runner."""

    @property
    def beam_rows(self) -> int | None:
        """The most rows that one beam session holds; None: as many as memory does."""
        ...

    def encode(self, prompt: str | Messages, *, chat: bool | None = None) -> list[int]:
        """The prompt's tokens, as of `Engine`."""
        ...

    def beam_session(self, rows: int | None = None, tokens: int | None = None) -> BeamSession:
        """A new session for at most `rows` rows (None: `beam_rows`) of `tokens` tokens each after their prompts."""
        ...
