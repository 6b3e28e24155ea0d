"""Random catalogues as index files, each built in a process of its own, and what others hold catalogues in.

`python -m logitree_bench.suites._catalogue ITEMS CODES LEVELS PATH` builds one and prints what it took as JSON. It
times no step and records nothing.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import logitree as lt

SEED = 20
_PORTION = 1 << 20
_RECORD = 64
"""Bytes of a wide node's record."""
_WIDE = 64
"""Nodes of more rows than this have a record in the index."""
_MARKED = 8
"""Nodes whose span of tokens is at most so many times their children have marks, a bit a token."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Shape:
    """A catalogue of random items: `codes` at each of `levels`."""

    items: int
    codes: int = 2048
    levels: int = 8

    @property
    def name(self) -> str:
        """As cases are called."""
        return f"{self.items:,} items of {self.levels} x {self.codes:,} codes"

    def portions(self) -> Iterator[npt.NDArray[np.uint32]]:
        """The items' codes, the same at every call."""
        rng = np.random.default_rng(SEED)
        for first in range(0, self.items, _PORTION):
            count = min(_PORTION, self.items - first)
            yield rng.integers(0, self.codes, (count, self.levels), dtype=np.uint32)

    def some(self, count: int) -> npt.NDArray[np.uint32]:
        """The first items."""
        return next(self.portions())[:count]

    def index_bytes(self) -> float:
        """Bytes of the index as its layout says, for random items: docs/catalogue.md has the formula."""
        token = 1 if self.codes <= 1 << 8 else 2 if self.codes <= 1 << 16 else 4
        number = 4 if self.items <= 1 << 32 else 8
        found = float(self.items * (self.levels * token + 1 + number))
        for depth in range(self.levels):
            nodes = float(self.codes**depth)
            wide, children = self._wide(self.items / nodes)
            marks = 8 * math.ceil(self.codes / 64) if wide and self.codes * wide <= _MARKED * children else 0
            found += nodes * (wide * (_RECORD + marks) + children * (token + 8))
        return found * (1 + 8 / 4096)

    def _wide(self, rows: float) -> tuple[float, float]:
        """The share of nodes that are wide, and children of wide ones a node, where a node has this many on average."""
        if rows > 40 * _WIDE:
            return 1.0, -self.codes * math.expm1(-rows / self.codes)
        share = children = 0.0
        for count in range(_WIDE + 1, int(rows + 12 * math.sqrt(rows)) + _WIDE + 2):
            chance = math.exp(count * math.log(rows) - rows - math.lgamma(count + 1))  # Poisson's
            share += chance
            children -= chance * self.codes * math.expm1(count * math.log1p(-1 / self.codes))
        return share, children

    def static_bytes(self, dense: int = 2) -> float:
        """STATIC's bound (arXiv 2602.22647): (1/8 + 4) V^d dense, and 12 min(V^l, N) for each level below."""
        below = sum(min(self.codes**level, self.items) for level in range(dense + 1, self.levels + 1))
        return float((1 / 8 + 4) * self.codes**dense + 12 * below)


def build(shape: Shape, path: Path) -> dict[str, Any]:
    """Builds the index in a process of its own; returns what it took: seconds, resident bytes, bytes of the index."""
    command = [sys.executable, "-m", __name__, *map(str, (shape.items, shape.codes, shape.levels, path))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    taken: dict[str, Any] = json.loads(done.stdout)
    return taken


def _build(shape: Shape, path: str) -> dict[str, Any]:
    seconds = 0.0
    builder = lt.catalogue.CatalogueBuilder(path)
    for codes in shape.portions():
        began = time.perf_counter()
        builder.add(codes)
        seconds += time.perf_counter() - began
    began = time.perf_counter()
    tree = builder.finish()
    seconds += time.perf_counter() - began
    return {"seconds": seconds, "resident": _most_resident(), **tree.info()}


def _most_resident() -> int:
    """The most bytes that this process has had in memory.

    Linux's ru_maxrss begins with what the process had that started it, so the kernel's own mark is asked for first.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most << 10


def best(scores: npt.NDArray[np.floating[Any]], owners: Ints, width: int) -> tuple[Ints, Ints, Floats]:
    """Rows, tokens and scores of the best `width` of each owner, from a score of every token of every row."""
    rows, tokens, found = [], [], []
    for owner in np.unique(owners):
        (mine,) = np.nonzero(owners == owner)
        flat = scores[mine].ravel()
        count = min(width, flat.size)
        at = np.argpartition(-flat, count - 1)[:count]
        at = at[np.argsort(-flat[at], kind="stable")]
        at = at[flat[at] > -np.inf]
        rows.append(mine[at // scores.shape[1]])
        tokens.append(at % scores.shape[1])
        found.append(flat[at].astype(np.float64))
    return np.concatenate(rows), np.concatenate(tokens), np.concatenate(found)


class DictTrie:
    """Dicts in dicts, and a mask of scores filled from them: what one writes first."""

    name = "Python dict trie"

    def __init__(self, items: npt.NDArray[np.uint32], _codes: int) -> None:
        self.root: dict[int, Any] = {}
        for row in items.tolist():
            node = self.root
            for code in row:
                node = node.setdefault(code, {})

    def start(self) -> Any:
        """The state where every item begins."""
        return self.root

    def allowed(self, node: Any) -> list[int]:
        """The codes that may follow."""
        return list(node)

    def after(self, node: Any, code: int) -> Any:
        """The state after a code."""
        return node[code]


class PrefixSet:
    """All prefixes in a hash set, as numbers; each code is tried."""

    name = "hash set of prefixes"

    def __init__(self, items: npt.NDArray[np.uint32], codes: int) -> None:
        self.codes = codes
        self.known: set[int] = set()
        for row in items.tolist():
            key = 1
            for code in row:
                key = key * codes + code
                self.known.add(key)

    def start(self) -> int:
        """The state where every item begins."""
        return 1

    def allowed(self, key: int) -> list[int]:
        """The codes that may follow."""
        first, known = key * self.codes, self.known
        return [code for code in range(self.codes) if first + code in known]

    def after(self, key: int, code: int) -> int:
        """The state after a code."""
        return key * self.codes + code


Slow = DictTrie | PrefixSet


def slow_step(
    slow: Slow, states: list[Any], logits: npt.NDArray[np.float32], scores: Floats, width: int, owners: Ints
) -> tuple[Ints, Ints, Floats, list[Any]]:
    """A step of beams over a slow structure: rows, tokens, scores, states."""
    masked = np.full(logits.shape, -np.inf)
    for row, state in enumerate(states):
        ids = slow.allowed(state)
        masked[row, ids] = logits[row, ids] + scores[row]
    rows, tokens, found = best(masked, owners, width)
    after = [slow.after(states[row], token) for row, token in zip(rows.tolist(), tokens.tolist(), strict=True)]
    return rows, tokens, found, after


if __name__ == "__main__":
    items, codes, levels = map(int, sys.argv[1:4])
    print(json.dumps(_build(Shape(items, codes, levels), sys.argv[4])))
