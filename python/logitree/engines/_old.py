"""Engines and sessions in the form of 0.1, for one release: classes without bases, whose abilities are looked up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._engine import Engine, Messages
from ._session import Logits, Rows, Session

_SAME = ("name", "n_ctx", "n_batch", "tokenize", "chat_template", "pass_costs")


class OldEngine(Engine):
    """An engine of 0.1. Several rows are sessions in turns, whatever it has for them."""

    vocabulary = property(lambda self: self._engine.vocabulary)
    own_tokenizer = property(lambda self: getattr(self._engine, "own_tokenizer", None))

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        for name in _SAME:
            if hasattr(engine, name):
                setattr(self, name, getattr(engine, name))

    def encode(self, prompt: str | Messages, *, chat: bool | None = None) -> list[int]:
        """The engine's tokens."""
        tokens: list[int] = self._engine.encode(prompt, chat=chat)
        return tokens

    def session(self) -> Session:
        """The engine's session."""
        return OldSession(self._engine.session())


class OldSession(Session):
    """A session of 0.1."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self.can_rollback = hasattr(session, "rollback")

    def evaluate(self, tokens: Sequence[int]) -> Logits:
        """The session's logits."""
        logits: Logits = self._session.evaluate(tokens)
        return logits

    def evaluate_all(self, tokens: Sequence[int], last: int) -> Sequence[Logits]:
        """The session's logits."""
        rows: Sequence[Logits] = self._session.evaluate_all(tokens, last)
        return rows

    def draft_room(self) -> int:
        """What the session says; any number where it says nothing and can take tokens back."""
        able = self.can_rollback and hasattr(self._session, "evaluate_all")
        if not able or not getattr(self._session, "can_draft", True):
            return 0
        return int(getattr(self._session, "draft_room", 1 << 62))

    def begin(self, tokens: Sequence[int], row: int = 0) -> int:
        """What the session says."""
        begin = getattr(self._session, "begin", None)
        return 0 if begin is None else int(begin(tokens))

    def rollback(self, n: int, row: int = 0) -> None:
        """Forgets the last `n` tokens."""
        self._session.rollback(n)


class OldRows:
    """What `beam_session` gave in 0.1."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def begin(self, prompts: Sequence[Sequence[int]]) -> Rows:
        """The logits after each prompt: [P, V]."""
        return np.asarray(self._session.evaluate_rows(prompts))

    def step(self, parents: npt.ArrayLike, tokens: npt.ArrayLike) -> Rows:
        """The logits after each new row's token: [R, V]."""
        self._session.reorder(parents)
        return np.asarray(self._session.evaluate_rows([[token] for token in np.asarray(tokens).tolist()]))

    def close(self) -> None:
        """Releases the memory."""
        self._session.close()
