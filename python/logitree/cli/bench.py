"""`logitree bench`: hands over to `logitree.bench`."""

from __future__ import annotations

import argparse

from .. import bench
from ._terminal import Terminal

ABOUT = """Measure logitree beside its peers, in the same run.

example:
  logitree bench choices --quick --json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    bench.add_arguments(parser)


def run(args: argparse.Namespace, _out: Terminal, _err: Terminal) -> int:
    """Runs the command."""
    return bench.run_command(args)
