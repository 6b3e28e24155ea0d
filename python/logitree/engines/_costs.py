"""What passes of an engine cost, learned from those that it made: whether proposing tokens pays."""

from __future__ import annotations

import math
from collections.abc import Sequence

_STEP = 0.05
"""How much a new time counts that is more than expected: noise only adds. A lesser time counts whole."""

_OUTLIER = 3.0
"""A time that is longer than so many times the expected one counts as that: the process was not running."""

_LEAST = 0.1
"""What a proposal must save at least, as a share of the time without it: making it takes time too."""

_LONG = 8
"""Tokens of a pass that measures what a token more costs."""

_TRIED = (4, 8, 16)
"""Lengths that are timed once with tokens of a prompt: those that kernels often take at once."""

_FORGET = 0.01
"""How far a time that kept a proposal back moves towards the line: what is not measured again may have changed."""


class PassCosts:
    """Times of passes: of one token, of further tokens on average, and of those with several logits by their length.

    On a GPU a token more costs next to nothing. On a CPU it may cost most of a pass, and logits at a second position as
    much again; kernels that take four, eight or sixteen tokens at once make a pass of eight cheaper than one of seven.
    """

    def __init__(self) -> None:
        self.first: float | None = None
        """Seconds of a pass of one token; None: not known yet."""
        self.further: float | None = None
        """Seconds of each further token; None: not known yet."""
        self.several: dict[int, float] = {}
        """Seconds of a pass with logits at more than one position, by its tokens."""

    def add(self, tokens: int, logits: int, seconds: float) -> None:
        """Learns from a pass over so many tokens, with logits at so many of them."""
        if logits > 1:
            line = self._line(tokens) if self.first is not None and self.further is not None else seconds
            known = self.several.get(tokens, min(seconds, _OUTLIER * line))
            self.several[tokens] = _towards(known, seconds)
        elif tokens == 1:
            self.first = _towards(self.first, seconds)
        elif tokens >= _LONG:
            first = self.first or 0.0
            self.further = _towards(self.further, (seconds - first) / (tokens - (self.first is not None)))

    def parts(self, tokens: int) -> list[int]:
        """The lengths of passes over tokens that are evaluated in any case: one pass, or several that tell what passes
        with logits at all of their tokens cost. The rest comes first: a model's first pass may read it from disk."""
        tried = [n for n in _TRIED if n not in self.several]
        rest = tokens - sum(tried)
        return [rest, *tried] if tried and rest >= _LONG else [tokens]

    def of(self, tokens: int) -> float:
        """Seconds of a pass over so many tokens with logits at all of them, as far as known.

        A length that was not measured is no dearer than any longer one, and counts as little as it may take, so that it
        is tried and known then: what the shorter one and further tokens without logits take, or the mean of its
        neighbours by their distance.
        """
        several = self.several
        longest = min((several[n] for n in several if n >= tokens), default=math.inf)
        if tokens in several:
            return longest
        shorter = max((n for n in several if n < tokens), default=1)
        below = several.get(shorter, self.first or 0.0)
        line = below + (self.further or 0.0) * (tokens - shorter)
        longer = min((n for n in several if n > tokens), default=None)
        if longer is None:
            return line
        between = below + (several[longer] - below) * (tokens - shorter) / (longer - shorter)
        return min(line, between, longest)

    def worth(self, rates: Sequence[float], before: int = 1) -> int:
        """How many of the first proposed tokens to evaluate.

        Args:
            rates: for each proposed token the probability that it comes, if those before it came.
            before: tokens that the pass evaluates in any case.

        Returns:
            The number with the most tokens expected in a second, 0 where the gain over none is next to nothing; all
            while costs are unknown.
        """
        if self.first is None or self.further is None:
            return len(rates)
        # Tokens that are evaluated in any case take their time without proposals too.
        base = self.first + self.further * (before - 1)
        best, most, expected, chance = 0, (1 + _LEAST) / base, 1.0, 1.0
        for n, rate in enumerate(rates, 1):
            chance *= rate
            expected += chance
            speed = expected / max(self.of(before + n), 1e-9)
            if speed > most:
                best, most = n, speed
        if not best:
            self._forget(before + len(rates))
        return best

    def _line(self, tokens: int) -> float:
        return (self.first or 0.0) + (self.further or 0.0) * (tokens - 1)

    def _forget(self, tokens: int) -> None:
        """Moves the times of passes up to this length towards the line, which they are above."""
        for n, seconds in self.several.items():
            if n <= tokens:
                self.several[n] = seconds + _FORGET * min(self._line(n) - seconds, 0.0)


def _towards(old: float | None, new: float) -> float:
    """A running mean."""
    new = max(new, 0.0)
    if old is None or new < old:
        return new
    return old + _STEP * (min(new, _OUTLIER * old + 1e-4) - old)
