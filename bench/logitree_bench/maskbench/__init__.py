"""MaskBench: logitree, llguidance and XGrammar over the same JSON Schemas, in the same run.

``python -m logitree_bench maskbench [--sample N] [--seed S] [--engines ...] [--save DIR]``. The data are the
development half of MaskBench's schemas in the shared data folder, the vocabulary is Llama 3's.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import logitree as lt
from logitree_bench._data import MASKBENCH, data_file, read_maskbench
from logitree_bench._facts import results_file, shared
from logitree_bench._harness import Skip
from logitree_bench._sources import vocabulary_file
from logitree_bench.maskbench import _report
from logitree_bench.maskbench._engines import ENGINES
from logitree_bench.maskbench._judge import judge
from logitree_bench.maskbench._run import Plan, run, tokenizer
from logitree_bench.maskbench._summary import Findings, Row

PEER_SIZES = {"llguidance": 900, "xgrammar": 300}
"""Peers are given so many schemas of the shuffled list, ours all of them: XGrammar compiles some for seconds."""

MEMORY = 12 << 30

__all__ = ["ENGINES", "PEER_SIZES", "add_arguments", "run_command"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``parser`` the arguments that only MaskBench has."""
    group = parser.add_argument_group("maskbench")
    group.add_argument("--sample", type=int, metavar="N", help="maskbench: only N schemas (default: all)")
    group.add_argument("--seed", type=int, default=1, metavar="S", help="maskbench: which schemas come first (1)")
    group.add_argument(
        "--engines",
        metavar="NAMES",
        help=f"maskbench: some of, divided by commas: {', '.join(ENGINES)} (default: all that are installed)",
    )
    group.add_argument(
        "--limit", type=float, default=30.0, metavar="SECONDS", help="maskbench: the longest for one schema (30)"
    )


def run_command(arguments: argparse.Namespace) -> int:
    """Measure, print the report and keep it if asked; 0 when it ran, 1 without the data, 2 for a wrong name."""
    named = [name.strip() for name in (arguments.engines or ",".join(ENGINES)).split(",")]
    unknown = [name for name in named if name not in ENGINES]
    if unknown:
        print(f"maskbench: error: no engine {', '.join(unknown)}; there are: {', '.join(ENGINES)}", file=sys.stderr)
        return 2
    archive, vocabulary = data_file(MASKBENCH), vocabulary_file("llama-bpe")
    for missing in (archive, vocabulary):
        if isinstance(missing, Skip):
            print(f"maskbench: skipped: {missing.reason}", file=sys.stderr)
            return 1
    assert isinstance(archive, Path) and isinstance(vocabulary, Path)
    files = read_maskbench(archive)
    size = min(arguments.sample or len(files), len(files))
    if arguments.quick:
        size = min(size, 60)
    sizes = {name: min(size, PEER_SIZES.get(name, size)) for name in named}
    plan = Plan(arguments.seed, ENGINES, sizes, arguments.limit, MEMORY)
    load = [_load()]
    found = run(files, vocabulary, plan, _progress())
    load.append(_load())
    if isinstance(found, Skip):
        print(f"maskbench: skipped: {found.reason}", file=sys.stderr)
        return 1
    cases, outcomes, skipped = found
    other = outcomes.get(_report.ANY_ORDER)
    findings = Findings(judge(), _pieces(vocabulary), other.measured if other else {})
    summary = {"skipped": skipped, "load": load, **_report.summarise(plan, cases, outcomes, findings)}
    _keep(summary, arguments.quick, arguments.save)
    return 0


def _keep(summary: Row, quick: bool, folder: Path | None) -> None:
    """Print the table, and write the whole report where a folder is given: every wrong verdict has a line."""
    from logitree_bench.report import table  # a program of its own: not to be loaded with the package

    print(table({**shared("maskbench", quick), **summary}))
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        text = results_file("maskbench", quick, {"records": [], **summary})
        (folder / "maskbench.json").write_text(text, encoding="utf-8")


def _load() -> float | None:
    """How many processes wanted a core over the last minute: above the number of cores, times are not to be trusted."""
    ask = getattr(os, "getloadavg", None)
    return round(ask()[0], 2) if ask else None


def _progress() -> Callable[[int, int], None]:
    """Says on a terminal how far it is, and elsewhere every half a minute."""
    live, last = sys.stderr.isatty(), [time.monotonic()]

    def tell(done: int, of: int) -> None:
        now = time.monotonic()
        if done == of or now - last[0] > (0.5 if live else 30):
            last[0] = now
            print(f"{done:,} of {of:,} schemas", end="\r" if live and done < of else "\n", file=sys.stderr, flush=True)

    return tell


def _pieces(path: Path) -> Callable[[str], list[bytes]]:
    """The tokens of a text as bytes."""
    tokenize, vocabulary = tokenizer(path), lt.Vocabulary.from_gguf(str(path))
    assert not isinstance(tokenize, Skip)
    return lambda text: [vocabulary[id] for id in tokenize(text)]
