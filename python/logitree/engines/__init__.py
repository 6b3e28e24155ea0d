"""Adapters to what runs a model, and the interface that they share.

An engine turns tokens into logits and text into tokens. It knows nothing of constraints, samplers, the
command line or other engines; `logitree.generate` is the loop that brings them together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from .. import _core

Logits = npt.NDArray[np.float32]
"""Logits of one position: float32 [vocabulary], borrowed: valid until the session's next `evaluate`."""

OnLoad = Callable[[float], None]
"""Called with the fraction of the model that is loaded, 0.0 to 1.0."""

Messages = Sequence[Mapping[str, Any]]
"""A chat: mappings with at least "role" and "content"."""


class ContextFull(Exception):
    """The engine has no room for the tokens; nothing was evaluated. Never leaves `logitree.generate`."""

    def __init__(self, rows: Sequence[int] = ()) -> None:
        super().__init__("the context is full")
        self.rows = tuple(rows)
        """The rows of a batch session that do not fit; empty: of a session that has one row."""


@runtime_checkable
class Session(Protocol):
    """One sequence of tokens in an engine's memory.

    Sessions of the same engine may be used in turns: each brings its own tokens back before it goes on.
    """

    @property
    def tokens(self) -> Sequence[int]:
        """The tokens evaluated so far, oldest first."""
        ...

    @property
    def room(self) -> int:
        """How many more tokens fit."""
        ...

    def begin(self, tokens: Sequence[int]) -> int:
        """Says what the sequence will begin with, so that what memory already holds of it is kept.

        Returns:
            How many of `tokens` are evaluated by that: all but the last at most. The rest is the caller's to
                evaluate.
        """
        ...

    def evaluate(self, tokens: Sequence[int]) -> Logits:
        """Appends tokens, in as few passes as possible, and gives the logits after the last one.

        Raises:
            ContextFull: they do not fit; nothing was evaluated.
            EngineError: the engine failed.
        """
        ...


@runtime_checkable
class Engine(Protocol):
    """What `logitree.generate` needs of a model runner."""

    @property
    def vocabulary(self) -> _core.Vocabulary:
        """The vocabulary of the model."""
        ...

    @property
    def name(self) -> str:
        """What the model calls itself, for people."""
        ...

    @property
    def n_ctx(self) -> int:
        """How many tokens fit into one session."""
        ...

    @property
    def n_batch(self) -> int:
        """How many tokens one pass takes."""
        ...

    def encode(self, prompt: str | Messages, *, chat: bool | None = None) -> list[int]:
        """The prompt's tokens. `chat`: True applies the model's template, False does not, None: where it has
        one."""
        ...

    def tokenize(self, text: str) -> list[int]:
        """The model's own tokenisation of a text, no special tokens added or recognised."""
        ...

    def session(self) -> Session:
        """A new, empty sequence."""
        ...


Rows = npt.NDArray[np.float32]
"""Logits of several positions: float32 [rows, vocabulary], borrowed: valid until the session's next call."""


@runtime_checkable
class BeamSession(Protocol):
    """Several sequences in an engine's memory, each of which may go on in several ways at once."""

    def begin(self, prompts: Sequence[Sequence[int]]) -> Rows:
        """Evaluates the prompts, one row each, and gives the logits after each one's last token: [P, V].

        Raises:
            EngineError: a prompt is empty, they do not fit, or the engine failed.
            TokenError: a token is not in the vocabulary.
        """
        ...

    def step(self, parents: npt.ArrayLike, tokens: npt.ArrayLike) -> Rows:
        """Makes new rows of the old ones: row i is a copy of the old row `parents[i]` and one token more.

        There may be more rows than before or fewer. A row that is nobody's parent is forgotten.

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
