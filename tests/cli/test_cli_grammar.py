"""Grammars on the command line, with the real model: what goes where, in which form, and with which exit code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from test_cli import FAST, run

import logitree as lt

SCHEMA = {
    "type": "object",
    "properties": {"animal": {"enum": ["cat", "dog"]}, "legs": {"enum": ["two", "four"]}},
    "required": ["animal", "legs"],
    "additionalProperties": False,
}


@pytest.fixture(autouse=True)
def _model(smollm2_gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    for name in ("NO_COLOR", "LOGITREE_MODEL"):
        monkeypatch.delenv(name, raising=False)


def test_generate_json_by_a_schema(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "animal.json"
    file.write_text(json.dumps(SCHEMA))
    for given in (str(file), json.dumps(SCHEMA)):
        code, out, err = run(capsys, "generate", "Describe a cat.", "--json-schema", given, "--temp", "0", *FAST)
        assert (code, err) == (0, "")
        value = json.loads(out)
        assert value["animal"] in ("cat", "dog")
        assert value["legs"] in ("two", "four")


def test_any_constraint_as_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    form = (lt.OneOf(["cat", "cow"], following=".") & lt.Grammar.regex("c.*")).form()
    file = tmp_path / "animal.json"
    file.write_text(form)
    for given in (str(file), form):
        code, out, _ = run(capsys, "mask", "--constraint", given, "c", "--json")
        assert (code, {one["text"] for one in json.loads(out)["tokens"]}) == (0, {"a", "at", "o", "ow"})
    code, out, err = run(capsys, "generate", "Name an animal.", "--constraint", str(file), "--temp", "0", *FAST)
    assert (code, err) == (0, "") and out.strip() in ("cat.", "cow.")
    file.write_text('{"type": "regex", "pattern": "("}')
    code, _, err = run(capsys, "mask", "--constraint", str(file))
    assert code == 1 and "animal.json: " in err
    code, _, err = run(capsys, "mask", "--constraint", form, "--any-order")
    assert code == 2 and "are for --json-schema" in err


def test_numbers_may_be_plain(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("explain", "--json-schema", '{"type": "integer"}', "--numbers")
    assert run(capsys, *argv, "any", "1.0")[0] == 0
    code, out, err = run(capsys, *argv, "plain", "1.0")
    assert code == 1 and "refused at byte 2" in out + err, out + err
    code, _, err = run(capsys, "mask", "--regex", "a", "--numbers", "plain", "a")
    assert code == 2 and "--numbers" in err


def test_generate_tells_what_was_forced(capsys: pytest.CaptureFixture[str]) -> None:
    argv = (
        "generate",
        "Describe a dog.",
        "--json-schema",
        json.dumps(SCHEMA),
        "--whitespace",
        "compact",
        "--temp",
        "0",
    )
    code, out, err = run(capsys, *argv, "--trace", *FAST)
    assert code == 0
    json.loads(out)
    forced = re.search(r"\((\d+) sampled, (\d+) forced\)", err)
    assert forced, err
    code, out, err = run(capsys, *argv, "--json", *FAST)
    events = [json.loads(line) for line in out.splitlines()]
    stats = events[-1]["stats"]
    assert (stats["sampled_tokens"], stats["forced_tokens"]) == (int(forced[1]), int(forced[2]))
    assert events[-1]["reason"] in ("constraint", "end_of_generation")
    assert sum(event["forced"] for event in events[:-1]) == int(forced[2])


PLAN = {
    "spans": [
        {"kind": "literal", "value": '{"animal":'},
        {"kind": "enum", "key": "animal", "enumValues": ["cat", "dog"]},
        {"kind": "literal", "value": ',"legs":'},
        {"kind": "number", "key": "legs", "schema": {"type": "integer", "minimum": 2, "maximum": 4}},
        {"kind": "literal", "value": "}"},
    ]
}


def test_generate_by_a_skeleton(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(PLAN))
    argv = ("generate", "Describe a cat.", "--skeleton", str(file), "--temp", "0")
    code, out, err = run(capsys, *argv, *FAST)
    assert (code, err) == (0, "")
    value = json.loads(out)
    code, out, _ = run(capsys, *argv, "--json", *FAST)
    events = [json.loads(line) for line in out.splitlines()]
    assert events[-1]["value"] == value
    ended = [(event["path"], event["value"]) for event in events if event["event"] == "span_end"]
    assert ended == list(value.items())
    tree = tmp_path / "tree.json"
    leaves = [{"name": "dog", "tokens": [5]}]
    tree.write_text(json.dumps({"modelId": None, "descriptors": [{"path": "beast", "leaves": leaves}]}))
    code, _, err = run(capsys, *argv, "--token-tree", str(tree), *FAST)
    assert code != 0
    assert '"beast"' in err
    file.write_text('{"spans": [{"kind": "song"}]}')
    code, _, err = run(capsys, *argv, *FAST)
    assert code != 0
    assert "spans[0].kind" in err


def test_generate_by_a_regular_expression_and_gbnf(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = run(capsys, "generate", "When?", "--regex", "[12][0-9]{3}-0[1-9]", "--temp", "0", *FAST)
    assert code == 0
    assert re.fullmatch(r"[12][0-9]{3}-0[1-9]\n", out)
    file = tmp_path / "list.gbnf"
    file.write_text('root ::= "- " item\nitem ::= "milk" | "eggs"')
    code, out, _ = run(capsys, "generate", "What to buy?", "--gbnf", str(file), "--temp", "0", *FAST)
    assert (code, out.strip() in ("- milk", "- eggs")) == (0, True)


def test_generate_refuses_what_means_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def refused(*argv: str) -> tuple[int, str]:
        code, out, err = run(capsys, "generate", "x", *argv, *FAST)
        assert out == ""
        return code, err

    assert refused("--regex", "a", "--gbnf", "b")[0] == 2
    assert "together" in refused("--regex", "a", "--choices", "A,B")[1]
    assert refused("--regex", "a", "--any-order")[0] == 2
    code, err = refused("--regex", "(a")
    assert (code, err.count("\n")) == (1, 1)
    assert refused("--gbnf", str(tmp_path / "none.gbnf"))[0] == 2
    code, err = refused("--gbnf", "root ::= missing")
    assert (code, "missing" in err) == (1, True)
    bad = tmp_path / "bad.gbnf"
    bad.write_text("root ::= missing")
    code, err = refused("--gbnf", str(bad))
    assert code == 1
    assert "bad.gbnf" in err
    assert "missing" in err
    (tmp_path / "latin.json").write_bytes(b'{"title": "\xe9"}')
    assert refused("--json-schema", str(tmp_path / "latin.json"))[0] == 2


def test_mask_shows_what_is_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "mask", "--regex", "[0-9]{4}-[0-9]{2}", "20")
    assert (code, err) == (0, "")
    head, *rows = out.splitlines()
    assert re.match(r"\d+ of 49,152 tokens$", head)
    assert all(re.match(r" +\d+  \d+ *$", row) for row in rows[:-1]), rows
    code, out, _ = run(capsys, "mask", "--json-schema", json.dumps(SCHEMA), '{"animal": "', "--json")
    report = json.loads(out)
    assert {token["text"] for token in report["tokens"]} <= {"c", "d", "ca", "do", "cat", "dog"}
    assert report["allowed"] == len(report["tokens"])
    assert (report["accepting"], report["finished"]) == (False, False)


def test_mask_at_the_end_and_past_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "mask", "--regex", "ab?", "a")
    assert (code, "the text is complete" in out, "ends a generation" in out) == (0, True, True)
    code, out, _ = run(capsys, "mask", "--regex", "ab", "ab")
    assert (code, "the grammar is over" in out) == (0, True)
    assert all("ends a generation" in row for row in out.splitlines()[1:])
    code, out, err = run(capsys, "mask", "--regex", "ab", "ax")
    assert (code, out) == (1, "")
    assert "refused at byte 2 of 2" in err
    assert run(capsys, "mask", "x")[0] == 2
    assert run(capsys, "mask", "--regex", "a", "--limit", "-1")[0] == 2
    code, out, _ = run(capsys, "mask", "--regex", "[a-z]+", "--limit", "3")
    assert (len(out.splitlines()), "more" in out.splitlines()[-1]) == (5, True)


def test_explain_says_where_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "explain", "--regex", "[0-9]{4}-[0-9]{2}", "20x4")
    assert (code, err) == (1, "")
    assert 'refused at byte 3 of 4, after "20"' in out
    assert "expected" in out
    code, out, _ = run(capsys, "explain", "--json-schema", json.dumps(SCHEMA), '{"animal": ')
    assert code == 0
    assert "allowed" in out
    code, out, _ = run(capsys, "explain", "--regex", "a+", "aa", "--token", "0", "--json")
    report = json.loads(out)
    assert (code, report["allowed"], report["token"]) == (0 if report["allowed"] else 1, report["allowed"], 0)
    assert report["accepting"]
    assert run(capsys, "explain", "--regex", "a", "--token", "99999999")[0] == 2


def test_explain_a_vocabulary_of_ones_own(capsys: pytest.CaptureFixture[str], mistral_data: Path) -> None:
    file = next(path for path in sorted(mistral_data.glob("tekken*.json")))
    code, out, _ = run(capsys, "explain", "--regex", "abc", "a", "--vocab", str(file), "--json")
    report = json.loads(out)
    assert (code, report["allowed"], report["accepting"]) == (0, None, False)
    assert report["tokens"] == 2  # b, bc
