"""`logitree index`: builds, shows, checks, changes and queries the index files of catalogues."""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..catalogue import Catalogue, ItemRows, table_items
from . import _common
from ._common import UsageError
from ._terminal import Terminal

ABOUT = """Build, show, check, change and query the index of a catalogue: only its items can be generated.

TABLE is a .csv, .tsv, .jsonl, .parquet, .arrow or .npy file with a column of codes for each level, or one of lists.

examples:
  logitree index build items.csv items.index --columns a,b,c --item id
  logitree index query items.index 12 7
  logitree index remove items.index --numbers 17,99
"""

ACTIONS = {
    "build": "write an index of a table's rows, of a .txt file's lines, or of RTP-LLM's tree-decode .json",
    "info": "show an index's counts and sizes",
    "check": "read a whole index and compare it with its checksums",
    "add": "add a table's rows: they are appended to the index file, in time that goes with the rows",
    "remove": "remove items by a table's rows or by numbers: the change is appended to the index file",
    "merge": "write one index of all that an index file holds, and put it in the place of the old",
    "query": "show what may follow a path of codes, and which items it is",
}

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    made = {name: actions.add_parser(name, help=about, description=about) for name, about in ACTIONS.items()}
    build, add, remove, merge, query = (made[name] for name in ("build", "add", "remove", "merge", "query"))
    build.add_argument(
        "table", type=Path, metavar="TABLE", help="the table, a .txt file of texts, or a tree-decode .json"
    )
    for sub in made.values():
        sub.add_argument("index", type=Path, metavar="INDEX", help="the index file")
    add.add_argument("table", type=Path, metavar="TABLE", help="the rows to add")
    remove.add_argument("table", type=Path, nargs="?", metavar="TABLE", help="the rows to remove")
    remove.add_argument("--numbers", type=_numbers, metavar="N,N", help="remove the items with these numbers")
    query.add_argument("codes", type=int, nargs="*", metavar="CODE", help="the path; none is the beginning")
    query.add_argument("--limit", type=int, default=20, metavar="N", help="most codes and items that are printed (20)")
    for sub in (build, add, remove):
        sub.add_argument("--columns", type=_names, metavar="A,B", help="columns of codes in order (all others)")
        sub.add_argument("--item", type=_common.text, metavar="NAME", help="column of item numbers")
    for sub in (add, remove):
        sub.add_argument("--merge", action="store_true", help="write one index of all that is there then")
    for sub in (build, add, remove, merge):
        sub.add_argument("--memory", type=_bytes, metavar="SIZE", help="for unsorted items, such as 512M (3G)")
    for sub in (build, add):
        sub.add_argument("--weights", type=_names, metavar="A,B", help="columns of weights, one for each of codes")
    build.add_argument("-m", "--model", metavar="PATH", help="the GGUF file whose tokenizer writes a .txt file's texts")
    for sub in made.values():
        sub.add_argument("--json", action="store_true", help="JSON on standard output and nothing else")
        _common.add_common(sub)


def _names(argument: str) -> list[str]:
    return [name.strip() for name in _common.text(argument).split(",")]


def _numbers(argument: str) -> list[int]:
    if not re.fullmatch(r"\s*[0-9]{1,20}\s*(,\s*[0-9]{1,20}\s*)*", argument, re.ASCII):
        raise argparse.ArgumentTypeError(f"{argument[:40]!r}: give whole numbers, such as 3,17")
    return [int(number) for number in argument.split(",")]


def _bytes(argument: str) -> int:
    found = re.fullmatch(r"([0-9]{1,12})([KMGT]?)i?B?", argument.strip().upper().replace("IB", "B"), re.ASCII)
    if not found:
        raise argparse.ArgumentTypeError(f"{argument[:40]!r}: give a size, such as 512M or 4G")
    return int(found[1]) * _UNITS[found[2]]


def run(args: argparse.Namespace, out: Terminal, err: Terminal) -> int:
    """Runs the command."""
    doing: dict[str, Callable[[argparse.Namespace, Terminal, Terminal], int]] = {
        "build": _build,
        "info": _info,
        "check": _check,
        "add": _add,
        "remove": _remove,
        "merge": _merge,
        "query": _query,
    }
    try:
        return doing[args.action](args, out, err)
    except ImportError as problem:
        err.line(f"{err.paint('logitree: error:', 'red', 'bold')} {problem}")
        return 1
    finally:
        err.clear()


def _bar(err: Terminal, label: str) -> Callable[[float], None]:
    return lambda fraction: err.progress(label, fraction)


def _build(args: argparse.Namespace, out: Terminal, err: Terminal) -> int:
    began = time.perf_counter()
    tree = _MAKERS.get(args.table.suffix.lower(), _of_table)(args, err)
    facts = {"path": str(args.index), "items": len(tree), "repeated": tree.repeated, "bytes": tree.info()["bytes"]}
    seconds = time.perf_counter() - began
    again = f"; {tree.repeated:,} were there twice" if tree.repeated else ""
    line = f"{args.index}: {len(tree):,} items, {facts['bytes']:,} bytes, in {seconds:.1f} s{again}"
    _say(args, out, {**facts, "seconds": round(seconds, 3)}, line)
    return 0


def _of_table(args: argparse.Namespace, err: Terminal) -> Catalogue:
    if args.model is not None:
        raise UsageError("--model writes the texts of a .txt file; a table has codes")
    return Catalogue.from_table(
        args.table,
        args.columns,
        item=args.item,
        weights=args.weights,
        path=args.index,
        memory=args.memory,
        on_progress=_bar(err, "building the index"),
    )


def _of_texts(args: argparse.Namespace, err: Terminal) -> Catalogue:
    if args.columns or args.item or args.weights:
        raise UsageError("a .txt file has no columns: its texts are numbered by their lines, from 0")
    from ..engines.llama_cpp import LlamaCpp

    engine = LlamaCpp(_common.model_path(args.model), n_ctx=64, on_load=_bar(err, "loading the model"))
    return Catalogue.from_texts(
        args.table, engine.tokenize, path=args.index, memory=args.memory, on_progress=_bar(err, "building the index")
    )


def _of_rtp(args: argparse.Namespace, err: Terminal) -> Catalogue:
    """RTP-LLM's tree: its findings go to standard error."""
    if args.columns or args.item or args.weights or args.memory or args.model:
        raise UsageError("a tree-decode .json file has no columns, and is read whole: leave the options out")
    from ..rtp import load_tree

    made = load_tree(args.table, index=args.index, on_progress=_bar(err, "reading the tree"))
    for finding in made.report.findings:
        err.line(str(finding))
    return made.prefix


_MAKERS: dict[str, Callable[[argparse.Namespace, Terminal], Catalogue]] = {".txt": _of_texts, ".json": _of_rtp}
"""What builds an index of a file that is no table, by its ending."""


def _info(args: argparse.Namespace, out: Terminal, _err: Terminal) -> int:
    tree = Catalogue.open(args.index)
    facts = {"path": str(args.index), **tree.info()}
    lines = [f"{out.paint(f'{name:<14}', 'dim')} {_shown(value)}" for name, value in facts.items()]
    _say(args, out, facts, *lines)
    return 0


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "(none)"}[value]
    return f"{value:,}" if isinstance(value, int) else str(value)


def _check(args: argparse.Namespace, out: Terminal, _err: Terminal) -> int:
    tree = Catalogue.open(args.index)
    tree.check()
    facts = {"path": str(args.index), "items": len(tree), "sound": True}
    _say(args, out, facts, f"{args.index}: sound, {len(tree):,} items")
    return 0


def _rows(args: argparse.Namespace, err: Terminal, weights: list[str] | None) -> Iterator[ItemRows]:
    bar = _bar(err, "reading the table")
    return table_items(args.table, args.columns, item=args.item, weights=weights, on_progress=bar)


def _add(args: argparse.Namespace, out: Terminal, err: Terminal) -> int:
    tree = Catalogue.open(args.index, durable=True)
    if args.weights and not tree.info()["weighted"]:
        raise UsageError(f"{args.index} has no weights: build it with --weights")
    added = 0
    for rows in _rows(args, err, args.weights):
        added += tree.add(rows.tokens, items=rows.items, weights=rows.weights)
    return _changed(args, tree, {"added": added}, out, err)


def _remove(args: argparse.Namespace, out: Terminal, err: Terminal) -> int:
    if (args.table is None) == (args.numbers is None):
        raise UsageError("give a TABLE of rows to remove, or --numbers")
    tree, removed = Catalogue.open(args.index, durable=True), 0
    if args.numbers is not None:
        if max(args.numbers) >= 1 << 64:
            raise UsageError(f"{max(args.numbers)} is no item number: they are below 2**64")
        removed = tree.remove(items=np.array(args.numbers, np.uint64))
    else:
        for rows in _rows(args, err, None):
            removed += tree.remove(rows.tokens, items=rows.items)
    return _changed(args, tree, {"removed": removed}, out, err)


def _merge(args: argparse.Namespace, out: Terminal, err: Terminal) -> int:
    args.merge = True
    return _changed(args, Catalogue.open(args.index, durable=True), {}, out, err)


def _changed(args: argparse.Namespace, tree: Catalogue, changed: dict[str, int], out: Terminal, err: Terminal) -> int:
    """Tells what changed. A merge writes the new index beside the old one and renames it: readers are not disturbed."""
    if args.merge:
        tree.merge(args.index, memory=args.memory, on_progress=_bar(err, "writing the index"))
    size = args.index.stat().st_size
    facts = {"path": str(args.index), **changed, "items": len(tree), "bytes": size}
    counts = "".join(f"{count:,} {word}, " for word, count in changed.items())
    line = f"{counts}{len(tree):,} items now" if changed else f"{len(tree):,} items, {size:,} bytes"
    _say(args, out, facts, f"{args.index}: {line}")
    return 0


def _query(args: argparse.Namespace, out: Terminal, _err: Terminal) -> int:
    if args.limit < 0:
        raise UsageError(f"--limit is {args.limit}, expected 0 or more")
    for code in args.codes:
        if not 0 <= code < 1 << 31:
            raise UsageError(f"{code} is no code: they are from 0 to 2,147,483,647")
    paths = Catalogue.open(args.index).walk()
    state = paths.find(args.codes)
    following = [] if state is None else paths.allowed(state).tolist()
    items = [] if state is None else np.asarray(paths.items(state)).tolist()
    facts = {"codes": args.codes, "found": state is not None, "next": following, "items": items}
    if state is None:
        _say(args, out, facts, "no item begins so")
        return 1
    _say(args, out, facts, _listed("next", following, args.limit, out), _listed("items", items, args.limit, out))
    return 0


def _listed(name: str, values: list[int], limit: int, out: Terminal) -> str:
    more = f" and {len(values) - limit:,} more" if len(values) > limit else ""
    shown = " ".join(map(str, values[:limit])) or ("" if values else "(none)")
    return f"{out.paint(f'{name:<6}', 'dim')} {shown}{more}"


def _say(args: argparse.Namespace, out: Terminal, facts: dict[str, Any], *lines: str) -> None:
    """The facts for programs, or the lines for people."""
    for line in [json.dumps(facts, ensure_ascii=False)] if args.json else lines:
        out.line(line)
