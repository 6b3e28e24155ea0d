"""Many sequences in one context of llama.cpp: rows fork by sharing cells, and all of them take one batch a step.

A context of its own keeps the rows out of the way of what the engine's other sessions hold.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from .._errors import EngineError
from ._llama_cpp_context import Cells, Entry, Sizes, entries_of
from ._rows import checked_parents, checked_rows
from ._session import NO_LOGITS, ContextFull, Logits, Rows, Session

if TYPE_CHECKING:
    from .llama_cpp import LlamaCpp


@dataclass(slots=True)
class Row:
    """A row: the sequence that holds it, its first tokens, and those after them."""

    sequence: int
    prompt: list[int]
    """The same list in rows that come from one."""
    path: list[int]

    def __len__(self) -> int:
        return len(self.prompt) + len(self.path)


class Places(NamedTuple):
    """Which sequences hold new rows, and how they come to hold the beginning of them."""

    held: list[int]
    """The sequence of each new row."""
    dead: list[int]
    """Sequences of old rows without children, to be forgotten first."""
    copies: list[tuple[int, int]]
    """From and to, to be made after that."""

    def move(self, cells: Cells) -> None:
        """Forgets and copies.

        What is forgotten keeps its cells, in a sequence that is never read. A freed cell would be filled by a later
        token of some beam, whose cells would no longer be in the order of its tokens: sums over them would be
        rounded differently, which a quantised model magnifies to whole units. `LlamaRows` evaluates everything again
        when the cells are full.
        """
        for sequence in self.dead:
            cells.lib.llama_memory_seq_cp(cells.memory, sequence, cells.sizes.rows, -1, -1)
            cells.lib.llama_memory_seq_rm(cells.memory, sequence, -1, -1)
        for source, target in self.copies:
            cells.lib.llama_memory_seq_cp(cells.memory, source, target, -1, -1)


def places(rows: Sequence[Row], parents: Sequence[int], most: int) -> Places:
    """Where new rows are held: a parent's first child stays in its place, the others get places that are free.

    `most`: how many sequences there are.
    """
    living = {rows[parent].sequence for parent in parents}
    dead = [row.sequence for row in rows if row.sequence not in living]
    free: Iterator[int] = (sequence for sequence in range(most) if sequence not in living)
    held: list[int] = []
    copies: list[tuple[int, int]] = []
    stayed: set[int] = set()
    for parent in parents:
        source = rows[parent].sequence
        if source in stayed:
            copies.append((source, next(free)))
            held.append(copies[-1][1])
        else:
            stayed.add(source)
            held.append(source)
    return Places(held, dead, copies)


class LlamaRows(Session):
    """A session of several rows of a LlamaCpp engine: sequences of one context.

    The logits of a row are those that it would get alone, to the bit on a CPU. Where the cells are full, everything is
    evaluated again in a context with twice as many or more.
    """

    def __init__(self, engine: LlamaCpp, rows: int, tokens: int) -> None:
        self._engine, self._most = engine, rows
        self._rows: list[Row] | None = []
        """None: they are not known any more, after `close` or a failure."""
        with engine._lock:
            cells = engine._take_cells(Sizes(rows, max(tokens, engine.n_ctx)))
        self._cells: Cells | None = cells

    def evaluate_rows(self, tokens: Sequence[Sequence[int]]) -> Rows:
        """Appends tokens to rows. All rows share a batch, but a row with more tokens than it takes has its own.

        Raises:
            ContextFull: rows would grow past the engine's context; nothing was evaluated.
            TokenError: a token is not in the vocabulary; nothing was evaluated.
            EngineError: there are more rows than the session was made for, the session or the model is closed, or
                llama.cpp failed, after which the rows are not known any more.
        """
        engine = self._engine
        with engine._lock:
            cells, rows = self._open()
            new = checked_rows(tokens, list(map(len, rows)), self._most, engine.n_ctx, cells.n_vocab)
            rows = rows or [Row(i, [], []) for i in range(len(new))]
            self._rows, begun = None, time.perf_counter()
            for row, more in zip(rows, new, strict=True):
                if row.prompt:
                    row.path += more
                else:
                    row.prompt = more
            groups = list(self._groups(new, cells.at_once))
            try:
                logits = self._decode(cells, rows, new, groups)
            except ContextFull:
                logits = self._again(cells, rows)
            self._rows = rows
            engine.counters.forward_passes += len(groups)
            engine.counters.tokens_decoded += sum(map(len, new))
            engine.counters.milliseconds += (time.perf_counter() - begun) * 1e3
            return logits

    def reorder(self, parents: npt.ArrayLike) -> None:
        """Forks and drops rows; see `Session.reorder`."""
        with self._engine._lock:
            cells, rows = self._open()
            old = checked_parents(parents, len(rows), self._most)
            moved = places(rows, old, cells.sizes.rows)
            moved.move(cells)
            pairs = zip(moved.held, [rows[parent] for parent in old], strict=True)
            self._rows = [Row(sequence, row.prompt, [*row.path]) for sequence, row in pairs]

    def close(self) -> None:
        """Gives the context back to the engine; logits that it handed out must not be read any more."""
        cells, self._cells, self._rows = self._cells, None, None
        if cells is not None:
            self._engine._keep_cells(cells)

    def _open(self) -> tuple[Cells, list[Row]]:
        """The context and the rows, if they can be used."""
        if self._rows is None or self._cells is None:
            raise EngineError("the session has no rows", help="after a failure or close, make a new one")
        if not self._cells.free.alive:
            raise EngineError("the model is closed", help="make a new LlamaCpp")
        return self._cells, self._rows

    def _groups(self, new: Sequence[Sequence[int]], at_once: int) -> Iterator[list[int]]:
        """The rows that take one batch together. A row with more tokens than a batch takes is alone, so that its
        chunks are those of a session of its own."""
        group: list[int] = []
        size = 0
        for row, more in enumerate(new):
            if not more:
                continue
            if group and size + len(more) > at_once:
                yield group
                group, size = [], 0
            group.append(row)
            size += len(more)
        yield group

    def _decode(self, cells: Cells, rows: Sequence[Row], new: Sequence[Sequence[int]], groups: list[list[int]]) -> Rows:
        """The logits after each row's new tokens, which it has already, a batch for each group."""
        known: dict[int, Logits] = {}
        for group in groups:
            parts = [entries_of(rows[i].sequence, len(rows[i]) - len(new[i]), new[i]) for i in group]
            logits = self._last(cells, [entry for part in parts for entry in part], len(group))
            if len(group) == len(rows):
                return logits
            known.update(zip(group, logits.copy() if len(groups) > 1 else logits, strict=True))
        return [known.get(i, NO_LOGITS) for i in range(len(rows))]

    def _last(self, cells: Cells, entries: Sequence[Entry], rows: int = 1) -> npt.NDArray[np.float32]:
        """Evaluates entries of so many rows; the logits that they ask for. Those of several rows are one batch, a
        single row's are batches of the engine's `n_batch`."""
        size = self._engine.n_batch if rows == 1 else cells.n_batch
        for at in range(0, len(entries), size):
            cells.decode(entries[at : at + size])
        return cells.block(rows)

    def _again(self, old: Cells, rows: list[Row]) -> Rows:
        """Evaluates these rows from their first token on in a context that holds them all and more."""
        self._cells, sizes = None, old.sizes
        old.free()
        # Prompts are shared by their rows again, what comes after them is not.
        prompts = {id(row.prompt): row.prompt for row in rows}
        needed = sum(map(len, prompts.values())) + sum(len(row.path) for row in rows)
        self._cells = cells = self._engine._take_cells(Sizes(sizes.rows, 2 * max(sizes.cells, needed)))
        roots = [Row(i, prompt, []) for i, prompt in enumerate(prompts.values())]
        logits = [
            self._last(cells, entries_of(i, 0, root.prompt))[0].copy() if root else [] for i, root in enumerate(roots)
        ]
        at = {prompt: i for i, prompt in enumerate(prompts)}
        moved = places(roots, [at[id(row.prompt)] for row in rows], sizes.rows)
        moved.move(cells)
        made = []
        for row, sequence in zip(rows, moved.held, strict=True):
            row.sequence = sequence
            entries = entries_of(sequence, len(row.prompt), row.path)
            made.append(self._last(cells, entries)[0].copy() if entries else logits[at[id(row.prompt)]])
        return made
