"""Masks of JSON Schemas against brute force: random schemas, random small vocabularies, all short texts.

The texts are those of all small values. `jsonschema` says which are valid. A token must be allowed if it continues to a
valid text; a token that is allowed beyond that must lead to a text whose value is valid.
"""

from __future__ import annotations

import itertools
import json
import os
import random
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest

import logitree as lt

jsonschema = pytest.importorskip("jsonschema")

Order = Literal["any", "schema"]

ROUNDS = int(os.environ.get("LOGITREE_SCHEMAS", "40"))
"""Random schemas for each order of properties."""

SCALARS: list[Any] = [None, True, False, 0, 1, 2, -1, 1.5, "", "a", "b", "ab"]
KEYS = ["a", "b", "ab"]
PATTERNS = ["^a", "b", "^.$", "^(b|ab)$", "a{2}"]
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
CLOSING = (b"}", b"]", b'"')
SHORT = tuple(b'"a": "b": "ab": : "" "a" "b" "ab" a b aa 1 2 -1 1.5 0.5 {} [] true false null'.split())
"""Pieces of short texts, which are in every vocabulary."""


def values() -> Iterator[Any]:
    """All small values."""
    yield from SCALARS
    for count in range(3):
        yield from map(list, itertools.product(SCALARS, repeat=count))
    few = [0, 1, "a", True]
    yield from ([one, two, three] for one in few for two in few for three in few)
    yield from ([[one], [two]] for one in few for two in few)
    yield from ([{"a": one}, {"a": two}] for one in few for two in few)
    yield {}
    for key in KEYS:
        yield from ({key: value} for value in SCALARS)
        yield from ({key: [value]} for value in few)
        yield from ({key: {"a": value}} for value in few)
    for one, other in itertools.permutations(KEYS, 2):
        yield from ({one: value, other: more} for value in SCALARS for more in few)
    yield from (dict.fromkeys(order, 1) for order in itertools.permutations(KEYS))


def written(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


TEXTS = {written(value): value for value in values()}


class Dice:
    """Random schemas of few keywords each."""

    def __init__(self, seed: int) -> None:
        self.rnd = random.Random(seed)

    def value(self) -> Any:
        return self.rnd.choice(list(TEXTS.values()) if self.rnd.random() < 0.3 else SCALARS)

    def document(self) -> Any:
        made = self.schema(2)
        if isinstance(made, dict):
            made["$defs"] = {"a": self.schema(1), "b": self.schema(0)}
        return made

    def schema(self, depth: int) -> Any:
        rnd = self.rnd
        if rnd.random() < 0.08:
            return rnd.random() < 0.6
        made: dict[str, Any] = {}
        if rnd.random() < 0.1:
            return {"$ref": rnd.choice(["#/$defs/a", "#/$defs/b"])}
        if rnd.random() < 0.6:
            made["type"] = rnd.choice([*TYPES, "array", "object", ["string", "array"], ["integer", "object"]])
        for _ in range(rnd.randrange(1, 4)):
            name, of = rnd.choice(KEYWORDS if depth else KEYWORDS[:FLAT])
            made[name] = of(self, depth - 1)
        return made

    def small(self) -> int:
        return self.rnd.randrange(3)

    def names(self) -> list[str]:
        return self.rnd.sample(KEYS, self.rnd.randrange(1, 3))

    def schemas(self, depth: int) -> list[Any]:
        return [self.schema(depth) for _ in range(self.rnd.randrange(1, 3))]


Make = Callable[[Dice, int], Any]
KEYWORDS: list[tuple[str, Make]] = [
    ("enum", lambda dice, _: [dice.value() for _ in range(3)]),
    ("const", lambda dice, _: dice.value()),
    ("minimum", lambda dice, _: dice.rnd.choice([-1, 0, 0.5, 2])),
    ("exclusiveMaximum", lambda dice, _: dice.rnd.choice([0, 1, 1.5, 3])),
    ("multipleOf", lambda dice, _: dice.rnd.choice([0.5, 2, 1.5])),
    ("minLength", lambda dice, _: dice.small()),
    ("maxLength", lambda dice, _: dice.small()),
    ("pattern", lambda dice, _: dice.rnd.choice(PATTERNS)),
    ("minItems", lambda dice, _: dice.small()),
    ("maxItems", lambda dice, _: dice.small()),
    ("uniqueItems", lambda dice, _: dice.rnd.random() < 0.8),
    ("required", lambda dice, _: dice.names()),
    ("minProperties", lambda dice, _: dice.small()),
    ("maxProperties", lambda dice, _: dice.small()),
    ("dependentRequired", lambda dice, _: {dice.rnd.choice(KEYS): dice.names()}),
    ("properties", lambda dice, depth: {key: dice.schema(depth) for key in dice.names()}),
    ("additionalProperties", lambda dice, depth: dice.schema(depth)),
    ("patternProperties", lambda dice, depth: {dice.rnd.choice(PATTERNS): dice.schema(depth)}),
    ("propertyNames", lambda dice, depth: dice.schema(depth)),
    ("unevaluatedProperties", lambda dice, depth: dice.schema(depth)),
    ("items", lambda dice, depth: dice.schema(depth)),
    ("prefixItems", lambda dice, depth: dice.schemas(depth)),
    ("contains", lambda dice, depth: dice.schema(depth)),
    ("unevaluatedItems", lambda dice, depth: dice.schema(depth)),
    ("allOf", lambda dice, depth: dice.schemas(depth)),
    ("anyOf", lambda dice, depth: dice.schemas(depth)),
    ("oneOf", lambda dice, depth: dice.schemas(depth)),
    ("not", lambda dice, depth: dice.schema(depth)),
    ("if", lambda dice, depth: dice.schema(depth)),
    ("then", lambda dice, depth: dice.schema(depth)),
    ("else", lambda dice, depth: dice.schema(depth)),
    ("dependentSchemas", lambda dice, depth: {dice.rnd.choice(KEYS): dice.schema(depth)}),
]
FLAT = [name for name, _ in KEYWORDS].index("properties")
"""The keywords before this one hold no schemas."""


def constants(schema: Any) -> set[bytes]:
    """The values that a schema lists, as texts."""
    if not isinstance(schema, dict):
        return set().union(*map(constants, schema)) if isinstance(schema, list) else set()
    listed = [*schema.get("enum", []), *([schema["const"]] if "const" in schema else [])]
    return {written(value) for value in listed}.union(*map(constants, schema.values()))


def vocabulary(rnd: random.Random, listed: set[bytes]) -> tuple[lt.Vocabulary, int]:
    """Every printable byte, random pieces of texts, listed values, and a token that ends the text."""
    pieces = {*SHORT, *listed}
    for text in rnd.sample(sorted(TEXTS), 60):
        start = rnd.randrange(len(text))
        pieces.add(text[start : start + rnd.randrange(2, 6)])
    tokens = [bytes([byte]) for byte in range(32, 127)]
    tokens += sorted(piece for piece in pieces if len(piece) > 1)
    return lt.Vocabulary.from_tokens([*tokens, b"</s>"], eog_ids=[len(tokens)]), len(tokens)


def completed(fresh: lt.Matcher, tokens: lt.Vocabulary, end: int, so_far: bytes, listed: set[bytes]) -> bytes:
    """A complete text that begins with `so_far`, which the matcher has read."""
    rnd = random.Random(so_far)

    def weight(token: int) -> float:
        piece = tokens.token_bytes(token)
        return 6 if piece in CLOSING else 4 if piece in SHORT or piece in listed or piece == b"," else 0.05

    for length in range(4, 204):
        matcher, text = fresh.fork(), so_far
        for _ in range(length):
            if matcher.is_finished or matcher.is_allowed(end):
                return text
            found = matcher.allowed()
            assert found, f"nothing can follow {text!r}"
            [token] = rnd.choices(list(found), [weight(token) for token in found])
            matcher.accept(token)
            text += tokens.token_bytes(token)
    raise AssertionError(f"no end after {so_far!r}")


class NoVerdict(Exception):
    """Nothing can be said of a text: it has a key twice, or a number that a double may not tell from others."""


def unlike(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, if its keys differ: those that no schema names may come twice, and count twice then."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise NoVerdict
    return found


def short(text: str) -> float:
    """A number of few digits, which a double tells from all others."""
    if len(text) > 15 or "e" in text.lower():
        raise NoVerdict
    return float(text)


def is_right(text: bytes, judge: Any) -> bool:
    """Whether the text's value is valid, as far as there is a verdict."""
    try:
        return bool(judge.is_valid(json.loads(text, object_pairs_hook=unlike, parse_float=short)))
    except NoVerdict:
        return True


def is_ordered(value: Any) -> bool:
    """Whether no object in it has two keys, so that they come in whatever order a schema asks for."""
    if isinstance(value, dict):
        return len(value) < 2 and all(map(is_ordered, value.values()))
    return not isinstance(value, list) or all(map(is_ordered, value))


def check(schema: Any, order: Order, seed: int) -> bool:
    """Hold some masks of the schema against brute force; false if the schema is refused."""
    rnd = random.Random(seed)
    listed = constants(schema)
    tokens, end = vocabulary(rnd, listed)
    judge = jsonschema.Draft202012Validator(schema)
    try:
        judged = {text: judge.is_valid(value) for text, value in TEXTS.items()}
    except RecursionError:
        return True  # a schema that refers to itself without end
    try:
        fresh = lt.Grammar.json_schema(schema, order=order, separators=(",", ":")).matcher(tokens)
    except lt.LogitreeError as error:
        if "no value is valid" in str(error):
            assert not any(judged.values()), schema
            return True
        return False
    valid = {text for text, is_valid in judged.items() if is_valid and (order == "any" or is_ordered(TEXTS[text]))}
    starts = {text[:to] for text in valid for to in range(len(text) + 1)}
    for _ in range(3):
        matcher, so_far = fresh.fork(), b""
        for _ in range(8):
            if matcher.is_finished:
                assert is_right(so_far, judge), f"an end after {so_far!r}"
                break
            allowed = set(matcher.allowed())
            for token in range(end):
                text = so_far + tokens.token_bytes(token)
                if text in starts:
                    assert token in allowed, f"{text!r} is refused after {so_far!r}"
            assert (end in allowed) or so_far not in valid, f"no end after {so_far!r}"
            if end in allowed:
                assert is_right(so_far, judge), f"an end after {so_far!r}"
            rest = sorted(allowed - {end})
            if not rest:
                break
            for token in rnd.sample(rest, min(len(rest), 6)):
                fork = matcher.fork()
                fork.accept(token)
                text = completed(fork, tokens, end, so_far + tokens.token_bytes(token), listed)
                assert is_right(text, judge), f"{text!r} after {so_far!r}"
            token = rnd.choice(rest)
            matcher.accept(token)
            so_far += tokens.token_bytes(token)
    return True


@pytest.mark.parametrize("order", ["any", "schema"])
def test_masks_of_random_schemas(order: Order) -> None:
    refused = []
    for seed in range(ROUNDS):
        schema = Dice(seed).document()
        try:
            if not check(schema, order, seed):
                refused.append(schema)
        except (AssertionError, ValueError) as error:
            raise AssertionError(f"seed {seed}: {json.dumps(schema)}: {error}") from error
    assert len(refused) <= ROUNDS // 10, refused
