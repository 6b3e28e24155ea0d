"""The samplers that llama.cpp has: how each is built there and here, and arguments worth trying. One entry each.

It knows no candidates' logits and compares nothing.
"""

from __future__ import annotations

import ctypes
import functools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import llama_cpp
import numpy as np
import numpy.typing as npt

import logitree as lt
import parity_vocabulary
from parity_llama import FLOAT, INT, POINTER, SIZE, UINT, clone, init

Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class World:
    """What a chain is built for: the size of the vocabulary, and the candidates' ids, ascending."""

    size: int
    ids: npt.NDArray[np.int32]
    has_text: bool = False
    """Whether the ids are those of :mod:`parity_vocabulary`."""


@dataclass(frozen=True)
class Kind:
    """One sampler: its name here, arguments drawn for a world, and llama.cpp's sampler for them (an address)."""

    name: str
    draw: Callable[[random.Random, World], Arguments]
    theirs: Callable[[Arguments, World], int]
    make: Callable[..., lt.samplers.Sampler] | None = None
    """Our constructor, where it is not simply named as the sampler."""
    selects: bool = False
    """Whether it selects a candidate; nothing may follow it."""
    clones: bool = True
    """Whether llama.cpp's clone of it continues with the same state."""
    softmax: bool = True
    """Whether it computes probabilities, hence NaN where llama.cpp holds -inf to be the best logit."""
    needs_text: bool = False
    """Whether it asks what tokens stand for, so that it needs the vocabulary of :mod:`parity_vocabulary`."""
    most: int = 2**20
    """The most candidates for which llama.cpp takes no seconds."""

    def ours(self, arguments: Arguments) -> lt.samplers.Sampler:
        """Our sampler for the same arguments."""
        make = self.make or getattr(lt.samplers, self.name)
        sampler: lt.samplers.Sampler = make(*arguments)
        return sampler


def seed(pick: random.Random) -> int:
    """A seed; 2**32 - 1 is left out, for it means a random one in llama.cpp."""
    return pick.choice((0, 1, 2**32 - 2, pick.randrange(2**32 - 1)))


def min_keep(pick: random.Random, world: World) -> int:
    """How many to keep at least: mostly 0, also more than there are."""
    n = len(world.ids)
    return pick.choice((0, 0, 0, 0, 1, 2, 5, n // 2, n, n + 3))


def some_id(pick: random.Random, world: World) -> int:
    """Mostly the id of a candidate."""
    if pick.random() < 0.2:
        return pick.randrange(world.size)
    return int(world.ids[pick.randrange(len(world.ids))])


# -- drawing arguments


def biases(pick: random.Random, world: World) -> Arguments:
    of = (pick.uniform(-5, 5), pick.uniform(-50, 50), 0.0, -1.0, 1.0)
    found = {some_id(pick, world): pick.choice(of) for _ in range(pick.randrange(1, 7))}
    if pick.random() < 0.1:
        found[next(iter(found))] = float("-inf")
    return (found,)


def penalties(pick: random.Random, world: World) -> Arguments:
    repeat = pick.choice((1.0, 1.1, 1.3, 0.8, 2.0, 50.0))
    freq, present = (pick.choice((0.0, 0.3, 5.0, -0.5, pick.uniform(-2, 2))) for _ in range(2))
    return (pick.choice((-1, 0, 1, 3, 8, 64, 300)), repeat, freq, present)


def top_k(pick: random.Random, world: World) -> Arguments:
    n = len(world.ids)
    return (pick.choice((-1, 0, 1, 2, 5, 40, 127, 128, 129, 300, n // 2, n - 1, n, n + 7)),)


def top_p(pick: random.Random, world: World) -> Arguments:
    p = pick.choice((-0.5, 0.0, 0.1, 0.5, 0.9, 0.95, 0.999, 0.999999, 1.0, pick.random()))
    return (p, min_keep(pick, world))


def min_p(pick: random.Random, world: World) -> Arguments:
    p = pick.choice((-1.0, 0.0, 1e-30, 0.01, 0.05, 0.3, 0.9, 1.0, 1.5, pick.random()))
    return (p, min_keep(pick, world))


def typ_p(pick: random.Random, world: World) -> Arguments:
    return (pick.choice((0.0, 0.1, 0.5, 0.9, 0.95, 0.999, 1.0, pick.random())), min_keep(pick, world))


def top_n_sigma(pick: random.Random, world: World) -> Arguments:
    return (pick.choice((-1.0, 0.0, 0.01, 0.5, 1.0, 2.0, 3.0, pick.uniform(0, 4))),)


def temp(pick: random.Random, world: World) -> Arguments:
    return (pick.choice((-1.0, 0.0, 1e-3, 0.1, 0.7, 0.8, 1.0, 1.7, 40.0, pick.uniform(0.1, 3))),)


def temp_ext(pick: random.Random, world: World) -> Arguments:
    delta, exponent = pick.choice((-1.0, 0.0, 0.3, 0.5, 2.0)), pick.choice((0.0, 0.5, 1.0, 1.0, pick.uniform(0, 3)))
    return (pick.choice((-1.0, 0.0, 0.5, 0.8, 1.0, pick.uniform(0, 3))), delta, exponent)


def xtc(pick: random.Random, world: World) -> Arguments:
    t = pick.choice((0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 0.6, pick.uniform(0, 0.5)))
    return (pick.choice((0.0, 0.5, 1.0, 1.0, pick.random())), t, min_keep(pick, world), seed(pick))


def mirostat(pick: random.Random, world: World) -> Arguments:
    m = pick.choice((100, 100, 1, 2, 10, len(world.ids) + 1))
    return (world.size, *surprise(pick), m, seed(pick))


def mirostat_v2(pick: random.Random, world: World) -> Arguments:
    return (*surprise(pick), seed(pick))


def surprise(pick: random.Random) -> tuple[float, float]:
    """tau and eta."""
    return pick.choice((0.0, 0.5, 3.0, 5.0, 5.0, 12.0)), pick.choice((0.0, 0.1, 0.1, 0.5, 2.0))


def adaptive_p(pick: random.Random, world: World) -> Arguments:
    target = pick.choice((-1.0, 0.0, 0.1, 0.5, 0.9, 1.0, 2.0, pick.random()))
    return (target, pick.choice((0.0, 0.5, 0.9, 0.99, 1.5, pick.random())), seed(pick))


BREAKERS = ((), ("\n", ":", '"', "*"), (" the", "Hello world", "a"), ("\n\n- x", "ions of the", "0"))
"""Some breakers of one byte, some that tokens overlap, some that are many tokens."""


def dry_arguments(pick: random.Random) -> Arguments:
    """Multiplier, base, allowed length, last_n, and which of :data:`BREAKERS`."""
    multiplier = pick.choice((0.0, 0.8, 0.8, 1.0, -0.5, 5.0, 2.0))
    base = pick.choice((0.5, 1.0, 1.0000005, 1.1, 1.75, 1.75, 20.0))
    return (multiplier, base, pick.choice((-1, 0, 1, 2, 2, 4)), pick.choice((-1, 3, 16, 64, 64, 64, 500)))


DRIES = tuple((*dry_arguments(random.Random(at)), at % len(BREAKERS)) for at in range(48))
"""The arguments of dry that are tried: few, since every set of breakers is looked for in the whole vocabulary."""


def dry(pick: random.Random, world: World) -> Arguments:
    return pick.choice(DRIES)


# -- our constructors that want more than the arguments


@functools.cache
def our_dry(multiplier: float, base: float, allowed: int, last_n: int, breakers: int) -> lt.samplers.Sampler:
    return lt.samplers.dry(multiplier, base, allowed, last_n, our_breakers(breakers))


@functools.cache
def our_breakers(at: int) -> list[list[int]]:
    return lt.samplers.dry_breakers(parity_vocabulary.ours(), BREAKERS[at], parity_vocabulary.tokenize)


@functools.cache
def our_infill() -> lt.samplers.Sampler:
    return lt.samplers.infill(parity_vocabulary.ours())


# -- llama.cpp's constructors


def plain(name: str, *types: Any) -> Callable[[Arguments, World], int]:
    """The constructor that takes the arguments as they are."""

    def build(arguments: Arguments, world: World) -> int:
        pointer: int = init(name, *types)(*arguments)
        return pointer

    return build


def sized(name: str, *types: Any) -> Callable[[Arguments, World], int]:
    """The constructor that takes the size of the vocabulary before the arguments."""
    with_size = plain(name, INT, *types)
    return lambda arguments, world: with_size((world.size, *arguments), world)


def their_logit_bias(arguments: Arguments, world: World) -> int:
    pairs = list(arguments[0].items())
    array = (llama_cpp.llama_logit_bias * len(pairs))(*pairs)
    pointer: int = init("logit_bias", INT, INT, POINTER)(world.size, len(pairs), ctypes.addressof(array))
    return pointer


def their_mirostat(arguments: Arguments, world: World) -> int:
    n_vocab, tau, eta, m, seed = arguments
    pointer: int = init("mirostat", INT, UINT, FLOAT, FLOAT, INT)(n_vocab, seed, tau, eta, m)
    return pointer


def their_mirostat_v2(arguments: Arguments, world: World) -> int:
    tau, eta, seed = arguments
    pointer: int = init("mirostat_v2", UINT, FLOAT, FLOAT)(seed, tau, eta)
    return pointer


@functools.cache
def dry_template(arguments: Arguments) -> int:
    """llama.cpp's dry that has looked its breakers up, to be cloned."""
    *numbers, at = arguments
    texts = (ctypes.c_char_p * len(BREAKERS[at]))(*(text.encode() for text in BREAKERS[at]))
    build = init("dry", POINTER, FLOAT, FLOAT, INT, INT, POINTER, SIZE)
    pointer: int = build(parity_vocabulary.theirs(), *numbers, ctypes.addressof(texts), len(texts))
    return pointer


def their_dry(arguments: Arguments, world: World) -> int:
    pointer: int = clone(dry_template(arguments))
    return pointer


def their_infill(arguments: Arguments, world: World) -> int:
    pointer: int = init("infill", POINTER)(parity_vocabulary.theirs())
    return pointer


KINDS = (
    Kind("logit_bias", biases, their_logit_bias, softmax=False),
    Kind("penalties", penalties, sized("penalties", INT, FLOAT, FLOAT, FLOAT), softmax=False),
    Kind("dry", dry, their_dry, our_dry, softmax=False, needs_text=True),
    Kind("top_n_sigma", top_n_sigma, plain("top_n_sigma", FLOAT), softmax=False),
    Kind("top_k", top_k, plain("top_k", INT), softmax=False),
    Kind("typ_p", typ_p, plain("typical", FLOAT, SIZE)),
    Kind("top_p", top_p, plain("top_p", FLOAT, SIZE)),
    Kind("min_p", min_p, plain("min_p", FLOAT, SIZE), softmax=False),
    Kind("xtc", xtc, plain("xtc", FLOAT, FLOAT, SIZE, UINT)),
    Kind("temp", temp, plain("temp", FLOAT), softmax=False),
    Kind("temp_ext", temp_ext, plain("temp_ext", FLOAT, FLOAT, FLOAT)),
    Kind("infill", lambda pick, world: (), their_infill, our_infill, needs_text=True, most=120),
    Kind("greedy", lambda pick, world: (), plain("greedy"), selects=True, softmax=False),
    Kind("dist", lambda pick, world: (seed(pick),), plain("dist", UINT), selects=True),
    Kind("mirostat", mirostat, their_mirostat, selects=True),
    Kind("mirostat_v2", mirostat_v2, their_mirostat_v2, selects=True),
    # llama.cpp's clone of it restarts its generator; a fork of ours continues.
    Kind("adaptive_p", adaptive_p, plain("adaptive_p", FLOAT, FLOAT, UINT), selects=True, clones=False),
)
"""Every sampler of llama.cpp, in the order of its default chain, those that select last."""

BY_NAME = {kind.name: kind for kind in KINDS}
