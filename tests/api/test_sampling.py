"""The chain in Python: buffers it reads, masks, state, errors."""

from __future__ import annotations

import array
import ctypes
import math
from typing import Any

import numpy as np
import pytest

import logitree as lt

LOGITS = np.array([0.5, 2.0, -1.0, 1.5, 0.0], np.float32)


def close(got: float, expected: float) -> bool:
    return got == expected or abs(got - expected) <= 1e-5


def test_metrics_of_ids() -> None:
    log_p = lt.metrics.log_softmax(LOGITS, [1, 3, 99, -1, 2**32])
    expected = LOGITS.astype(np.float64) - math.log(np.exp(LOGITS.astype(np.float64)).sum())
    np.testing.assert_allclose(log_p[:2], expected[[1, 3]], atol=1e-6)
    assert (log_p[2:] == -math.inf).all()
    assert log_p.dtype == np.float64
    top = lt.samplers.top_candidates(LOGITS, 2)
    assert [i for i, _ in top] == [1, 3]
    assert close(top[0][1], math.exp(expected[1]))
    assert close(lt.metrics.surprisal(LOGITS, 1), -expected[1])
    assert lt.metrics.surprisal(LOGITS, -1) == lt.metrics.surprisal(LOGITS, 99) == math.inf
    assert close(lt.metrics.log_sum_exp(LOGITS), 2 - expected[1])
    with pytest.raises(lt.SamplingError, match="base"):
        lt.metrics.entropy(LOGITS, "trits")


def test_every_float32_buffer_is_read() -> None:
    row = np.stack([LOGITS - 9, LOGITS])[1]
    frozen = LOGITS.copy()
    frozen.flags.writeable = False
    buffers = [
        LOGITS,
        row,
        frozen,
        (ctypes.c_float * 5)(*LOGITS.tolist()),
        array.array("f", LOGITS.tolist()),
        memoryview(LOGITS),
    ]
    for buffer in buffers:
        before = bytes(buffer)
        assert lt.Chain.greedy().draw(buffer) == 1
        chain = lt.Chain(
            [
                lt.samplers.logit_bias({1: -100.0}),
                lt.samplers.penalties(8, 1.5),
                lt.samplers.temp(0.5),
                lt.samplers.greedy(),
            ]
        )
        chain.accept(3)
        assert chain.draw(buffer) == 3
        chain.apply(buffer)
        assert bytes(buffer) == before


class Dlpack:
    """An object that NumPy can only take through DLPack."""

    def __dlpack__(self, **_: Any) -> Any:
        return LOGITS.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return LOGITS.__dlpack_device__()


def test_dlpack() -> None:
    assert lt.Chain.greedy().draw(Dlpack()) == 1


@pytest.mark.parametrize(
    ("logits", "says"),
    [
        (LOGITS.astype(np.float64), "float64.*float32, float16, bfloat16"),
        (LOGITS.astype(">f2"), ">f2"),
        (LOGITS.astype(">f4"), ">f4"),
        (LOGITS.tolist(), "list"),
        (LOGITS.reshape(1, 5), r"\[1, 5\]"),
        (np.arange(10, dtype=np.float32)[::2], "contiguous"),
        (np.arange(5), "int64"),
        ("text", "str"),
        (None, "NoneType"),
        (object(), "object"),
        (np.zeros(0, np.float32), "0 logits"),
        (np.array([1.0, np.nan, 2.0], np.float32), r"NaN .*\(at id 1\)"),
        (np.array([1.0, np.inf], np.float32), r"\+inf .*\(at id 1\)"),
        (np.full(4, -np.inf, np.float32), "-inf"),
    ],
)
def test_wrong_logits_say_what_to_do(logits: Any, says: str) -> None:
    with pytest.raises(lt.LogitsError, match=says) as caught:
        lt.Chain.greedy().draw(logits)
    assert caught.value.help


def test_masks() -> None:
    greedy = lt.Chain.greedy()
    assert greedy.draw(LOGITS, np.array([0b10101], np.int32)) == 0
    assert greedy.draw(LOGITS, np.array([0b10101], np.uint32)) == 0
    assert greedy.draw(LOGITS, np.array([-1], np.int32)) == 1
    assert greedy.draw(LOGITS, allowed=[4, 2, 4, 3]) == 3
    assert greedy.draw(LOGITS, allowed=(2,)) == 2
    ids, logits, p = lt.Chain([lt.samplers.temp(2.0)]).apply(LOGITS, np.array([0b01010], np.int32))
    assert (ids.dtype, logits.dtype, p.dtype) == (np.uint32, np.float32, np.float32)
    assert ids.tolist() == [1, 3]
    assert logits.tolist() == [1.0, 0.75]
    assert close(float(p.sum()), 1.0)
    for mask in ([1, 2], np.array([1], np.int64), np.zeros((1, 1), np.int32), np.zeros(4, np.int32)[::2]):
        with pytest.raises(lt.MaskError):
            greedy.draw(LOGITS, mask)
    with pytest.raises(lt.MaskError, match="both"):
        greedy.draw(LOGITS, np.array([1], np.int32), allowed=[1])
    with pytest.raises(lt.MaskError, match="id 5 is allowed"):
        greedy.draw(LOGITS, allowed=[1, 5])
    with pytest.raises(lt.MaskError, match="sequence of token ids"):
        greedy.draw(LOGITS, allowed=[-1])
    for empty in ({"allowed": []}, {"mask": np.zeros(1, np.int32)}):
        with pytest.raises(lt.LogitsError, match="no token is allowed"):
            greedy.draw(LOGITS, **empty)


def test_chains_say_what_they_are() -> None:
    chain = lt.Chain(
        [lt.samplers.penalties(64, 1.1), lt.samplers.top_k(40), lt.samplers.temp(0.8), lt.samplers.dist(0)]
    )
    assert chain.names == ["penalties", "top_k", "temp", "dist"]
    assert chain.seed == 0
    assert repr(chain) == (
        "Chain([penalties(last_n=64, repeat=1.1, freq=0, present=0), top_k(40), temp(0.8), dist(seed=0)])"
    )
    assert [repr(s) for s in chain.samplers][1:] == ["top_k(40)", "temp(0.8)", "dist(seed=0)"]
    assert lt.Chain.parse("penalties;top-k;nucleus;temp", seed=1).names == [
        "penalties",
        "top_k",
        "top_p",
        "temp",
        "dist",
    ]
    assert lt.Chain.parse("kpt", seed=1, logit_bias={3: 1.0}).names == [
        "logit_bias",
        "top_k",
        "top_p",
        "temp",
        "dist",
    ]
    default = ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temp", "dist"]
    assert lt.Chain.llama_cpp().names == default
    assert "repeat=1.1" in repr(lt.Chain.tsampler(seed=5))
    assert lt.Chain.tsampler(seed=5).seed == 5
    assert lt.Chain.greedy().seed is None


def test_tsamplers_preset_does_what_its_readme_says() -> None:
    milliseconds = 1_790_000_000_000
    assert lt.Chain.tsampler(seed=milliseconds).seed == milliseconds
    with pytest.raises(lt.SamplingError, match="32 bits"):
        lt.Chain.tsampler(seed=milliseconds, rng="mt19937")
    # A top_k of the whole vocabulary keeps the order of ids, a smaller one sorts.
    off: dict[str, Any] = {"top_p": 1.0, "min_p": 0.0, "temp": 1.0, "penalty_repeat": 1.0, "seed": 1}
    values = np.array([1, 3, 2, 5, 4], np.float32)
    for mode in ("fast", "parity"):
        for k, order in ((5, [0, 1, 2, 3, 4]), (9, [0, 1, 2, 3, 4]), (4, [3, 4, 1, 2])):
            chain = lt.Chain.tsampler(top_k=k, **off)
            assert (chain.parity() if mode == "parity" else chain).apply(values)[0].tolist() == order
        # Of equal logits top_n_sigma leaves one, with whatever rounding of their mean.
        for value in (0.0, 0.1, -7.3):
            equal = np.full(301, value, np.float32)
            equal[:3] = -np.inf
            chain = lt.Chain.tsampler(top_k=301, top_n_sigma=1.0, **off)
            p = (chain.parity() if mode == "parity" else chain).apply(equal)
            assert p[0][p[2] > 0].tolist() == [3]
    assert len(lt.Chain([lt.samplers.top_n_sigma(1.0)]).apply(np.zeros(5, np.float32))[0]) == 5


def test_seeds_repeat_the_draws() -> None:
    flat = np.zeros(1000, np.float32)

    def tokens(seed: Any) -> list[int]:
        chain = lt.Chain.parse("dist", seed=seed)
        return [chain.draw(flat) for _ in range(8)]

    assert tokens(0) == tokens(0) != tokens(1)
    assert tokens(2**32 - 1) == tokens(2**32 - 1) != tokens(0)
    fresh = lt.Chain.parse("dist")
    assert fresh.seed is not None
    assert tokens(fresh.seed) == [fresh.draw(flat) for _ in range(8)]
    assert len({lt.Chain.parse("dist").seed for _ in range(20)}) > 15
    for seed in (-1, 2**32, 1.5, "0"):
        with pytest.raises(lt.SamplingError, match="seed"):
            lt.samplers.dist(seed)


def test_state() -> None:
    flat = np.zeros(500, np.float32)
    chain = lt.Chain.parse("penalties;dist", seed=3, penalty_repeat=2.0, penalty_present=9.0)
    first = [chain.sample(flat) for _ in range(9)]
    fork = chain.fork()
    fork.rollback(4)
    assert (chain.accepted, fork.accepted) == (9, 5)
    assert [fork.sample(flat) for _ in range(4)] == first[5:]
    chain.reset()
    assert [chain.sample(flat) for _ in range(9)] == first
    with pytest.raises(lt.StateError, match="10"):
        chain.rollback(10)
    chain.forced()
    chain.rollback()
    assert chain.sample(flat) == first[-1]


def test_pick_goes_with_apply() -> None:
    chain = lt.Chain.llama_cpp(seed=0)
    with pytest.raises(lt.StateError):
        chain.pick()
    ids, _, _ = chain.apply(LOGITS)
    assert chain.pick() in ids.tolist()
    assert chain.pick() == chain.pick()
    shaping = lt.Chain([lt.samplers.top_k(2)])
    with pytest.raises(lt.SamplingError, match="selects"):
        shaping.draw(LOGITS)
    with pytest.raises(lt.SamplingError, match="follows"):
        lt.Chain([lt.samplers.greedy(), lt.samplers.top_k(2)])


def test_sample_draws_and_accepts() -> None:
    one, other = (lt.Chain.llama_cpp(seed=3, penalty_repeat=1.5) for _ in range(2))
    for step in range(6):
        token = one.sample(LOGITS)
        assert token == other.draw(LOGITS) == other.pick()
        assert (one.accepted, other.accepted) == (step + 1, step)
        other.accept(token)
    with pytest.raises(lt.MaskError):
        one.sample(LOGITS, allowed=[LOGITS.size])
    assert one.accepted == 6


def test_explain_draws_nothing_and_changes_no_state() -> None:
    one, other = (lt.Chain.llama_cpp(seed=3, xtc_probability=0.5) for _ in range(2))
    saved = one.snapshot()
    assert [str(e) for e in one.explain(LOGITS)] == [str(e) for e in one.explain(LOGITS)]
    assert one.snapshot() == saved
    assert [one.sample(LOGITS) for _ in range(5)] == [other.sample(LOGITS) for _ in range(5)]


def test_explain() -> None:
    chain = lt.Chain(
        [
            lt.samplers.logit_bias({0: 1.0}),
            lt.samplers.top_k(3),
            lt.samplers.top_p(1.0),
            lt.samplers.temp(0.5),
            lt.samplers.greedy(),
        ]
    )
    effects = chain.explain(LOGITS)
    seen = [(e.sampler, e.before, e.after, e.changed) for e in effects]
    assert seen == [
        ("logit_bias", 5, 5, 1),
        ("top_k", 5, 3, 0),
        ("top_p", 3, 3, 0),
        ("temp", 3, 3, 3),
        ("greedy", 3, 3, 0),
    ]
    biased = LOGITS.astype(np.float64)
    biased[0] += 1.0
    p = np.exp(biased) / np.exp(biased).sum()
    assert close(effects[1].mass_cut, p[2] + p[4])
    assert effects[2].mass_cut == effects[0].mass_cut == 0.0
    assert "top_k: 5 -> 3" in repr(effects[1])


@pytest.mark.parametrize(
    "build",
    [
        lambda: lt.samplers.penalties(64, 0.0),
        lambda: lt.samplers.logit_bias([(1, 1.0), (1, 2.0)]),
        lambda: lt.Chain.llama_cpp(top_q=3),
        lambda: lt.Chain.parse("top_k;tip_k"),
        lambda: lt.Chain.parse("z"),
        lambda: lt.Chain.parse(""),
        lambda: lt.Chain.parse("k\0"),
        lambda: lt.Chain.parse("ключ"),
    ],
)
def test_invalid_chains_are_errors_when_built(build: Any) -> None:
    with pytest.raises(lt.SamplingError) as caught:
        build()
    assert isinstance(caught.value, ValueError)
    assert caught.value.help


@pytest.mark.peers
def test_torch_tensors_on_the_cpu_are_read_in_place() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        tensor = torch.from_numpy(LOGITS).to(dtype)
        assert lt.Chain.greedy().draw(tensor) == 1
        assert lt.Chain.greedy().sample_batch(torch.stack([tensor, tensor.flip(0)]), accept=False).tolist() == [1, 3]
    with pytest.raises(lt.LogitsError, match="gradient"):
        lt.Chain.greedy().draw(torch.from_numpy(LOGITS).to(torch.bfloat16).requires_grad_())


def test_the_sampling_distribution_has_its_own_surprisal_and_entropy() -> None:
    ids, logits, p = lt.Chain([lt.samplers.top_k(3), lt.samplers.temp(0.7)]).apply(LOGITS)
    for id, share in zip(ids, p, strict=True):
        assert lt.metrics.surprisal(logits, int(id), ids=ids) == pytest.approx(-np.log(share), rel=1e-5)
        assert lt.metrics.surprisal(logits, int(id), "bits", ids=ids) == pytest.approx(-np.log2(share), rel=1e-5)
    assert lt.metrics.entropy(logits) == pytest.approx(-(p * np.log(p)).sum(), rel=1e-5)
    gone = next(id for id in range(len(LOGITS)) if id not in ids)
    assert lt.metrics.surprisal(logits, gone, ids=ids) == np.inf
    assert lt.metrics.surprisal(logits[:1], int(ids[0]), ids=ids[:1]) == 0.0
    with pytest.raises(lt.LogitsError, match="2 ids for 3 logits"):
        lt.metrics.surprisal(logits, 0, ids=ids[:2])


def test_set_changes_all_or_nothing() -> None:
    chain = lt.Chain.llama_cpp(seed=0)
    before = repr(chain)
    for wrong in ({"temp": 0.5, "bogus": 1.0}, {"temp": 0.5, "top_k": 1.5}, {"temp": 0.5, "penalty_repeat": -1.0}):
        with pytest.raises(lt.SamplingError):
            chain.set(**wrong)
        assert repr(chain) == before
    chain.set(temp=0.5, top_k=7)
    assert (chain.get("temp"), chain.get("top_k")) == (0.5, 7.0)


@pytest.mark.parametrize("keywords", [{"top_h": 0.4}, {"min_k": 3.0}, {"p_less_norm": False}, {"edt_n": 0.8}])
def test_presets_refuse_keywords_that_they_do_not_use(keywords: dict[str, Any]) -> None:
    for preset in (lt.Chain.llama_cpp, lt.Chain.tsampler):
        with pytest.raises(lt.SamplingError, match="no use for"):
            preset(**keywords)


def test_samplers_of_a_chain_have_their_initial_state() -> None:
    chain = lt.Chain([lt.samplers.penalties(8, 1.5), lt.samplers.dist(seed=3)])
    first = chain.draw(LOGITS)
    for token in (1, 1, 2):
        chain.accept(token)
        chain.draw(LOGITS)
    assert lt.Chain(chain.samplers).draw(LOGITS) == first
