"""Several prompts in one context of llama.cpp: each row is a sequence, and all rows share a batch for each step."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import _core
from .._errors import EngineError
from . import ContextFull, Logits
from ._llama_cpp_beams import GRAIN, Cells

if TYPE_CHECKING:
    from .llama_cpp import LlamaCpp


class LlamaRows:
    """A batch session of a LlamaCpp engine. The logits of a row are those that it would get alone, to the bit on a CPU.

    Args:
        engine: the engine, whose model it shares.
        rows: how many sequences.
        tokens: the most tokens of all rows together; memory is made for so many.

    Raises:
        EngineError: llama.cpp has no memory for it.
    """

    def __init__(self, engine: LlamaCpp, rows: int, tokens: int) -> None:
        self._engine = engine
        self._lengths = [0] * rows
        with engine._lock:
            cells = engine._take_cells(rows, -(-max(tokens, engine.n_ctx) // GRAIN) * GRAIN)
        self._cells: Cells | None = cells
        self._room = cells.sizes.cells

    def evaluate(self, tokens: Sequence[Sequence[int]]) -> Sequence[Logits]:
        """Appends tokens to rows; docs of `BatchSession.evaluate`.

        Raises:
            ContextFull: rows would grow past the engine's context, or all rows past the memory; nothing was evaluated.
            TokenError: a token is not in the vocabulary; nothing was evaluated.
            EngineError: the session is closed, or llama.cpp failed.
        """
        engine, cells = self._engine, self._cells
        if cells is None or not cells.free.alive:
            raise EngineError("the session is closed", help="make a new one")
        new = [len(one) for one in tokens]
        if full := [i for i, n in enumerate(new) if n and self._lengths[i] + n > engine.n_ctx]:
            raise ContextFull(full)
        if sum(self._lengths) + sum(new) > self._room:
            raise ContextFull([i for i, n in enumerate(new) if n])
        if any(not 0 <= token < cells.n_vocab for one in tokens for token in one):
            raise _core.TokenError(f"a token is outside the model's vocabulary of {cells.n_vocab}")
        begun, made = time.perf_counter(), [np.empty(0, np.float32)] * len(tokens)
        with engine._lock:
            groups = list(self._groups(tokens, cells))
            for group in groups:
                entries = [entry for row in group for entry in self._entries(row, tokens[row])]
                for at in range(0, len(entries), engine.n_batch):
                    logits = cells.decode(entries[at : at + engine.n_batch])
                for row, given in zip(group, logits, strict=True):
                    made[row] = given if len(groups) == 1 else given.copy()
                    self._lengths[row] += new[row]
                engine.counters.forward_passes += 1
                engine.counters.tokens_decoded += len(entries)
        engine.counters.milliseconds += (time.perf_counter() - begun) * 1e3
        return made

    def close(self) -> None:
        """Gives the context back to the engine; logits that it handed out must not be read any more."""
        cells, self._cells = self._cells, None
        if cells is not None:
            self._engine._keep_cells(cells)

    def _groups(self, tokens: Sequence[Sequence[int]], cells: Cells) -> Iterator[list[int]]:
        """The rows that take one batch together. A row with more tokens than a batch takes is alone, so that its
        chunks are those of a session of its own."""
        group: list[int] = []
        size = 0
        for row, new in enumerate(tokens):
            if not new:
                continue
            if group and size + len(new) > cells.at_once:
                yield group
                group, size = [], 0
            group.append(row)
            size += len(new)
        if group:
            yield group

    def _entries(self, row: int, new: Sequence[int]) -> list[tuple[int, int, int, bool]]:
        at = self._lengths[row]
        return [(token, at + i, row, i + 1 == len(new)) for i, token in enumerate(new)]
