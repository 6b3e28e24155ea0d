"""Batches of decoders: rows equal to decoders alone, rows that join, leave and change places, padding, errors, and
several answers of a real model to several prompts."""

from __future__ import annotations

import copy
import threading
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import logitree as lt
from logitree.engines.llama_cpp import LlamaCpp

WORDS = [b"a", b"b", b"c", b"ab", b"REPLY", b"_THREAD", b"IGNORE", b"<end>"]
END = len(WORDS) - 1


@pytest.fixture
def vocabulary() -> lt.Vocabulary:
    """Eight tokens that a person can check by eye; the last one ends generation."""
    return lt.Vocabulary.from_tokens(WORDS, special_ids=[END], end_tokens=[END])


def rows(seed: int, n: int, width: int = len(WORDS)) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).normal(scale=3, size=(n, width)).astype(np.float32)


def decoders(vocabulary: lt.Vocabulary) -> list[lt.Decoder]:
    """Every row has its own constraint, chain, seed and length."""
    letters = lt.Grammar.regex("[ab]{3}c?")
    tree = lt.Catalogue.from_codes([[0, 1, 2], [0, 2], [1, 1, 1, 1]])
    chain = lt.Chain.llama_cpp
    return [
        lt.Decoder(vocabulary, chain(seed=1), lt.OneOf(["REPLY", "REPLY_THREAD"]).matcher(vocabulary)),
        lt.Decoder(vocabulary, chain(seed=2, temp=2.0, rng="philox"), letters, trace=True),
        lt.Decoder(vocabulary, lt.Chain.greedy(), tree.matcher(vocabulary, end_token=END)),
        lt.Decoder(vocabulary, chain(seed=3, rng="xoroshiro128plus"), max_tokens=5, stop=["bc"]),
        lt.Decoder(vocabulary, chain(seed=4, penalty_repeat=1.4), max_tokens=2, stop_at_end_tokens=False),
    ]


def filled(batch: lt.Batch) -> np.ndarray:
    """The masks of all rows."""
    out = lt.masks.new(len(WORDS), rows=len(batch))
    lt.masks.fill_batch(batch, out)
    return out


def test_rows_equal_single_decoders(vocabulary: lt.Vocabulary) -> None:
    batch = lt.Batch(vocabulary, decoders(vocabulary))
    alone = decoders(vocabulary)
    for at in range(7):
        logits = rows(at, len(alone))
        expected = [END if d.is_finished else d.step(row) for d, row in zip(alone, logits, strict=True)]
        tokens = batch.step(logits if at % 2 else list(logits), threads=1 + at % 3)
        assert (tokens.dtype, tokens.shape) == (np.uint32, (len(alone),))
        assert tokens.tolist() == expected
        assert batch.finished.tolist() == [d.is_finished for d in alone]
        assert [list(d.allowed().mask()) for d in batch if not d.is_finished] == [
            list(mask) for mask, over in zip(filled(batch), batch.finished, strict=True) if not over
        ]
    assert batch.finished.all()
    assert [d.tokens for d in batch] == [d.tokens for d in alone]
    assert [d.finish_reason for d in batch] == [d.finish_reason for d in alone]
    assert [s.token for s in batch[1].trace] == alone[1].tokens


def test_a_finished_row_accepts_end_tokens_only(vocabulary: lt.Vocabulary) -> None:
    over = lt.Decoder(vocabulary, lt.Chain.greedy(), lt.OneOf(["a"]).matcher(vocabulary))
    over.accept(0)
    batch = lt.Batch(vocabulary, [over, lt.Decoder(vocabulary, lt.Chain.greedy())], end_tokens=[2, END])
    assert [lt.masks.to_ids(row).tolist() for row in filled(batch)] == [[2, END], list(range(len(WORDS)))]
    logits = rows(0, 2)
    logits[0] = np.nan
    assert batch.step(logits)[0] == 2
    batch.accept([END, 1])
    with pytest.raises(lt.StateError, match=r"token 1 for a row that is over \(constraint\).*row 0.*end token"):
        batch.accept([1, 1])
    assert (over.tokens, len(batch[1].tokens)) == ([0], 2)
    assert repr(batch) == "Batch(2 rows, 1 finished)"


def test_rows_join_and_leave(vocabulary: lt.Vocabulary) -> None:
    first, second, third, *_ = decoders(vocabulary)
    alone = decoders(vocabulary)[:3]
    batch = lt.Batch(vocabulary)
    assert batch.step(np.zeros((0, len(WORDS)), np.float32)).tolist() == []
    batch.join(first, third)
    logits = rows(3, 2)
    batch.step(logits)
    assert [alone[0].step(logits[0]), alone[2].step(logits[1])] == [first.tokens[-1], third.tokens[-1]]
    batch.leave(first)
    batch.join(second)
    assert [batch[0], batch[1]] == list(batch) == [third, second]
    logits = rows(4, 2)
    batch.step(logits)
    assert [alone[2].step(logits[0]), alone[1].step(logits[1])] == [third.tokens[-1], second.tokens[-1]]
    assert first.tokens == alone[0].tokens
    while not batch.finished.any():
        batch.step(rows(9, 2))
    over = [row for row in batch if row.is_finished]
    assert batch.leave_finished() == over
    assert len(batch) == 2 - len(over)


def test_sequences_differ_and_the_first_is_the_decoders_own(vocabulary: lt.Vocabulary) -> None:
    one = lt.Decoder(vocabulary, lt.Chain.llama_cpp(seed=7, temp=3.0), max_tokens=12, stop_at_end_tokens=False)
    one.prime([0, 1, 0])
    batch = lt.Batch(vocabulary, one.sequences(4))
    for at in range(12):
        batch.step([rows(at, 1)[0]] * 4)
    assert len({tuple(d.tokens) for d in batch}) == 4
    assert batch[0].tokens == [one.step(rows(at, 1)[0]) for at in range(12)]
    with pytest.raises(lt.StateError, match="before the first token"):
        one.sequences(2)
    with pytest.raises(lt.SamplingError):
        one.sequences((1 << 16) + 1)


def test_beams_change_places(vocabulary: lt.Vocabulary) -> None:
    batch = lt.Batch(vocabulary, [lt.Decoder(vocabulary, lt.Chain.greedy()) for _ in range(3)])
    batch.accept([0, 1, 2])
    first, _, third = batch
    batch.reorder([2, 0, 2, 2])
    assert [d.tokens for d in batch] == [[2], [0], [2], [2]]
    assert (batch[0], batch[1]) == (third, first)
    batch.accept([3, 3, 4, 5])
    assert [d.tokens for d in batch] == [[2, 3], [0, 3], [2, 4], [2, 5]]
    for wrong in ([0, 4], [-1], [[0]], [0.5]):
        with pytest.raises(lt.StateError):
            batch.reorder(wrong)
    assert len(batch) == 4
    batch.reorder([])
    assert len(batch) == 0


def test_all_rows_or_none(vocabulary: lt.Vocabulary) -> None:
    batch = lt.Batch(vocabulary, decoders(vocabulary))
    batch.step(rows(0, 5))
    before = [d.tokens for d in batch]
    bad = rows(1, 5)
    bad[3, 2] = np.nan
    with pytest.raises(lt.LogitsError, match="row 3") as caught:
        batch.step(bad)
    assert caught.value.place.startswith("row 3")
    assert [d.tokens for d in batch] == before
    kept = [d.fork() for d in batch]
    tokens, failed = batch.try_step(bad)
    assert list(failed) == [3]
    assert isinstance(failed[3], lt.LogitsError)
    assert tokens[3] == END
    assert batch[3].tokens == before[3]
    for at, (decoder, other) in enumerate(zip(batch, kept, strict=True)):
        if at != 3:
            assert tokens[at] == (END if other.is_finished else other.step(bad[at]))
            assert decoder.tokens == other.tokens
    batch.leave(batch[3])
    assert batch.try_step(rows(2, 4))[1] == {}


def test_forced_tokens_of_a_batch(vocabulary: lt.Vocabulary) -> None:
    tree = lt.Catalogue.from_codes([[0, 1, 2]])
    sure = lt.Decoder(vocabulary, lt.Chain.greedy(), tree.matcher(vocabulary))
    batch = lt.Batch(vocabulary, [sure, lt.Decoder(vocabulary, lt.Chain.greedy())])
    assert batch.take_forced() == [[0, 1, 2], []]
    assert batch.finished.tolist() == [True, False]


def test_callbacks_run_on_the_callers_thread(vocabulary: lt.Vocabulary) -> None:
    seen: set[int] = set()

    def note(*candidates: Any) -> None:
        seen.add(threading.get_ident())

    chain = lt.Chain([lt.samplers.custom(note), lt.samplers.greedy()])
    batch = lt.Batch(vocabulary, [lt.Decoder(vocabulary, chain.fork()) for _ in range(4)])
    batch.step(rows(0, 4), threads=4)
    assert seen == {threading.get_ident()}


def test_a_forgotten_constraint_warns(vocabulary: lt.Vocabulary) -> None:
    decoder = lt.Decoder(vocabulary, lt.Chain.greedy(), max_tokens=600, stop_at_end_tokens=False)
    decoder.activate(lt.OneOf(["a"]).matcher(vocabulary))
    batch = lt.Batch(vocabulary, [decoder])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(510):
            batch.accept([0])
            with pytest.raises(lt.TokenError):
                batch.accept([8])
    assert ["never cleared" in str(w.message) for w in caught] == [True]


def test_invalid_arguments_are_refused(vocabulary: lt.Vocabulary) -> None:
    other = lt.Vocabulary.from_tokens([b"a", b"b"])
    with pytest.raises(lt.ConstraintError, match="end_tokens="):
        lt.Batch(other)
    with pytest.raises(lt.ConstraintError, match="end token 8 in a vocabulary of 8"):
        lt.Batch(vocabulary, end_tokens=8)
    with pytest.raises(lt.ConstraintError, match="end token -1"):
        lt.Batch(vocabulary, end_tokens=[0, -1])
    for wrong in (2.5, [7.0], "a", True, [True]):
        with pytest.raises(TypeError):
            lt.Batch(vocabulary, end_tokens=wrong)  # type: ignore[arg-type]
    assert lt.Batch(vocabulary, end_tokens=np.uint32(7)).vocabulary == vocabulary  # type: ignore[arg-type]
    for wrong in ([], None, lt.Chain.greedy()):
        with pytest.raises(TypeError, match="a row is a Decoder"):
            lt.Batch(vocabulary).join(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="fork its decoders"):
        copy.copy(lt.Batch(vocabulary))
    decoder = lt.Decoder(vocabulary, lt.Chain.greedy())
    with pytest.raises(lt.ConstraintError, match="another vocabulary"):
        lt.Batch(vocabulary, [lt.Decoder(other, lt.Chain.greedy())])
    with pytest.raises(lt.StateError, match="a row already"):
        lt.Batch(vocabulary, [decoder, decoder])
    batch = lt.Batch(vocabulary, [decoder])
    with pytest.raises(lt.StateError, match="a row already"):
        batch.join(decoder)
    with pytest.raises(lt.StateError, match="no row"):
        batch.leave(decoder.fork())
    for logits in (rows(0, 2), [], np.zeros((0, 8), np.float32)):
        with pytest.raises(lt.SamplingError, match="rows of logits for 1 decoders"):
            batch.step(logits)
    for logits in (rows(0, 1)[0], rows(0, 1).astype(np.float64), "ab", None, rows(0, 1, 7)):
        with pytest.raises((lt.LogitsError, TypeError)):
            batch.step(logits)
    for threads in (0, -1):
        with pytest.raises(lt.SamplingError):
            batch.step(rows(0, 1), threads=threads)
    for tokens in ([], [0, 0]):
        with pytest.raises(lt.SamplingError, match="tokens for 1 decoders"):
            batch.accept(tokens)
    for tokens in ([-1], [8], [1 << 40]):
        with pytest.raises(lt.TokenError):
            batch.accept(tokens)
    for out in (np.zeros((2, 1), np.int32), np.zeros((1, 0), np.int32), np.zeros((1, 1), np.int64)):
        with pytest.raises(lt.MaskError):
            lt.masks.fill_batch(batch, out)
    with pytest.raises(IndexError):
        batch[1]
    assert decoder.tokens == []


def test_a_row_that_fails_has_not_drawn(vocabulary: lt.Vocabulary) -> None:
    for rng in ("mt19937", "xoroshiro128plus", "philox"):
        failing = [False]

        def fail(*candidates: Any, failing: list[bool] = failing) -> None:
            if failing[0]:
                raise ValueError("not now")

        samplers = [
            lt.samplers.xtc(0.5, 0.01, seed=5, rng=rng),
            lt.samplers.custom(fail),
            lt.samplers.dist(seed=5, rng=rng),
        ]
        decoder = lt.Decoder(vocabulary, lt.Chain(samplers), stop_at_end_tokens=False)
        kept, batch = decoder.fork(), lt.Batch(vocabulary, [decoder])
        for at in range(60):
            logits = rows(at, 1)
            failing[0] = at % 3 == 0
            if failing[0]:
                with pytest.raises(ValueError, match="not now"):
                    batch.step(logits)
                assert isinstance(batch.try_step(logits)[1][0], ValueError)
                failing[0] = False
            assert batch.step(logits).tolist() == [kept.step(logits[0])]


def test_an_interrupt_is_not_an_error_of_a_row(vocabulary: lt.Vocabulary) -> None:
    def interrupted(*candidates: Any) -> None:
        raise KeyboardInterrupt

    def broken(*candidates: Any) -> None:
        raise ValueError("broken")

    calls = [lt.Chain([lt.samplers.custom(call), lt.samplers.greedy()]) for call in (broken, interrupted)]
    batch = lt.Batch(vocabulary, [lt.Decoder(vocabulary, chain) for chain in (lt.Chain.greedy(), *calls)])
    for step in (batch.step, batch.try_step):
        with pytest.raises(KeyboardInterrupt):
            step(rows(0, 3))
        assert [d.tokens for d in batch] == [[], [], []]


def out_of_fuel(vocabulary: lt.Vocabulary) -> lt.Matcher:
    """A matcher that cannot be asked what is allowed, for asking takes more than its fuel."""
    tree = lt.Catalogue.from_codes([*([a, b] for a in range(6) for b in range(6)), [6, 0]])
    other = lt.Catalogue.from_codes([[0, 0], *([a, 6] for a in range(1, 6))]).matcher(vocabulary)
    with pytest.raises(lt.LimitError):
        tree.matcher(vocabulary, intersect=other, fuel=3).allowed()
    return tree.matcher(vocabulary, intersect=other, fuel=3)


def test_a_row_without_fuel(vocabulary: lt.Vocabulary) -> None:
    sure = lt.Catalogue.from_codes([[0, 1, 2]]).matcher(vocabulary)
    batch = lt.Batch(
        vocabulary, [lt.Decoder(vocabulary, lt.Chain.greedy(), m) for m in (sure, out_of_fuel(vocabulary), sure)]
    )
    out = np.full((3, 1), -1, np.int32)
    with pytest.raises(lt.LimitError, match="row 1"):
        lt.masks.fill_batch(batch, out)
    assert out.ravel().tolist() == [0, 0, 0]
    batch = lt.Batch(
        vocabulary, [lt.Decoder(vocabulary, lt.Chain.greedy(), m) for m in (sure, out_of_fuel(vocabulary), sure)]
    )
    with pytest.raises(lt.LimitError, match="row 1"):
        batch.take_forced()
    assert [d.tokens for d in batch] == [[], [], []]


def test_a_decoder_that_is_in_use(vocabulary: lt.Vocabulary) -> None:
    def again(*candidates: Any) -> None:
        batch.step(rows(0, 1))

    chain = lt.Chain([lt.samplers.custom(again), lt.samplers.greedy()])
    batch = lt.Batch(vocabulary, [lt.Decoder(vocabulary, chain)])
    with pytest.raises(lt.StateError, match="in use elsewhere"):
        batch.step(rows(0, 1))
    assert batch[0].tokens == []


def test_several_answers_to_several_prompts(engine: LlamaCpp) -> None:
    vocabulary = engine.vocabulary
    asked = [("Is fire hot?", lt.Grammar.regex(" (Yes|No|Perhaps)[.]")), ("Count:", lt.Grammar.regex("( [0-9]){4}"))]
    prompts = [engine.encode(prompt, chat=False) for prompt, _ in asked]
    batch = lt.Batch(vocabulary)
    for prompt, (_, grammar) in zip(prompts, asked, strict=True):
        one = lt.Decoder(vocabulary, lt.Chain.llama_cpp(seed=3, temp=1.5), grammar)
        one.prime(prompt)
        batch.join(*one.sequences(4))
    session = engine.batch_session(8, forks=True)
    logits = np.asarray(session.evaluate_rows(prompts))[[0, 0, 0, 0, 1, 1, 1, 1]]
    parents, answers = [0, 0, 0, 0, 1, 1, 1, 1], list(batch)
    while len(batch):
        tokens = batch.step(logits)
        running = np.flatnonzero(~batch.finished)
        batch.leave_finished()
        if len(batch):
            session.reorder(np.asarray(parents)[running])
            logits = session.evaluate_rows([[token] for token in tokens[running]])
            parents = list(range(len(batch)))
    texts = [vocabulary.decode(decoder.tokens).decode() for decoder in answers]
    assert all(text in (" Yes.", " No.", " Perhaps.") for text in texts[:4])
    assert all(len(text) == 8 and text[1::2].isdigit() for text in texts[4:])
    assert len(set(texts)) > 2
    session.close()
