"""Arguments as keys and values without quotes: the grammar of a tool's schema in such a form, and reading it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
    space = [] if end == pairs.end else [{"spaces": _MAX_SPACE}]
    middles: list[dict[str, Any]] = [{"types": types, "parts": parts(middle)} for types, middle in pairs.ways]
    form: dict[str, Any] = {
        "begin": parts(pairs.begin),
        "middles": middles,
        "end": [*parts(end), *space],
        "excludes": [pairs.end.strip(), *ends],
        "named_only": True,
        "python": pairs.python or "nothing",
    }
    if pairs.nested:
        before, _, after = end.partition("{key}")
        form |= {"end": [*parts(before), "key", *parts(after), *space], "excludes": [pairs.tag, *ends]}
        form |= {"item_key": "item"}
        middles[:] = [
            {"types": TYPES[:4], "parts": parts(pairs.middle)},
            {"types": TYPES[4:], "parts": parts(pairs.middle), "is_nested": True},
        ]
    if pairs.quotes[0]:
        begin, close = pairs.quotes
        middles[0]["excludes"] = [*pairs.quoted, *ends]
        quoted = {"types": TYPES[:1], "parts": parts(pairs.middle + begin), "excludes": [close, *ends]}
        middles.append({**quoted, "end": [*parts(close + end), *space]})
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


@dataclass
class Element:
    """A key or an item with what is in it."""

    key: str
    texts: list[str] = field(default_factory=list)
    """What is in it that is no element."""
    elements: list[Element] = field(default_factory=list)

    def value(
        self,
        schema: Any,
        root: Mapping[str, Any],
        reader_of: Callable[[Any], Reader],
        loaded: Callable[[str], tuple[str, Any, bool]],
    ) -> Any:
        """What it means under its schema, None: there is none.

        Args:
            reader_of: what reads the values of a part of the schema.
            loaded: a text as it is shown, what it is as JSON, and whether it is.
        """
        found = resolved(schema, root) if isinstance(schema, Mapping) else {}
        kinds = found.get("type", ())
        kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
        text = "".join(self.texts)
        if not self.elements:
            shown, made, is_json = loaded(text)
            reader = None if schema is None else reader_of(schema)
            if reader is not None and not text.strip():
                return reader.blank(shown)
            return (made if is_json else shown) if reader is None else reader(shown, made, is_json)
        is_list = "array" in kinds or ("object" not in kinds and all(one.key == "item" for one in self.elements))
        if is_list:
            places = range(len(self.elements))
            inner = [
                _below(found, root, "prefixItems", place) or _below(found, root, "items", None) for place in places
            ]
            return [one.value(of, root, reader_of, loaded) for one, of in zip(self.elements, inner, strict=True)]
        inner = [_below(found, root, "properties", one.key) for one in self.elements]
        values = [one.value(of, root, reader_of, loaded) for one, of in zip(self.elements, inner, strict=True)]
        return dict(zip((one.key for one in self.elements), values, strict=True))


def _below(schema: Mapping[str, Any], root: Mapping[str, Any], keyword: str, place: str | int | None) -> Any:
    """The schema of a property or an item, of the schema itself or of one of its parts; None where there is none."""
    own = schema.get(keyword)
    if place is not None and own is not None:
        is_there = place in own if isinstance(own, Mapping) else isinstance(place, int) and place < len(own)
        own = own[place] if is_there else None
    if own is not None:
        return own
    parts = [part for name in ("allOf", "anyOf", "oneOf") for part in schema.get(name, ())]
    found = (_below(resolved(part, root), root, keyword, place) for part in parts if isinstance(part, Mapping))
    return next((one for one in found if one is not None), None)


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

    def blank(self, written: str) -> Any:
        """What an element means that has nothing in it but white space."""
        for value, of in ((written, self._of(["string"])), ([], self._others), ({}, self._others)):
            try:
                if of is not None and of.matches(json.dumps(value)):
                    return value
            except LogitreeError:  # it has no value at all
                continue
        return written

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
