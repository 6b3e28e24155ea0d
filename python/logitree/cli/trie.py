"""`logitree trie`: a vocabulary as a tree of bytes."""

from __future__ import annotations

import argparse

from . import _common
from ._common import UsageError
from ._terminal import Terminal
from .vocab import read

ABOUT = """Print a part of a vocabulary as a tree of bytes.

examples:
  logitree trie --prefix " hell" --depth 4
  logitree trie --prefix "qu" --dot | dot -Tsvg > qu.svg
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="where the vocabulary is read from (see vocab)")
    parser.add_argument("--prefix", type=_common.text, default="", metavar="STR", help="begin at the node of this text")
    parser.add_argument("--depth", type=int, default=2, metavar="N", help="levels to print (2)")
    parser.add_argument("--nodes", type=int, default=200, metavar="N", help="most nodes to print (200)")
    parser.add_argument("--dot", action="store_true", help="print it for Graphviz")
    _common.add_common(parser)


def run(args: argparse.Namespace, out: Terminal, _err: Terminal) -> int:
    """Runs the command."""
    for name, value in {"--depth": args.depth, "--nodes": args.nodes}.items():
        if value < 0:
            raise UsageError(f"{name} is {value}, expected 0 or more")
    trie = read(args.file).trie
    draw = trie.graphviz if args.dot else trie.dump
    text = draw(prefix=args.prefix.encode(), depth=args.depth, max_nodes=args.nodes)
    out.write(text if text.endswith("\n") else text + "\n")
    return 0
