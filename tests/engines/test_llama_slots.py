"""Rows of llama.cpp that begin and end at any time: each has the logits that it would have alone, to the bit."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

import logitree as lt
from logitree.engines import ContextFull
from logitree.engines.llama_cpp import LlamaCpp


@pytest.fixture
def own_engine(engine: LlamaCpp) -> Iterator[LlamaCpp]:
    """The shared engine, without contexts of other tests."""
    engine._spare = None
    yield engine
    engine._spare = None


def alone(engine: LlamaCpp, parts: list[list[int]]) -> np.ndarray:
    """The logits after the parts of a sequence, evaluated one after the other by a session of its own."""
    engine._truncate(0)
    session = engine.session()
    for part in parts:
        logits = session.evaluate(part)
    return logits


def test_rows_that_come_and_go_have_the_logits_of_rows_alone(own_engine: LlamaCpp) -> None:
    engine, rng = own_engine, random.Random(1)
    words = [rng.randrange(300, 40_000) for _ in range(400)]
    session = engine.batch_session(4, 4 * 128)
    rows: list[list[int]] = [[] for _ in range(4)]
    reused = checked = 0
    for step in range(24):
        new: list[list[int]] = [[] for _ in rows]
        for row, held in enumerate(rows):
            if held and rng.random() < 0.2:
                session.end(row)
                held.clear()
            if not held and rng.random() < 0.5:
                # A prompt that begins as others do, and may be longer than a slot is at first.
                first = rng.choice([0, 0, 100])
                prompt = words[first : first + rng.choice([3, 40, 70, 140])] + words[step : step + 3]
                kept = session.begin(prompt, row)
                assert 0 <= kept < len(prompt)
                reused += kept
                held += prompt[:kept]
                new[row] = prompt[kept:]
            elif held and rng.random() < 0.8:
                new[row] = [rng.randrange(300, 40_000) for _ in range(rng.choice([1, 1, 1, 3]))]
        if not any(new):
            continue
        for held, more in zip(rows, new, strict=True):
            held += more
        for row, (more, logits) in enumerate(zip(new, session.evaluate_rows(new), strict=True)):
            if more and rng.random() < 0.2:
                assert np.array_equal(logits.copy(), alone(engine, [rows[row]]))
                checked += 1
    assert checked > 3
    assert reused > 50
    session.close()


def test_a_row_takes_over_what_another_holds_and_leaves_the_rest(own_engine: LlamaCpp) -> None:
    engine = own_engine
    session = engine.batch_session(3)
    long, other = list(range(1000, 1080)), list(range(2000, 2040))
    assert session.begin(long, 0) == 0
    session.evaluate_rows([long, [], []])
    # While row 0 runs, its beginning is copied.
    assert session.begin([*long[:50], 7, 8], 1) == 50
    session.evaluate_rows([[9], [7, 8], []])
    session.end(0)
    session.end(1)
    # Another prompt takes the slot that holds nothing; both others stay.
    assert session.begin(other, 2) == 0
    session.evaluate_rows([[], [], other])
    assert session.begin([*long, 9, 10], 0) == 81
    assert session.begin([*long[:50], 7, 8, 9], 1) == 52
    # All but the last token at most.
    session.end(0)
    assert session.begin(long, 0) == 79


def test_the_rows_of_a_pass_are_neighbours(own_engine: LlamaCpp) -> None:
    session = own_engine.batch_session(4)
    session.evaluate_rows([[5], [6], [7], [8]])
    session.end(1)
    before = own_engine.counters.forward_passes
    logits = [one.copy() for one in session.evaluate_rows([[9], [], [10], [11]])]
    assert own_engine.counters.forward_passes == before + 1
    assert sorted(session._slot_of.values()) == [0, 1, 2]
    for row, tokens in (0, [5, 9]), (2, [7, 10]), (3, [8, 11]):
        assert np.array_equal(logits[row], alone(own_engine, [tokens]))


def test_what_rows_may_not_do(own_engine: LlamaCpp) -> None:
    session = own_engine.batch_session(2, 2 * 256)
    with pytest.raises(lt.EngineError, match="row 2 of a session of 2"):
        session.begin([1, 2], 2)
    session.evaluate_rows([[5, 6], []])
    with pytest.raises(lt.EngineError, match="1 lists of tokens for 2 rows"):
        session.evaluate_rows([[5]])
    with pytest.raises(lt.TokenError):
        session.evaluate_rows([[1], [1 << 20]])
    with pytest.raises(ContextFull) as full:
        session.evaluate_rows([[1], [3] * (own_engine.n_ctx + 1)])
    assert full.value.rows == (1,)
    with pytest.raises(lt.EngineError, match="no 3 tokens to take back"):
        session.rollback(3)
    with pytest.raises(lt.EngineError, match="row 1 has no 1 tokens"):
        session.rollback(1, 1)
    session.rollback(1)
    logits = session.evaluate_rows([[7], []])[0].copy()
    assert np.array_equal(logits, alone(own_engine, [[5, 7]]))
    # Slots grow to the engine's context.
    logits = session.evaluate_rows([[8], [3] * 300])[0].copy()
    assert np.array_equal(logits, alone(own_engine, [[5, 7, 8]]))
    session.close()
    with pytest.raises(lt.EngineError, match="no rows"):
        session.evaluate_rows([[1], [2]])


def test_all_logits_of_a_row_are_those_of_one_pass_each(own_engine: LlamaCpp) -> None:
    """Whatever other slots hold, up to where logits depend on how tokens are put into passes."""
    engine, rng = own_engine, random.Random(2)
    words = [rng.randrange(300, 40_000) for _ in range(300)]
    session = engine.batch_session(4, 4 * 128)
    session.evaluate_rows([words[:30], words[40:90], words[100:103], []])
    for row, held in ((1, 50), (2, 3), (1, 57), (0, 30)):
        begin = {0: 0, 1: 40, 2: 100}[row]
        tokens = words[begin : begin + held + 7]
        slow = [alone(engine, [tokens[:held], *[[t] for t in tokens[held : held + n]]]).copy() for n in range(1, 8)]
        room = session.draft_room(row)
        rows = session.evaluate_all(tokens[held:], 7, row)
        assert all(np.array_equal(a, b) for a, b in zip(rows, slow, strict=True))
        assert session.draft_room(row) == room - 7
        if row == 0:
            continue
        session.rollback(3, row)
        assert np.array_equal(session.evaluate_all(tokens[-3:], 1, row)[0], slow[-1])
    begun = session.begin(words[200:215], 3)
    long = words[200:290]
    assert np.array_equal(session.evaluate_all(long[begun:], 2, 3)[1], alone(engine, [long[:-2], long[-2:]]))
    for last, match in ((0, "the logits of 0 of 2"), (3, "the logits of 3 of 2")):
        with pytest.raises(lt.EngineError, match=match):
            session.evaluate_all([5, 6], last, 0)
    with pytest.raises(ContextFull):
        session.evaluate_all([5] * (engine.n_ctx or 0), 1, 0)
