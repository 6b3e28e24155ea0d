"""Texts with blanks, as `{number}`, matched a character at a time, and how calls without a marker begin."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ._protocol import Calls

_SPACE = "[ \\t\\r\\n]*"
_STARTS = (
    ('"name"', ":", '"'),
    ('"type"', ":", '"function"', ","),
    ('"parameters"', ":", "{"),
    ('"arguments"', ":", "{"),
)


def _in_pieces(words: Sequence[str]) -> list[str]:
    """Words with white space between them as patterns of one character each."""
    made = [piece for word in words for piece in (*map(re.escape, word), _SPACE)]
    return made[:-1]


def _partly(pieces: Sequence[str]) -> str:
    """A pattern of the beginnings of what these patterns match."""
    *before, made = pieces
    for piece in reversed(before):
        made = rf"{piece}(?:\Z|{made})"
    return made


@dataclass(frozen=True)
class Bare:
    """How calls begin where no marker says so: an object, a list of objects, or a list of Python's calls."""

    first: str
    """The first character."""
    pattern: str
    """What begins like a call, as a regular expression of Python and of the core."""
    partly: str
    """What may still become that."""
    samples: tuple[str, ...]
    """Some of them, with the white space that is usual."""

    @cached_property
    def _begun(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    @cached_property
    def _may_be(self) -> re.Pattern[str]:
        return re.compile(self.partly)

    def is_begun(self, text: str) -> bool | None:
        """Whether a text begins like a call; None: more of the text decides."""
        if self._begun.match(text):
            return True
        return None if len(text) < MAX_BEGINNING and self._may_be.match(text) else False


MAX_BEGINNING = 128
"""Characters in which a call without a marker must show that it may be one."""

_SAMPLES = tuple(
    "{" + space + (": " if spaced else ":").join(("".join(start[:1]), "".join(start[2:])))
    for start in _STARTS
    for space in ("", " ", "\n", "\n  ", "\n    ")
    for spaced in (True, False)
)
_OBJECT = Bare(
    "{",
    r"\{" + _SPACE + "(?:" + "|".join("".join(_in_pieces(start)) for start in _STARTS) + ")",
    r"\{" + _SPACE + "(?:\\Z|" + "|".join(_partly(_in_pieces(start)) for start in _STARTS) + ")",
    _SAMPLES,
)
_OBJECTS = Bare(
    "[",
    r"\[" + _SPACE + _OBJECT.pattern,
    r"\[" + _SPACE + rf"(?:\Z|{_OBJECT.partly})",
    tuple("[" + sample for sample in _SAMPLES),
)
_PYTHON = Bare(
    "[",
    r"\[" + _SPACE + r"[\w.\-\/]+\(",
    r"\[" + _SPACE + r"(?:\Z|[\w.\-\/]+(?:\Z|\())",
    ("[f(", "[ f(", "[\nf("),
)


def bare(calls: Calls) -> Bare | None:
    """How calls of a form begin if they have no marker; None if they have one."""
    if not calls.unmarked:
        return None
    return _PYTHON if calls.keywords else _OBJECTS if calls.begin else _OBJECT


BLANKS = {"{number}": "[0-9]{1,6}", "{id}": "[A-Za-z0-9_-]{1,64}", "{id9}": "[A-Za-z0-9]{9}"}
"""What a blank may be, as a regular expression."""

_BLANK = re.compile("(" + "|".join(map(re.escape, BLANKS)) + ")")
_CLASSES = {blank: re.compile("[0-9]" if blank == "{number}" else "[A-Za-z0-9_-]") for blank in BLANKS}
"""What the parser takes for a character of a blank."""


def pieces(text: str) -> list[str]:
    """The text cut at its blanks, empty pieces left out."""
    return [piece for piece in _BLANK.split(text) if piece]


class Forms:
    """Several texts with blanks, white space aside."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._forms = [self._items(text) for text in texts]
        self.start = frozenset((number, 0) for number in range(len(texts)))
        """Where each text begins: its number, and how much of it was read."""

    @staticmethod
    def _items(text: str) -> list[str]:
        """Single characters, and blanks as their first character and any more."""
        made: list[str] = []
        for piece in pieces(text):
            made += [piece, piece + "*"] if piece in BLANKS else "".join(piece.split())
        return made

    def step(self, states: frozenset[tuple[int, int]], character: str) -> frozenset[tuple[int, int]]:
        """The states after a character that is no white space; empty: no text continues so."""
        found = set()
        for number, at in states:
            form = self._forms[number]
            while at < len(form):
                item = form[at]
                if item in BLANKS or item[:-1] in BLANKS:
                    if _CLASSES[item.removesuffix("*")].fullmatch(character):
                        found.add((number, at if item.endswith("*") else at + 1))
                    if not item.endswith("*"):
                        break
                    at += 1
                    continue
                if item == character:
                    found.add((number, at + 1))
                break
        return frozenset(found)

    def complete(self, states: frozenset[tuple[int, int]]) -> int | None:
        """The first text that is whole in one of the states."""
        whole = [number for number, at in states if len(self._forms[number]) == at]
        return min(whole, default=None)

    def may_continue(self, states: frozenset[tuple[int, int]]) -> bool:
        """Whether a text may continue in one of the states."""
        return any(at < len(self._forms[number]) for number, at in states)


@lru_cache(maxsize=512)
def forms(texts: tuple[str, ...]) -> Forms:
    """The texts, made once."""
    return Forms(texts)
