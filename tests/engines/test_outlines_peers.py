"""The output types of outlines: its own regular expression for a type and our constraint have the same texts."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

import logitree as lt
from drawn_texts import drawn, mutated

pytestmark = pytest.mark.peers

outlines = pytest.importorskip("outlines", reason="outlines is not installed")

from outlines import types  # noqa: E402
from outlines.types import dsl  # noqa: E402

PERSON = {
    "type": "object",
    "properties": {
        "name": {"enum": ["a", "b"]},
        "on": {"type": "boolean"},
        "list": {"type": "array", "items": {"type": "null"}},
    },
    "required": ["name", "on"],
}
TERMS: dict[str, Any] = {
    "regex": dsl.regex("[a-c]{2}x?"),
    "text": types.digit + "a.b",
    "either": dsl.either("a", "b.", types.digit),
    "union": dsl.Regex("ab") | "c",
    "optional": dsl.optional("ab") + "x",
    "exactly": dsl.exactly(3, "ab"),
    "at least": dsl.at_least(2, types.digit) + "x",
    "at most": dsl.at_most(2, dsl.either("a", "b")) + "x",
    "between": dsl.between(1, 3, "1"),
    "any number": dsl.zero_or_more("a") + dsl.one_or_more(dsl.regex("[0-9]")),
    "choice": dsl.Choice(["a", "ab", 12, "b.c"]),
    "date": types.date,
    "time": types.time,
    "isbn": types.isbn,
    "integer": types.integer,
    "number": types.number,
    "address": types.ipv4,
    "zip code": types.locale.us.zip_code,
    "schema": dsl.json_schema(PERSON),
    "schema with white space": dsl.JsonSchema(PERSON, whitespace_pattern=" {0,2}"),
}


@pytest.mark.parametrize("name", TERMS)
def test_a_term_has_the_texts_that_outlines_gives_it(name: str) -> None:
    term, rnd = TERMS[name], random.Random(name)
    ours, theirs = lt.Grammar.of(term), re.compile(dsl.to_regex(term))
    texts = [drawn(ours, rnd) for _ in range(25)]
    texts += [mutated(text, rnd) for text in texts for _ in range(3)]
    assert sum(theirs.fullmatch(text) is not None for text in texts) >= 25
    for text in texts:
        assert ours.matches(text) == (theirs.fullmatch(text) is not None), text


def test_a_grammar_of_outlines_is_llguidances() -> None:
    grammar = lt.Grammar.of(dsl.CFG('start: "(" start ")" | /[0-9]/'))
    assert grammar.matches("((1))") and not grammar.matches("((1)")


def test_white_space_that_must_come_is_an_error() -> None:
    with pytest.raises(lt.ConstraintError, match="must be optional"):
        lt.Grammar.of(dsl.JsonSchema(PERSON, whitespace_pattern=" {1,2}"))
