"""`logitree explain`: what a grammar expects after a text, and why it refuses one."""

from __future__ import annotations

import argparse
import json
from typing import Any

from .. import Explanation, Matcher, Vocabulary
from . import _common, _grammar
from ._common import UsageError
from ._terminal import Terminal, safe, visible
from .vocab import read

ABOUT = """Say what a grammar expects after a text, and where and why it refuses a text or a token.

Exit code 0 if what was asked about may come, 1 if not.

examples:
  logitree explain --regex "[0-9]{4}-[0-9]{2}" 20x4
  logitree explain --json-schema person.json '{"name": ' --token 42
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    _grammar.add_place(parser)
    parser.add_argument("--token", type=int, metavar="ID", help="ask about this token after the text")
    _grammar.add_grammar(parser, required=True)
    _common.add_common(parser)


def run(args: argparse.Namespace, out: Terminal, _err: Terminal) -> int:
    """Runs the command."""
    grammar = _grammar.grammar(args)
    assert grammar is not None  # argparse asks for one
    vocabulary = read(args.vocab)
    if args.token is not None and not 0 <= args.token < len(vocabulary):
        raise UsageError(f"--token is {args.token}, expected 0 to {len(vocabulary) - 1}")
    matcher = grammar.matcher(vocabulary)
    report = _ask(matcher, vocabulary, args.text.encode(), args.token)
    allowed = report.is_allowed is not False
    if args.json:
        out.line(json.dumps(_facts(report), ensure_ascii=False))
    else:
        out.line(safe(str(report)))
        if allowed and args.text:
            out.line(out.paint(f"after {visible(args.text.encode())}", "dim"))
    return 0 if allowed else 1


def _ask(matcher: Matcher, vocabulary: Vocabulary, text: bytes, token: int | None) -> Explanation:
    """The text's own explanation where it is refused; else what may come after it."""
    report = matcher.explain(text=text)
    if not report.is_allowed:
        return report
    _grammar.advance(matcher, vocabulary, text)
    return matcher.explain(token)


def _facts(report: Explanation) -> dict[str, Any]:
    asked = report.bytes
    return {
        "allowed": report.is_allowed,
        "asked": None if asked is None else asked.decode("utf-8", "replace"),
        "token": report.token,
        "taken": report.taken,
        "expected": report.expected_there if report.is_allowed is False else report.expected,
        "accepting": report.is_accepting,
        "tokens": report.allowed,
    }
