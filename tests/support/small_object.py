"""Schemas of small objects, and what is valid under the larger one: what the tests of engines ask for."""

from __future__ import annotations

import json

PAIR = {
    "type": "object",
    "properties": {"a": {"type": "boolean"}, "b": {"enum": ["x", "y"]}},
    "required": ["a", "b"],
    "additionalProperties": False,
}

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "n": {"type": "integer", "minimum": 0, "maximum": 99},
        "on": {"type": "boolean"},
    },
    "required": ["name", "n"],
    "additionalProperties": False,
}


def is_object(text: str) -> bool:
    """Whether a text is JSON that is valid under the schema. Written by hand, without a validator."""
    value = json.loads(text)
    return (
        set(value) <= {"name", "n", "on"}
        and isinstance(value["name"], str)
        and len(value["name"]) <= 8
        and 0 <= value["n"] <= 99
        and isinstance(value.get("on", True), bool)
    )
