"""Beams under any constraint: equal to a catalogue of all that the constraint allows, and what the hypotheses mean."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest

import logitree as lt
from logitree.beams._matcher_walk import MatcherWalk
from slow_beams import HashModel, brute, naive, walk_of

END = 0
TOKENS = [b"<end>", b"a", b"b", b"c", b"ab", b"bc", b"ca", b"abc"]
VOCABULARY = lt.Vocabulary.from_tokens(TOKENS, end_tokens=[END])
LANGUAGES = (r"(ab|a|b(c|ca)?)c?", r"a?b?c(ab)?", r"abc|ab", r"(a|bc){1,3}")


def spelled(pattern: str) -> list[tuple[int, ...]]:
    """Every sequence of tokens whose text is in a language of texts of at most six bytes."""
    sequences = itertools.chain.from_iterable(itertools.product(range(1, len(TOKENS)), repeat=n) for n in range(7))
    return [one for one in sequences if re.fullmatch(pattern, b"".join(TOKENS[t] for t in one).decode())]


@pytest.mark.parametrize("pattern", LANGUAGES)
@pytest.mark.parametrize("normalize", ["vocabulary", "allowed", "none"])
def test_with_enough_beams_it_is_exact(pattern: str, normalize: Any) -> None:
    items = spelled(pattern)
    walk = walk_of(items, len(TOKENS), END)
    for seed, power in itertools.product(range(4), (0.0, 0.7)):
        model = HashModel(VOCABULARY)
        options: dict[str, Any] = {"normalize": normalize, "length_penalty": power, "tokenization": "any"}
        (found,) = lt.beam_search(model, [1, seed + 1], re.compile(pattern), width=len(items) + 1, **options)
        expected = brute(model, [1, seed + 1], walk, items, normalize, power)
        assert [(h.tokens, h.score, h.log_probability) for h in found] == [
            (tokens, pytest.approx(score, abs=1e-6), pytest.approx(total, abs=1e-6))
            for score, total, tokens in expected
        ]
        assert all(h.complete and h.value == h.text for h in found)


@pytest.mark.parametrize("pattern", LANGUAGES)
def test_narrow_searches_are_the_naive_ones(pattern: str) -> None:
    walk = walk_of(spelled(pattern), len(TOKENS), END)
    for seed, (width, groups) in itertools.product(range(6), ((1, 1), (2, 1), (3, 1), (4, 2))):
        model = HashModel(VOCABULARY)
        diversity = 0.0 if groups == 1 else 0.8
        (found,) = lt.beam_search(
            model,
            [seed + 1],
            re.compile(pattern),
            width=width,
            groups=groups,
            diversity=diversity,
            max_tokens=5,
            tokenization="any",
        )
        expected = naive(
            model, [seed + 1], walk, lambda _, w=width: w, width, most=5, groups=groups, diversity=diversity
        )
        assert [(h.tokens, h.score) for h in found] == [
            (tokens, pytest.approx(score, abs=1e-6)) for score, _, tokens in expected
        ]


def test_without_a_constraint_every_text_may_come_and_those_cut_off_come_last() -> None:
    vocabulary = lt.Vocabulary.from_tokens(TOKENS[:4], end_tokens=[END])
    model = HashModel(vocabulary)

    def log_probability(tokens: tuple[int, ...]) -> float:
        rows = [np.asarray(model.logits((2, *tokens[:n])), np.float64) for n in range(len(tokens))]
        return float(sum(row[t] - np.log(np.exp(row).sum()) for row, t in zip(rows, tokens, strict=True)))

    ended = [(*one, END) for n in range(3) for one in itertools.product(range(1, 4), repeat=n)]
    ended.sort(key=log_probability, reverse=True)
    (whole,) = lt.beam_search(model, [2], width=64, max_tokens=3)
    assert [h.tokens for h in whole] == ended
    (found,) = lt.beam_search(model, [2], width=64, max_tokens=3, unfinished=True)
    assert found[: len(whole)] == whole
    cut = found[len(whole) :]
    assert {h.tokens for h in cut} == set(itertools.product(range(1, 4), repeat=3))
    assert not any(h.complete or h.value for h in cut)
    assert [h.score for h in cut] == sorted((h.score for h in cut), reverse=True)
    for h in cut:
        assert h.log_probability == pytest.approx(log_probability(h.tokens), abs=1e-6)
        assert h.text == b"".join(TOKENS[t] for t in h.tokens).decode()


def test_what_they_mean_is_what_it_means_under_the_constraint() -> None:
    vocabulary = lt.Vocabulary.from_tokens([*(bytes([n]) for n in range(256)), b"<end>"], end_tokens=[256])
    model = HashModel(vocabulary)
    schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 99}}, "required": ["n"]}
    (numbers,) = lt.beam_search(model, [65], {**schema, "additionalProperties": False}, width=4)
    assert len(numbers) == 4
    assert all(h.value.keys() == {"n"} and h.value["n"] <= 99 for h in numbers)
    (ints,) = lt.beam_search(model, [65], int, width=3, max_tokens=4)
    assert all(type(h.value) is int and str(h.value) == h.text for h in ints)


def test_a_state_lives_until_the_next_gather() -> None:
    walk = MatcherWalk(lt.Grammar.regex("ab?").matcher(VOCABULARY), VOCABULARY)
    flat = np.zeros((1, len(TOKENS)), np.float32)
    first = walk.gather([walk.start], flat)
    assert first.tokens.tolist() == [1, 4]
    after = walk.advance([walk.start] * 3, [1, 4, 2])
    assert after.tolist() == [*first.states.tolist(), lt.beams.FAILED]
    assert walk.is_item(after).tolist() == [True, True, False]
    assert walk.may_continue(after).tolist() == [True, False, False]
    second = walk.gather(after[:1], flat)
    assert second.tokens.tolist() == [END, 2]
    assert second.states[0] == lt.beams.FINISHED
    assert walk.gather([lt.beams.FAILED, lt.beams.FINISHED], flat.repeat(2, 0)).tokens.tolist() == [END]
    assert walk.advance([lt.beams.FINISHED, lt.beams.FAILED], [1, 1]).tolist() == [-1, -2]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_logits_that_are_no_numbers_are_an_error(bad: float) -> None:
    def edit(_tokens: tuple[int, ...], logits: np.ndarray) -> None:
        logits[1] = bad

    with pytest.raises(lt.LogitsError):
        lt.beam_search(HashModel(VOCABULARY, edit), [1], re.compile("ab"), normalize="none", tokenization="any")


def test_what_cannot_be_searched_is_an_error() -> None:
    endless = HashModel(lt.Vocabulary.from_tokens(TOKENS[1:]))
    with pytest.raises(lt.ConstraintError, match="no end-of-generation token"):
        lt.beam_search(endless, [1], re.compile("ab"))
    with pytest.raises(lt.ConstraintError, match="tokenization is 'fast_forward'"):
        lt.beam_search(HashModel(VOCABULARY), [1], re.compile("ab"), tokenization="fast_forward")
    with pytest.raises(TypeError, match="means no constraint"):
        lt.beam_search(HashModel(VOCABULARY), [1], 5)
    with pytest.raises(TypeError, match="is not a text"):
        lt.beam_search(HashModel(VOCABULARY), [1], [1, 2])


def test_long_prompts_are_evaluated_in_parts() -> None:
    class Grained(HashModel):
        n_batch = 3

    prompts = [[1, 2, 3, 4, 5, 6, 7, 1], [2, 3], [3] * 7]
    items = spelled(LANGUAGES[0])
    parts, whole = (
        lt.beam_search(kind(VOCABULARY), prompts, walk_of(items, len(TOKENS), END), width=4)
        for kind in (Grained, HashModel)
    )
    assert parts == whole
