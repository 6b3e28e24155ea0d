"""What the grammar suite constrains: grammars, each with a text to walk, and variants of each that were never seen.

It measures nothing and knows no engine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from logitree_bench.maskbench._engines import Form
from logitree_bench.suites._actions import ACTIONS

JSON_GBNF = r"""
root ::= object%s
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws ( pair ( "," ws pair )* )? ws "}"
pair ::= string ":" ws value
array ::= "[" ws ( value ( "," ws value )* )? ws "]"
string ::= "\"" ( [^"\\\x00-\x1F] | "\\" ( ["\\/bfnrt] | "u" [0-9a-fA-F]{4} ) )* "\""
number ::= "-"? ( "0" | [1-9] [0-9]* ) ( "." [0-9]+ )? ( [eE] [-+]? [0-9]+ )?
ws ::= " "?
"""
"""JSON objects, at most one space between tokens."""

RECURSIVE_STRING = r"""string ::= "\"" rest
rest ::= "\"" | [^"\\\x00-\x1F] rest | "\\" ( ["\\/bfnrt] | "u" hex hex hex hex ) rest
hex ::= [0-9a-fA-F]"""

TEXT = {
    "id": 48213,
    "name": "Ada Lovelace",
    "active": True,
    "score": -12.75e3,
    "tags": ["mathematics", "engines", "notes on the analytical engine"],
    "history": [{"year": 1842, "event": "translation"}, {"year": 1843, "event": 'notes, "A" to "G"'}],
    "address": {"street": "12 St James's Square", "city": "London", "geo": [51.5074, -0.1278], "unit": None},
    "note": None,
}

PROSE = (
    "The engine weaves algebraical patterns just as the loom weaves flowers and leaves. It has no pretensions "
    "to originate anything; it can do whatever we know how to order it to perform. "
)


@dataclass(frozen=True)
class Subject:
    """One grammar and a text of its language."""

    form: Form
    source: Any
    text: str
    instead: Mapping[str, tuple[Form, Any]] = field(default_factory=dict)
    """For engines, by name, that do much better with the same language in another form: that form."""

    def given(self, engine: str) -> tuple[Form, Any]:
        """What an engine is given: form and source."""
        return self.instead.get(engine, (self.form, self.source))


def json_objects(variant: int) -> Subject:
    """Any JSON object. XGrammar is a thousand times slower with a starred group of characters than with recursion."""
    grammar = JSON_GBNF % (f' | "@{variant}"' if variant else "")
    starred = next(line for line in grammar.splitlines() if line.startswith("string ::="))
    easy: tuple[Form, Any] = ("gbnf", grammar.replace(starred, RECURSIVE_STRING)) if variant else ("json", None)
    return Subject("gbnf", grammar, json.dumps(TEXT), {"xgrammar": easy})


def names(variant: int) -> Subject:
    """One of 30 names."""
    wanted = [*ACTIONS, *([f"VARIANT_{variant}"] if variant else [])]
    return Subject("gbnf", "root ::= " + " | ".join(f'"{name}"' for name in wanted), ACTIONS[10])


def bounded(length: int) -> Callable[[int], Subject]:
    """An object with one text of at most so many characters; the walked text has at most 600."""

    def make(variant: int) -> Subject:
        key = f"text{variant or ''}"
        schema = {
            "type": "object",
            "properties": {key: {"type": "string", "maxLength": length}},
            "required": [key],
            "additionalProperties": False,
        }
        return Subject("schema", schema, json.dumps({key: (PROSE * 5)[: min(length, 600)]}))

    return make


def tools(variant: int) -> Subject:
    """A call of one of 128 tools, each with its own arguments."""
    areas = ("calendar", "mail", "files", "search", "music", "weather", "travel", "notes")
    verbs = ("list", "get", "create", "update", "delete", "share", "move", "copy")
    calls = [f"{area}_{verb}{suffix}" for area in areas for verb in verbs for suffix in ("", "_many")]
    end = str(variant) if variant else ""
    return Subject(
        "schema", {"anyOf": [_tool(name + end, at) for at, name in enumerate(calls)]}, _call(calls[77] + end)
    )


def _tool(name: str, at: int) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "query": {"type": "string"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        "order": {"enum": ["newest", "oldest", "relevance"]},
        f"field_{at % 16}": {"type": "array", "items": {"type": "string"}, "maxItems": 8},
    }
    return {
        "type": "object",
        "properties": {
            "name": {"const": name},
            "arguments": {
                "type": "object",
                "properties": arguments,
                "required": list(arguments)[: 1 + at % 3],
                "additionalProperties": False,
            },
        },
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _call(name: str) -> str:
    arguments = {"query": "minutes of the last meeting", "limit": 25, "order": "newest"}
    return json.dumps({"name": name, "arguments": arguments})


SUBJECTS: dict[str, Callable[[int], Subject]] = {
    "JSON (GBNF)": json_objects,
    "30 names (GBNF)": names,
    "maxLength 10": bounded(10),
    "maxLength 100": bounded(100),
    "maxLength 1,000": bounded(1000),
    "maxLength 10,000": bounded(10_000),
    "128 tools": tools,
}
"""By name; variant 0 is the subject itself, every other number another grammar of the same kind."""
