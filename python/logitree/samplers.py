"""Constructors of samplers, one for each row of the core's table, and samplers of one's own.

``Chain([penalties(), top_k(40), temp(0.7), dist(seed=1)])`` makes a chain. docs/samplers.md lists them all.
"""

from logitree import _core
from logitree._core import Random, Sampler, custom, dry_breakers, top_candidates
from logitree._params import ChainParams

globals().update(_core.sampler_constructors())

__all__ = [
    "ChainParams",
    "Random",
    "Sampler",
    "custom",
    "dry_breakers",
    "top_candidates",
    *_core.sampler_constructors(),
]
