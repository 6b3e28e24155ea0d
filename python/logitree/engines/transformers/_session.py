"""Sessions of a transformers engine: one sequence each, all over the engine's one cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..._errors import EngineError
from .._rows import checked_tokens
from .._session import ContextFull, Logits, Session
from ._forward import CachedSequence

if TYPE_CHECKING:
    from ._engine import Transformers


class TransformersSession(Session):
    """One sequence of tokens in a Transformers engine.

    Sessions of an engine share its cache, unless they are given one. A session that is used after another one evaluates
    again what differs.
    """

    can_rollback = True

    def __init__(self, engine: Transformers, cached: CachedSequence | None = None) -> None:
        self._engine, self._cached = engine, cached or engine._cached
        self._tokens: list[int] = []

    @property
    def tokens(self) -> Sequence[int]:
        """The tokens evaluated so far, oldest first."""
        return tuple(self._tokens)

    def begin(self, tokens: Sequence[int], row: int = 0) -> int:
        """Starts an empty sequence with what the cache holds of these tokens, all but the last at most.

        Returns:
            How many of them need no evaluation any more.

        Raises:
            EngineError: the sequence has begun already.
        """
        if self._tokens:
            raise EngineError("the session has begun already", help="use a new session for a new prompt")
        with self._engine._lock:
            self._tokens = self._cached.keep_common(tokens[:-1])
        return len(self._tokens)

    def evaluate(self, tokens: Sequence[int]) -> Logits:
        """Appends tokens and gives the logits after the last one; without tokens, those after the last token again.

        Returns:
            float32 [V], read-only; valid for as long as it is referenced.

        Raises:
            ContextFull: they do not fit; nothing was evaluated.
            EngineError: there is nothing to evaluate, or the model keeps no cache.
            TokenError: a token is not in the model's vocabulary; nothing was evaluated.
        """
        engine = self._engine
        if engine.n_ctx is not None and len(self._tokens) + len(tokens) > engine.n_ctx:
            raise ContextFull
        if not tokens and not self._tokens:
            raise EngineError("nothing to evaluate: the prompt is empty", help="give at least one token")
        checked_tokens(tokens, engine.runner.vocabulary_size)
        with engine._lock:
            wanted = [*self._tokens, *tokens]
            held = self._cached.keep_common(wanted[:-1])
            logits = self._cached.append(wanted[len(held) :])
            self._tokens = wanted
            return logits

    def rollback(self, n: int, row: int = 0) -> None:
        """Removes the last `n` tokens.

        Raises:
            EngineError: there are fewer than `n`.
        """
        if not 0 <= n <= len(self._tokens):
            raise EngineError(f"cannot roll back {n} of {len(self._tokens)} tokens")
        del self._tokens[len(self._tokens) - n :]
