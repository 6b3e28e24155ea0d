"""What every evaluation of llama.cpp is asked with: tokens, their positions and sequences, and who asks for logits."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

CPU_ROWS = 63
"""Rows of one batch on the CPU. From 64 on llama.cpp's attention adds up in another order (GGML_FA_TILE_Q), and the
logits of a row would depend on how many others there are."""

Entry = tuple[int, int, Sequence[int], bool]
"""A token, its position, the sequences that it belongs to, and whether it asks for logits."""


class Batch:
    """A reusable llama_batch.

    Args:
        lib: libllama.
        capacity: the most tokens.
        sequences: the most sequences of one token.
    """

    def __init__(self, lib: Any, capacity: int, sequences: int = 1) -> None:
        self.capacity = capacity
        """The most tokens."""
        self.at_once = capacity if lib.llama_supports_gpu_offload() else min(capacity, CPU_ROWS)
        """The most tokens of several sequences."""
        self._c = batch = lib.llama_batch_init(capacity, 0, sequences)
        weakref.finalize(self, lib.llama_batch_free, batch)

    def fill(self, entries: Sequence[Entry]) -> Any:
        """The llama_batch of these entries."""
        batch = self._c
        batch.n_tokens = len(entries)
        for i, (token, position, sequences, asks) in enumerate(entries):
            batch.token[i], batch.pos[i], batch.logits[i] = token, position, asks
            batch.n_seq_id[i] = len(sequences)
            for at, sequence in enumerate(sequences):
                batch.seq_id[i][at] = sequence
        return batch
