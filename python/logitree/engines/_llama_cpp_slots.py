"""Many sequences in one context of llama.cpp that begin and end at any time, each in a slot: memory of its own.

A slot is what llama.cpp calls a stream. Rows in slots do not fork; `LlamaRows` has those that do, in memory that they
share.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .._errors import EngineError
from ._llama_cpp_context import Cells, Sizes, entries_of
from ._rows import checked_rows, common_prefix
from ._session import NO_LOGITS, Logits, Rows, Session

if TYPE_CHECKING:
    from .llama_cpp import LlamaCpp

CELLS_A_TOKEN = 256
"""Cells of a slot that are copied in less time than one token is evaluated. On two cores it is some 700 with a model of
135M, and more with larger ones."""


class LlamaSlots(Session):
    """A session of several rows of a LlamaCpp engine, each with a slot in one context.

    The logits of a row are those that it would get alone, to the bit on a CPU, whichever other rows there are. A row
    that begins takes over what slots hold of its tokens.
    """

    can_restart = True
    can_rollback = True

    def __init__(self, engine: LlamaCpp, rows: int, tokens: int) -> None:
        """`tokens`: how many each slot holds at first."""
        self._engine, self._most = engine, rows
        self._begun: int | None = None
        """Rows of the first evaluation; later ones have as many."""
        self._slot_of: dict[int, int] = {}
        """Row -> its slot."""
        self._held: list[list[int]] = [[] for _ in range(rows)]
        """What each slot holds, of rows that ended too."""
        self._used = [0] * rows
        """When each slot was used last, as a count of evaluations."""
        self._clock = 0
        with engine._lock:
            self._cells: Cells | None = engine._take_cells(Sizes(rows, tokens, streams=True))

    def begin(self, tokens: Sequence[int], row: int = 0) -> int:
        """Begins a row with what slots hold of these tokens; a row that has begun before ends.

        Returns:
            How many of them need no evaluation, at most all but the last.
        """
        if not 0 <= row < self._most:
            raise EngineError(f"row {row} of a session of {self._most}")
        with self._engine._lock:
            cells = self._open()
            self._slot_of.pop(row, None)
            slot, reused = self._choose(cells, tokens[:-1])
            self._slot_of[row] = slot
            self._engine.counters.tokens_reused += reused
            return reused

    def end(self, row: int) -> None:
        """The row's slot is free; what it holds stays until another row needs the place."""
        self._slot_of.pop(row, None)

    def evaluate_rows(self, tokens: Sequence[Sequence[int]]) -> Rows:
        """Appends tokens to rows. All rows share a batch, but a row with many new tokens has its own.

        Raises:
            ContextFull: rows would grow past the engine's context; nothing was evaluated.
            TokenError: a token is not in the vocabulary; nothing was evaluated.
            EngineError: more or fewer rows than before or than the session was made for, the session or the model is
                closed, or llama.cpp failed, after which the session is closed.
        """
        engine = self._engine
        with engine._lock:
            cells = self._open()
            count = len(tokens) if self._begun is None else self._begun
            slots = [self._slot_of.get(row) for row in range(count)]
            lengths = [0 if slot is None else len(self._held[slot]) for slot in slots]
            new = checked_rows(tokens, lengths, self._most, engine.n_ctx, cells.n_vocab)
            self._begun = count
            for row, more in enumerate(new):
                if more and row not in self._slot_of:
                    self._slot_of[row], _ = self._choose(cells, [])
            most = max(lengths[row] + len(more) for row, more in enumerate(new))
            found = self._evaluated(cells, most, new)
            return [found[row][0] if row in found else NO_LOGITS for row in range(count)]

    def evaluate_all(self, tokens: Sequence[int], last: int, row: int = 0) -> Sequence[Logits]:
        """Appends tokens to one row; the logits after each of the last `last`, 1 to `n_batch`, at most all of them.

        Raises:
            ContextFull, TokenError, EngineError: as `evaluate_rows`.
        """
        engine = self._engine
        if not 1 <= last <= min(len(tokens), engine.n_batch):
            help = f"ask for 1 to {engine.n_batch} of those given"
            raise EngineError(f"the logits of {last} of {len(tokens)} tokens", help=help)
        with engine._lock:
            cells = self._open()
            if row not in self._slot_of:
                self._slot_of[row], _ = self._choose(cells, [])
            held = len(self._held[self._slot_of[row]])
            (new,) = checked_rows([tokens], [held], 1, engine.n_ctx, cells.n_vocab)
            each: list[list[int]] = [[] for _ in range(self._most)]
            if len(new) > engine.n_batch:
                each[row], new = new[:-last], new[-last:]
                self._evaluated(cells, held + len(tokens), each)
                cells = self._open()
            each[row] = new
            return list(self._evaluated(cells, held + len(tokens), each, last)[row])

    def draft_room(self, row: int = 0) -> int:
        """As that of a session of one row: the logits are the same to the bit."""
        held = self._held[self._slot_of[row]] if row in self._slot_of else ()
        return max(0, self._engine._alike - len(held)) if self._engine._can_truncate else 0

    def rollback(self, n: int, row: int = 0) -> None:
        """Forgets the last `n` tokens of a row.

        Raises:
            EngineError: there are fewer, or the model's memory cannot be cut.
        """
        with self._engine._lock:
            cells, slot = self._open(), self._slot_of.get(row)
            if slot is None or not 0 <= n <= len(self._held[slot]):
                raise EngineError(f"row {row} has no {n} tokens to take back")
            keep = len(self._held[slot]) - n
            if self._cut(cells, slot, keep) != keep:
                raise EngineError("the memory of this model cannot be cut")

    def close(self) -> None:
        """Gives the context back to the engine; logits that it handed out must not be read any more."""
        cells, self._cells = self._cells, None
        self._slot_of.clear()
        if cells is not None:
            self._engine._keep_cells(cells)

    def _evaluated(
        self, cells: Cells, most: int, new: Sequence[Sequence[int]], last: int = 1
    ) -> dict[int, npt.NDArray[np.float32]]:
        """Appends tokens to rows, after which the longest has `most`: for each row that gets some the logits after its
        last tokens, [last, V]."""
        engine, begun, self._cells = self._engine, time.perf_counter(), None
        if most > cells.sizes.cells:
            cells = self._grown(cells)
        active = [row for row, more in enumerate(new) if more]
        self._close_gaps(cells, active)
        passes, found = self._decoded(cells, new, sorted(active, key=self._slot_of.__getitem__), last)
        self._cells = cells
        engine.counters.forward_passes += passes
        engine.counters.tokens_decoded += sum(map(len, new))
        engine.counters.milliseconds += (time.perf_counter() - begun) * 1e3
        return found

    def _open(self) -> Cells:
        """The context, if it can be used."""
        if self._cells is None:
            raise EngineError("the session has no rows", help="after a failure or close, make a new one")
        if not self._cells.free.alive:
            raise EngineError("the model is closed", help="make a new LlamaCpp")
        return self._cells

    def _choose(self, cells: Cells, tokens: Sequence[int]) -> tuple[int, int]:
        """A free slot for a row that begins with these tokens, and how many of them it holds; it holds no others.

        What a free slot holds is kept as long as possible: a row takes one over where most of its tokens are the
        row's. Else it takes the slot that was used longest ago, and copies the slot that has more of its tokens.
        """
        taken = set(self._slot_of.values())
        common = [common_prefix(held, tokens) for held in self._held]
        free = [slot for slot in range(self._most) if slot not in taken]
        source = max(range(self._most), key=lambda slot: (common[slot], slot in free))
        if source in free and 2 * common[source] >= len(self._held[source]):
            target = source
        else:
            target = min(free, key=lambda slot: (bool(self._held[slot]), self._used[slot]))
        gained = common[source] - common[target]
        if source != target and gained * CELLS_A_TOKEN > cells.sizes.cells:
            self._move(cells, source, target)
        self._used[target] = self._clock
        return target, self._cut(cells, target, common_prefix(self._held[target], tokens))

    def _move(self, cells: Cells, source: int, target: int) -> None:
        """Copies a slot."""
        cells.lib.llama_memory_seq_rm(cells.memory, target, -1, -1)
        if self._held[source]:
            cells.lib.llama_memory_seq_cp(cells.memory, source, target, -1, -1)
        self._held[target] = [*self._held[source]]
        self._used[target] = self._used[source]

    def _cut(self, cells: Cells, slot: int, keep: int) -> int:
        """A slot forgets all but its first tokens, or all of them where the model's memory cannot be cut; how many
        it holds then."""
        held = self._held[slot]
        if keep == len(held):
            return keep
        if not (keep and cells.lib.llama_memory_seq_rm(cells.memory, slot, keep, -1)):
            cells.lib.llama_memory_seq_rm(cells.memory, slot, -1, -1)
            keep = 0
        del held[keep:]
        return keep

    def _close_gaps(self, cells: Cells, active: Sequence[int]) -> None:
        """Moves rows so that those of a pass are neighbours: llama.cpp evaluates slots with a gap in two passes."""
        taken = {slot: row for row, slot in self._slot_of.items()}
        slots = {self._slot_of[row] for row in active}
        while len(slots) > 1:
            gaps = [slot for slot in range(min(slots), max(slots)) if slot not in slots and slot not in taken]
            ends = min(slots), max(slots)
            moved = next((end for end in (ends[1], ends[0]) if end in taken), None)
            if not gaps or moved is None:
                return
            target = gaps[0] if moved == ends[1] else gaps[-1]
            self._move(cells, moved, target)
            row = taken.pop(moved)
            self._slot_of[row], taken[target] = target, row
            slots = (slots - {moved}) | {target}

    def _decoded(
        self, cells: Cells, new: Sequence[Sequence[int]], rows: Sequence[int], last: int = 1
    ) -> tuple[int, dict[int, npt.NDArray[np.float32]]]:
        """Evaluates the new tokens of these rows, which are in the order of their slots; how many batches it took, and
        the logits after each row's last tokens, [last, V]."""
        found: dict[int, npt.NDArray[np.float32]] = {}
        self._clock += 1
        groups, costs = list(_groups(new, rows, cells.at_once, cells.n_batch)), self._engine.pass_costs
        passes = 0
        for group in groups:
            entries = []
            for row in group:
                slot = self._slot_of[row]
                entries += entries_of(slot, len(self._held[slot]), new[row], last)
                self._held[slot] += new[row]
                self._used[slot] = self._clock
            size = self._engine.n_batch if len(group) == 1 else len(entries)
            for at in range(0, len(entries), size):
                begun, part = time.perf_counter(), entries[at : at + size]
                cells.decode(part)
                passes += 1
                if costs is not None and len(group) == 1 and at + size >= len(entries):
                    costs.add(len(part), last, time.perf_counter() - begun)
            logits = cells.block(last * len(group)).reshape(len(group), last, -1)
            found.update(zip(group, logits.copy() if len(groups) > 1 else logits, strict=True))
        return passes, found

    def _grown(self, old: Cells) -> Cells:
        """A context with as many tokens for each slot as the engine has, and what the rows' slots hold in it."""
        old.free()
        cells = self._engine._take_cells(Sizes(self._most, self._engine.n_ctx, streams=True))
        held, self._held = self._held, [[] for _ in range(self._most)]
        rows = sorted(self._slot_of)
        new = [held[self._slot_of[row]] if row in self._slot_of else [] for row in range(self._most)]
        self._decoded(cells, new, [row for row in rows if new[row]])
        return cells


def _groups(new: Sequence[Sequence[int]], rows: Sequence[int], each: int, most: int) -> Iterator[list[int]]:
    """Rows that share a batch of at most `most` tokens. A row with more than `each` is alone, so that its batches are
    those of a session of its own: from some number of tokens on llama.cpp adds up in another order."""
    group: list[int] = []
    size = 0
    for row in rows:
        count = len(new[row])
        if count > each:
            yield [row]
            continue
        if group and size + count > most:
            yield group
            group, size = [], 0
        group.append(row)
        size += count
    if group:
        yield group
