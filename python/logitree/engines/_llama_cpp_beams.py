"""Many sequences in one context of llama.cpp: beams fork by sharing cells, and all of them take one batch a step.

Knows the library's calls and nothing of the engine that loaded the model, of constraints or of scores. A context of
its own keeps the beams out of the way of what the engine's other sessions hold.
"""

from __future__ import annotations

import ctypes
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._errors import EngineError
from . import Rows
from ._rows import checked_prompts, checked_step

if TYPE_CHECKING:
    from .llama_cpp import LlamaCpp

GRAIN = 256
"""Cells are asked for in multiples of this, as llama.cpp pads them."""

CPU_ROWS = 63
"""Rows of one batch on the CPU. From 64 on llama.cpp's attention adds up in another order (GGML_FA_TILE_Q), and what a
beam scores would depend on how many others there are."""

UNKNOWN_LENGTH = 32
"""Tokens after a prompt that cells are made for at first where the caller does not say."""

LIKELY_LENGTH = 64
"""Tokens after a prompt that cells are made for at first where the caller says more."""


class CellsFull(Exception):
    """The cells are full. Never leaves the session."""


class Sizes(NamedTuple):
    """How large a context is."""

    rows: int
    """Sequences of beams; there is one more, for what no beam needs any more."""
    cells: int
    """Tokens of all sequences together; what beams have in common counts once."""


class Cells:
    """A context of llama.cpp with many sequences over one pool of cells, and the batch that fills it.

    Raises:
        EngineError: llama.cpp has no memory for it.
    """

    def __init__(self, lib: Any, model: Any, sizes: Sizes, n_batch: int, n_threads: int, type_k: int) -> None:
        self.lib, self.sizes = lib, sizes
        params = lib.llama_context_default_params()
        params.type_k = type_k
        params.n_ctx = sizes.cells
        params.n_seq_max = sizes.rows + 1
        # llama.cpp aborts where a batch cannot ask for logits of every sequence.
        params.n_batch = params.n_ubatch = max(n_batch, sizes.rows + 1)
        params.kv_unified = True
        params.flash_attn_type = lib.LLAMA_FLASH_ATTN_TYPE_AUTO
        params.n_threads = params.n_threads_batch = n_threads
        self._context = context = lib.llama_init_from_model(model, params)
        if not context:
            raise EngineError(
                f"llama.cpp cannot make a context of {sizes.cells} tokens for {sizes.rows} beams",
                help="use fewer beams, or a smaller max_tokens",
            )
        self.n_batch = int(lib.llama_n_batch(context))
        self.at_once = self.n_batch if lib.llama_supports_gpu_offload() else min(self.n_batch, CPU_ROWS)
        self.n_vocab = int(lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model)))
        self.memory = lib.llama_get_memory(context)
        self._batch = lib.llama_batch_init(self.n_batch, 0, 1)
        for i in range(self.n_batch):
            self._batch.n_seq_id[i] = 1
        self.free = weakref.finalize(self, _release, lib, context, self._batch)

    def clear(self) -> None:
        """Forgets every sequence."""
        self.lib.llama_memory_clear(self.memory, True)

    def decode_parts(self, entries: Sequence[tuple[int, int, int, bool]]) -> Rows:
        """`decode` for any number of entries that all ask."""
        parts = [entries[at : at + self.at_once] for at in range(0, len(entries), self.at_once)]
        if len(parts) == 1:
            return self.decode(entries)
        logits = np.empty((len(entries), self.n_vocab), np.float32)
        for i, part in enumerate(parts):
            logits[i * self.at_once :][: len(part)] = self.decode(part)
        logits.flags.writeable = False
        return logits

    def decode(self, entries: Sequence[tuple[int, int, int, bool]]) -> Rows:
        """Evaluates (token, position, sequence, asked), at most `n_batch` of them, and gives the logits of those that
        asked, in their order.

        Raises:
            CellsFull: no cells are left; sequences may hold a part of it.
            EngineError: llama.cpp failed; likewise.
        """
        batch = self._batch
        batch.n_tokens = len(entries)
        for i, (token, position, sequence, asked) in enumerate(entries):
            batch.token[i] = token
            batch.pos[i] = position
            batch.seq_id[i][0] = sequence
            batch.logits[i] = asked
        code = int(self.lib.llama_decode(self._context, batch))
        if code == 1:
            raise CellsFull
        if code:
            raise EngineError(f"llama.cpp failed to evaluate {len(entries)} beams (code {code})")
        rows = sum(asked for *_, asked in entries)
        if not rows:
            return np.empty((0, self.n_vocab), np.float32)
        address = ctypes.cast(self.lib.llama_get_logits(self._context), ctypes.c_void_p).value
        if not address:
            raise EngineError("llama.cpp holds no logits", help="an embedding-only context cannot generate")
        flat = np.ctypeslib.as_array((ctypes.c_float * (rows * self.n_vocab)).from_address(address))
        flat.flags.writeable = False
        return flat.reshape(rows, self.n_vocab)


def _release(lib: Any, context: Any, batch: Any) -> None:
    lib.llama_batch_free(batch)
    lib.llama_free(context)


class Row(NamedTuple):
    """One beam: the sequence that holds it, the number of its prompt, and the tokens after that."""

    sequence: int
    prompt: int
    path: tuple[int, ...]


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
        rounded differently, which a quantised model magnifies to whole units. `LlamaBeams` evaluates everything again
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


class LlamaBeams:
    """A beam session of a LlamaCpp engine: its rows are sequences of one context, made when it begins.

    Where the cells are full, everything is evaluated again in a context with twice as many or more.
    """

    def __init__(self, engine: LlamaCpp, rows: int | None, tokens: int | None) -> None:
        self._engine = engine
        self._most = engine.beam_rows if rows is None else rows
        if not 1 <= self._most <= engine.beam_rows:
            raise EngineError(
                f"{self._most} beams in one session", help=f"llama.cpp holds 1 to {engine.beam_rows}: use fewer beams"
            )
        self._tokens = UNKNOWN_LENGTH if tokens is None else min(tokens, LIKELY_LENGTH)
        self._cells: Cells | None = None
        self._prompts: list[list[int]] = []
        self._rows: list[Row] = []

    def begin(self, prompts: Sequence[Sequence[int]]) -> Rows:
        """Evaluates the prompts; float32 [P, V].

        Raises:
            EngineError: a prompt is empty or longer than the engine's context, there are more prompts than rows, the
                session has begun already, or llama.cpp failed.
            TokenError: a token is not in the vocabulary.
        """
        engine = self._engine
        checked = checked_prompts(prompts, engine._n_vocab)
        if self._prompts:
            raise EngineError("the session has begun already", help="use a new session for new prompts")
        self._fits(len(checked), max(map(len, checked)))
        self._prompts = checked
        with engine._lock:
            cells = sum(map(len, checked)) + self._most * self._tokens
            self._cells = engine._take_cells(self._most, -(-max(cells, engine.n_ctx) // GRAIN) * GRAIN)
            return self._evaluated(self._read_prompts, [])

    def step(self, parents: npt.ArrayLike, tokens: npt.ArrayLike) -> Rows:
        """Forks, drops and extends the rows; float32 [R, V], llama.cpp's own memory where one batch was enough.

        Raises:
            StateError, TokenError: a parent is no row, or a token not in the vocabulary. Nothing has changed.
            EngineError: there are more rows than the session was made for, or they are longer than the engine's
                context, and nothing has changed; or llama.cpp failed.
        """
        engine = self._engine
        with engine._lock:
            cells = self._open()
            old, new = checked_step(parents, tokens, len(self._rows), engine._n_vocab)
            longest = max(len(self._rows[p].path) + len(self._prompts[self._rows[p].prompt]) for p in old) + 1
            self._fits(len(old), longest)
            moved = places(self._rows, old, cells.sizes.rows)
            rows = [
                Row(sequence, self._rows[parent].prompt, (*self._rows[parent].path, token))
                for sequence, parent, token in zip(moved.held, old, new, strict=True)
            ]

            def extend(cells: Cells) -> Rows:
                moved.move(cells)
                return cells.decode_parts(
                    [(r.path[-1], len(self._prompts[r.prompt]) + len(r.path) - 1, r.sequence, True) for r in rows]
                )

            return self._evaluated(extend, rows)

    def close(self) -> None:
        """Gives the context back to the engine; logits that it handed out must not be looked at any more."""
        cells, self._cells, self._rows = self._cells, None, []
        if cells is not None:
            self._engine._keep_cells(cells)

    def _fits(self, rows: int, longest: int) -> None:
        """An EngineError where so many rows, or rows of that many tokens, are too much."""
        if rows > self._most:
            raise EngineError(
                f"{rows} beams in a session made for {self._most}", help="ask for more rows when the session is made"
            )
        if longest > self._engine.n_ctx:
            raise EngineError(
                f"a beam is {longest} tokens long, the context holds {self._engine.n_ctx}",
                help="shorten the prompt, or load the model with a larger n_ctx",
            )

    def _open(self) -> Cells:
        """The context, if it can be used."""
        if self._cells is None or not self._rows or not self._cells.free.alive:
            closed = self._cells is not None and not self._cells.free.alive
            raise EngineError(
                "the model is closed" if closed else "the session has no rows",
                help="make a new LlamaCpp" if closed else "begin it first; after a failure or close, make a new one",
            )
        return self._cells

    def _evaluated(self, evaluate: Callable[[Cells], Rows], rows: list[Row]) -> Rows:
        """What that evaluates, the rows being these after it; in a larger context where the cells do not do.

        After any other error the rows are not known any more.
        """
        cells, counters = self._cells, self._engine.counters
        assert cells is not None
        self._rows, begun = [], time.perf_counter()
        try:
            logits = evaluate(cells)
        except CellsFull:
            logits, rows = self._again(cells.sizes, rows)
        self._rows = rows or [Row(i, i, ()) for i in range(len(self._prompts))]
        counters.forward_passes += 1
        counters.tokens_decoded += len(rows) or sum(map(len, self._prompts))
        counters.milliseconds += (time.perf_counter() - begun) * 1e3
        return logits

    def _read_prompts(self, cells: Cells) -> Rows:
        """Evaluates every prompt into the sequence of its number."""
        return np.stack([self._read(cells, i, 0, prompt) for i, prompt in enumerate(self._prompts)])

    def _read(self, cells: Cells, sequence: int, begin: int, tokens: Sequence[int]) -> Rows:
        """Evaluates tokens into one sequence, in batches as it would be alone; the last one's logits, [V]."""
        entries = [(token, begin + i, sequence, i + 1 == len(tokens)) for i, token in enumerate(tokens)]
        for at in range(0, len(entries), self._engine.n_batch):
            logits = cells.decode(entries[at : at + self._engine.n_batch])
        last: Rows = logits[0].copy()
        return last

    def _again(self, sizes: Sizes, rows: list[Row]) -> tuple[Rows, list[Row]]:
        """Evaluates these rows from their first token on in a context that holds them all and more."""
        old, self._cells = self._cells, None
        assert old is not None
        old.free()
        # Prompts are shared by their beams again, what comes after them is not.
        needed = sum(map(len, self._prompts)) + sum(len(row.path) for row in rows)
        self._cells = cells = self._engine._take_cells(sizes.rows, 2 * max(sizes.cells, -(-needed // GRAIN) * GRAIN))
        logits = self._read_prompts(cells)
        if not rows:
            return logits, rows
        moved = places([Row(i, i, ()) for i in range(len(self._prompts))], [r.prompt for r in rows], sizes.rows)
        moved.move(cells)
        rows = [row._replace(sequence=sequence) for row, sequence in zip(rows, moved.held, strict=True)]
        return np.stack([self._read(cells, r.sequence, len(self._prompts[r.prompt]), r.path) for r in rows]), rows
