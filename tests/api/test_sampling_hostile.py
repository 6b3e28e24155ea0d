"""Hostile and mistaken arguments of samplers and chains: each error names the argument and what to do."""

from __future__ import annotations

import ast
import collections
import copy
import math
import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import logitree as lt
from samplers import ARGUMENTS, SOURCE, constructors

LOGITS = np.linspace(-2.0, 2.0, 100, dtype=np.float32)
HUGE = 10**400
NO_NUMBER: list[Any] = [True, np.True_, "x", "1", b"1", 1 + 2j, [1], (), {}, object(), np.zeros(2)]
NO_REAL: list[Any] = [*NO_NUMBER, HUGE, -HUGE, math.nan, math.inf, -math.inf, 1e300, np.float64("nan")]
NO_WHOLE: list[Any] = [*NO_NUMBER, HUGE, -HUGE, 2**40, 0.5, math.nan, math.inf, 1e300, np.float32(1.5), Decimal(1)]


def parameters() -> list[tuple[str, str, str]]:
    """Sampler, parameter and annotation of each numeric parameter."""
    found = []
    for node in ast.parse(SOURCE.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name in constructors():
            for arg in node.args.args:
                annotation = ast.unparse(arg.annotation) if arg.annotation else ""
                if annotation.removesuffix(" | None") in {"int", "float"}:
                    found.append((node.name, arg.arg, annotation))
    return found


def keywords() -> list[tuple[str, str]]:
    """Keyword and annotation of each numeric keyword of whole chains."""
    numeric = []
    for name, annotation in lt.samplers.ChainParams.__annotations__.items():
        text = annotation if isinstance(annotation, str) else getattr(annotation, "__forward_arg__", str(annotation))
        text = text.removesuffix(" | None")
        if text in {"int", "float"}:
            numeric.append((name, text))
    return numeric


def refused(name: str, call: Any, value: Any) -> None:
    with pytest.raises(lt.SamplingError) as caught:
        call()
    label = f"{name} = {value!r:.30}: {caught.value}"
    assert name in str(caught.value) and caught.value.help, label
    assert len(str(caught.value)) < 400, label


@pytest.mark.parametrize(("sampler", "name", "kind"), parameters(), ids=lambda x: str(x))
def test_every_parameter_refuses_other_values(sampler: str, name: str, kind: str) -> None:
    rest = dict(ARGUMENTS.get(sampler, [{}])[0])
    rest.pop(name, None)
    wrong = NO_REAL if kind == "float" else NO_WHOLE
    for value in [*wrong, *([] if "None" in kind else [None])]:
        refused(name, lambda value=value: getattr(lt.samplers, sampler)(**rest, **{name: value}), value)
    right: list[Any] = [1, np.int64(1), np.uint8(1), np.array(1)]
    if kind == "float":
        right = [0.5, np.float32(0.5), np.float64(0.5), np.float16(0.5), np.array(0.5, np.float32), Decimal("0.5")]
    shown = {repr(getattr(lt.samplers, sampler)(**rest, **{name: value})) for value in right}
    assert len(shown) == 1, shown


def test_every_parameter_is_known() -> None:
    assert len(parameters()) > 40
    assert {sampler for sampler, _, _ in parameters()} >= set(constructors()) - {"logit_bias", "greedy", "p_less"}
    assert len(keywords()) > 25


@pytest.mark.parametrize(("name", "kind"), keywords(), ids=lambda x: str(x))
def test_every_keyword_refuses_other_values(name: str, kind: str) -> None:
    presets: list[Any] = [lt.Chain.llama_cpp, lt.Chain.tsampler, lt.Chain.transformers]
    presets.append(lambda **keywords: lt.Chain.parse("ekypmt", **keywords))
    for preset in presets:
        for value in [*NO_NUMBER, HUGE, -HUGE, *([0.5, 1e300] if kind == "int" else [])]:
            refused(name, lambda value=value, preset=preset: preset(**{name: value}), value)
        # What no sampler of the chain is built from is not looked at.
        for value in [math.nan, math.inf, 1e300] if kind == "float" else []:
            shown = ""
            with suppress(lt.SamplingError):
                shown = repr(preset(seed=1, **{name: value}))
            assert "nan" not in shown and "inf" not in shown


def test_changing_a_parameter_refuses_the_same() -> None:
    chain = lt.Chain.llama_cpp(seed=0)
    shown = repr(chain)
    for value in ["x", None, HUGE, math.nan, [1], object()]:
        refused("top_p", lambda value=value: chain.set(top_p=value), value)
        refused("top_k", lambda value=value: chain.set(top_k=value), value)
    for value in [0.5, 2**40, 1e300]:
        refused("top_k" if value == 0.5 else "k", lambda value=value: chain.set(top_k=value), value)
    assert repr(chain) == shown
    scalars: dict[str, Any] = {"top_k": np.int64(7), "top_p": np.float32(0.5)}
    chain.set(**scalars)
    assert (chain.get("top_k"), chain.get("top_p")) == (7, 0.5)


@pytest.mark.parametrize(
    "biases", [None, 3, "x", [1], [(1,)], {"a": 1.0}, {-1: 1.0}, {2**32: 1.0}, {1: "x"}, {1: math.nan}, {1: HUGE}]
)
def test_invalid_biases_are_refused(biases: Any) -> None:
    refused("bias", lambda: lt.samplers.logit_bias(biases), biases)
    if biases is not None:
        refused("bias", lambda: lt.Chain.llama_cpp(logit_bias=biases), biases)


def test_seeds_are_literal() -> None:
    for name in ["dist", "mirostat", "mirostat_v2", "xtc"]:
        sampler = getattr(lt.samplers, name)
        assert "seed=0" in repr(sampler(seed=0)) and "seed=4294967295" in repr(sampler(seed=2**32 - 1))
        for wrong in [-1, 2**32, 2**64]:
            with pytest.raises(lt.SamplingError, match="seed"):
                sampler(seed=wrong)
        assert f"seed={2**64 - 1}" in repr(sampler(seed=2**64 - 1, rng="philox"))
    assert lt.Chain.llama_cpp(seed=0).seed == 0
    assert lt.Chain.llama_cpp().seed is not None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lt.Chain.llama_cpp(top_p=None), "top_p is None"),  # type: ignore[arg-type]
        (lambda: lt.Chain.greedy().rollback(-1), "n is -1"),
        (lambda: lt.Chain.greedy().sequences(-1), "n is -1"),
        (lambda: lt.Chain.greedy().sequences(2**40), "n is 1099511627776"),
        (lambda: lt.Chain.llama_cpp(logit_bias={1: 2.0, -3: 1.0}), r"logit_bias has \(-3, 1.0\) at 1"),
        (lambda: lt.Chain.greedy().steer({1: "x"}), r"steering has \(1, 'x'\) at 0"),  # type: ignore[dict-item]
        (lambda: lt.steering.Steering(5), "steering is not a mapping"),  # type: ignore[arg-type]
        (lambda: lt.Chain.transformers(xtc_probability=0.5), "the chain of transformers has no use for xtc_p"),
        (lambda: lt.steering.EntropyRule([(1.0, {})]), "let the last bound be None"),
    ],
)
def test_the_message_names_the_argument_and_the_way_out(call: Callable[[], object], message: str) -> None:
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
    running = lt.Chain.llama_cpp(seed=1)
    uses: list[Callable[[], object]] = [lambda: running.draw(LOGITS), lambda: running.get("temp"), running.reset]
    uses.append(lambda: running.steer(None))
    for use in uses:

        def rule(entropy: float, top_p: float, use: Callable[[], object] = use) -> None:
            use()

        running.adapt(rule)
        with pytest.raises(lt.StateError, match="the rule used the chain") as caught:
            running.draw(LOGITS)
        assert caught.value.help
    running.adapt(None)
    assert running.draw(LOGITS) == lt.Chain.llama_cpp(seed=1).draw(LOGITS)


def test_a_chain_in_parity_mode_says_so() -> None:
    assert repr(lt.Chain.greedy()) == "Chain([greedy()])"
    assert repr(lt.Chain.greedy().parity()) == "Chain([greedy()]) in parity mode"


def test_steering_is_copied() -> None:
    steering = lt.steering.Steering({1: 2.0})
    copied = copy.deepcopy(steering)
    copied.clear()
    assert steering.edits == {1: 2.0}
