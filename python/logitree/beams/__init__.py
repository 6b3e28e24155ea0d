"""Beam search over a catalogue or any walk of token sequences: exact, diverse or sampled without replacement.

`beam_search` is the entry point. Engines provide rows that fork (`logitree.engines.Session.reorder`).
"""

from __future__ import annotations

from .._core import beam_top
from ..engines._rows import reindex
from ._loop import BeamStep, OnBeamStep
from ._options import Normalize, Width
from ._search import Prompt, beam_search
from ._survivors import Hypothesis
from ._walk import FAILED, FINISHED, Candidates, TokenWalk

__all__ = [
    "FAILED",
    "FINISHED",
    "BeamStep",
    "Candidates",
    "Hypothesis",
    "Normalize",
    "OnBeamStep",
    "Prompt",
    "TokenWalk",
    "Width",
    "beam_search",
    "beam_top",
    "reindex",
]
