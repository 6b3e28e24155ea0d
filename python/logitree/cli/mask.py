"""`logitree mask`: which tokens may come after a text."""

from __future__ import annotations

import argparse
import json

from .. import ConstraintError
from . import _common, _grammar
from ._common import UsageError
from ._terminal import Terminal, fit, visible
from .vocab import read

ABOUT = """Show which tokens are allowed after a text, for a grammar and a vocabulary.

examples:
  logitree mask --regex "[0-9]{4}-[0-9]{2}" 20
  logitree mask --json-schema '{"enum": ["red", "green"]}' '"r' --json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    _grammar.add_place(parser)
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="most tokens to show (20)")
    _grammar.add_grammar(parser, required=True)
    _common.add_common(parser)


def run(args: argparse.Namespace, out: Terminal, _err: Terminal) -> int:
    """Runs the command."""
    if args.limit < 0:
        raise UsageError(f"--limit is {args.limit}, expected 0 or more")
    grammar = _grammar.grammar(args)
    assert grammar is not None  # argparse asks for one
    vocabulary = read(args.vocab)
    matcher = grammar.matcher(vocabulary)
    text = args.text.encode()
    if _grammar.advance(matcher, vocabulary, text) < len(text):
        raise ConstraintError(str(grammar.matcher(vocabulary).explain(text=text)).splitlines()[0])
    allowed = matcher.allowed()
    shown = list(allowed)[: args.limit]
    if args.json:
        tokens = [{"id": i, "text": vocabulary[i].decode("utf-8", "replace")} for i in shown]
        ends = {"accepting": matcher.is_accepting, "finished": matcher.is_finished}
        facts = {"allowed": len(allowed), **ends, "tokens": tokens}
        out.line(json.dumps(facts, ensure_ascii=False))
        return 0
    complete = "; the text is complete" if matcher.is_accepting else ""
    complete += ", and the grammar is over" if matcher.is_finished else ""
    out.line(out.paint(f"{len(allowed):,} of {len(vocabulary):,} tokens{complete}", "bold"))
    for i in shown:
        said = "  ends a generation" if i in vocabulary.end_tokens else ""
        out.line(f"  {i:>8}  {out.paint(fit(visible(vocabulary[i]), 28), 'cyan')}{said}")
    if len(allowed) > len(shown):
        out.line(out.paint(f"  and {len(allowed) - len(shown):,} more", "dim"))
    return 0
