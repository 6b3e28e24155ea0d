"""The end of an output: end tokens alone, in every mask, so that a loop which only masks stays in bounds."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import logitree as lt
from logitree import compose, elizaos, masks
from logitree._constraint import bind

ENDS = [256, 257]
PAIR = 258


def vocabulary(ends: list[int] = ENDS) -> lt.Vocabulary:
    """A token for every byte, two that may end a text, and one of two bytes."""
    tokens = [*(bytes([b]) for b in range(256)), b"</s>", b"<eot>", b"ab"]
    kinds = ["normal"] * 256 + ["control"] * 2 + ["normal"]
    return lt.Vocabulary.from_tokens(tokens, end_tokens=ends, kinds=kinds)


class AB:
    """The text ab, byte by byte."""

    def __init__(self) -> None:
        self.read = b""

    def push(self, byte: int) -> bool:
        if not b"ab".startswith(self.read + bytes([byte])):
            return False
        self.read += bytes([byte])
        return True

    def pop(self, n: int) -> None:
        self.read = self.read[: len(self.read) - n]

    def is_end(self) -> bool:
        return self.read == b"ab"


def items(*texts: bytes) -> lt.Catalogue:
    return lt.Catalogue.from_codes([list(text) for text in texts])


CONSTRAINTS: dict[str, Callable[[], Any]] = {
    "choice": lambda: lt.OneOf(["ab"]),
    "grammar": lambda: lt.Grammar.regex("ab"),
    "lazy": lambda: lt.Grammar.lazy(lt.Grammar.regex("ab"), words=["a"]),
    "recogniser": lambda: lt.Recogniser(AB),
    "skeleton": lambda: lt.Skeleton("a", "b"),
    "catalogue": lambda: items(b"ab"),
    "intersection": lambda: items(b"ab", b"ac") & lt.Grammar.regex("ab"),
    "then": lambda: compose.then(lt.OneOf(["a"]), lt.OneOf(["b"])),
    "threads": lambda: compose.then(items(b"a"), items(b"b")),
    "both": lambda: compose.both(compose.then(items(b"a"), items(b"b")), lt.OneOf(["ab", "ac"])),
    "ban": lambda: compose.ban(items(b"ab"), words=["aa"]),
    "at_most": lambda: compose.at_most(9, items(b"ab")),
    "reasoning": lambda: lt.ReasoningBudget([1], [2]) + lt.OneOf(["ab"]),
    "matcher": lambda: lt.OneOf(["ab"]).matcher(vocabulary()),
}
"""Constraints with an output "ab" that nothing continues."""


def words(ids: list[int]) -> list[int]:
    made: list[int] = masks.from_ids(259, ids).tolist()
    return made


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_at_its_end_a_matcher_allows_the_end_tokens_alone(name: str) -> None:
    matcher = bind(CONSTRAINTS[name](), vocabulary())
    matcher.accept_many(list(b"ab"))
    for padded in range(3):
        assert matcher.is_finished and matcher.is_accepting and not matcher.is_open_ended
        assert list(matcher.allowed()) == ENDS and not matcher.allowed().is_all
        assert matcher.allowed().mask().tolist() == words(ENDS)
        wide = np.full(12, 7, np.int32)
        masks.fill_batch(matcher, wide)
        assert masks.to_ids(wide).tolist() == ENDS
        rows = masks.new(259, 2)
        masks.fill_batch([matcher, matcher.clone()], rows)
        assert rows.tolist() == [words(ENDS)] * 2
        drafted = masks.new(259, 3)
        assert matcher.draft_masks([256, ord("a")], drafted).tolist() == [True, False]
        assert drafted.tolist() == [words(ENDS), words(ENDS), words([])]
        assert matcher.validate([257, 256, ord("a"), 256]) == 2
        assert matcher.forced_tokens() == []
        for token in (ord("a"), ord("}"), PAIR, 259, 2**31):
            assert not matcher.is_allowed(token)
            with pytest.raises(lt.TokenError):
                matcher.accept(token)
        explanation = matcher.explain(text="a")
        assert explanation.allowed == 2 and "only a token that ends it may follow" in str(explanation)
        assert matcher.accepted == 2 + padded
        matcher.accept(ENDS[padded % 2])
    matcher.rollback(4)
    assert matcher.is_allowed(ord("b")) and not matcher.is_allowed(ENDS[0])


@pytest.mark.parametrize("name", sorted(set(CONSTRAINTS) - {"matcher"}))
def test_without_end_tokens_nothing_follows_the_end(name: str) -> None:
    matcher = bind(CONSTRAINTS[name](), vocabulary([]))
    matcher.accept_many(list(b"ab"))
    assert matcher.is_finished and not matcher.is_open_ended
    for ask in (matcher.allowed, lambda: masks.fill_batch(matcher, masks.new(259))):
        with pytest.raises(lt.StateError, match="complete"):
            ask()
    assert not matcher.is_allowed(ord("a")) and matcher.validate([ord("a")]) == 0
    with pytest.raises(lt.TokenError):
        matcher.accept(256)
    assert matcher.explain().allowed == 0


def test_own_end_tokens_come_before_those_of_the_vocabulary() -> None:
    choice = lt.OneOf(["ab"]).matcher(vocabulary(), end_tokens=[7, 3])
    choice.accept_many(list(b"ab"))
    assert list(choice.allowed()) == [3, 7] and not choice.is_allowed(256)
    grammar = lt.Grammar.regex("ab").matcher(vocabulary(), end_tokens=[7])
    grammar.accept_many([*b"ab", 7])
    assert list(grammar.allowed()) == [7]
    item = items(b"ab").matcher(vocabulary(), end_token=256)
    item.accept_many([*b"ab", 256])
    assert item.is_finished and list(item.allowed()) == [256]
    # An empty list of its own ends no value that could continue; after the end come those of the vocabulary.
    none = lt.OneOf(["ab"]).matcher(vocabulary(), end_tokens=[])
    none.accept_many(list(b"ab"))
    assert list(none.allowed()) == ENDS


def test_after_a_token_tree_nothing_is_masked() -> None:
    payload = {"modelId": "m", "descriptors": [{"path": "action", "leaves": [{"name": "A", "tokens": [100, 101]}]}]}
    span = elizaos.token_tree(payload).at("action")
    for constraint in (span, elizaos.token_tree(payload).at("action", following='"')):
        matcher = bind(constraint, vocabulary())
        assert matcher.is_open_ended and not matcher.is_finished
        matcher.accept_many([100, 101])
        if not matcher.is_finished:
            matcher.accept(ord('"'))
        assert matcher.is_finished and matcher.allowed().is_all
        matcher.accept(5)
        assert matcher.allowed().is_all
    # A composition ends where its last part does.
    closed = bind(compose.then(lt.OneOf(["a"]), span), vocabulary())
    closed.accept_many([ord("a"), 100, 101])
    assert closed.is_finished and not closed.is_open_ended and list(closed.allowed()) == ENDS


def test_what_is_activated_in_free_text_is_followed_by_it() -> None:
    decoder = lt.Decoder(vocabulary(), lt.Chain.greedy())
    decoder.activate(lt.OneOf(["ab"]).matcher(vocabulary()), then="continue")
    for token in b"ab":
        decoder.accept(token)
    logits = np.zeros(259, np.float32)
    logits[ord("z")] = 1
    assert not decoder.is_finished and decoder.step(logits) == ord("z")
    stopped = lt.Decoder(vocabulary(), lt.Chain.greedy(), lt.OneOf(["ab"]).matcher(vocabulary()))
    for token in b"ab":
        stopped.accept(token)
    assert stopped.is_finished and stopped.matcher is not None and list(stopped.matcher.allowed()) == ENDS


def test_free_text_after_a_reasoning_block_has_no_end() -> None:
    matcher = lt.ReasoningBudget([1], [2]).matcher(vocabulary())
    matcher.accept_many([1, 5, 2, *b"ab"])
    assert not matcher.is_finished and matcher.is_open_ended and matcher.is_allowed(5)


def test_clones_and_pickles() -> None:
    matcher = lt.OneOf(["ab"]).matcher(vocabulary())
    twin = matcher.clone()
    twin.accept(ord("a"))
    assert (matcher.accepted, twin.accepted) == (0, 1)
    chain = lt.Chain.llama_cpp(seed=1)
    decoder = lt.Decoder(vocabulary(), chain, matcher)
    assert str(chain.clone()) == str(chain) and list(decoder.clone().tokens) == []
    with pytest.raises(TypeError, match="pickle the constraint and the tokens"):
        pickle.dumps(matcher)
