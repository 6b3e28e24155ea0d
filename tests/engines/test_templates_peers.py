"""Every chat template of llama.cpp's sources: what it writes is read and allowed by the form that is found for it.

The template's own conversation is the oracle: reasoning, content and calls must come back as they were given.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import logitree as lt
import template_docs
from data_files import llama_templates
from logitree.protocols import Protocol
from logitree.protocols._turns import Turn, probe_tools

pytestmark = pytest.mark.peers
pytest.importorskip("jinja2", reason="jinja2 is not installed")

PATHS = llama_templates()
LOSSY = {"LFM2.5-8B-A1B", "MiniMax-M3"}
"""Templates that put texts between quotes as they are: one with a quote or a backslash in it has several readings; and
one that leaves out what is null."""
needs_templates = pytest.mark.skipif(not PATHS, reason="make test-engines fetches llama.cpp's chat templates")


@pytest.fixture(scope="module")
def found() -> dict[Path, Protocol | str]:
    return {path: template_docs.form(path.read_text(encoding="utf-8")) for path in PATHS}


@needs_templates
def test_the_table_of_the_documents_is_what_comes_out() -> None:
    text = template_docs.DOCS.read_text(encoding="utf-8")
    written = text.split(template_docs.BEGIN)[1].split(template_docs.END)[0]
    assert written == template_docs.table(PATHS)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in written.splitlines()[2:]]
    assert len(rows) == 70
    whole = [row for row in rows if row[3:5] == [str(template_docs.TURNS)] * 2]
    assert len(whole) >= 60
    assert all(row[5] for row in rows if row not in whole)
    assert {row[0] for row in rows if row not in whole and row[1] != "-"} == LOSSY


@needs_templates
def test_streams_in_random_pieces_give_the_same(found: dict[Path, Protocol | str]) -> None:
    calls = 0
    for path, protocol in found.items():
        if isinstance(protocol, str):
            continue
        rng = random.Random(path.name)
        for turn in template_docs.turns(path.read_text(encoding="utf-8"), protocol, 10):
            whole = _read(protocol, turn, [turn.text])
            calls += len(whole.tool_calls)
            assert whole.text == turn.text
            assert _read(protocol, turn, turn.text) == whole
            cuts = sorted(rng.sample(range(len(turn.text) + 1), min(len(turn.text), 5)))
            pieces = [turn.text[a:b] for a, b in zip([0, *cuts], [*cuts, len(turn.text)], strict=True)]
            assert _read(protocol, turn, pieces) == whole
    assert calls > 300


def _read(protocol: Protocol, turn: Turn, pieces: Any) -> Any:
    parser = protocol.parser(begun=turn.begun(protocol), tools={tool.name: tool.parsed for tool in probe_tools()})
    for piece in pieces:
        parser.feed(piece)
    parser.finish()
    return parser.response


@needs_templates
def test_turns_are_allowed_where_markers_are_tokens(found: dict[Path, Protocol | str]) -> None:
    """As in a model's own vocabulary: markers are control tokens, and what ends a turn ends the generation."""
    tools = {tool.name: tool.parsed for tool in probe_tools()}
    allowed = 0
    for path, protocol in found.items():
        if isinstance(protocol, str):
            continue
        source = path.read_text(encoding="utf-8")
        markers = protocol.markers
        ends = [end for end in dict.fromkeys((*protocol.turn_end, "</s>")) if end not in markers]
        tokens = [*(bytes([b]) for b in range(256)), *(text.encode() for text in (*markers, *ends))]
        kinds = ["normal"] * 256 + ["control"] * (len(tokens) - 256)
        vocabulary = lt.Vocabulary.from_tokens(
            tokens, kinds=kinds, end_tokens=list(range(len(tokens) - len(ends), len(tokens)))
        )
        for turn in template_docs.turns(source, protocol, 10):
            several = path.stem in LOSSY
            if several and (turn.mismatch(protocol, probe_tools()) or turn.refusal(protocol, probe_tools())):
                continue
            begun = turn.begun(protocol)
            ids = _spelled(turn.text, [*markers, *ends])
            constraint = protocol.constraint(tools=tools if protocol.calls else {}, begun=begun)
            matcher = constraint.matcher(vocabulary)
            taken = matcher.validate(ids)
            assert taken == len(ids), (path.stem, turn.text, vocabulary.decode(ids[:taken], skip_special=False))
            matcher.accept_many(ids)
            assert matcher.is_finished or any(matcher.is_allowed(end) for end in vocabulary.end_tokens), path.stem
            parser = protocol.parser(vocabulary, begun=begun, tools=tools)
            parser.feed(ids)
            parser.finish()
            assert [(c.name, dict(c.arguments)) for c in parser.response.tool_calls] == list(turn.calls), path.stem
            allowed += 1
    assert allowed >= 600


def _spelled(text: str, markers: list[str]) -> list[int]:
    """Bytes, and a marker wherever its text is; the longest first."""
    order = sorted(range(len(markers)), key=lambda i: -len(markers[i]))
    ids: list[int] = []
    at = 0
    while at < len(text):
        found = next((i for i in order if text.startswith(markers[i], at)), None)
        ids += [*text[at].encode()] if found is None else [256 + found]
        at += 1 if found is None else len(markers[found])
    return ids
