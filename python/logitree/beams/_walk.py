"""The protocol that a beam search asks for continuations; `logitree.catalogue.ItemWalk` implements it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

FINISHED = -1
"""The state after the end token; no token leaves it."""
FAILED = -2
"""The state after a token that was not allowed; only the end token leaves it."""


class Candidates(Protocol):
    """Continuations as four arrays of the same length."""

    @property
    def rows(self) -> Ints:
        """int64: the index of the state that it continues."""
        ...

    @property
    def tokens(self) -> npt.NDArray[np.int32]:
        """int32: the token."""
        ...

    @property
    def scores(self) -> Floats:
        """float64: the row's score, the token's logit and the child's weight, summed."""
        ...

    @property
    def states(self) -> Ints:
        """int64: the state after the token."""
        ...


class TokenWalk(Protocol):
    """A set of token sequences, walked by many beams at once: states are numbers.

    States are int64 [R]. `FINISHED` (-1) is the state after the end token, `FAILED` (-2) the one after a token that
    was not allowed.
    """

    @property
    def start(self) -> int:
        """The state where every sequence begins."""
        ...

    @property
    def end(self) -> int | None:
        """The token that ends an item; None: an item ends by itself."""
        ...

    @property
    def vocabulary_size(self) -> int:
        """The number of token ids, V."""
        ...

    @property
    def weighted(self) -> bool:
        """Whether tokens may have weights."""
        ...

    def advance(self, states: npt.ArrayLike, tokens: npt.ArrayLike) -> Ints:
        """The states [R] after one token each.

        The end token leads to `FINISHED` from everywhere, and nothing leaves that; what is not allowed leads to
        `FAILED`.
        """
        ...

    def gather(self, states: npt.ArrayLike, logits: Any, scores: npt.ArrayLike | None = None) -> Candidates:
        """Every allowed continuation of every state, ordered by row and token.

        The end token is one after an item, and the only one where nothing follows. A `FINISHED` row gives nothing, a
        `FAILED` one only the end token, at the row's own score. What scores -inf is left out.

        Args:
            states: int64 [R].
            logits: float32 [R, V].
            scores: float64 [R], the score of each row so far; None: 0.

        Raises:
            LogitsError: an allowed token's logit is NaN or +inf, or the shape is another.
        """
        ...

    def top(
        self,
        states: npt.ArrayLike,
        logits: Any,
        scores: npt.ArrayLike,
        width: int,
        *,
        groups: npt.ArrayLike | None = None,
    ) -> Candidates:
        """The best `width` of `gather` for each group, ordered by group, score (descending), row and token.

        Args:
            groups: int [R], not decreasing: the group of each row; None: one group.

        Raises:
            LogitsError: as `gather`.
        """
        ...

    def is_item(self, states: npt.ArrayLike) -> Truths:
        """bool [R]: whether the tokens so far are an item."""
        ...

    def may_continue(self, states: npt.ArrayLike) -> Truths:
        """bool [R]: whether any token but the end may follow."""
        ...

    def items(self, state: int) -> npt.NDArray[np.uint64] | Sequence[str]:
        """The numbers or keys of the items that are exactly what was read."""
        ...
