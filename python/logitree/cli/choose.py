"""`logitree choose`: the model picks one of several texts."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from .. import Choice, Event, OneOf, Progress, Token, choose
from . import _common
from ._common import UsageError
from ._terminal import Terminal
from ._trace import TraceTable, passes

ABOUT = """Let the model choose one of several texts, and nothing else.

examples:
  logitree choose "Is the sky green?" --choices YES,NO
  logitree choose "Book me a flight" --choices-file actions.txt --json
  logitree choose "Write to Anna" --choices CALL,MAIL,CHAT --calibrate --trace
"""


_SHOWN = 10
"""Texts whose probabilities a terminal shows."""

_WIDTH = 60
"""Characters of each."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    _common.add_prompting(parser)
    add_choices(parser, required=True)
    group = parser.add_argument_group("probabilities")
    group.add_argument(
        "--method",
        choices=("exact", "greedy"),
        help="exact: the likeliest text, by the probability of each (default); greedy: token by token (default with "
        "sampling options)",
    )
    group.add_argument("--calibrate", action="store_true", help="divide by the probabilities without the prompt")
    _common.add_tokenization(group, decoded=False)
    _common.add_sampling(parser)
    _common.add_model(parser)
    _common.add_output(parser)


def add_choices(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """`--choices` and `--choices-file`."""
    group = parser.add_mutually_exclusive_group(required=required)
    group.add_argument("--choices", type=_common.text, metavar="A,B,C", help="the texts, separated by commas")
    group.add_argument("--choices-file", metavar="PATH", help="the texts: one a line, or a JSON array")


def choices(args: argparse.Namespace) -> list[str] | None:
    """The texts to choose from, without repetitions; None if there is neither option."""
    if args.choices is not None:
        found, where = [text.strip() for text in args.choices.split(",")], "--choices"
    elif args.choices_file is not None:
        found, where = _read(Path(args.choices_file)), args.choices_file
    else:
        return None
    found = [text for text in dict.fromkeys(found) if text]
    if not found:
        raise UsageError(f"{where} holds no texts to choose from")
    return found


def _read(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (at byte {error.start})") from error
    if not text.lstrip().startswith("["):
        return [line.strip() for line in text.splitlines()]
    try:
        values = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{path} begins like a JSON array but is invalid: {error}") from error
    if not all(isinstance(value, str) for value in values):
        raise UsageError(f"{path} must be an array of strings")
    return list(values)


def run(args: argparse.Namespace, out: Terminal, err: Terminal) -> int:
    """Runs the command."""
    texts, prompt = choices(args) or [], _common.prompt(args)
    model = _common.load(args, err)
    options: dict[str, Any] = _common.sampling(args)
    if args.seed is not None:
        options["seed"] = args.seed
    method: Literal["exact", "greedy"] = args.method or ("greedy" if options or args.no_force else "exact")
    if method == "greedy":
        options["force"] = not args.no_force
    elif options or args.no_force:
        raise UsageError("--method exact computes probabilities: leave out sampling options and --no-force")
    if args.calibrate:
        if method == "greedy":
            raise UsageError("--calibrate needs --method exact")
        options["calibrate"] = True
    table = TraceTable(err)
    steps: list[dict[str, Any]] = []
    shown = err.is_tty and not args.json if args.trace is None else args.trace

    def watch(event: Event) -> None:
        if isinstance(event, Progress):
            _common.show_progress(err, event)
        elif isinstance(event, Token):
            steps.append(_common.token_json(event))
            if shown:
                table.token(event)

    chosen = choose(
        model,
        prompt,
        OneOf(texts),
        method=method,
        tokenization=_common.tokenization(args, err),
        chat=False if args.raw else None,
        on_event=watch,
        **options,
    )
    if args.json:
        out.line(json.dumps(_json(chosen, texts, steps), ensure_ascii=False))
        return 0
    if shown:
        if chosen.probabilities is not None:
            _show_probabilities(err, texts, chosen.probabilities)
        sure = "" if chosen.probability is None else f", {chosen.probability:.1%} sure"
        err.line(f"  {passes(err, chosen.stats)}, {chosen.stats.seconds:.2f} s{sure}")
    out.line(out.paint(chosen.text, "bold"))
    return 0


def _show_probabilities(err: Terminal, texts: Sequence[str], probabilities: Sequence[float]) -> None:
    """The likeliest texts, one a line."""
    order = sorted(range(len(texts)), key=lambda at: -probabilities[at])
    for at in order[:_SHOWN]:
        text = texts[at] if len(texts[at]) <= _WIDTH else texts[at][: _WIDTH - 1] + "…"
        err.line(f"  {probabilities[at]:7.2%}  {text}")
    if len(order) > _SHOWN:
        rest = sum(probabilities[at] for at in order[_SHOWN:])
        err.line(f"  {rest:7.2%}  {len(order) - _SHOWN} others")


def _json(chosen: Choice, texts: Sequence[str], steps: list[dict[str, Any]]) -> dict[str, Any]:
    """The choice for programs; "probabilities" by text, or null where tokens were decoded."""
    probabilities = chosen.probabilities
    return {
        "choice": chosen.text,
        "index": chosen.index,
        "probability": chosen.probability,
        "probabilities": None if probabilities is None else dict(zip(texts, probabilities, strict=True)),
        "tokens": steps,
        "stats": _common.stats_json(chosen.stats),
    }
