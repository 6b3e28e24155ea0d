"""Every recipe of docs/cookbook runs, prints what it promises, is short, and is shown in the README."""

from __future__ import annotations

import ast
import io
import re
import runpy
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import cookbook_docs
from logitree.engines import llama_cpp

REPOSITORY = next(folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").exists())
COOKBOOK = REPOSITORY / "docs" / "cookbook"
SCRIPTS = sorted(COOKBOOK.glob("*.py"))
MAX_LINES = 12

PROMISED: dict[str, str | Callable[[str], bool]] = {
    "01_enum": r"Colour\.(RED|GREEN|BLUE)\n",
    "02_json_schema": r"\{'city': '.{0,20}', 'founded': -?\d+\}\n",
    "03_pydantic_model": lambda said: int(said.split("legs=")[1][0]) + 1 == int(said.split()[-1]),
    "04_regex": r"(19|20)\d\d-[01]\d-[0-3]\d\n",
    "05_gbnf": r"(- [a-z]+( [a-z]+)?\n){3}\n",
    "06_tool_call": r"weather \{'city': '(\w+)', 'days': (\d)\} \2 days of sun in \1\n",
    "07_stop_string": r"'[^,\n]*' stop\n",
    "08_streaming": r"(?s)\w.{40,}\n",
    "09_async_streaming": r"(?s)\w.{40,}\n",
    "10_eight_prompts": r"(?s) Paris\n Rome\n( [^.,]+\n){6}",
    "11_seed": r"(?s)\d+ True .{20,}\n",
    "12_custom_sampler": lambda said: len(said) > 40 and "e" not in said.lower(),
    "13_why_refused": r'(?s).*"old.* is refused at its first byte; .*an integer.*\ntoken 49 "1" is refused.*"0".*',
    "14_alternatives": r"'.*' \{' Paris': 0\.\d+, .*\}\n('.*' \{.*\}\n){5}",
    "15_bounded_thought": r"(?s).+</think>(yes|no)\n\1 \d+\n",
    "16_catalogue": r" (The Old Man and the Sea 101|The Sea Wolf 102|Moby Dick 103|Sense and Sensibility 104)\n",
    "17_beams": r"\(' Rome',\) -\d\.\d+\n(\(' \w+',\) -\d+\.\d+\n){2}",
    "18_own_engine": r"[1-9]\d{1,3} (cats|dogs)\n",
    "19_masks": r"AllowedTokens\(2 of 5: 0, 1\) b'no'\n.* b' sir'\n.* b'!'\n",
    "20_vocabulary": r"Vocabulary\(\d+ tokens, .*\) \[\d+\] \[0\]\n",
    "21_protocol": r"hermes weather \{'city': '(Paris|Rome)'\}\n",
    "22_trace": r"'.+' \d+\.\d nats; likelier: '.+'\n",
    "23_repair": lambda said: (
        said.startswith("{'kind': 'cat', 'age': 3}\nambiguous") and "{'kind': 'dog', 'age'" in said
    ),
    "24_composition": r"Because [a-z ]*\. So: (yes|no)\n",
    "25_server_settings": r"2 /num_beams in the request 3 \['TreeProcessor', 'MultiSequenceProcessor'\]\n",
    "26_drafts": r'\{"ship_to": ".+", "problem": ".+"\}\n\d+ passes, [1-9]\d saved by drafts\n',
    "27_fewer_passes": r"\{\"name\": \"[A-Za-z ]+\", \"age\": \d+\} True \{'canonical': \d+(, 'drafted': \d+)?\}\n",
    "28_quotation": r'Problem: "[^"]+" True\n',
}
"""What each recipe prints: a pattern of all of it, or a question about it."""


@pytest.fixture(scope="module")
def engine(smollm2_gguf: Path) -> Iterator[llama_cpp.LlamaCpp]:
    """The bundled model, loaded once for all recipes."""
    pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    made = llama_cpp.LlamaCpp(smollm2_gguf, n_ctx=1024)
    yield made
    made.close()


def run(script: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Runs a recipe; one that asks for the bundled model gets the loaded one."""
    if "bundled_model" in script.read_text("utf-8"):
        loaded = request.getfixturevalue("engine")
        monkeypatch.setattr(llama_cpp, "bundled_model", lambda: loaded)
    runpy.run_path(str(script), run_name="__main__")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_recipe_prints_what_it_promises(
    script: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    run(script, monkeypatch, request)
    said, promised = capsys.readouterr().out, PROMISED[script.stem]
    assert promised(said) if callable(promised) else re.fullmatch(promised, said), said


def test_both_ways_of_streaming_print_the_same(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = []
    for name in ("08_streaming", "09_async_streaming"):
        run(COOKBOOK / f"{name}.py", monkeypatch, request)
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]


def code_lines(source: str) -> int:
    """Lines with code: no blank lines, comments, or docstring."""
    tree = ast.parse(source)
    assert ast.get_docstring(tree), "no docstring"
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - set(range(1, (tree.body[0].end_lineno or 0) + 1)))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_recipe_is_short(script: Path) -> None:
    source = script.read_text("utf-8")
    assert code_lines(source) <= MAX_LINES
    assert (ast.get_docstring(ast.parse(source)) or "").count("\n") == 0


def test_the_readme_shows_every_recipe_as_it_is() -> None:
    text = (COOKBOOK / "README.md").read_text("utf-8")
    assert text == cookbook_docs.filled(text), "run: make docs"
    assert (
        re.findall(r"^<!-- (\w+)\.py -->$", text, re.MULTILINE) == [path.stem for path in SCRIPTS] == sorted(PROMISED)
    )
