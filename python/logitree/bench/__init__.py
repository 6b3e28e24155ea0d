"""Measures logitree beside its peers, in the same run, one suite a room.

A suite is a module of :mod:`logitree.bench.suites` with ``run(bench: Bench) -> None``; it measures
through the public API only. ``logitree bench SUITE`` prints its records, ``make bench`` also keeps them
in ``bench/results`` and draws the README's tables and the plots from those files.
"""

from logitree.bench._cli import add_arguments, run_command
from logitree.bench._facts import machine
from logitree.bench._harness import Bench, Contender, Prepared, Skip, lower_quartile, optional
from logitree.bench._sources import model_file, vocabulary_file

__all__ = [
    "Bench",
    "Contender",
    "Prepared",
    "Skip",
    "add_arguments",
    "lower_quartile",
    "machine",
    "model_file",
    "optional",
    "run_command",
    "vocabulary_file",
]
