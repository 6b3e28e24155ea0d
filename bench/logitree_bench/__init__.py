"""Measures logitree beside its peers in the same run, one suite per room of the core. Not part of the wheel.

A suite is a module of :mod:`logitree_bench.suites` with ``run(bench: Bench) -> None``; it measures
through the public API only. ``python -m logitree_bench SUITE`` prints its records; ``make bench`` also saves them
in ``bench/results`` and writes the tables of the documents from those files.
"""

from logitree_bench._cli import add_arguments, run_command
from logitree_bench._facts import machine
from logitree_bench._harness import Bench, Contender, Prepared, Skip, lower_quartile, optional, required
from logitree_bench._sources import large_vocabulary, model_file, quantized_file, vocabulary_file

__all__ = [
    "Bench",
    "Contender",
    "Prepared",
    "Skip",
    "add_arguments",
    "large_vocabulary",
    "lower_quartile",
    "machine",
    "model_file",
    "optional",
    "quantized_file",
    "required",
    "run_command",
    "vocabulary_file",
]
