"""`logitree rtp check`: what it prints of settings, and of their problems."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_cli import run


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("THINK_MODE", "TREE_DECODE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "tree.json").write_text('{"prefix_dict": {"225": [5, 6], "225_5": [2]}}')
    path = tmp_path / "rtp.json"
    path.write_text('{"tree_decode_config": "tree.json", "num_beams": 4}')
    return path


def test_settings_and_the_tree_are_shown(
    capsys: pytest.CaptureFixture[str], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGITREE_RTP_NUM_BEAMS", "8")
    code, out, err = run(capsys, "rtp", "check", str(file), "--env")
    assert (code, err) == (0, "")
    assert "num_beams = 8 (LOGITREE_RTP_NUM_BEAMS)\n" in out
    assert "2 keys, 1 items, 1 errors" in out
    code, out, _ = run(capsys, "rtp", "check", str(file), "--json")
    facts = json.loads(out)
    assert (code, facts["problems"], facts["settings"]["num_beams"]) == (0, [], 4)
    assert facts["sources"]["num_beams"] == f"/num_beams in {file}"


def test_problems_are_a_line_each(capsys: pytest.CaptureFixture[str], file: Path, smollm2_gguf: Path) -> None:
    file.write_text('{"num_beams": 0, "nom_beams": 1, "eos_token_id": 60000, "tree_decode_config": "gone"}')
    code, out, err = run(capsys, "rtp", "check", str(file), "--vocab", str(smollm2_gguf))
    assert (code, out, err.count("\n")) == (1, "", 4)
    assert "did you mean num_beams?" in err
    assert "its ids run from 0 to 49151" in err
    code, out, _ = run(capsys, "rtp", "check", str(file), "--json")
    assert (code, len(json.loads(out)["problems"])) == (1, 3)
    assert run(capsys, "rtp", "check")[0] == 2
    assert run(capsys, "rtp", "check", str(file.parent / "none.json"))[0] == 1


def test_a_tree_of_another_vocabulary_is_no_success(
    capsys: pytest.CaptureFixture[str], file: Path, smollm2_gguf: Path
) -> None:
    tree = file.parent / "tree.json"
    for document, said in (
        ('{"prefix_dict": {"225": [64000], "225_64000": [2]}}', "no item is left: 1 candidates lie outside"),
        (
            '{"prefix_dict": {"225": [5, 64000, 64001], "225_5": [2]}}',
            "2 candidates lie outside the vocabulary of 49152",
        ),
    ):
        tree.write_text(document)
        code, _, err = run(capsys, "rtp", "check", str(file), "--vocab", str(smollm2_gguf))
        assert (code, err.count("\n")) == (1, 1) and said in err
        code, out, _ = run(capsys, "rtp", "check", str(file), "--vocab", str(smollm2_gguf), "--json")
        assert code == 1 and said in json.loads(out)["problems"][0]["message"]
        assert run(capsys, "rtp", "check", str(file))[0] == 0


def test_what_is_passed_over_is_shown(
    capsys: pytest.CaptureFixture[str], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THINK_TERMINATE_TOKEN_ID", "1")
    code, out, err = run(capsys, "rtp", "check", str(file), "--env")
    assert (code, err) == (0, "") and "passed over: THINK_TERMINATE_TOKEN_ID: the frontend" in out
