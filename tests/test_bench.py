"""The bench harness: what a record says, how figures compare, that the README's tables are the results'."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from logitree import bench
from logitree.bench import Bench, Skip, report
from logitree.bench._cli import results_text, suite_names
from logitree.bench.suites import choices as choices_suite

REPOSITORY = Path(__file__).resolve().parent.parent
RECORD = {
    "suite",
    "case",
    "ours",
    "peer",
    "peer_name",
    "unit",
    "ratio",
    "target",
    "meets",
    "versions",
    "machine",
}


def spin(n: int) -> Any:
    """A callable whose time grows with n."""
    return lambda: sum(range(n))


def test_a_record_has_every_field_and_compares_with_the_fastest_peer() -> None:
    seen: list[dict[str, Any]] = []
    b = Bench("s", quick=True, on_record=seen.append)
    peers = {"slow": spin(40000), "fast": spin(8000), "absent": Skip("not here")}
    record = b.case("c", spin(1000), peers=peers, target=1e6)
    assert seen == [record]
    assert record.keys() >= RECORD
    assert (record["suite"], record["case"], record["unit"]) == ("s", "c", "us")
    assert record["peer_name"] == "fast"
    assert record["peer"] == record["peers"]["fast"] < record["peers"]["slow"]
    assert record["ratio"] == pytest.approx(record["peer"] / record["ours"], rel=1e-2)
    assert record["ratio"] > 1
    assert record["meets"] is True
    assert record["skipped"] == {"absent": "not here"}
    assert record["ours_min"] <= record["ours"] <= record["ours_median"]


def test_minus_is_taken_off_ours_and_per_divides() -> None:
    b = Bench("s", quick=True)
    whole = b.case("whole", spin(20000))["ours"]
    rest = b.case("rest", spin(20000), minus=spin(20000))["ours"]
    assert abs(rest) < 0.5 * whole
    assert b.case("each", spin(20000), per=100)["ours"] < 0.1 * whole


def test_higher_may_be_better() -> None:
    record = Bench("s").record("rate", 30.0, unit="tokens/s", peers={"p": 20.0}, target=40.0, better="higher")
    assert record["ratio"] == 1.5
    assert record["meets"] is False


def test_a_target_missed_is_said() -> None:
    assert Bench("s", quick=True).case("c", spin(1000), target=1e-6)["meets"] is False


def test_optional_says_what_is_missing() -> None:
    missing = bench.optional("no_such_module_at_all")
    assert isinstance(missing, Skip)
    assert missing.reason == "no_such_module_at_all is not installed"


def test_results_are_json_and_make_a_table() -> None:
    b = Bench("s", quick=True)
    b.record("first", 2.0, unit="us", peers={"p": 4.0}, target=1.0)
    b.skip("second", "no data")
    b.fact("mode: a", mode="a", tokens_per_second=12.5, token_accuracy=1.0)
    results = json.loads(results_text(b))
    assert [r["case"] for r in results["records"]] == ["first", "second", "mode: a"]
    text = report.with_tables("x\n<!-- bench:s -->\nold\n<!-- /bench:s -->\ny\n", {"s": results})
    assert "old" not in text
    assert "| first | 2 us | ≤ 1 **missed** | 4 us (p) | 2 |" in text
    assert "| second | skipped |" in text
    assert "| a | 12.5 |" in text
    assert text == report.with_tables(text, {"s": results})


def test_an_unknown_suite_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    import argparse

    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    assert bench.run_command(parser.parse_args(["nonsense"])) == 2
    assert "no suite nonsense" in capsys.readouterr().err


@pytest.mark.parametrize("suite", suite_names())
def test_a_suite_runs_and_prints_records(
    suite: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import argparse

    # Two requests show that the suite works; with all ten it is a measurement.
    monkeypatch.setattr(choices_suite, "REQUESTS", choices_suite.REQUESTS[:2])
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    assert bench.run_command(parser.parse_args([suite, "--quick", "--json", "--save", str(tmp_path)])) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert records
    for record in records:
        assert record["suite"] == suite
        assert record.keys() >= RECORD or "mode" in record
    assert report.load(tmp_path)[suite]["records"]


@pytest.mark.parametrize("document", ["README.md", "DESIGN.md"])
def test_tables_are_drawn_from_the_results(document: str) -> None:
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    results = report.load(REPOSITORY / "bench" / "results")
    marked = {suite for _, suite in report.marks(text)}
    assert marked <= results.keys(), "a table without its results file: run make bench"
    assert report.with_tables(text, results) == text, "run: python -m logitree.bench.report"


def test_readme_says_no_figure_of_its_own() -> None:
    text = report.MARKED.sub("", (REPOSITORY / "README.md").read_text(encoding="utf-8"))
    figures = report.FIGURE.findall(text)
    assert not figures, f"figures outside the tables: {figures}"
