"""Temperatures of a grammar's rules: decoders sample at them, and generations and the server with them."""

from __future__ import annotations

import numpy as np
import pytest

import logitree as lt

WORDS = [bytes([byte]) for byte in b"abcdxyz.;:"] + [b"ab", b"xy", b"z.", b"<end>"]
RULES = 'start: hot ":" cold ";" hot\nhot[temperature=5]: /[a-d]{3}/\ncold[temperature=0]: /[x-z]{3}[.]/'


@pytest.fixture(scope="module")
def vocabulary() -> lt.Vocabulary:
    return lt.Vocabulary.from_tokens(WORDS, special_ids=[len(WORDS) - 1], end_tokens=[len(WORDS) - 1])


def test_a_step_is_that_of_a_chain_with_the_temperature(vocabulary: lt.Vocabulary) -> None:
    """Set by hand before each step, on the same grammar without temperatures, it gives the same tokens."""
    plain = RULES.replace("[temperature=5]", "").replace("[temperature=0]", "")
    seen = set()
    for seed in range(40):
        noise = np.random.default_rng(seed)
        chain = lt.Chain.llama_cpp(seed=seed, temp=0.8, top_k=6, vocabulary=vocabulary)
        ours = lt.Decoder(vocabulary, chain.fork(), lt.Grammar.lark(RULES).matcher(vocabulary))
        theirs = lt.Decoder(vocabulary, chain.fork(), lt.Grammar.lark(plain).matcher(vocabulary))
        for step in range(40):
            if ours.is_finished:
                break
            assert ours.matcher is not None
            temperature = ours.matcher.temperature
            seen.add(temperature)
            theirs.set(temp=0.8 if temperature is None else temperature)
            row = noise.normal(size=len(WORDS), scale=2).astype(np.float32)
            if step == 2:
                assert ours.fork().step(row) == theirs.fork().step(row)
            assert ours.step(row) == theirs.step(row)
        assert ours.is_finished and theirs.is_finished
        ours.rollback(3)
        theirs.rollback(3)
        assert ours.tokens == theirs.tokens
    assert seen == {None, 0.0, 5.0}


def test_the_likeliest_is_taken_at_zero(vocabulary: lt.Vocabulary) -> None:
    row = np.zeros(len(WORDS), dtype=np.float32)
    row[WORDS.index(b"y")] = 0.5
    taken = set()
    for seed in range(30):
        decoder = lt.Decoder(
            vocabulary,
            lt.Chain.llama_cpp(seed=seed, temp=1.0, vocabulary=vocabulary),
            lt.Grammar.lark(RULES).matcher(vocabulary),
        )
        while not decoder.is_finished:
            decoder.step(row)
        text = vocabulary.decode(decoder.tokens).decode()
        head, cold, _ = text.replace(";", ":").split(":")
        assert cold == "yyy."
        taken.add(head)
    assert len(taken) > 15


def test_a_trace_says_what_a_rule_asked_for(vocabulary: lt.Vocabulary) -> None:
    rules = 'start: "a:" warm ";" cold "."\nwarm[temperature=0.25]: /[a-d]/\ncold[temperature=4]: "x" | "y"'
    chain = lt.Chain.llama_cpp(seed=1, temp=0.8, vocabulary=vocabulary)
    decoder = lt.Decoder(vocabulary, chain, lt.Grammar.lark(rules).matcher(vocabulary), trace=True)
    asked = []
    while not decoder.is_finished:
        assert decoder.matcher is not None
        asked.append(decoder.matcher.temperature)
        decoder.step(np.zeros(len(WORDS), dtype=np.float32))
    assert decoder.trace is not None
    chosen = [was if step.source == "sampled" else None for step, was in zip(decoder.trace, asked, strict=True)]
    assert [step.temperature for step in decoder.trace] == chosen
    assert {0.25, 4.0} <= set(chosen)
    assert [f"temperature {step.temperature:g}" in str(step) for step in decoder.trace if step.temperature] == [
        True,
        True,
    ]


def test_chains_without_a_temperature_stay_as_they_are(vocabulary: lt.Vocabulary) -> None:
    decoder = lt.Decoder(vocabulary, lt.Chain.greedy(), lt.Grammar.lark(RULES).matcher(vocabulary))
    row = np.arange(len(WORDS), dtype=np.float32)
    while not decoder.is_finished:
        decoder.step(row)
    assert vocabulary.decode(decoder.tokens) == b"abd:xyz.;abd"


def test_a_rule_has_it_in_compositions(vocabulary: lt.Vocabulary) -> None:
    cold = lt.Grammar.lark("start[temperature=0.25]: /[a-d]+/")
    for constraint in (cold + ";", cold | lt.Grammar.regex("x"), lt.OneOf(["x"]) | cold):
        matcher = constraint.matcher(vocabulary)
        assert matcher.temperature == 0.25
        matcher.accept(0)
        assert matcher.temperature == 0.25
    again = lt.Constraint.from_form(cold.form())
    assert again.matcher(vocabulary).temperature == 0.25
    assert lt.Grammar.regex("a").matcher(vocabulary).temperature is None
    assert cold != lt.Grammar.lark("start: /[a-d]+/")


def test_places_that_cannot_keep_it_refuse_it(vocabulary: lt.Vocabulary) -> None:
    cold = lt.Grammar.lark("start[temperature=0.25]: /[a-d]+/")
    with pytest.raises(lt.ConstraintError, match="has a temperature before the trigger"):
        lt.Grammar.lazy(cold, words=["ab"])
    with pytest.raises(lt.ConstraintError, match="inside of an intersection; give the temperature to a rule around"):
        (cold & lt.Grammar.regex(".{2}")).matcher(vocabulary)
