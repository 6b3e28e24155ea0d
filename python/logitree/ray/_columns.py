"""The Arrow types of values: what the column of a constraint's values is, where its JSON Schema says it."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from typing import Any

from .._constraint import OneOf
from .._schemas import resolved, schema_of

DEPTH = 32
"""The deepest schema that is followed; references may go around."""


def value_type(constraint: Any) -> Any:
    """The Arrow type of a constraint's values, or None: they differ, or are the text."""
    if isinstance(constraint, Mapping):
        schema: Any = dict(constraint)
    elif isinstance(constraint, OneOf):
        schema = {"enum": list(constraint.values)}
    elif isinstance(constraint, list | tuple | set | frozenset):
        schema = {"enum": list(constraint)}
    elif isinstance(constraint, type) or hasattr(constraint, "__origin__") or hasattr(constraint, "__args__"):
        schema = schema_of(constraint)
    else:
        return None
    return _type(schema, schema, DEPTH)


def plain(value: Any, text: str) -> Any:
    """A value as Arrow takes it: of models and other objects the JSON that they were read from."""
    if value is None or isinstance(value, str | int | float):
        return value
    return json.loads(text)


def _type(schema: Any, root: Any, depth: int) -> Any:
    arrow = importlib.import_module("pyarrow")
    schema = resolved(schema, root)
    if not isinstance(schema, Mapping) or "$ref" in schema or not depth:
        return None
    if "enum" in schema or "const" in schema:
        return _of_values(schema["enum"] if "enum" in schema else [schema["const"]])
    if "anyOf" in schema:
        others = [one for one in schema["anyOf"] if one != {"type": "null"}]
        return _type(others[0], root, depth - 1) if len(others) == 1 else None
    kind = schema.get("type")
    if kind == "array":
        inner = _type(schema.get("items"), root, depth - 1)
        return None if inner is None or "prefixItems" in schema else arrow.list_(inner)
    if kind == "object":
        properties = schema.get("properties")
        if not properties or schema.get("additionalProperties", True) is not False:
            return None
        fields = {name: _type(inner, root, depth - 1) for name, inner in properties.items()}
        return None if None in fields.values() else arrow.struct(list(fields.items()))
    plain = {"string": arrow.string(), "integer": arrow.int64(), "number": arrow.float64(), "boolean": arrow.bool_()}
    return plain.get(kind) if isinstance(kind, str) else None


def _of_values(values: Any) -> Any:
    arrow = importlib.import_module("pyarrow")
    kinds = {type(value) for value in values if value is not None}
    if kinds == {str}:
        return arrow.string()
    if kinds == {bool}:
        return arrow.bool_()
    if kinds == {int}:
        return arrow.int64()
    return arrow.float64() if kinds and kinds <= {int, float} else None
