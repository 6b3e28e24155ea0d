"""What rules of a Lark grammar capture: of a text, and of an output."""

from __future__ import annotations

import itertools
import re
import time

import pytest

import logitree as lt
from table_engine import TableEngine

NAMES = """start: "name: " name "; tags:" tag+
name[capture]: /[a-z ]+/
tag[capture="tags"]: " " /[a-z]+/
"""


def test_captures_by_name() -> None:
    grammar = lt.Grammar.lark(NAMES)
    assert grammar.captures("name: a b; tags: x yy") == {"name": "a b", "tags": [" x", " yy"]}
    assert grammar.captures(b"name: a; tags: x") == {"name": "a", "tags": " x"}
    assert grammar.captures("name: a; tags:") is None
    assert lt.Grammar.lark("start: /a+/").captures("aa") == {}
    assert lt.Grammar.lark("start: /a+/").captures("b") == {}, "nothing is captured, so nothing is read"
    joined = grammar + "!" + lt.Grammar.lark("start[capture]: /é+/")
    assert joined.captures("name: a; tags: x!éé") == {"name": "a", "tags": " x", "start": "éé"}


@pytest.mark.parametrize(
    ("text", "written", "expected"),
    [
        ("start: a b\na[capture]: /[a-z]*/\nb[capture]: /[a-z]*/", "abc", {"a": "abc", "b": ""}),
        ('start: e\ne[capture]: "(" e ")" | /[0-9]/', "((1))", {"e": ["((1))", "(1)", "1"]}),
        ('start: (a | b)*\na[capture]: "x"?\nb: "y"', "yxy", {"a": ["", "x"]}),
        ('start: x "c"\nx[capture, lazy]: /(?s:.*)/ "!"', "ab!c", {"x": "ab!"}),
        ('start: x "!"\nx[capture="y", stop="!"]: /(?s:.*)/', "ab!", {"y": "ab"}),
        ('start: x "!"\nx[capture="y", stop="!", stop_capture="z"]: /(?s:.*)/', "ab!", {"y": "ab", "z": "!"}),
        ('start: x\nx[capture="y", suffix="!"]: /[a-z]*/', "ab!", {"y": "ab"}),
        ('start: x\nx[suffix="!", stop_capture="z"]: /[a-z]*/', "ab!", {"z": "!"}),
        ('start: x\nx[capture, suffix=/!|[?][a-z]/, stop_capture="z"]: /[a-z?]*/', "a?b", {"x": "a", "z": "?b"}),
        ('start: o\no[capture]: x\nx[capture, suffix="<end>"]: /.*/', "foo<end>", {"o": "foo<end>", "x": "foo"}),
        (
            'start: x x\n%ignore " "\nx[capture, suffix=";", stop_capture="z"]: /[a-z]+/',
            "ab; c;",
            {"x": ["ab", "c"], "z": [";", ";"]},
        ),
        ('start: x "b"?\nx[capture, stop=/b+/, stop_capture="z"]: /a*/', "aab", {"x": "aa", "z": "b"}),
        ('start: x "b"?\nx[capture, stop=/b+/, stop_capture="z"]: /a*/', "aa", {"x": "aa"}),
        ('start: w (S w)*\nS: " "\nw[capture, max_tokens=2]: /[a-z]+/', "one two", {"w": ["one", "two"]}),
    ],
)
def test_texts_that_can_be_read_in_several_ways(text: str, written: str, expected: dict[str, object]) -> None:
    assert lt.Grammar.lark(text).captures(written) == expected


def test_ebnf_captures_as_lark_does() -> None:
    grammar = lt.Grammar.ebnf('root ::= a ", " b\na[capture] ::= [a-z]+\nb[capture="n", max_chars=2] ::= [0-9]+')
    assert grammar.captures("ab, 12") == {"a": "ab", "n": "12"}
    nested = lt.Grammar.ebnf('root ::= "(" root ")" | x\nx[capture] ::= "x" | "y"')
    assert nested.captures("((y))") == {"x": "y"}


def test_captures_are_those_of_a_regular_expression() -> None:
    """Python's groups are the first way that matches, trying longest first: the same."""
    grammar = lt.Grammar.lark("start: a b c\na[capture]: /x*y?/\nb[capture]: /[xy]{0,2}/\nc[capture]: /(xy)*y*/")
    pattern = re.compile(r"(x*y?)([xy]{0,2})((?:xy)*y*)")
    for n in range(8):
        for letters in itertools.product("xy", repeat=n):
            text = "".join(letters)
            found = pattern.fullmatch(text)
            assert grammar.captures(text) == (None if found is None else dict(zip("abc", found.groups(), strict=True)))


def test_long_texts_take_time_in_proportion() -> None:
    grammar = lt.Grammar.lark('start: (item "\\n")*\nitem[capture]: /[a-z]+/')
    taken = []
    for lines in (2_000, 16_000):
        begun = time.perf_counter()
        captured = grammar.captures("abcdefghi\n" * lines)
        taken.append(time.perf_counter() - begun)
        assert captured is not None
        assert len(captured["item"]) == lines
    assert taken[1] < 40 * taken[0]
    with pytest.raises(lt.LimitError, match="bytes"):
        grammar.captures("a\n" * 600_000)
    with pytest.raises(lt.ConstraintError, match="<think>"):
        lt.Grammar.lark("start: <think> x\nx[capture]: /a/").captures("a")


def test_a_generation_has_what_its_grammar_captured() -> None:
    for seed in range(5):
        made = lt.generate(
            TableEngine(seed), "x", lt.Grammar.lark('start: "a" n ";"\nn[capture]: /[0-9]{1,3}/'), seed=seed
        )
        assert made.captures == {"n": made.text[1:-1]}
    assert lt.generate(TableEngine(1), "x", ["yes", "no"], seed=1).captures == {}
