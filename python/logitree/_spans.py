"""The spans of a skeleton as they come: from the core's marks to events and values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import _core
from ._events import SpanEnd, SpanStart, SpanText

Mark = tuple[str, int, int, int | None]
"""What the core settled: "start", "end" or "item", the span's number, a byte, and the number of an enum's value."""

SpanEvent = SpanStart | SpanText | SpanEnd


@dataclass(frozen=True, slots=True)
class SpanInfo:
    """What a skeleton says of one span."""

    number: int
    """Its number: for spans of the outermost list their position."""
    kind: str
    """As the JSON form names it: "enum", "free-string", ..."""
    path: str
    """Its path, with `[]` for the items of arrays; empty without a key."""
    greedy: bool
    """Whether the likeliest token is taken unless a sampler says otherwise."""
    in_string: bool
    """Whether it is written inside of a JSON string, without quotes."""
    values: tuple[Any, ...]
    """An enum's values."""


@dataclass(frozen=True, slots=True)
class SpanValue:
    """A span that has ended."""

    path: str
    """Its path, with the items' numbers: `contexts[0].name`; empty without a key."""
    kind: str
    """As the JSON form names it."""
    text: str
    """As it is written."""
    value: Any
    """What it means: the enum's value, the number, the text without quotes and escapes, the parsed JSON."""
    start: int
    """Its first byte in the skeleton's text, as UTF-8."""
    end: int
    """The byte after its last."""


def value_of_span(info: SpanInfo, text: str, choice: int | None) -> Any:
    """What the text of a span means."""
    if choice is not None and info.values:
        return info.values[choice]
    if info.kind == "free-string" and info.in_string:
        return json.loads(f'"{text}"')
    if info.kind == "object":
        try:
            return json.loads(text)
        except json.JSONDecodeError:  # spans that are no JSON together
            return text
    return json.loads(text)


class _Open:
    """A span that has begun."""

    __slots__ = ("info", "items", "path", "shown", "start", "text")

    def __init__(self, info: SpanInfo, path: str, start: int) -> None:
        self.info, self.path, self.start = info, path, start
        self.items = 0
        self.shown = start
        self.text = _Text(info)


class _Text:
    """The text of a span in pieces that are certain: a string's without its quotes and escapes, others as written."""

    __slots__ = ("_is_string", "_opened", "_rest")

    def __init__(self, info: SpanInfo) -> None:
        self._is_string = info.kind == "free-string"
        self._opened = not self._is_string or info.in_string
        self._rest = b""

    def push(self, data: bytes) -> str:
        data = self._rest + data
        if not self._opened and data:
            self._opened, data = True, data[1:]
        whole = len(data) - _unfinished(data) if self._is_string else len(data) - _cut_character(data)
        piece, self._rest = data[:whole], data[whole:]
        text = piece.decode("utf-8", "replace")
        if not self._is_string:
            return text
        if text.endswith('"') and not _is_escaped(text):
            text = text[:-1]
        read: str = json.loads(f'"{text}"')
        return read


def _is_escaped(text: str) -> bool:
    """Whether the last character has an odd number of backslashes before it."""
    before = text[:-1]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _cut_character(data: bytes) -> int:
    """How many bytes at the end are the beginning of a character."""
    for n in range(1, min(3, len(data)) + 1):
        byte = data[-n]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return n if n < length else 0
        if byte < 0x80:
            return 0
    return 0


def _unfinished(data: bytes) -> int:
    """How many bytes at the end are the beginning of a character or of an escape, a surrogate pair counting as one."""
    at, n = 0, len(data)
    while at < n:
        if data[at] != 0x5C:
            at += 1
            continue
        length = 2 if data[at + 1 : at + 2] != b"u" else 6
        if length == 6 and data[at + 2 : at + 3] in (b"d", b"D") and data[at + 3 : at + 4] in _HIGH:
            length = 12
        if at + length > n:
            return n - at
        at += length
    return _cut_character(data)


_HIGH = (b"8", b"9", b"a", b"b", b"A", b"B")


class SpanStream:
    """Turns the tokens of an output and the marks of its decoder into span events.

    Joined, the texts of a string's events are its value.
    """

    def __init__(self, infos: Sequence[SpanInfo]) -> None:
        self._infos = infos
        self._pieces: list[bytes] = []
        self._text = bytearray()
        self._read = 0
        self._begun = False
        self._seen = 0
        self._open: list[_Open] = []
        self._arrays: list[_Open] = []
        self.ended: list[SpanValue] = []
        """The spans that have ended, in the order of their ends."""

    def token(self, decoder: _core.Decoder, data: bytes) -> list[SpanEvent]:
        """The events that are certain with one more token, whose text is `data`."""
        self._pieces.append(data)
        found = decoder.span_marks(len(self._pieces), self._seen)
        return [] if found is None else self._take(*found)

    def end(self, decoder: _core.Decoder) -> list[SpanEvent]:
        """The events of a text that is complete now."""
        found = decoder.span_marks(len(self._pieces), self._seen, ended=True)
        return [] if found is None else self._take(*found)

    def feed(self, text: bytes, marks: Sequence[Mark]) -> list[SpanEvent]:
        """The events of a whole text that the marks belong to."""
        self._pieces = [text]
        return self._take(0, marks, len(text))

    def _take(self, first: int, marks: Sequence[Mark], certain: int) -> list[SpanEvent]:
        if not self._begun:
            if len(self._pieces) <= first:
                return []
            self._begun, self._read = True, first
        while self._read < len(self._pieces):
            self._text += self._pieces[self._read]
            self._read += 1
        self._seen += len(marks)
        events: list[SpanEvent] = []
        for kind, span, at, choice in marks:
            if kind == "item":
                self._arrays[-1].items += 1
            elif kind == "start":
                self._start(span, at, events)
            else:
                self._end(at, choice, events)
        if self._open:
            self._show(self._open[-1], certain, events)
        return events

    def _start(self, span: int, at: int, events: list[SpanEvent]) -> None:
        info = self._infos[span]
        parts = info.path.split("[]")
        numbers = [f"[{array.items - 1}]" for array in self._arrays]
        path = "".join(part + number for part, number in zip(parts, [*numbers, ""], strict=False))
        opened = _Open(info, path, at)
        self._open.append(opened)
        if info.kind == "array":
            self._arrays.append(opened)
        events.append(SpanStart(path, info.kind))

    def _end(self, at: int, choice: int | None, events: list[SpanEvent]) -> None:
        ended = self._open.pop()
        self._show(ended, at, events)
        if ended.info.kind == "array":
            self._arrays.pop()
        text = self._text[ended.start : at].decode("utf-8", "replace")
        value = value_of_span(ended.info, text, choice)
        self.ended.append(SpanValue(ended.path, ended.info.kind, text, value, ended.start, at))
        events.append(SpanEnd(ended.path, value))

    def _show(self, span: _Open, to: int, events: list[SpanEvent]) -> None:
        """The text of a span up to a byte. That of objects and arrays is in the spans inside."""
        if span.info.kind in ("object", "array") or to <= span.shown:
            return
        data, span.shown = bytes(self._text[span.shown : to]), to
        if text := span.text.push(data):
            events.append(SpanText(span.path, text))


def values_of(spans: Sequence[SpanValue]) -> dict[str, Any]:
    """The values by key. Keys with dots are nested; what lies in objects and arrays is part of their values."""
    made: dict[str, Any] = {}
    for span in spans:
        if not span.path or "[" in span.path:
            continue
        *parents, key = span.path.split(".")
        inner = made
        for parent in parents:
            known = inner.get(parent)
            if not isinstance(known, dict):
                known = inner[parent] = {}
            inner = known
        inner[key] = span.value
    return made
