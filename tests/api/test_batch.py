"""Batches and beams in Python: rows of all shapes and dtypes, masks, states, threads, errors."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

import logitree as lt

RNG = np.random.default_rng(7)
LOGITS = RNG.normal(scale=3, size=(9, 500)).astype(np.float32)


def default(**parameters: Any) -> lt.Chain:
    return lt.Chain.llama_cpp(seed=5, penalty_repeat=1.2, **parameters)


def one_by_one(chains: list[lt.Chain], rows: Any, masks: list[dict[str, Any]] | None = None) -> list[int]:
    tokens = []
    for at, (chain, row) in enumerate(zip(chains, rows, strict=True)):
        tokens.append(chain.draw(row, **(masks[at] if masks else {})))
        chain.accept(tokens[-1])
    return tokens


def test_a_batch_is_its_rows_one_by_one() -> None:
    for rng in ("mt19937", "xoroshiro128plus", "philox"):
        kept = default(rng=rng)
        given = default(rng=rng).sequences(9)
        expected = default(rng=rng).sequences(9)
        for step in range(4):
            rows = LOGITS + np.float32(step)
            tokens = kept.sample_batch(rows, accept=True)
            assert (tokens.dtype, tokens.shape) == (np.uint32, (9,))
            slow = one_by_one(expected, rows)
            assert tokens.tolist() == slow
            assert kept.sample_batch(list(rows), states=given, accept=True, threads=3).tolist() == slow
        assert [chain.accepted for chain in given] == [4] * 9
        assert kept.accepted == 0
        kept.reset()
        fresh = default(rng=rng).sample_batch(LOGITS, accept=False).tolist()
        assert kept.fork().sample_batch(LOGITS[:2], accept=False).tolist() == fresh[:2]
        assert kept.sample_batch(LOGITS, accept=False).tolist() == fresh
        kept.set(temp=0.0)
        assert kept.sample_batch(LOGITS, accept=False).tolist() == LOGITS.argmax(axis=1).tolist()


def test_rows_may_be_added() -> None:
    grown, expected = default(), default().sequences(9)
    assert grown.sample_batch(LOGITS[:2], accept=True).tolist() == one_by_one(expected[:2], LOGITS[:2])
    assert grown.sample_batch(LOGITS, accept=True).tolist() == one_by_one(expected, LOGITS)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_process_samples_in_threads_too() -> None:
    rows = RNG.normal(size=(4, 600_000)).astype(np.float32)
    expected = default().sample_batch(rows, threads=2, accept=False).tolist()
    child = os.fork()
    if child == 0:
        os._exit(0 if default().sample_batch(rows, threads=2, accept=False).tolist() == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_other_threads_run_meanwhile() -> None:
    rows = RNG.normal(size=(16, 150_000)).astype(np.float32)
    chain = lt.Chain.parse("dist", seed=1)
    began, stop, done = threading.Event(), threading.Event(), threading.Event()

    def sample() -> None:
        began.set()
        for _ in range(300):
            if not stop.is_set():
                chain.sample_batch(rows, accept=False)
        done.set()

    interval = sys.getswitchinterval()
    # No thread switches are forced: this thread runs only when a batch releases the GIL by itself.
    sys.setswitchinterval(1000)
    try:
        worker = threading.Thread(target=sample)
        worker.start()
        while not began.is_set():
            time.sleep(0)
        time.sleep(0)
        assert not done.is_set()
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        worker.join()


def test_ragged_rows_and_other_chains() -> None:
    rows = [LOGITS[0], LOGITS[1, :30], LOGITS[2].astype(np.float16), LOGITS[3, :1]]

    def chains() -> list[lt.Chain]:
        return [default(), lt.Chain.greedy(), lt.Chain.parse("dist", seed=4), lt.Chain.parse("min_p", seed=1)]

    expected = one_by_one(chains(), rows)
    assert lt.Chain.greedy().sample_batch(rows, states=chains(), accept=False).tolist() == expected
    assert lt.Chain.greedy().sample_batch(tuple(rows), states=tuple(chains()), accept=False).tolist() == expected


def test_masks() -> None:
    ids = [sorted(RNG.choice(500, 12, replace=False).tolist()) for _ in range(9)]
    words = np.stack([lt.masks.from_ids(500, row) for row in ids])
    expected = one_by_one(default().sequences(9), LOGITS, [{"allowed": row} for row in ids])
    mixed = [ids[at] if at % 2 else words[at] for at in range(9)]
    for masks in (words, words.view(np.uint32), list(words), ids, mixed):
        assert default().sample_batch(LOGITS, masks, accept=False).tolist() == expected
    some = [None, *ids[1:]]
    options: list[dict[str, Any]] = [{"allowed": row} for row in ids]
    options[0] = {}
    assert default().sample_batch(LOGITS, some, accept=False).tolist() == one_by_one(
        default().sequences(9), LOGITS, options
    )
    for wrong, place in [
        (words[:8], ""),
        (ids[:8], ""),
        (words[0], ""),
        (words.astype(np.int64), ""),
        ([*ids[:4], [-1], *ids[5:]], "row 4"),
        ([*ids[:4], [500], *ids[5:]], "row 4"),
        ([*ids[:4], "all", *ids[5:]], "row 4"),
    ]:
        with pytest.raises(lt.MaskError) as caught:
            default().sample_batch(LOGITS, wrong, accept=False)
        assert caught.value.place.startswith(place)
    with pytest.raises(lt.LogitsError, match="no token is allowed") as nothing:
        default().sample_batch(LOGITS, [*ids[:4], [], *ids[5:]], accept=False)
    assert nothing.value.place == "row 4"


def test_misuse_is_an_error() -> None:
    chain = default()
    for logits in (LOGITS[0], LOGITS.astype(np.float64), LOGITS[None], LOGITS[:, ::2], None, "text", 3):
        with pytest.raises(lt.LogitsError):
            chain.sample_batch(logits, accept=False)
    for row in (LOGITS[:2], LOGITS[0, ::2], LOGITS[0].astype(np.float64), None, [0.5]):
        with pytest.raises(lt.LogitsError) as caught:
            chain.sample_batch([LOGITS[0], row], accept=False)
        assert caught.value.place == "row 1"
    with pytest.raises(lt.SamplingError, match="8 chains for 9 rows"):
        chain.sample_batch(LOGITS, states=chain.sequences(8), accept=False)
    twice = chain.sequences(9)
    twice[7] = twice[2]
    with pytest.raises(lt.StateError, match="that of row 2") as shared:
        chain.sample_batch(LOGITS, states=twice, accept=False)
    assert shared.value.place == "row 7"
    with pytest.raises(lt.SamplingError, match="states"):
        chain.sample_batch(LOGITS, states=[1] * 9, accept=False)  # type: ignore[list-item]
    for threads in (0, -1, 1.5, "2", 2**70):
        with pytest.raises(lt.SamplingError, match="threads"):
            chain.sample_batch(LOGITS, threads=threads, accept=False)  # type: ignore[arg-type]
    with pytest.raises(lt.SamplingError, match="selects"):
        lt.Chain([lt.samplers.top_k(3)]).sample_batch(LOGITS, accept=False)
    assert chain.sample_batch(LOGITS[:0], accept=False).tolist() == chain.sample_batch([], accept=False).tolist() == []
    with pytest.raises(lt.LogitsError, match="0 logits"):
        chain.sample_batch(LOGITS[:, :0], accept=False)


def test_log_probabilities_are_those_of_the_measures() -> None:
    chain = lt.Chain([lt.samplers.top_k(5), lt.samplers.temp(0.7), lt.samplers.dist(seed=1)])
    plain = chain.fork()
    tokens, before, after = chain.sample_batch(LOGITS, log_probabilities=True, accept=False)
    assert (before.dtype, after.dtype) == (np.float64, np.float64)
    assert plain.sample_batch(LOGITS, accept=False).tolist() == tokens.tolist()
    for state, row, token, b, a in zip(chain.sequences(9), LOGITS, tokens, before, after, strict=True):
        state.measure()
        assert state.draw(row) == token
        assert state.measures is not None
        assert (state.measures.model_log_probability, state.measures.log_probability) == (b, a)


def test_beams_are_the_best_of_all() -> None:
    scores = np.array([0.0, -1.0, -math.inf])
    ids = [[3, 5, 499], [0, 3], [7]]
    for allowed, masks in (
        (ids, ids),
        (ids, np.stack([lt.masks.from_ids(500, row) for row in ids])),
        ([range(500)] * 3, None),
    ):
        every = [
            (-float(score + lt.metrics.log_softmax(row, [token])[0]), at, token)
            for at, (row, score) in enumerate(zip(LOGITS, scores, strict=False))
            for token in allowed[at]
        ]
        rows, tokens, got = lt.beams.beam_top(LOGITS[:3], scores, 4, masks)
        assert (rows.dtype, tokens.dtype, got.dtype) == (np.uint32, np.uint32, np.float64)
        assert [(-score, row, token) for row, token, score in zip(rows, tokens, got, strict=True)] == sorted(every)[:4]


def test_wrong_beams() -> None:
    bad = LOGITS.copy()
    bad[2, 9] = np.nan
    with pytest.raises(lt.LogitsError) as caught:
        lt.beams.beam_top(bad, [0.0] * 9, 3)
    assert caught.value.place == "row 2, id 9"
    rows, _, _ = lt.beams.beam_top(bad, [0.0, -1.0, -math.inf, *[0.0] * 6], 20)
    assert 2 not in rows.tolist()
    for scores in ([0.0] * 8 + [math.nan], [0.0] * 8 + [math.inf]):
        with pytest.raises(lt.LogitsError) as caught:
            lt.beams.beam_top(LOGITS, scores, 3)
        assert caught.value.place == "row 8"
    for scores, width in (([0.0] * 8, 3), (["a"] * 9, 3), ([0.0] * 9, -1), ([0.0] * 9, 2.5), (0.0, 3)):
        with pytest.raises(lt.SamplingError):
            lt.beams.beam_top(LOGITS, scores, width)  # type: ignore[arg-type]
    with pytest.raises(lt.MaskError):
        lt.beams.beam_top(LOGITS, [0.0] * 9, 3, [[600]] * 9)
    assert [len(column) for column in lt.beams.beam_top(LOGITS[:2], np.zeros(2), 1000, [[3], []])] == [1, 1, 1]
