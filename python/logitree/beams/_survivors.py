"""The finished sequences that survive a search, and the bound that an unfinished one must beat."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ._walk import Floats


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One item that a beam search found."""

    tokens: tuple[int, ...]
    """What was generated, the end token included where there is one; with `heal=True` from the end of the prompt's
    kept tokens on."""
    items: tuple[int, ...] | tuple[str, ...]
    """Numbers or keys of the items that these tokens are."""
    score: float
    """`log_probability / len(tokens) ** length_penalty`: what hypotheses are compared by, the higher the better."""
    log_probability: float
    """The sum of `token_scores`: nats under the normalisation that was asked for, weights included."""
    token_scores: tuple[float, ...]
    """What each token added to `log_probability`."""
    perturbed: float | None = None
    """With sampling: the log-probability and its noise, by which items were drawn, descending; else None."""
    text: str | None = None
    """The item's text; None where the engine has no vocabulary."""
    value: Any = None
    """What it means: the text, the value of a `OneOf` or `Literal`, the enum's member, under another constraint what
    `Generation.value` would be; of a catalogue the item's number or key. A tuple where several items have these
    tokens."""
    complete: bool = True
    """Whether it is a whole item; False for a beam that `max_tokens` or `cancel` ended."""


class Ended(NamedTuple):
    """A finished sequence, with its link into the history of the search."""

    rank: float
    """What it is compared by, length penalty included."""
    score: float
    """Its log-probability."""
    step: int
    """The step in which it ended, from 0."""
    parent: int
    """The row that it continued."""
    token: int
    """Its last token."""
    gain: float
    """What that token added."""
    state: int
    """The state of its items."""


class Penalty(NamedTuple):
    """The length penalty, and its bound for an unfinished sequence."""

    power: float
    """score = log-probability / tokens ** power; 0 compares the log-probabilities."""
    longest: float
    """No sequence has more tokens; inf where that is not known."""
    falling: bool
    """Whether no token ever adds anything to a log-probability: only then is there a bound."""

    def rank(self, value: float, length: int) -> float:
        """What a finished sequence of that many tokens is compared by."""
        return value if self.power == 0.0 else value / math.pow(length, self.power)

    def bound(self, value: float, length: int) -> float:
        """The most that a sequence which has this value now can rank if it ends with `length` tokens or more.

        A negative number over a power of the length is monotone in the length, so the shortest and the longest end
        are all that is looked at.
        """
        if not self.falling:
            return math.inf
        value = min(value, 0.0)
        if self.power == 0.0:
            return value
        if self.power < 0.0:
            return value / math.pow(length, self.power)
        return value / math.pow(self.longest, self.power) if math.isfinite(self.longest) else 0.0


class Survivors:
    """The best `room` finished sequences; of equal ones the older are kept."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.best: list[Ended] = []

    @property
    def worst(self) -> float:
        """What a new one must beat; -inf while there is room."""
        return self.best[-1].rank if len(self.best) == self.room else -math.inf

    def offer(self, ended: Ended) -> bool:
        """Keeps it if it is good enough; returns whether it was."""
        if not ended.rank > self.worst and len(self.best) == self.room:
            return False
        bisect.insort_right(self.best, ended, key=lambda e: -e.rank)
        del self.best[self.room :]
        return True

    def worst_with(self, ranks: Floats) -> float:
        """What `worst` would be with these offered too."""
        together = np.concatenate([np.array([e.rank for e in self.best]), ranks])
        if together.size < self.room:
            return -math.inf
        return float(np.partition(together, together.size - self.room)[together.size - self.room])
