"""The fields of a request, read one by one: what is wrong with one, or means nothing, is an error that names it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from .. import _core
from .._core import Constraint, Grammar
from .._errors import error
from .._params import SamplingParams
from ..engines._chat import answer_asked
from ..engines._forms import read_form
from ..engines._requests import READERS, read_json

ANSWERS = ("text", "json_object", "json_schema")
"""Types of `response_format` that are OpenAI's; any other is the JSON form of a constraint."""
IGNORED = frozenset({"metadata", "safety_identifier", "service_tier", "store", "user", "prompt_cache_key"})
"""Fields that change no token."""
_CONSTRAINTS = ("response_format", "grammar", "json_schema", "structured_outputs")
_NAMES = {
    "max_completion_tokens": "max_tokens",
    "n_predict": "max_tokens",
    "repeat_last_n": "penalty_last_n",
    "typical_p": "typ_p",
}
"""Other names of options."""
SAMPLING = sorted(SamplingParams.__annotations__.keys() - {"n_vocab", "vocabulary", "sequence", "dry_breakers"})
"""Parameters of samplers that are numbers and texts."""


class RequestError(Exception):
    """A request that is answered with an error.

    Args:
        message: what is wrong, and what to do.
        param: the field.
        status: of HTTP.
        kind: as OpenAI's errors have it in "type".
    """

    def __init__(
        self, message: str, param: str | None = None, status: int = 400, kind: str = "invalid_request_error"
    ) -> None:
        super().__init__(message)
        self.param, self.status, self.kind = param, status, kind


class Fields:
    """The fields of a request that were not read yet."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        # null is as good as nothing
        self._left = {name: value for name, value in given.items() if value is not None}

    def take(self, name: str, default: Any = None) -> Any:
        """A field of any kind."""
        return self._left.pop(name, default)

    def flag(self, name: str, default: bool = False) -> bool:
        """A field that is true or false."""
        value = self.take(name, default)
        if not isinstance(value, bool):
            raise RequestError(f"{name} is {value!r:.60}: give true or false", name)
        return value

    def whole(self, name: str, default: int | None, low: int, high: int) -> int | None:
        """A field that is a whole number from `low` to `high`."""
        value = self.take(name, default)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or value != math.floor(value):
            raise RequestError(f"{name} is {value!r:.60}: give a whole number", name)
        if not low <= value <= high:
            raise RequestError(f"{name} is {value!r:.60}: give {low} to {high}", name)
        return int(value)

    def text(self, name: str, default: str | None = None) -> str | None:
        """A field that is a text."""
        value = self.take(name, default)
        if value is not None and not isinstance(value, str):
            raise RequestError(f"{name} is {value!r:.60}: give a text", name)
        return value

    def texts(self, name: str, most: int) -> list[str]:
        """A field that is a text or a list of texts, none of them empty."""
        value = self.take(name, [])
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value) or len(value) > most:
            raise RequestError(f"{name} is {value!r:.60}: give a text, or at most {most} of them", name)
        return value

    def objects(self, name: str, most: int) -> list[dict[str, Any]]:
        """A field that is a list of objects."""
        value = self.take(name, [])
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise RequestError(f"{name} is {value!r:.60}: give a list of objects", name)
        if len(value) > most:
            raise RequestError(f"{name} has {len(value)} entries: give at most {most}", name)
        return value

    def sampling(self) -> dict[str, Any]:
        """The parameters of samplers, by llama.cpp's names."""
        found = {name: self._left.pop(name) for name in SAMPLING if name in self._left}
        bias = found.pop("logit_bias", None)
        if bias:
            found["logit_bias"] = _bias(bias)
        return found

    def finish(self) -> None:
        """An error for a field that was not read."""
        unknown = sorted(set(self._left) - IGNORED)
        if unknown:
            raise RequestError(f"{unknown[0]} is no field of this request", unknown[0])


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a request.

    Raises:
        RequestError: it is something else.
    """
    try:
        found = json.loads(body, parse_constant=_no_number)
    except RecursionError:
        raise RequestError("the body is nested too deep") from None
    except ValueError as wrong:
        raise RequestError(f"the body is no JSON: {wrong}") from None
    if not isinstance(found, dict):
        raise RequestError("the body is no JSON object")
    return found


def renamed(given: Mapping[str, Any]) -> dict[str, Any]:
    """A request with one name for each option."""
    made = dict(given)
    for old, new in _NAMES.items():
        if made.get(old) is not None:
            if made.get(new) is not None:
                raise RequestError(f"both {old} and {new}: give one of them", old)
            made[new] = made.pop(old)
    return made


def constraint_asked(fields: Fields, catalogues: Mapping[str, str]) -> Constraint | None:
    """What the output must be, in the ways that OpenAI's, llama.cpp's and vLLM's clients say it.

    Args:
        fields: of the request.
        catalogues: files of catalogues by the names that requests give them.

    Raises:
        RequestError: it is said twice.
        ConstraintError, LimitError: it cannot be honoured.
    """
    given = {name: value for name in _CONSTRAINTS if (value := fields.take(name)) is not None}
    if given.get("response_format") in ("text", {"type": "text"}):
        del given["response_format"]
    if len(given) > 1:
        raise RequestError(f"both {' and '.join(given)}: give one of them", list(given)[1])
    for name, value in given.items():
        try:
            return _constraint(name, value, catalogues)
        except _core.LogitreeError as wrong:
            raise RequestError(str(wrong), name) from wrong
    return None


def _constraint(name: str, value: Any, catalogues: Mapping[str, str]) -> Constraint | None:
    if name == "grammar":
        if not isinstance(value, str):
            raise error(_core.ConstraintError, f"{value!r:.60} is no grammar", help="give a text in GBNF")
        return Grammar.gbnf(value)
    if name == "json_schema":
        return _schema(value)
    if name == "response_format":
        kind = value.get("type") if isinstance(value, Mapping) else value
        is_form = kind == "json_schema" and "schema" in value
        if (kind in ANSWERS and not is_form) or not isinstance(kind, str):
            return answer_asked(value)
        return read_form(value, files=catalogues)
    if not isinstance(value, Mapping) or len(value) != 1:
        help = 'give one of {"json": ...}, {"regex": ...}, {"choice": [...]}, {"grammar": ...}'
        raise error(
            _core.ConstraintError,
            f"{value!r:.60} has {len(value) if isinstance(value, Mapping) else 'no'} fields, and one is needed",
            help=help,
        )
    ((kind, spec),) = value.items()
    if kind == "json":
        return read_json(spec, "bounded") if isinstance(spec, str) else _schema(spec)
    if kind == "choice" and isinstance(spec, list) and spec and all(isinstance(one, str) for one in spec):
        return Grammar.choice(spec)
    if kind == "grammar" and isinstance(spec, str):
        return Grammar.gbnf(spec)
    if kind in READERS and isinstance(spec, str):
        return READERS[kind](spec, "bounded")
    raise error(_core.ConstraintError, f"{kind!r:.60} with {spec!r:.60} means nothing")


def _schema(value: Any) -> Constraint:
    if not isinstance(value, Mapping | bool):
        raise error(_core.ConstraintError, f"{value!r:.60} is no JSON Schema")
    return read_json(json.dumps(value), "bounded")


def _bias(given: Any) -> dict[int, float]:
    """OpenAI's object of texts, or llama.cpp's list of pairs."""
    pairs = given.items() if isinstance(given, Mapping) else given
    try:
        return {int(token): float(bias) for token, bias in pairs}
    except (TypeError, ValueError):
        message = f"logit_bias is {given!r:.60}: give an object of token ids and numbers"
        raise RequestError(message, "logit_bias") from None


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")
