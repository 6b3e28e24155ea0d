"""Beam search along a tree of token sequences: exact, diverse or sampled without replacement, over any engine.

`logitree.beam_search` is the door. It knows no runtime: `logitree.engines` has the sessions.
"""

from __future__ import annotations

from ..engines._rows import reindex
from ._kept import Hypothesis
from ._options import Normalize, Width
from ._paths import FAILED, FINISHED, Candidates, Paths
from ._run import BeamStep, OnBeamStep
from ._search import Prompt, beam_search

__all__ = [
    "FAILED",
    "FINISHED",
    "BeamStep",
    "Candidates",
    "Hypothesis",
    "Normalize",
    "OnBeamStep",
    "Paths",
    "Prompt",
    "Width",
    "beam_search",
    "reindex",
]
