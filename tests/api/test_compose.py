"""Compositions of constraints of every kind: values, operators, and what must end in an error.

`crates/logitree/tests/it/constraint/compose.rs` holds random compositions to brute force.
"""

from __future__ import annotations

import itertools
import pickle
import time
from collections.abc import Callable
from typing import Any

import pytest

import logitree as lt
from logitree import compose
from logitree._constraint import bind
from logitree.compose import at_least, at_most, ban, both, either, optional, repeat, then, until

TEXTS = [b"a", b"b", b"ab", b"ba", b"bb", b"abb"]
END = len(TEXTS)
SMALL = lt.Vocabulary.from_tokens([*TEXTS, b"</s>"], special_ids=[END], end_tokens=[END])
BYTES = lt.Vocabulary.from_tokens(
    [*(bytes([byte]) for byte in range(256)), b"yes", b"no", b'"}', b"</s>"], special_ids=[259], end_tokens=[259]
)
TREE = {"descriptors": [{"path": "p", "leaves": [{"name": "ab", "tokens": [0, 1]}, {"name": "a", "tokens": [0]}]}]}


def sequences(constraint: Any, longest: int, vocabulary: lt.Vocabulary = SMALL) -> set[tuple[int, ...]]:
    """All outputs of at most so many tokens, without the token that ends the generation."""
    found: set[tuple[int, ...]] = set()
    left = [((), bind(constraint, vocabulary))]
    while left:
        tokens, matcher = left.pop()
        if matcher.is_accepting:
            found.add(tokens)
        if matcher.is_finished or len(tokens) == longest:
            continue
        allowed = list(matcher.allowed())
        assert allowed, "a dead end"
        assert (END in allowed) == matcher.is_accepting
        for token in allowed:
            if token != END:
                longer = matcher.fork()
                longer.accept(token)
                left.append(((*tokens, token), longer))
    return found


def texts(constraint: Any, longest: int) -> set[bytes]:
    """The texts of those outputs."""
    return {b"".join(TEXTS[token] for token in tokens) for tokens in sequences(constraint, longest)}


class Letters:
    """A text of the letters a and b in turn, a first; at most six of them, ending with b."""

    def __init__(self) -> None:
        self.read = bytearray()

    def push(self, byte: int) -> bool:
        fits = len(self.read) < 6 and byte == b"ab"[len(self.read) % 2]
        if fits:
            self.read.append(byte)
        return fits

    def pop(self, n: int) -> None:
        del self.read[len(self.read) - n :]

    def is_end(self) -> bool:
        return len(self.read) % 2 == 0 and len(self.read) > 0


@pytest.mark.parametrize(
    ("constraint", "outputs"),
    [
        (then(["a", "ab"], ["b"]), {b"ab", b"abb"}),
        (either(["ab"], lt.Grammar.regex("b{1,2}")), {b"ab", b"b", b"bb"}),
        (both(lt.Grammar.regex("a*b*"), lt.Grammar.regex("(ab|b){1,2}")), {b"ab", b"abb", b"b", b"bb"}),
        (then(optional(["a"]), ["bb"]), {b"bb", b"abb"}),
        (repeat(["ab", "b"], 1, 2), {b"ab", b"b", b"abab", b"abb", b"bab", b"bb"}),
        (until("bb", lt.Grammar.regex("[ab]?")), {b"bb", b"abb"}),
        (ban(lt.Grammar.regex("[ab]{2}"), words=["bb"]), {b"aa", b"ab", b"ba"}),
        (ban(lt.Grammar.regex("[ab]{2}"), tokens=[[2], [1, 1], [4]]), {b"aa", b"ab", b"ba"}),
        (at_least(2, lt.Grammar.regex("ab?")), {b"ab"}),
        (at_most(2, lt.Grammar.regex("(ab)*abb")), {b"abb", b"ababb"}),
        (then(lt.Recogniser(Letters), ["a"]), {b"aba", b"ababa", b"abababa"}),
        (both(lt.Grammar.gbnf('root ::= "a" root "b" | "ab"'), lt.Grammar.regex("a*b{2,3}")), {b"aabb", b"aaabbb"}),
    ],
)
def test_every_composition_says_what_it_means(constraint: Any, outputs: set[bytes]) -> None:
    assert texts(constraint, 7) - {b""} == outputs


def test_parts_over_tokens_end_at_token_boundaries() -> None:
    tree = lt.elizaos.token_tree(TREE).at("p")
    assert sequences(then(tree, ["b"]), 5) == {(0, 1, 1), (0, 1)}
    assert sequences(then(["a", "ab"], tree), 5) == {(0, 0), (0, 0, 1), (2, 0), (2, 0, 1), (0, 1, 0), (0, 1, 0, 1)}
    assert sequences(either(tree, ["bb"]), 5) == {(0,), (0, 1), (4,), (1, 1)}
    assert sequences(both(tree, lt.Grammar.regex("ab|bb")), 5) == {(0, 1)}
    assert sequences(then(optional(tree), ["b"], repeat(tree, 1, 1)), 5) == {
        (*first, 1, *last) for first in [(), (0,), (0, 1)] for last in [(0,), (0, 1)]
    }
    catalogue = lt.Catalogue.from_codes([[0, 1], [4]])
    assert sequences(then(catalogue, ["b"]), 5) == {(0, 1, 1), (4, 1)}
    item = catalogue.constraint(end_token=END)
    assert sequences(then(item, ["b"]), 5) == {(0, 1, 1), (4, 1)}
    canonical = lt.OneOf(["abb"], tokenize=lambda text: [2, 1])
    assert sequences(then(canonical, ["b"]), 5) == {(2, 1, 1)}


def test_operators_take_every_kind() -> None:
    grammar, tree = lt.Grammar.regex("a+"), lt.elizaos.token_tree(TREE).at("p")
    assert isinstance(grammar + grammar, lt.Grammar)
    assert isinstance(grammar | lt.OneOf(["b"]), lt.Grammar)
    assert isinstance(grammar & lt.OneOf(["aa", "b"]), lt.OneOf)
    assert (grammar & lt.Grammar.regex("a{2}")) == both(grammar, lt.Grammar.regex("a{2}"))
    assert texts(grammar & lt.Grammar.regex("a{2}"), 3) == {b"aa"}
    kinds = [grammar, lt.OneOf(["b"]), tree, lt.Recogniser(Letters), tree.matcher(SMALL), optional(["b"])]
    for left, right in itertools.product(kinds, kinds):
        if isinstance(left, lt.Grammar | lt.OneOf) and isinstance(right, lt.Grammar | lt.OneOf):
            continue
        assert left + right == then(left, right)
        assert left | right == either(left, right)
        assert left & right == both(left, right)
    assert texts("b" + tree, 4) == {b"ba", b"bab"}
    assert texts(tree + "b", 4) == {b"ab", b"abb"}
    assert isinstance(lt.ReasoningBudget("a", "b") + lt.OneOf(["ab"]), lt.ReasoningBudget)
    assert then(lt.ReasoningBudget("a", "b"), ["ab"]) == lt.ReasoningBudget("a", "b") + lt.OneOf(["ab"])
    for wrong in (3, None, object()):
        with pytest.raises(TypeError, match="unsupported operand"):
            tree + wrong
        with pytest.raises(TypeError):
            then(tree, wrong)
    with pytest.raises(TypeError, match="may mean several"):
        then(tree, "b")


def test_compositions_are_values() -> None:
    made = ban(at_most(9, then(["a"], optional(lt.Grammar.regex("b+")))), words=["bbb"], tokens=[[4]])
    again = pickle.loads(pickle.dumps(made))
    assert again == made and hash(again) == hash(made) and again != then(["a"], ["b"])
    assert sequences(again, 4) == sequences(made, 4)
    assert repr(then(["a"], ["b"])) == "then(OneOf(['a']), OneOf(['b']))"
    assert then(then(["a"], ["b"]), ["c"]) == then(["a"], ["b"], ["c"])
    matcher = made.matcher(SMALL)
    assert made.matcher(SMALL).accepted == matcher.accepted == 0
    assert at_most(3, int).value("12", []) == 12
    assert both(int, lt.Grammar.regex("1.")).value("12", []) == 12
    assert then([1], [2]).value("12", []) == "12"


def test_text_until_a_stop_over_all_bytes() -> None:
    matcher = until(["\n\n", "END"]).matcher(BYTES)
    matcher.accept_many("Grüße\nEN".encode())
    assert not matcher.is_accepting
    matcher.accept_many(b"D")
    assert matcher.is_finished
    letters = until("x", lt.Grammar.regex("[a-z]*")).matcher(BYTES)
    letters.accept_many(b"ax")
    assert letters.is_finished


def test_a_schema_without_words_and_with_few_tokens() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    clean = ban(schema, words=["bad", "\\u"]).matcher(BYTES)
    clean.accept_many(b'{"a": "ba')
    assert not clean.is_allowed(ord("d")) and clean.is_allowed(ord("c"))
    short = at_most(12, schema).matcher(BYTES)
    short.accept_many(b'{"a": "')
    for letter in b"xyzw":
        assert short.is_allowed(letter)
        short.accept(letter)
    assert list(short.allowed()) == [258]
    short.accept(258)
    assert short.is_finished


def test_a_recursive_schema_meets_a_regular_expression() -> None:
    tree = {
        "$defs": {
            "node": {
                "type": "object",
                "properties": {"v": {"type": "string"}, "sub": {"$ref": "#/$defs/node"}},
                "required": ["v"],
                "additionalProperties": False,
            }
        },
        "$ref": "#/$defs/node",
    }
    made = both(lt.Grammar.json_schema(tree, whitespace="compact"), lt.Grammar.regex("([^x]|xy)*\\}\\}"))
    matcher = made.matcher(BYTES)
    matcher.accept_many(b'{"v":"ax')
    assert list(matcher.allowed()) == [ord("y"), 256]
    matcher.accept_many(b'y"')
    assert [chr(byte) for byte in matcher.allowed()] == [","]
    matcher.accept_many(b',"sub":{"v":"')
    assert not matcher.is_accepting and matcher.is_allowed(258)
    matcher.accept(258)
    matcher.accept_many(b"}")
    assert matcher.is_finished


HOSTILE: list[tuple[Callable[[], Any], type[Exception] | tuple[type[Exception], ...]]] = [
    (lambda: both(lt.Grammar.regex("a+"), lt.Grammar.regex("b+")).matcher(SMALL), lt.ConstraintError),
    (lambda: both(lt.Recogniser(Letters), lt.Grammar.regex("b+")).matcher(SMALL), lt.ConstraintError),
    (lambda: both(lt.elizaos.token_tree(TREE).at("p"), ["bb"]).matcher(SMALL), lt.ConstraintError),
    (lambda: ban(["a", "ab"], words=["a"]).matcher(SMALL), lt.ConstraintError),
    (lambda: ban(lt.Grammar.regex("[ab]+"), tokens=[[n] for n in range(END)]).matcher(SMALL), lt.ConstraintError),
    (lambda: ban(str, words=[""]), lt.ConstraintError),
    (lambda: ban(str, words="ab"), TypeError),
    (lambda: ban(str, tokens=[[999]]).matcher(SMALL), lt.ConstraintError),
    (lambda: ban(str, tokens=[[-1]]), lt.ConstraintError),
    (lambda: at_most(0, ["a"]).matcher(SMALL), lt.ConstraintError),
    (lambda: at_least(3, ["ab"]).matcher(SMALL), lt.ConstraintError),
    (lambda: at_least(-1, ["ab"]), lt.ConstraintError),
    (lambda: at_least(10**9, lt.Grammar.regex("a*")).matcher(SMALL), lt.LimitError),
    (lambda: repeat(["a"], 2, 1), lt.ConstraintError),
    (lambda: repeat(["a"], 0, 2**40), lt.LimitError),
    (lambda: then(), lt.ConstraintError),
    (lambda: until(lt.Grammar.gbnf('root ::= "a" root | "b" root "b" | "a"')).matcher(SMALL), lt.ConstraintError),
    (lambda: until([]), lt.ConstraintError),
    (lambda: _nested(1_000), lt.LimitError),
]


def _nested(depth: int) -> Any:
    made: Any = ["a"]
    for _ in range(depth):
        made = optional(then(made, ["b"]))
    return made


@pytest.mark.parametrize(("call", "kind"), HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_compositions_end_in_an_error(call: Callable[[], Any], kind: Any) -> None:
    start = time.monotonic()
    with pytest.raises(kind):
        call()
    assert time.monotonic() - start < 60


def test_large_compositions_work() -> None:
    many = repeat(["a"], 10**9, None).matcher(SMALL)
    assert list(many.allowed()) == [0]
    over_tokens = repeat(lt.elizaos.token_tree(TREE).at("p"), 10**9, 2 * 10**9).matcher(SMALL)
    over_tokens.accept_many([0, 1, 0, 0])
    assert list(over_tokens.allowed()) == [0, 1]
    chain: Any = then(["a"], lt.elizaos.token_tree(TREE).at("p"))
    for _ in range(1_000):
        chain = then(chain, ["b"])
    assert len(chain.parts) == 1_002 and list(chain.matcher(SMALL).allowed()) == [0]


def test_every_name_is_listed() -> None:
    assert all(hasattr(compose, name) for name in compose.__all__)
