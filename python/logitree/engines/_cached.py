"""Engines that keep one cache of a sequence: a session begins where the cache and its prompt agree."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence

from .._arguments import whole
from .._errors import EngineError
from ._engine import Engine
from ._rows import checked_tokens, common_prefix
from ._session import ContextFull, InTurns, Logits, Session


class CachedSequence(ABC):
    """A model's cache of one sequence, and the tokens that it holds.

    After an error it holds nothing: a pass that failed may have changed a part of the cache.

    Args:
        vocabulary_size: length of the model's logits.
        n_ctx: tokens that fit; None: any number.
    """

    def __init__(self, vocabulary_size: int, n_ctx: int | None) -> None:
        self.vocabulary_size, self.n_ctx = vocabulary_size, n_ctx
        self.tokens: list[int] = []
        self.lock = threading.Lock()
        """Held while sessions use the cache."""

    @abstractmethod
    def append(self, tokens: Sequence[int]) -> Logits:
        """Evaluates tokens, at least one, after those that it holds; float32 [V] after the last one."""

    @abstractmethod
    def cut(self, n: int) -> bool:
        """Removes the last `n` tokens, not all of them. False: the cache cannot be cut, and is unusable now."""

    @abstractmethod
    def clear(self) -> None:
        """Forgets everything. An implementation calls this one, which forgets the tokens."""
        self.tokens = []

    def keep_common(self, wanted: Sequence[int]) -> list[int]:
        """Cuts the cache to what it has in common with the wanted tokens, and gives that."""
        held, n = self.tokens, common_prefix(self.tokens, wanted)
        if n < len(held):
            if n and self.cut(len(held) - n):
                del held[n:]
            else:
                self.clear()
        return [*self.tokens]


class CachedSession(Session):
    """One sequence of tokens in an engine that keeps a cache.

    Sessions of an engine share its cache. A session that is used after another one evaluates again what differs.
    """

    can_rollback = True

    def __init__(self, cached: CachedSequence) -> None:
        self._cached = cached
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
        with self._cached.lock:
            self._tokens = self._cached.keep_common(tokens[:-1])
        return len(self._tokens)

    def evaluate(self, tokens: Sequence[int]) -> Logits:
        """Appends tokens and gives the logits after the last one; without tokens, those after the last token again.

        Returns:
            float32 [V], read-only; valid for as long as it is referenced.

        Raises:
            ContextFull: they do not fit; nothing was evaluated.
            EngineError: there is nothing to evaluate, or the model fails.
            TokenError: a token is not in the model's vocabulary; nothing was evaluated.
        """
        cached = self._cached
        if cached.n_ctx is not None and len(self._tokens) + len(tokens) > cached.n_ctx:
            raise ContextFull
        if not tokens and not self._tokens:
            raise EngineError("nothing to evaluate: the prompt is empty", help="give at least one token")
        checked_tokens(tokens, cached.vocabulary_size)
        with cached.lock:
            wanted = [*self._tokens, *tokens]
            held = cached.keep_common(wanted[:-1])
            logits = cached.append(wanted[len(held) :])
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


class CachedEngine(Engine):
    """An engine whose sessions are sequences over one cache. A class sets `_cached` to its first `_new_cache()`."""

    _cached: CachedSequence

    @abstractmethod
    def _new_cache(self) -> CachedSequence:
        """An empty cache of the model."""

    def session(self) -> Session:
        """A new, empty sequence. What the cache holds is reused as far as the new sequence begins alike."""
        return CachedSession(self._cached)

    def batch_session(self, rows: int | None, tokens: int | None = None, *, forks: bool = False) -> Session:
        """Rows with a cache each, evaluated in turns; see `Engine.batch_session`."""
        if forks or rows is None:
            return super().batch_session(rows, tokens, forks=forks)
        return InTurns(lambda: CachedSession(self._new_cache()), rows)


def check_sizes(n_ctx: int | None, n_batch: int | None, trained: int | None) -> None:
    """Checks what a caller asks for. `trained`: tokens that the model was trained for; None: it does not say.

    Raises:
        EngineError: a number below 1, or more context than the model was trained for.
        TypeError: it is no whole number.
    """
    for name, given in (("n_ctx", n_ctx), ("n_batch", n_batch)):
        if given is not None and whole(given, name, "give a whole number") < 1:
            raise EngineError(f"{name} is {given}", help="use 1 or more")
    if n_ctx is not None and trained is not None and n_ctx > trained:
        raise EngineError(f"n_ctx is {n_ctx}, the model was trained for {trained}", help=f"use {trained} or less")
