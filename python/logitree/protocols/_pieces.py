"""Grammars put together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from .._core import Grammar

SPACE = Grammar.regex("[ \n]{0,2}")
"""White space between two parts."""


def joined(*parts: Grammar | None) -> Grammar:
    """The parts that are not None, one after the other."""
    made: Grammar | None = None
    for part in parts:
        if part is not None:
            made = part if made is None else made + part
    return Grammar.literal("") if made is None else made


def structure(format: Mapping[str, Any]) -> Grammar:
    """A part of a structural tag."""
    return Grammar.structural_tag(dict(format))


@lru_cache(64)
def any_text(excludes: tuple[str, ...], max_tokens: int | None = None) -> Grammar:
    """Any text that contains none of these. Every argument of every tool shares it."""
    return structure({"type": "any_text", "excludes": list(excludes), **limit(max_tokens)})


def limit(max_tokens: int | None) -> dict[str, int]:
    """What limits a part of a structural tag."""
    return {} if max_tokens is None else {"max_tokens": max_tokens}
