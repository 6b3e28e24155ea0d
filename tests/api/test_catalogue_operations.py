"""Thousands of random operations on catalogues through the public names, each held to a plain set of items.

<<<<<<<< HEAD:tests/api/test_prefix_operations.py
`LOGITREE_PREFIX_OPERATIONS=100000 pytest tests/api/test_prefix_operations.py` does more of them than the suite does.
========
`LOGITREE_CATALOGUE_OPERATIONS=100000 pytest tests/test_catalogue_operations.py` does more of them than the suite does.
>>>>>>>> c2215b0 (Make the catalogue a constraint with keys, in logitree.catalogue):tests/test_catalogue_operations.py
The core's own test, crates/logitree/tests/it/catalogue_operations.rs, does a hundred thousand each time.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import logitree as lt

OPERATIONS = int(os.environ.get("LOGITREE_CATALOGUE_OPERATIONS", "20000"))
ON_ONE = 500
"""Operations on one catalogue."""

Tokens = tuple[int, ...]


class Kind(NamedTuple):
    """What the items of a catalogue are like: tokens there are, lengths, numbers there are, items at first."""

    tokens: int
    lengths: range
    numbers: int
    items: int
    weighted: bool = False


KINDS = {
    "nested": Kind(2, range(1, 6), 4, 40),
    "one length": Kind(12, range(3, 4), 2**40, 200),
    "wide": Kind(200, range(2, 3), 2**20, 300),
    "weighted": Kind(30, range(1, 4), 2**63, 120, weighted=True),
}
END = 250
SIZE = 256


def weight(begin: Tokens) -> float:
    """Of the last token of a beginning."""
    return sum(begin) % 9 / 4


class Run:
    """One catalogue under way: a tree, the set that it must equal, and trees of earlier moments with theirs."""

    def __init__(self, kind: Kind, seed: int, file: Path) -> None:
        self.kind, self.random, self.file = kind, random.Random(seed), file
        rows = [self.item() for _ in range(kind.items)]
        self.set = set(rows)
        self.end = self.random.choice([None, END])
        tokens = [tokens for tokens, _ in rows]
        self.tree = lt.Catalogue.from_codes(tokens, items=[n for _, n in rows], weights=self.weights(tokens))
        assert self.tree.repeated == len(rows) - len(self.set)
        self.kept: list[tuple[lt.catalogue.ItemWalk, set[tuple[Tokens, int]]]] = []
        self.largest = max(number for _, number in rows)

    def token(self) -> int:
        return self.random.randrange(self.kind.tokens)

    def item(self) -> tuple[Tokens, int]:
        tokens = tuple(self.token() for _ in range(self.random.choice(self.kind.lengths)))
        return tokens, self.random.randrange(self.kind.numbers)

    def near(self) -> tuple[Tokens, int]:
        """An item that is there, or nearly, or any."""
        tokens, number = self.item()
        if not self.set or self.random.random() < 0.3:
            return tokens, number
        known = self.random.choice(tuple(self.set))
        return known if self.random.random() < 0.6 else (known[0], number)

    def weights(self, rows: list[Tokens]) -> list[list[float]] | None:
        return [[weight(r[: n + 1]) for n in range(len(r))] for r in rows] if self.kind.weighted else None

    def view(self) -> tuple[lt.catalogue.ItemWalk, set[tuple[Tokens, int]]]:
        """The tree as it is now, or as it was, with what it must be."""
        if self.kept and self.random.random() < 0.3:
            return self.random.choice(self.kept)
        return self.tree.walk(end=self.end, vocabulary=SIZE), self.set

    def place(self, items: set[tuple[Tokens, int]]) -> Tokens:
        """Where an item goes by."""
        tokens = self.random.choice(tuple(items))[0] if items else ()
        return tokens[: self.random.randrange(len(tokens) + 1)]

    # -- changes

    def add(self) -> None:
        rows = [self.near() for _ in range(self.random.choice([1, 1, 1, 12]))]
        tokens = [row for row, _ in rows]
        if self.random.random() < 0.2 and self.largest < 2**62:
            # Without numbers they count up from the largest number ever used.
            rows = [(row, self.largest + 1 + n) for n, row in enumerate(tokens)]
            added = self.tree.add(tokens, weights=self.weights(tokens))
        else:
            added = self.tree.add(tokens, items=[n for _, n in rows], weights=self.weights(tokens))
        self.largest = max(self.largest, *(n for _, n in rows))
        assert added == len(set(rows) - self.set)
        self.set |= set(rows)

    def remove(self) -> None:
        rows = [self.near() for _ in range(self.random.choice([1, 1, 8]))]
        tokens, numbers = [row for row, _ in rows], [n for _, n in rows]
        kind = self.random.randrange(5)
        if kind < 2:
            gone = {item for item in self.set if item[0] in tokens}
            assert self.tree.remove(tokens) == len(gone)
        elif kind < 4:
            gone = self.set & set(rows)
            assert self.tree.remove(tokens, items=numbers) == len(gone)
        else:
            gone = {item for item in self.set if item[1] in numbers}
            assert self.tree.remove(items=np.array(numbers, np.uint64)) == len(gone)
        self.set -= gone

    def merge(self) -> None:
        if self.random.random() < 0.5:
            self.tree.merge()
        else:
            self.tree.merge(self.file)
            if self.random.random() < 0.5:
                self.tree = lt.Catalogue.open(self.file)
                self.largest = max((n for _, n in self.set), default=-1)
                self.tree.check()
        assert self.tree.info["rows"] == len(self.set)
        assert self.tree.info["added_nodes"] == 0

    def keep(self) -> None:
        divisor = self.random.choice([1, 1, 2, 3])
        allowed = None if divisor == 1 else [n for _, n in self.set if n % divisor == 0]
        paths = self.tree.walk(end=self.end, vocabulary=SIZE, allowed=allowed)
        self.kept = [*self.kept[-3:], (paths, {item for item in self.set if item[1] % divisor == 0})]
        assert len(paths) == len(self.kept[-1][1])

    # -- questions

    def ask_items(self) -> None:
        tokens = self.near()[0]
        numbers = sorted(n for row, n in self.set if row == tokens)
        assert self.tree.items(tokens).tolist() == numbers
        assert (tokens in self.tree) == bool(numbers)
        paths, items = self.view()
        state = paths.find(tokens)
        assert (state is not None) == any(row[: len(tokens)] == tokens for row, _ in items)
        if state is not None:
            assert paths.items(state).tolist() == sorted(n for row, n in items if row == tokens)

    def allowed(self, items: set[tuple[Tokens, int]], begin: Tokens) -> list[int]:
        n = len(begin)
        follow = {row[n] for row, _ in items if len(row) > n and row[:n] == begin}
        ends = self.end is not None and (not follow or any(row == begin for row, _ in items))
        return sorted(follow | {END} if ends else follow)

    def ask_allowed(self) -> None:
        paths, items = self.view()
        begin = self.place(items)
        state = paths.find(begin)
        assert state is not None
        allowed = self.allowed(items, begin)
        assert paths.allowed(state).tolist() == allowed
        bits = np.unpackbits(paths.mask([state]).view(np.uint8), bitorder="little")
        assert np.flatnonzero(bits).tolist() == allowed
        assert paths.is_item([state]).tolist() == [any(row == begin for row, _ in items)]

    def ask_advance(self) -> None:
        paths, items = self.view()
        begins = [self.place(items) for _ in range(4)]
        tokens = [self.random.choice([self.token(), self.token(), END]) for _ in begins]
        after = paths.advance([paths.find(begin) for begin in begins], tokens).tolist()
        for begin, token, state in zip(begins, tokens, after, strict=True):
            found = paths.find((*begin, token))
            if found is None:
                found = -1 if token == self.end else -2
            assert state == found, (begin, token)

    def ask_top(self) -> None:
        paths, items = self.view()
        begins = [self.place(items) for _ in range(self.random.randrange(1, 4))]
        states = [paths.find(begin) for begin in begins]
        logits = np.random.default_rng(self.random.randrange(2**32)).integers(-6, 7, (len(begins), SIZE)) / 2
        logits = np.where(logits == -3, -np.inf, logits).astype(np.float32)
        scores = [self.random.randrange(4) / 2 for _ in begins]
        owners = sorted(self.random.randrange(2) for _ in begins)
        width = self.random.choice([1, 3, 20, 2**40])
        every = []
        for row, begin in enumerate(begins):
            for token in self.allowed(items, begin):
                follows = token != END and self.kind.weighted
                score = scores[row] + float(logits[row, token]) + (weight((*begin, token)) if follows else 0.0)
                if score > -np.inf:
                    every.append((owners[row], -score, row, token))
        best: list[Any] = []
        for owner in sorted(set(owners)):
            best += sorted(way for way in every if way[0] == owner)[:width]
        found = paths.top(states, logits, scores, width, groups=owners)
        assert found.tokens.tolist() == [token for *_, token in best]
        assert found.rows.tolist() == [row for _, _, row, _ in best]
        assert found.scores.tolist() == [-score for _, score, _, _ in best]


@pytest.mark.parametrize("name", KINDS)
def test_operations_are_those_of_a_set(name: str, tmp_path: Path) -> None:
    done: Counter[str] = Counter()
    for seed in range(-(-OPERATIONS // (len(KINDS) * ON_ONE))):
        run = Run(KINDS[name], seed, tmp_path / "index")
        operations: list[Callable[[], None]] = [run.add, run.remove, run.merge, run.keep]
        operations += [run.ask_items, run.ask_allowed, run.ask_advance, run.ask_top]
        for chosen in run.random.choices(operations, [12, 8, 1, 2, 25, 20, 20, 20], k=ON_ONE):
            chosen()
            assert len(run.tree) == len(run.set), chosen
            done[chosen.__name__] += 1
    print(f"{sum(done.values())} operations: {dict(done)}")
    assert sum(done.values()) >= OPERATIONS // len(KINDS)
    assert len(done) == len(operations)
