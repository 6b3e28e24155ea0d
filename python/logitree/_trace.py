"""The trace of an output: its steps as a sequence, as JSON lines, and as a page to look at. Decides nothing."""

from __future__ import annotations

import base64
import codecs
import hashlib
import html
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Any, overload

from . import _core
from ._errors import error
from ._kinds import shown_bytes

VERSION = 1
"""Of the records that `Trace.records` gives; a higher one may lack or rename fields."""

_DIGITS = 5
"""Significant digits of the numbers in the page; the JSON lines have all."""


@dataclass(frozen=True, slots=True)
class TraceSpan:
    """A named run of tokens, such as a field of a JSON object."""

    start: int
    """Its first token."""
    end: int
    """The token after its last one; equal to `start` for an empty span."""
    label: str
    """What it is, such as a path: "parameters.city"."""
    value: Any = None
    """What it means, as JSON has it, where that is known."""


class Trace(Sequence[_core.Step]):
    """How each token of an output was decided: a sequence of `Step`.

    ```python
    trace = logitree.generate("model.gguf", "Name a colour.", trace=True).trace
    trace.to_html("trace.html")
    trace.to_jsonl("trace.jsonl")
    ```

    A notebook shows it as the page. The page and the records have the same content: docs/trace.md describes both.

    Args:
        steps: the steps, as `Decoder.trace` gives them.
        vocabulary: what their tokens mean.
        sources: where each token came from, one name a step; by default the steps' `source`.
        spans: named runs of tokens: `(start, end, label)`, or `TraceSpan`.
        about: what the page says of the whole output: a mapping of names to texts and numbers.

    Raises:
        TokenError: a step's token is not in the vocabulary.
        ConstraintError: the sources are not as many as the steps, or a span is not a run of them.
    """

    def __init__(
        self,
        steps: Iterable[_core.Step],
        vocabulary: _core.Vocabulary,
        *,
        sources: Iterable[str] | None = None,
        spans: Iterable[TraceSpan | tuple[int, int, str]] = (),
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self._steps = list(steps)
        self.vocabulary = vocabulary
        """What the tokens mean."""
        self.sources = tuple(step.source for step in self._steps) if sources is None else tuple(sources)
        """Where each token came from: "sampled", "forced", "external", or a name of its own."""
        if len(self.sources) != len(self._steps):
            message = f"{len(self.sources)} sources for {len(self._steps)} steps"
            raise error(_core.ConstraintError, message, help="give one for each step")
        self.spans = tuple(span if isinstance(span, TraceSpan) else TraceSpan(*span) for span in spans)
        """The named runs of tokens."""
        for span in self.spans:
            if not 0 <= span.start <= span.end <= len(self._steps):
                message = f"the span {span.label!r} is {span.start} to {span.end}, of {len(self._steps)} steps"
                raise error(_core.ConstraintError, message, help="give 0 <= start <= end <= len(steps)")
        self.about = dict(about or {})
        """What is known of the whole output."""
        for step in self._steps:
            vocabulary.kind(step.token)

    @overload
    def __getitem__(self, at: int) -> _core.Step: ...
    @overload
    def __getitem__(self, at: slice) -> list[_core.Step]: ...
    def __getitem__(self, at: int | slice) -> _core.Step | list[_core.Step]:
        return self._steps[at]

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[_core.Step]:
        return iter(self._steps)

    def __repr__(self) -> str:
        return f"<Trace: {len(self)} steps>"

    def with_spans(self, spans: Iterable[TraceSpan | tuple[int, int, str]]) -> Trace:
        """The same trace with these spans.

        Raises:
            ConstraintError: a span is not a run of the steps.
        """
        return Trace(self._steps, self.vocabulary, sources=self.sources, spans=spans, about=self.about)

    @property
    def text(self) -> str:
        """The output as text: the bytes of its text tokens."""
        return b"".join(shown_bytes(self.vocabulary, step.token) for step in self).decode("utf-8", "replace")

    def records(self) -> Iterator[dict[str, Any]]:
        """What the JSON lines hold: one dict for the trace, one for each span, one for each token.

        Probabilities are 0 to 1, entropy and surprisal in nats, times in microseconds. A value that is not known is
        None, and so is one that is not finite.
        """
        yield {
            "record": "trace",
            "version": VERSION,
            "tokens": len(self),
            "text": self.text,
            "vocabulary": {
                "name": self.vocabulary.name,
                "size": len(self.vocabulary),
                "fingerprint": self.vocabulary.fingerprint,
            },
            "about": {name: _plain(value) for name, value in self.about.items()},
        }
        for span in self.spans:
            value = _plain(span.value)
            yield {"record": "span", "start": span.start, "end": span.end, "label": span.label, "value": value}
        for at, (step, source, text) in enumerate(zip(self, self.sources, self._shown(), strict=True)):
            yield token_record(at, step, source, text, self.vocabulary)

    def to_jsonl(self, path: str | PathLike[str]) -> None:
        """Writes the records as JSON lines: UTF-8, one record a line, without NaN.

        Raises:
            OSError: the file cannot be written.
        """
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(json.dumps(record, ensure_ascii=True, allow_nan=False) + "\n" for record in self.records())

    def to_html(self, path: str | PathLike[str]) -> None:
        """Writes the page: one file that needs no network.

        Raises:
            OSError: the file cannot be written.
        """
        Path(path).write_text(self.html(), encoding="utf-8", newline="\n")

    def html(self) -> str:
        """The page as text."""
        text = " ".join(self.text.split())
        title = (text[:60] + "…" if len(text) > 60 else text) or "no text"
        return trace_page(f"{_printable(title)} - logitree trace", _embedded(self._columns()))

    def _repr_html_(self) -> str:
        """The page in a frame of its own, for notebooks."""
        page = html.escape(self.html(), quote=True)
        return (
            f'<iframe srcdoc="{page}" sandbox="allow-scripts" title="logitree trace" loading="lazy" '
            'style="width:100%;height:640px;border:1px solid rgba(128,128,128,.35);border-radius:10px"></iframe>'
        )

    def _shown(self) -> Iterator[str]:
        """The text that each token completes: joined they are `text`."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        last = len(self) - 1
        for at, step in enumerate(self):
            yield decoder.decode(shown_bytes(self.vocabulary, step.token), final=at == last)

    def _columns(self) -> dict[str, Any]:
        """What the page's script reads: one list a property, tokens by their place in a table of names."""
        names: dict[int, int] = {}
        words: dict[str, int] = {}

        def name(token: int) -> int:
            return names.setdefault(token, len(names))

        def word(text: str | None) -> int:
            return -1 if text is None else words.setdefault(text, len(words))

        tokens = [name(step.token) for step in self]
        sources = [word(source) for source in self.sources]
        alternatives = [
            [(name(token), _short(before), _short(after), word(by)) for token, before, after, by in step.alternatives]
            for step in self
        ]
        effects = [
            [(word(sampler), before, after, changed, _short(mass)) for sampler, before, after, changed, mass in each]
            for each in (step.effects for step in self)
        ]
        return {
            "version": VERSION,
            "vocabulary": {"name": self.vocabulary.name, "size": len(self.vocabulary)},
            "about": {key: _plain(value) for key, value in self.about.items()},
            "spans": [[span.start, span.end, span.label, _plain(span.value)] for span in self.spans],
            "token": tokens,
            "text": list(self._shown()),
            "source": sources,
            "allowed": [step.allowed for step in self],
            "mass": [_short(step.mass_allowed) for step in self],
            "p_model": [_short(step.p_model) for step in self],
            "surprisal": [_short(step.surprisal) for step in self],
            "entropy": [_short(step.entropy) for step in self],
            "p": [_short(step.p) for step in self],
            "temperature": [_short(step.temperature) for step in self],
            "mask_micros": [_short(step.mask_micros) for step in self],
            "micros": [_short(step.micros) for step in self],
            "alternatives": alternatives,
            "effects": effects,
            "words": list(words),
            "names": [
                (
                    token,
                    _name(self.vocabulary, token),
                    self.vocabulary.token_bytes(token).hex(),
                    self.vocabulary.kind(token),
                )
                for token in names
            ],
        }


def token_record(at: int, step: _core.Step, source: str, text: str, vocabulary: _core.Vocabulary) -> dict[str, Any]:
    """The record of one token of an output.

    Args:
        at: its place in the output.
        step: how it was decided.
        source: where it came from.
        text: the text that it completes.
        vocabulary: what tokens mean.
    """
    return {
        "record": "token",
        "at": at,
        "id": step.token,
        "bytes": vocabulary.token_bytes(step.token).hex(),
        "kind": vocabulary.kind(step.token),
        "text": text,
        "source": source,
        "allowed": step.allowed,
        "mass_allowed": _finite(step.mass_allowed),
        "p_model": _finite(step.p_model),
        "surprisal": _finite(step.surprisal),
        "entropy": _finite(step.entropy),
        "p": _finite(step.p),
        "alternatives": [
            {
                "id": token,
                "bytes": vocabulary.token_bytes(token).hex(),
                "kind": vocabulary.kind(token),
                "text": _name(vocabulary, token),
                "p_model": _finite(before),
                "p": _finite(after),
                "cut": by,
            }
            for token, before, after, by in step.alternatives
        ],
        "effects": [
            {"sampler": name, "before": before, "after": after, "changed": changed, "mass_cut": _finite(mass)}
            for name, before, after, changed, mass in step.effects
        ],
        "temperature": _finite(step.temperature),
        "mask_micros": step.mask_micros,
        "micros": step.micros,
    }


def trace_page(title: str, data: str) -> str:
    """The page that shows a trace, as HTML.

    Args:
        title: of the document, as plain text.
        data: the columns of the trace, as JSON without the characters <, > and &.
    """
    style, script = page_file("page.css"), f"{page_file('view.js')}\n{page_file('page.js')}"
    policy = f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    parts = {
        "policy": f"{policy}; base-uri 'none'; form-action 'none'",
        "title": html.escape(title),
        "style": style,
        "data": data,
        "script": script,
    }
    page = page_file("page.html")
    for name, part in parts.items():
        before, mark, after = page.partition("{{" + name + "}}")
        assert mark, name
        # The rest of the template is kept apart, so that nothing in a part is taken for a mark.
        parts[name], page = before + part, after
    return "".join(parts.values()) + page


def _name(vocabulary: _core.Vocabulary, token: int) -> str:
    """A token by itself; bytes that are no UTF-8 are U+FFFD."""
    return vocabulary.token_bytes(token).decode("utf-8", "replace")


def _finite(value: float | None) -> float | None:
    """The value if it is a finite number."""
    return value if value is not None and math.isfinite(value) else None


def _short(value: float | None) -> float | None:
    """The value to a few significant digits, for the page."""
    value = _finite(value)
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def _plain(value: Any) -> Any:
    """The value if JSON has it, else how it prints."""
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _printable(text: str) -> str:
    """The text without control characters, those of direction among them."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _embedded(value: Any) -> str:
    """JSON that can be the content of an HTML script element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    """The source expression of inline content in a Content-Security-Policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def page_file(name: str) -> str:
    """A file of the page, from the package."""
    return resources.files(__package__).joinpath("_trace_page", name).read_text(encoding="utf-8").strip()
