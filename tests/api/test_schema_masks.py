"""Masks of JSON Schemas over tokens of several bytes: a token is allowed where its bytes are, one after another.

`crates/logitree-grammar/src/json_schema/tests/random.rs` holds the bytes to a plain validator.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import logitree as lt
from grammars import small, tokens_of

PIECES = [
    *(
        '["',
        '",',
        '","',
        '"]',
        'a"',
        'a",',
        'a","',
        'a"]',
        '","a',
        '","a"',
        '",""',
        'b","',
        "]]",
        "],[",
        '"},{"',
        '{"a',
    ),
    *('a":"', '":"', '":t', '":true}', "e}", "e},", "e},{", 'b":t', "true,", "e,", "e,f", "e]"),
]
SINGLE = lt.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)])
VOCABULARY = lt.Vocabulary.from_tokens([*SINGLE, *(piece.encode() for piece in PIECES)])
TOKENS = list(VOCABULARY)

WORD = {"type": "string", "pattern": "^[ab]*$", "maxLength": 2}
CLOSED = {"type": "object", "additionalProperties": False}
ONE = {**CLOSED, "properties": {"a": {"enum": ["a"]}}, "required": ["a"]}
PAIR = {**CLOSED, "properties": {"a": {"type": "string"}, "b": {"enum": [True, "a"]}}}
OPEN = {"type": "object", "properties": {"a": {"type": "string"}}}
UNIQUE: list[dict[str, Any]] = [
    {"items": WORD, "minItems": 3, "maxItems": 3},
    {"items": {"enum": ["a", [True], [True, "a"], {"a": "b"}, {"a": "b", "b": None}]}, "maxItems": 3},
    {"items": {**CLOSED, "properties": {"a": {"enum": [True, False]}, "b": {"enum": ["a"]}}, "required": ["a"]}},
    {"items": {"type": "array", "items": WORD, "minItems": 2, "maxItems": 2, "uniqueItems": True}, "maxItems": 2},
    {"items": {"type": "array", "items": {"enum": [None, True, "a"]}, "maxItems": 1}, "maxItems": 4},
    {"items": {"anyOf": [ONE, {"type": "string"}]}},
    {"items": {"anyOf": [ONE, PAIR]}},
    {"items": {**CLOSED, "properties": {"a": {"enum": ["a"]}, "b": {"type": "string"}}}},
    {"items": OPEN},
    {"items": {**CLOSED, "properties": {"b": OPEN, "a": PAIR}}},
    {},
]
"""Arrays of unique items whose values nearly repeat."""


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
                {"type": "number", "multipleOf": draw.choice([0.5, 3])},
                *({"type": kind} for kind in ("boolean", "null", "string", "number", "integer")),
            ]
        )
    kind = draw.choice(["value", "object", "keys", "array", "array", "unique", "unique", "anyOf", "oneOf", "not"])
    if kind == "value":
        return some_schema(draw, 0)
    if kind in ("anyOf", "oneOf"):
        return {kind: [some_schema(draw, depth - 1) for _ in range(2)]}
    if kind == "not":
        return {"type": ["string", "array"], "not": some_schema(draw, depth - 1)}
    keys = draw.sample(["a", "b", "ab", "k"], draw.randint(1, 3))
    if kind == "keys":
        counts = {"minProperties": draw.randint(0, 1), "maxProperties": draw.randint(1, 3)}
        needs = {"dependentRequired": {keys[0]: keys[1:]}, "patternProperties": {"^a": some_schema(draw, depth - 1)}}
        return {"type": "object", **counts, **needs}
    if kind == "object":
        properties = {key: some_schema(draw, depth - 1) for key in keys}
        others = draw.choice([False, False, True, {"type": "boolean"}])
        required = draw.sample(keys, draw.randint(0, len(keys)))
        return {"type": "object", "properties": properties, "additionalProperties": others, "required": required}
    made: dict[str, Any] = {"type": "array", "items": some_schema(draw, depth - 1), "uniqueItems": kind == "unique"}
    for bound, most in (("maxItems", 4), ("minItems", 3)):
        if draw.random() < 0.4:
            made[bound] = draw.randint(1, most)
    return made | ({"contains": some_schema(draw, 0)} if draw.random() < 0.1 else {})


def takes(matcher: lt.Matcher, token: bytes) -> bool:
    """Whether the matcher over single bytes takes these."""
    matcher = matcher.fork()
    for byte in token:
        if matcher.is_finished or not matcher.is_allowed(byte):
            return False
        matcher.accept(byte)
    return True


def test_masks_equal_their_tokens_byte_by_byte() -> None:
    compared = 0
    for seed in range(1_000):
        draw = random.Random(seed)
        schema = {"type": "array", "uniqueItems": True, **UNIQUE[seed % len(UNIQUE)]}
        if seed >= 4 * len(UNIQUE):
            schema = some_schema(draw, draw.randint(1, 3))
        order = draw.choice(["any", "schema"])
        try:
            grammar = lt.Grammar.json_schema(schema, order=order, whitespace=draw.choice(["compact", "json_dumps"]))
            whole, bytewise = grammar.matcher(VOCABULARY), grammar.matcher(SINGLE)
        except lt.ConstraintError:  # no value is possible
            continue
        taken: list[int] = []
        for _ in range(25):
            if whole.is_finished:
                break
            allowed = set(whole.allowed())
            assert allowed == {id for id, token in enumerate(TOKENS) if takes(bytewise, token)}, (seed, schema, order)
            compared += 1
            many = [id for id in allowed if len(TOKENS[id]) > 1]
            token = draw.choice(sorted(many if many and draw.random() < 0.6 else allowed))
            whole.accept(token)
            bytewise.accept_many(TOKENS[token])
            taken.append(token)
            if draw.random() < 0.1:
                back = draw.randint(1, len(taken))
                whole.rollback(back)
                bytewise.rollback(sum(len(TOKENS[token]) for token in taken[-back:]))
                del taken[-back:]
    assert compared > 5_000


INTEGERS = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
TEXTS = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}


def test_many_items_are_remembered() -> None:
    vocab = small()
    matcher = lt.Grammar.json_schema(INTEGERS).matcher(vocab)
    matcher.accept_many(tokens_of(vocab, json.dumps(list(range(1, 200)))[:-1]))
    for text, allowed in ((", 19", True), (", 199]", False), (", 200]", True), (", 1]", False), (", 19.90e1]", False)):
        tokens = tokens_of(vocab, text)
        assert (matcher.fork().validate(tokens) == len(tokens)) == allowed, text


def test_past_the_bounds_is_an_error_that_names_the_part() -> None:
    grammar = lt.Grammar.json_schema(INTEGERS, whitespace="compact")
    many = list(range(1_000, 2_024))
    assert grammar.matches(json.dumps(many, separators=(",", ":")))
    with pytest.raises(lt.LimitError, match="1024"):
        grammar.matches(json.dumps([*many, 1], separators=(",", ":")))
    texts = lt.Grammar.json_schema(TEXTS)
    assert texts.matches(json.dumps(["a" * 65_000]))
    with pytest.raises(lt.LimitError, match="65536"):
        texts.matches(json.dumps(["a" * 65_536]))


def test_texts_that_are_read_do_not_fill_a_grammar() -> None:
    grammar = lt.Grammar.json_schema(TEXTS)
    vocab = small()
    for n in range(60):
        matcher = grammar.matcher(vocab, automata_bytes=16 << 20)
        matcher.accept_many(tokens_of(vocab, json.dumps([f"{n}{n * n}{at}" for at in range(60)])))
        assert matcher.is_accepting
