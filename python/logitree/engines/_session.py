"""What an engine holds of sequences: rows of tokens, evaluated together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _renamed
from .._errors import EngineError

Logits = npt.NDArray[np.float32]
"""Logits of one position: float32 [vocabulary], borrowed: valid until the session's next `evaluate`."""

Rows = Sequence[Logits] | npt.NDArray[np.float32]
"""Logits of several positions: [rows, vocabulary], or a list of `Logits`; borrowed likewise."""


NO_LOGITS: Logits = np.empty(0, np.float32)
"""In place of the logits of a row that got no tokens."""


class ContextFull(Exception):
    """The engine has no room for the tokens; nothing was evaluated. Never leaves `logitree.generate`."""

    def __init__(self, rows: Sequence[int] = ()) -> None:
        super().__init__("the context is full")
        self.rows = tuple(rows)
        """The rows that do not fit; empty: all of them."""


class Session:
    """Rows of tokens in an engine's memory. A single sequence is a session of one row.

    A class defines `evaluate`, or `evaluate_rows` where its sessions hold several rows: each has the other as
    its default. The other members are abilities: a class overrides those that it has.
    """

    can_rollback: bool = False
    """Whether `rollback` works."""
    can_restart: bool = False
    """Whether a row may begin again after its end, while others continue."""

    def evaluate(self, tokens: Sequence[int]) -> Logits:
        """Appends tokens to the only row, in as few passes as possible.

        Returns:
            The logits after the last token: float32 [V], valid until the engine's next evaluation.

        Raises:
            ContextFull: they do not fit; nothing was evaluated.
            EngineError: the engine failed, or the session has several rows.
        """
        if type(self).evaluate_rows is Session.evaluate_rows:
            raise TypeError(f"{type(self).__name__} defines neither evaluate nor evaluate_rows")
        (logits,) = self.evaluate_rows([tokens])
        return logits

    def evaluate_rows(self, tokens: Sequence[Sequence[int]]) -> Rows:
        """Appends `tokens[i]` to row i. A row without tokens is left as it is, and its logits are not read.

        The first call makes the rows, one for each list.

        Returns:
            The logits after each row's last token: float32 [V] each, valid until the engine's next evaluation.

        Raises:
            ContextFull: the rows that it names do not fit; nothing was evaluated.
            EngineError: not one list for each row, or the engine failed.
        """
        (only,) = tokens
        return [self.evaluate(only)]

    def evaluate_all(self, tokens: Sequence[int], last: int, row: int = 0) -> Sequence[Logits]:
        """As `evaluate` for a row, with the logits after each of the last `last` tokens, which must be those that
        `evaluate` would give. Proposals are evaluated with it; see `draft_room`. `row` is given to sessions that have
        several."""
        raise EngineError(f"a {type(self).__name__} gives the logits of the last token only")

    def draft_room(self, row: int = 0) -> int:
        """How many more tokens of a row `evaluate_all` may evaluate and `rollback` take back, at next to no cost and
        with the logits that `evaluate` would give; 0: nothing is proposed."""
        return 0

    def begin(self, tokens: Sequence[int], row: int = 0) -> int:
        """Announces the beginning of a row, so that what memory holds of it is reused. Where `can_restart`, a row that
        ended begins again.

        Returns:
            How many of the tokens need no evaluation, at most all but the last.
        """
        return 0

    def end(self, row: int) -> None:
        """Announces that a row takes no more tokens."""

    def rollback(self, n: int, row: int = 0) -> None:
        """Forgets the last `n` tokens of a row; the next evaluation continues from there.

        Raises:
            EngineError: there are fewer, or the session cannot.
        """
        raise EngineError(f"a {type(self).__name__} cannot take tokens back")

    def reorder(self, parents: npt.ArrayLike) -> None:
        """Makes new rows of the old ones: row i is a copy of the old row `parents[i]`.

        There may be more rows than before or fewer. A row that is no row's parent is forgotten.

        Raises:
            StateError: a parent is no row; nothing has changed.
            EngineError: the rows do not fit, and nothing has changed; or the session cannot.
        """
        raise EngineError(f"a {type(self).__name__} cannot fork its rows")

    def close(self) -> None:
        """Releases the memory. Logits that it handed out must not be read any more."""


def as_session(session: Any) -> Session:
    """A session as it is, or one of 0.1 in the form of now."""
    if isinstance(session, Session):
        return session
    from ._old import OldSession

    _renamed.deprecated("session", name=type(session).__name__, stacklevel=4)
    return OldSession(session)


class InTurns(Session):
    """Rows that are a session each, for engines whose sessions have one row."""

    can_restart = True

    def __init__(self, make: Callable[[], Session], rows: int) -> None:
        """`make`: makes the session of a row."""
        self._make = make
        self._sessions: list[Session | None] = [None] * rows
        """None: the row has not begun, or has ended."""
        self._made: dict[int, tuple[list[int], Logits]] = {}
        """Tokens and logits of rows that fitted where others did not: the next call is that for the same tokens."""

    def begin(self, tokens: Sequence[int], row: int = 0) -> int:
        """How many of the tokens the row's session holds."""
        self.end(row)
        return self._session(row).begin(tokens)

    def end(self, row: int) -> None:
        """Closes the row's session."""
        session, self._sessions[row] = self._sessions[row], None
        self._made.pop(row, None)
        if session is not None:
            session.close()

    def evaluate_rows(self, tokens: Sequence[Sequence[int]]) -> Rows:
        """Evaluates each row that has tokens; the logits are copied, since engines reuse them."""
        if len(tokens) != len(self._sessions):
            raise EngineError(f"{len(tokens)} lists of tokens for {len(self._sessions)} rows")
        kept, self._made = self._made, {}
        made, full = dict[int, tuple[list[int], Logits]](), list[int]()
        for row, new in enumerate(tokens):
            if not new:
                continue
            session = self._session(row)
            held = kept.pop(row, None)
            if held is not None and held[0] == list(new):
                made[row] = held
                continue
            if held is not None:
                session.rollback(len(held[0]))
            try:
                made[row] = list(new), session.evaluate(new).copy()
            except ContextFull:
                full.append(row)
        if full:
            self._made = kept | made
            raise ContextFull(full)
        self._made = kept
        return [made[row][1] if row in made else NO_LOGITS for row in range(len(tokens))]

    def evaluate_all(self, tokens: Sequence[int], last: int, row: int = 0) -> Sequence[Logits]:
        """As that of the row's session."""
        return self._session(row).evaluate_all(tokens, last)

    def draft_room(self, row: int = 0) -> int:
        """As that of the row's session, where nothing waits for another row."""
        return 0 if self._made else self._session(row).draft_room()

    def rollback(self, n: int, row: int = 0) -> None:
        """As that of the row's session."""
        self._session(row).rollback(n)

    def close(self) -> None:
        """Closes the sessions."""
        for row in range(len(self._sessions)):
            self.end(row)

    def _session(self, row: int) -> Session:
        session = self._sessions[row]
        if session is None:
            session = self._sessions[row] = self._make()
        return session
