"""What a chain measures of its steps, against the plain formulas in double."""

from __future__ import annotations

import math

import numpy as np
import pytest

import logitree as lt

CHAINS = {
    "dist": "dist",
    "default": "penalties;top_k;top_p;min_p;temperature",
    "greedy": "greedy",
    "typical": "typ_p;temperature",
}


def log_softmax(logits: np.ndarray) -> np.ndarray:
    z = logits.astype(np.float64)
    z = z - z.max()
    return z - math.log(np.exp(z).sum())


def entropy(log_p: np.ndarray) -> float:
    return float(-sum(math.exp(x) * x for x in log_p if x > -math.inf))


@pytest.mark.parametrize("text", CHAINS.values(), ids=CHAINS.keys())
@pytest.mark.parametrize("n", [1, 7, 900, 5000])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("parity", [False, True])
def test_both_levels_equal_the_formulas(text: str, n: int, masked: bool, parity: bool) -> None:
    rng = np.random.default_rng(n)
    logits = rng.normal(0, 3, n).astype(np.float32)
    allowed = sorted(rng.choice(n, (n + 1) // 2, replace=False).tolist()) if masked else None
    chain = lt.Chain.parse(text, seed=3, typ_p=0.9, penalty_repeat=1.2)
    chain = chain.parity() if parity else chain
    chain.accept(0)
    chain.measure()
    for _ in range(3):
        ids, left, _p = chain.apply(logits, allowed=allowed)
        token = chain.pick()
        measures = chain.measures
        assert measures is not None
        model, sampling = log_softmax(logits), log_softmax(left)
        picked = sampling[ids.tolist().index(token)]
        assert measures.model_log_probability == pytest.approx(model[token], abs=2e-6)
        assert measures.model_entropy == pytest.approx(entropy(model), abs=2e-6)
        assert measures.log_probability == pytest.approx(picked, abs=2e-6)
        assert measures.entropy == pytest.approx(entropy(sampling), abs=2e-6)
        bits = measures.bits()
        assert bits.surprisal == pytest.approx(-measures.log_probability / math.log(2))
        assert bits.model_surprisal == pytest.approx(measures.model_surprisal / math.log(2))
        chain.accept(token)


def test_measuring_changes_no_token_and_is_off_at_first() -> None:
    logits = np.random.default_rng(0).normal(0, 3, 3000).astype(np.float32)
    plain, measured = (lt.Chain.parse("top_p;temperature", seed=1) for _ in range(2))
    measured.measure()
    for _ in range(20):
        assert plain.draw(logits) == measured.draw(logits)
        assert plain.measures is None
        assert measured.measures is not None
    measured.measure(False)
    measured.draw(logits)
    assert measured.measures is None


def test_a_masked_model_counts_finite_logits_only() -> None:
    logits = np.array([1.0, math.nan, math.inf, 2.0, -math.inf], np.float32)
    chain = lt.Chain.greedy()
    chain.measure()
    assert chain.draw(logits, allowed=[0, 4]) == 0
    assert chain.measures is not None
    assert chain.measures.model_surprisal == pytest.approx(math.log(1 + math.e), abs=1e-6)
    assert chain.measures.surprisal == 0.0
    assert chain.measures.entropy == 0.0
