"""JSON as models write it, with numbers that are read exactly or not at all."""

from __future__ import annotations

import json
from decimal import Decimal
from math import isfinite

MAX_DIGITS = 20_000
"""Digits of an integer; reading more takes longer than linear time."""


def _integer(digits: str) -> int:
    """An integer of any length; ValueError past the limit."""
    if len(digits) > MAX_DIGITS:
        raise ValueError("too many digits")
    return int(Decimal(digits)) if len(digits) > 4_000 else int(digits)


def _number(text: str) -> int | float:
    """A number; ValueError where a double cannot hold it. Integers with an exponent are integers."""
    value = float(text)
    if not isfinite(value):
        raise ValueError("a double cannot hold it")
    return int(value) if "." not in text and value.is_integer() and abs(value) < 2**53 else value


def _refused(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


DECODER = json.JSONDecoder(strict=False, parse_int=_integer, parse_float=_number, parse_constant=_refused)
"""Control characters in texts are let pass."""
