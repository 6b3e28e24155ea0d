"""A tree of continuations in one context of llama.cpp: each leaf is a sequence, and a node belongs to the sequences of
all leaves below it, so that one batch holds the whole tree."""

from __future__ import annotations

import time
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _core
from .._errors import EngineError
from . import ContextFull
from ._llama_cpp_beams import CPU_ROWS
from ._trees import PROMPT, Evaluated, Group, Read, groups

if TYPE_CHECKING:
    from .llama_cpp import LlamaCpp, LlamaSession

SEQUENCES = 64
"""Sequences of a context: the main one, and those of leaves."""


class TreeBatch:
    """A reusable llama_batch whose tokens belong to several sequences each."""

    def __init__(self, lib: Any, capacity: int, sequences: int) -> None:
        self.capacity = capacity
        self._c = batch = lib.llama_batch_init(capacity, 0, sequences)
        weakref.finalize(self, lib.llama_batch_free, batch)

    def fill(self, entries: Sequence[tuple[int, int, range, bool]]) -> Any:
        """The llama_batch of (token, position, sequences, whether it asks for logits)."""
        batch = self._c
        batch.n_tokens = len(entries)
        for i, (token, position, sequences, asks) in enumerate(entries):
            batch.token[i], batch.pos[i], batch.logits[i] = token, position, asks
            batch.n_seq_id[i] = len(sequences)
            for at, sequence in enumerate(sequences):
                batch.seq_id[i][at] = sequence
        return batch


class LlamaTree:
    """The evaluation of trees after the prompt that an engine's own context holds."""

    def __init__(self, lib: Any, n_batch: int, sequences: int) -> None:
        self._leaves = sequences - 1
        at_once = n_batch if lib.llama_supports_gpu_offload() else min(n_batch, CPU_ROWS)
        self._batch = TreeBatch(lib, at_once, sequences)

    def logits(
        self, engine: LlamaCpp, prompt: Sequence[int], parents: Sequence[int], tokens: Sequence[int], read: Read
    ) -> Evaluated:
        """The logits after the prompt and each node; docs of `tree_logits`."""
        if any(not 0 <= token < engine._n_vocab for token in tokens):
            raise _core.TokenError(f"a token is outside the model's vocabulary of {engine._n_vocab}")
        session = engine.session()
        reused, passes = session.begin(prompt), 0
        if engine.n_ctx - len(prompt) < 0:
            raise ContextFull
        # All but the last token: that one goes with the tree.
        if rest := prompt[reused:-1]:
            session.evaluate(rest)
        depths: list[int] = []
        for parent in parents:
            depths.append(0 if parent == PROMPT else depths[parent] + 1)
        room = engine.n_ctx - len(prompt)
        for group in groups(parents, self._leaves, room):
            passes += self._group(session, prompt, group, depths, tokens, read, not passes)
        if not passes:
            read(PROMPT, session.evaluate(prompt[-1:]))
            passes = 1
        return Evaluated(passes, reused)

    def _group(
        self,
        session: LlamaSession,
        prompt: Sequence[int],
        group: Group,
        depths: Sequence[int],
        tokens: Sequence[int],
        read: Read,
        is_first: bool,
    ) -> int:
        """The passes over one group. Afterwards memory holds the prompt alone."""
        engine = session._engine
        lib, memory, own = engine._lib, engine._memory, range(1, group.width + 1)
        at = len(prompt) - 1
        entries = [(prompt[-1], at, range(group.width + 1), True)] if is_first else []
        asking = [PROMPT] if is_first else []
        for node in group.nodes:
            below = group.leaves[node]
            entries.append(
                (tokens[node], at + 1 + depths[node], range(below.start + 1, below.stop + 1), node in group.new)
            )
            asking.append(node)
        with engine._lock, engine._consistent():
            # Another thread may have used the engine since.
            session._tokens = list(prompt[: at + (not is_first)])
            rest = engine._attach(session)
            for start in range(0, len(rest), engine.n_batch):
                engine._decode(rest[start : start + engine.n_batch], 0)
            begun, passes = time.perf_counter(), 0
            try:
                for sequence in own:
                    lib.llama_memory_seq_cp(memory, 0, sequence, -1, -1)
                for start in range(0, len(entries), self._batch.capacity):
                    part = entries[start : start + self._batch.capacity]
                    code = int(lib.llama_decode(engine._context, self._batch.fill(part)))
                    if code == 1:
                        raise ContextFull
                    if code:
                        raise EngineError(f"llama.cpp failed to evaluate {len(part)} tokens (code {code})")
                    passes += 1
                    engine.counters.forward_passes += 1
                    engine.counters.tokens_decoded += len(part)
                    if is_first and not start:
                        engine._held.append(prompt[-1])
                    asked = [i for i, (*_, asks) in enumerate(part) if asks]
                    for i, row in zip(asked, engine._logits.rows(asked), strict=True):
                        read(asking[start + i], row)
            finally:
                for sequence in own:
                    lib.llama_memory_seq_rm(memory, sequence, -1, -1)
                engine._current = None
                engine.counters.milliseconds += (time.perf_counter() - begun) * 1e3
            return passes
