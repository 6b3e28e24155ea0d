"""What a beam search asks of a tree of token sequences: where a beam may go, and which ways on are best.

It is the shape only. It knows no tree, no file and no model: a prefix tree's snapshot has it, and so may anything else.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

FINISHED = -1
"""The state after the end token; whatever is read, it stays."""
FAILED = -2
"""The state after a token that was not allowed; only the end token leads out of it."""


class Candidates(Protocol):
    """Ways to go on, one an entry: four arrays of the same length."""

    @property
    def rows(self) -> Ints:
        """int64: which of the asked states it goes on from, by its place."""
        ...

    @property
    def tokens(self) -> npt.NDArray[np.int32]:
        """int32: the token that is read."""
        ...

    @property
    def scores(self) -> Floats:
        """float64: the row's score, the token's logit and the child's weight, summed."""
        ...

    @property
    def states(self) -> Ints:
        """int64: the state after the token."""
        ...


class Paths(Protocol):
    """Token sequences as a tree whose places are numbers, asked for many places at once.

    States are int64 [R]. `FINISHED` (-1) is the state after the end token, `FAILED` (-2) the one after a token that
    was not allowed. An attribute `weighted` (bool) may tell whether any child has a weight; where there is none, a
    search takes it that some do.
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

    def advance(self, states: npt.ArrayLike, tokens: npt.ArrayLike) -> Ints:
        """The states [R] after one token each.

        The end token leads to `FINISHED` from everywhere and nothing leads out of that; what is not allowed leads to
        `FAILED`.
        """
        ...

    def gather(self, states: npt.ArrayLike, logits: Any, scores: npt.ArrayLike | None = None) -> Candidates:
        """Every allowed way on from every state, ordered by row and token.

        The end token is one after an item, and the only one where nothing follows. A `FINISHED` row gives nothing, a
        `FAILED` one only the end token, at the row's own score. What scores -inf is left out.

        Args:
            states: int64 [R].
            logits: float32 [R, V].
            scores: float64 [R], what each row has already; None: nothing.

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
        owners: npt.ArrayLike | None = None,
    ) -> Candidates:
        """The best `width` of `gather` for each owner, ordered by owner, score (descending), row and token.

        Args:
            owners: int [R], not decreasing: whose row it is; None: all are one owner's.

        Raises:
            LogitsError: as `gather`.
        """
        ...

    def complete(self, states: npt.ArrayLike) -> Truths:
        """Whether what was read is an item, for each state."""
        ...

    def open(self, states: npt.ArrayLike) -> Truths:
        """Whether any token but the end may follow, for each state."""
        ...

    def items(self, state: int) -> npt.NDArray[np.uint64]:
        """The ids of the items that are exactly what was read."""
        ...
