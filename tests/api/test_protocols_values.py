"""Values without quotes: both forms of a value that may be a text or something else, and what each is read as."""

from __future__ import annotations

import ast
import json
import random
import re
from typing import Any

import pytest

import logitree as lt
from logitree.protocols import PROTOCOLS, Protocol
from protocol_texts import read, rendered, spelled, vocabulary

jsonschema = pytest.importorskip("jsonschema")

KEYED = [
    one
    for one in PROTOCOLS
    if one.calls and one.calls.pairs and len(one.calls.pairs.ways) == 1 and not one.calls.pairs.nested
]
DEFS = {"o": {"anyOf": [{"const": "x"}, {"type": "null"}]}}
SCHEMAS: list[Any] = [
    {"type": ["string", "null"]},
    {"anyOf": [{"type": "string"}, {"type": "null"}]},
    {"anyOf": [{"type": "string", "maxLength": 4}, {"type": "integer", "minimum": 3}]},
    {"type": ["string", "integer"], "minimum": 3, "maxLength": 2},
    {"enum": ["a", 3, None, "3", "True"]},
    {"anyOf": [{"$ref": "#/$defs/o"}, {"type": "boolean"}]},
    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    {"type": ["string", "object"]},
    {"type": ["boolean", "null"]},
    {"const": True},
    {"type": "string", "format": "date"},
    {"type": ["string", "null"], "format": "date"},
    {"allOf": [{"type": ["string", "integer"]}, {"not": {"enum": ["a", 3]}}]},
    {"oneOf": [{"type": "string", "maxLength": 1}, {"type": ["string", "null"], "minLength": 1}]},
    {"not": {"type": ["array", "object", "string"]}},
    {"enum": ["a", "1", "x"], "pattern": "^.$", "maxLength": 1},
    {"type": "number"},
    {"type": "string"},
    {},
    True,
]
VALUES = [
    "",
    "null",
    "a",
    "x",
    "1",
    "3",
    "77",
    "1e400",
    "NaN",
    "true",
    "True",
    "False",
    "None",
    '"a"',
    '["a"]',
    "[1]",
    "[1",
]
VALUES += ["2024-01-01", '"2024-01-01"', "{}", '{"a": "b"}', '["a', "Oslo ", "[see](b)", "-", "3.5"]


OTHERS: list[Any] = [None, 1, 3, 77, True, 3.5, [1], ["a"], {}, {"a": "b"}]
"""Values that are no texts."""


def called(protocol: Protocol, value: str) -> str:
    """A call of f with this value."""
    assert protocol.calls is not None
    assert protocol.calls.pairs is not None
    pairs, tail = protocol.calls.pairs, protocol.calls.tail
    whole = "".join(text for text, _ in rendered(protocol, None, "", [("f", {})]))
    at = whole.index(tail)
    return whole[:at] + pairs.begin + "a" + pairs.middle + value + pairs.end + whole[at:]


def expected(value: str, oracle: Any, protocol: Protocol) -> Any:
    """The slow version: what is valid as something other than a text is that, otherwise it is the text; KeyError for
    what is neither."""
    words = {"True": True, "False": False, "None": None}
    try:
        other = json.loads(value, parse_constant=lambda name: words[name])
    except (ValueError, KeyError):
        other = words.get(value, "")
        written = protocol.calls.pairs.python if protocol.calls and protocol.calls.pairs else False
        if value in words and not written and not oracle.is_valid(value):
            return KeyError
    if not isinstance(other, str) and oracle.is_valid(other) and value != "1e400":
        return other
    return value if oracle.is_valid(value) else KeyError


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
@pytest.mark.parametrize("protocol", KEYED, ids=str)
def test_values_that_may_be_texts_have_both_forms(protocol: Protocol, schema: Any) -> None:
    vocab = vocabulary(protocol, "control")
    tools = {"f": {"type": "object", "properties": {"a": schema}, "required": ["a"], "$defs": DEFS}}
    constraint = protocol.constraint(tools=tools, tool_choice="f")
    whole = {"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {**DEFS, "a": schema}}
    oracle = jsonschema.Draft202012Validator(whole, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
    is_text = not any(oracle.is_valid(value) for value in OTHERS)
    for value in VALUES:
        tokens = spelled(called(protocol, value), vocab, random.Random(0), markers=True)
        matcher = constraint.matcher(vocab)
        is_allowed = matcher.validate(tokens) == len(tokens)
        if is_allowed:
            # Where the markers are text, the rest may be inside of a text of JSON.
            matcher.accept_many(tokens)
            is_allowed = matcher.is_accepting
        wanted = expected(value, oracle, protocol)
        # A bracket without its end would take the end of the value with it.
        unclosed = value == '["a' and not is_text
        assert is_allowed == (wanted is not KeyError and not unclosed), value
        if not unclosed:
            (call,) = read(protocol, vocab, [tokens], tools=tools).tool_calls
            if wanted is not KeyError:
                assert (call.arguments, type(call.arguments["a"])) == ({"a": wanted}, type(wanted))


@pytest.mark.parametrize("protocol", KEYED, ids=str)
def test_drawn_values_are_valid(protocol: Protocol) -> None:
    vocab = vocabulary(protocol, "control")
    pieces = ["null", "True", "1", "33", '"', "a", "[", "]", "{", "}", ",", ":", " ", "\\", "e5", ".", "false", "\n"]
    for number, schema in enumerate(SCHEMAS):
        tools = {"f": {"type": "object", "properties": {"a": schema}, "required": ["a"], "$defs": DEFS}}
        whole = {"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {**DEFS, "a": schema}}
        oracle = jsonschema.Draft202012Validator(whole, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
        matcher = protocol.constraint(tools=tools, tool_choice="f").matcher(vocab)
        begin, _, end = called(protocol, "§").partition("§")
        matcher.accept_many(spelled(begin, vocab, random.Random(0), markers=True))
        closing = spelled(end, vocab, random.Random(0), markers=True)
        for seed in range(40):
            rng, one, written = random.Random(100 * number + seed), matcher.fork(), ""
            for piece in rng.choices([*pieces, *(protocol.calls.pairs.end.strip()[:3],)], k=rng.randrange(12)):  # type: ignore[union-attr]
                if one.validate(list(piece.encode())) == len(piece.encode()):
                    one.accept_many(list(piece.encode()))
                    written += piece
            if one.validate(closing) < len(closing):
                continue
            (call,) = protocol.parse(begin + written + end, tools=tools).tool_calls
            assert oracle.is_valid(call.arguments["a"]), (written, call)


def test_nested_elements_mean_what_their_schema_says() -> None:
    protocol = Protocol.named("minimax_m3")
    place = {"type": "object", "properties": {"name": {"type": "string"}, "at": {"$ref": "#/$defs/point"}}}
    point = {"type": "array", "items": {"type": "number", "multipleOf": 0.5}, "maxItems": 3}
    properties = {
        "places": {"type": "array", "items": {"anyOf": [place, {"type": "integer", "minimum": 0}]}},
        "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "boolean"}], "items": False},
        "free": {"type": ["string", "number", "null"]},
        "item": {"type": "object", "properties": {"item": {"type": "string"}}},
    }
    schema = {"type": "object", "properties": properties, "required": ["places"], "$defs": {"point": point}}
    tools = {"f": schema}
    values = {
        "places": [
            [],
            [7],
            [{}],
            [{"name": ""}, 3, {"name": "1", "at": []}],
            [{"at": [1.5]}, {"name": "a\n]<x", "at": [0, 2]}],
        ],
        "pair": [[], ["true"], ["", False], ["null", True]],
        "free": ["", "x", 3, None, "3a", "</free>"],
        "item": [{}, {"item": ""}, {"item": "item"}],
    }
    rng = random.Random(5)
    for kind in ("control", "text"):
        vocab = vocabulary(protocol, kind)
        constraint = protocol.constraint(tools=tools, tool_choice="required")
        for _ in range(200):
            arguments = {key: rng.choice(some) for key, some in values.items() if key == "places" or rng.random() < 0.6}
            pieces = rendered(protocol, None, "", [("f", arguments)])
            tokens = [
                id for text, marks in pieces for id in spelled(text, vocab, rng, markers=marks and kind != "text")
            ]
            assert constraint.matcher(vocab).validate(tokens) == len(tokens), arguments
            (call,) = read(protocol, vocab, [tokens], tools=tools).tool_calls
            assert (call.name, call.arguments) == ("f", arguments)
    # Without a schema a list is what has items alone.
    (call,) = protocol.parse(
        "".join(text for text, _ in rendered(protocol, None, "", [("g", {"a": [1, {"b": "x"}]})]))
    ).tool_calls
    assert call.arguments == {"a": [1, {"b": "x"}]}


@pytest.mark.parametrize(
    "broken", ["</city>", "<city>", "<a", "]<]minimax[>[</x>", "]<]minimax[>[<x>", "]<]minimax[>[>"]
)
def test_elements_that_do_not_fit_are_content(broken: str) -> None:
    protocol = Protocol.named("minimax_m3")
    whole = "".join(text for text, _ in rendered(protocol, None, "", [("f", {"city": ["§"]})]))
    found = protocol.parse(whole.replace("§", broken))
    if broken.startswith("]<]"):
        assert (found.tool_calls, found.content) == ((), whole.replace("§", broken))
        assert "malformed" in found.parts[0].note
    else:
        assert [call.arguments for call in found.tool_calls] == [{"city": [broken]}]


def test_a_model_that_does_not_reason_may_say_so() -> None:
    protocol = Protocol.named("minimax_m3")
    for kind in ("control", "text"):
        vocab = vocabulary(protocol, kind)
        for reasoning, text, is_allowed in (
            (None, "</mm:think>ab", True),
            (None, "<mm:think>r</mm:think>ab", True),
            (None, "ab", True),
            (0, "</mm:think>ab", True),
            (0, "<mm:think>r</mm:think>ab", False),
            (True, "</mm:think>ab", False),
            (None, "<mm:think>r</mm:think></mm:think>ab", False),
        ):
            tokens = spelled(text, vocab, random.Random(1), markers=kind != "text")
            matcher = protocol.constraint(["ab"], reasoning=reasoning).matcher(vocab)
            assert (matcher.validate(tokens) == len(tokens)) == is_allowed, (kind, reasoning, text)
            if is_allowed:
                found = read(protocol, vocab, [tokens])
                assert found.content == "ab"
                assert bool(found.reasoning) == ("r" in text)


LITERALS = [
    "['a']",
    "['a', 1]",
    "[True, None]",
    "{'a': 'b'}",
    "{\"k\": 'x', 'a': None}",
    '["a"]',
    '{"k": "x"}',
    "['b', 'b']",
]
LITERALS += [
    "['it', \"'b'\"]",
    "[['a', 'a']]",
    "{'k': None}",
    '["a", "b"]',
    "{'k': [True]}",
    "[{'k': 'a'}]",
    "{'k': 1}",
]
LITERALS += [
    "('a',)",
    "['a'",
    "[]",
    "{}",
    "[True, true]",
    "['\\n', 'a\\'']",
    '[{"k": "a"}, {"k": "b"}]',
    "{'é': 'x'}",
    '["é"]',
]
OF_LITERALS: list[Any] = [
    {"type": "array"},
    {"type": "array", "items": {"type": "string"}},
    {"type": "array", "items": {"type": "string", "pattern": "^[abé]*$"}},
    {"type": "array", "items": {"type": ["boolean", "null", "string"]}, "uniqueItems": True},
    {
        "type": "array",
        "items": {"type": "object", "properties": {"k": {"type": "string"}}, "additionalProperties": False},
        "uniqueItems": True,
    },
    {"type": "object"},
    {"type": "object", "properties": {"k": {"enum": ["x", None, 1]}}, "required": ["k"], "additionalProperties": True},
    {"type": "object", "properties": {"k": {"enum": ["x", None, 1]}}, "required": ["k"], "additionalProperties": False},
]


@pytest.mark.parametrize("schema", OF_LITERALS, ids=str)
def test_literals_mean_what_python_reads(schema: dict[str, Any]) -> None:
    """Arrays and objects are allowed as Python or JSON writes them, and mean the same; items that must differ as JSON
    only."""
    (protocol,) = (one for one in KEYED if one.name == "seed_oss")
    vocab = vocabulary(protocol, "control")
    tools = {"f": {"type": "object", "properties": {"a": schema}, "required": ["a"]}}
    oracle = jsonschema.Draft202012Validator(schema)
    constraint = protocol.constraint(tools=tools, tool_choice="f")
    for written in LITERALS:
        try:
            value = ast.literal_eval(re.sub(r"\btrue\b", "True", written))
        except SyntaxError:
            value = None
        fits = isinstance(value, list | dict) and oracle.is_valid(value)
        try:
            json.loads(written)
        except ValueError:
            fits = fits and not schema.get("uniqueItems")
        tokens = spelled(called(protocol, written), vocab, random.Random(0), markers=True)
        assert (constraint.matcher(vocab).validate(tokens) == len(tokens)) == fits, written
        if fits:
            (call,) = read(protocol, vocab, [tokens], tools=tools).tool_calls
            assert call.arguments == {"a": value}
    pieces = [
        "'",
        '"',
        "[",
        "]",
        "{",
        "}",
        ", ",
        ": ",
        "a",
        "k",
        "x",
        "\\n",
        "True",
        "null",
        "None",
        "1",
        "é",
        "[]",
        "'k': ",
    ]
    begin, _, end = called(protocol, "§").partition("§")
    matcher = constraint.matcher(vocab)
    matcher.accept_many(spelled(begin, vocab, random.Random(0), markers=True))
    closing, drawn = spelled(end, vocab, random.Random(0), markers=True), 0
    for seed in range(120):
        rng, one, written = random.Random(seed), matcher.fork(), ""
        for piece in rng.choices(pieces, k=60):
            if one.validate(list(piece.encode())) == len(piece.encode()):
                one.accept_many(list(piece.encode()))
                written += piece
            if one.validate(closing) == len(closing):
                (call,) = protocol.parse(begin + written + end, tools=tools).tool_calls
                assert oracle.is_valid(call.arguments["a"]), (written, call)
                drawn += 1
    assert drawn > 30


def test_a_text_of_a_tool_that_says_text_is_the_text() -> None:
    for protocol in KEYED:
        tools = {"f": {"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]}}
        for value in ("123", "true", "[1]", '"quoted"', "1e999", "NaN"):
            (call,) = protocol.parse(called(protocol, value), tools=tools).tool_calls
            assert call.arguments == {"a": value}
        for value, other in (("null", None), ("None", None)):
            (call,) = protocol.parse(called(protocol, value), tools=tools).tool_calls
            assert call.arguments == {"a": other}


def test_optional_texts_of_python_types_are_texts() -> None:
    def f(a: str | None = None, b: bool = False, c: int | str = 3) -> None: ...

    protocol = Protocol.named("qwen3_coder")
    text = "<tool_call>\n<function=f>\n<parameter=a>\n{}\n</parameter>\n<parameter=b>\nTrue\n</parameter>\n"
    text += "<parameter=c>\n{}\n</parameter>\n</function>\n</tool_call>"
    vocab = vocabulary(protocol, "text")
    for a, c, arguments in (
        ("Oslo", "7", {"a": "Oslo", "b": True, "c": 7}),
        ("None", "x", {"a": None, "b": True, "c": "x"}),
    ):
        tokens = list(text.format(a, c).encode())
        assert protocol.constraint(tools=[f], tool_choice="f").matcher(vocab).validate(tokens) == len(tokens)
        (call,) = protocol.parse(tokens, vocab, tools=[f]).tool_calls
        assert (call.arguments, call.note) == (arguments, "")


def test_keyword_arguments_are_allowed_as_python_and_as_json_write_them() -> None:
    protocol = Protocol.named("olmo_3")
    vocab = vocabulary(protocol, "text")
    properties = {"a": {"type": "boolean"}, "b": {"type": ["null", "integer"]}, "c": {"enum": ["x", None]}}
    tools = {"f": {"type": "object", "properties": properties, "required": ["a"]}}
    constraint = protocol.constraint(tools=tools, tool_choice="f")

    def arguments(written: str) -> Any:
        text = f"<function_calls>\nf({written})\n</function_calls>"
        if constraint.matcher(vocab).validate(text.encode()) < len(text):
            return None
        (call,) = read(protocol, None, [text], tools=tools).tool_calls
        return dict(call.arguments)

    assert arguments("a=True") == arguments("a=true") == {"a": True}
    assert (
        arguments("a=False, b=None, c='x'") == arguments('a=false, b=null, c="x"') == {"a": False, "b": None, "c": "x"}
    )
    assert arguments("a=true, b=7, c=null") == {"a": True, "b": 7, "c": None}
    for wrong in ("", "b=1", "a=1", "a=True, c=3", "c=null, a=True", "a=True,", "True"):
        assert arguments(wrong) is None, wrong
    closed = {"f": {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}}
    with pytest.raises(lt.ConstraintError, match="'uniqueItems' has no meaning for Python's values"):
        protocol.constraint(tools=closed).matcher(vocab)
    named = {"f": {"type": "object", "properties": {"class": {}}}}
    with pytest.raises(lt.ConstraintError, match="no name of an argument in Python"):
        protocol.constraint(tools=named).matcher(vocab)
