"""Natural mistakes in sampling: each is an error that says what, where and the way out."""

from __future__ import annotations

import collections
import copy
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import logitree as lt

LOGITS = np.linspace(-2.0, 2.0, 100, dtype=np.float32)


def chain(**params: Any) -> lt.Chain:
    return lt.Chain.llama_cpp(seed=1, **params)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: chain(temp="hot"), "temp is 'hot'"),
        (lambda: chain(top_p=None), "top_p is None"),
        (lambda: chain(min_p=10**400), "min_p is 1000"),
        (lambda: chain().set(temp="hot"), "temp is 'hot'"),
        (lambda: chain().set(top_k=10**400), "top_k is 1000"),
        (lambda: lt.samplers.top_k(2**40), "k is 1099511627776"),
        (lambda: lt.samplers.top_k(40.5), "k is 40.5"),  # type: ignore[arg-type]
        (lambda: chain().rollback(-1), "n is -1"),
        (lambda: chain().sequences(-1), "n is -1"),
        (lambda: chain().sequences(2**40), "n is 1099511627776"),
        (lambda: chain(logit_bias={1: 2.0, -3: 1.0}), r"logit_bias has \(-3, 1.0\) at 1"),
        (lambda: chain().steer({1: "x"}), r"steering has \(1, 'x'\) at 0"),  # type: ignore[dict-item]
        (lambda: lt.steering.Steering(5), "steering is not a mapping"),  # type: ignore[arg-type]
        (lambda: lt.Chain.transformers(xtc_probability=0.5), "the chain of transformers has no use for xtc_p"),
        (lambda: lt.steering.EntropyRule([(1.0, {})]), "let the last bound be None"),
    ],
)
def test_a_number_or_mapping_that_is_none(call: Callable[[], object], message: str) -> None:
    with pytest.raises(lt.SamplingError, match=message) as caught:
        call()
    assert caught.value.help


def test_too_many_chains() -> None:
    with pytest.raises(lt.LimitError) as caught:
        lt.Chain.greedy().sequences(2**32 - 1)
    assert "4294967295 chains" in str(caught.value)
    assert caught.value.help


@pytest.mark.parametrize("mapping", [types.MappingProxyType({3: 9.0}), collections.UserDict({3: 9.0}), {3: 9.0}])
def test_any_mapping_is_a_mapping(mapping: Mapping[int, float]) -> None:
    assert repr(lt.samplers.logit_bias(mapping)) == "logit_bias({3: 9})"
    running = lt.Chain.greedy()
    running.steer(mapping)
    assert running.draw(LOGITS) == 3
    assert lt.steering.Steering(mapping) == lt.steering.Steering([(3, 9.0)])


def test_a_mask_that_is_none_is_described() -> None:
    with pytest.raises(lt.MaskError, match=r"an array of bool of shape \[100\]"):
        lt.Chain.greedy().draw(LOGITS, np.ones(100, bool))


@pytest.mark.parametrize("id", [128, 150, 191])
def test_the_allowed_id_without_a_logit_is_named(id: int) -> None:
    mask = lt.masks.from_ids(192, [5, id])
    with pytest.raises(lt.MaskError, match=f"id {id} is allowed"):
        lt.Chain.greedy().draw(LOGITS, mask)
    with pytest.raises(lt.MaskError, match=f"id {id} is allowed"):
        lt.beams.beam_top(LOGITS[None], [0.0], 1, mask[None])


def test_a_rule_that_uses_its_own_chain() -> None:
    running = chain()
    uses: list[Callable[[], object]] = [lambda: running.draw(LOGITS), lambda: running.get("temp"), running.reset]
    for use in uses:

        def rule(entropy: float, top_p: float, use: Callable[[], object] = use) -> None:
            use()

        running.adapt(rule)
        with pytest.raises(lt.StateError, match="the rule used the chain") as caught:
            running.draw(LOGITS)
        assert caught.value.help
    running.adapt(None)
    assert running.draw(LOGITS) == chain().draw(LOGITS)


def test_a_chain_in_parity_mode_says_so() -> None:
    assert repr(lt.Chain.greedy()) == "Chain([greedy()])"
    assert repr(lt.Chain.greedy().parity()) == "Chain([greedy()]) in parity mode"


def test_steering_is_copied() -> None:
    steering = lt.steering.Steering({1: 2.0})
    copied = copy.deepcopy(steering)
    copied.clear()
    assert steering.edits == {1: 2.0}
