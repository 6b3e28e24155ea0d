"""`logitree vocab`: what a vocabulary holds."""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .. import Vocabulary, VocabularyError
from . import _common
from ._common import UsageError
from ._terminal import Terminal, fit, visible

ABOUT = """Show what a vocabulary holds: a summary, single tokens, or a search.

FILE is a GGUF, a tokenizer.json, a tekken JSON or a SentencePiece .model; without it, the default model's.

examples:
  logitree vocab
  logitree vocab --text " Hello" --id 0 --id 1
  logitree vocab tokenizer.json --search ing --limit 20
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="where the vocabulary is read from")
    parser.add_argument("--id", type=int, action="append", default=[], metavar="N", help="show this token; repeatable")
    parser.add_argument(
        "--text",
        type=_common.text,
        action="append",
        default=[],
        metavar="STR",
        help="show the tokens that STR begins with; repeatable",
    )
    parser.add_argument("--search", type=_common.text, metavar="STR", help="show the tokens that contain STR")
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="most tokens that a search shows (50)")
    parser.add_argument("--json", action="store_true", help="JSON on standard output and nothing else")
    _common.add_common(parser)


def read(file: str | None) -> Vocabulary:
    """The vocabulary of a file, whichever of the known kinds it is."""
    path = _common.model_path(file)
    with path.open("rb") as opened:
        head = opened.read(64).lstrip()
    if head.startswith(b"GGUF"):
        return Vocabulary.from_gguf(str(path))
    if head.startswith(b"{"):
        return _from_json(path)
    if path.suffix == ".model":
        return Vocabulary.from_sentencepiece(str(path))
    raise VocabularyError(f"{path}: neither GGUF nor tokenizer.json nor tekken JSON nor SentencePiece .model")


def _from_json(path: Path) -> Vocabulary:
    data = path.read_bytes()
    try:
        top = json.loads(data)
    except ValueError as error:
        raise VocabularyError(f"{path}: {error}") from error
    tekken = isinstance(top.get("vocab"), list) and "config" in top
    return Vocabulary.from_tekken(str(path)) if tekken else Vocabulary.from_tokenizer_json(str(path))


def run(args: argparse.Namespace, out: Terminal, err: Terminal) -> int:
    """Runs the command."""
    if args.limit < 0:
        raise UsageError(f"--limit is {args.limit}, expected 0 or more")
    began = time.perf_counter()
    vocabulary = read(args.file)
    took = time.perf_counter() - began
    if args.id or args.text or args.search is not None:
        _look_up(args, vocabulary, out)
    elif args.json:
        out.line(json.dumps(_facts(vocabulary), ensure_ascii=False))
    else:
        _summary(vocabulary, took, out)
    return 0


def _look_up(args: argparse.Namespace, vocabulary: Vocabulary, out: Terminal) -> None:
    asked: list[tuple[str, list[int]]] = [(f"id {i}", [i]) for i in args.id]
    asked += [(f"text {text!r}", [i for i, _ in vocabulary.trie.prefixes(text.encode())]) for text in args.text]
    if args.search is not None:
        asked.append((f"search {args.search!r}", vocabulary.search(args.search, args.limit)))
    for _, ids in asked:
        for i in ids:
            vocabulary[i]  # complain before anything is printed
    if args.json:
        found = {name: [_token(vocabulary, i) for i in ids] for name, ids in asked}
        out.line(json.dumps(found, ensure_ascii=False))
        return
    for name, ids in asked:
        out.line(out.paint(f"{name}: {len(ids)} token{'s' if len(ids) != 1 else ''}", "bold"))
        for i in ids:
            token = vocabulary[i]
            kind = vocabulary.kind(i)
            note = "" if kind == "normal" else f"  {kind}"
            ends = "  ends a generation" if i in vocabulary.end_tokens else ""
            hexadecimal = out.paint(fit(token.hex(" "), 30), "dim")
            out.line(f"  {i:>8}  {out.paint(fit(visible(token), 28), 'cyan')} {hexadecimal}{note}{ends}")


def _token(vocabulary: Vocabulary, i: int) -> dict[str, Any]:
    token = vocabulary[i]
    return {
        "id": i,
        "text": token.decode("utf-8", "replace"),
        "bytes": token.hex(),
        "kind": vocabulary.kind(i),
    }


def _facts(vocabulary: Vocabulary) -> dict[str, Any]:
    kinds = Counter(vocabulary.kind(i) for i in range(len(vocabulary)))
    lengths = [len(vocabulary[i]) for i in range(len(vocabulary)) if vocabulary.kind(i) in _TEXT]
    return {
        "name": vocabulary.name,
        "source": vocabulary.source,
        "tokens": len(vocabulary),
        "kinds": dict(kinds.most_common()),
        "text_bytes": sum(lengths),
        "longest_bytes": max(lengths, default=0),
        "bos_id": vocabulary.bos_id,
        "end_tokens": list(vocabulary.end_tokens),
        "fingerprint": vocabulary.fingerprint,
    }


_TEXT = ("normal", "byte", "user_defined")


def _summary(vocabulary: Vocabulary, took: float, out: Terminal) -> None:
    facts = _facts(vocabulary)
    named = vocabulary.special_ids
    rows = {
        "name": facts["name"] or "(none)",
        "read from": f"{facts['source']}, in {took * 1e3:.0f} ms",
        "tokens": f"{facts['tokens']:,}",
        "kinds": ", ".join(f"{n:,} {kind}" for kind, n in facts["kinds"].items()),
        "text": f"{facts['text_bytes']:,} bytes, the longest token {facts['longest_bytes']}",
        "begins with": _names(vocabulary, [] if facts["bos_id"] is None else [facts["bos_id"]]),
        "ends with": _names(vocabulary, facts["end_tokens"]),
        "special": _names(vocabulary, named[:6]) + (f", and {len(named) - 6:,} more" if len(named) > 6 else ""),
        "fingerprint": facts["fingerprint"],
    }
    for name, text in rows.items():
        out.line(f"{out.paint(f'{name:<12}', 'dim')} {text}")


def _names(vocabulary: Vocabulary, ids: Iterable[int]) -> str:
    return ", ".join(f"{visible(vocabulary[i])} ({i})" for i in ids) or "(none)"
