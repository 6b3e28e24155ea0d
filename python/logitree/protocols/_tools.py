"""Tools from functions, models and descriptions: names, and the JSON Schema of each one's arguments, closed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from .._core import ConstraintError, Grammar
from .._errors import ValueMismatchError, error
from .._schemas import arguments_reader, resolved, schema_of

NAME = re.compile(r"[\w.\-/]{1,256}")
"""What a tool may be called: no protocol has a marker that begins so."""


@dataclass(frozen=True)
class Tool:
    """A tool: its name, and the JSON Schema of its arguments as JSON text."""

    name: str
    """The tool's name."""
    schema: str
    """The JSON Schema of its arguments, as text."""
    source: Any = field(default=None, compare=False, repr=False)
    """What the caller described it by, where that is a type or a function: what its arguments are converted by."""

    def converted(self, arguments: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
        """The arguments as the tool's types have them, and what is wrong: then they stay what JSON has."""
        if self._convert is None:
            return arguments, ""
        try:
            return self._convert(arguments), ""
        except ValueMismatchError as wrong:
            return arguments, f"the arguments are not what {self.name} takes: {wrong.reason}"

    @cached_property
    def _convert(self) -> Callable[[Mapping[str, Any]], Mapping[str, Any]] | None:
        return None if self.source is None else arguments_reader(self.source)

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def parsed(self) -> dict[str, Any]:
        """The schema."""
        made: dict[str, Any] = json.loads(self.schema)
        return made


def tools_of(given: Mapping[str, Any] | Iterable[Any]) -> tuple[Tool, ...]:
    """The tools that a caller describes.

    Raises:
        ConstraintError: a tool without a name, two with one name, a name of other characters, or arguments that are no
            object.
    """
    return tuple(
        Tool(_checked(name), _schema(name, source), None if isinstance(source, Mapping) else source)
        for name, source in named_tools(given).items()
    )


def named_tools(tools: Mapping[str, Any] | Iterable[Any]) -> dict[str, Any]:
    """Names, and what describes the arguments of each.

    Raises:
        ConstraintError: a tool without a name, or two with one name.
    """
    if isinstance(tools, Mapping):
        return dict(tools)
    named: dict[str, Any] = {}
    for tool in tools:
        name, source = _described(tool) if isinstance(tool, Mapping) else (getattr(tool, "__name__", None), tool)
        if not isinstance(name, str):
            help = 'give a mapping of names, functions or classes, or dicts with "name" and "parameters"'
            raise error(ConstraintError, f"a tool without a name: {tool!r}"[:200], help=help)
        if name in named:
            raise error(ConstraintError, f"two tools are called {name!r}", help="give each a name of its own")
        named[name] = source
    return named


def _described(tool: Mapping[str, Any]) -> tuple[Any, Any]:
    """A tool as the servers' interfaces describe it."""
    inner = tool.get("function", tool)
    for key in ("parameters", "input_schema", "inputSchema"):
        if key in inner:
            return inner.get("name"), inner[key]
    return inner.get("name"), {"type": "object", "properties": {}, "additionalProperties": False}


def _checked(name: str) -> str:
    if NAME.fullmatch(name) is None:
        help = "use letters, digits, and _ . - /, at most 256 of them"
        raise error(ConstraintError, f"a tool is called {name[:80]!r}", place="tools", help=help)
    return name


def _schema(name: str, source: Any) -> str:
    is_schema = isinstance(source, Mapping)
    if not is_schema and isinstance(source, Grammar | str | bytes):
        help = "give a JSON Schema as a mapping, a type or a function"
        kind = type(source).__name__
        raise error(ConstraintError, f"the parameters are a {kind}", place=f"tool {name}", help=help)
    schema = dict(source) if is_schema else schema_of(source)
    kind = schema.setdefault("type", "object") if is_schema else schema.get("type", "object")
    if kind != "object":
        help = 'describe the arguments as {"type": "object", "properties": {...}}'
        raise error(ConstraintError, f"the parameters are of type {kind!r}", place=f"tool {name}", help=help)
    try:
        return Grammar._json_text(schema) or json.dumps(schema)
    except (TypeError, ValueError, RecursionError) as wrong:
        raise error(ConstraintError, f"the parameters are no JSON: {wrong}", place=f"tool {name}") from wrong


def check_schema(schema: Mapping[str, Any], place: str, options: Mapping[str, Any]) -> None:
    """Raises what is wrong with a schema of arguments, whatever its values are written as."""
    try:
        Grammar.json_schema(schema, **options)
    except ConstraintError as wrong:
        raise error(ConstraintError, str(wrong), place=place) from wrong


def check_keywords(said: Collection[str], known: Collection[str], place: str, form: str) -> None:
    """Raises for a keyword that a form of values cannot honour."""
    if unknown := sorted(set(said).difference(known)):
        help = "leave it out, or use a protocol that writes arguments as JSON"
        raise error(ConstraintError, f"{unknown[0]!r} has no meaning for {form}", place=place, help=help)


def check_required(schema: Mapping[str, Any], place: str) -> None:
    """Raises for a required argument without a schema."""
    if missing := sorted(set(schema.get("required", ())).difference(schema.get("properties", {}))):
        help = "describe it under properties"
        raise error(ConstraintError, f"{missing[0]!r} is required and not described", place=place, help=help)


def is_text(schema: Any, root: Mapping[str, Any]) -> bool:
    """Whether every value of a schema is a text."""
    schema = resolved(schema, root)
    if not isinstance(schema, Mapping):
        return False
    if isinstance(schema.get("enum"), Sequence):
        return all(isinstance(value, str) for value in schema["enum"])
    if "const" in schema:
        return isinstance(schema["const"], str)
    return schema.get("type") == "string"
