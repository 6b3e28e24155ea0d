"""Engines and sessions in the form of 0.1, for one release: classes without bases, whose abilities are looked up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._engine import Engine, Messages
from ._session import Rows, Session


def _found(value: Any, *names: str) -> dict[str, Any]:
    """The attributes that it has, but for the defaults of `Session`, from which sessions of 0.1 may derive."""
    found = {name: getattr(value, name) for name in names if hasattr(value, name)}
    defaults = vars(Session)
    return {name: one for name, one in found.items() if getattr(one, "__func__", one) is not defaults.get(name, found)}


class OldEngine(Engine):
    """An engine of 0.1. Several rows are sessions in turns, whatever it has for them."""

    own_tokenizer = property(lambda self: getattr(self._engine, "own_tokenizer", None))

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        names = ("vocabulary", "name", "n_ctx", "n_batch", "tokenize", "chat_template", "pass_costs")
        vars(self).update(_found(engine, *names))

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
        found = {"evaluate": session.evaluate, **_found(session, "evaluate_all", "rollback")}
        if _found(session, "begin"):
            found["begin"] = lambda tokens, row=0: session.begin(tokens)
        self.can_rollback = "rollback" in found
        if len(found.keys() & {"evaluate_all", "rollback"}) == 2 and getattr(session, "can_draft", True):
            found["draft_room"] = lambda row=0: (
                room() if callable(room := getattr(session, "draft_room", 1 << 62)) else room
            )
        vars(self).update(found)


class OldRows:
    """What `beam_session` gave in 0.1."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.close = session.close

    def begin(self, prompts: Sequence[Sequence[int]]) -> Rows:
        """The logits after each prompt: [P, V]."""
        return np.asarray(self._session.evaluate_rows(prompts))

    def step(self, parents: npt.ArrayLike, tokens: npt.ArrayLike) -> Rows:
        """The logits after each new row's token: [R, V]."""
        self._session.reorder(parents)
        return np.asarray(self._session.evaluate_rows([[token] for token in np.asarray(tokens).tolist()]))
