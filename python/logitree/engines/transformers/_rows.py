"""Several sequences of a transformers engine, evaluated together in one padded batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from ..._errors import EngineError
from .._rows import checked_parents, checked_rows
from .._session import NO_LOGITS, Rows, Session
from ._forward import Runner, import_torch, padded, to_host

if TYPE_CHECKING:
    from ._engine import Transformers

_SLACK = 64
"""Columns of padding that are never worth a repacking."""


class TransformersRows(Session):
    """Rows of tokens in a cache of their own; each evaluation appends to some of them in one pass.

    Rows are padded, with position ids of their own, so the logits are those of each row alone up to rounding.
    """

    def __init__(self, engine: Transformers, rows: int | None) -> None:
        self._engine, self._most = engine, rows
        self.can_restart = engine.runner.is_padded
        self._tokens: list[list[int]] = []
        self._cache: _PaddedCache | None = _PaddedCache(engine.runner, engine.n_batch)

    @property
    def tokens(self) -> Sequence[Sequence[int]]:
        """The tokens of each row evaluated so far, oldest first."""
        return tuple(map(tuple, self._tokens))

    def evaluate_rows(self, tokens: Sequence[Sequence[int]]) -> Rows:
        """Appends `tokens[i]` to row i; rows may get different numbers of tokens.

        Returns:
            For each row float32 [V] after its last token, read-only; an empty array for a row that got no tokens.

        Raises:
            ContextFull: `rows` do not fit; nothing was evaluated.
            EngineError: not one list for each row, or all are empty; or a pass failed in an earlier call.
            TokenError: a token is not in the model's vocabulary; nothing was evaluated.
        """
        engine, lengths = self._engine, list(map(len, self._tokens))
        new = checked_rows(tokens, lengths, self._most, engine.n_ctx, engine.runner.vocabulary_size)
        active = {row: more for row, more in enumerate(new) if more}
        made = to_host(self._open().append(active))
        self._tokens = self._tokens or [[] for _ in new]
        for row, more in active.items():
            self._tokens[row] += more
        if len(active) == len(new):
            return made
        known = dict(zip(active, made, strict=True))
        return [known.get(row, NO_LOGITS) for row in range(len(new))]

    def begin(self, tokens: Sequence[int], row: int = 0) -> int:
        """Begins a row; one that has begun before ends, and nothing is reused."""
        self.end(row)
        return 0

    def end(self, row: int) -> None:
        """Forgets a row, where that is possible."""
        if self.can_restart and row < len(self._tokens) and self._tokens[row] and self._cache is not None:
            self._tokens[row] = []
            self._cache.forget(row)

    def reorder(self, parents: npt.ArrayLike) -> None:
        """Copies the parents' rows of the cache; see `Session.reorder`.

        Raises:
            EngineError: the session has no rows, or the model keeps no cache that can be reordered.
        """
        old = checked_parents(parents, len(self._tokens), self._most)
        self._open().reorder(old)
        self._tokens = [[*self._tokens[parent]] for parent in old]

    def close(self) -> None:
        """Releases the caches; the session must not be used any more."""
        self._cache, self._tokens = None, []

    def _open(self) -> _PaddedCache:
        if self._cache is None:
            raise EngineError("the session is closed", help="make a new one")
        return self._cache


class _PaddedCache:
    """A cache whose rows hold different numbers of tokens, the rest being padding that attention is masked from.

    Padding is inserted to the left of the tokens that a row appends, so each row's last token is in the last column.
    Rows that are idle while others continue are taken out of the batch once they are half of it, and put back when they
    get tokens again.
    """

    def __init__(self, runner: Runner, pass_tokens: int) -> None:
        self._runner, self._pass_tokens = runner, pass_tokens
        self._cache: Any = None
        """None before the first pass and after one that failed."""
        self._rows: list[int] = []
        """The row of each row of the cache."""
        self._mask: Any = None
        """int64 [rows, columns]: 1 where a row has a token."""
        self._parked: dict[int, list[tuple[Any, Any]]] = {}
        """Rows outside of the cache: keys and values of each layer, [heads, tokens, size]."""
        self._lengths: dict[int, int] = {}
        """How many tokens each row holds, in the cache or outside."""

    def append(self, tokens: Mapping[int, Sequence[int]]) -> Any:
        """Appends tokens to some rows; logits [rows given, V] on the model's device."""
        torch = import_torch()
        if self._cache is None and self._mask is not None:
            raise EngineError("an earlier pass failed", help="begin with a new session")
        with torch.inference_mode():
            self._arrange(list(tokens))
            self._check(tokens)
            ids, new = padded([tokens.get(row, ()) for row in self._rows], self._runner.device)
            mask = torch.cat((self._mask, new), dim=1)
            cache, self._cache = self._cache, None
            held, width = self._mask.shape[1], max(1, self._pass_tokens // len(self._rows))
            if self._runner.is_recurrent:
                width = ids.shape[1]  # models differ in what a longer pass makes of a state
            for row, given in tokens.items():
                self._lengths[row] = self._lengths.get(row, 0) + len(given)
            gaps = any(self._lengths[row] < mask.shape[1] for row in self._rows)
            for start in range(0, ids.shape[1], width):
                block = ids[:, start : start + width]
                seen = mask[:, : held + start + block.shape[1]] if gaps else None
                logits, cache = self._runner.run(block, cache, seen)
            self._cache, self._mask = cache, mask
            places = torch.tensor([self._rows.index(row) for row in tokens], device=logits.device)
            return logits[places]

    def forget(self, row: int) -> None:
        """The row holds no tokens."""
        self._lengths[row] = 0
        if self._parked.pop(row, None) is None and self._cache is not None:
            rest = [other for other in self._rows if other != row]
            if rest:
                self._repack(rest)
                del self._parked[row]
            else:
                self._cache = self._mask = None
                self._rows = []

    def reorder(self, parents: Sequence[int]) -> None:
        """Makes row i a copy of the old row `parents[i]`."""
        torch = import_torch()
        if self._cache is None or not hasattr(self._cache, "reorder_cache"):
            raise EngineError("the model keeps no cache that can be reordered", help="use a model with attention only")
        if set(parents) - set(self._rows):
            self._repack(list(dict.fromkeys(parents)))
        index = torch.tensor([self._rows.index(parent) for parent in parents], device=self._mask.device)
        with torch.inference_mode():
            # Until it is done, some layers have the new rows and others the old ones.
            cache, self._cache = self._cache, None
            cache.reorder_cache(index)
            self._cache, self._mask = cache, self._mask[index]
        self._lengths = {row: self._lengths.get(parent, 0) for row, parent in enumerate(parents)}
        self._rows, self._parked = list(range(len(parents))), {}

    def _check(self, tokens: Mapping[int, Sequence[int]]) -> None:
        """An EngineError where these tokens need padding that the model does not take."""
        same = len(set(map(len, tokens.values()))) == 1
        if self._runner.is_padded or (same and tokens.keys() == set(self._rows)):
            return
        if not self._runner.takes_positions:
            message = "the model takes no position_ids, and the prompts have several lengths"
            raise EngineError(message, help="search prompts of the same length together")
        if self._cache is not None:
            raise EngineError("the model's rows cannot be padded", help="give all rows as many tokens")

    def _arrange(self, active: list[int]) -> None:
        """Brings the active rows into the cache, and takes idle ones and padding out where that is worth it."""
        torch = import_torch()
        if self._mask is None:
            self._rows = active
            self._mask = torch.zeros((len(active), 0), dtype=torch.long, device=self._runner.device)
            return
        idle = [row for row in self._rows if row not in active]
        missing = [row for row in active if row not in self._rows]
        keep = [row for row in self._rows if row in active] if 2 * len(idle) >= len(self._rows) else self._rows
        longest = max(self._lengths[row] for row in self._rows)
        sparse = self._mask.shape[1] > longest + max(_SLACK, longest // 2)
        if self._runner.is_padded and (missing or len(keep) < len(self._rows) or sparse):
            self._repack([*keep, *missing])

    def _repack(self, rows: list[int]) -> None:
        """Makes the cache of these rows, all padding on the left, and parks the others."""
        torch = import_torch()
        layers = self._cache.layers
        for at, row in enumerate(self._rows):
            columns = self._mask[at].nonzero()[:, 0]
            self._parked[row] = [
                (_columns(layer.keys, at, columns), _columns(layer.values, at, columns)) for layer in layers
            ]
        nothing = [(layer.keys[0, :, :0], layer.values[0, :, :0]) for layer in layers]
        held = [self._parked.pop(row, nothing) for row in rows]
        for index, layer in enumerate(layers):
            layer.keys = _stack([kept[index][0] for kept in held])
            layer.values = _stack([kept[index][1] for kept in held])
        lengths = torch.tensor([kept[0][0].shape[1] for kept in held], device=self._mask.device)
        width = int(lengths.max())
        padding = width - lengths[:, None]
        self._mask = (torch.arange(width, device=self._mask.device)[None] >= padding).long()
        self._rows = rows


def _columns(states: Any, row: int, columns: Any) -> Any:
    """Some positions of a row of keys or values: [rows, heads, positions, size] to [heads, columns, size]."""
    return states[row].index_select(1, columns.to(states.device))


def _stack(states: Sequence[Any]) -> Any:
    """Keys or values of rows, padded on the left to the longest: [rows, heads, positions, size]."""
    torch = import_torch()
    width = max(kept.shape[1] for kept in states)
    return torch.stack([torch.nn.functional.pad(kept, (0, 0, width - kept.shape[1], 0)) for kept in states])
