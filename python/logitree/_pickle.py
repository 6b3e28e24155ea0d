"""Puts samplers and chains together again from what pickle took them apart into.

A sampler is its description, which is the call that builds it: only names of our constructors and plain values are
read, nothing is evaluated. The file knows no sampler by name; what a call means is checked where it is built.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from logitree import _core
from logitree._core import Chain, Sampler, SamplingError, StateError

LONGEST = 1 << 24
"""Characters of a description: more than a bias for each of a million tokens."""


def sampler(description: str) -> Sampler:
    """The sampler that a description such as ``top_k(40)`` describes. SamplingError if it describes none."""
    try:
        if not isinstance(description, str) or len(description) > LONGEST:
            raise ValueError
        call = ast.parse(description, mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
            raise ValueError
        arguments = [_value(argument) for argument in call.args]
        keywords = {keyword.arg: _value(keyword.value) for keyword in call.keywords if keyword.arg is not None}
        if len(keywords) != len(call.keywords):
            raise ValueError
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        raise SamplingError(f"no sampler is described by {str(description)[:80]!r}") from None
    build = getattr(_core, call.func.id, None)
    if call.func.id.startswith("_") or not callable(build) or isinstance(build, type):
        raise SamplingError(f"there is no sampler {call.func.id[:80]!r}")
    try:
        built = build(*arguments, **keywords)
    except (TypeError, OverflowError) as error:
        raise SamplingError(f"{description[:80]!r} does not fit: {error}") from None
    if not isinstance(built, Sampler):
        raise SamplingError(f"there is no sampler {call.func.id[:80]!r}")
    return built


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


def chain(samplers: Sequence[Sampler], parity: bool, snapshot: bytes, rows: list[bytes]) -> Chain:
    """The chain of the samplers, in the state that the snapshots hold. StateError if they are not its own."""
    built = Chain(samplers)
    if parity:
        built = built.parity()
    if not isinstance(snapshot, bytes) or not all(isinstance(row, bytes) for row in rows):
        raise StateError("the chain's state is not bytes")
    built._resume(snapshot, rows)
    return built
