"""The three roles of RTP-LLM's logits processors, and the rows that they speak of. It knows no constraint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .. import _core
from .. import masks as mask
from .._errors import error
from ..beams import reindex

Logits = npt.NDArray[Any]
"""[rows, V] of float32, float16 or bfloat16 (ml_dtypes), written in place."""


class Processor(ABC):
    """Masks the logits of several rows, and follows their tokens. A row is one sequence of a batch."""

    rank: ClassVar[int] = 0
    """Its place in `Processors`: the lower, the earlier."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many rows there are."""

    def process(self, logits: Logits) -> None:
        """Writes -inf over what is not allowed, row by row; every other cell stays as it is, to the bit.

        Raises:
            LogitsError: not [rows, V] of float32, float16 or bfloat16, or an allowed token is beyond V.
        """
        self._process(checked_logits(logits, self.rows))

    def update_status(self, tokens: npt.ArrayLike) -> None:
        """Reads what each row generated: int [rows], or [rows, n] for n tokens each. All rows or, with an error, none.

        Raises:
            TokenError: not as many rows, or something is no token.
        """
        self._read(self.checked_tokens(tokens))

    def update_multi_seq_status(self, parents: npt.ArrayLike) -> None:
        """New row i continues as a copy of old row `parents[i]`; there may be more rows than before, or fewer.

        Raises:
            StateError: a parent is no row. Nothing has changed.
        """
        self._take(self.checked_parents(parents))

    def add_rows(self, count: int = 1) -> None:
        """Adds rows at their beginning, after the others.

        Raises:
            StateError: a negative count.
        """
        self._add(self.checked_count(count))

    def drop_rows(self, rows: Iterable[int]) -> None:
        """Takes rows away; those after them move up.

        Raises:
            StateError: there is no such row. Nothing has changed.
        """
        self._take(self.checked_kept(rows))

    def checked_tokens(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The tokens as int64 [rows, n]. Errors as those of `update_status`."""
        given = np.asarray(tokens)
        if given.ndim not in (1, 2) or len(given) != self.rows or (given.size and given.dtype.kind not in "iu"):
            raise error(
                _core.TokenError,
                f"tokens of shape {given.shape} and dtype {given.dtype} for {self.rows} rows",
                help="give one whole number a row, or [rows, n]",
            )
        if given.size and (given.min() < 0 or given.max() >= 2**31):
            raise error(_core.TokenError, "a token is below 0 or beyond int32", help="give token ids")
        return given.astype(np.int64).reshape(len(given), -1 if given.size else (given.shape[1:] or (1,))[0])

    def checked_parents(self, parents: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The parents as an index. Errors as those of `update_multi_seq_status`."""
        return reindex(parents, self.rows)

    def checked_count(self, count: int) -> int:
        """The count of `add_rows`."""
        if count < 0:
            raise error(_core.StateError, f"{count} rows cannot be added", help="drop_rows takes rows away")
        return count

    def checked_kept(self, rows: Iterable[int]) -> npt.NDArray[np.int64]:
        """The rows that `drop_rows` leaves."""
        gone = reindex(np.asarray(list(rows), np.int64), self.rows)
        return np.setdiff1d(np.arange(self.rows), gone)

    @abstractmethod
    def _process(self, logits: Logits) -> None:
        """As `process`, checked."""

    @abstractmethod
    def _read(self, tokens: npt.NDArray[np.int64]) -> None:
        """As `update_status`, checked: [rows, n]."""

    @abstractmethod
    def _take(self, parents: npt.NDArray[np.int64]) -> None:
        """As `update_multi_seq_status`, checked."""

    @abstractmethod
    def _add(self, count: int) -> None:
        """As `add_rows`, checked."""


def checked_logits(logits: Logits, rows: int) -> Logits:
    """The logits, if they may be written.

    Raises:
        LogitsError: they may not.
    """
    fits = isinstance(logits, np.ndarray) and logits.ndim == 2 and len(logits) == rows and logits.flags.writeable
    if not fits or logits.dtype.name not in ("float32", "float16", "bfloat16"):
        shown = f"{logits.dtype} {logits.shape}" if isinstance(logits, np.ndarray) else type(logits).__name__
        raise error(
            _core.LogitsError,
            f"logits are {shown} for {rows} rows",
            help="give a writeable array [rows, V] of float32, float16 or bfloat16",
        )
    return logits


def checked_rows(rows: int) -> int:
    """A number of rows to begin with.

    Raises:
        StateError: it is negative.
    """
    if rows < 0:
        raise error(_core.StateError, f"{rows} rows", help="give 0 or more")
    return rows


def apply_masks(logits: Logits, masks: npt.NDArray[np.int32]) -> None:
    """Writes -inf over what a row's mask does not have.

    Raises:
        LogitsError: a mask has an id that is beyond the logits. Nothing was written.
    """
    size = logits.shape[1]
    beyond = masks[:, size // 32 :].view(np.uint32).copy()
    if beyond.size:
        beyond[:, 0] >>= np.uint32(size % 32)
        if beyond.any():
            row = int(np.flatnonzero(beyond.any(axis=1))[0])
            raise error(
                _core.LogitsError,
                f"an allowed token is beyond {size} logits",
                place=f"row {row}",
                help="give logits of the vocabulary that the constraint was made for",
            )
    mask.apply(logits, masks)
