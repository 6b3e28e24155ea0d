"""The slow obvious tree of token sequences: dicts, loops and sums, nothing shared with what it is compared with.

It has the shape that `logitree.beams` asks of a tree, and says for each answer what it must be. It knows no model, no
file and no native code.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import logitree as lt

FINISHED, FAILED = -1, -2


class Found(NamedTuple):
    """Continuations: rows (int64), tokens (int32), scores (float64), states (int64)."""

    rows: np.ndarray
    tokens: np.ndarray
    scores: np.ndarray
    states: np.ndarray


class Node:
    """A place in the tree."""

    def __init__(self) -> None:
        self.next: dict[int, int] = {}
        """Token -> state after it; the end token is one of them where an item may end."""
        self.weight: dict[int, float] = {}
        """Token -> what is added to its logit; 0 where it is absent."""
        self.items: list[int] = []
        """Ids of the items that end here."""
        self.complete = False


class SlowWalk:
    """The tree, with its states numbered in the order in which they were made."""

    start = 0

    def __init__(self, vocabulary_size: int, end: int | None = None) -> None:
        self.vocabulary_size = vocabulary_size
        self.end = end
        self.nodes = [Node()]
        self.weighted = False

    @classmethod
    def of_items(
        cls,
        items: Iterable[Sequence[int]],
        vocabulary_size: int,
        end: int | None = None,
        ids: Iterable[int] | None = None,
        weights: Mapping[tuple[int, ...], float] | None = None,
    ) -> SlowWalk:
        """A catalogue of token sequences. `weights`: by the path that ends in the weighted token."""
        paths = cls(vocabulary_size, end)
        items = [tuple(item) for item in items]
        for item, id in zip(items, range(len(items)) if ids is None else ids, strict=True):
            node = paths._node(item)
            node.complete = True
            node.items.append(id)
            if end is not None:
                node.next[end] = FINISHED
        for path, weight in (weights or {}).items():
            paths._node(path[:-1]).weight[path[-1]] = weight
            paths.weighted |= weight != 0
        return paths

    @classmethod
    def of_prefixes(
        cls, prefixes: Mapping[tuple[int, ...], Sequence[int]], vocabulary_size: int, start: int, end: int
    ) -> SlowWalk:
        """Tree decode's dict: what was read, the start token first -> the tokens that may follow.

        A candidate whose own key is missing leads to the error state; no candidates leave the end token alone.
        """
        paths = cls(vocabulary_size, end)
        todo = [((start,), paths.nodes[0])]
        while todo:
            key, node = todo.pop()
            tokens = prefixes.get(key, ())
            node.complete = end in tokens
            if not tokens or end in tokens:
                node.next[end] = FINISHED
            for token in tokens:
                if token != end and (*key, token) in prefixes:
                    paths.nodes.append(Node())
                    node.next[token] = len(paths.nodes) - 1
                    todo.append(((*key, token), paths.nodes[-1]))
                elif token != end:
                    node.next[token] = FAILED
        return paths

    def _node(self, path: Iterable[int]) -> Node:
        """The place after these tokens, made if there is none."""
        at = self.nodes[self.start]
        for token in path:
            if token not in at.next:
                self.nodes.append(Node())
                at.next[token] = len(self.nodes) - 1
            at = self.nodes[at.next[token]]
        return at

    # -- what is asked

    def advance(self, states: Any, tokens: Any) -> np.ndarray:
        return np.array([self._after(int(s), int(t)) for s, t in zip(states, tokens, strict=True)], np.int64)

    def _after(self, state: int, token: int) -> int:
        if state == FINISHED or (self.end is not None and token == self.end):
            return FINISHED
        return FAILED if state == FAILED else self.nodes[state].next.get(token, FAILED)

    def gather(self, states: Any, logits: Any, scores: Any = None) -> Found:
        logits = np.asarray(logits)
        if logits.shape != (len(states), self.vocabulary_size):
            raise lt.LogitsError(f"logits of {logits.shape} for {len(states)} states")
        found: list[tuple[int, int, float, int]] = []
        for row, state in enumerate(states):
            before = 0.0 if scores is None else float(scores[row])
            if state == FAILED and self.end is not None:
                found.append((row, self.end, before, FINISHED))
            if state < 0:
                continue
            node = self.nodes[state]
            ways = node.next or ({} if self.end is None else {self.end: FINISHED})
            for token in sorted(ways):
                logit = float(logits[row, token])
                if not logit < math.inf:
                    raise lt.LogitsError(f"the logit of token {token} of row {row} is {logit}")
                found.append((row, token, before + (logit + node.weight.get(token, 0.0)), ways[token]))
        return _found([entry for entry in found if entry[2] > -math.inf])

    def top(self, states: Any, logits: Any, scores: Any, width: int, *, groups: Any = None) -> Found:
        every = self.gather(states, logits, scores)
        whose = [0] * len(states) if groups is None else [int(group) for group in groups]
        assert whose == sorted(whose)
        best: list[tuple[int, int, float, int]] = []
        for group in sorted(set(whose)):
            mine = [entry for entry in zip(*every, strict=True) if whose[entry[0]] == group]
            best += sorted(mine, key=lambda entry: (-entry[2], entry[0], entry[1]))[:width]
        return _found(best)

    def is_item(self, states: Any) -> np.ndarray:
        return np.array([s >= 0 and self.nodes[s].complete for s in states], np.bool_)

    def may_continue(self, states: Any) -> np.ndarray:
        return np.array([s >= 0 and any(t != self.end for t in self.nodes[s].next) for s in states], np.bool_)

    def items(self, state: int) -> np.ndarray:
        return np.array(self.nodes[state].items if state >= 0 else [], np.uint64)


def _found(entries: list[tuple[int, int, float, int]]) -> Found:
    rows, tokens, scores, states = zip(*entries, strict=True) if entries else ((), (), (), ())
    return Found(
        np.array(rows, np.int64),
        np.array(tokens, np.int32),
        np.array(scores, np.float64),
        np.array(states, np.int64),
    )
