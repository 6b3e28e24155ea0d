"""Arrays with unique items: texts held equal to jsonschema, masks to all texts of finite languages."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

import logitree as lt
from grammars import small, tokens_of

ITEMS: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    2,
    "",
    "a",
    "ab",
    "é",
    [],
    [1],
    ["a"],
    [1, 2],
    {},
    {"a": 1},
    {"a": 1, "b": "a"},
]
TOKENS = [
    b'["',
    b'",',
    b'","',
    b'"]',
    b'a"',
    b'a",',
    b'a","',
    b'a"]',
    b'","a',
    b'","a"',
    b'",""',
    b'b","',
    b"]]",
    b"],[",
]
TOKENS += [
    b'"},{"',
    b'{"a',
    b'a":"',
    b'":"',
    b'":t',
    b'":true}',
    b"e}",
    b"e},",
    b"e},{",
    b'b":t',
    b"true,",
    b"e,",
    b"e,f",
    b"e]",
]


def vocabulary() -> lt.Vocabulary:
    tokens = [*(bytes([byte]) for byte in range(256)), *TOKENS]
    return lt.Vocabulary.from_tokens(tokens)


def in_all_orders(value: Any) -> list[Any]:
    if not isinstance(value, dict):
        return [value]
    return [dict(members) for members in itertools.permutations(value.items())]


def texts(schema: dict[str, Any]) -> list[bytes]:
    """All texts of a schema whose arrays and objects have few parts of few values, keys in any order."""

    def of(schema: Any, depth: int) -> list[tuple[str, Any]]:
        if "enum" in schema:
            orders = [value for one in schema["enum"] for value in in_all_orders(one)]
            return [(json.dumps(value, separators=(",", ":")), value) for value in orders]
        if schema["type"] == "string":
            every = (
                "".join(chars) for n in range(schema["maxLength"] + 1) for chars in itertools.product("ab", repeat=n)
            )
            return [(json.dumps(value), value) for value in every]
        if schema["type"] == "array":
            found = []
            items = of(schema["items"], depth + 1)
            for n in range(schema.get("minItems", 0), schema["maxItems"] + 1):
                for chosen in itertools.product(items, repeat=n):
                    text = "[" + ",".join(text for text, _ in chosen) + "]"
                    found.append((text, [value for _, value in chosen]))
        else:
            found = []
            members = {key: of(value, depth + 1) for key, value in schema["properties"].items()}
            for n in range(len(members) + 1):
                for keys in itertools.permutations(members, n):
                    if not set(schema.get("required", ())) <= set(keys):
                        continue
                    for chosen in itertools.product(*(members[key] for key in keys)):
                        text = ",".join(f'"{key}":{text}' for key, (text, _) in zip(keys, chosen, strict=True))
                        found.append(("{" + text + "}", {k: v for k, (_, v) in zip(keys, chosen, strict=True)}))
        valid = jsonschema().Draft202012Validator(schema).is_valid
        return [(text, value) for text, value in found if valid(value)]

    return [text.encode() for text, _ in of(schema, 0)]


def jsonschema() -> Any:
    return pytest.importorskip("jsonschema")


WORD = {"type": "string", "pattern": "^[ab]*$", "maxLength": 2}
CLOSED = {"type": "object", "additionalProperties": False}
FINITE: list[dict[str, Any]] = [
    {"type": "array", "items": {**WORD, "maxLength": 1}, "maxItems": 4},
    {"type": "array", "items": {**WORD, "maxLength": 1}, "minItems": 3, "maxItems": 3},
    {"type": "array", "items": WORD, "maxItems": 3},
    {"type": "array", "items": {"enum": ["a", [True], [True, "a"], {"a": "b"}, {"a": "b", "b": None}]}, "maxItems": 3},
    {
        "type": "array",
        "items": {**CLOSED, "properties": {"a": {"enum": [True, False]}, "b": {"enum": ["a"]}}, "required": ["a"]},
        "maxItems": 3,
    },
    {
        "type": "array",
        "items": {**CLOSED, "properties": {"a": {"enum": ["a", True]}}},
        "maxItems": 4,
    },
    {
        "type": "array",
        "items": {
            "type": "array",
            "items": {**WORD, "maxLength": 1},
            "minItems": 2,
            "maxItems": 2,
            "uniqueItems": True,
        },
        "maxItems": 2,
    },
    {
        "type": "array",
        "items": {"type": "array", "items": {"enum": [None, True, "a"]}, "maxItems": 1},
        "maxItems": 4,
    },
]


@pytest.mark.parametrize("schema", FINITE, ids=range(len(FINITE)))
def test_masks_equal_all_texts(schema: dict[str, Any]) -> None:
    schema = {**schema, "uniqueItems": True}
    every = sorted(texts(schema))
    beginnings = {text[:n] for text in every for n in range(len(text) + 1)}
    vocab = vocabulary()
    tokens = [vocab.token_bytes(id) for id in range(len(vocab))]
    grammar = lt.Grammar.json_schema(schema, order="any", whitespace="compact")
    start = grammar.matcher(vocab)
    draw = random.Random(1)
    for _ in range(60):
        matcher, text, forks = start.fork(), b"", []
        while not matcher.is_finished:
            wanted = [id for id, token in enumerate(tokens) if text + token in beginnings]
            allowed = matcher.allowed()
            assert list(allowed) == wanted, text
            assert matcher.is_accepting == (text in every)
            token = draw.choice(wanted)
            forks.append((matcher.fork(), text))
            matcher.accept(token)
            text += tokens[token]
            if draw.random() < 0.2:
                back = draw.randint(1, len(forks))
                matcher.rollback(back)
                text = forks[-back][1]
                del forks[-back:]
        assert text in every


SINGLE = {**CLOSED, "properties": {"a": {"enum": ["a"]}}, "required": ["a"]}
PAIR = {**CLOSED, "properties": {"a": {"type": "string"}, "b": {"enum": [True, "a"]}}}
OPEN = {"type": "object", "properties": {"a": {"type": "string"}}}
ENDLESS: list[dict[str, Any]] = [
    {"type": "array", "items": {"anyOf": [SINGLE, {"type": "string"}]}},
    {"type": "array", "items": {"anyOf": [SINGLE, PAIR]}},
    {"type": "array", "items": {**CLOSED, "properties": {"a": {"enum": ["a"]}, "b": {"type": "string"}}}},
    {"type": "array", "items": PAIR},
    {"type": "array", "items": OPEN},
    {"type": "array", "items": {"type": "array", "items": PAIR, "uniqueItems": True}},
    {"type": "array", "items": {**CLOSED, "properties": {"b": OPEN, "a": PAIR}}},
    {"type": "array"},
]


@pytest.mark.parametrize("order", ["any", "schema"])
@pytest.mark.parametrize("schema", ENDLESS, ids=range(len(ENDLESS)))
def test_masks_equal_their_tokens_byte_by_byte(schema: dict[str, Any], order: Any) -> None:
    vocab = vocabulary()
    tokens = [vocab.token_bytes(id) for id in range(len(vocab))]
    grammar = lt.Grammar.json_schema({**schema, "uniqueItems": True}, order=order, whitespace="compact")
    start = grammar.matcher(vocab)
    draw = random.Random(3)

    def takes(matcher: lt.Matcher, token: bytes) -> bool:
        matcher = matcher.fork()
        for byte in token:
            if matcher.is_finished or byte not in matcher.allowed():
                return False
            matcher.accept(byte)
        return True

    # Few letters and few values, so that values nearly repeat.
    likely = [id for id, token in enumerate(tokens) if set(token) <= set(b'[]{}":,abetrul')]
    long = [id for id in likely if len(tokens[id]) > 1]
    for _ in range(12):
        matcher = start.fork()
        for _ in range(30):
            if matcher.is_finished:
                break
            allowed = set(matcher.allowed())
            wrong = [tokens[id] for id in long if (id in allowed) != takes(matcher, tokens[id])]
            assert not wrong
            matcher.accept(draw.choice([id for id in likely if id in allowed] or sorted(allowed)))


def some_schema(draw: random.Random, depth: int) -> dict[str, Any]:
    """A schema of nested arrays and objects, many of them with few values."""
    if depth == 0:
        return draw.choice(
            [
                {"enum": draw.sample(["a", "b", "ab", "abc", "c"], draw.randint(1, 4))},
                {"type": "string", "maxLength": draw.randint(0, 2)},
                {"type": "integer", "minimum": 0, "maximum": draw.choice([1, 3, 12])},
                {"type": ["string", "null"], "maxLength": 1},
                {"const": draw.choice([1, "a", None, True])},
                *({"type": kind} for kind in ("boolean", "null", "string", "number", "integer")),
            ]
        )
    kind = draw.choice(["value", "object", "array", "unique", "either"])
    if kind == "value":
        return some_schema(draw, 0)
    if kind == "either":
        return {"anyOf": [some_schema(draw, depth - 1) for _ in range(2)]}
    if kind == "object":
        keys = draw.sample(["a", "b", "ab", "k"], draw.randint(1, 3))
        properties = {key: some_schema(draw, depth - 1) for key in keys}
        others = draw.choice([False, False, True, {"type": "boolean"}])
        required = draw.sample(keys, draw.randint(0, len(keys)))
        return {"type": "object", "properties": properties, "additionalProperties": others, "required": required}
    made: dict[str, Any] = {"type": "array", "items": some_schema(draw, depth - 1), "uniqueItems": kind == "unique"}
    for bound, most in (("maxItems", 4), ("minItems", 3)):
        if draw.random() < 0.4:
            made[bound] = draw.randint(1, most)
    return made


def test_masks_of_random_schemas_equal_their_tokens_byte_by_byte() -> None:
    vocab, single = vocabulary(), lt.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)])
    tokens = [vocab.token_bytes(id) for id in range(len(vocab))]
    compared = 0

    def takes(matcher: lt.Matcher, token: bytes) -> bool:
        matcher = matcher.fork()
        for byte in token:
            if matcher.is_finished or not matcher.is_allowed(byte):
                return False
            matcher.accept(byte)
        return True

    for seed in range(1_000):
        draw = random.Random(seed)
        schema = {"type": "array", "items": some_schema(draw, draw.randint(0, 2)), "uniqueItems": True}
        order = draw.choice(["any", "schema"])
        try:
            grammar = lt.Grammar.json_schema(schema, order=order)
            whole, bytewise = grammar.matcher(vocab), grammar.matcher(single)
        except lt.ConstraintError:  # no array is possible
            continue
        for _ in range(25):
            if whole.is_finished:
                break
            allowed = set(whole.allowed())
            assert allowed == {id for id, token in enumerate(tokens) if takes(bytewise, token)}, (seed, schema, order)
            compared += 1
            many = [id for id in allowed if len(tokens[id]) > 1]
            token = draw.choice(sorted(many if many and draw.random() < 0.6 else allowed))
            whole.accept(token)
            bytewise.accept_many(tokens[token])
    assert compared > 5_000


def spelled(value: Any, draw: random.Random) -> str:
    """A text of a value: keys in any order, numbers in several spellings."""
    if isinstance(value, list):
        return "[" + ",".join(spelled(item, draw) for item in value) + "]"
    if isinstance(value, dict):
        members = [f"{json.dumps(key)}:{spelled(item, draw)}" for key, item in value.items()]
        draw.shuffle(members)
        return "{" + ",".join(members) + "}"
    if type(value) is int:
        more = ["", ".0", ".00"] + ([] if value == 0 else ["e0", "E+00", ".0e-0"])
        return f"{value}{draw.choice(more)}" if value else draw.choice(["0", "-0", "0.0", "-0.00"])
    return json.dumps(value)


def test_any_items_equal_jsonschema() -> None:
    schema = {"type": "array", "uniqueItems": True}
    valid = jsonschema().Draft202012Validator(schema).is_valid
    draw = random.Random(2)
    grammar = lt.Grammar.json_schema(schema, order="any", whitespace="compact", ascii=True)
    counts = [0, 0]
    for _ in range(400):
        items = draw.choices([*ITEMS, [ITEMS[draw.randrange(8)]]], k=draw.randint(0, 6))
        wanted = valid(items)
        counts[wanted] += 1
        assert grammar.matches(spelled(items, draw)) == wanted, items
    assert min(counts) > 80


def test_many_items_are_remembered() -> None:
    grammar = lt.Grammar.json_schema({"type": "array", "items": {"type": "integer"}, "uniqueItems": True})
    vocab = small()
    matcher = grammar.matcher(vocab)
    matcher.accept_many(tokens_of(vocab, json.dumps(list(range(1, 200)))[:-1]))
    for text, allowed in ((", 19", True), (", 199]", False), (", 200]", True), (", 1]", False), (", 19.90e1]", False)):
        tokens = tokens_of(vocab, text)
        assert (matcher.fork().validate(tokens) == len(tokens)) == allowed, text


def test_past_the_bounds_is_an_error_that_names_the_part() -> None:
    schema = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    grammar = lt.Grammar.json_schema(schema, whitespace="compact")
    many = list(range(1_000, 2_024))
    assert grammar.matches(json.dumps(many, separators=(",", ":")))
    with pytest.raises(lt.LimitError, match="1024"):
        grammar.matches(json.dumps([*many, 1], separators=(",", ":")))
    texts = lt.Grammar.json_schema({**schema, "items": {"type": "string"}})
    assert texts.matches(json.dumps(["a" * 65_000]))
    with pytest.raises(lt.LimitError, match="65536"):
        texts.matches(json.dumps(["a" * 65_536]))


def test_texts_that_are_read_do_not_fill_a_grammar() -> None:
    grammar = lt.Grammar.json_schema({"type": "array", "items": {"type": "string"}, "uniqueItems": True})
    vocab = small()
    for n in range(60):
        matcher = grammar.matcher(vocab, automata_bytes=16 << 20)
        matcher.accept_many(tokens_of(vocab, json.dumps([f"{n}{n * n}{at}" for at in range(60)])))
        assert matcher.is_accepting
