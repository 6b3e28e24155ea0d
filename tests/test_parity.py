"""Parity mode against llama.cpp's own samplers, exactly; and what ours does where llama.cpp computes NaN.

`python tests/parity.py --cases 1000000` (or `make parity`) compares ten times as much and prints what was covered.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")

import parity
from parity_cases import SELECTING, SHAPERS
from parity_samplers import KINDS, World

import logitree as lt

CASES = 100_000
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_the_same_ids_logits_and_tokens(part: int) -> None:
    tally = parity.run(CASES // PARTS, first=part, stride=PARTS)
    assert not tally.differences, str(tally)
    assert tally.compared >= CASES // PARTS
    # None of what the suite is for was left out by chance.
    assert set(tally.samplers) == {kind.name for kind in KINDS}
    assert min(tally.samplers.values()) > 1000, str(tally)
    assert set(tally.events) == {"clone", "reset", "snapshot", "rollback"}
    assert tally.sizes["32,000 to 262,144"] > 0 or part > 0, str(tally)
    assert tally.undefined.total() < tally.compared // 50, str(tally)


@pytest.mark.parametrize("kind", SELECTING, ids=lambda kind: kind.name)
@pytest.mark.parametrize("after", KINDS, ids=lambda kind: kind.name)
def test_nothing_follows_a_selecting_sampler(kind: parity.Kind, after: parity.Kind) -> None:
    pick, world = random.Random(1), World(8, np.arange(8, dtype=np.int32))
    samplers = [kind.ours(kind.draw(pick, world)), after.ours(after.draw(pick, world))]
    with pytest.raises(lt.SamplingError, match="which selects"):
        lt.Chain(samplers)


STALE = [lt.top_k(3), lt.logit_bias({2: -np.inf})]
"""Leaves the best candidate at -inf, in an array that llama.cpp still holds to be sorted."""


@pytest.mark.parametrize("last", [lt.dist(0), lt.top_p(0.5), lt.typ_p(0.5)], ids=lambda sampler: sampler.name)
def test_best_held_to_be_at_inf_is_an_error(last: lt.Sampler) -> None:
    logits = np.array([0.0, 1.0, 2.0, 0.5], np.float32)
    with pytest.raises(lt.LogitsError, match="computes NaN here"):
        lt.Chain([*STALE, last]).parity().apply(logits)
    # Fast mode looks at the logits as they are.
    ids, _, probabilities = lt.Chain([*STALE, last]).apply(logits)
    assert ids[probabilities.argmax()] == 1


def test_candidates_without_probability_are_the_least_typical() -> None:
    """llama.cpp's entropy is NaN there; ours is that of the others."""
    logits = np.array([1.0, -np.inf, 0.5, -500.0, 0.9], np.float32)
    for chain in (lt.Chain([lt.typ_p(0.9)]), lt.Chain([lt.typ_p(0.9)]).parity()):
        ids = chain.apply(logits)[0].tolist()
        assert sorted(ids) == [0, 2, 4]
        np.testing.assert_array_equal(ids, lt.Chain([lt.typ_p(0.9)]).apply(logits[[0, 2, 4]])[0] * 2)
    everything = lt.Chain([lt.typ_p(0.9, 5)]).parity().apply(logits)[0].tolist()
    assert set(everything[3:]) == {1, 3}


def test_nothing_above_inf_is_an_error() -> None:
    chain = lt.Chain([lt.temp(0), lt.logit_bias({0: -np.inf})]).parity()
    with pytest.raises(lt.LogitsError, match="bans every candidate"):
        chain.apply(np.array([1.0, 0.0], np.float32))


def test_every_shaper_and_selector_is_of_llama_cpp() -> None:
    assert len(SHAPERS) + len(SELECTING) == len(KINDS) == len({kind.name for kind in KINDS})
