"""Arguments as keys and values without quotes: the grammar of a tool's schema in such a form."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, reduce
from itertools import islice
from operator import or_
from typing import Any

from .._core import ConstraintError, Grammar, LogitreeError
from .._errors import error
from ._pieces import SPACE, any_text, joined
from ._protocol import Pairs
from ._python import WORDS, literal_grammar, read_literal
from ._tools import Tool, check_keywords, check_required, check_schema, is_text, resolved

KEY = re.compile(r"[^\s<>\"'/\\]{1,256}")
"""What a key may be."""

_OBJECT = {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "$defs",
    "definitions",
    "$schema",
    "$id",
    "$comment",
}
_NOTES = {"title", "description", "default", "examples"}
_OBJECT |= _NOTES
_TEXT = {"type", "enum", "const", "pattern", "minLength", "maxLength"} | _NOTES
"""Keywords of an object, and of a text, that can be honoured."""

_NOT_OF_TEXT = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
_NOT_OF_TEXT |= {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains"}
_NOT_OF_TEXT |= {"maxContains", "properties", "patternProperties", "additionalProperties", "required"}
_NOT_OF_TEXT |= {"minProperties", "maxProperties"}
"""Keywords that say nothing about a text."""

FORM = "arguments without quotes"

_NO_TEXT = ["null", "boolean", "number", "array", "object"]
_IN = r'(?:[^"\\]|\\(?s:.))*'
_UNCLOSED = rf'\s*[\[{{](?:{_IN}"{_IN}")*{_IN}"{_IN}\\?'
"""A bracket, and after it an odd number of quotes."""
_ANY_QUOTED = r"""(?:[^"'\\]|\\(?s:.)|"(?:[^"\\]|\\(?s:.))*"|'(?:[^'\\]|\\(?s:.))*')*"""
_UNCLOSED_LITERAL = rf"""\s*[\[{{]{_ANY_QUOTED}(?:"(?:[^"\\]|\\(?s:.))*|'(?:[^'\\]|\\(?s:.))*)\\?"""
"""A bracket, and after it quotes of Python without their end."""

MAX_NESTED = 8
"""Alternatives within alternatives, each written in its own form."""

MAX_FORMS = 64
"""Alternatives of one value that are written in their own form; with more, all are JSON."""


def keyed_arguments(
    tool: Tool,
    pairs: Pairs,
    literal: Callable[[str], Grammar | None],
    ends: Sequence[str],
    options: Mapping[str, Any],
) -> Grammar:
    """The pairs of a tool's arguments, in the order of its properties.

    Raises:
        ConstraintError: a keyword that has no meaning in this form, a value that a keyword cannot have, or a key that
            this form cannot write, with the place.
    """
    schema = tool.parsed
    check_schema(schema, f"tool {tool.name}", options)
    check_keywords(schema, _OBJECT, f"tool {tool.name}", FORM)
    if schema.get("additionalProperties", False) is not False:
        help = "name every argument, or use a protocol that writes arguments as JSON"
        raise error(ConstraintError, "arguments that have no name in the schema", place=f"tool {tool.name}", help=help)
    properties, required = schema.get("properties", {}), set(schema.get("required", ()))
    check_required(schema, f"tool {tool.name}")
    made: list[Grammar] = []
    for key, inner in properties.items():
        place = f"tool {tool.name}, {key}"
        if KEY.fullmatch(key) is None:
            raise error(ConstraintError, "a key with such characters cannot be written without quotes", place=place)
        forms = forms_of(inner, schema, says_form=bool(pairs.text_middle))
        either = any(text for text, _ in forms) and not all(text for text, _ in forms)
        values: list[Grammar] = []
        for text, value in forms:
            if text:
                middle = literal(pairs.text_middle or pairs.middle)
                unclosed = _UNCLOSED_LITERAL if pairs.python == "literals" else _UNCLOSED
                without = "" if pairs.text_middle or not either else unclosed
                written = _text(value, [pairs.end.strip(), *ends], place, without)
            else:
                middle = literal(pairs.middle)
                written = Grammar.json_schema(_with_definitions(value, schema), **options)
                if pairs.python == "words":
                    written = reduce(or_, map(Grammar.literal, _words(written)), written)
                elif pairs.python:
                    with suppress(ConstraintError):  # JSON alone where a keyword has no meaning for literals
                        written = written | literal_grammar(value, schema, options, place)
            values.append(joined(middle, written))
        end = pairs.end.rstrip()
        after = SPACE if end != pairs.end else None
        pair = joined(literal(pairs.begin), Grammar.literal(key), reduce(or_, values), literal(end), after)
        made.append(pair if key in required else pair.optional())
    return joined(*made)


def _with_definitions(schema: Any, root: Mapping[str, Any]) -> Any:
    definitions = {name: root[name] for name in ("$defs", "definitions") if name in root}
    return {**schema, **definitions} if isinstance(schema, Mapping) else schema


def _words(others: Grammar) -> list[str]:
    """Python's words for the values of JSON that are allowed."""
    return [word for word, value in WORDS.items() if others.matches(json.dumps(value))]


class Reader:
    """What a value without quotes means under its schema."""

    def __init__(self, schema: Any, root: Mapping[str, Any]) -> None:
        forms = forms_of(schema, root)
        self.is_text = all(text for text, _ in forms)
        """Whether it is a text, whatever it looks like."""
        self.may_be_text = any(text for text, _ in forms)
        self._forms, self._root = forms, root

    @cached_property
    def _others(self) -> Grammar | None:
        """What is no text, as JSON; None where the schema says nothing that can be honoured."""
        try:
            others = [_with_definitions(value, self._root) for text, value in self._forms if not text]
            return reduce(or_, map(Grammar.json_schema, others))
        except LogitreeError:
            return None

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


def forms_of(schema: Any, root: Mapping[str, Any], *, says_form: bool = False) -> list[tuple[bool, Any]]:
    """A value's schema as alternatives, and for each whether its values are texts; `says_form`: the markup says of each
    value whether it is a text. If it does not, texts that cannot be honoured without quotes make all of it JSON."""
    if is_text(schema, root):
        return [(True, resolved(schema, root))]
    forms = list(islice(_forms(schema, root), MAX_FORMS + 1))
    if not 0 < len(forms) <= MAX_FORMS:
        return [(False, schema)]
    fine = says_form or all(not text or form.keys() <= _TEXT for text, form in forms)
    return forms if fine else [(False, schema)]


def _forms(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Iterator[tuple[bool, Any]]:
    """The alternatives of a schema, each at least once."""
    if is_text(schema, root):
        yield True, resolved(schema, root)
        return
    found = {} if schema is True else resolved(schema, root)
    said = found.keys() - _NOTES if isinstance(found, Mapping) else None
    kinds = found.get("type") if isinstance(found, Mapping) else None
    if said == {"anyOf"} and found["anyOf"] and depth < MAX_NESTED:
        for one in found["anyOf"]:
            yield from _forms(one, root, depth + 1)
    elif said == {"enum"} and any(isinstance(value, str) for value in found["enum"]):
        yield True, {"enum": [value for value in found["enum"] if isinstance(value, str)]}
        yield False, {"enum": [value for value in found["enum"] if not isinstance(value, str)]}
    elif isinstance(kinds, list) and "string" in kinds and not (said or set()) & {"enum", "const"}:
        yield True, {**{key: value for key, value in found.items() if key not in _NOT_OF_TEXT}, "type": "string"}
        others = [kind for kind in kinds if kind != "string"]
        if others:
            yield False, {**found, "type": others}
    elif said == set():
        yield True, {"type": "string"}
        yield False, {"type": _NO_TEXT}
    else:
        yield False, schema


def _text(schema: Mapping[str, Any], ends: Sequence[str], place: str, without: str = "") -> Grammar:
    """A text as it is, without any of the ends in it, and not what a pattern matches: an array or an object that breaks
    off in a text, since the end would belong to that."""
    check_keywords(schema, _TEXT, place, FORM)
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if values is not None:
        if any(end in value for value in values for end in ends):
            raise error(ConstraintError, "a value has the marker in it that ends a value", place=place)
        if schema.keys() & {"pattern", "minLength", "maxLength"}:
            raise error(
                ConstraintError, "a list of values and a pattern or a length", place=place, help="give one of them"
            )
        return Grammar.choice(values)
    if not schema.keys() & {"pattern", "minLength", "maxLength"} and not without:
        return any_text(tuple(ends))
    parts = ["/(?s:.*)/", *(f"~/(?s:.*){_escaped(end)}(?s:.*)/" for end in ends)]
    if without:
        parts.append(f"~/{without}/")
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    parts.append(f"/(?s:.{{{least},{'' if most is None else most}}})/")
    if "pattern" in schema:
        pattern = schema["pattern"]
        before = "" if pattern.startswith("^") else "(?s:.*)"
        after = "" if re.search(r"(?<!\\)(\\\\)*\$$", pattern) else "(?s:.*)"
        inner = pattern.removeprefix("^") if not before else pattern
        inner = inner[:-1] if not after else inner
        inner = re.sub(r"(?<!\\)/", r"\\/", inner)
        parts.append(f"/{before}(?:{inner}){after}/")
    return Grammar.lark(f"start: VALUE\nVALUE: {' & '.join(parts)}")


def _escaped(text: str) -> str:
    return re.sub(r"([^\w])", r"\\\1", text)
