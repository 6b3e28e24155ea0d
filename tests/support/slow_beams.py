"""The slow obvious beam search, all items by brute force, and a model that is a hash: what `test_beams` compares with.

Python lists and sums only; the tree says what may follow, and the core's tests hold it to a set of items.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import logitree as lt
from logitree.beams import FINISHED
from logitree.engines import Engine, Session

Entry = tuple[float, float, tuple[int, ...]]
"""Rank, log-probability, tokens."""


class HashModel(Engine):
    """An engine whose logits are a hash of everything that was read. `edit(tokens, logits)` may change them."""

    def __init__(
        self,
        vocabulary: int | lt.Vocabulary,
        edit: Callable[[tuple[int, ...], np.ndarray], None] | None = None,
        rows: int | None = None,
    ) -> None:
        self.vocabulary = vocabulary  # type: ignore[assignment]
        self.size = vocabulary if isinstance(vocabulary, int) else len(vocabulary)
        self.edit = edit
        self.beam_rows = rows
        self.sessions: list[HashSession] = []
        self.known: dict[tuple[int, ...], np.ndarray] = {}

    def encode(self, prompt: Any, *, chat: bool | None = None) -> list[int]:
        return list(str(prompt).encode())

    def session(self) -> HashSession:
        return self.batch_session(1)

    def batch_session(self, rows: int | None, tokens: int | None = None, *, forks: bool = False) -> HashSession:
        self.sessions.append(HashSession(self, rows))
        return self.sessions[-1]

    def logits(self, tokens: tuple[int, ...]) -> np.ndarray:
        """float32 [V] after these tokens, the prompt's included."""
        if tokens not in self.known:
            generator = np.random.default_rng(zlib.crc32(repr(tokens).encode()))
            logits = (2.5 * generator.normal(size=self.size)).astype(np.float32)
            if self.edit is not None:
                self.edit(tokens, logits)
            self.known[tokens] = logits
        return self.known[tokens]


class HashSession(Session):
    """A session of `HashModel`: it holds what was read."""

    def __init__(self, model: HashModel, rows: int | None) -> None:
        self.model = model
        self.room = rows
        self.read: list[tuple[int, ...]] = []
        self.steps = 0
        self.closed = False

    def evaluate_rows(self, tokens: Sequence[Sequence[int]]) -> np.ndarray:
        assert not self.closed
        self.read = [(*held, *new) for held, new in zip(self.read or [()] * len(tokens), tokens, strict=True)]
        return np.stack([self.model.logits(read) for read in self.read])

    def reorder(self, parents: Any) -> None:
        self.steps += 1
        self.read = [self.read[parent] for parent in parents]
        assert self.room is None or len(self.read) <= self.room

    def close(self) -> None:
        self.closed = True


def walk_of(
    items: Iterable[Sequence[int]],
    vocabulary: int,
    end: int | None = None,
    ids: Sequence[int] | None = None,
    weights: Mapping[tuple[int, ...], float] | None = None,
) -> lt.catalogue.ItemWalk:
    """A catalogue's walk. `weights`: by the path that ends in the weighted token; 0 where there is none."""
    rows = [tuple(item) for item in items]
    given = [[weights.get(row[: n + 1], 0.0) for n in range(len(row))] for row in rows] if weights else None
    return lt.Catalogue.from_codes(rows, items=None if ids is None else np.array(ids, np.uint64), weights=given).walk(
        end_token=end, vocabulary=vocabulary
    )


def steps(
    model: HashModel,
    prompt: Sequence[int],
    paths: lt.catalogue.ItemWalk,
    path: tuple[int, ...],
    normalize: str,
    temperature: float,
) -> dict[int, tuple[float, int]]:
    """Token -> what it adds to the log-probability of a path, and the state after it."""
    state = paths.find(path)
    if state is None:
        return {}
    logits = [float(x) for x in model.logits((*prompt, *path)) / np.float32(temperature)]
    ways = paths.gather([state], np.zeros((1, model.size), np.float32))
    after = dict(zip(ways.tokens.tolist(), ways.states.tolist(), strict=True))
    allowed = {t: logits[t] + weight for t, weight in zip(after, ways.scores.tolist(), strict=True)}
    over = logits if normalize == "vocabulary" else list(allowed.values())
    peak = max(over, default=-math.inf)
    counted = normalize != "none" and peak > -math.inf
    total = peak + math.log(sum(math.exp(x - peak) for x in over)) if counted else 0.0
    return {t: (x - total, after[t]) for t, x in allowed.items() if x > -math.inf}


def brute(
    model: HashModel,
    prompt: Sequence[int],
    paths: lt.catalogue.ItemWalk,
    items: Sequence[Sequence[int]],
    normalize: str = "vocabulary",
    power: float = 0.0,
    temperature: float = 1.0,
) -> list[Entry]:
    """Every item with its log-probability, best first."""
    found = []
    for item in items:
        tokens = tuple(item) if paths.end is None else (*item, paths.end)
        total = 0.0
        for i, token in enumerate(tokens):
            total += steps(model, prompt, paths, tokens[:i], normalize, temperature).get(token, (-math.inf, 0))[0]
        if total > -math.inf:
            found.append((total / len(tokens) ** power, total, tokens))
    return sorted(found, key=lambda entry: -entry[0])


def naive(
    model: HashModel,
    prompt: Sequence[int],
    paths: lt.catalogue.ItemWalk,
    widths: Callable[[int], int],
    returned: int,
    normalize: str = "vocabulary",
    power: float = 0.0,
    most: int = 99,
    groups: int = 1,
    diversity: float = 0.0,
) -> list[Entry]:
    """Beam search as its definition says it, nothing left out early."""
    beams: list[list[tuple[float, tuple[int, ...], int]]] = [[(0.0, (), paths.start)] for _ in range(groups)]
    kept: list[list[Entry]] = [[] for _ in range(groups)]
    for step in range(most):
        taken: dict[int, int] = {}
        for group in range(groups):
            ways = []
            for row, (score, path, state) in enumerate(beams[group]):
                for token, (gain, after) in steps(model, prompt, paths, path, normalize, 1.0).items():
                    less = diversity * taken.get(token, 0)
                    ways.append((score + gain - less, row, token, score + gain, path, after, state))
            beams[group] = []
            before = set(kept[group])
            for rank, _, token, score, path, after, state in sorted(ways, key=lambda way: (-way[0], way[1], way[2])):
                if len(beams[group]) == widths(step) // groups:
                    break
                last = paths.is_item([state])[0] if after == FINISHED else after >= 0 and paths.is_item([after])[0]
                if (after == FINISHED or paths.end is None) and last:
                    kept[group].append((rank / (step + 1) ** power, score, (*path, token)))
                if after >= 0 and (paths.end is not None or paths.may_continue([after])[0]):
                    beams[group].append((score, (*path, token), after))
            kept[group] = sorted(kept[group], key=lambda entry: -entry[0])[: -(-returned // groups)]
            for path in {beam[1] for beam in beams[group]} | {entry[2] for entry in set(kept[group]) - before}:
                taken[path[-1]] = taken.get(path[-1], 0) + 1
    merged = {tokens: (score / len(tokens) ** power, score, tokens) for k in kept for _, score, tokens in k}
    return sorted(merged.values(), key=lambda entry: -entry[0])[:returned]


def step(session: Session, parents: Any, tokens: Any) -> np.ndarray:
    """The logits of new rows of old ones, a token more each."""
    session.reorder(parents)
    return np.asarray(session.evaluate_rows([[int(token)] for token in tokens]))
