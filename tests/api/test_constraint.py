"""Constraints as values: what plain Python values mean, what they become, and the operators."""

from __future__ import annotations

import enum
import itertools
import pickle
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest
from typing_extensions import TypedDict

import logitree as lt
from ids import stable_repr
from logitree._constraint import Context, bind, constraint_of
from table_engine import TableEngine

ENGINE = TableEngine()
VOCABULARY = ENGINE.vocabulary


class Colour(enum.Enum):
    """Two colours."""

    RED = "red"
    GREEN = "green"


@dataclass
class Point:
    """A point with a label."""

    x: int
    label: Literal["a", "b"]


class Place(TypedDict):
    """A place."""

    street: Literal["x"]
    number: int


def turn(degrees: int, fast: bool = False) -> None:
    """Turns."""


MEANT: list[tuple[Any, str, Any]] = [
    (["YES", "NO"], "NO", "NO"),
    ((1, 2, 30), "30", 30),
    (range(5), "4", 4),
    ({"a", "b"}, "b", "b"),
    ([None, True, 2.5], "true", True),
    (Literal["yes", "no"], "no", "no"),
    (Literal["yes"] | Literal[7], "7", 7),
    (Colour, "green", Colour.GREEN),
    ([Colour.RED], "red", Colour.RED),
    (int, "-12", -12),
    (float, "1.5e3", 1500.0),
    (bool, "false", False),
    (str, "é!", "é!"),
    (re.compile("[ab]{2}"), "ba", "ba"),
    (re.compile("ab", re.IGNORECASE), "Ab", "Ab"),
    ({"type": "array", "items": {"const": 1}}, "[1]", [1]),
    (True, '{"a":null}', {"a": None}),
    (list[int], "[1,2]", [1, 2]),
    (dict[str, int], '{"k":1}', {"k": 1}),
    (int | None, "null", None),
    (Point, '{"x":1,"label":"b"}', Point(1, "b")),
    (Place, '{"street":"x","number":2}', {"street": "x", "number": 2}),
    (turn, '{"degrees":90}', {"degrees": 90}),
    (lt.Grammar.regex("a+"), "aa", "aa"),
    (lt.OneOf(["REPLY", "REPLY_ALL"], following='"'), 'REPLY"', "REPLY"),
]


@pytest.mark.parametrize(("meant", "text", "value"), MEANT, ids=lambda x: stable_repr(x)[:40])
def test_what_plain_values_mean(meant: Any, text: str, value: Any) -> None:
    matcher = bind(meant, VOCABULARY)
    matcher.accept_many(text.encode())
    assert matcher.is_accepting
    made = constraint_of(meant).value(text, list(text.encode()))
    assert (type(made), made) == (type(value), value)
    decoder = lt.Decoder(VOCABULARY, lt.Chain.greedy(), meant)
    assert np.array_equal(decoder.allowed().mask(), bind(meant, VOCABULARY).allowed().mask())
    decoder.activate(meant, then="stop")


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("abc", TypeError, r"give \[text\] for a choice, Grammar.regex\(text\)"),
        (b"abc", TypeError, "may mean several constraints"),
        (3.5, TypeError, "float means no constraint"),
        (object(), TypeError, "object means no constraint"),
        ([], lt.ConstraintError, "nothing to choose from"),
        ([1, "1"], lt.ConstraintError, "1 and '1' are both written '1'"),
        ([[1]], TypeError, "has no plain text"),
        ([float("nan")], lt.ConstraintError, "nan has no plain text"),
        (lambda **options: None, lt.ConstraintError, "stands for any parameters"),
        (re.compile(b"a"), TypeError, "a pattern of bytes"),
    ],
    ids=stable_repr,
)
def test_what_means_no_constraint(value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        lt.generate(ENGINE, "x", value)


def test_a_matcher_is_copied_where_it_is_used() -> None:
    matcher = lt.Grammar.regex("abc").matcher(VOCABULARY)
    matcher.accept(ord("a"))
    assert lt.generate(ENGINE, "x", matcher).text == "bc"
    assert matcher.accepted == 1


class Vowel:
    """A recogniser of one vowel."""

    def __init__(self) -> None:
        self.read = 0

    def push(self, byte: int) -> bool:
        """One vowel."""
        if self.read or byte not in b"aeiou":
            return False
        self.read += 1
        return True

    def pop(self, n: int) -> None:
        """Back."""
        self.read -= n

    def is_end(self) -> bool:
        """After it."""
        return self.read == 1


class Vowels(lt.Constraint):
    """A constraint of one's own, with the hooks."""

    def __init__(self) -> None:
        self.contexts: list[Any] = []

    def matcher(self, vocabulary: lt.Vocabulary) -> lt.Matcher:
        """Two vowels."""
        return lt.Grammar.regex("[aeiou]{2}").matcher(vocabulary)

    def bind(self, context: Any) -> lt.Matcher:
        """With what the engine knows."""
        self.contexts.append(context)
        return self.matcher(context.vocabulary)

    def value(self, text: str, tokens: list[int]) -> tuple[str, int]:
        """The text, and how many tokens it took."""
        return text.upper(), len(tokens)


def test_a_constraint_of_ones_own() -> None:
    own = Vowels()
    assert isinstance(own, lt.Constraint)
    generation = lt.generate(ENGINE, "prompt", own, seed=3)
    assert generation.value == (generation.text.upper(), len(generation.tokens))
    (context,) = own.contexts
    assert (list(context.prompt), context.tokenize) == (list(b"prompt"), None)

    class Wrong(lt.Constraint):
        """Gives no matcher."""

        def matcher(self, vocabulary: lt.Vocabulary) -> lt.Matcher:
            """Nothing."""
            return None  # type: ignore[return-value]

    with pytest.raises(TypeError, match=r"Wrong\.matcher gave a NoneType, not a Matcher"):
        lt.generate(ENGINE, "x", Wrong())


def test_constraints_have_defaults_for_what_they_do_not_define() -> None:
    class Plain(lt.Constraint):
        """Only what is required."""

        def matcher(self, vocabulary: lt.Vocabulary, /) -> lt.Matcher:
            """Any three letters."""
            return lt.Grammar.regex("[a-z]{3}").matcher(vocabulary)

    context = Context(VOCABULARY)
    matcher = lt.OneOf(["abc"]).matcher(VOCABULARY)
    matcher.accept(ord("a"))
    for one in (Plain(), lt.Grammar.regex("[a-z]{3}"), matcher, lt.Recogniser(Vowel)):
        assert isinstance(one, lt.Constraint)
        assert one.bind(context).allowed().mask().tolist() == one.matcher(VOCABULARY).allowed().mask().tolist()
        assert one.answer_start([1, 2], context) == 0
        assert one.value("abc", [1, 2]) == "abc" and one.read([1, 2], context) is NotImplemented
        assert one.span_chains(lt.Chain.greedy()) == {} and one.span_stream() is None
    assert matcher.matcher(VOCABULARY).accepted == matcher.accepted == 1
    assert lt.generate(ENGINE, "x", Plain() + lt.OneOf(["!"])).text.endswith("!")


def test_a_class_without_a_matcher_has_no_instances() -> None:
    class Nothing(lt.Constraint):
        """Defines nothing."""

    for kind in (lt.Constraint, Nothing):
        with pytest.raises(TypeError, match=f"{kind.__name__} does not define matcher"):
            kind()
    with pytest.raises(TypeError):
        lt.Grammar()


def test_a_value_is_that_of_the_answer_alone() -> None:
    class Halved(lt.Constraint):
        """The answer is what follows the first two tokens."""

        def matcher(self, vocabulary: lt.Vocabulary, /) -> lt.Matcher:
            """Four letters."""
            return lt.Grammar.literal("abcd").matcher(vocabulary)

        def answer_start(self, tokens: Sequence[int], context: Any, /) -> int:
            """Two."""
            return 2

        def value(self, text: str, tokens: Sequence[int], /) -> Any:
            """What it was called with."""
            return text, bytes(list(tokens)[:2])

    assert lt.generate(ENGINE, "x", Halved()).value == ("cd", b"cd")


def test_operators() -> None:
    both = lt.OneOf(["a", "b"]) | lt.OneOf(["b", "c"])
    assert isinstance(both, lt.OneOf)
    assert both.values == ("a", "b", "c")
    for joined, texts in [
        (lt.OneOf(["a"]) | lt.Grammar.regex("[0-9]"), ["a", "7"]),
        (lt.Grammar.regex("[0-9]") | lt.OneOf(["a"]), ["a", "7"]),
        ("x" + lt.OneOf(["a", "b"]), ["xa", "xb"]),
        (lt.OneOf(["a", "b"]) + "!", ["a!", "b!"]),
        (lt.OneOf([1, 2]) + lt.OneOf(["a"]), ["1a", "2a"]),
        (lt.OneOf(["a"], following=".") + "b", ["a.b"]),
    ]:
        assert isinstance(joined, lt.Grammar)
        assert all(joined.matches(text) for text in texts)
        assert not joined.matches("z")
    assert (lt.OneOf(["ab", "cd", "7"]) & lt.Grammar.regex("[a-z]+")).values == ("ab", "cd")
    assert (lt.Grammar.regex("[a-z]+") & lt.OneOf(["ab", "7"])).values == ("ab",)
    assert (lt.OneOf(["ab", "7"]) & lt.OneOf([7])).values == ("7",)
    with pytest.raises(lt.ConstraintError, match="the intersection is empty"):
        lt.OneOf(["a"]) & lt.Grammar.regex("b")
    assert (lt.Grammar.regex("a") & lt.Grammar.regex("b")).kind == "both"
    with pytest.raises(lt.ConstraintError, match="is not UTF-8"):
        lt.OneOf([b"\xff"]) + "a"
    with pytest.raises(TypeError, match="unsupported operand"):
        lt.OneOf(["a"]) & 3


def test_one_of_is_a_value() -> None:
    one = lt.OneOf([1, "b"], following="!")
    assert pickle.loads(pickle.dumps(one)) == one != lt.OneOf([1, "b"])
    assert len({one, lt.OneOf([1, "b"], following="!")}) == 1
    assert (list(one), len(one), 1 in one, "c" in one) == ([1, "b"], 2, True, False)
    assert repr(one) == "OneOf([1, 'b'], following='!')"
    first = one.matcher(VOCABULARY)
    assert one.matcher(VOCABULARY).allowed() == first.allowed()
    with pytest.raises(lt.ConstraintError, match="is none of the values"):
        one.value("c!", [])


SHORTEST = [
    (lt.Grammar.json_schema({"type": "array", "items": {"type": "integer"}}), "[1, 22", 1),
    (lt.Grammar.json_schema({"required": ["a", "b"], "properties": {"a": {"type": "string"}}}), '{"a": "x', 8),
    (lt.Grammar.regex("a{3,}b?"), "a", 2),
    (lt.Grammar.regex("(ab)+"), "ab", 0),
    (lt.Grammar.regex("x([0-9]{4}|[a-z]{2})"), "x", 2),
    (lt.Grammar.gbnf('root ::= "(" root ")" | "x"'), "((", 3),
    (lt.OneOf(["hello world", "hey"]), "he", 1),
]


@pytest.mark.parametrize(("constraint", "begun", "length"), SHORTEST, ids=lambda x: stable_repr(x)[:30])
def test_the_shortest_ending(constraint: Any, begun: str, length: int) -> None:
    matcher = bind(constraint, VOCABULARY)
    matcher.accept_many(begun.encode())
    found = matcher.shortest_ending()
    assert (found, len(found)) == (matcher.shortest_ending(), length), "asking changes nothing"
    matcher.accept_many(found)
    assert matcher.is_accepting


def test_the_search_for_an_ending_is_bounded() -> None:
    with pytest.raises(lt.LimitError, match="within 3 states"):
        lt.Grammar.regex("a{9}").matcher(VOCABULARY).shortest_ending(max_states=3)


@pytest.mark.parametrize("seed", range(40))
def test_the_shortest_ending_is_that_of_all_texts_tried_in_turn(seed: int) -> None:
    draw = random.Random(seed)

    def pattern(depth: int) -> str:
        if not depth:
            return draw.choice(["a", "b", "[ab]"])
        left, right = pattern(depth - 1), pattern(depth - 1)
        return draw.choice([f"{left}{right}", f"({left}|{right})", f"({left}){{2,3}}", f"({left})+{right}"])

    grammar = lt.Grammar.regex(pattern(3))
    matcher = grammar.matcher(VOCABULARY)
    begun = ""
    for _ in range(draw.randrange(4)):
        letters = [letter for letter in "ab" if matcher.is_allowed(ord(letter))]
        if not letters:
            break
        begun += draw.choice(letters)
        matcher.accept(ord(begun[-1]))
    tried = ("".join(ending) for n in range(13) for ending in itertools.product("ab", repeat=n))
    shortest = next(ending for ending in tried if grammar.matches(begun + ending))
    assert len(matcher.shortest_ending()) == len(shortest)
