"""Rows that generate items of a tree. It knows no file, and nothing of what else is asked of a row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..beams import FAILED, FINISHED
from ._processor import Logits, Processor, apply_masks, checked_rows
from ._tree import RtpTree


class TreeProcessor(Processor):
    """RTP-LLM's tree decode: each row may only generate what the tree has, and then the end.

    A row's status is the key of where it is. A token whose key is missing leads to the error state: the status stays,
    and only the end token is allowed; the row has failed, and stays so. After the end token nothing is read, and only
    the end is allowed. A row is over when it is finished or has failed.
    """

    rank = 2

    def __init__(self, tree: RtpTree, rows: int = 1) -> None:
        self.tree = tree
        """What rows may generate."""
        self._states = np.full(checked_rows(rows), tree.walk.start, np.int64)
        self._statuses = [tree.status()] * rows
        self._errors = bool(tree.report.errors)

    @property
    def rows(self) -> int:
        return len(self._states)

    @property
    def status(self) -> list[str]:
        """The key of each row; of a finished row that of its end."""
        return list(self._statuses)

    @property
    def states(self) -> npt.NDArray[np.int64]:
        """Each row's state in `tree.walk`; -1 finished, -2 the error state. A copy."""
        return self._states.copy()

    @property
    def finished(self) -> npt.NDArray[np.bool_]:
        """Which rows have read the end token after an item."""
        return np.asarray(self._states == FINISHED)

    @property
    def failed(self) -> npt.NDArray[np.bool_]:
        """Which rows are in the error state, whether they have read the end token since or not."""
        return np.asarray(self._states == FAILED)

    def force_status(self, row: int, status: str) -> None:
        """Puts a row to a key of the file.

        Raises:
            ConstraintError: no path leads there.
            StateError: there is no such row.
        """
        at = int(self.checked_parents([row])[0])
        self._states[at] = self.tree.state(status)
        self._statuses[at] = status

    def masks(self) -> npt.NDArray[np.int32]:
        """What each row may read, int32 [rows, words]."""
        made = self.tree.walk.mask(self._states)
        if self.tree.empty:
            made[self._states == self.tree.walk.start, self.tree.end // 32] |= _bit(self.tree.end % 32)
        return made

    def _process(self, logits: Logits) -> None:
        walk, tree = self.tree.walk, self.tree
        weighted = walk.gather(self._states, logits) if walk.weighted and self.rows else None
        apply_masks(logits, self.masks())
        if weighted is None:
            return
        # Weights are float32 and sums float64, so that a sum is rounded once, to the logits' type.
        # The end is no child: what a search scores it with in the error state is not its logit.
        child = weighted.tokens != tree.end
        logits[weighted.rows[child], weighted.tokens[child]] = weighted.scores[child].astype(logits.dtype)
        if tree.end_weights:
            for row, state in enumerate(self._states.tolist()):
                if state in tree.end_weights:
                    logits[row, tree.end] = float(logits[row, tree.end]) + tree.end_weights[state]

    def _read(self, tokens: npt.NDArray[np.int64]) -> None:
        for column in tokens.T:
            self._read_one(column)

    def _read_one(self, tokens: npt.NDArray[np.int64]) -> None:
        walk = self.tree.walk
        before = self._states
        after = walk.advance(before, tokens)
        after[before == FAILED] = FAILED
        if self._errors:
            leaves = (after >= 0) & walk.is_item(after) & ~walk.may_continue(after)
            for row in np.flatnonzero(leaves).tolist():
                if self.tree.is_error(int(after[row])):
                    after[row] = FAILED
        for row in np.flatnonzero((before >= 0) & (after != FAILED)).tolist():
            self._statuses[row] = f"{self._statuses[row]}{self.tree.sep}{tokens[row]}"
        self._states = after

    def _take(self, parents: npt.NDArray[np.int64]) -> None:
        self._states = self._states[parents]
        self._statuses = [self._statuses[parent] for parent in parents.tolist()]

    def _add(self, count: int) -> None:
        self._states = np.concatenate([self._states, np.full(count, self.tree.walk.start, np.int64)])
        self._statuses += [self.tree.status()] * count


def _bit(place: int) -> np.int32:
    """A word with one bit. Its highest is the sign."""
    return np.uint32(1 << place).view(np.int32)
