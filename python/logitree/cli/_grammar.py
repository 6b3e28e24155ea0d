"""The options that say what may be written, and what the commands share that look at a grammar without a model."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from .. import Constraint, Grammar, LogitreeError, Matcher, Vocabulary
from . import _common
from ._common import UsageError
from ._terminal import visible

_FORMS: dict[str, tuple[str, str]] = {
    "json_schema": ("FILE|TEXT", "JSON that is valid under this schema"),
    "gbnf": ("FILE|TEXT", "a grammar of llama.cpp"),
    "ebnf": ("FILE|TEXT", "a grammar of XGrammar"),
    "regex": ("FILE|TEXT", "the whole output matches this regular expression"),
    "lark": ("FILE|TEXT", "a grammar in llguidance's Lark"),
    "constraint": ("FILE|TEXT", "any constraint, in logitree's own JSON form (docs/c.md)"),
}

_SUFFIXES = (".json", ".gbnf", ".ebnf", ".lark", ".regex", ".txt")
"""Endings of texts that are meant as files."""


def add_grammar(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """The forms of a grammar, and how JSON is written."""
    group = parser.add_argument_group("grammar")
    forms = group.add_mutually_exclusive_group(required=required)
    for form, (metavar, text) in _FORMS.items():
        forms.add_argument(f"--{form.replace('_', '-')}", type=_common.text, metavar=metavar, help=text)
    group.add_argument("--any-order", action="store_true", help="with --json-schema: keys in any order")
    group.add_argument(
        "--whitespace",
        choices=["bounded", "compact", "free"],
        default=None,
        help="with --json-schema: what json.dumps writes (bounded), the least, or what JSON allows",
    )
    group.add_argument(
        "--numbers",
        choices=["any", "plain"],
        default=None,
        help="with --json-schema: as JSON allows (any), or as Python writes integers and floats",
    )


def grammar(args: argparse.Namespace) -> Constraint | None:
    """The grammar or constraint that was asked for, or None. An error in a file has the file's name in front."""
    if args.json_schema is None and (args.any_order or args.whitespace or args.numbers):
        raise UsageError("--any-order, --whitespace and --numbers are for --json-schema")
    for form in _FORMS:
        given: str | None = getattr(args, form)
        if given is not None:
            return _read(form, given, _maker(form, args))
    return None


def _maker(form: str, args: argparse.Namespace) -> Callable[[str], Constraint]:
    if form == "constraint":
        return Constraint.from_form
    if form != "json_schema":
        made: Callable[[str], Constraint] = getattr(Grammar, form)
        return made
    return lambda text: Grammar.json_schema(
        text,
        order="any" if args.any_order else "schema",
        whitespace=args.whitespace or "bounded",
        numbers=args.numbers or "any",
    )


def _read(form: str, given: str, make: Callable[[str], Constraint]) -> Constraint:
    """A constraint from a file where there is one of this name, else from the text itself."""
    path = Path(given)
    if "\n" in given or not _is_file(path):
        if path.suffix in _SUFFIXES:
            raise UsageError(f"{given}: there is no such file")
        return make(given)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{given} is not UTF-8 (at byte {error.start})") from error
    try:
        return make(text.rstrip("\n") if form == "regex" else text)
    except LogitreeError as error:
        raise type(error)(f"{given}: {error}") from error


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a text that no file can be called
        return False


def add_place(parser: argparse.ArgumentParser) -> None:
    """The text so far, and the vocabulary."""
    parser.add_argument("text", nargs="?", type=_common.text, default="", metavar="TEXT", help="what is written so far")
    parser.add_argument("--vocab", metavar="FILE", help="where the vocabulary is read from (see vocab)")
    parser.add_argument("--json", action="store_true", help="JSON on standard output and nothing else")


def advance(matcher: Matcher, vocabulary: Vocabulary, text: bytes) -> int:
    """Takes the text, in the longest tokens that fit, and says how many of its bytes may come."""
    taken = matcher.explain(text=text).taken or 0
    rest = text[:taken]
    while rest:
        found = vocabulary.trie.longest_match(rest)
        if found is None:
            raise LogitreeError(f"the vocabulary has no token for {visible(rest[:1])!r}")
        matcher.accept(found[0])
        rest = rest[found[1] :]
    return taken
