"""Grammars of Python's types: what a type says as JSON Schema.

Plain types, ``Literal``, ``Enum``, unions, lists and dicts are read here; models, dataclasses, ``TypedDict`` and
functions through pydantic, which is imported when it is needed.
"""

from __future__ import annotations

import enum
import inspect
import json
import math
import sys
import types
import typing
from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from typing import Any, Union, cast

from logitree._core import ConstraintError, Grammar
from logitree._errors import ValueMismatchError, error
from logitree._outlines import grammar_of as _of_outlines
from logitree._outlines import is_term
from logitree._patterns import exact_schema

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
    if is_term(source):
        return _of_outlines(source)
    if isinstance(source, str | bytes):
        help = "Grammar.literal(text) is that text, Grammar.json_schema(text) the JSON of a schema"
        raise TypeError(f"a text describes no type: {help}")
    if isinstance(source, Mapping):
        return Grammar.json_schema(dict(source), **options)
    return Grammar.json_schema(schema_of(source, closed=closed), **{"numbers": "plain", **options})


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


def resolved(schema: Any, root: Mapping[str, Any]) -> Any:
    """A schema whose reference into `$defs` or `definitions` is followed, at most 16 times."""
    for _ in range(16):
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        found: Any = root
        for step in reference[2:].split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, Mapping) else None
        if found is None:
            return schema
        schema = {**found, **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema


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

    Without pydantic, values stay what ``json.loads`` gives. What it makes raises ``ValueMismatchError`` for a text that
    the type refuses.
    """
    try:
        import pydantic
    except ImportError:
        return json.loads
    adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(
        _parameters(source) if _is_function(source) else _supported(source)
    )
    name = _name(source)

    def read(text: str) -> Any:
        try:
            return adapter.validate_json(text)
        except pydantic.ValidationError as refused:
            found = refused.errors(include_url=False, include_context=False, include_input=False)
        raise _mismatch(text, name, [("".join(f"/{step}" for step in one["loc"]), one["msg"]) for one in found])

    return read


def arguments_reader(source: Any) -> Callable[[Mapping[str, Any]], Mapping[str, Any]] | None:
    """What turns the arguments of a call, as JSON has them, into what the tool's own types say.

    ``source`` is what describes the tool: a function, a model or another type. For a mapping, which is a schema, and
    without pydantic, None: the arguments are what JSON has. The keys stay those of the JSON. What it makes raises
    ``ValueMismatchError`` for arguments that the types refuse.
    """
    if isinstance(source, Mapping | Grammar):
        return None
    read = reader_of(source)

    def convert(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        value = read(json.dumps(arguments))
        if isinstance(value, Mapping):
            return value
        fields = getattr(type(value), "model_fields", {})
        names = {getattr(field, "alias", None) or name: name for name, field in fields.items()}
        return {key: getattr(value, names.get(key, key), given) for key, given in arguments.items()}

    return convert


def _mismatch(text: str, name: str, found: list[tuple[str, str]]) -> ValueMismatchError:
    """The error of a text that a type refuses, for the places and reasons that the type gives."""
    several = len(found) > 1
    reason = "; ".join(f"{message} (at {place})" if several and place else message for place, message in found[:3])
    shown = text if len(text) <= 200 else f"{text[:200]}..."
    return ValueMismatchError(
        f"the output {shown!r} is no {name}: {reason}",
        text=text,
        type=name,
        reason=reason,
        place=found[0][0] if found and not several else "",
        help="the type checks more than its JSON Schema says: say it in the schema, for example with "
        "Annotated and pydantic.Field(...), or read the text from Generation.answer",
    )


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
        return exact_schema(pydantic.TypeAdapter(_supported(source)))
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
        return function  # pydantic, which has it, is missing too

    annotated = function if inspect.isroutine(function) else type(function).__call__
    hints = typing.get_type_hints(annotated, include_extras=True)
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            help = "write out its parameters"
            raise error(ConstraintError, f"{parameter} stands for any parameters", place=_name(function), help=help)
        hint = _supported(hints.get(parameter.name, Any))
        fields[parameter.name] = hint if parameter.default is parameter.empty else NotRequired[hint]
    return TypedDict(_name(function), fields)  # type: ignore[operator]


def _supported(source: Any, within: tuple[Any, ...] = ()) -> Any:
    """The type, with each ``TypedDict`` of ``typing`` as one of ``typing_extensions``, which pydantic asks for before
    Python 3.12."""
    if sys.version_info >= (3, 12):
        return source
    if typing.is_typeddict(source) and type(source).__module__ == "typing":
        if source in within:
            help = "import TypedDict from typing_extensions"
            raise error(ConstraintError, "a TypedDict of typing contains itself", place=_name(source), help=help)
        return _typed_dict(source, (*within, source))
    origin, arguments = typing.get_origin(source), typing.get_args(source)
    if origin is None or origin is typing.Literal:
        return source
    if origin is typing.Annotated:
        inner = _supported(source.__origin__, within)
        return source if inner is source.__origin__ else typing.Annotated[(inner, *source.__metadata__)]
    made = tuple(_supported(argument, within) for argument in arguments)
    if all(new is old for new, old in zip(made, arguments, strict=True)):
        return source
    if origin is types.UnionType:
        return reduce(or_, made)
    return source.copy_with(made) if hasattr(source, "copy_with") else origin[made]


def _typed_dict(source: Any, within: tuple[Any, ...]) -> Any:
    """The same keys as a ``TypedDict`` of ``typing_extensions``."""
    import typing_extensions

    fields: dict[str, Any] = {}
    for key, hint in typing.get_type_hints(source, include_extras=True).items():
        origin, required = typing.get_origin(hint), key in source.__required_keys__
        if origin in (typing_extensions.Required, typing_extensions.NotRequired):
            hint, required = typing.get_args(hint)[0], origin is typing_extensions.Required
        inner = _supported(hint, within)
        fields[key] = inner if required else typing_extensions.NotRequired[inner]
    made: Any = typing_extensions.TypedDict(source.__name__, fields)  # type: ignore[misc]
    made.__doc__ = source.__doc__
    if hasattr(source, "__pydantic_config__"):
        setattr(made, "__pydantic_config__", source.__pydantic_config__)  # noqa: B010  # no type has it
    return made


def _name(source: Any) -> str:
    if typing.get_origin(source) is typing.Annotated:
        source = source.__origin__
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
