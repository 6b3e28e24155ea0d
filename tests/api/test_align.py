"""Test-time alignment in Python: steering, rules, gates, history, random numbers; what is refused, and how."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import logitree as lt

Row = npt.NDArray[np.float32]


def row(step: int, size: int = 400) -> Row:
    """Logits of one step, flat and peaked in turns."""
    return np.random.default_rng(step).normal(0, (0.2, 2.0, 9.0)[step % 3], size).astype(np.float32)


def run(chain: lt.Chain, n: int, start: int = 0) -> list[int]:
    """The tokens of n steps."""
    out = []
    for step in range(start, start + n):
        out.append(chain.draw(row(step)))
        chain.accept(out[-1])
    return out


def test_steering_is_built_in_every_way() -> None:
    built = lt.steering.Steering().veto([5, 2]).boost((7, 9), 1.5).boost(9, 0.5).add({1: -1.0}).add([(3, -math.inf)])
    assert built.edits == {1: -1.0, 2: -math.inf, 3: -math.inf, 5: -math.inf, 7: 1.5, 9: 2.0}
    assert list(built.edits) == sorted(built.edits)
    assert (len(built), bool(built), bool(lt.steering.Steering())) == (6, True, False)
    assert (
        lt.steering.Steering(built.edits)
        == built
        == copy.copy(built)
        == lt.steering.Steering(list(built.edits.items()))
    )
    assert lt.steering.Steering(built) is not built
    assert repr(lt.steering.Steering({4: 0.5, 2: -math.inf})) == "Steering({2: -inf, 4: 0.5})"
    other = copy.copy(built)
    assert other.clear() == lt.steering.Steering() != built


def test_steering_stays_until_it_is_changed() -> None:
    chain = lt.Chain.llama_cpp(seed=2)
    snapshot = chain.snapshot()
    for given in (lt.steering.Steering({4: 1.0}), [(4, 1.0)], {4: 1.0}):
        chain.steer(given)
        assert chain.steering.edits == {4: 1.0}
        chain.steer(None)
        assert not chain.steering
    chain.steer({4: 1.0})
    run(chain, 3)
    chain.rollback(2)
    assert chain.steering.edits == chain.fork().steering.edits == {4: 1.0}
    chain.restore(snapshot)
    assert chain.steering.edits == {4: 1.0}
    chain.reset()
    assert not chain.steering
    mine = lt.steering.Steering({4: 1.0})
    chain.steer(mine)
    mine.clear()
    assert chain.steering.edits == {4: 1.0}, "the chain has its own"


@pytest.mark.parametrize(
    "build",
    [
        lambda: lt.steering.Steering({1: math.nan}),
        lambda: lt.steering.Steering().boost([1, 2], math.inf),
        lambda: lt.steering.Steering().add({1: 1e39}),
        lambda: lt.steering.Steering().add({-1: 1.0}),
        lambda: lt.Chain.greedy().steer({1: math.nan}),
        lambda: lt.Chain.greedy().steer("text"),
        lambda: lt.steering.EntropyRule([]),
        lambda: lt.steering.EntropyRule([(None, {"temp": "hot"})]),
        lambda: lt.steering.EntropyRule([(None, {"temp": True})]),
        lambda: lt.steering.EntropyRule([(None, {3: 1.0})]),
        lambda: lt.steering.EntropyRule([(None, None)]),
        lambda: lt.steering.EntropyRule([3]),
        lambda: lt.steering.Burst({"temp": 2.0}),
        lambda: lt.steering.Burst({"temp": 2.0}, top_p_below=1.5),
        lambda: lt.steering.Burst({"temp": 2.0}, entropy_above=1.0, tokens=0),
        lambda: lt.steering.Burst({"temp": 2.0}, entropy_above=1.0, tokens=1.5),
        lambda: lt.steering.Burst([("temp", 2.0)], entropy_above=1.0),
        lambda: lt.Chain.greedy().adapt(lt.steering.EntropyRule([(None, {"temp": 1.0})])),
        lambda: lt.steering.PerplexityGate(math.nan),
        lambda: lt.steering.PerplexityGate(0.5),
        lambda: lt.steering.PerplexityGate(5.0, window=0),
        lambda: lt.steering.PerplexityGate(5.0, patience=-1),
        lambda: lt.metrics.RollingPerplexity(0),
        lambda: lt.metrics.RollingPerplexity(-3),
        lambda: lt.metrics.TokenHistory(-1),
        lambda: lt.metrics.TokenHistory(4).compute_adjustment(1, 1.0, repeat=0.0),
        lambda: lt.samplers.Random(-1),
        lambda: lt.samplers.Random(2**32, rng="mt19937"),
        lambda: lt.samplers.Random(1, rng="dice"),
    ],
)
def test_invalid_values_are_errors_when_built(build: Any) -> None:
    with pytest.raises(lt.SamplingError) as caught:
        build()
    assert caught.value.help


def test_invalid_token_ids_are_refused() -> None:
    steering = lt.steering.Steering({1: 1.0})
    for ids in (-1, [3, -1], [2**32]):
        with pytest.raises(lt.TokenError):
            steering.veto(ids)
        with pytest.raises(lt.TokenError):
            steering.boost(ids, 1.0)
    with pytest.raises(TypeError):
        steering.veto(None)  # type: ignore[arg-type]
    assert steering.edits == {1: 1.0}


def test_a_failed_edit_changes_nothing() -> None:
    steering = lt.steering.Steering({2: 3e38})
    with pytest.raises(lt.SamplingError):
        steering.boost([1, 2], 3e38)
    with pytest.raises(lt.SamplingError):
        steering.add({1: 1.0, 3: math.nan})
    assert len(steering) == 1


def test_bands_are_chosen_by_the_entropy() -> None:
    rule = lt.steering.EntropyRule([(2.0, {"top_k": 1}), (5.0, {"top_k": 2}), (None, {"top_k": 3})])
    assert repr(rule) == 'EntropyRule([(2, {"top_k": 1}), (5, {"top_k": 2}), (None, {"top_k": 3})])'
    chain = lt.Chain([lt.samplers.top_k(0), lt.samplers.dist(1)])
    chain.adapt(rule)
    assert repr(chain) == f"Chain([top_k(0), dist(seed=1)]) adapting by {rule!r}"
    seen: list[tuple[float, float]] = []
    called = chain.fork()
    called.adapt(lambda *given: seen.append(given) or {"top_k": 1 + (given[0] >= 2.0) + (given[0] >= 5.0)})
    for one in (chain, called):
        one.steer({4: 3.0, 5: -math.inf})
    for step in range(12):
        logits, allowed = row(step), [None, range(4, 90)][step % 2]
        sizes = [len(one.apply(logits, allowed=allowed)[0]) for one in (chain, called)]
        logits[[4, 5]] = logits[4] + 3.0, -math.inf
        logits = logits if allowed is None else logits[allowed]
        assert seen[-1] == pytest.approx(
            (lt.metrics.entropy(logits), lt.samplers.top_candidates(logits, 1)[0][1]), abs=1e-6
        )
        assert sizes == [1 + (seen[-1][0] >= 2.0) + (seen[-1][0] >= 5.0)] * 2
    assert chain.get("top_k") == called.get("top_k") == 0


def test_a_burst_is_described_and_part_of_snapshots() -> None:
    burst = lt.steering.Burst({"temp": 3.0, "top_k": 200}, top_p_below=0.02, tokens=4)
    assert repr(burst) == 'Burst({"temp": 3, "top_k": 200}, top_p_below=0.02, tokens=4)'
    chain = lt.Chain.llama_cpp(seed=6)
    chain.adapt(burst)
    with pytest.raises(lt.StateError, match="other samplers"):
        lt.Chain.llama_cpp(seed=6).restore(chain.snapshot())
    assert run(chain, 40) != run(lt.Chain.llama_cpp(seed=6), 40)


class Boom(Exception):
    """A caller's own."""


def test_a_callables_exceptions_come_out_as_they_are() -> None:
    boom = Boom("mine")

    def fails(entropy: float, top_p: float) -> None:
        raise boom

    vocabulary = lt.Vocabulary.from_tokens([bytes([i]) for i in range(200)])
    chain = lt.Chain.llama_cpp(seed=1)
    decoder = lt.Decoder(vocabulary, chain)
    expected = run(chain.fork(), 9)
    chain.adapt(fails)
    decoder.adapt(fails)
    for call in (chain.sample, chain.apply, chain.explain, decoder.step):
        with pytest.raises(Boom) as caught:
            call(row(0))
        assert caught.value is boom
    assert decoder.tokens == []
    for _ in range(200):
        with pytest.raises(Boom):
            chain.draw(row(0))
    chain.adapt(None)
    assert run(chain, 9) == expected
    for exit in (KeyboardInterrupt, SystemExit):

        def leaves(entropy: float, top_p: float, exit: type[BaseException] = exit) -> None:
            raise exit

        chain.adapt(leaves)
        with pytest.raises(exit):
            chain.draw(row(0))


@pytest.mark.parametrize(
    "result",
    [
        3,
        "temp",
        [("temp", 1.0)],
        {"temp": "x"},
        {1: 1.0},
        {"temp": math.nan},
        {"tau": 1.0},
        {"top_k": 0.5},
        {"temp": None},
    ],
)
def test_an_invalid_result_of_a_callable_is_an_error(result: Any) -> None:
    chain = lt.Chain.llama_cpp(seed=1)
    expected, before = run(chain.fork(), 9), repr(chain)
    chain.adapt(lambda entropy, top_p: result)
    with pytest.raises(lt.SamplingError):
        chain.draw(row(0))
    chain.adapt(None)
    assert repr(chain) == before
    assert run(chain, 9) == expected
    with pytest.raises(TypeError, match="a rule is"):
        chain.adapt(3)  # type: ignore[arg-type]


def test_a_running_decoder_is_aligned() -> None:
    words = [b"a", b"b", b"c", b"d", b"<end>"]
    vocabulary = lt.Vocabulary.from_tokens(words, end_tokens=[4])
    logits = np.array([3, 2, 1, 0, -9], np.float32)
    decoder = lt.Decoder(vocabulary, lt.Chain.llama_cpp(seed=0, temp=0.0), trace=True)
    assert decoder.step(logits) == 0
    decoder.steer({0: -math.inf, 3: 2.5})
    fork = decoder.fork()
    assert decoder.step(logits) == fork.step(logits) == 3
    assert decoder.last is not None
    assert decoder.last.effects[0][:3] == ("steering", 5, 4)
    decoder.adapt(lt.steering.EntropyRule([(None, {"temp": 0.8})]))
    decoder.set(top_k=1)
    assert decoder.chain.get("top_k") == 1.0
    decoder.steer(None)
    assert decoder.step(logits) == 0
    decoder.rollback(2)
    decoder.steer({1: 9.0})
    assert decoder.step(logits) == 1
    decoder.reset()
    assert decoder.step(logits) == 0
    with pytest.raises(lt.SamplingError, match="tau"):
        decoder.set(tau=1.0)


def test_a_veto_of_the_only_allowed_token_is_an_error() -> None:
    vocabulary = lt.Vocabulary.from_tokens([b"Y", b"ES", b"N", b"O", b"</s>"], end_tokens=[4])
    logits = np.zeros(5, np.float32)
    for trace in (False, True):
        matcher = lt.OneOf(["YES", "NO"]).matcher(vocabulary)
        decoder = lt.Decoder(vocabulary, lt.Chain.greedy(), matcher, trace=trace)
        decoder.steer(lt.steering.Steering().veto([2, 1]))
        assert decoder.step(logits) == 0, "N is vetoed"
        assert decoder.forced_tokens() == decoder.take_forced() == []
        with pytest.raises(lt.LogitsError, match=r"steering vetoes .*token 1, the only allowed one"):
            decoder.step(logits)
        assert decoder.tokens == [0]
        decoder.steer(None)
        assert decoder.take_forced() == [1]


def test_gates_and_windows() -> None:
    windowed = lt.metrics.RollingPerplexity(window=2)
    for surprisal in (9.0, 1.0, math.inf, 3.0):
        windowed.add(surprisal)
    assert (windowed.window, windowed.count, windowed.value) == (2, 2, pytest.approx(math.exp(2.0)))
    windowed.reset()
    assert (windowed.count, windowed.value) == (0, math.inf)
    assert lt.metrics.RollingPerplexity().window is None
    gate = lt.steering.PerplexityGate(math.exp(2.0), window=1, patience=1)
    assert [gate.add(s) for s in (3.0, 1.0, 3.0, 3.0)] == [False, False, False, True]
    assert (gate.is_open, gate.limit) == (True, pytest.approx(math.exp(2.0)))
    gate.reset()
    assert gate.value == math.inf
    assert "closed" in repr(gate)


def test_token_history_equals_the_window_of_penalties() -> None:
    history, chain = lt.metrics.TokenHistory(5), lt.Chain([lt.samplers.penalties(5, 1.3, 0.2, 0.1)])
    for token in (3, 1, 3, 7, 3, 3, 9):
        history.accept(token)
        chain.accept(token)
    assert (history.last_n, history.size, len(history)) == (5, 5, 5)
    assert (history.count(3), history.count(1), history.has(7), 1 in history, 9 in history) == (3, 0, True, False, True)
    assert history.unique_tokens() == [3, 7, 9]
    logits = row(1, 12)
    _, penalised, _ = chain.apply(logits)
    by_hand = [
        history.compute_adjustment(token, float(x), repeat=1.3, freq=0.2, present=0.1) for token, x in enumerate(logits)
    ]
    assert by_hand == penalised.tolist()
    history.rollback(2)
    assert (history.count(3), history.count(1), history.size) == (3, 1, 5)
    history.reset()
    assert (history.size, history.count(-1), history.unique_tokens()) == (0, 0, [])
    assert not lt.metrics.TokenHistory.has_penalties(repeat=1.0)
    assert lt.metrics.TokenHistory.has_penalties(freq=0.1) and lt.metrics.TokenHistory.has_penalties(repeat=1.1)


@pytest.mark.parametrize("rng", ["mt19937", "xoroshiro128plus", "philox"])
def test_random_numbers_are_those_of_dist(rng: str) -> None:
    random, chain = lt.samplers.Random(5, rng=rng), lt.Chain([lt.samplers.dist(5, rng=rng)])
    flat = np.zeros(1000, np.float32)
    numbers = [random.uniform() for _ in range(20)]
    for number in numbers:
        assert 0.0 <= number < 1.0
        token = chain.draw(flat)
        chain.accept(token)
        assert abs(token - number * 1000) <= 1.001
    assert random.drawn == 20
    random.seek(3)
    assert random.uniform() == numbers[3]
    assert (random.seed, lt.samplers.Random(random.seed, rng=rng).uniform()) == (5, numbers[0])
    if rng != "philox":
        with pytest.raises(lt.StateError, match="too far"):
            random.seek(2**40)
    assert lt.samplers.Random().seed != lt.samplers.Random().seed
