"""The program of docs/server.md prints what the page says, and the page lists the paths that there are."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[2].joinpath("docs", "server.md").read_text("utf-8")
pytest.importorskip("openai", reason="openai is not installed")


def test_the_program_prints_what_the_page_says(client: Any) -> None:
    found = re.search(r"^```py\n(.*?)^```\n\nPrints.*?^```text\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    program = found[1].replace("http://127.0.0.1:8080", str(client.base_url).rstrip("/"))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(program, {})
    patterns = [r"\{'name': '.{0,10}', 'age': \d{1,3}\}", r"(19|20)\d\d", r'weather {"city": "(Berlin|Paris|Rome)"}']
    # Other processors may round to other tokens, so it is the form of the lines that counts.
    for lines in (out.getvalue().splitlines(), found[2].splitlines()):
        assert len(lines) == len(patterns)
        assert all(map(re.fullmatch, patterns, lines)), lines


def test_the_program_of_traces_runs(client: Any) -> None:
    program = re.findall(r"^```py\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[1]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(program.replace("http://127.0.0.1:8080", str(client.base_url).rstrip("/")), {})
    traced, allowed = out.getvalue().splitlines()
    assert re.fullmatch(r" (red|green) and (red|blue) (sampled|forced|canonical) \d+", traced)
    assert re.fullmatch(r"\d+ \[\(' .*\)\]", allowed)


def test_the_page_lists_every_path(client: Any) -> None:
    listed = re.findall(
        r"`(?:(GET|POST) )?(/[-a-z0-9/{}_.]*)`", PAGE.partition("## What it answers")[2].partition("\n\n- ")[0]
    )
    method = "GET"
    for said, path in listed:
        method = said or method
        answer = client.request(method, path.replace("{name}", "m"), json={} if method == "POST" else None)
        assert answer.status_code != 404, (method, path)
        assert "there is no" not in answer.text, (method, path)
    assert len(listed) == 20
