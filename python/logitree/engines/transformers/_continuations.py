"""A tree of continuations in a transformers model: a row for each leaf, over copies of the prompt's cache."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._rows import checked_tokens
from .._session import ContextFull
from .._trees import PROMPT, ROWS, Evaluated, Group, Read, by_sessions, depths_of, groups
from ._forward import import_torch, to_host

if TYPE_CHECKING:
    from ._engine import Transformers

_MOST_LOGITS = 1 << 26
"""Logits of one pass, in all rows and columns."""


def tree_logits(
    engine: Transformers, prompt: Sequence[int], parents: Sequence[int], tokens: Sequence[int], read: Read
) -> Evaluated:
    """The logits after a prompt and each node; see `Engine.tree_logits`.

    Rows are padded on the right, which no token before sees. Models whose caches are more than plain attention evaluate
    one node after the other.
    """
    runner = engine.runner
    if not runner.is_padded:
        return by_sessions(engine, prompt, parents, tokens, read)
    checked_tokens([*prompt, *tokens], runner.vocabulary_size)
    depths = depths_of(parents)
    longest = max(depths, default=-1) + 1
    if engine.n_ctx is not None and len(prompt) + longest > engine.n_ctx:
        raise ContextFull
    with engine._cached.lock:
        held = len(engine._cached.keep_common(prompt[:-1]))
        read(PROMPT, engine._cached.append(prompt[held:]))
        passes = 1
        columns = max(1, _MOST_LOGITS // runner.vocabulary_size)
        rows = max(1, min(ROWS, columns // max(longest, 1)))
        for group in groups(parents, rows, 1 << 62):
            passes += _group(engine, group, depths, tokens, read, max(1, columns // group.width))
    return Evaluated(passes, held)


def _group(
    engine: Transformers, group: Group, depths: Sequence[int], tokens: Sequence[int], read: Read, width: int
) -> int:
    """The passes over one group, of at most `width` columns each."""
    torch = import_torch()
    runner = engine.runner
    length = max(depths[node] for node in group.nodes) + 1
    ids = torch.zeros((group.width, length), dtype=torch.long)
    columns: list[list[int]] = [[] for _ in range(length)]
    for node in group.nodes:
        below = group.leaves[node]
        ids[below.start : below.stop, depths[node]] = tokens[node]
        if node in group.new:
            columns[depths[node]].append(node)
    ids = ids.to(runner.device)
    cache: Any = copy.deepcopy(engine._cached.cache)
    cache.batch_repeat_interleave(group.width)
    passes = 0
    for start in range(0, length, width):
        logits, cache = runner.run_all(ids[:, start : start + width], cache)
        passes += 1
        for at, nodes in enumerate(columns[start : start + width]):
            if nodes:
                found = to_host(logits[[group.leaves[node].start for node in nodes], at])
                for node, row in zip(nodes, found, strict=True):
                    read(node, row)
    return passes
