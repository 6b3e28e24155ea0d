"""Trees of continuations of one prompt: what an engine is asked for, and how engines without a way of their own answer.

A tree is two lists: `parents[i]`, the node before node i, smaller than i, or `PROMPT`; and `tokens[i]`, node i's token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ._session import ContextFull, Logits, as_session

if TYPE_CHECKING:
    from ._engine import Engine

PROMPT = -1
"""The node that stands for the prompt."""

Read = Callable[[int, Logits], None]
"""Called with a node and the logits after its token: float32 [V], valid during the call."""

ROWS = 64
"""Most leaves that are held at once where an engine sets no limit."""


class Evaluated(NamedTuple):
    """What it took."""

    passes: int
    """Times that the model was asked."""
    reused: int
    """Of the prompt's tokens, how many the engine held already."""


class Group(NamedTuple):
    """The paths to some leaves, which are evaluated together."""

    nodes: list[int]
    """Parents first, each path's nodes in order."""
    new: set[int]
    """Those of them that no earlier group has."""
    leaves: dict[int, range]
    """By node, which of the group's leaves are below it, by number."""

    @property
    def width(self) -> int:
        """How many leaves there are."""
        return max((below.stop for below in self.leaves.values()), default=0)


def groups(parents: Sequence[int], most_leaves: int, most_nodes: int) -> Iterator[Group]:
    """The tree in groups of at most so many leaves and nodes, paths that begin alike beside each other.

    Raises:
        ContextFull: one path has more nodes.
    """
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(parents):
        children.setdefault(parent, []).append(node)
    seen: set[int] = set()
    group = Group([], set(), {})
    todo = [PROMPT]
    while todo:
        node = todo.pop()
        below = children.get(node, [])
        todo += reversed(below)
        if below or node == PROMPT:
            continue
        path = [node]
        while parents[path[-1]] != PROMPT:
            path.append(parents[path[-1]])
        path.reverse()
        if len(path) > most_nodes:
            raise ContextFull
        added = [node for node in path if node not in group.leaves]
        if group.nodes and (group.width == most_leaves or len(group.nodes) + len(added) > most_nodes):
            yield group
            group, added = Group([], set(), {}), path
        leaf = group.width
        group.nodes.extend(added)
        group.new.update(node for node in added if node not in seen)
        seen.update(added)
        for node in path:
            group.leaves[node] = range(group.leaves[node].start if node in group.leaves else leaf, leaf + 1)
    if group.nodes:
        yield group


def depths_of(parents: Sequence[int]) -> list[int]:
    """How many nodes there are before each node."""
    depths: list[int] = []
    for parent in parents:
        depths.append(0 if parent == PROMPT else depths[parent] + 1)
    return depths


def by_rows(
    engine: Engine, prompt: Sequence[int], parents: Sequence[int], tokens: Sequence[int], read: Read
) -> Evaluated:
    """`Engine.tree_logits` by rows that fork: a session for each group, a pass for each level of it."""
    depths = depths_of(parents)
    if engine.n_ctx is not None and len(prompt) + max(depths, default=-1) + 1 > engine.n_ctx:
        raise ContextFull
    passes = 0
    for group in groups(parents, min(engine.beam_rows or ROWS, ROWS), 1 << 62):
        levels: dict[int, list[int]] = {}
        for node in group.nodes:
            levels.setdefault(depths[node], []).append(node)
        session = engine.batch_session(group.width, len(prompt) + len(group.nodes), forks=True)
        try:
            logits = session.evaluate_rows([prompt])
            if not passes:
                read(PROMPT, logits[0])
            passes += 1
            rows = {PROMPT: 0}
            for level in sorted(levels):
                nodes = levels[level]
                session.reorder([rows[parents[node]] for node in nodes])
                logits = session.evaluate_rows([[tokens[node]] for node in nodes])
                passes += 1
                rows = {node: row for row, node in enumerate(nodes)}
                for node, row in rows.items():
                    if node in group.new:
                        read(node, logits[row])
        finally:
            session.close()
    return Evaluated(passes, 0)


def by_sessions(
    engine: Engine, prompt: Sequence[int], parents: Sequence[int], tokens: Sequence[int], read: Read
) -> Evaluated:
    """`Engine.tree_logits` one node after the other; what is not on the next path is taken back, or the sequence begun
    again."""
    session = as_session(engine.session())
    reused = session.begin(prompt)
    read(PROMPT, session.evaluate(prompt[reused:]))
    passes, held = 1, list[int]()
    for group in groups(parents, 1 << 62, 1 << 62):
        for node in group.nodes:
            parent = parents[node]
            keep = 0 if parent == PROMPT else held.index(parent) + 1
            if keep < len(held):
                if session.can_rollback:
                    session.rollback(len(held) - keep)
                else:
                    session = as_session(engine.session())
                    whole = [*prompt, *(tokens[node] for node in held[:keep])]
                    session.evaluate(whole[session.begin(whole) :])
                    passes += 1
                del held[keep:]
            read(node, session.evaluate([tokens[node]]))
            held.append(node)
            passes += 1
    return Evaluated(passes, reused)
