"""`logitree rtp`: checks the settings of RTP-LLM's processors before a server starts with them."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from .. import rtp
from ..rtp import BEYOND
from . import _common, vocab
from ._common import UsageError
from ._terminal import Terminal

ABOUT = """Check the settings of RTP-LLM's processors: all problems at once, each with its place.

examples:
  logitree rtp check rtp.json
  logitree rtp check rtp.json --env --vocab model.gguf
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    about = "check a file of settings, the environment's, and the tree-decode file that they name"
    check = actions.add_parser("check", help=about, description=about)
    check.add_argument("file", type=Path, nargs="?", metavar="FILE", help="a JSON object of settings")
    check.add_argument("--env", action="store_true", help="the environment's variables too; they count before the file")
    check.add_argument("--vocab", metavar="FILE", help="what the ids, tags and grammars must fit: as of logitree vocab")
    check.add_argument("--json", action="store_true", help="JSON on standard output and nothing else")
    _common.add_common(check)


def run(args: argparse.Namespace, out: Terminal, err: Terminal) -> int:
    """Runs the command."""
    if args.file is None and not args.env:
        raise UsageError("nothing to check: give FILE, --env or both")
    vocabulary = None if args.vocab is None else vocab.read(args.vocab)
    problems: tuple[rtp.Problem, ...] = ()
    try:
        config = rtp.Config.load(args.file, os.environ if args.env else {}, vocabulary=vocabulary)
    except rtp.ConfigError as error:
        problems = error.problems
    tree = None if problems else config.tree(None if vocabulary is None else len(vocabulary))
    beyond = 0 if tree is None else tree.report.count(BEYOND)
    if beyond and vocabulary is not None:
        message = f"{beyond} candidates lie outside the vocabulary of {len(vocabulary)} tokens"
        help = "check the tree against the model that it was made for"
        problems = (rtp.Problem(str(config.tree_decode_config), message, help),)
    if args.json:
        found = [{"place": one.place, "message": one.message, "help": one.help} for one in problems]
        facts: dict[str, Any] = {"problems": found}
        if not problems:
            facts["settings"] = {name: getattr(config, name) for name in config.sources}
            facts["sources"] = dict(config.sources)
            facts["passed_over"] = list(config.notes)
            facts["tree"] = None if tree is None else str(tree.report)
        out.line(json.dumps(facts, ensure_ascii=False))
        return int(bool(problems))
    for problem in problems:
        err.line(f"{err.paint('logitree: error:', 'red', 'bold')} {problem}")
    if problems:
        return 1
    out.line(config.describe() or "no setting is set: there are no processors")
    if tree is not None:
        out.line(str(tree.report))
    return 0
