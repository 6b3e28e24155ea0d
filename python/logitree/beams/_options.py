"""The options of a beam search, checked before anything runs."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .. import _core
from .._errors import error

Width = int | Sequence[int] | Callable[[int], int]
"""How many beams: one number, one for each step (the last is repeated), or a function of the step, from 0."""

Normalize = Literal["vocabulary", "allowed", "none"]
"""What a token's score is: its log-probability among all tokens, among the allowed ones, or its logit."""

MAX_PENALTY = 16.0
"""Powers of lengths beyond this one overflow."""


@dataclass(frozen=True)
class Options:
    """The checked options of one search."""

    width: Width
    returned: int
    max_tokens: int | None
    length_penalty: float
    normalize: Normalize
    groups: int
    diversity: float
    temperature: float
    seed: int | None
    """The seed of the samples; None: no sampling."""
    unfinished: bool = False
    """Whether beams that are cut off are returned too."""

    def width_at(self, step: int) -> int:
        """How many beams each group has after this step, from 0."""
        if callable(self.width):
            width = self.width(step)
        elif isinstance(self.width, Sequence):
            width = self.width[min(step, len(self.width) - 1)]
        else:
            width = self.width
        _whole("width", width, 1, f"step {step}")
        if width % self.groups:
            raise error(
                _core.SamplingError,
                f"{width} beams cannot be {self.groups} equal groups",
                place=f"step {step}",
                help="make width a multiple of groups",
            )
        if self.seed is not None and width < self.returned:
            raise error(
                _core.SamplingError,
                f"{width} beams cannot draw {self.returned} items",
                place=f"step {step}",
                help="make width at least `returned`",
            )
        return int(width) // self.groups

    @property
    def most_rows(self) -> int | None:
        """The most beams of one prompt, all groups together; None where it is unknown until it runs."""
        if not callable(self.width):
            steps = len(self.width) if isinstance(self.width, Sequence) else 1
        elif self.max_tokens is None:
            return None
        else:
            steps = self.max_tokens
        return max((self.width_at(step) for step in range(steps)), default=1) * self.groups


def checked(
    width: Width,
    returned: int | None,
    max_tokens: int | None,
    length_penalty: float,
    normalize: Normalize,
    groups: int,
    diversity: float,
    temperature: float,
    sample: bool,
    seed: int | None,
    unfinished: bool = False,
) -> Options:
    """The options, or a SamplingError for those that mean nothing."""
    if isinstance(width, Sequence) and not len(width):
        raise error(_core.SamplingError, f"width is {width!r}", help="give a number, a list of numbers or a function")
    if returned is None:
        if callable(width):
            raise error(_core.SamplingError, "width is a function and `returned` is not given", help="give `returned`")
        returned = width[-1] if isinstance(width, Sequence) else width
    else:
        _whole("returned", returned, 1)
    _whole("groups", groups, 1)
    if max_tokens is not None:
        _whole("max_tokens", max_tokens, 1)
    for name, value in (("length_penalty", length_penalty), ("diversity", diversity), ("temperature", temperature)):
        if not _finite(value):
            raise error(_core.SamplingError, f"{name} is {value!r}", help="give a finite number")
    if abs(length_penalty) > MAX_PENALTY:
        raise error(
            _core.SamplingError,
            f"length_penalty is {length_penalty}",
            help=f"use -{MAX_PENALTY:g} to {MAX_PENALTY:g}",
        )
    if temperature <= 0.0 or diversity < 0.0:
        what = f"temperature is {temperature}" if temperature <= 0.0 else f"diversity is {diversity}"
        raise error(_core.SamplingError, what, help="use more than 0" if temperature <= 0.0 else "use 0 or more")
    if normalize not in ("vocabulary", "allowed", "none"):
        raise error(_core.SamplingError, f"normalize is {normalize!r}", help="use vocabulary, allowed or none")
    if (groups > 1) != (diversity > 0.0):
        raise error(
            _core.SamplingError,
            f"{groups} groups with a diversity of {diversity}",
            help="groups differ by their diversity alone: give both or neither",
        )
    if sample and groups > 1:
        raise error(_core.SamplingError, "sampling in groups", help="samples differ anyway: leave out the groups")
    if seed is not None:
        if not sample:
            raise error(_core.SamplingError, "a seed without sampling", help="add sample=True, or leave out the seed")
        _whole("seed", seed, -1)
    options = Options(
        width,
        returned,
        max_tokens,
        float(length_penalty),
        normalize,
        groups,
        float(diversity),
        float(temperature),
        (secrets.randbelow(2**32) if seed in (None, -1) else seed) if sample else None,
        unfinished,
    )
    if not callable(width):
        _ = options.most_rows
    return options


def _finite(value: object) -> bool:
    """Whether it is a finite number."""
    return isinstance(value, float | int | np.floating) and not isinstance(value, bool) and math.isfinite(value)


def _whole(name: str, value: object, least: int, place: str = "") -> None:
    """A SamplingError unless it is a whole number of at least that."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise error(_core.SamplingError, f"{name} is {value!r}", place=place, help=f"use {least} or more")
