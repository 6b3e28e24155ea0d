"""`logitree generate`: text from a prompt, free or constrained."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .. import (
    Finish,
    Generation,
    LogitreeError,
    OneOf,
    PayloadError,
    Progress,
    ReasoningBudget,
    Skeleton,
    SpanEnd,
    SpanStart,
    SpanText,
    Token,
    elizaos,
    generate,
)
from ..speculation import Drafter, ModelDrafter, NGramDrafter
from . import _common, _grammar
from ._common import UsageError
from ._terminal import Terminal, safe
from ._trace import TraceTable, summary
from .choose import add_choices, choices

ABOUT = """Generate from a prompt, free or constrained, a token at a time.

Free text is streamed. With choices, a token tree or a grammar the table of decisions is shown (--no-trace: the text).
With --json every line is an object: {"event": "token", ...} for each token, then {"event": "finish", ...}; with
--skeleton {"event": "span_start", ...}, "span_text" and "span_end" between them.

examples:
  logitree generate "Write a haiku about rain" --temp 0.7 --seed 0
  logitree generate "Greet the user" --token-tree actions.json --path action
  logitree generate "Describe a cat" --json-schema \\
    '{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}'
  logitree generate "Is fire hot?" --choices YES,NO --think-budget 64
  logitree generate "When did it end?" --regex "[0-9]{4}-[0-9]{2}-[0-9]{2}"
  logitree generate "Write a haiku about rain" --trace haiku.html
  logitree generate "What is next?" --skeleton plan.json --json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    _common.add_prompting(parser)
    add_choices(parser, required=False)
    parser.add_argument("--token-tree", metavar="FILE", help="the output is a leaf of this JSON payload")
    parser.add_argument(
        "--skeleton",
        metavar="FILE",
        help="the output is a response of this skeleton, in JSON; a --token-tree then holds its enums to its leaves",
    )
    parser.add_argument(
        "--path", type=_common.text, metavar="PATH", help="... of the descriptor with this path, such as action"
    )
    parser.add_argument("--max-tokens", type=int, default=256, metavar="N", help="most tokens to put out (256)")
    parser.add_argument(
        "--stop",
        type=_common.text,
        action="append",
        default=[],
        metavar="TEXT",
        help="end before this text; repeatable",
    )
    parser.add_argument(
        "--on-limit",
        choices=["keep", "raise", "close"],
        default="keep",
        help="where --max-tokens cuts a constrained output: keep it, fail, or close it the shortest legal way",
    )
    _common.add_tokenization(parser, decoded=True)
    parser.add_argument(
        "--drafter",
        type=_common.text,
        metavar="MODEL",
        help='proposes tokens, so that one pass decides several: "ngram" (prompt and output), or a smaller GGUF file',
    )
    _grammar.add_grammar(parser, required=False)
    group = parser.add_argument_group("reasoning")
    group.add_argument(
        "--think-budget",
        type=int,
        metavar="N",
        help="at most N tokens of reasoning before the answer",
    )
    group.add_argument("--think-begin", type=_common.text, metavar="TEXT", help="what begins the reasoning (<think>)")
    group.add_argument("--think-end", type=_common.text, metavar="TEXT", help="what ends it (</think>)")
    _common.add_sampling(parser)
    _common.add_model(parser)
    _common.add_output(parser)
    parser.add_argument(
        "--trace-to",
        type=_common.text,
        metavar="FILE",
        help="write how each token was decided: a page (.html) or JSON lines (.jsonl); --trace FILE is the same",
    )


def run(args: argparse.Namespace, out: Terminal, err: Terminal) -> int:
    """Runs the command."""
    texts, prompt = choices(args), _common.prompt(args)
    tree = Path(args.token_tree).read_bytes() if args.token_tree else None
    grammar = _grammar.grammar(args)
    skeleton = _skeleton(args.skeleton)
    alone = tree if skeleton is None else None
    asked = {"choices": texts, "--token-tree": alone, "--skeleton": skeleton, "a grammar": grammar}
    given = [name for name, value in asked.items() if value is not None]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} together: give one of them")
    if args.path is not None and alone is None:
        why = "without --token-tree" if tree is None else "with --skeleton, whose spans have paths"
        raise UsageError(f"--path {why}")
    if "" in args.stop:
        raise UsageError("--stop is empty: it would end everything")
    if args.max_tokens < 0:
        raise UsageError(f"--max-tokens is {args.max_tokens}, expected 0 or more")
    if args.think_budget is None and (args.think_begin or args.think_end):
        raise UsageError("--think-begin and --think-end are for --think-budget")
    if args.think_budget is not None and args.think_budget < 0:
        raise UsageError(f"--think-budget is {args.think_budget}, expected 0 or more")
    if args.trace_to is not None:
        if not args.trace_to.endswith(_common.TRACE_FILES):
            raise UsageError(f"--trace {args.trace_to}: give a file that ends in {' or '.join(_common.TRACE_FILES)}")
        if not Path(args.trace_to).resolve().parent.is_dir():
            raise UsageError(f"--trace {args.trace_to}: there is no such folder")
    model = _common.load(args, err)
    constrained = bool(given)
    traced = err.is_tty and constrained and not args.json if args.trace is None else args.trace
    try:
        constraint = _constraint(args, texts, tree, grammar if skeleton is None else skeleton)
        generation = generate(
            model,
            prompt,
            constraint,
            seed=args.seed,
            max_tokens=args.max_tokens,
            stop=args.stop,
            chat=False if args.raw else None,
            on_limit=args.on_limit,
            force=not args.no_force,
            trace=traced or args.json or args.trace_to is not None,
            tokenization=_common.tokenization(args, err),
            drafter=_drafter(args.drafter),
            **_common.sampling(args),
        )
    except PayloadError as error:
        raise PayloadError(f"{args.token_tree}: {error}") from error
    show = _Json(out, err) if args.json else _Text(out, err, traced)
    try:
        for event in generation:
            if isinstance(event, Progress):
                _common.show_progress(err, event)
            elif isinstance(event, Token):
                show.token(event)
            elif isinstance(event, Finish):
                show.finish(event, generation)
            else:
                show.span(event)
    except KeyboardInterrupt:
        show.interrupted()
        raise
    if args.trace_to is not None:
        write = generation.trace.to_html if args.trace_to.endswith(".html") else generation.trace.to_jsonl
        write(args.trace_to)
    return 0


def _skeleton(path: str | None) -> Skeleton | None:
    """The skeleton of a file."""
    if path is None:
        return None
    try:
        return Skeleton.from_json(Path(path).read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (at byte {error.start})") from error
    except LogitreeError as error:
        raise type(error)(f"{path}: {error}") from error


def _drafter(name: str | None) -> Drafter | None:
    """The drafter that was asked for, or None."""
    return None if name is None else NGramDrafter() if name == "ngram" else ModelDrafter(name)


def _constraint(args: argparse.Namespace, texts: list[str] | None, tree: bytes | None, grammar: Any) -> Any:
    """The constraint that was asked for, or None. Tags of several tokens count when they are complete, so that text
    that begins like one may be written."""
    answer: Any = grammar
    if texts is not None:
        answer = OneOf(texts)
    elif isinstance(answer, Skeleton) and tree is not None:
        answer = answer.attach(elizaos.token_tree(tree))
    elif tree is not None:
        answer = elizaos.token_tree(tree).at(args.path)
    if args.think_budget is None:
        return answer
    begin, end = args.think_begin or "<think>", args.think_end or "</think>"
    return ReasoningBudget(begin, end, budget=args.think_budget, whole_tags=True, then=answer)


class _Text:
    """For people: the table or the text as it comes, and a summary."""

    def __init__(self, out: Terminal, err: Terminal, traced: bool) -> None:
        self._out, self._err = out, err
        self._table = TraceTable(err) if traced else None
        self._text = ""
        self._count = 0

    def token(self, event: Token) -> None:
        self._count += 1
        if self._table is not None:
            self._text += event.text
            self._table.token(event)
        elif event.text:
            self._put(event.text)

    def span(self, event: SpanStart | SpanText | SpanEnd) -> None:
        """Nothing: the text is what it is."""

    def finish(self, event: Finish, generation: Generation[Any]) -> None:
        if self._table is not None:
            self._put(event.text)
        else:
            self._put(event.tail)
        self._out.write("\n")
        if self._err.is_tty or self._table is not None:
            self._err.line(summary(self._err, event))

    def interrupted(self) -> None:
        if self._table is not None:
            self._put(self._text)
        self._out.write("\n")
        self._err.line(f"  interrupted after {self._count} tokens")

    def _put(self, text: str) -> None:
        self._err.clear()
        self._out.write(safe(text) if self._out.is_tty else text)


_SPAN_EVENTS: dict[type, str] = {SpanStart: "span_start", SpanText: "span_text", SpanEnd: "span_end"}


class _Json:
    """For programs: JSON lines."""

    def __init__(self, out: Terminal, err: Terminal) -> None:
        self._out, self._err = out, err

    def token(self, event: Token) -> None:
        self._write({"event": "token", **_common.token_json(event)})

    def span(self, event: SpanStart | SpanText | SpanEnd) -> None:
        self._write({"event": _SPAN_EVENTS[type(event)], **asdict(event)})

    def finish(self, event: Finish, generation: Generation[Any]) -> None:
        self._err.clear()
        self._write(
            {
                "event": "finish",
                "reason": event.reason,
                "text": event.text,
                "complete": event.complete,
                "value": generation.value if event.complete else None,
                "tokens": list(event.tokens),
                "stats": _common.stats_json(event.stats),
            }
        )

    def interrupted(self) -> None:
        """Nothing: every line so far is whole."""

    def _write(self, value: dict[str, Any]) -> None:
        self._err.clear()
        self._out.write(json.dumps(value, ensure_ascii=False) + "\n")
