"""Grammars put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from .._core import Grammar

SPACE = Grammar.regex("[ \n]{0,2}")
"""White space between two parts."""


def joined(*parts: Grammar | str | None) -> Grammar:
    """The parts that are not None, one after the other."""
    given = [part for part in parts if part is not None]
    if len(given) == 1 and isinstance(given[0], Grammar):
        return given[0]
    return Grammar._all(given or [""])


def either(parts: Sequence[Grammar]) -> Grammar:
    """Any of the parts."""
    return parts[0] if len(parts) == 1 else Grammar._any(parts)


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
