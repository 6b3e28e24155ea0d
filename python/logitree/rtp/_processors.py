"""Several processors as one, in RTP-LLM's order. It knows none of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from .. import _core
from .._errors import error
from ._processor import Logits, Processor


class Processors(Processor):
    """Processors of the same rows, called in the order thought, grammar, tree, recommendation, multi-sequence.

    Whatever would be an error in one of them is found before any has changed.
    """

    rank = 5

    def __init__(self, processors: Iterable[Processor]) -> None:
        """Raises ConstraintError if there is none, or they have different numbers of rows."""
        self._all = sorted(processors, key=lambda processor: processor.rank)
        counts = {processor.rows for processor in self._all}
        if len(counts) != 1:
            shown = ", ".join(f"{type(processor).__name__} {processor.rows}" for processor in self._all)
            raise error(_core.ConstraintError, f"rows differ: {shown or 'no processor'}", help="give all as many rows")

    @property
    def rows(self) -> int:
        return self._all[0].rows

    def __iter__(self) -> Iterator[Processor]:
        """The processors, in their order."""
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def checked_tokens(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """As that of every processor."""
        for processor in self._all[1:]:
            processor.checked_tokens(tokens)
        return self._all[0].checked_tokens(tokens)

    def checked_parents(self, parents: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """As that of every processor."""
        for processor in self._all[1:]:
            processor.checked_parents(parents)
        return self._all[0].checked_parents(parents)

    def _process(self, logits: Logits) -> None:
        for processor in self._all:
            processor._process(logits)

    def _read(self, tokens: npt.NDArray[np.int64]) -> None:
        for processor in self._all:
            processor._read(tokens)

    def _take(self, parents: npt.NDArray[np.int64]) -> None:
        for processor in self._all:
            processor._take(parents)

    def _add(self, count: int) -> None:
        for processor in self._all:
            processor._add(count)
