"""One example of every sampler that the package builds, found in `samplers.py`: tests of laws that all of them keep."""

from __future__ import annotations

import ast
import math
from pathlib import Path
from typing import Any

import logitree as lt

SOURCE = Path(lt.__file__).with_name("samplers.py")

ARGUMENTS: dict[str, list[dict[str, Any]]] = {
    "logit_bias": [{"biases": {3: 1.5, 7: -0.1}}, {"biases": {1: -math.inf}}, {"biases": {}}],
    "top_n_sigma": [{"n": 1.0}, {"n": -1.0}],
    "penalties": [{}, {"last_n": 8, "repeat": 1.1, "freq": 0.3, "present": -0.25}],
    "top_p": [{}, {"p": 0.1, "min_keep": 3}],
    "xtc": [{"p": 0.5, "t": 0.05, "seed": 4}],
    "dry": [{}, {"multiplier": 0.8, "base": 1.5, "allowed_length": 1, "breakers": [[3], [5, 7]]}],
    "mirostat": [{"seed": 3}],
    "mirostat_v2": [{"seed": 3, "tau": 4.0}],
    "adaptive_p": [{"target": 0.4, "seed": 2}],
    "epsilon_cutoff": [{"epsilon": 1e-3}, {"epsilon": 0.0}],
    "eta_cutoff": [{"epsilon": 1e-3}],
    "edt": [{"t0": 0.8, "theta": 0.3}],
    "hf_top_p": [{"p": 0.8}],
    "hf_typ_p": [{"p": 0.8}],
    "no_repeat_ngram": [{"n": 2}, {"n": 1}],
    "dist": [{"seed": 0}, {"seed": 2**40, "rng": "philox", "sequence": 3}, {"seed": 5, "rng": "xoroshiro128plus"}],
}
"""What a sampler is built with: needed where an argument has no default, else what is worth a case of its own."""


def constructors() -> list[str]:
    """Names of the functions that give a sampler, but for those that are made of an object."""
    found = [
        node.name
        for node in ast.parse(SOURCE.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Name) and node.returns.id == "Sampler"
    ]
    return [name for name in found if name not in {"custom", "infill"}]


def examples() -> list[lt.samplers.Sampler]:
    """At least one of each."""
    return [
        getattr(lt.samplers, name)(**arguments) for name in constructors() for arguments in ARGUMENTS.get(name, [{}])
    ]


def complete(sampler: lt.samplers.Sampler, seed: int = 0) -> lt.Chain:
    """A chain of it that picks."""
    try:
        lt.Chain([sampler, lt.samplers.dist(seed)])
    except lt.SamplingError:
        return lt.Chain([sampler])
    return lt.Chain([sampler, lt.samplers.dist(seed)])
