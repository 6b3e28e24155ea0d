"""A schema of an object of three fields, and what is valid under it: what the tests of servers ask for."""

from __future__ import annotations

import json

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
