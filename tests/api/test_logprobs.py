"""Log-probabilities of tokens, before and after constraint and filters, against the plain formulas."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import logitree as lt
from logitree.speculation import NGramDrafter
from table_engine import DraftingEngine, TableEngine


def log_softmax(row: np.ndarray) -> np.ndarray:
    """log p of every token; tokens at -inf have none."""
    wide = row.astype(np.float64)
    made: np.ndarray = wide - wide.max() - math.log(np.exp(wide - wide.max()).sum())
    return made


def best(logs: np.ndarray, n: int) -> list[tuple[int, float]]:
    """The n likeliest, as (id, log p)."""
    order = sorted(np.flatnonzero(logs > -math.inf).tolist(), key=lambda token: (-logs[token], token))
    return [(token, float(logs[token])) for token in order[:n]]


def tokens_of(generation: lt.Generation[Any]) -> list[lt.Token]:
    """The token events."""
    return [event for event in generation if isinstance(event, lt.Token)]


def close(got: Any, expected: list[tuple[int, float]]) -> bool:
    """Whether these are the same tokens with the same log-probabilities."""
    return [t for t, _ in got] == [t for t, _ in expected] and np.allclose(
        [p for _, p in got], [p for _, p in expected], atol=1e-5
    )


@pytest.mark.parametrize(("trace", "seed"), list(itertools.product([False, True], [0, 1])))
def test_before_and_after_the_filters(trace: bool, seed: int) -> None:
    engine = TableEngine(seed)
    options: dict[str, Any] = {
        "chain": lt.Chain([lt.samplers.top_k(5), lt.samplers.temp(0.7), lt.samplers.dist(seed)]),
        "max_tokens": 12,
        "stop": (),
    }
    generation = lt.generate(engine, "x", logprobs=3, trace=trace, **options)
    assert generation.tokens == lt.generate(engine, "x", **options).tokens, "telling changes nothing"
    held, total = ord("x"), 0.0
    for token in tokens_of(generation):
        model = log_softmax(engine.table[held])
        left = np.full(257, -math.inf)
        kept = [t for t, _ in best(model, 5)]
        left[kept] = log_softmax(engine.table[held][kept] / np.float32(0.7))
        found = token.logprobs
        assert found is not None
        assert found.model == pytest.approx(model[token.token], abs=1e-5)
        assert found.final == pytest.approx(left[token.token], abs=1e-5)
        assert close(found.top, best(model, 3))
        assert close(found.final_top, best(left, 3))
        held, total = token.token, total + found.model
    stats = generation.stats
    assert (stats.logprob, stats.logprob_tokens) == (pytest.approx(total), stats.sampled_tokens)
    assert stats.mean_logprob == pytest.approx(total / stats.sampled_tokens)
    assert stats.perplexity == pytest.approx(math.exp(-total / stats.sampled_tokens))


def test_the_constraint_counts_after_and_not_before() -> None:
    engine = TableEngine(4)
    (first, *rest) = tokens_of(
        lt.generate(engine, "x", ["abc", "acd"], chain=lt.Chain.greedy(), logprobs=2, force=False)
    )
    found = first.logprobs
    assert found is not None
    assert found.model == pytest.approx(log_softmax(engine.table[ord("x")])[97], abs=1e-5)
    assert (found.final, found.final_top) == (0.0, ((97, 0.0),)), "the only token that is allowed"
    second = rest[0].logprobs
    assert second is not None
    two = log_softmax(engine.table[97][[98, 99]])
    assert close(second.final_top, best(np.array([-math.inf] * 98 + list(two)), 2)), "greedy tells what it took from"
    assert second.final == pytest.approx(two.max(), abs=1e-5)
    assert all(token.logprobs is not None for token in rest)


def test_forced_tokens_have_none() -> None:
    generation = lt.generate(TableEngine(4), "x", ["abc", "acd"], chain=lt.Chain.greedy(), logprobs=2)
    found = [(token.forced, token.logprobs is None) for token in tokens_of(generation)]
    assert found == [(True, True), (False, False), (True, True)]
    assert generation.stats.logprob_tokens == 1


def test_off_by_default_and_without_alternatives() -> None:
    engine = TableEngine(2)
    for off in (None, False):
        generation = lt.generate(engine, "x", seed=1, max_tokens=3, logprobs=off)
        assert all(token.logprobs is None for token in tokens_of(generation))
        stats = generation.stats
        assert (stats.logprob, stats.mean_logprob, stats.perplexity, stats.logprob_tokens) == (None, None, None, 0)
    for alone in (True, 0):
        found = [token.logprobs for token in tokens_of(lt.generate(engine, "x", seed=1, max_tokens=3, logprobs=alone))]
        assert all(one is not None and one.model < 0 and one.top == one.final_top == () for one in found)
    empty = lt.generate(engine, "x", max_tokens=0, logprobs=1).stats
    assert (empty.logprob, empty.mean_logprob, empty.perplexity) == (0.0, None, None)


def test_batches_and_drafts_tell_the_same() -> None:
    engine, options = DraftingEngine(1, scale=2.0), {"max_tokens": 20, "logprobs": 2, "temperature": 1.0}
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    together = lt.generate(engine, [[120], [121]], schema, seed=3, **options)
    for prompt, row in zip([[120], [121]], together, strict=True):
        alone = lt.generate(engine, prompt, schema, seed=3, **options)
        drafted = lt.generate(engine, prompt, schema, seed=3, drafter=NGramDrafter(), **options)
        found = [(token.token, token.logprobs) for token in tokens_of(alone)]
        assert [(token.token, token.logprobs) for token in tokens_of(row)] == found
        assert [(token.token, token.logprobs) for token in tokens_of(drafted)] == found


@pytest.mark.parametrize(
    ("wrong", "kind"), [(-1, lt.LimitError), (1001, lt.LimitError), (2.5, TypeError), ("3", TypeError)]
)
def test_numbers_that_mean_nothing(wrong: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="logprobs is"):
        lt.generate(TableEngine(), "x", logprobs=wrong)
    with pytest.raises(TypeError, match="top_logprobs=: write logprobs=n"):
        lt.generate(TableEngine(), "x", top_logprobs=3)


def test_a_token_that_the_model_could_not_write() -> None:
    engine = TableEngine(1)
    engine.table[:, 97] = -math.inf
    generation = lt.generate(engine, "x", ["a"], logprobs=1, force=False)
    (token,) = tokens_of(generation)
    assert token.logprobs is not None
    assert (token.logprobs.model, generation.stats.perplexity) == (-math.inf, math.inf)
