"""Recommended items of a fixed number of tokens: none twice, none that is banned. It knows no catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .._errors import error
from ._processor import Logits, Processor, checked_rows

DEEPEST = 8
"""The most logits that a row masks so as to differ from the first."""

Combo = tuple[int, ...]


class _Row:
    """What one row has generated: the beginning of a combo, and what it may not complete."""

    def __init__(self, banned: dict[Combo, set[int]]) -> None:
        self.prefix: Combo = ()
        self.completed = 0
        self.banned = {head: set(last) for head, last in banned.items()}

    def copy(self) -> _Row:
        made = _Row(self.banned)
        made.prefix, made.completed = self.prefix, self.completed
        return made

    def ban(self, combo: Combo) -> None:
        self.banned.setdefault(combo[:-1], set()).add(combo[-1])


class RecommendationProcessor(Processor):
    """RTP-LLM's recommendation bans: of a combo of k tokens the last is not allowed if the combo is banned.

    A combo that a row has completed is banned there from then on. With `enable_cross_sequence_ban` it is also in all
    other rows but the first, and from the combo `diverge_from` on row i > 0 masks its min(i, V - 1, 8) largest logits
    where a combo begins, so that rows differ. Of equal logits those of lower ids go first. Masking stops at the last
    logit that is above -inf: what an earlier processor left is never taken away whole.
    """

    rank = 3

    def __init__(
        self,
        combo_token_size: int,
        rows: int = 1,
        *,
        banned_combo_token_ids: Iterable[Sequence[int]] = (),
        enable_cross_sequence_ban: bool = False,
        diverge_from: int = 0,
    ) -> None:
        """Args:
            combo_token_size: k, tokens of an item.
            rows: how many rows there are.
            banned_combo_token_ids: items that may not come.
            enable_cross_sequence_ban: whether rows keep away from each other's items. Rows have no parents then.
            diverge_from: how many combos a row completes before it masks its largest logits.

        Raises:
            ConstraintError: k is below 1 (with the cross-sequence ban: 2), or a combo has another length.
        """
        least = 2 if enable_cross_sequence_ban else 1
        if combo_token_size < least:
            raise error(_core.ConstraintError, f"combos of {combo_token_size} tokens", help=f"give {least} at least")
        self.combo_token_size = combo_token_size
        self.enable_cross_sequence_ban = enable_cross_sequence_ban
        self._diverge_from = diverge_from
        self._first = _Row({})
        for at, combo in enumerate(banned_combo_token_ids):
            tokens = tuple(int(token) for token in combo)
            if len(tokens) != combo_token_size or min(tokens) < 0:
                raise error(
                    _core.ConstraintError,
                    f"a banned combo is {list(tokens)[:16]}",
                    place=f"banned_combo_token_ids[{at}]",
                    help=f"give {combo_token_size} token ids",
                )
            self._first.ban(tokens)
        self._rows = [self._first.copy() for _ in range(checked_rows(rows))]

    @property
    def rows(self) -> int:
        return len(self._rows)

    @property
    def prefixes(self) -> list[Combo]:
        """What each row has of the combo that it is in."""
        return [row.prefix for row in self._rows]

    @property
    def completed(self) -> list[int]:
        """How many combos each row has completed."""
        return [row.completed for row in self._rows]

    @property
    def banned(self) -> list[set[Combo]]:
        """The banned combos of each row."""
        return [{(*head, token) for head, last in row.banned.items() for token in last} for row in self._rows]

    def checked_parents(self, parents: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """As `Processor.checked_parents`; with the cross-sequence ban rows may not move: the first is protected."""
        if self.enable_cross_sequence_ban:
            raise error(
                _core.StateError,
                "rows with a cross-sequence ban have no parents",
                help="search beams without enable_cross_sequence_ban",
            )
        return super().checked_parents(parents)

    def _process(self, logits: Logits) -> None:
        for at, row in enumerate(self._rows):
            if self.enable_cross_sequence_ban and at and not row.prefix and row.completed >= self._diverge_from:
                own = logits[at]
                own[_largest(own, min(at, len(own) - 1, DEEPEST))] = -np.inf
            if len(row.prefix) == self.combo_token_size - 1:
                last = row.banned.get(row.prefix, ())
                logits[at, [token for token in last if token < logits.shape[1]]] = -np.inf

    def _read(self, tokens: npt.NDArray[np.int64]) -> None:
        done: list[tuple[int, Combo]] = []
        for at, (row, own) in enumerate(zip(self._rows, tokens.tolist(), strict=True)):
            for token in own:
                row.prefix = (*row.prefix, token)
                if len(row.prefix) == self.combo_token_size:
                    row.ban(row.prefix)
                    done.append((at, row.prefix))
                    row.prefix = ()
                    row.completed += 1
        if self.enable_cross_sequence_ban:
            for _, combo in done:
                for row in self._rows[1:]:
                    # What is its own is banned there already.
                    row.ban(combo)

    def _take(self, parents: npt.NDArray[np.int64]) -> None:
        self._rows = [self._rows[parent].copy() for parent in parents.tolist()]

    def _add(self, count: int) -> None:
        self._rows += [self._first.copy() for _ in range(count)]


def _largest(logits: npt.NDArray[Any], count: int) -> npt.NDArray[np.int64]:
    """Places of the largest logits, of equals the first; one that is above -inf is left, and NaN counts as -inf."""
    values = logits.astype(np.float32)
    values[np.isnan(values)] = -np.inf
    count = min(count, int((values > -np.inf).sum()) - 1)
    if count < 1:
        return np.zeros(0, np.int64)
    least = np.partition(values, len(values) - count)[len(values) - count]
    above = np.flatnonzero(values > least)
    return np.concatenate([above, np.flatnonzero(values == least)[: count - len(above)]])
