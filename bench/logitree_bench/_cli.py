"""The bench command: picks suites, prints records as they come, keeps them in files if asked."""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys
from pathlib import Path
from typing import Any

from logitree_bench import maskbench, suites, token_tree
from logitree_bench._facts import results_file, shared
from logitree_bench._harness import Bench, Missing, Record

HEADER = f"{'case':<46} {'ours':>10} {'unit':<5} {'target':>8} {'meets':<6} {'peer':>10}  {'times':>6}  by"

MASKBENCH = "maskbench"
"""The one name that is no suite: see :mod:`logitree_bench.maskbench`."""

TOKEN_TREE = "token-tree"
"""Another one: see :mod:`logitree_bench.token_tree`."""

_told: set[tuple[str, str, str]] = set()
"""Reasons for skipping that were printed: once a suite is enough."""


def suite_names() -> list[str]:
    """The suites there are, by name."""
    return sorted(m.name for m in pkgutil.iter_modules(suites.__path__) if not m.name.startswith("_"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``parser`` the arguments of the bench command."""
    parser.add_argument(
        "suite",
        nargs="+",
        metavar="SUITE",
        help=f"all, or any of: {', '.join([*suite_names(), MASKBENCH, TOKEN_TREE])}",
    )
    parser.add_argument("--json", action="store_true", help="one JSON record a line, nothing else on stdout")
    parser.add_argument("--quick", action="store_true", help="a tenth of the time, less certain figures")
    parser.add_argument("--save", type=Path, metavar="DIR", help="also write the records to DIR/SUITE.json")
    maskbench.add_arguments(parser)
    token_tree.add_arguments(parser)


def run_command(arguments: argparse.Namespace) -> int:
    """Run the suites asked for; 0 when they ran, 1 for MaskBench without its data, 2 for an unknown name.

    A missed target is a record, not an error. MaskBench takes minutes: it runs when it is named, not with ``all``.
    """
    known = suite_names()
    if arguments.suite == [TOKEN_TREE]:
        return token_tree.run_command(arguments)
    if MASKBENCH in arguments.suite:
        if arguments.suite != [MASKBENCH]:
            print(f"logitree_bench: error: {MASKBENCH} runs alone: nothing may run beside it", file=sys.stderr)
            return 2
        return maskbench.run_command(arguments)
    wanted = known if "all" in arguments.suite else list(dict.fromkeys(arguments.suite))
    unknown = [name for name in wanted if name not in known]
    if unknown:
        print(f"logitree_bench: error: no suite {', '.join(unknown)}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    for name in wanted:
        _run(name, arguments)
    return 0


def _run(name: str, arguments: argparse.Namespace) -> None:
    if not arguments.json:
        print(f"\n{name}\n{HEADER}", flush=True)
    show = _show_json if arguments.json else _show_row
    bench = Bench(name, quick=arguments.quick, on_record=show)
    module: Any = importlib.import_module(f"{suites.__name__}.{name}")
    try:
        module.run(bench)
    except Missing as problem:
        bench.skip(name, str(problem))
    if not bench.records:
        raise RuntimeError(f"the suite {name} measured nothing and did not say why")
    if arguments.save:
        arguments.save.mkdir(parents=True, exist_ok=True)
        (arguments.save / f"{name}.json").write_text(results_text(bench), encoding="utf-8")


def results_text(bench: Bench) -> str:
    """The results file of a suite."""
    common = shared(bench.suite, bench.quick)
    rows = [{k: v for k, v in record.items() if k not in common} for record in bench.records]
    return results_file(bench.suite, bench.quick, {"records": rows})


def _show_json(record: Record) -> None:
    print(json.dumps(record, ensure_ascii=False), flush=True)


def _show_row(record: Record) -> None:
    if "ours" not in record:
        drop = ("suite", "case", "quick", "versions", "machine")
        print(f"{record['case']}: {json.dumps({k: v for k, v in record.items() if k not in drop})}", flush=True)
        return
    if record["ours"] is None:
        print(f"{record['case']:<46} skipped: {record['skipped']['']}", flush=True)
        return
    meets = {None: "-", True: "yes", False: "NO"}[record["meets"]]
    peer = "" if record["peer"] is None else f"{record['peer']:>10.4g}  {record['ratio']:>6.4g}  {record['peer_name']}"
    goals = [f"{record['target']:g}"] if record["target"] is not None else []
    goals += [f">={record['target_ratio']:g}x"] if record["target_ratio"] is not None else []
    target = " ".join(goals) or "-"
    print(
        f"{record['case']:<46} {record['ours']:>10.4g} {record['unit']:<5} {target:>8} {meets:<6} {peer}",
        flush=True,
    )
    for name, reason in record["skipped"].items():
        if (record["suite"], name, reason) not in _told:
            _told.add((record["suite"], name, reason))
            print(f"    {name} skipped: {reason}", flush=True)
