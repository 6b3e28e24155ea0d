"""Arguments as keys and values without quotes: the grammar of a tool's schema in such a form, and reading it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from .._core import Grammar, LogitreeError
from .._schemas import resolved
from ._protocol import TYPES, Pairs
from ._python import read_literal
from ._tools import Tool, is_text

_KEY = re.compile(r"\s*([^\s:,{}\[\]][^:,{}\[\]]*)")
_WORD = re.compile(r"([^,{}\[\]]*)")
_COLON, _COMMA = re.compile(r"\s*(:)"), re.compile(r"\s*(,)")
_OPENING = re.compile(r"\s*([\[{])")
_CLOSING = re.compile(r"\s*()(?=[\]}]|\Z)")
_CLOSING_BRACE, _CLOSING_BRACKET = re.compile(r"\s*(})\s*"), re.compile(r"\s*(\])\s*")
_MAX_SPACE = 2
"""White space that a model may write between two pairs, where the form has any."""


def keyed_arguments(
    tools: Sequence[Tool],
    pairs: Pairs,
    parts: Callable[[str], list[Any]],
    ends: Sequence[str],
    options: Mapping[str, Any],
) -> list[Grammar]:
    """The pairs of each tool's arguments, in the order of its properties: what the core's `PairForm` describes.

    Args:
        parts: texts and tokens of a marker.
        ends: what no text contains, beside the end of a pair.

    Raises:
        ConstraintError: a schema that cannot be honoured, an argument that has no name in it, or a key that this form
            cannot write, with the place.
    """
    end = pairs.end.rstrip()
    form = {
        "begin": parts(pairs.begin),
        "middles": [{"types": types, "parts": parts(middle)} for types, middle in pairs.ways],
        "end": parts(end) + ([] if end == pairs.end else [{"spaces": _MAX_SPACE}]),
        "excludes": [pairs.end.strip(), *ends],
        "named_only": True,
        "python": pairs.python or "nothing",
    }
    return Grammar._arguments([(tool.name, tool.schema) for tool in tools], json.dumps(form), **options)


def unquoted_arguments(
    tools: Sequence[Tool],
    quote: str,
    parts: Callable[[str], list[Any]],
    ends: Sequence[str],
    options: Mapping[str, Any],
) -> list[Grammar]:
    """Each tool's arguments as keys without quotes and values between commas, texts between `quote`.

    They come in any order, since templates sort them.

    Args, Raises: as of `keyed_arguments`.
    """
    form = {
        "begin": [],
        "end": [],
        "separator": ",",
        "item": "",
        "middles": [
            {"types": ["string"], "parts": parts(":" + quote), "end": parts(quote)},
            {"types": ["null", "boolean", "number"], "parts": parts(":")},
            *(
                {"types": [kind], "parts": parts(":" + begin), "end": parts(end), "is_nested": True}
                for kind, begin, end in (("object", "{", "}"), ("array", "[", "]"))
            ),
        ],
        "excludes": [quote, *ends],
        "may_break_off": True,
        "python": "words",
    }
    return Grammar._arguments(
        [(tool.name, tool.schema) for tool in tools], json.dumps(form), **{"order": "any", **options}
    )


def read_unquoted(text: str, quote: str, shown: Callable[[str], str]) -> dict[str, Any] | None:
    """The arguments between the braces, their texts as `shown` gives them; None if they are no keys and values.

    A value without quotes that is neither JSON's nor Python's is a text.
    """
    try:
        reader = _Unquoted(text, quote, shown)
        made = reader.pairs()
        return made if reader.at == len(text) else None
    except (ValueError, RecursionError):
        return None


class _Unquoted:
    """Reads keys and values; ValueError for anything else."""

    def __init__(self, text: str, quote: str, shown: Callable[[str], str]) -> None:
        quoted = rf"\s*{re.escape(quote)}(.*?){re.escape(quote)}\s*"
        self.text, self.at, self.shown = text, 0, shown
        self._quoted = re.compile(quoted, re.DOTALL)

    def _read(self, pattern: re.Pattern[str]) -> str | None:
        """What a pattern's group matches here, if it does."""
        found = pattern.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        return self.shown(found[1])

    def pairs(self) -> dict[str, Any]:
        """Keys and values up to what is no comma."""
        made: dict[str, Any] = {}
        if self._read(_CLOSING) is not None:
            return made
        while True:
            key = self._read(self._quoted)
            key = self._read(_KEY) if key is None else key
            if not key or key in made or self._read(_COLON) is None:
                raise ValueError("no key")
            made[key] = self._value()
            if self._read(_COMMA) is None:
                return made

    def _value(self) -> Any:
        text = self._read(self._quoted)
        if text is not None:
            return text
        bracket = self._read(_OPENING)
        if bracket is None:
            word = (self._read(_WORD) or "").strip()
            if not word:
                raise ValueError("no value")
            made, is_literal = read_literal(word)
            return made if is_literal else word
        made = self.pairs() if bracket == "{" else self._items()
        if self._read(_CLOSING_BRACE if bracket == "{" else _CLOSING_BRACKET) is None:
            raise ValueError("no end")
        return made

    def _items(self) -> list[Any]:
        made: list[Any] = []
        if self._read(_CLOSING) is not None:
            return made
        while True:
            made.append(self._value())
            if self._read(_COMMA) is None:
                return made


class Reader:
    """What a value without quotes means under its schema: what is valid as something other than a text is that,
    everything else is the text."""

    def __init__(self, schema: Any, root: Mapping[str, Any]) -> None:
        self._schema, self._root = schema, root
        found = resolved(schema, root)
        kinds = found.get("type", "string") if isinstance(found, Mapping) else "string"
        text = is_text(schema, root)
        self.may_be_text = text or ("string" in kinds and self._of(["string"]) is not None)
        """Whether it may be a text."""
        self.is_text = text or (self.may_be_text and self._others is None)
        """Whether it is a text, whatever it looks like."""

    def _of(self, kinds: Sequence[str]) -> Grammar | None:
        """The values of some types, as JSON; None without any, or if the schema says what cannot be honoured."""
        definitions = {name: self._root[name] for name in ("$schema", "$defs", "definitions") if name in self._root}
        try:
            return Grammar.json_schema({**definitions, "type": kinds, "allOf": [self._schema]})
        except LogitreeError:
            return None

    @cached_property
    def _others(self) -> Grammar | None:
        """What is no text."""
        return self._of(TYPES[1:])

    def __call__(self, written: str, loaded: Any, is_json: bool) -> Any:
        """The value of a text that JSON reads as `loaded`, where it reads it."""
        if self.is_text:
            return written
        was_json = is_json
        if not is_json:
            loaded, is_json = read_literal(written)
            is_json = is_json and not isinstance(loaded, str)
        if not is_json or (was_json and not self.may_be_text):
            return loaded if is_json else written
        if self._others is None:
            return loaded
        return loaded if self._others.matches(json.dumps(loaded, ensure_ascii=False)) else written
