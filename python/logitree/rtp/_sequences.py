"""Rows that are finished continue with the end token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .. import _core
from .._errors import error
from ._processor import Logits, Processor, checked_rows


class MultiSequenceProcessor(Processor):
    """Several sequences of one prompt: those that have read an end token may only read that again."""

    rank = 4

    def __init__(self, end: int | Sequence[int], rows: int = 1) -> None:
        """`end`: the id, or the ids, that end a sequence.

        Raises:
            ConstraintError: there is none, or one is negative.
        """
        self._ends = np.unique(np.asarray([end] if isinstance(end, int) else list(end), np.int64))
        if not self._ends.size or self._ends[0] < 0:
            raise error(_core.ConstraintError, f"end tokens are {end}", help="give one token id at least")
        self._finished = np.zeros(checked_rows(rows), np.bool_)

    @property
    def rows(self) -> int:
        return len(self._finished)

    @property
    def finished(self) -> npt.NDArray[np.bool_]:
        """Which rows are finished, bool [rows], to be read and written: an engine may know other ends."""
        return self._finished

    def _process(self, logits: Logits) -> None:
        if not self._finished.any():
            return
        if self._ends[-1] >= logits.shape[1]:
            raise error(_core.LogitsError, f"end token {self._ends[-1]} is beyond {logits.shape[1]} logits")
        rows = np.flatnonzero(self._finished)
        kept = logits[np.ix_(rows, self._ends)]
        logits[rows] = -np.inf
        logits[np.ix_(rows, self._ends)] = kept

    def _read(self, tokens: npt.NDArray[np.int64]) -> None:
        self._finished |= np.isin(tokens, self._ends).any(axis=1)

    def _take(self, parents: npt.NDArray[np.int64]) -> None:
        self._finished = self._finished[parents]

    def _add(self, count: int) -> None:
        self._finished = np.concatenate([self._finished, np.zeros(count, np.bool_)])
