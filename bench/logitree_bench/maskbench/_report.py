"""Writes MaskBench's report: the table beside the peers, splits, causes, wrong verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from logitree_bench._data import Case
from logitree_bench._harness import Bench
from logitree_bench.maskbench._run import Outcome, Plan
from logitree_bench.maskbench._summary import (
    CLASSES,
    COMPILE_ERROR,
    ENGINE_FAILED,
    INVALID_ACCEPTED,
    PASSING,
    VALID_REFUSED,
    Findings,
    Row,
    by_split,
    causes,
    tally,
    times,
)

OURS, ANY_ORDER = "logitree", "logitree-any"
LABELS = {ANY_ORDER: "logitree, any order"}
FIGURES: dict[str, tuple[str, str, float | None]] = {
    "schemas passing, %": ("share", PASSING, 97.0),
    "compile errors, %": ("share", COMPILE_ERROR, None),
    "engine failed, per 1,000 schemas": ("per mille", ENGINE_FAILED, 0.0),
    "invalid accepted, per 1,000 schemas": ("per mille", INVALID_ACCEPTED, 0.0),
    "valid refused, per 1,000 schemas": ("per mille", VALID_REFUSED, 0.0),
    "mask + accept, mean": ("tbm_us", "mean", 4.0),
    "mask + accept, p25": ("tbm_us", "p25", None),
    "mask + accept, p50": ("tbm_us", "p50", 1.0),
    "mask + accept, p75": ("tbm_us", "p75", None),
    "mask + accept, p90": ("tbm_us", "p90", None),
    "mask + accept, p95": ("tbm_us", "p95", None),
    "mask + accept, p99": ("tbm_us", "p99", 80.0),
    "mask + accept, p99.9": ("tbm_us", "p99.9", 500.0),
    "mask + accept, max": ("tbm_us", "max", None),
    "compile + first mask, mean": ("ttfm_us", "mean", 500.0),
    "compile + first mask, p25": ("ttfm_us", "p25", None),
    "compile + first mask, p50": ("ttfm_us", "p50", None),
    "compile + first mask, p75": ("ttfm_us", "p75", None),
    "compile + first mask, p90": ("ttfm_us", "p90", None),
    "compile + first mask, p95": ("ttfm_us", "p95", None),
    "compile + first mask, p99": ("ttfm_us", "p99", 4000.0),
    "compile + first mask, p99.9": ("ttfm_us", "p99.9", None),
    "compile + first mask, max": ("ttfm_us", "max", None),
}
"""Row of the table -> the path of its value, and our target. Times are in microseconds."""

HIGHER = "schemas passing, %"
"""The one figure of which more is better."""


def figures(cases: Iterable[Case], outcome: Outcome) -> dict[str, float]:
    """The table's column for one engine over these schemas; figures that nothing was measured for are absent."""
    cases = list(cases)
    counts, timed = tally(cases, outcome.measured), times(cases, outcome.measured)
    scale = {"share": 100, "per mille": 1000}
    out = {}
    for name, (source, key, _) in FIGURES.items():
        if source in scale and counts["schemas"]:
            out[name] = float(f"{counts[key] / counts['schemas'] * scale[source]:.4g}")
        elif key in timed.get(source, {}):
            out[name] = timed[source][key]
    return out


def summarise(plan: Plan, cases: Mapping[str, Case], outcomes: Mapping[str, Outcome], findings: Findings) -> Row:
    """Everything about every engine, as it goes into the results file."""
    engines: Row = {}
    for name, outcome in outcomes.items():
        own = [cases[schema] for schema in outcome.measured]
        valid = sum(instance.valid for case in own for instance in case.instances)
        engines[name] = {
            **tally(own, outcome.measured),
            "instances": {"valid": valid, "invalid": sum(len(case.instances) for case in own) - valid},
            **times(own, outcome.measured),
            "start_s": round(outcome.start_s, 2),
            "peak_mib": outcome.peak_bytes >> 20,
            "restarts": outcome.restarts,
            "causes": causes(outcome.measured),
            "splits": by_split(own, outcome.measured),
            "wrong": findings.of(own, outcome.measured),
        }
    return {"seed": plan.seed, "limit_s": plan.limit_s, "engines": engines, "board": board(cases, outcomes)}


def board(cases: Mapping[str, Case], outcomes: Mapping[str, Outcome]) -> Row:
    """The issue's table: ours over all schemas, then for each peer both over the peer's schemas."""
    columns: dict[str, dict[str, float]] = {}
    for name in (OURS, ANY_ORDER):
        if name in outcomes:
            own = outcomes[name].measured
            columns[f"{LABELS.get(name, name)}, {len(own):,} schemas"] = figures(
                (cases[n] for n in own), outcomes[name]
            )
    for name, outcome in outcomes.items():
        if name in (OURS, ANY_ORDER):
            continue
        theirs = [cases[schema] for schema in outcome.measured]
        if OURS in outcomes and len(outcomes[OURS].measured) >= len(theirs):
            columns[f"{OURS}, {len(theirs):,}"] = figures(theirs, outcomes[OURS])
        columns[f"{name}, {len(theirs):,}"] = figures(theirs, outcome)
    targets = {name: target for name, (_, _, target) in FIGURES.items()}
    rows = [[name, targets[name], *(column.get(name) for column in columns.values())] for name in FIGURES]
    return {"columns": ["", "target", *columns], "rows": rows}


def record(bench: Bench, cases: Mapping[str, Case], outcomes: Mapping[str, Outcome]) -> None:
    """The figures as records: ours over everything with its target, and beside each peer over the peer's schemas."""
    if OURS not in outcomes:
        return
    mine = outcomes[OURS]
    for name, value in figures((cases[n] for n in mine.measured), mine).items():
        better = _better(name)
        bench.record(name, value, unit=_unit(name), target=FIGURES[name][2], better=better)
    for peer, outcome in outcomes.items():
        if peer not in (OURS, ANY_ORDER) and outcome.measured.keys() <= mine.measured.keys():
            shared = [cases[n] for n in outcome.measured]
            theirs = figures(shared, outcome)
            for name, value in figures(shared, mine).items():
                better, case = _better(name), f"{name}, {peer}'s {len(shared):,} schemas"
                peers = {peer: theirs[name]} if name in theirs else {}
                bench.record(case, value, unit=_unit(name), peers=peers, better=better)


def _better(name: str) -> Literal["lower", "higher"]:
    return "higher" if name == HIGHER else "lower"


def _unit(name: str) -> str:
    source = FIGURES[name][0]
    return {"share": "%", "per mille": "per 1,000"}.get(source, "us")


# -- as text


def results_text(shared: Row, found: Row) -> str:
    """The results file: readable, one split, cause, record or wrong verdict a line."""
    return _json({**shared, **found}, 0) + "\n"


def _json(value: Any, depth: int) -> str:
    """JSON with a line for each entry, down to where an entry is a plain row."""
    pad = " " * (depth + 1)
    nested = [v for v in (value.values() if isinstance(value, dict) else value) if isinstance(v, dict | list) and v]
    if depth >= 5 or not nested:
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        items = [f"{json.dumps(k, ensure_ascii=False)}: {_inner(v, depth)}" for k, v in value.items()]
        return "{\n" + ",\n".join(pad + item for item in items) + f"\n{pad[1:]}}}"
    return "[\n" + ",\n".join(pad + _inner(v, depth) for v in value) + f"\n{pad[1:]}]"


def _inner(value: Any, depth: int) -> str:
    return _json(value, depth + 1) if isinstance(value, dict | list) else json.dumps(value, ensure_ascii=False)


def markdown(shared: Row, found: Row, board_text: str) -> str:
    """The report for people."""
    parts = [
        "# MaskBench\n",
        f"Schemas shuffled by seed {found['seed']}; at most {found['limit_s']:g} s a schema. Times in microseconds, "
        "one thread, a process an engine, one schema after the other. Time to first mask is compiling and one mask; "
        "the time of a token is its mask and accepting it. The vocabulary is loaded and stays warm, as it does in a "
        f"server. The machine's load was {' and then '.join(map(str, found.get('load', ())))} of "
        f"{shared['machine']['cores']} cores.\n",
        board_text,
    ]
    for name, engine in found["engines"].items():
        parts += [f"## {LABELS.get(name, name)}\n", _overview(engine), _splits(engine["splits"])]
        if engine["causes"]:
            parts += ["Compile errors by cause (a schema may have several):\n", _causes(engine["causes"])]
        parts += _wrong(engine["wrong"])
    if found.get("skipped"):
        parts += ["Not measured: " + "; ".join(f"{k}: {v}" for k, v in found["skipped"].items()) + "\n"]
    return "\n".join(parts)


def _overview(engine: Row) -> str:
    counts = ", ".join(f"{name} {engine[name]:,}" for name in CLASSES)
    given = engine["instances"]
    return (
        f"{engine['schemas']:,} schemas: {counts}. {given['valid']:,} valid and {given['invalid']:,} invalid "
        f"instances, {engine['tokens']:,} tokens. Ready after {engine['start_s']:g} s, at most "
        f"{engine['peak_mib']:,} MiB, started again {engine['restarts']} times.\n"
    )


def _splits(splits: Row) -> str:
    heads = ["split", "schemas", *CLASSES, "first mask, mean", "token, mean", "token, p50", "token, p99"]
    rows = [heads, ["---", *["--:"] * (len(heads) - 1)]]
    for name, split in splits.items():
        first, token = split["ttfm_us"], split["tbm_us"]
        timed = [first.get("mean"), token.get("mean"), token.get("p50"), token.get("p99")]
        cells = [split["schemas"], *(split[c] for c in CLASSES), *timed]
        rows.append([name, *(_cell(c) for c in cells)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _causes(found: dict[str, int]) -> str:
    return "\n".join(f"- {count}: {_plain(text)}" for text, count in found.items()) + "\n"


def _wrong(rows: list[Row]) -> list[str]:
    """Wrong verdicts in three lists: confirmed ones, those of order only, those whose flag is disputed."""
    lists = {
        "Wrong verdicts": [r for r in rows if not r.get("order") and not r.get("disputed")],
        "Valid, refused for the order of the properties only": [r for r in rows if r.get("order")],
        "The data's flag is disputed by jsonschema": [r for r in rows if r.get("disputed") and not r.get("order")],
    }
    out = []
    for title, found in lists.items():
        if found:
            out += [f"{title} ({len(found)} instances of {len({r['schema'] for r in found})} schemas):\n"]
            out += ["\n".join(map(_line, found)) + "\n"]
    return out


def _line(row: Row) -> str:
    where = f"; after `{_plain(row['after'])}` not `{_plain(row['token'])}`" if "after" in row else ""
    why = f"; {_plain(row['why'])}" if "why" in row else ""
    judged = f"; {_plain(row['jsonschema'])}" if "jsonschema" in row else ""
    return f"- {row['schema']} #{row['instance']}: {row['how']}{where}{why}{judged}"


def _plain(text: str) -> str:
    """Text that Markdown will not take for its own."""
    return text.replace("`", "'").replace("\n", " ").replace("|", "¦")
