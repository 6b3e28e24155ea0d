"""`logitree index`: what each action prints and writes, and what it says when something is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_cli import run

import logitree as lt

CSV = "id,a,b\n10,1,2\n20,1,3\n30,4,5\n30,4,5\n"


@pytest.fixture
def index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    (tmp_path / "t.csv").write_text(CSV)
    made = run(
        capsys, "index", "build", str(tmp_path / "t.csv"), str(tmp_path / "i"), "--item", "id", "--columns", "a,b"
    )
    assert made[0] == 0
    return tmp_path / "i"


def report(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    code, out, err = run(capsys, "index", *argv, "--json")
    assert (code, err, out.count("\n")) == (0, "", 1)
    found: dict[str, Any] = json.loads(out)
    return found


def test_build_says_what_it_made(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table, index = tmp_path / "t.csv", tmp_path / "i"
    table.write_text(CSV)
    argv = ("build", str(table), str(index), "--item", "id", "--memory", "64M")
    code, out, err = run(capsys, "index", *argv)
    assert (code, err) == (0, "")
    assert f"{index}: 3 items" in out
    assert out.endswith("; 1 were there twice\n")
    facts = report(capsys, *argv)
    assert set(facts) == {"path", "items", "repeated", "bytes", "seconds"}
    assert (facts["items"], facts["repeated"], facts["bytes"]) == (3, 1, index.stat().st_size)
    truth = lt.Catalogue.from_codes([[1, 2], [1, 3], [4, 5]], items=[10, 20, 30])
    assert index.read_bytes() == truth.to_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["i", "t.csv"]


def test_build_with_weights_and_from_an_array(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"codes": [1, 2], "w": [0.5, 1.0]}\n{"codes": [3], "w": [2.0]}\n')
    index = tmp_path / "i"
    report(capsys, "build", str(tmp_path / "t.jsonl"), str(index), "--weights", "w")
    assert report(capsys, "info", str(index))["weighted"] is True
    np.save(tmp_path / "t.npy", np.array([[7, 8], [7, 9]]))
    report(capsys, "build", str(tmp_path / "t.npy"), str(index))
    assert report(capsys, "query", str(index), "7")["next"] == [8, 9]


def test_build_from_a_tree_decode_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    branches = {"225": [5, 6, 6], "225_5": [7], "225_6": [2], "225_5_7": [2]}
    (tmp_path / "t.json").write_text(json.dumps({"prefix_dict": branches}))
    code, out, err = run(capsys, "index", "build", str(tmp_path / "t.json"), str(tmp_path / "i"), "--json")
    assert (code, json.loads(out)["items"]) == (0, 2)
    assert err.startswith("duplicate candidate: 1 (first at /prefix_dict/225")
    assert report(capsys, "query", str(tmp_path / "i"))["next"] == [5, 6]
    assert report(capsys, "query", str(tmp_path / "i"), "5", "7")["items"] == [1]


def test_info_and_check(capsys: pytest.CaptureFixture[str], index: Path) -> None:
    facts = report(capsys, "info", str(index))
    assert facts == {"path": str(index), **lt.Catalogue.open(index).info()}
    out = run(capsys, "index", "info", str(index))[1]
    assert [line.split()[0] for line in out.splitlines()] == list(facts)
    assert "yes" in out
    assert report(capsys, "check", str(index)) == {"path": str(index), "items": 3, "sound": True}
    assert run(capsys, "index", "check", str(index))[1] == f"{index}: sound, 3 items\n"
    data = bytearray(index.read_bytes())
    data[4096] ^= 1
    index.write_bytes(data)
    code, out, err = run(capsys, "index", "check", str(index))
    assert (code, out) == (1, "")
    assert err.startswith("logitree: error:")


def test_query_goes_along_a_path(capsys: pytest.CaptureFixture[str], index: Path) -> None:
    assert report(capsys, "query", str(index)) == {"codes": [], "found": True, "next": [1, 4], "items": []}
    assert report(capsys, "query", str(index), "1", "3")["items"] == [20]
    assert run(capsys, "index", "query", str(index), "1", "--limit", "1")[1].split() == [
        "next",
        "2",
        "and",
        "1",
        "more",
        "items",
        "(none)",
    ]
    assert run(capsys, "index", "query", str(index), "2")[:2] == (1, "no item begins so\n")
    code, out, _ = run(capsys, "index", "query", str(index), "2", "--json")
    assert (code, json.loads(out)["found"]) == (1, False)


def test_add_and_remove_append_to_the_file(capsys: pytest.CaptureFixture[str], index: Path, tmp_path: Path) -> None:
    before, built, inode = lt.Catalogue.open(index), index.read_bytes(), index.stat().st_ino
    (tmp_path / "more.csv").write_text("a,b,id\n1,2,10\n6,7,60\n")
    more = str(tmp_path / "more.csv")
    facts = report(capsys, "add", str(index), more, "--item", "id")
    assert (facts["added"], facts["items"], facts["bytes"]) == (1, 4, index.stat().st_size)
    assert len(before) == 3 and index.read_bytes().startswith(built)
    assert lt.Catalogue.open(index).items([6, 7]).tolist() == [60]
    assert report(capsys, "remove", str(index), "--numbers", "10,60,99")["removed"] == 2
    (tmp_path / "less.csv").write_text("a,b\n4,5\n4,6\n")
    code, out, err = run(capsys, "index", "remove", str(index), str(tmp_path / "less.csv"))
    assert (code, out, err) == (0, f"{index}: 1 removed, 1 items now\n", "")
    size = index.stat().st_size
    assert report(capsys, "remove", str(index), "--numbers", "99")["removed"] == 0
    assert (index.stat().st_size, index.stat().st_ino) == (size, inode)
    (tmp_path / "plain.csv").write_text("a,b\n8,8\n8,9\n")
    report(capsys, "add", str(index), str(tmp_path / "plain.csv"))
    assert lt.Catalogue.open(index).items([8, 9]).tolist() == [62]


def test_a_merge_puts_one_index_of_all_in_its_place(
    capsys: pytest.CaptureFixture[str], index: Path, tmp_path: Path
) -> None:
    (tmp_path / "more.csv").write_text("a,b,id\n1,2,10\n6,7,60\n")
    more = str(tmp_path / "more.csv")
    report(capsys, "add", str(index), more, "--item", "id")
    facts = report(capsys, "merge", str(index))
    truth = lt.Catalogue.from_codes([[1, 2], [1, 3], [4, 5], [6, 7]], items=[10, 20, 30, 60])
    assert index.read_bytes() == truth.to_bytes()
    assert (facts["items"], facts["bytes"]) == (4, len(truth.to_bytes()))
    assert report(capsys, "remove", str(index), "--numbers", "10,60,99", "--merge")["removed"] == 2
    assert index.read_bytes() == lt.Catalogue.from_codes([[1, 3], [4, 5]], items=[20, 30]).to_bytes()


def test_a_damaged_journal_is_an_error(capsys: pytest.CaptureFixture[str], index: Path) -> None:
    built = index.read_bytes()
    report(capsys, "remove", str(index), "--numbers", "10")
    changed = bytearray(index.read_bytes())
    changed[-1] ^= 1
    index.write_bytes(changed)
    code, _, err = run(capsys, "index", "info", str(index))
    assert code == 1 and str(index) in err and "a record of its journal" in err
    index.write_bytes(changed[:-3])
    assert "its journal is cut short" in run(capsys, "index", "remove", str(index), "--numbers", "20")[2]
    index.write_bytes(built + b"something else")
    assert "no journal" in run(capsys, "index", "check", str(index))[2]


@pytest.mark.parametrize(
    ("argv", "code", "why"),
    [
        (["remove", "i"], 2, "TABLE"),
        (["remove", "i", "t.csv", "--numbers", "3"], 2, "TABLE"),
        (["remove", "i", "--numbers", "3,x"], 2, "whole numbers"),
        (["remove", "i", "--numbers", "99999999999999999999"], 2, "2**64"),
        (["build", "t.csv", "o", "--memory", "lots"], 2, "512M"),
        (["build", "t.csv", "o", "--model", "m"], 2, "--model"),
        (["build", "t.txt", "o", "--columns", "a"], 2, "no columns"),
        (["build", "t.csv", "o", "--columns", "a,z"], 1, "there is no column 'z'"),
        (["build", "t.json", "o", "--memory", "1G"], 2, "no columns"),
        (["build", "t.json", "o"], 1, "t.json"),
        (["build", "t.xls", "o"], 1, "kind '.xls'"),
        (["build", "absent.csv", "o"], 1, "absent.csv"),
        (["add", "i", "t.csv", "--weights", "a"], 2, "no weights"),
        (["query", "i", "-1"], 2, ""),
        (["query", "i", "3000000000"], 2, "3000000000"),
        (["query", "i", "--limit", "-1"], 2, "--limit"),
        (["info", "t.csv"], 1, "not an index"),
        (["info", "absent"], 1, "absent"),
        ([], 2, "ACTION"),
    ],
)
def test_what_is_wrong_is_told(
    capsys: pytest.CaptureFixture[str],
    index: Path,
    monkeypatch: pytest.MonkeyPatch,
    argv: list[str],
    code: int,
    why: str,
) -> None:
    monkeypatch.chdir(index.parent)
    before = index.read_bytes()
    got, out, err = run(capsys, "index", *argv)
    assert (got, out) == (code, "")
    assert why in err
    assert "Traceback" not in err
    assert index.read_bytes() == before
    assert not (index.parent / "o").exists()


def test_without_pyarrow_it_is_said_what_to_install(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    code, _, err = run(capsys, "index", "build", str(tmp_path / "t.parquet"), str(tmp_path / "i"))
    assert (code, "logitree[tables]" in err) == (1, True)


def test_texts_are_written_by_a_tokenizer(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, smollm2_gguf: Path
) -> None:
    pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    (tmp_path / "titles.txt").write_text("Dune\nEmma\nDune\n")
    argv = ("build", str(tmp_path / "titles.txt"), str(tmp_path / "i"), "--model", str(smollm2_gguf))
    assert report(capsys, *argv)["items"] == 3
    vocabulary = lt.Vocabulary.from_gguf(str(smollm2_gguf))
    tree = lt.Catalogue.open(tmp_path / "i")
    first = tree.walk().allowed(tree.walk().start).tolist()
    assert sorted(b"Dune".startswith(vocabulary[i]) or b"Emma".startswith(vocabulary[i]) for i in first) == [True, True]
