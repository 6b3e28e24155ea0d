"""vLLM's `choice`: the grammar that it makes of one has the masks of our choice."""

from __future__ import annotations

import random

import pytest

import logitree as lt

pytestmark = pytest.mark.peers

utils = pytest.importorskip("vllm.v1.structured_output.utils", reason="vllm is not installed")

VOCABULARY = lt.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), b"yes", b"</s>"], end_tokens=[257])


CHOICES = [
    ["yes", "no"],
    ["yes", "yesterday", "y"],
    ['say "x"', "back\\slash", "tab\tline"],
    ["é", "中", "e"],
    ["a|b", "(a)", "[a]*"],
]


@pytest.mark.parametrize("choice", CHOICES)
def test_a_choice_is_vllms(choice: list[str]) -> None:
    grammar, rnd = lt.Grammar.ebnf(utils.choice_as_grammar(choice)), random.Random(1)
    ended = set()
    for _ in range(60):
        ours, theirs = lt.OneOf(choice).matcher(VOCABULARY), grammar.matcher(VOCABULARY)
        written = b""
        while not ours.is_finished:
            assert ours.is_accepting == theirs.is_accepting == (written in [text.encode() for text in choice])
            assert list(ours.allowed().ids) == list(theirs.allowed().ids)
            token = rnd.choice(list(ours.allowed().ids))
            if token == 257:
                break
            ours.accept(token)
            theirs.accept(token)
            written += VOCABULARY[token]
        assert theirs.is_accepting and theirs.is_finished == ours.is_finished
        ended.add(written.decode())
    assert ended == set(choice)
