"""A tree of continuations in one context of llama.cpp: each leaf is a sequence, and a node belongs to the sequences of
all leaves below it, so that one batch holds the whole tree."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._llama_cpp_context import Entry
from ._rows import checked_tokens
from ._session import ContextFull
from ._trees import PROMPT, Evaluated, Group, Read, depths_of, groups

if TYPE_CHECKING:
    from .llama_cpp import LlamaCpp, LlamaSession

SEQUENCES = 64
"""Sequences of a context: the main one, and those of leaves."""


def tree_logits(
    engine: LlamaCpp, prompt: Sequence[int], parents: Sequence[int], tokens: Sequence[int], read: Read
) -> Evaluated:
    """The logits after the prompt that the engine's own context holds, and each node; see `Engine.tree_logits`."""
    checked_tokens(tokens, engine._main.n_vocab)
    session = engine.session()
    reused, passes = session.begin(prompt), 0
    room = engine.n_ctx - len(prompt)
    if room < 0:
        raise ContextFull
    # All but the last token: that one goes with the tree.
    if rest := prompt[reused:-1]:
        session.evaluate(rest)
    depths = depths_of(parents)
    for group in groups(parents, engine._sequences - 1, room):
        passes += _group(session, prompt, group, depths, tokens, read, not passes)
    if not passes:
        read(PROMPT, session.evaluate(prompt[-1:]))
        passes = 1
    return Evaluated(passes, reused)


def _group(
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
    main, own = engine._main, range(1, group.width + 1)
    at = len(prompt) - 1
    entries: list[Entry] = [(prompt[-1], at, range(group.width + 1), True)] if is_first else []
    asking = [PROMPT] if is_first else []
    for node in group.nodes:
        below = group.leaves[node]
        entries.append((tokens[node], at + 1 + depths[node], range(below.start + 1, below.stop + 1), node in group.new))
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
                main.lib.llama_memory_seq_cp(main.memory, 0, sequence, -1, -1)
            for start in range(0, len(entries), main.at_once):
                part = entries[start : start + main.at_once]
                main.decode(part)
                passes += 1
                engine.counters.forward_passes += 1
                engine.counters.tokens_decoded += len(part)
                if is_first and not start:
                    engine._held.append(prompt[-1])
                asked = [i for i, (*_, asks) in enumerate(part) if asks]
                for i, row in zip(asked, main.logits(asked), strict=True):
                    read(asking[start + i], row)
        finally:
            for sequence in own:
                main.lib.llama_memory_seq_rm(main.memory, sequence, -1, -1)
            engine._current = None
            engine.counters.milliseconds += (time.perf_counter() - begun) * 1e3
        return passes
