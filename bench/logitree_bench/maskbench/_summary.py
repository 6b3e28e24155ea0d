"""Counts what MaskBench's engines did with the schemas, and says which verdicts are wrong and why. It measures nothing.

A schema passes when every valid instance is accepted and every invalid one refused. One that does not is counted once,
under the first of: not compiled, the engine failed, invalid accepted, valid refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from logitree_bench._data import Case
from logitree_bench._harness import Skip
from logitree_bench.maskbench._judge import Judge
from logitree_bench.maskbench._worker import ACCEPTED, FAILED, Measured

PASSING, COMPILE_ERROR, ENGINE_FAILED = "passing", "compile error", "engine failed"
INVALID_ACCEPTED, VALID_REFUSED = "invalid accepted", "valid refused"
CLASSES = (PASSING, COMPILE_ERROR, ENGINE_FAILED, INVALID_ACCEPTED, VALID_REFUSED)
QUANTILES = {"p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
CAUSES = 60
"""How many causes of compile errors a report lists."""

Row = dict[str, Any]


def distribution(nanoseconds: Any) -> dict[str, float]:
    """Mean and quantiles (nearest rank) in microseconds; empty where there is nothing to describe."""
    values = np.asarray(nanoseconds, np.float64) / 1e3
    if not values.size:
        return {}
    found = np.quantile(values, list(QUANTILES.values()), method="inverted_cdf")
    numbers = {"mean": values.mean(), **dict(zip(QUANTILES, found, strict=True))}
    return {name: float(f"{value:.4g}") for name, value in numbers.items()}


def mistakes(case: Case, measured: Measured) -> list[tuple[int, str]]:
    """Instances, by number, whose verdict is not what their flag asks for, and how so."""
    out = []
    for at, (instance, verdict) in enumerate(zip(case.instances, measured.verdicts, strict=True)):
        if verdict.word == FAILED:
            out.append((at, ENGINE_FAILED))
        elif (verdict.word == ACCEPTED) != instance.valid:
            out.append((at, VALID_REFUSED if instance.valid else INVALID_ACCEPTED))
    return out


def classify(case: Case, measured: Measured) -> str:
    """Which of ``CLASSES`` the schema is in."""
    if measured.problem:
        return COMPILE_ERROR
    found = {how for _, how in mistakes(case, measured)}
    return next((how for how in CLASSES if how in found), PASSING)


def tally(cases: Iterable[Case], measured: Mapping[str, Measured]) -> Row:
    """How many schemas there are in each class."""
    counts = Counter(classify(case, measured[case.name]) for case in cases)
    return {"schemas": sum(counts.values()), **{name: counts[name] for name in CLASSES}}


def times(cases: Iterable[Case], measured: Mapping[str, Measured]) -> Row:
    """The distributions of both times over these schemas, compile errors left out."""
    compiled = [measured[case.name] for case in cases if not measured[case.name].problem]
    between = np.concatenate([np.asarray(m.between_ns, np.uint64) for m in compiled] or [np.zeros(0, np.uint64)])
    return {
        "tokens": int(between.size),
        "ttfm_us": distribution([m.first_ns for m in compiled]),
        "tbm_us": distribution(between),
    }


def by_split(cases: Iterable[Case], measured: Mapping[str, Measured]) -> dict[str, Row]:
    """Classes and mean times for each split."""
    splits: dict[str, list[Case]] = {}
    for case in cases:
        splits.setdefault(case.split, []).append(case)
    return {name: {**tally(found, measured), **times(found, measured)} for name, found in sorted(splits.items())}


def cause(problem: str) -> list[str]:
    """What kinds of problem a compile error's message names: names, places and numbers taken out."""
    found = []
    for line in problem.splitlines():
        text = re.sub(r"\b[a-z-]+:/\S+|#?/[^\s,;:)]*|(?<=pointer )\S+", "…", line.strip())
        text = re.sub(r"\d+", "N", text)
        if text and not text.startswith("while processing"):
            found.append(text[:160])
    return list(dict.fromkeys(found))


def causes(measured: Mapping[str, Measured]) -> dict[str, int]:
    """Causes of compile errors and how many schemas each stopped, the commonest first."""
    counts = Counter(found for m in measured.values() if m.problem for found in cause(m.problem))
    return dict(counts.most_common(CAUSES))


class Findings:
    """Describes wrong verdicts: where the text was refused, what else is known of the instance."""

    def __init__(
        self, judge: Judge | Skip, pieces: Callable[[str], list[bytes]], any_order: Mapping[str, Measured]
    ) -> None:
        self._judge, self._pieces, self._any_order = judge, pieces, any_order

    def of(self, cases: Iterable[Case], measured: Mapping[str, Measured]) -> list[Row]:
        """Every wrong verdict of an engine, schemas by name."""
        return [
            self._row(case, at, how, measured[case.name])
            for case in sorted(cases, key=lambda case: case.name)
            if not measured[case.name].problem
            for at, how in mistakes(case, measured[case.name])
        ]

    def _row(self, case: Case, at: int, how: str, measured: Measured) -> Row:
        verdict, instance = measured.verdicts[at], case.instances[at]
        row: Row = {"schema": case.name, "instance": at, "how": how}
        if verdict.word != ACCEPTED:
            pieces = self._pieces(instance.text)
            row["after"] = b"".join(pieces[: verdict.at])[-60:].decode("utf-8", "replace")
            rest = pieces[verdict.at : verdict.at + 1]
            row["token"] = rest[0].decode("utf-8", "replace") if rest else "(end)"
        if verdict.why:
            row["why"] = verdict.why[:200]
        if not isinstance(self._judge, Skip):
            valid, why = self._judge.opinion(case.schema, instance.data)
            row["jsonschema"] = why
            row["disputed"] = valid is not None and valid != instance.valid
        other = self._any_order.get(case.name)
        if how == VALID_REFUSED and other is not None and not other.problem:
            row["order"] = other.verdicts[at].word == ACCEPTED
        return row
