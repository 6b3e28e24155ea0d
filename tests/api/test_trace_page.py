"""The trace of an output: its record in the core against plain NumPy, the JSON lines, and the page's structure."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import logitree as lt
from logitree._trace import VERSION
from table_engine import TableEngine
from traces import WORDS, constrained, decoded

SPANS = [lt.TraceSpan(0, 8, "all", {"a": [1, None]}), (2, 5, 'x"></script><b>'), (8, 8, "")]


def trace(n: int = 40, seed: int = 0) -> lt.Trace:
    decoder = decoded(n, seed)
    return lt.Trace(decoder.trace, decoder.vocabulary, spans=SPANS, about={"note": "</script>&", "n": 1, "o": object()})


def softmax(logits: np.ndarray) -> np.ndarray:
    shares = np.exp(logits.astype(np.float64) - logits.max())
    made: np.ndarray = shares / shares.sum()
    return made


def alone(
    logits: np.ndarray, allowed: list[int], samplers: list[lt.samplers.Sampler]
) -> tuple[dict[int, float], dict[int, str]]:
    """What is left after the samplers, and which sampler cut each other token: one chain for each beginning."""
    banned = np.full(len(logits), -np.inf, np.float32)
    banned[allowed] = logits[allowed]
    left, cut = dict.fromkeys(allowed, 0.0), {}
    for at, sampler in enumerate(samplers):
        ids, _, shares = lt.Chain([*samplers[: at + 1], lt.samplers.greedy()]).apply(banned)
        kept = {int(token): float(p) for token, p in zip(ids, shares, strict=True) if p > 0}
        cut |= {token: sampler.name for token in left if token not in kept}
        left = kept
    return left, cut


def test_a_step_knows_what_was_cut_and_by_what() -> None:
    vocabulary = decoded(0).vocabulary
    samplers = [lt.samplers.top_k(6), lt.samplers.top_p(0.9), lt.samplers.min_p(0.2), lt.samplers.temp(0.7)]
    rng = np.random.default_rng(5)
    seen = set()
    for round_ in range(60):
        logits = rng.normal(0, 2.5, len(vocabulary)).astype(np.float32)
        words = [word for word in WORDS[:12] if rng.random() < 0.8] or [WORDS[0]]
        constraint = lt.OneOf(words) if round_ % 3 else None
        chain = lt.Chain([*samplers, lt.samplers.dist(seed=round_)])
        decoder = lt.Decoder(vocabulary, chain, constraint, trace=True)
        allowed = [int(token) for token in lt.masks.to_ids(decoder.allowed().mask())]
        token = decoder.step(logits)
        step = decoder.last
        assert step is not None
        model = softmax(logits)
        best = sorted(range(len(model)), key=lambda t: (-model[t], t))[:8]
        after, cut = alone(logits, allowed, samplers)
        assert {t for t, *_ in step.alternatives} == {*best, token, *(t for t, _ in step.candidates)}
        assert step.mass_allowed == pytest.approx(model[allowed].sum(), rel=1e-5)
        assert 0 <= step.mask_micros <= step.micros
        assert [p for _, p, *_ in step.alternatives] == sorted((p for _, p, *_ in step.alternatives), reverse=True)
        for other, before, left, by in step.alternatives:
            assert before == pytest.approx(model[other], rel=1e-4)
            if other in after:
                assert (left, by) == (pytest.approx(after[other], rel=1e-4), None)
            else:
                assert (left, by) == (None, cut.get(other, "constraint"))
            seen.add(by)
    assert seen >= {None, "constraint", "top_k", "top_p", "min_p"}


def test_forced_and_given_tokens_have_no_alternatives() -> None:
    decoder, _ = constrained()
    first, *rest = decoder.trace
    assert (first.source, {by for *_, by in first.alternatives}) == ("sampled", {None, "constraint"})
    assert rest
    assert all((step.source, step.alternatives, step.mass_allowed) == ("forced", [], None) for step in rest)
    given = lt.Decoder(decoder.vocabulary, lt.Chain.greedy(), trace=True)
    given.accept(5)
    assert given.trace[0].alternatives == []
    assert given.trace[0].mask_micros <= given.trace[0].micros


def test_the_last_steps_are_the_end_of_the_trace() -> None:
    decoder = decoded(7)
    for n in range(10):
        assert [str(s) for s in decoder.last_steps(n)] == [str(s) for s in decoder.trace[max(0, 7 - n) :]]
    assert lt.Decoder(decoder.vocabulary, lt.Chain.greedy()).last_steps(3) == []


def test_a_trace_of_many_forced_runs_takes_linear_time() -> None:
    def seconds(n: int) -> float:
        grammar = lt.Grammar.regex("(ab|cd){%d}" % n)  # noqa: UP031
        generation = lt.generate(TableEngine(), "x", grammar, trace=True, seed=1, max_tokens=10_000)
        began = time.perf_counter()
        assert len(generation.tokens) == 2 * n
        return time.perf_counter() - began

    seconds(10)
    assert seconds(1200) < 16 * max(seconds(150), 0.02), "eight times the tokens; a quadratic loop takes 64 times"


def test_a_steering_veto_is_named() -> None:
    decoder = decoded(0)
    logits = np.zeros(len(decoder.vocabulary), np.float32)
    logits[260] = 9
    decoder.steer({260: -np.inf})
    decoder.step(logits)
    assert decoder.last is not None
    assert {t: by for t, *_, by in decoder.last.alternatives}[260] == "steering"


def test_a_trace_is_a_sequence() -> None:
    steps = decoded(5).trace
    made = lt.Trace(steps, decoded(0).vocabulary)
    assert (len(made), list(made), made[0], made[-1], made[1:3]) == (5, steps, steps[0], steps[-1], steps[1:3])
    assert steps[2] in made
    assert repr(made) == "<Trace: 5 steps>"
    assert made.sources == ("sampled",) * 5
    assert made.with_spans([(0, 2, "a")]).spans == (lt.TraceSpan(0, 2, "a"),)
    with pytest.raises(lt.ConstraintError, match="1 sources for 5 steps"):
        lt.Trace(steps, made.vocabulary, sources=["forced"])
    for start, end in ((-1, 2), (3, 2), (0, 6)):
        with pytest.raises(lt.ConstraintError, match="the span 'x'"):
            lt.Trace(steps, made.vocabulary, spans=[(start, end, "x")])
    with pytest.raises(lt.TokenError):
        lt.Trace(steps, lt.Vocabulary.from_tokens([b"a"]))


def test_a_generation_has_a_trace_of_its_output() -> None:
    engine = TableEngine()
    generation = lt.generate(engine, "x", ["red", "green"], seed=2, trace=True)
    made = generation.trace
    assert isinstance(made, lt.Trace)
    assert made.text == generation.text
    assert [step.token for step in made] == list(generation.tokens)
    assert made.sources[0] == "sampled"
    assert set(made.sources[1:]) == {"forced"}
    assert made.about["forward_passes"] == generation.stats.forward_passes
    assert (made.about["finish"], made.about["complete"]) == (generation.finish_reason, True)
    # A stop string cuts a run of forced tokens: the decoder is ahead, the trace is not.
    cut = lt.generate(engine, "x", lt.Grammar.literal("abcdef"), stop="c", trace=True)
    assert [step.token for step in cut.trace] == list(cut.tokens) == list(b"abc")


def test_spans_of_bytes_become_spans_of_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every range of bytes: its tokens are those that have a byte of it."""
    vocabulary = lt.Vocabulary.from_tokens([b"ab", b"c", "é".encode(), b"</s>", b"def"], end_tokens=[3])
    choice = lt.OneOf(["abcédefc"])

    class Words(TableEngine):
        """The words above."""

        def __init__(self) -> None:
            super().__init__()
            self.vocabulary, self.table = vocabulary, np.zeros((5, 5), np.float32)

        def encode(self, prompt: str, *, chat: bool | None = None) -> list[int]:
            return [0]

    lengths = [len(vocabulary[token]) for token in lt.generate(Words(), "x", choice, seed=1).tokens]
    owner = [at for at, length in enumerate(lengths) for _ in range(length)]
    ranges = [(start, end) for start in range(len(owner) + 1) for end in range(start, len(owner) + 1)]
    spans = [SimpleNamespace(start=start, end=end, path="", kind="k", value=(start, end)) for start, end in ranges]
    monkeypatch.setattr(lt.Generation, "spans", property(lambda self: spans), raising=False)
    made = lt.generate(Words(), "x", choice, seed=1, trace=True).trace
    assert len(made.spans) == len(ranges)
    for span in made.spans:
        start, end = span.value
        assert list(range(span.start, span.end)) == sorted(set(owner[start:end]))
        assert span.label == "k"


def test_the_lines_are_the_record(tmp_path: Path) -> None:
    made = trace()
    made.to_jsonl(tmp_path / "t.jsonl")
    text = (tmp_path / "t.jsonl").read_text("ascii")
    read = [json.loads(line) for line in text.splitlines()]
    assert read == list(made.records())
    head, *spans = (one for one in read if one["record"] != "token")
    assert (head["record"], head["version"], head["tokens"], head["text"]) == ("trace", VERSION, 40, made.text)
    assert head["vocabulary"]["fingerprint"] == made.vocabulary.fingerprint
    assert head["about"]["note"] == "</script>&"
    assert head["about"]["o"].startswith("<object")
    assert (spans[0]["start"], spans[0]["end"], spans[0]["label"], spans[0]["value"]) == (0, 8, "all", {"a": [1, None]})
    tokens = [one for one in read if one["record"] == "token"]
    assert [one["at"] for one in tokens] == list(range(40))
    assert "".join(one["text"] for one in tokens) == made.text
    for one, step in zip(tokens, made, strict=True):
        assert bytes.fromhex(one["bytes"]) == made.vocabulary.token_bytes(step.token)
        assert (one["p"], one["p_model"], one["micros"], one["allowed"]) == (
            step.p,
            step.p_model,
            step.micros,
            step.allowed,
        )
        assert [
            tuple(a[key] for key in ("id", "p_model", "p", "cut")) for a in one["alternatives"]
        ] == step.alternatives
        assert [tuple(effect.values()) for effect in one["effects"]] == step.effects


class Page(HTMLParser):
    """Elements, attributes and the content of scripts and styles, as a browser's parser finds them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.content: list[tuple[str, dict[str, str | None], str]] = []
        self._open: list[Any] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = [tag, dict(attrs), ""]

    def handle_data(self, data: str) -> None:
        if self._open:
            self._open[2] += data

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[0] == tag:
            self.content.append(tuple(self._open))
        self._open = []


def test_the_page_is_one_document_that_loads_nothing() -> None:
    text = trace().html()
    page = Page(text)
    names = [name for name, _ in page.elements]
    assert (names[0], names.count("html"), names.count("title")) == ("html", 1, 1)
    assert names.count("script") == 2
    assert not {"link", "iframe", "object", "img", "b", "form", "base"} & set(names)
    assert not [a for _, attributes in page.elements for a in attributes if a.startswith("on") or a in ("src", "style")]
    assert {a["href"] for _, a in page.elements if "href" in a} == {"#text"}
    scripts = [(attributes, body) for name, attributes, body in page.content if name == "script"]
    (style,) = [body for name, _, body in page.content if name == "style"]
    policy = next(a["content"] for name, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    for body in (style, scripts[1][1]):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()}'" in str(policy)
    assert "default-src 'none'" in str(policy)
    assert "unsafe" not in str(policy)
    assert not re.search(r"https?://|@import|url\(", style + scripts[1][1])


def test_no_text_breaks_the_page() -> None:
    made = trace(400)
    page = Page(made.html())
    assert {word.encode() for word in WORDS} <= {made.vocabulary[step.token] for step in made}, "all words occur"
    (data,) = [body for name, a, body in page.content if name == "script" and a.get("id") == "data"]
    read = json.loads(data)
    assert "".join(read["text"]) == made.text
    assert not set("<>&\u2028\u202e") & set(data)
    assert [read["names"][t][0] for t in read["token"]] == [step.token for step in made]
    assert read["spans"][1][2] == 'x"></script><b>'
    (title,) = [body for name, _, body in page.content if name == "title"]
    assert not [c for c in title if not c.isprintable()]


def test_an_empty_trace_is_a_page() -> None:
    made = lt.Trace([], decoded(0).vocabulary)
    assert json.loads(Page(made.html()).content[-2][2])["token"] == []
    assert len(list(made.records())) == 1


def test_a_notebook_shows_the_page_in_a_frame_of_its_own() -> None:
    made = trace()
    ((name, attributes),) = Page(made._repr_html_()).elements
    assert name == "iframe"
    assert attributes["srcdoc"] == made.html()
    assert attributes["sandbox"] == "allow-scripts"


def test_the_page_grows_by_a_few_hundred_bytes_a_token() -> None:
    small, large = (len(lt.Trace(decoded(n).trace, decoded(0).vocabulary).html()) for n in (100, 1100))
    assert (large - small) / 1000 < 700
    assert small < 200_000


def test_files_that_cannot_be_written_are_errors(tmp_path: Path) -> None:
    for write in (trace().to_html, trace().to_jsonl):
        with pytest.raises(OSError, match="No such file"):
            write(tmp_path / "no" / "t")
