"""Contexts of llama.cpp: the batch that one is asked with, the memory that it fills, and the logits that it leaves."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._errors import EngineError
from ._llama_cpp_threads import Cores
from ._session import ContextFull, Logits

CPU_ROWS = 63
"""Tokens of a batch of several sequences on the CPU. From 64 on llama.cpp's attention adds up in another order
(GGML_FA_TILE_Q), and the logits of a row would depend on how many others there are."""

Entry = tuple[int, int, Sequence[int], bool]
"""A token, its position, the sequences that it belongs to, and whether it asks for logits."""


class Context:
    """What evaluates batches.

    Args:
        lib: libllama.
        context: its llama_context.
        sequences: the most sequences of one token.
    """

    def __init__(self, lib: Any, context: Any, sequences: int) -> None:
        self.lib, self.raw = lib, context
        self.memory = lib.llama_get_memory(context)
        self.n_vocab = int(lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(lib.llama_get_model(context))))
        self.n_batch = int(lib.llama_n_batch(context))
        self.at_once = self.n_batch if lib.llama_supports_gpu_offload() else min(self.n_batch, CPU_ROWS)
        """The most tokens of a batch of several sequences."""
        self._cores = Cores(int(lib.llama_n_threads(context)))
        self._batch = lib.llama_batch_init(self.n_batch, 0, sequences)
        weakref.finalize(self, lib.llama_batch_free, self._batch)
        address = ctypes.cast(lib.llama_get_logits_ith, ctypes.c_void_p).value or 0
        self._logits_at = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)(address)
        self._pointer = ctypes.cast(context, ctypes.c_void_p)
        self._views: dict[tuple[int, int], npt.NDArray[np.float32]] = {}

    def decode(self, entries: Sequence[Entry]) -> None:
        """Evaluates at most `n_batch` entries.

        Raises:
            ContextFull: memory has no room; sequences may hold a part of the batch.
            EngineError: llama.cpp failed; likewise.
        """
        batch = self._batch
        batch.n_tokens = len(entries)
        for i, (token, position, sequences, asks) in enumerate(entries):
            batch.token[i], batch.pos[i], batch.logits[i] = token, position, asks
            batch.n_seq_id[i] = len(sequences)
            for at, sequence in enumerate(sequences):
                batch.seq_id[i][at] = sequence
        with self._cores:
            code = int(self.lib.llama_decode(self.raw, batch))
        if code == 1:
            raise ContextFull
        if code:
            raise EngineError(f"llama.cpp failed to evaluate {len(entries)} tokens (code {code})")

    def logits(self, at: Iterable[int]) -> list[Logits]:
        """The logits of these entries of the last batch, which asked for them; -1 is the last that did."""
        return [self._view(self._logits_at(self._pointer, i), 1)[0] for i in at]

    def block(self, rows: int) -> npt.NDArray[np.float32]:
        """The logits of the first entries of the last batch that asked for them: [rows, V]."""
        return self._view(ctypes.cast(self.lib.llama_get_logits(self.raw), ctypes.c_void_p).value, rows)

    def _view(self, address: int | None, rows: int) -> npt.NDArray[np.float32]:
        """llama.cpp's own memory as an array, made once for each address: making one takes five times as long."""
        if not address:
            raise EngineError("llama.cpp holds no logits", help="an embedding-only context cannot generate")
        view = self._views.get((address, rows))
        if view is None:
            flat = np.ctypeslib.as_array((ctypes.c_float * (rows * self.n_vocab)).from_address(address))
            flat.flags.writeable = False
            self._views[address, rows] = view = flat.reshape(rows, self.n_vocab)
        return view


GRAIN = 256
"""Cells are asked for in multiples of this, as llama.cpp pads them."""


class Sizes(NamedTuple):
    """How large a context is."""

    rows: int
    """Sequences of rows."""
    cells: int
    """Tokens of all sequences together, where what rows have in common counts once; with `streams` of each."""
    streams: bool = False
    """Whether each sequence has cells of its own. Else there is one more sequence, for what no row needs any more."""

    def rounded(self) -> Sizes:
        """With whole grains of cells."""
        return self._replace(cells=-(-self.cells // GRAIN) * GRAIN)

    def hold(self, other: Sizes) -> bool:
        """Whether a context of this size does for one of another."""
        return self.streams == other.streams and self.rows >= other.rows and self.cells >= other.cells


class Cells(Context):
    """A context of llama.cpp with many sequences over one pool of cells, or with cells for each.

    Raises:
        EngineError: llama.cpp has no memory for it.
    """

    def __init__(self, lib: Any, model: Any, sizes: Sizes, n_batch: int, n_threads: int, type_k: int) -> None:
        self.sizes = sizes
        params = lib.llama_context_default_params()
        params.type_k = type_k
        params.n_ctx = sizes.cells * sizes.rows if sizes.streams else sizes.cells
        params.n_seq_max = sizes.rows if sizes.streams else sizes.rows + 1
        # llama.cpp aborts where a batch cannot ask for logits of every sequence.
        params.n_batch = params.n_ubatch = max(n_batch, sizes.rows + 1)
        params.kv_unified = not sizes.streams
        params.flash_attn_type = lib.LLAMA_FLASH_ATTN_TYPE_AUTO
        params.n_threads = params.n_threads_batch = n_threads
        context = lib.llama_init_from_model(model, params)
        if not context:
            raise EngineError(
                f"llama.cpp cannot make a context of {params.n_ctx} tokens for {sizes.rows} rows",
                help="use fewer rows or beams, or a smaller max_tokens",
            )
        super().__init__(lib, context, 1)
        self.free = weakref.finalize(self, lib.llama_free, context)

    def clear(self) -> None:
        """Forgets every sequence."""
        self.lib.llama_memory_clear(self.memory, True)


def entries_of(sequence: int, begin: int, tokens: Sequence[int], last: int = 1) -> list[Entry]:
    """Tokens of a sequence from a position on. The last ones ask for logits."""
    asking = len(tokens) - last
    return [(token, begin + i, (sequence,), i >= asking) for i, token in enumerate(tokens)]
