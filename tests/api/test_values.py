"""What outputs mean under Python's types: exact grammars, values of the types, an error of ours where they differ."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import math
import pickle
import random
import sys
import typing
import uuid
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from typing_extensions import TypedDict

import logitree as lt
from logitree import _schemas
from logitree._constraint import constraint_of
from logitree.protocols import Protocol
from logitree.protocols._former import FORMS

pydantic = pytest.importorskip("pydantic")
Field = pydantic.Field

VOCABULARY = lt.Vocabulary.from_tokens(
    [bytes([byte]) for byte in range(256)] + [b"</s>"], kinds=["normal"] * 256 + ["control"], end_tokens=[256]
)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Order(pydantic.BaseModel):
    price: Decimal = Field(max_digits=5, decimal_places=2, ge=0)
    wait: datetime.timedelta
    weight: float
    count: int


@dataclasses.dataclass
class Stay:
    begin: datetime.date
    nights: int
    rates: list[Decimal]


class Point(TypedDict):
    at: complex
    seen: datetime.datetime


EXACT: list[Any] = [
    int,
    float,
    Decimal,
    Annotated[Decimal, Field(max_digits=5, decimal_places=2, ge=0)],
    Annotated[Decimal, Field(max_digits=3)],
    Annotated[Decimal, Field(decimal_places=3, lt=10)],
    Annotated[Decimal, Field(max_digits=2, decimal_places=4)],
    Annotated[Decimal, Field(max_digits=40)],
    datetime.timedelta,
    Annotated[datetime.timedelta, Field(ge=datetime.timedelta(0))],
    complex,
    datetime.date,
    datetime.datetime,
    pydantic.NaiveDatetime,
    pydantic.AwareDatetime,
    datetime.time,
    uuid.UUID,
    Annotated[float, Field(gt=0, lt=1e-300)],
    Annotated[float, Field(gt=1e307)],
    Annotated[int, Field(multiple_of=7, ge=-100)],
    list[Annotated[Decimal, Field(max_digits=3)]],
    dict[str, datetime.timedelta],
    Order,
    Stay,
    Point,
]


def written(grammar: lt.Grammar, dice: random.Random) -> str | None:
    """A random text of a grammar; None if it got too long."""
    matcher, out = grammar.matcher(VOCABULARY), b""
    while len(out) < 2_000:
        if matcher.is_accepting and (matcher.is_finished or dice.random() < 0.2):
            return out.decode()
        allowed = [token for token in matcher.allowed() if token < 128] or [t for t in matcher.allowed() if t < 256]
        token = dice.choice(allowed)
        if token == ord("\\") or (token == ord('"') and ord('"') not in allowed):
            continue
        matcher.accept(token)
        out += bytes([token])
    return None


@pytest.mark.parametrize("source", EXACT, ids=str)
def test_every_text_of_an_exact_type_is_a_value(source: Any) -> None:
    grammar, read = lt.Grammar.of(source, whitespace="compact"), _schemas.reader_of(source)
    loose = lt.Grammar.json_schema(_schemas.schema_of(source), whitespace="compact")
    dice, found = random.Random(7), 0
    for _ in range(40):
        text = written(grammar, dice)
        if text is None:
            continue
        found += 1
        value = read(text)
        assert loose.matches(text), text
        if isinstance(value, float):
            assert math.isfinite(value)
    assert found > 20


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (Decimal, "12.50"),
        (datetime.timedelta, '"P1DT2H30M"'),
        (datetime.timedelta, '"-PT0.5S"'),
        (datetime.timedelta, '"P2W"'),
        (complex, '"1.5-2j"'),
        (datetime.date, '"2024-02-29"'),
        (datetime.datetime, '"2024-02-29T23:59:59.5+01:00"'),
        (datetime.time, '"08:30:00Z"'),
    ],
)
def test_usual_texts_are_allowed(source: Any, text: str) -> None:
    assert lt.Grammar.of(source).matches(text)


def test_what_a_type_refuses_is_not_written() -> None:
    for source, text in [
        (int, "1e400"),
        (int, "1.0"),
        (int, "-0"),
        (int, "9" * 4301),
        (float, "1e400"),
        (float, "0.123456789012345678"),
        (Annotated[Decimal, Field(max_digits=3)], "12.34"),
        (datetime.timedelta, '"P"'),
        (datetime.timedelta, '"P1000000000D"'),
        (complex, '"one"'),
        (datetime.date, '"0000-01-01"'),
        (datetime.date, '"2023-02-29"'),
        (datetime.datetime, '"2024-01-01T23:59:60Z"'),
        (pydantic.NaiveDatetime, '"2024-01-01T00:00:00Z"'),
    ]:
        assert not lt.Grammar.of(source).matches(text), (source, text[:20])


class Even(pydantic.BaseModel):
    numbers: list[int]

    @pydantic.field_validator("numbers")
    @classmethod
    def even(cls, numbers: list[int]) -> list[int]:
        if any(number % 2 for number in numbers):
            raise ValueError("numbers must be even")
        return numbers


def test_what_the_type_refuses_is_an_error_of_ours() -> None:
    constraint = constraint_of(Even)
    assert constraint.value('{"numbers": [2]}', ()) == Even(numbers=[2])
    with pytest.raises(lt.ValueMismatchError, match="is no Even.*numbers must be even.*at /numbers") as caught:
        constraint.value('{"numbers": [1]}', ())
    error = caught.value
    assert isinstance(error, lt.ConstraintError) and isinstance(error, ValueError)
    assert (error.text, error.type, error.place) == ('{"numbers": [1]}', "Even", "/numbers")
    assert "even" in error.reason and "Generation.answer" in error.help
    with pytest.raises(lt.ValueMismatchError, match="is no Decimal"):
        constraint_of(Annotated[Decimal, pydantic.AfterValidator(_bad)]).value("1", ())


def _bad(value: Any) -> Any:
    raise ValueError("no")


def paint(colour: Colour, on: datetime.date, rooms: Literal[1, 2] = 1) -> None: ...


class Paint(pydantic.BaseModel):
    colour: Colour = Field(alias="color")


ARGUMENTS = '{"colour": "blue", "on": "2024-02-29"}'
VALUES = {"colour": Colour.BLUE, "on": datetime.date(2024, 2, 29)}


def called(style: Any, name: str, arguments: str) -> str:
    begin, before, behind, end = FORMS[style] if isinstance(style, str) else style
    return (begin + before).replace("{name}", name) + arguments + behind + end


@pytest.mark.filterwarnings("ignore:Grammar.tools:DeprecationWarning")
@pytest.mark.parametrize("style", ["hermes", "llama", ("[", "{name}(", ")", "]")])
def test_a_tool_has_the_same_values_in_every_way(style: Any) -> None:
    assert constraint_of(paint).value(ARGUMENTS, ()) == VALUES
    tools = lt.Grammar.tools([paint, Paint], style=style)
    text = f"So {called(style, 'paint', ARGUMENTS)} and " + called(style, "Paint", '{"color": "red"}')
    assert tools.matches(text)
    expected = [{"name": "paint", "arguments": VALUES}, {"name": "Paint", "arguments": {"color": Colour.RED}}]
    assert tools.value(text, ()) == expected
    assert pickle.loads(pickle.dumps(tools)).value(text, ()) == expected
    assert tools.value("No call.", ()) == []
    parser = Protocol.named("qwen3").constraint(tools=[paint, Paint]).parser()
    parser.feed(called("hermes", "paint", ARGUMENTS))
    parser.finish()
    assert parser.response.tool_calls[0].arguments == VALUES


@pytest.mark.filterwarnings("ignore:Grammar.tools:DeprecationWarning")
def test_arguments_that_a_tool_refuses() -> None:
    text = called("hermes", "paint", ARGUMENTS.replace("blue", "pink"))
    with pytest.raises(lt.ValueMismatchError, match="not what paint takes.*'red' or 'blue'"):
        lt.Grammar.tools([paint]).value(text, ())
    parser = Protocol.named("qwen3").constraint(tools=[paint]).parser()
    parser.feed(text)
    parser.finish()
    (call,) = parser.response.tool_calls
    assert call.arguments == {"colour": "pink", "on": "2024-02-29"} and "'red' or 'blue'" in call.note


@pytest.mark.filterwarnings("ignore:Grammar.tools:DeprecationWarning")
def test_tools_of_schemas_and_grammars_have_json_and_text() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "number"}}}
    tools = lt.Grammar.tools({"count": schema, "say": lt.Grammar.regex("[a-z]+")}, style="llama")
    text = "<function=count>" + '{"n": 2.5}' + "</function>"
    assert tools.value(text, ()) == [{"name": "count", "arguments": {"n": 2.5}}]
    text += "<function=say>hello</function>"
    assert tools.matches(text)
    with pytest.raises(lt.ValueMismatchError, match="malformed"):
        tools.value(text, ())
    assert not tools.matches("<function=count>" + '{"n": 1e999}' + "</function>")


def test_other_grammars_mean_their_text() -> None:
    grammar = lt.Grammar.regex("a+")
    assert grammar.value("aa", ()) == "aa" and pickle.loads(pickle.dumps(grammar)) == grammar


class Inner(typing.TypedDict, total=False):
    a: int
    b: typing.Required[str] if sys.version_info >= (3, 11) else str  # type: ignore[valid-type]


class Outer(typing.TypedDict):
    inner: Inner
    many: list[Inner | None]


def place(at: Inner, note: str = "") -> None: ...


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Required is in typing since 3.11")
def test_a_typed_dict_of_typing() -> None:
    value = {"inner": {"b": "x"}, "many": [{"a": 1, "b": "y"}, None]}
    assert constraint_of(Outer).value(json.dumps(value), ()) == value
    grammar = lt.Grammar.of(Outer)
    assert grammar.matches(json.dumps(value)) and not grammar.matches('{"inner": {}, "many": []}')
    assert lt.Grammar.of(place).matches('{"at": {"b": "x"}}')
    assert lt.Grammar.of(Annotated[list[Outer], Field(min_length=1)]).matches(json.dumps([value]))


def test_numbers_of_types_and_schemas() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}
    long = '{"n": 0.' + "3" * 40 + "}"
    assert lt.Grammar.json_schema(schema).matches(long)
    assert not lt.Grammar.json_schema(schema, numbers="plain").matches(long)
    assert not constraint_of(schema).inner.matches(long)
    assert not lt.Grammar.json(numbers="plain").matches(long)
    with pytest.raises(lt.ConstraintError, match='numbers is "few"; expected one of "any", "plain"'):
        lt.Grammar.json_schema(schema, numbers="few")  # type: ignore[arg-type]
    for value in [0.1, 1e22, 5e-324, sys.float_info.max, -0.0, 2**63, 1e16]:
        assert lt.Grammar.of(float).matches(json.dumps(value)), value
    assert lt.Grammar.of(int).matches(str(2**330))
    assert not lt.Grammar.of(int).matches(str(2**340)), "more than 100 digits"
    with pytest.raises(lt.ConstraintError, match="minimum"):
        lt.Grammar.json_schema({"type": "integer", "minimum": 10**150}, numbers="plain").matcher(VOCABULARY)
    plain = lt.Grammar.json_schema(schema, numbers="plain")
    assert pickle.loads(pickle.dumps(plain)) == plain != lt.Grammar.json_schema(schema)


@pytest.mark.parametrize(
    ("schema", "yes", "no"),
    [
        ({"type": "integer", "minimum": 5}, ["5", "10"], ["4", "5.0", "1e1"]),
        ({"type": "number", "minimum": 0.5, "maximum": 2}, ["0.5", "1", "2.0"], ["0.4", "1.000000000000000000"]),
        ({"type": "number", "multipleOf": 0.01}, ["0.25", "3"], ["0.001", "0.250000000000000000000"]),
        ({"not": {"type": "integer"}}, ["0.5", '"a"'], ["1", "1.0"]),
        ({"oneOf": [{"type": "integer"}, {"type": "number", "maximum": 5}]}, ["6", "0.5"], ["5", "6.5"]),
        ({"const": 3}, ["3"], ["3.0000000000000000000", "3e0"]),
        ({"enum": [0.1, 7]}, ["0.1", "7"], ["0.10000000000000000000", "8"]),
        ({"not": {"const": 3}, "type": "number"}, ["2", "3.5"], ["3", "3.0"]),
        ('{"const": 3.141592653589793238462643}', ["3.141592653589793238462643"], ["3.141592653589793"]),
        ({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, ["[1,2]"], ["[1,1]", "[1,2.0]"]),
        (True, ["[1,2.5]"], ["[1e400]", "1e-400"]),
    ],
    ids=str,
)
def test_plain_numbers_under_keywords(schema: Any, yes: list[str], no: list[str]) -> None:
    plain, loose = lt.Grammar.json_schema(schema, numbers="plain"), lt.Grammar.json_schema(schema)
    for text in yes:
        assert plain.matches(text) and loose.matches(text), text
    assert not [text for text in no if plain.matches(text)]


def test_contradictions_name_their_place() -> None:
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "minimum": 5, "maximum": 3}}}
    with pytest.raises(lt.ConstraintError, match="`minimum` and `maximum` contradict each other") as caught:
        lt.Grammar.json_schema(schema).matcher(VOCABULARY)
    assert caught.value.place == "#/properties/a"
    with pytest.raises(lt.ConstraintError, match="`minimum` and `maximum` contradict each other"):
        ("value: " + lt.Grammar.json_schema(schema)).matcher(VOCABULARY)
    del schema["required"]
    assert lt.Grammar.json_schema(schema).matches("{}")
