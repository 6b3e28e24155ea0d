"""Grammars of Python's types: what a type says as JSON Schema.

Plain types, ``Literal``, ``Enum``, unions, lists and dicts are read here; models, dataclasses, ``TypedDict`` and
functions through pydantic, which is imported when it is needed.
"""

from __future__ import annotations

import enum
import inspect
import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Union, cast

from logitree._core import ConstraintError, Grammar
from logitree._errors import error

_PLAIN: dict[Any, dict[str, Any]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    list: {"type": "array"},
    dict: {"type": "object"},
    Any: {},
    object: {},
}

_MANY = ("$defs", "definitions", "properties", "patternProperties")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_ONE = ("items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else")
"""Keywords that hold schemas: by name, in a list, one."""


class _NeedsPydantic(Exception):
    """The type is not one of those read here."""


def grammar_of(source: Any, *, closed: bool = True, **options: Any) -> Grammar:
    """The grammar of JSON that ``source`` describes; ``Grammar.of`` has the details."""
    if isinstance(source, Grammar):
        if options:
            names = ", ".join(options)
            raise error(ConstraintError, f"{names} for a grammar", help="options are for types and schemas")
        return source
    if isinstance(source, str | bytes):
        help = "Grammar.literal(text) is that text, Grammar.json_schema(text) the JSON of a schema"
        raise TypeError(f"a text describes no type: {help}")
    if isinstance(source, Mapping):
        return Grammar.json_schema(dict(source), **options)
    return Grammar.json_schema(schema_of(source, closed=closed), **options)


def schema_of(source: Any, *, closed: bool = True) -> dict[str, Any]:
    """The JSON Schema of a type, or of a function's parameters as an object."""
    try:
        return _plain(source)
    except _NeedsPydantic:
        schema = _pydantic(_parameters(source) if _is_function(source) else source)
    return _closed(schema) if closed else schema


def _plain(source: Any) -> dict[str, Any]:
    """The schema of a type that needs no pydantic."""
    try:
        if source in _PLAIN:
            return _PLAIN[source]
    except TypeError:  # unhashable: no type that is known
        raise _NeedsPydantic from None
    if isinstance(source, enum.EnumMeta):
        return {"enum": [_value(member.value, source) for member in cast("list[enum.Enum]", list(source))]}
    origin, arguments = typing.get_origin(source), typing.get_args(source)
    if origin is typing.Literal:
        return {"enum": [_value(a.value if isinstance(a, enum.Enum) else a, source) for a in arguments]}
    if origin is Union or origin is types.UnionType:
        return {"anyOf": [_plain(argument) for argument in arguments]}
    if origin is list:
        return {"type": "array", "items": _plain(arguments[0])}
    if origin is dict and arguments[0] is str:
        return {"type": "object", "additionalProperties": _plain(arguments[1])}
    raise _NeedsPydantic


def literals(source: Any) -> tuple[Any, ...] | None:
    """The values of a ``Literal``, or of a union of them; None for any other type."""
    origin, arguments = typing.get_origin(source), typing.get_args(source)
    if origin is typing.Literal:
        return arguments
    if origin is Union or origin is types.UnionType:
        several = [literals(argument) for argument in arguments]
        if all(values is not None for values in several):
            return tuple(value for values in several for value in values or ())
    return None


def reader_of(source: Any) -> Callable[[str], Any]:
    """What turns JSON of a type, or of a function's parameters, into a value of that type.

    Values of plain types need no pydantic. Without pydantic everything else stays what ``json.loads`` gives.
    """
    try:
        import pydantic
    except ImportError:
        return json.loads
    read: Callable[[str], Any] = pydantic.TypeAdapter(
        _parameters(source) if _is_function(source) else source
    ).validate_json
    return read


def _value(value: Any, of: Any) -> Any:
    """A value that JSON can write."""
    fine = value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value))
    if not fine:
        help = "give values that are text, numbers, booleans or None"
        raise error(ConstraintError, f"JSON cannot write {value!r}", place=_name(of), help=help)
    return value


def _pydantic(source: Any) -> dict[str, Any]:
    """The schema of whatever pydantic has a schema of."""
    try:
        import pydantic
        from pydantic.errors import PydanticUserError
    except ImportError as missing:
        message = "the schema of this type needs pydantic"
        help = 'pip install "logitree[schemas]" (or pydantic), or give the JSON Schema to Grammar.json_schema'
        raise error(ConstraintError, message, place=_name(source), help=help) from missing
    try:
        schema: dict[str, Any] = pydantic.TypeAdapter(source).json_schema(mode="validation")
        return schema
    except PydanticUserError as refused:
        help = "give a type that pydantic has a schema of, or the JSON Schema itself"
        message = f"there is no schema of this: {refused.message.splitlines()[0]}"
        raise error(ConstraintError, message, place=_name(source), help=help) from refused


def _is_function(source: Any) -> bool:
    return inspect.isroutine(source) or (callable(source) and not isinstance(source, type) and _is_object(source))


def _is_object(source: Any) -> bool:
    """Whether this is an object with a ``__call__`` of its own, rather than a type's alias."""
    return typing.get_origin(source) is None and not type(source).__module__.startswith("typing")


def _parameters(function: Callable[..., Any]) -> Any:
    """A function's parameters as a typed dict."""
    try:
        from typing_extensions import NotRequired, TypedDict
    except ImportError:
        return function  # pydantic, of which it is a part, is missing too

    annotated = function if inspect.isroutine(function) else type(function).__call__
    hints = typing.get_type_hints(annotated, include_extras=True)
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            help = "write out its parameters"
            raise error(ConstraintError, f"{parameter} stands for any parameters", place=_name(function), help=help)
        hint = hints.get(parameter.name, Any)
        fields[parameter.name] = hint if parameter.default is parameter.empty else NotRequired[hint]
    return TypedDict(_name(function), fields)  # type: ignore[operator]


def _name(source: Any) -> str:
    return str(getattr(source, "__name__", None) or source)


def _closed(schema: Any) -> Any:
    """The schema with objects of declared properties that have no others, unless it speaks of others."""
    if not isinstance(schema, dict):
        return schema
    made = dict(schema)
    for key in _MANY:
        if isinstance(made.get(key), dict):
            made[key] = {name: _closed(inner) for name, inner in made[key].items()}
    for key in _LISTS:
        if isinstance(made.get(key), list):
            made[key] = [_closed(inner) for inner in made[key]]
    for key in _ONE:
        if key in made:
            made[key] = _closed(made[key])
    if "properties" in made:
        made.setdefault("additionalProperties", False)
    return made
