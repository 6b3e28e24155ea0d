"""JSON Schemas of pydantic's types that say what pydantic reads, where pydantic's own schemas say less.

A decimal is a number of so many digits, a duration and a date what ISO 8601 has of them and Python can hold.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pydantic

Schema = dict[str, Any]

_YEAR = r"(?:[1-9]\d{3}|0[1-9]\d{2}|00[1-9]\d|000[1-9])"
_LEAP = r"(?:\d{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_DATE = (
    rf"(?:{_YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)"
    rf"|02-(?:0[1-9]|1\d|2[0-8]))|{_LEAP}-02-29)"
)
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?"
_OFFSET = r"(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)"

_COUNT = r"(?:0|[1-9]\d{0,5})"
_SECONDS = rf"{_COUNT}(?:\.\d{{1,6}})?S"
_CLOCK_PARTS = rf"T(?:{_COUNT}H(?:{_COUNT}M)?(?:{_SECONDS})?|{_COUNT}M(?:{_SECONDS})?|{_SECONDS})"
_DURATION = rf"P(?:(?:0|[1-9]\d{{0,7}})D(?:{_CLOCK_PARTS})?|(?:0|[1-9]\d{{0,6}})W|{_CLOCK_PARTS})"

_PART = r"(?:0|[1-9]\d{0,16})(?:\.\d{1,16})?"
_COMPLEX = rf"-?{_PART}(?:[+-]{_PART}j|j)?"

_MAX_PLACES = 17
"""Decimal places of a decimal with only the number of digits given."""


def exact_schema(adapter: pydantic.TypeAdapter[Any]) -> Schema:
    """The JSON Schema of what the adapter reads.

    Raises:
        pydantic.errors.PydanticUserError: the type has no JSON Schema.
    """
    from pydantic.json_schema import GenerateJsonSchema

    class Exact(GenerateJsonSchema):  # type: ignore[misc]  # pydantic is no dependency
        """pydantic's schemas, without what pydantic refuses."""

        def decimal_schema(self, schema: Any) -> Schema:
            made: Schema = {"type": "number"}
            self.update_with_validations(made, schema, self.ValidationsMapping.numeric)
            return _with_digits(made, schema.get("max_digits"), schema.get("decimal_places"))

        def timedelta_schema(self, schema: Any) -> Schema:
            if self._config.ser_json_timedelta == "float" and self.mode == "serialization":
                number: Schema = super().timedelta_schema(schema)
                return number
            least = schema.get("ge", schema.get("gt"))
            sign = "" if least is not None and least >= timedelta(0) else "-?"
            return _text(sign + _DURATION)

        def complex_schema(self, schema: Any) -> Schema:
            return _text(_COMPLEX)

        def date_schema(self, schema: Any) -> Schema:
            return _text(_DATE)

        def datetime_schema(self, schema: Any) -> Schema:
            return _text(f"{_DATE}T{_CLOCK}{'' if schema.get('tz_constraint') == 'naive' else _OFFSET}")

        def time_schema(self, schema: Any) -> Schema:
            return _text(f"{_CLOCK}{'' if schema.get('tz_constraint') == 'naive' else _OFFSET}")

    made: Schema = adapter.json_schema(schema_generator=Exact, mode="validation")
    return made


def _text(pattern: str) -> Schema:
    return {"type": "string", "pattern": f"^(?:{pattern})$"}


def _with_digits(schema: Schema, digits: int | None, places: int | None) -> Schema:
    """The numbers of a schema with at most so many digits, and so many of them after the point."""
    if digits is None:
        return schema if places is None else {"allOf": [schema, _places(places)]}
    if places is not None:
        fixed = _fixed(digits, min(places, digits))
        # pydantic counts the 0 before the point.
        return {"allOf": [schema, fixed if places < digits else {**fixed, "not": {"const": 0}}]}
    ways = [_fixed(digits, places) for places in range(min(digits, _MAX_PLACES) + 1)]
    return {"allOf": [schema, {"anyOf": ways}]}


def _places(places: int) -> Schema:
    return {"multipleOf": 1 if places <= 0 else float(Decimal(1).scaleb(-places))}


def _fixed(digits: int, places: int) -> Schema:
    beyond = 10 ** (digits - places)
    return {"exclusiveMinimum": -beyond, "exclusiveMaximum": beyond, **_places(places)}
