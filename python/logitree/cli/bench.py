"""`logitree bench`: hands over to `logitree.bench`."""

from __future__ import annotations

import argparse

from ._terminal import Terminal

ABOUT = """Measure logitree, with its peers in the same run.

Arguments are those of the benchmarks: a suite, --json, --quick. Without any: what there is to measure.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="SUITE [--json] [--quick]", help="see above")


def run(args: argparse.Namespace, _out: Terminal, _err: Terminal) -> int:
    """Runs the command."""
    from .. import bench

    return int(bench.main(args.rest) or 0)
