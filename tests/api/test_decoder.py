"""The decoder through the Python API: what a step returns and records, what is refused, and that nothing is written."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import numpy.typing as npt
import pytest

import logitree as lt

WORDS = [b"a", b"b", b"c", b"ab", b"REPLY", b"_THREAD", b"IGNORE", b"<end>"]
END = len(WORDS) - 1


@pytest.fixture
def vocabulary() -> lt.Vocabulary:
    """Eight tokens that a person can check by eye; the last one ends generation."""
    return lt.Vocabulary.from_tokens(WORDS, special_ids=[END], end_tokens=[END])


def logits(*values: float) -> npt.NDArray[np.float32]:
    """One logit a token, zeros at the end."""
    row = np.zeros(len(WORDS), dtype=np.float32)
    row[: len(values)] = values
    return row


def actions(vocabulary: lt.Vocabulary) -> lt.Matcher:
    """REPLY, REPLY_THREAD (which begins with it) and IGNORE."""
    return lt.OneOf(["REPLY", "REPLY_THREAD", "IGNORE"]).matcher(vocabulary)


def test_a_step_picks_an_allowed_token(vocabulary: lt.Vocabulary) -> None:
    matcher = actions(vocabulary)
    decoder = lt.Decoder(vocabulary, lt.Chain.greedy(), matcher)
    row = logits(9, 9, 9, 9, 1, 9, 2, 9)
    before = row.copy()
    assert decoder.step(row) == WORDS.index(b"IGNORE")
    assert np.array_equal(row, before)
    assert decoder.is_finished and matcher.accepted == 0
    assert decoder.matcher is not None and decoder.matcher.accepted == 1
    assert decoder.finish_reason == "constraint"
    with pytest.raises(lt.StateError, match="over"):
        decoder.step(row)


def test_forced_tokens_are_taken_without_logits(vocabulary: lt.Vocabulary) -> None:
    choices = lt.OneOf(["REPLY_THREAD"], tokenize=lambda text: [4, 5])
    matcher = choices.matcher(vocabulary)
    decoder = lt.Decoder(vocabulary, lt.Chain.greedy(), matcher)
    assert decoder.forced_tokens() == [4, 5]
    assert decoder.tokens == []
    assert decoder.take_forced() == [4, 5]
    assert decoder.tokens == [4, 5]
    assert vocabulary.decode(decoder.tokens) == b"REPLY_THREAD"


def test_the_trace_explains_a_step(vocabulary: lt.Vocabulary) -> None:
    decoder = lt.Decoder(vocabulary, lt.Chain.llama_cpp(seed=3), actions(vocabulary), trace=True)
    row = logits(0, 0, 0, 0, 1, 0, 1, 0)
    token = decoder.step(row)
    step = decoder.last
    assert step is not None
    assert (step.token, step.source, step.forced, step.allowed) == (token, "sampled", False, 2)
    assert step.allowed_tokens == [4, 6]
    p = np.exp(row) / np.exp(row).sum()
    assert step.p_model == pytest.approx(p[token], rel=1e-6)
    assert step.surprisal == pytest.approx(-np.log(p[token]), rel=1e-6)
    assert step.entropy == pytest.approx(-(p * np.log(p)).sum(), rel=1e-6)
    assert step.p == pytest.approx(0.5)
    assert [id for id, _ in step.candidates] in ([4, 6], [6, 4])
    assert [effect[0] for effect in step.effects] == decoder.chain.names
    assert "sampled of 2 allowed" in repr(step)
    assert lt.Decoder(vocabulary, lt.Chain.greedy()).last is None


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (np.zeros(len(WORDS) - 1, dtype=np.float32), "7 logits for a vocabulary of 8"),
        (np.zeros((1, len(WORDS)), dtype=np.float32), "shape"),
        ([0.0] * len(WORDS), "list"),
        (logits(0, float("nan")), "NaN"),
    ],
)
def test_bad_logits_are_refused_and_nothing_changes(vocabulary: lt.Vocabulary, bad: object, says: str) -> None:
    decoder = lt.Decoder(vocabulary, lt.Chain.llama_cpp(seed=0))
    with pytest.raises(lt.LogitsError, match=says):
        decoder.step(bad)
    assert decoder.tokens == []
    assert decoder.step(logits(9)) == 0


def test_tokens_from_outside_are_checked(vocabulary: lt.Vocabulary) -> None:
    decoder = lt.Decoder(vocabulary, lt.Chain.greedy(), actions(vocabulary))
    with pytest.raises(lt.TokenError, match="not allowed"):
        decoder.accept(0)
    with pytest.raises(lt.TokenError, match="not in the vocabulary"):
        decoder.accept(99)
    for number in (-1, 2**32):
        with pytest.raises(lt.TokenError, match="is no token id"):
            decoder.accept(number)
        with pytest.raises(lt.TokenError, match="is no token id"):
            decoder.prime([0, number])
        with pytest.raises(lt.TokenError, match="is no token id"):
            decoder.chain.accept(number)
        assert not actions(vocabulary).is_allowed(number)
    assert decoder.tokens == []


def test_a_copy_is_a_fork(vocabulary: lt.Vocabulary) -> None:
    decoder = lt.Decoder(vocabulary, lt.Chain.greedy(), actions(vocabulary))
    decoder.step(logits(0, 0, 0, 0, 9))
    for other in (copy.copy(decoder), copy.deepcopy(decoder)):
        other.accept(WORDS.index(b"_THREAD"))
        assert (len(other.tokens), len(decoder.tokens)) == (2, 1)


def test_a_constraint_for_a_larger_vocabulary_is_refused(vocabulary: lt.Vocabulary) -> None:
    larger = lt.Vocabulary.from_tokens([*WORDS, b"more"], end_tokens=[END])
    with pytest.raises(lt.ConstraintError, match="9 tokens"):
        lt.Decoder(vocabulary, lt.Chain.greedy(), actions(larger))


def test_the_prompt_counts_in_the_penalties(vocabulary: lt.Vocabulary) -> None:
    chain = lt.Chain([lt.samplers.penalties(64, 1.0, 0.0, 5.0), lt.samplers.greedy()])
    decoder = lt.Decoder(vocabulary, chain)
    row = logits(2, 1)
    assert decoder.fork().step(row) == 0
    decoder.prime([0])
    assert decoder.step(row) == 1
    with pytest.raises(lt.StateError, match="before the first token"):
        decoder.prime([0])


def test_stop_strings_and_rollback(vocabulary: lt.Vocabulary) -> None:
    decoder = lt.Decoder(vocabulary, lt.Chain.greedy(), stop=["xyz", b"bc"], max_tokens=5)
    for token in (0, 1, 2):
        decoder.accept(token)
    assert (decoder.finish_reason, decoder.stop_index) == ("stop", 1)
    decoder.rollback(1)
    assert (decoder.finish_reason, decoder.tokens) == (None, [0, 1])
    for _ in range(3):
        decoder.accept(0)
    assert decoder.finish_reason == "max_tokens"
    with pytest.raises(lt.StateError, match="only 5"):
        decoder.rollback(6)
    with pytest.raises(lt.StateError, match="empty stop string"):
        lt.Decoder(vocabulary, lt.Chain.greedy(), stop=[""])


def test_a_forgotten_region_warns(vocabulary: lt.Vocabulary) -> None:
    decoder = lt.Decoder(vocabulary, lt.Chain.greedy(), stop_at_end_tokens=False)
    decoder.activate(actions(vocabulary))
    decoder.accept(WORDS.index(b"IGNORE"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(498):
            decoder.accept(0)
    with pytest.warns(UserWarning, match="never cleared"):
        decoder.accept(0)
    assert decoder.matcher is None


def test_clear_returns_to_the_decoders_own_constraint(vocabulary: lt.Vocabulary) -> None:
    decoder = lt.Decoder(vocabulary, lt.Chain.greedy(), lt.Grammar.regex("IGNORED"))
    start = decoder.allowed().mask().tolist()
    decoder.activate(actions(vocabulary))
    decoder.clear()
    assert decoder.allowed().mask().tolist() == start
    decoder.activate(actions(vocabulary))
    decoder.accept(WORDS.index(b"REPLY"))
    with pytest.raises(lt.TokenError, match="own constraint") as caught:
        decoder.clear()
    assert caught.value.place == "token 0 of the output"


def test_regions_follow_each_other(vocabulary: lt.Vocabulary) -> None:
    decoder = lt.Decoder(vocabulary, lt.Chain.greedy())
    decoder.activate(actions(vocabulary))
    assert decoder.step(logits(9, 9, 9, 9, 1, 0, 2)) == 6
    assert decoder.step(logits(9)) == 0
    decoder.activate(actions(vocabulary), then="stop")
    words = decoder.allowed().mask()
    assert words.dtype == np.int32
    assert words.tolist() == [(1 << 4) | (1 << 6)]
    decoder.accept(6)
    assert decoder.finish_reason == "constraint"
    decoder.rollback(2)
    assert decoder.tokens == [6]
    assert decoder.finish_reason is None
    with pytest.raises(ValueError, match="continue"):
        decoder.activate(actions(vocabulary), then="never")  # type: ignore[arg-type]
