"""MaskBench's report: the table beside the peers, splits, causes, wrong verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from logitree_bench._data import Case
from logitree_bench.maskbench._run import Outcome, Plan
from logitree_bench.maskbench._summary import (
    COMPILE_ERROR,
    ENGINE_FAILED,
    INVALID_ACCEPTED,
    PASSING,
    QUANTILES,
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
TARGETS = {
    "tbm_us": {"mean": 4.0, "p50": 1.0, "p99": 80.0, "p99.9": 500.0},
    "ttfm_us": {"mean": 500.0, "p99": 4000.0},
}
FIGURES: dict[str, tuple[str, str, float | None]] = {
    "schemas passing, %": ("share", PASSING, 97.0),
    "compile errors, %": ("share", COMPILE_ERROR, None),
    "engine failed, per 1,000 schemas": ("per mille", ENGINE_FAILED, 0.0),
    "invalid accepted, per 1,000 schemas": ("per mille", INVALID_ACCEPTED, 0.0),
    "valid refused, per 1,000 schemas": ("per mille", VALID_REFUSED, 0.0),
    **{
        f"{what}, {which}": (times, which, TARGETS[times].get(which))
        for what, times in (("mask + accept", "tbm_us"), ("compile + first mask", "ttfm_us"))
        for which in ("mean", *QUANTILES)
    },
}
"""Row of the table -> the path of its value, and our target. Times are in microseconds."""


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
