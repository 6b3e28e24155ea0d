"""Pickles, copies and snapshots: the restored sampler continues in the same way, in another process too."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import logitree as lt
from ids import stable_repr
from logitree import _core
from samplers import complete, examples

LOGITS = [np.random.default_rng(step).normal(scale=3, size=400).astype(np.float32) for step in range(12)]
NAMES = {name: getattr(lt.samplers, name) for name in lt.samplers.__all__} | {"inf": float("inf")}


def run(chain: lt.Chain, first: int, last: int) -> list[int]:
    tokens = []
    for logits in LOGITS[first:last]:
        tokens.append(chain.draw(logits))
        chain.accept(tokens[-1])
    return tokens


@pytest.mark.parametrize("sampler", examples(), ids=stable_repr)
def test_a_description_builds_the_sampler_again(sampler: lt.samplers.Sampler) -> None:
    built = [
        eval(repr(sampler), NAMES),
        pickle.loads(pickle.dumps(sampler)),
        copy.copy(sampler),
        copy.deepcopy(sampler),
    ]
    expected = run(complete(sampler), 0, 12)
    for again in built:
        assert isinstance(again, lt.samplers.Sampler)
        assert (again.name, repr(again)) == (sampler.name, repr(sampler))
        assert run(complete(again), 0, 12) == expected


@pytest.mark.parametrize("sampler", examples(), ids=stable_repr)
def test_a_run_continues_from_a_pickle_and_from_a_snapshot(sampler: lt.samplers.Sampler) -> None:
    whole = run(complete(sampler), 0, 12)
    chain = complete(sampler)
    assert run(chain, 0, 5) == whole[:5]
    fresh = complete(sampler)
    fresh.restore(chain.snapshot())
    copies = [pickle.loads(pickle.dumps(chain)), copy.copy(chain), copy.deepcopy(chain), fresh]
    for again in copies:
        assert (repr(again), again.accepted) == (repr(chain), 5)
        assert run(again, 5, 12) == whole[5:]
        again.rollback(9)
        assert run(again, 3, 12) == whole[3:]


def test_mode_parameters_and_rows_of_batches_are_pickled() -> None:
    chain = lt.Chain.llama_cpp(seed=3)
    assert pickle.loads(pickle.dumps(chain.parity())).mode == "parity"
    chain.set(temp=1.7, top_k=9)
    batch = np.stack(LOGITS[:4])
    chain.sample_batch(batch, accept=True)
    again = pickle.loads(pickle.dumps(chain))
    assert (again.get("top_k"), repr(again)) == (9, repr(chain))
    for _ in range(3):
        assert again.sample_batch(batch, accept=True).tolist() == chain.sample_batch(batch, accept=True).tolist()


def likelier(entropy: float, top_p: float) -> dict[str, float]:
    return {"temp": 0.3 if entropy > 3 else 1.5}


@pytest.mark.parametrize(
    "rule",
    [
        lt.steering.EntropyRule([(2.5, {"temp": 0.25}), (None, {"temp": 1.5, "top_k": 9})]),
        lt.steering.Burst({"temp": 4.0}, top_p_below=0.2, tokens=3),
        lt.steering.Burst({"top_k": 2.0}, entropy_above=3.5),
        likelier,
    ],
    ids=stable_repr,
)
def test_steering_and_rules_are_pickled(rule: Any) -> None:
    def chain() -> lt.Chain:
        built = lt.Chain.llama_cpp(seed=3)
        built.steer({4: 2.5, 9: -float("inf")})
        built.adapt(rule)
        return built

    whole = run(chain(), 0, 12)
    half = chain()
    assert run(half, 0, 5) == whole[:5]
    again = pickle.loads(pickle.dumps(half))
    assert again.steering == half.steering
    assert run(again, 5, 12) == whole[5:]
    if rule is not likelier:
        assert repr(pickle.loads(pickle.dumps(rule))) == repr(rule)
    batch = np.stack(LOGITS[:3])
    tokens = half.sample_batch(batch, accept=True).tolist()
    assert tokens == [state.draw(row) for state, row in zip(chain().sequences(3), batch, strict=True)]
    assert (
        pickle.loads(pickle.dumps(half)).sample_batch(batch, accept=False).tolist()
        == half.sample_batch(batch, accept=False).tolist()
    )


def test_many_breakers_are_pickled_and_what_does_not_pickle_says_so() -> None:
    vocabulary = lt.Vocabulary.from_tokens([b"%d" % i for i in range(400)], end_tokens=[0])
    many = lt.samplers.dry(0.8, breakers=[[i, i + 1] for i in range(300)])
    assert repr(pickle.loads(pickle.dumps(many))) == repr(many)
    with pytest.raises(lt.SamplingError, match="does not pickle"):
        pickle.dumps(lt.samplers.infill(vocabulary, eot=0))


def test_a_run_continues_in_another_process() -> None:
    chain = lt.Chain.llama_cpp(seed=9, penalty_repeat=1.3, logit_bias={5: -float("inf")})
    run(chain, 0, 6)
    program = (
        "import pickle, sys\n"
        "chain, rows = pickle.loads(sys.stdin.buffer.read())\n"
        "for row in rows:\n"
        "    token = chain.draw(row)\n"
        "    chain.accept(token)\n"
        "    print(token)\n"
    )
    sent = pickle.dumps((chain, LOGITS[6:]))
    done = subprocess.run([sys.executable, "-c", program], input=sent, capture_output=True, check=True)
    assert [int(token) for token in done.stdout.split()] == run(chain, 6, 12)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("", {}),
        ("top_q", {}),
        ("custom", {"fn": 1}),
        ("Chain", {"samplers": []}),
        ("__import__", {"name": "os"}),
        ("top_k", {"k": "40"}),
        ("top_k", {"k": 2**99}),
        ("top_k", {"k": True}),
        ("top_k", {"k": None}),
        ("top_k", {"k": 1, "q": 2}),
        ("top_k", {1: 2}),
        ("top_n_sigma", {}),
        ("logit_bias", {"biases": {1: float("nan")}}),
        ("logit_bias", {"biases": 3}),
        ("dist", {"rng": "dice"}),
        ("dist", {"rng": 3}),
        ("dry", {"breakers": [[]]}),
        ("a\0b", {}),
    ],
    ids=str,
)
def test_hostile_samplers_are_errors(name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(lt.LogitreeError):
        _core.sampler(name, arguments)


def test_hostile_states_are_errors() -> None:
    chain = lt.Chain.llama_cpp(seed=3)
    run(chain, 0, 4)
    snapshot = chain.snapshot()
    samplers = chain.samplers
    for damaged in (snapshot[:-1], b"", snapshot[:40] + b"\0" + snapshot[41:]):
        with pytest.raises(lt.StateError):
            _core.unpickle_chain(samplers, False, damaged, [], [], None)
    with pytest.raises(lt.StateError):
        _core.unpickle_chain(samplers[1:], False, snapshot, [], [], None)
    with pytest.raises(lt.StateError):
        _core.unpickle_chain(samplers, False, snapshot, [snapshot, b""], [], None)
    with pytest.raises(TypeError):
        _core.unpickle_chain(samplers, False, "text", [], [], None)  # type: ignore[arg-type]
    with pytest.raises(lt.SamplingError):
        _core.unpickle_chain(samplers[::-1], False, snapshot, [], [], None)
    assert run(_core.unpickle_chain(samplers, False, snapshot, [], [], None), 4, 12) == run(chain, 4, 12)
