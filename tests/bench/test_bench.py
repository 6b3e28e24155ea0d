"""The bench harness: what a record says, how figures compare, that the README's tables are the results'."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logitree as lt
import logitree_bench as bench
from data_files import data_file
from logitree_bench import Bench, Prepared, Skip, report
from logitree_bench._cli import results_text, suite_names
from logitree_bench.suites import _llama, _warpers
from logitree_bench.suites import catalogue as catalogue_suite
from logitree_bench.suites import choices as choices_suite
from logitree_bench.suites import grammar as grammar_suite
from logitree_bench.suites import responses as responses_suite
from logitree_bench.suites import sampling as sampling_suite
from logitree_bench.suites import spelling as spelling_suite
from logitree_bench.suites._catalogue import DictTrie, PrefixSet, Shape, build, slow_step
from logitree_bench.suites._subjects import SUBJECTS

REPOSITORY = Path(__file__).resolve().parents[2]
RECORD = {
    "suite",
    "case",
    "ours",
    "peer",
    "peer_name",
    "unit",
    "ratio",
    "target",
    "target_ratio",
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


@pytest.mark.parametrize(
    ("target_ratio", "target", "meets"),
    [(4.9, None, True), (5.0, None, True), (5.1, None, False), (5.0, 1.9, False), (5.1, 2.0, False), (5.0, 2.0, True)],
)
def test_a_target_may_be_a_ratio_to_one_peer(target_ratio: float, target: float | None, meets: bool) -> None:
    peers = {"fast": 1.0, "named": 10.0}
    record = Bench("s").record(
        "c", 2.0, unit="us", peers=peers, target=target, target_ratio=target_ratio, against="named"
    )
    assert (record["peer_name"], record["ratio"], record["meets"]) == ("named", 5.0, meets)
    assert record["target_ratio"] == target_ratio


def test_a_ratio_to_an_absent_peer_is_unknown() -> None:
    record = Bench("s").record("c", 2.0, unit="us", peers={"p": 10.0}, target=3.0, target_ratio=2.0, against="absent")
    assert (record["peer"], record["ratio"], record["meets"]) == (None, None, None)


def test_the_fastest_peer_is_compared_with_unless_one_is_named() -> None:
    record = Bench("s").record("c", 2.0, unit="us", peers={"fast": 1.0, "slow": 10.0}, target_ratio=1.0)
    assert (record["peer_name"], record["meets"]) == ("fast", False)


def test_preparation_runs_before_every_call_and_is_not_counted() -> None:
    order: list[str] = []
    Prepared(lambda: order.append("prepare"), lambda: order.append("call")).timeit(3)
    assert order == ["prepare", "call"] * 3
    long, short = spin(200_000), spin(1000)
    alone = min(Prepared(short, short).timeit(20) for _ in range(5))
    after = min(Prepared(long, short).timeit(20) for _ in range(5))
    assert after < 10 * alone
    assert min(Prepared(short, long).timeit(20) for _ in range(5)) > 20 * alone


def test_a_peer_that_is_prepared_is_timed_without_it() -> None:
    b = Bench("s", quick=True)
    record = b.case("c", spin(1000), peers={"p": Prepared(spin(200_000), spin(1000))}, read=spin(100))
    assert record["peer"] < 10 * record["ours"]
    assert record["read"] < record["ours"]
    assert record["reads"] == pytest.approx(record["ours"] / record["read"], rel=1e-2)


def test_sampling_compares_the_same_chains() -> None:
    b = Bench("sampling", quick=True)
    sampling_suite.run(b, size=2048, sizes=(1024,))
    main = {r["chain"]: r for r in b.records if r.get("main") and "logits" in r}
    assert {w.name for w in (*sampling_suite.WISHES, *sampling_suite.MORE)} <= main.keys()
    assert [main[w.name]["target_ratio"] for w in sampling_suite.WISHES if main[w.name]["ours"]] == [
        w.target_ratio for w in sampling_suite.WISHES if main[w.name]["ours"]
    ]
    shapes = {r["logits"] for r in b.records if r.get("main") is False and "logits" in r}
    assert shapes == {"2,048 tight", "2,048 flat", "1,024 with 40 peaks"}
    measured = [r for r in b.records if r["ours"] is not None]
    assert measured
    for record in measured:
        if "llama.cpp" in record["peers"]:
            assert record["same_token"] is True, record["case"]
            assert record["peer_name"] == "llama.cpp"
    for record in b.records:
        assert record["ours"] is not None or "has no" in record["skipped"][""], record


def test_llama_cpp_finds_its_candidates_filled_anew() -> None:
    pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    logits = sampling_suite.forty_peaks(1000)
    chain = _llama.llama_chain(logits, [("top_k", {"k": 5}), ("temp", {"t": 0.5}), ("greedy", {})])
    assert isinstance(chain, _llama.LlamaChain)
    timed = chain.apply_only()
    for _ in range(3):
        timed.prepare()
        np.testing.assert_array_equal(chain.candidates()["logit"], logits)
        timed.call()
        assert chain.picked() == logits.argmax()
        assert len(chain.candidates()) == 5


@pytest.mark.parametrize("wish", [*sampling_suite.WISHES, *sampling_suite.MORE], ids=lambda wish: wish.name)
def test_llama_cpp_has_every_chain_and_selects_one_of_the_allowed(wish: sampling_suite.Wish) -> None:
    pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    logits, allowed = sampling_suite.forty_peaks(1000), [3, 5, 700]
    accepted = sampling_suite.history(1000, repeating=True)
    for ids in (None, allowed):
        chain = _llama.llama_chain(logits, wish.samplers, accepted=accepted, allowed=ids)
        assert isinstance(chain, _llama.LlamaChain)
        for _ in range(3):  # some samplers move the array's bounds
            chain.refill()
            assert chain.candidates()["id"].tolist() == (ids or list(range(1000)))
            chain.apply()
            assert chain.picked() in (allowed if ids else range(1000))


def test_warpers_stand_for_what_transformers_has() -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("torch", reason="torch is not installed")
    logits = sampling_suite.tight(1000)
    for wish in sampling_suite.WISHES:
        go = _warpers.warpers(logits, wish.samplers, sampling_suite.history(1000)[20:])
        assert (go is None) == (wish.name == "mirostat_v2")
        if callable(go):
            assert go() == logits.argmax()


def test_chains_make_a_table_of_their_own() -> None:
    b = Bench("s", quick=True)
    of = {"unit": "us", "against": "llama.cpp", "peers": {"llama.cpp": 20.0, "transformers": 15000.0}}
    b.record("greedy", 2.0, target_ratio=5.0, reads=1.5, chain="greedy", logits="40 peaks", main=True, **of)
    b.record("greedy: flat", 4.0, chain="greedy", logits="flat", main=False, **of)
    b.skip("xtc", "not yet", chain="xtc", logits="40 peaks", main=True)
    b.skip("xtc: flat", "not yet", chain="xtc", logits="flat", main=False)
    b.record("rows", 1.0, unit="us", peers={"a call a row": 3.0}, main=False)
    text = report.table(json.loads(results_text(b)))
    assert "| greedy | 2 us | 20 us | 15,000 us | 10 | ≥ 5 times met | 1.5 |" in text
    assert "| greedy | 4 us, 5 times |" in text
    assert "| xtc | skipped |" in text
    assert "xtc: flat" not in text
    assert "| rows | 1 us |" in text


def test_a_plot_shows_the_main_chains_and_the_one_read(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    b = Bench("s", quick=True)
    peers = {"llama.cpp": 20.0}
    b.record("main one", 2.0, unit="us", peers=peers, read=1.0, main=True)
    b.record("another", 2.0, unit="us", peers=peers, read=1.0, main=False)
    assert report.plot(json.loads(results_text(b)), tmp_path / "s.svg")
    text = (tmp_path / "s.svg").read_text(encoding="utf-8")
    assert "main one" in text
    assert "one read of the logits" in text
    assert "another" not in text


def test_sizes_make_a_table_and_a_plot_of_their_own(tmp_path: Path) -> None:
    b = Bench("s", quick=True)
    for items in (1000, 10_000):
        row = {"items": items, "shape": "8 x 16", "build_s": 0.5, "index_mb": items / 100, "open_ms": 0.25}
        b.record(f"a step, {items}", 2.0, unit="us", scale=True, resident_mb=3.0, first_ms=0.1, **row)
    b.record("open", 1.0, unit="ms")
    results = json.loads(results_text(b))
    text = report.table(results)
    assert "| 10,000 | 8 x 16 | 0.5 | 3 | 100 | 0.25 | 0.1 | 2 |" in text
    assert "| open | 1 ms |" in text
    assert "a step, 1000" not in text
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    assert report.scaling(results, tmp_path / "s.svg")
    assert "8 x 16" in (tmp_path / "s.svg").read_text(encoding="utf-8")
    assert not report.scaling({"records": []}, tmp_path / "none.svg")


def test_others_hold_the_catalogue_that_we_hold() -> None:
    shape = Shape(300, 16, 3)
    rows = np.concatenate(list(shape.portions()))
    paths = lt.Catalogue.from_codes(rows).walk()
    pool = catalogue_suite.logits(4, shape.codes, 2)
    for kind in (DictTrie, PrefixSet):
        other = kind(rows, shape.codes)
        states, scores, owners = [other.start()] * 2, np.zeros(2), np.arange(2)
        mine = np.full(2, paths.start)
        for level in range(shape.levels):
            given = pool[level % 2][: len(states)]
            ours = paths.top(mine, given, scores, 2, groups=owners)
            found = slow_step(other, states, given, scores, 2, owners)
            assert found[0].tolist() == ours.rows.tolist()
            assert found[1].tolist() == ours.tokens.tolist()
            np.testing.assert_allclose(found[2], ours.scores, atol=1e-6)
            owners, scores, states, mine = owners[found[0]], found[2], found[3], ours.states


def test_the_computed_size_is_the_index_size(tmp_path: Path) -> None:
    for shape in (Shape(200_000, 64, 4), Shape(100_000), Shape(200_000, 300, 3)):
        built = build(shape, tmp_path / "index")
        assert built["rows"] == shape.items
        assert built["bytes"] < built["resident"] < 1 << 30
        assert shape.index_bytes() == pytest.approx(built["bytes"], rel=0.02)
    # The paper's own figure: 20 million items are 1.46 GB.
    assert Shape(2 * 10**7).static_bytes() == pytest.approx(1.46e9, rel=0.01)


def test_changes_count_wrong_answers() -> None:
    shape = Shape(2000, 16, 3)
    rows = np.concatenate(list(shape.portions()))
    wrong: list[str] = []
    catalogue_suite.writing(lt.Catalogue.from_codes(rows), shape, 300, wrong)
    assert wrong == []
    others = rows[::-1].copy()
    others[:, -1] = shape.codes  # items that a reader takes for absent
    known = rows[:10].tolist()
    catalogue_suite.reading(lt.Catalogue.from_codes(others), shape, known, wrong, lambda: time.sleep(0.05))
    assert wrong


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


def test_a_suite_without_its_data_records_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("", str(tmp_path)):
        monkeypatch.setenv("LOGITREE_DATA", folder)
        assert command("canonical") == 0
        (record,) = map(json.loads, capsys.readouterr().out.splitlines())
        assert record["skipped"] == {"": "ggml-vocab-llama-bpe.gguf is absent: set LOGITREE_DATA to the data folder"}


def command(*words: str) -> int:
    """Runs the bench command quickly, with records as JSON."""
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    return bench.run_command(parser.parse_args([*words, "--quick", "--json"]))


# `native` compiles a program: tests/native runs it.
@pytest.mark.parametrize(
    "suite",
    [
        pytest.param(name, marks=pytest.mark.data if name == "canonical" else ())
        for name in sorted({*suite_names()} - {"native"})
    ],
)
def test_a_suite_runs_and_prints_records(
    suite: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # One request and short answers show that the suite works; with all ten it is a measurement.
    monkeypatch.setattr(choices_suite, "REQUESTS", choices_suite.REQUESTS[:1])
    monkeypatch.setattr(choices_suite, "MAX_TOKENS", 4)
    monkeypatch.setattr(responses_suite, "TASKS", responses_suite.TASKS[:1])
    monkeypatch.setattr(responses_suite, "MAX_TOKENS", 4)
    monkeypatch.setattr(spelling_suite, "TASKS", spelling_suite.TASKS[1:2])
    monkeypatch.setattr(spelling_suite, "MAX_TOKENS", 4)
    # Two small grammars likewise.
    monkeypatch.setattr(grammar_suite, "SUBJECTS", {k: SUBJECTS[k] for k in ("30 names (GBNF)", "maxLength 100")})
    monkeypatch.setattr(grammar_suite, "LARGE", ("maxLength 100",))
    monkeypatch.setattr(grammar_suite, "COLD", ("maxLength 100",))
    monkeypatch.setattr(grammar_suite, "THREADS", "maxLength 100")
    if suite == "canonical":
        data_file("maskbench-dev.tar.xz")
    assert command(suite, "--save", str(tmp_path)) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert records
    for record in records:
        assert record["suite"] == suite
        assert record.keys() >= RECORD or not record.keys() & {"ours", "target"}
    assert report.load(tmp_path)[suite]["records"]


def test_the_planners_skeleton_is_the_language_of_its_grammar() -> None:
    vocabulary = lt.Vocabulary.from_tokens([bytes([b]) for b in range(256)] + [b"</s>"], end_tokens=[256])
    grammar, skeleton = lt.Grammar.gbnf(responses_suite.PLAN), responses_suite.planner()
    for made, other in ((grammar, skeleton), (skeleton, grammar)):
        for seed in range(40):
            decoder = lt.Decoder(vocabulary, lt.Chain([lt.samplers.dist(seed=seed)]), made)
            flat = np.zeros(len(vocabulary), np.float32)
            while decoder.finish_reason is None and len(decoder.tokens) < 300:
                decoder.step(flat)
            text = bytes(token for token in decoder.tokens if token < 256).decode()
            assert other.matches(text), text


def test_every_suite_has_its_table_in_the_documents() -> None:
    text = "".join((REPOSITORY / path).read_text(encoding="utf-8") for path in report.DOCUMENTS)
    missing = {*suite_names(), "maskbench"} - {suite for _, suite in report.marks(text)}
    assert not missing, "a suite without markers in a document"


def test_responses_are_shown_and_drawn_by_task_and_mode(tmp_path: Path) -> None:
    b = Bench("s")
    figures = {"tokens_per_second": 12.5, "bytes_per_second": 40.0, "output_tokens": 9, "forward_passes": 4.0}
    b.fact("extraction: logitree", task="extraction", mode="logitree", **figures)
    b.record("times", 2.0, unit="times", target=1.5, better="higher")
    results = json.loads(results_text(b))
    assert "| extraction | logitree | 12.5 | 40 | 9 | 4 |" in report.table(results)
    assert "| times | 2 times | ≥ 1.5 met |" in report.table(results)
    pytest.importorskip("matplotlib")
    assert report.plot(results, tmp_path / "s.svg")


@pytest.mark.parametrize("document", ["README.md", "docs/benchmarks.md"])
def test_tables_are_drawn_from_the_results(document: str) -> None:
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    results = report.load(REPOSITORY / "bench" / "results")
    made_up = [suite for table, suite in report.marks(text) if suite not in {*results, "headlines"} and "|" in table]
    assert not made_up, "a table without its results file: run make bench"
    assert report.with_tables(text, results) == text, "run: python -m logitree_bench.report"


def test_readme_says_no_figure_of_its_own() -> None:
    text = report.MARKED.sub("", (REPOSITORY / "README.md").read_text(encoding="utf-8"))
    figures = report.FIGURE.findall(text)
    assert not figures, f"figures outside the tables: {figures}"
