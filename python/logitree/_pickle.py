"""Puts samplers and chains together again from what pickle took them apart into.

A sampler is its description, which is the call that builds it: only names of our constructors and plain values are
read, nothing is evaluated. The file knows no sampler by name; what a call means is checked where it is built.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from logitree import _core
from logitree._core import Burst, Chain, EntropyRule, Sampler, SamplingError, StateError

LONGEST = 1 << 24
"""Characters of a description: more than a bias for each of a million tokens."""


def sampler(description: str) -> Sampler:
    """The sampler that a description such as ``top_k(40)`` describes. SamplingError if it describes none."""
    name, arguments, keywords = _call(description)
    build = getattr(_core, name, None)
    if name.startswith("_") or not callable(build) or isinstance(build, type):
        raise SamplingError(f"there is no sampler {name[:80]!r}")
    built = _built(build, description, arguments, keywords)
    if not isinstance(built, Sampler):
        raise SamplingError(f"there is no sampler {name[:80]!r}")
    return built


def rule(description: str) -> EntropyRule | Burst:
    """The rule for ``Chain.adapt`` that a description such as ``EntropyRule([...])`` describes, or SamplingError."""
    name, arguments, keywords = _call(description)
    build = {"EntropyRule": EntropyRule, "Burst": Burst}.get(name)
    if build is None:
        raise SamplingError(f"there is no rule {name[:80]!r}")
    built: EntropyRule | Burst = _built(build, description, arguments, keywords)
    return built


def _built(build: Callable[..., Any], description: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
    """What the call gives; a call that does not fit its function is a SamplingError."""
    try:
        return build(*arguments, **keywords)
    except (TypeError, OverflowError) as error:
        raise SamplingError(f"{description[:80]!r} does not fit: {error}") from None


def _call(description: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Name, arguments and keywords of one call, all values plain; else SamplingError."""
    try:
        if not isinstance(description, str) or len(description) > LONGEST:
            raise ValueError
        call = ast.parse(description, mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
            raise ValueError
        keywords = {keyword.arg: _value(keyword.value) for keyword in call.keywords if keyword.arg is not None}
        if len(keywords) != len(call.keywords):
            raise ValueError
        return call.func.id, [_value(argument) for argument in call.args], keywords
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        raise SamplingError(f"nothing is described by {str(description)[:80]!r}") from None


def _value(node: ast.expr) -> Any:
    """A literal, in which ``inf`` and ``-inf`` are numbers too."""
    if isinstance(node, ast.Name) and node.id == "inf":
        return float("inf")
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _value(node.operand)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError
        return -value
    if isinstance(node, ast.Dict):
        if None in node.keys:
            raise ValueError
        return {_value(key): _value(value) for key, value in zip(node.keys, node.values, strict=True) if key}
    if isinstance(node, ast.List):
        return [_value(element) for element in node.elts]
    if isinstance(node, ast.Tuple):
        return tuple(_value(element) for element in node.elts)
    return ast.literal_eval(node)


def custom(fn: object, name: str, selects: bool) -> Sampler:
    """The sampler that calls ``fn``, which was pickled in its state."""
    return _core.custom(fn, name, selects=selects)


def dry(multiplier: float, base: float, allowed_length: int, last_n: int, breakers: list[list[int]]) -> Sampler:
    """The sampler of these numbers and breakers, of which its description does not list many."""
    return _core.dry(multiplier, base, allowed_length, last_n, breakers)


def chain(
    samplers: Sequence[Sampler],
    parity: bool,
    snapshot: bytes,
    rows: list[bytes],
    steering: list[tuple[int, float]],
    rule: EntropyRule | Burst | Callable[..., Any] | None,
) -> Chain:
    """The chain of the samplers, in the state that the snapshots hold. StateError if they are not its own."""
    built = Chain(samplers)
    if parity:
        built = built.parity()
    if not isinstance(snapshot, bytes) or not all(isinstance(row, bytes) for row in rows):
        raise StateError("the chain's state is not bytes")
    built.steer(steering)
    built.adapt(rule)
    built._resume(snapshot, rows)
    return built
