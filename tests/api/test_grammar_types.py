"""`Grammar.of`: what Python's types say as grammars, with pydantic and without."""

from __future__ import annotations

import dataclasses
import enum
import importlib.util
import json
import subprocess
import sys
from typing import Annotated, Any, Literal, Optional, Union

import pytest
from typing_extensions import NotRequired, TypedDict

import logitree as lt

of = lt.Grammar.of
needs_pydantic = pytest.mark.skipif(importlib.util.find_spec("pydantic") is None, reason="pydantic is not installed")


class Colour(enum.Enum):
    RED = "red"
    DEEP = 3


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


class Odd(enum.Enum):
    PAIR = (1, 2)


PLAIN: list[tuple[Any, list[Any], list[Any]]] = [
    (bool, [True, False], [1, "true"]),
    (int, [0, -7], [1.5, "1", True]),
    (float, [0, -7.25], ["1", None]),
    (str, ["", "é\n"], [1]),
    (None, [None], [0]),
    (list, [[], [1, "a"]], [{}]),
    (dict, [{}, {"a": [1]}], [[]]),
    (Any, [None, {"a": 1}], []),
    (Colour, ["red", 3], ["RED", 4]),
    (Size, [1, 2], [3, "1"]),
    (Literal["a", 1, None], ["a", 1, None], ["b", 2]),
    (Literal[Colour.RED], ["red"], ["RED"]),
    (int | None, [1, None], ["1"]),
    (Optional[str], ["x", None], [1]),  # noqa: UP045  both ways are written
    (Union[int, Literal["many"]], [3, "many"], ["few"]),  # noqa: UP007
    (list[int], [[], [1, 2]], [["a"], 1]),
    (dict[str, bool], [{}, {"a": True}], [{"a": 1}]),
    (list[dict[str, list[Size]]], [[{"a": [1, 2]}]], [[{"a": [3]}]]),
]


def holds(grammar: lt.Grammar, yes: list[Any], no: list[Any]) -> None:
    for value in yes:
        assert grammar.matches(json.dumps(value, ensure_ascii=False)), value
    for value in no:
        assert not grammar.matches(json.dumps(value)), value


@pytest.mark.parametrize(("source", "yes", "no"), PLAIN, ids=[str(source) for source, _, _ in PLAIN])
def test_plain_types(source: Any, yes: list[Any], no: list[Any]) -> None:
    holds(of(source), yes, no)


@needs_pydantic
@pytest.mark.parametrize(("source", "yes", "no"), PLAIN, ids=[str(source) for source, _, _ in PLAIN])
def test_plain_types_are_what_pydantic_says(source: Any, yes: list[Any], no: list[Any]) -> None:
    import pydantic

    holds(lt.Grammar.json_schema(pydantic.TypeAdapter(source).json_schema()), yes, no)


def test_plain_types_need_no_pydantic() -> None:
    program = """
import enum, sys
sys.modules["pydantic"] = None
import logitree as lt
class Colour(enum.Enum):
    RED = "red"
assert lt.Grammar.of(Colour).matches('"red"')
assert lt.Grammar.of(list[int]).matches("[1]")
for source in (tuple[int, str], lambda x: x):
    try:
        lt.Grammar.of(source)
    except lt.ConstraintError as error:
        assert "pip install" in error.help, error
    else:
        raise SystemExit("no error")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_schemas_grammars_and_what_is_neither() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert of(schema) == lt.Grammar.json_schema(schema)
    grammar = lt.Grammar.regex("a")
    assert of(grammar) == grammar
    integer = {"type": "integer"}
    assert of(int, whitespace="compact") == lt.Grammar.json_schema(integer, whitespace="compact", numbers="plain")
    assert of(int, numbers="any") == lt.Grammar.json_schema(integer)
    with pytest.raises(lt.ConstraintError, match="for a grammar"):
        of(grammar, order="any")
    with pytest.raises(TypeError, match=r"Grammar\.literal"):
        of("text")
    with pytest.raises(lt.ConstraintError, match="JSON cannot write"):
        of(Odd)


@needs_pydantic
def test_models_in_the_order_of_their_fields() -> None:
    import pydantic

    class Address(pydantic.BaseModel):
        street: str
        properties: int = 1  # named as a keyword is

    class Person(pydantic.BaseModel):
        reasoning: str
        name: Annotated[str, pydantic.Field(max_length=4, pattern="^[A-Z]")]
        homes: list[Address] = []
        size: Size | None = None

    grammar = of(Person)
    for person in (
        Person(reasoning="é", name="Bo"),
        Person(
            reasoning="", name="Bob", homes=[Address(street="x"), Address(street="y", properties=3)], size=Size.LARGE
        ),
    ):
        for indent in (None, 2):
            assert grammar.matches(json.dumps(person.model_dump(mode="json"), indent=indent, ensure_ascii=False))
        assert Person.model_validate_json(person.model_dump_json()) == person
        assert grammar.matches(person.model_dump_json())
    name, text = '"name": "Bo"', '"reasoning": ""'
    assert grammar.matches(f"{{{text}, {name}}}")
    assert not grammar.matches(f"{{{name}, {text}}}")
    assert of(Person, order="any").matches(f"{{{name}, {text}}}")
    more = f'{{{text}, {name}, "more": 1}}'
    assert not grammar.matches(more)
    assert of(Person, closed=False).matches(more)
    assert not grammar.matches(f'{{{text}, "name": "bo"}}')
    inner = f'{{{text}, {name}, "homes": [{{"street": "x", "more": 1}}]}}'
    assert not grammar.matches(inner)


@needs_pydantic
def test_models_that_speak_of_other_fields() -> None:
    import pydantic

    class Open(pydantic.BaseModel, extra="allow"):
        a: int

    class Node(pydantic.BaseModel):
        value: int
        below: list[Node] = []

    assert of(Open).matches('{"a": 1, "more": "x"}')
    Node.model_rebuild(_types_namespace={"Node": Node})
    assert of(Node).matches('{"value": 1, "below": [{"value": 2, "below": [{"value": 3}]}]}')
    assert not of(Node).matches('{"value": 1, "below": [{"below": []}]}')


class Reply(TypedDict):
    text: str
    id: NotRequired[int]


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


@needs_pydantic
def test_dataclasses_and_typed_dicts() -> None:
    holds(of(Point), [{"x": 1.5}, {"x": 0, "y": -2}], [{}, {"y": 1}, {"x": "1"}, {"x": 1, "z": 2}])

    class Reply(TypedDict):
        text: str
        id: NotRequired[int]

    holds(of(Reply), [{"text": ""}, {"text": "a", "id": 3}], [{"id": 3}, {"text": "a", "more": 1}])
    holds(of(tuple[int, str]), [[1, "a"]], [[1], ["a", 1]])


def book(city: str, nights: Annotated[int, "how many"] = 1, *, json: bool = False, **_more: Any) -> None:
    """Nothing is booked."""


def search(query: str, limit: int | None = None, *, copy: bool = False) -> list[str]:
    """Finds nothing."""
    return []


class Tool:
    def __call__(self, code: str) -> None: ...

    def method(self, n: int) -> None: ...


@needs_pydantic
def test_functions_are_objects_of_their_parameters() -> None:
    grammar = of(search)
    holds(
        grammar,
        [{"query": "x"}, {"query": "", "limit": 3}, {"query": "x", "limit": None, "copy": True}],
        [{}, {"limit": 3}, {"query": 3}, {"query": "x", "other": 1}],
    )
    holds(of(Tool()), [{"code": "x"}], [{}, {"self": 1, "code": ""}])
    holds(of(Tool().method), [{"n": 1}], [{"n": "1"}])
    holds(of(lambda a, b=2: a), [{"a": [1]}, {"a": None, "b": "x"}], [{"b": 2}])
    holds(of(lambda: None), [{}], [{"a": 1}])
    with pytest.raises(lt.ConstraintError, match=r"\*\*_more"):
        of(book)


@needs_pydantic
def test_what_has_no_schema_is_refused() -> None:
    class Strange: ...

    for source in (Strange, 3, object()):
        with pytest.raises(lt.ConstraintError):
            of(source)
