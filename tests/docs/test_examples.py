"""Every example runs, says something, and is listed; what it shows it asserts itself."""

from __future__ import annotations

import re
import runpy
import time
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = sorted(path for path in EXAMPLES.glob("*.py") if path.stem != "tiny")

SAYS = {
    "adaptive_entropy": "entropies: 1.7",
    "alignment_loop": "river",
    "catalogue": "allowed tokens on the way: [",
    "constraint_steering": "JPY steered: '12",
    "creative": "different tokens of 40",
    "custom_strategy": "top_p(0.8)",
    "deterministic": "three numbers of seed 42",
    "domain_validation": "validated' elevated.'",
    "dynamic_capacity": "60 candidates left",
    "exploratory_bursts": "..^^^..",
    "factual": "The capital of France is Paris.",
    "gbnf": "2 problems in the GBNF grammar",
    "grammar_constrained": "goodbye",
    "json_schema": "tokens were forced",
    "metrics_collection": "the same tokens without measures",
    "perplexity_monitoring": "the gate opens",
    "planner": "action = ",
    "pydantic_model": "enum:",
    "quick_start": "The fox",
    "regular_expression": "refused at byte 3 of 4",
    "tool_calls": "look {'at'",
}
"""What each example must print, among other things."""


def run(script: Path, monkeypatch: pytest.MonkeyPatch, *args: str) -> None:
    """Runs it as `python examples/script.py args` does."""
    monkeypatch.setattr("sys.argv", [str(script), *args])
    runpy.run_path(str(script), run_name="__main__")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_runs_and_shows_what_it_says(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.perf_counter()
    run(script, monkeypatch)
    seconds = time.perf_counter() - began
    assert SAYS[script.stem] in capsys.readouterr().out
    assert seconds < 2


def test_an_example_runs_with_the_real_model(
    smollm2_gguf: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    run(EXAMPLES / "factual.py", monkeypatch, "--model", str(smollm2_gguf))
    assert "The capital of France is Paris" in capsys.readouterr().out


def test_every_example_is_short_asserts_and_is_listed() -> None:
    assert [path.stem for path in SCRIPTS] == sorted(SAYS)
    listed = re.findall(r"^\| \[(\w+)\.py\]\((\w+)\.py\)", (EXAMPLES / "README.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == [(path.stem, path.stem) for path in SCRIPTS]
    for path in SCRIPTS:
        text = path.read_text("utf-8")
        assert len(text.splitlines()) < 80, path.name
        assert re.search(r"^ *assert ", text, re.MULTILINE), path.name
