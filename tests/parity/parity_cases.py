"""The cases: chains with their candidates, logits, histories, and what befalls them between steps.

A case is made from a seed and its number alone, so that one that failed can be run again by itself. The numbers go
round: every sampler alone, every ordered pair, the default chain, random chains of 1 to 6 samplers. Nothing here
applies a sampler.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import parity_vocabulary
from parity_samplers import BY_NAME, KINDS, Arguments, Kind, World

Logits = npt.NDArray[np.float32]

EVENTS = ("clone", "reset", "snapshot", "rollback")
LARGE = 397
"""Every so many cases there is one of 32,000 to 262,144 candidates."""

SHAPERS = tuple(kind for kind in KINDS if not kind.selects)
SELECTING = tuple(kind for kind in KINDS if kind.selects)
PAIRS = tuple((first, second) for first in SHAPERS for second in KINDS)
"""All ordered pairs: nothing may follow a sampler that selects."""

DEFAULT = tuple(
    (BY_NAME[name], arguments)
    for name, arguments in (
        ("penalties", (64, 1.1, 0.1, 0.1)),
        ("dry", (0.0, 1.75, 2, 64, 0)),
        ("top_n_sigma", (-1.0,)),
        ("top_k", (40,)),
        ("typ_p", (1.0, 0)),
        ("top_p", (0.95, 0)),
        ("min_p", (0.05, 0)),
        ("xtc", (0.0, 0.1, 0, 1)),
        ("temp_ext", (0.8, 0.0, 1.0)),
    )
)
"""llama.cpp's default chain with its default numbers (and penalties that do something), before ``dist``."""


@dataclass(frozen=True)
class Case:
    """One chain and all its steps."""

    number: int
    spec: tuple[tuple[Kind, Arguments], ...]
    world: World
    as_words: bool
    """Whether the candidates are given as mask words rather than as ids."""
    history: tuple[int, ...]
    """Tokens accepted before the first step."""
    rows: Logits
    """The candidates' logits, step by step: [steps, candidates]."""
    events: tuple[str, ...]
    """What befalls the chain before each step: one of :data:`EVENTS`, or nothing."""
    others: tuple[int, ...]
    """A token for each step, accepted where none is selected, or instead of it; -1: the selected one."""
    back: tuple[int, ...]
    """How many tokens a rollback before this step takes back, at most."""

    @property
    def selects(self) -> bool:
        return bool(self.spec) and self.spec[-1][0].selects

    def __str__(self) -> str:
        chain = " -> ".join(f"{kind.name}{arguments}" for kind, arguments in self.spec)
        return f"case {self.number}: {len(self.world.ids)} of {self.world.size} candidates, {chain}"


def make(seed: int, number: int) -> Case:
    """The case of this number."""
    pick = random.Random(seed << 40 | number)
    rng = np.random.default_rng((seed, number))
    kinds = kinds_of(number, pick)
    world = world_of(pick, rng, candidates(number, pick), kinds)
    n = len(world.ids)
    steps = pick.randrange(6, 13) if n <= 1024 else 3 if n < 30_000 else 2
    pool = [int(world.ids[pick.randrange(n)]) for _ in range(pick.randrange(1, 6))]
    if world.has_text:
        pool.append(pick.choice(parity_vocabulary.breaking()))
    share = pick.choice((0.0, 0.1, 0.9))
    return Case(
        number=number,
        spec=spec_of(number, kinds, pick, world),
        world=world,
        as_words=pick.random() < 0.3,
        history=tuple(pick.choice(pool) for _ in range(pick.choice((0, 0, 3, 10, 80)))),
        rows=bend(pick, world, logits(pick, rng, steps, n)),
        events=tuple(pick.choice(EVENTS) if step and pick.random() < 0.12 else "" for step in range(steps)),
        others=tuple(pick.choice(pool) if pick.random() < share else -1 for _ in range(steps)),
        back=tuple(pick.randrange(1, 4) for _ in range(steps)),
    )


def kinds_of(number: int, pick: random.Random) -> Sequence[Kind]:
    """The samplers of a case; empty for the default chain."""
    slot, turn = number % 8, number // 8
    if slot == 0:
        return (KINDS[turn % len(KINDS)],)
    if slot <= 3:
        return PAIRS[(3 * turn + slot - 1) % len(PAIRS)]
    if slot == 4:
        return ()
    shapers = [pick.choice(SHAPERS) for _ in range(pick.randrange(1, 7))]
    return (*shapers[:-1], pick.choice((shapers[-1], *SELECTING)))


def spec_of(
    number: int, kinds: Sequence[Kind], pick: random.Random, world: World
) -> tuple[tuple[Kind, Arguments], ...]:
    """The samplers with their arguments."""
    if kinds:
        return tuple((kind, kind.draw(pick, world)) for kind in kinds)
    own = pick.random() < 0.5
    shapers = tuple(
        (kind, kind.draw(pick, world) if own and pick.random() < 0.5 else arguments) for kind, arguments in DEFAULT
    )
    dist = BY_NAME["dist"]
    return (*shapers, (dist, dist.draw(pick, world)))


def candidates(number: int, pick: random.Random) -> int:
    """How many: mostly few, some past the sizes at which llama.cpp changes its way (128, 1024), seldom very many."""
    if number % LARGE == 0:
        return pick.choice((32_000, 49_152, 50_257, 128_256, 151_936, 262_144))
    x = pick.random()
    for share, low, high in ((0.02, 1, 1), (0.2, 2, 8), (0.5, 9, 64), (0.1, 65, 128), (0.13, 129, 400)):
        if x < share:
            return pick.randint(low, high)
        x -= share
    return pick.randint(401, 1024) if x < 0.01 else pick.randint(1025, 5000)


def world_of(pick: random.Random, rng: np.random.Generator, n: int, kinds: Sequence[Kind]) -> World:
    """A vocabulary with about ``n`` candidates: all of it, or some."""
    if any(kind.needs_text for kind in kinds):
        n = min(n, *(kind.most for kind in kinds))
        size = len(parity_vocabulary.ours())
        if n > 30_000:
            return World(size, np.arange(size, dtype=np.int32), has_text=True)
        return World(size, parity_vocabulary.candidates(pick, n), has_text=True)
    if n >= 4 and pick.random() < 0.65:
        return World(n, np.arange(n, dtype=np.int32))
    size = max(4, n + pick.randrange(1, 3 * n + 1))
    return World(size, np.sort(rng.permutation(size)[:n]).astype(np.int32))


def bend(pick: random.Random, world: World, rows: Logits) -> Logits:
    """Makes the ends of generation unlikely, mostly: infill keeps nothing else where they are not."""
    if world.has_text and pick.random() < 0.7:
        rows[:, np.isin(world.ids, parity_vocabulary.ours().end_tokens)] -= np.float32(pick.uniform(3, 20))
    return rows


def logits(pick: random.Random, rng: np.random.Generator, steps: int, n: int) -> Logits:
    """Logits of many shapes, at least one in each row finite."""
    x = rng.standard_normal((steps, n), np.float32) * np.float32(pick.choice((0.1, 1, 3, 3, 8)))
    shape = pick.randrange(16)
    if shape < 3:
        x[:, rng.integers(0, n, max(1, n // 50))] += 12
    elif shape < 6:
        # Many ties.
        x = np.round(x * np.float32(pick.choice((0.25, 1, 4))))
    elif shape == 6:
        values = rng.standard_normal(pick.randrange(1, 4), np.float32)
        x = values[rng.integers(0, len(values), x.shape)]
    elif shape == 7:
        # The edges of llama.cpp's buckets.
        x = np.round(x * np.float32(6.4)) / np.float32(6.4)
    elif shape == 8:
        # Past the range of an int, where the conversion to a bucket gives the lowest.
        x *= np.float32(10.0 ** pick.uniform(4, 34))
    elif shape == 9:
        x *= np.float32(pick.choice((1e-20, 1e-38, 1e-44)))
    elif shape == 10:
        x = np.sort(x, axis=1)
        if pick.random() < 0.5:
            x = x[:, ::-1]
    elif shape == 11:
        x = np.round(x) * np.float32(0)
    if pick.random() < 0.1:
        kept = x[:, (at := pick.randrange(n))].copy()
        x[rng.random(x.shape) < pick.choice((0.1, 0.5, 0.97))] = -np.inf
        x[:, at] = kept
    return np.ascontiguousarray(x)
