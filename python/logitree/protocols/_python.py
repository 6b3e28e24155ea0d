"""Arguments as Python writes them, `f(a=1, b='x')`: the grammar of a tool's schema in such a form, and reading it."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from .._core import ConstraintError, Grammar
from .._errors import error
from .._schemas import resolved
from ._numbers import DECODER
from ._pieces import either, joined
from ._tools import Tool, check_keywords, check_required, check_schema

MAX_NESTED = 16
"""Schemas within schemas."""
MAX_DEPTH = 128
"""Nesting of values that are read."""

WORDS = {"True": True, "False": False, "None": None}
"""Python's words for values that JSON writes otherwise."""

FORM = "Python's values"

_NOTES = {"title", "description", "default", "examples", "$schema", "$id", "$comment", "$defs", "definitions"}
_KNOWN = {
    "string": {"pattern", "minLength", "maxLength", "format"},
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    "boolean": set[str](),
    "null": set[str](),
    "array": {"items", "minItems", "maxItems"},
    "object": {"properties", "required", "additionalProperties"},
}
"""Keywords that can be honoured, by type."""
_OF_A_TYPE = set().union(*_KNOWN.values())

_ANY = """start: value
value: STRING | NUMBER | WORD | "[" (value (", " value)*)? "]" | "{" (pair (", " pair)*)? "}"
WORD: "True" | "False" | "None" | "true" | "false" | "null"
pair: STRING ": " value
STRING: /"([^"\\\\]|\\\\["\\\\nrt])*"/ | /'([^'\\\\]|\\\\['"\\\\nrt])*'/
NUMBER: /-?(0|[1-9][0-9]{0,17})(\\.[0-9]{1,17})?/
"""
_QUOTED = r"""'([^'\\]|\\['"\\nrt])*'"""


@lru_cache(maxsize=1)
def _any() -> Grammar:
    return Grammar.lark(_ANY)


@lru_cache(maxsize=1)
def _quoted() -> Grammar:
    return Grammar.regex(_QUOTED)


def keyword_arguments(tool: Tool, options: Mapping[str, Any]) -> Grammar:
    """What is between the parentheses, in the order of the tool's properties.

    Raises:
        ConstraintError: a keyword that has no meaning in this form, or a name that Python cannot write, with the place.
    """
    schema, place = tool.parsed, f"tool {tool.name}"
    check_schema(schema, place, options)
    for key in schema.get("properties", {}):
        if not key.isidentifier() or keyword.iskeyword(key):
            raise error(ConstraintError, "no name of an argument in Python", place=f"{place}, {key}")
    return _Values(schema, options, place).members(schema, "{}=", place)


class _Values:
    """Writes the grammars of the schemas within one schema."""

    def __init__(self, root: Mapping[str, Any], options: Mapping[str, Any], place: str) -> None:
        self.root, self.options, self.place = root, options, place

    def value(self, schema: Any, place: str, depth: int = 0) -> Grammar:
        schema = resolved({} if schema is True else schema, self.root)
        if depth > MAX_NESTED:
            raise error(ConstraintError, "schemas within schemas, or one within itself", place=place)
        if not isinstance(schema, Mapping):
            raise error(ConstraintError, f"the schema is {schema!r}", place=place)
        said = schema.keys() - _NOTES
        if not said:
            return _any()
        if "enum" in said or "const" in said:
            values = schema["enum"] if "enum" in said else [schema["const"]]
            check_keywords(said, {"enum", "const", "type"}, place, FORM)
            fine = [value for value in values if Grammar.json_schema(schema).matches(json.dumps(value))]
            return Grammar.choice(sorted({text for value in fine for text in _written(value)}))
        if "anyOf" in said:
            check_keywords(said, {"anyOf"}, place, FORM)
            return either([self.value(one, place, depth + 1) for one in schema["anyOf"]])
        kinds = schema.get("type", list(_KNOWN))
        kinds = [kinds] if isinstance(kinds, str) else kinds
        check_keywords(said, {"type"} | _OF_A_TYPE, place, FORM)
        return either([self._of_type(kind, schema, place, depth) for kind in kinds])

    def _of_type(self, kind: str, schema: Mapping[str, Any], place: str, depth: int) -> Grammar:
        if kind in ("boolean", "null"):
            return Grammar.choice(["None", "null"] if kind == "null" else ["True", "False", "true", "false"])
        own = {key: value for key, value in schema.items() if key in _KNOWN[kind]}
        if kind in ("integer", "number", "string"):
            plain = Grammar.json_schema({"type": kind, **own}, **self.options)
            return plain | _quoted() if kind == "string" and not own else plain
        if kind == "array":
            item = self.value(own.get("items", True), f"{place}[]", depth + 1)
            least, most = own.get("minItems", 0), own.get("maxItems")
            more = (", " + item).repeat(max(least - 1, 0), None if most is None else max(most - 1, 0))
            some = item + more if most != 0 else Grammar.literal("")
            return joined(Grammar.literal("["), some if least else some.optional(), Grammar.literal("]"))
        if "properties" not in own and own.get("additionalProperties", True) is not False:
            if own.get("required"):
                raise error(ConstraintError, "'required' has no meaning without properties", place=place)
            value = self.value(own.get("additionalProperties", True), place, depth + 1)
            pair = (Grammar.json_schema({"type": "string"}, **self.options) | _quoted()) + ": " + value
            return joined(Grammar.literal("{"), (pair + (", " + pair).repeat()).optional(), Grammar.literal("}"))
        made = self.members(own, "{!r}: ", place, depth + 1)
        return joined(Grammar.literal("{"), made, Grammar.literal("}"))

    def members(self, schema: Mapping[str, Any], written: str, place: str, depth: int = 0) -> Grammar:
        """Keys and values with commas between them, the required ones and any of the others."""
        if schema.get("additionalProperties", True) not in (False, True):
            raise error(ConstraintError, "additional properties have no meaning beside named ones", place=place)
        required = set(schema.get("required", ()))
        properties = schema.get("properties", {})
        check_required(schema, place)
        first: Grammar | None = None
        after: Grammar | None = None
        for key, inner in reversed(properties.items()):
            keys = [written.format(key)]
            if "!r" in written:
                keys.append(json.dumps(key, ensure_ascii=False) + ": ")
            one = Grammar.choice(keys) + self.value(inner, f"{place}, {key}", depth + 1)
            begun = joined(one, after)
            first = begun if key in required else begun | first if first is not None else begun.optional()
            more = ", " + one
            after = joined(more if key in required else more.optional(), after)
        return joined(first)


def _written(value: Any) -> Sequence[str]:
    """A value as Python writes it, and as JSON does."""
    return repr(value), json.dumps(value, ensure_ascii=False)


_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<number>[-+]?[0-9.][0-9.eE+\-]*)"""
    r"""|(?P<word>[^\W\d]\w*)|(?P<mark>[\[\]{}(),:=]))""",
    re.DOTALL,
)


def read_keywords(text: str) -> dict[str, Any] | None:
    """The arguments that are between the parentheses; None if they are no keywords with literals."""
    try:
        return _Reader(text).keywords()
    except (ValueError, RecursionError):
        return None


def read_literal(text: str) -> tuple[Any, bool]:
    """The value of a literal, and whether it is one."""
    try:
        reader = _Reader(text)
        value = reader.value(0)
        reader.end()
        return value, True
    except (ValueError, RecursionError):
        return None, False


class _Reader:
    """Reads literals one after the other; ValueError for anything else."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def _next(self) -> tuple[str, str]:
        """The kind and the text of the next token; both empty at the end."""
        found = _TOKEN.match(self.text, self.at)
        if found is None:
            self.end()
            return "", ""
        self.at = found.end()
        kind = found.lastgroup or ""
        return kind, found[kind]

    def end(self) -> None:
        """Nothing but white space may follow."""
        if self.text[self.at :].strip():
            raise ValueError("no literal")

    def keywords(self) -> dict[str, Any]:
        """Names and values up to the end."""
        made: dict[str, Any] = {}
        while True:
            kind, name = self._next()
            if not kind:
                return made
            if kind != "word" or name in made or self._next() != ("mark", "="):
                raise ValueError("no keyword")
            made[name] = self.value(0)
            separator = self._next()
            if separator == ("", ""):
                return made
            if separator != ("mark", ","):
                raise ValueError("no comma")

    def value(self, depth: int) -> Any:
        """One literal."""
        kind, text = self._next()
        if kind == "text":
            return _text(text)
        if kind == "number":
            return DECODER.decode(text.removeprefix("+"))
        if kind == "word":
            return WORDS[text] if text in WORDS else DECODER.decode(text)
        if (kind, text) not in (("mark", "["), ("mark", "("), ("mark", "{")) or depth > MAX_DEPTH:
            raise ValueError("no literal")
        return self._items({"[": "]", "(": ")", "{": "}"}[text], depth)

    def _items(self, end: str, depth: int) -> Any:
        """The rest of a list, of a tuple, which is a list too, or of a dict."""
        items: list[Any] = []
        keys: list[str] = []
        while True:
            at = self.at
            if self._next() == ("mark", end):
                break
            self.at = at
            one = self.value(depth + 1)
            if end == "}":
                if not isinstance(one, str) or self._next() != ("mark", ":"):
                    raise ValueError("no key")
                keys.append(one)
                one = self.value(depth + 1)
            items.append(one)
            separator = self._next()
            if separator == ("mark", end):
                break
            if separator != ("mark", ","):
                raise ValueError("no comma")
        return dict(zip(keys, items, strict=True)) if end == "}" else items


_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}


def _text(written: str) -> str:
    """A text in quotes, by JSON's rules where they apply, else by Python's."""
    if written[0] == '"':
        try:
            made: str = json.loads(written, strict=False)
            return made
        except ValueError:
            pass
    return _ESCAPE.sub(_unescaped, written[1:-1])


def _unescaped(found: re.Match[str]) -> str:
    code = found[1] or found[2]
    if code:
        return chr(int(code, 16))
    return _ESCAPED.get(found[3], found[3] if found[3] in "\\'\"" else found[0])
