"""MaskBench's runner: verdicts, times, processes that crash or hang, and what the report says of them.

The engine here takes texts of `a`, one token a byte, and does anything wrong that the schema asks for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data_files import data_file
from logitree_bench import Skip, report
from logitree_bench._data import Case, Instance, parse_case, read_maskbench
from logitree_bench.maskbench import _report, _run
from logitree_bench.maskbench._engines import Refused, Sequence
from logitree_bench.maskbench._judge import judge
from logitree_bench.maskbench._run import Plan, Process, shuffled
from logitree_bench.maskbench._summary import (
    COMPILE_ERROR,
    ENGINE_FAILED,
    INVALID_ACCEPTED,
    PASSING,
    VALID_REFUSED,
    Findings,
    cause,
    classify,
    distribution,
)
from logitree_bench.maskbench._worker import ACCEPTED, FAILED, REFUSED, Measured, Verdict, measure

A, END = ord("a"), 256


class Fake:
    """Accepts `length` times the byte a, then the end."""

    def __init__(self, path: str) -> None:
        self.words = np.zeros(9, np.int32)

    def forget(self) -> None:
        pass

    def compile(self, source: Any, form: str = "schema") -> Callable[[], Sequence]:
        if source["do"] == "refuse":
            raise Refused("Unknown keyword 17 at #/a/b")
        if source["do"] == "crash":
            os._exit(3)
        if source["do"] == "hang":
            time.sleep(60)

        def start() -> Sequence:
            taken = [0]

            def fill() -> None:
                self.words[:] = 0
                if source["do"] == "raise":
                    raise ValueError("broken")
                token = A if taken[0] < source.get("length", 0) else END
                self.words[token >> 5] |= np.int32(1 << (token & 31))

            def accept(token: int) -> bool:
                taken[0] += 1
                return source["do"] != "deny"

            return Sequence(fill, accept, str)

        return start


def walked(do: str, *texts: bytes, length: int = 2) -> Measured:
    return measure(Fake(""), [END], {"do": do, "length": length}, [list(text) for text in texts])


def test_verdicts_and_times() -> None:
    found = walked("", b"aa", b"a", b"ab", b"b", b"aaa")
    assert [(v.word, v.at) for v in found.verdicts] == [
        (ACCEPTED, 2),
        (REFUSED, 1),
        (REFUSED, 1),
        (REFUSED, 0),
        (REFUSED, 2),
    ]
    assert len(found.between_ns) == 2 + 1 + 2 + 1 + 3
    assert found.first_ns > 0 < min(found.between_ns)


@pytest.mark.parametrize(
    ("do", "why"), [("raise", "ValueError: broken"), ("deny", "the mask allows a token that is not accepted")]
)
def test_an_engine_that_fails_is_told_from_one_that_refuses(do: str, why: str) -> None:
    assert walked(do, b"aa").verdicts == [Verdict(FAILED, 0, why)]


def test_a_schema_without_instances_has_a_first_mask() -> None:
    found = walked("")
    assert found.first_ns > 0 and not found.problem and not found.between_ns and not found.verdicts
    assert walked("raise").problem == "ValueError: broken"


@pytest.fixture
def processes() -> Any:
    started: list[Process] = []

    def start() -> Process:
        plan = Plan(seed=1, engines={"fake": Fake}, sizes={"fake": 9}, limit_s=3.0, memory=8 << 30)
        started.append(Process("fake", Path("nowhere"), [END], plan))
        assert started[-1].start() is None
        return started[-1]

    yield start
    for process in started:
        process.stop()


def test_a_crash_and_a_hang_cost_one_schema(processes: Callable[[], Process]) -> None:
    process = processes()
    for do in ("crash", "", "hang", "refuse"):
        process.measure(Case(f"case_{do}", {"do": do, "length": 1}, (Instance("a", True),)), [[A]])
    found = process.outcome.measured
    assert found["case_crash"].problem == "its process ended with exit code 3"
    assert found["case_hang"].problem == "no answer within 3 s"
    assert found["case_refuse"].problem.startswith("Unknown keyword")
    assert found["case_"].verdicts == [Verdict(ACCEPTED, 1)]
    assert process.outcome.restarts == 2
    assert process.outcome.peak_bytes > 1 << 20


class Absent(Fake):
    def __init__(self, path: str) -> None:
        raise ImportError("No module named 'peer'")


class Dying(Fake):
    def __init__(self, path: str) -> None:
        os._exit(7)


@pytest.mark.parametrize(("make", "why"), [(Absent, "No module named"), (Dying, "exit code 7 before it was ready")])
def test_an_engine_that_is_not_there_says_why(make: Any, why: str) -> None:
    plan = Plan(seed=1, engines={"fake": make}, sizes={"fake": 1}, limit_s=3.0, memory=8 << 30)
    missing = Process("fake", Path("nowhere"), [END], plan).start()
    assert missing is not None and why in missing.reason


# -- what is made of it


def case(name: str, *flags: bool) -> Case:
    return Case(name, {"type": "string"}, tuple(Instance("a", flag) for flag in flags))


def said(*words: str) -> Measured:
    return Measured(
        first_ns=1000, verdicts=[Verdict(word, 1, "out of fuel" if word == FAILED else "") for word in words]
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((ACCEPTED, REFUSED), PASSING),
        ((ACCEPTED, ACCEPTED), INVALID_ACCEPTED),
        ((REFUSED, REFUSED), VALID_REFUSED),
        ((REFUSED, ACCEPTED), INVALID_ACCEPTED),
        ((FAILED, ACCEPTED), ENGINE_FAILED),
        ((ACCEPTED, FAILED), ENGINE_FAILED),
    ],
)
def test_a_schema_is_counted_once(words: tuple[str, str], expected: str) -> None:
    assert classify(case("x", True, False), said(*words)) == expected
    assert classify(case("x", True, False), Measured(problem="no")) == COMPILE_ERROR


def test_causes_leave_places_and_numbers_out() -> None:
    problem = "Unknown keyword 17 at #/a/b\n  while processing json-schema:///#/definitions/x\nlimit of 2000 reached"
    assert cause(problem) == ["Unknown keyword N at …", "limit of N reached"]


def test_a_distribution_is_of_values_that_occurred() -> None:
    found = distribution([1000 * n for n in range(1, 101)])
    assert found == {
        "mean": 50.5,
        "p25": 25.0,
        "p50": 50.0,
        "p75": 75.0,
        "p90": 90.0,
        "p95": 95.0,
        "p99": 99.0,
        "p99.9": 100.0,
        "max": 100.0,
    }
    assert distribution([]) == {}


def outcomes() -> tuple[dict[str, Case], dict[str, _run.Outcome]]:
    cases = {c.name: c for c in (case("One---a", True, False), case("One---b", True), case("Two_7", True))}
    default = {"One---a": said(ACCEPTED, ACCEPTED), "One---b": said(REFUSED), "Two_7": Measured(problem="not at /x")}
    any_order = {**default, "One---b": said(ACCEPTED)}
    return cases, {
        "logitree": _run.Outcome(default),
        "logitree-any": _run.Outcome(any_order),
        "llguidance": _run.Outcome({"One---b": said(ACCEPTED)}, restarts=1),
    }


def summary() -> dict[str, Any]:
    cases, found = outcomes()
    plan = Plan(1, {}, {}, 30.0, 0)
    findings = Findings(Skip("not here"), lambda text: [text.encode()], found["logitree-any"].measured)
    return {"skipped": {"xgrammar": "not here"}, **_report.summarise(plan, cases, found, findings)}


def test_the_summary_counts_splits_causes_and_orders() -> None:
    engine = summary()["engines"]["logitree"]
    assert (engine["schemas"], engine[PASSING], engine[COMPILE_ERROR]) == (3, 0, 1)
    assert engine["instances"] == {"valid": 3, "invalid": 1}
    assert engine["causes"] == {"not at …": 1}
    assert {name: split["schemas"] for name, split in engine["splits"].items()} == {"One": 2, "Two": 1}
    assert [(w["schema"], w["how"], w.get("order")) for w in engine["wrong"]] == [
        ("One---a", INVALID_ACCEPTED, None),
        ("One---b", VALID_REFUSED, True),
    ]


def test_the_table_puts_peers_beside_ours_over_the_same_schemas() -> None:
    board = summary()["board"]
    assert board["columns"] == [
        "",
        "target",
        "logitree, 3 schemas",
        "logitree, any order, 3 schemas",
        "logitree, 1",
        "llguidance, 1",
    ]
    assert board["rows"][0] == ["schemas passing, %", 97.0, 0.0, 33.33, 0.0, 100.0]
    drawn = report.board_table(board)
    assert "| schemas passing, % | 97 | 0 | 33.33 | 0 | 100 |" in drawn


def test_the_judge_knows_formats_of_any_draft() -> None:
    pytest.importorskip("jsonschema")
    pytest.importorskip("rfc3339_validator")
    asked = judge()
    assert not isinstance(asked, Skip)
    schema = {"$schema": "http://json-schema.org/draft-04/schema#", "format": "date"}
    assert asked.opinion(schema, "2020-01-31") == (True, "jsonschema finds nothing wrong")
    assert asked.opinion(schema, "2020-01-32")[0] is False
    assert asked.opinion({"format": "unheard-of"}, "x")[0] is None
    assert asked.opinion({"$ref": "#/nowhere"}, "x")[0] is None


@pytest.mark.data
def test_the_data_are_read_and_shuffled_by_the_seed_only() -> None:
    files = read_maskbench(data_file("maskbench-dev.tar.xz"))
    assert len(files) == 5555
    assert shuffled(files, 1) == shuffled(dict(reversed(files.items())), 1) != shuffled(files, 2)
    one = parse_case("BFCL_java_10", files["BFCL_java_10"])
    assert one.split == "BFCL_java"
    assert one.instances[0].text.startswith('{"JNIBridge.setLauncherInfo": {"launcher": "/usr')
