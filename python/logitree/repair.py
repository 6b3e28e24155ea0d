"""Holds a text against a constraint: completes what is determined, says what is ambiguous, invents nothing.

A stream that broke off, another model's answer, JSON in a Markdown fence or in prose: `repair` says whether the
constraint allows the text, what must follow it, and where it is not what was expected. It works on bytes and needs no
model; `resume` lets a model write the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, get_args

from . import _core
from ._constraint import Context, Typed, bind_in, constraint_of
from ._core import Constraint
from ._errors import IncompleteError, error
from ._generate import generate
from ._generation import Generation
from .engines import open as open_engine
from .skeleton import Skeleton

__all__ = ["Place", "Repaired", "Repairer", "repair", "resume"]

MAX_TEXT = 1 << 22
"""Bytes of a text."""
MAX_ADDED = 1 << 20
"""Bytes that a completion may add."""
MAX_READINGS = 4
"""How many times the text's length, plus 256 KiB, may be read in search of what the constraint accepts."""

_END = 256
"""The token that ends a text, after those of the 256 bytes."""
_SPACE = b" \t\n\r"
"""JSON's insignificant whitespace."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was done, or is not as expected. Offsets are those of the text that was given."""

    kind: Literal["added", "closed", "removed", "ambiguous", "invalid", "candidate"]
    """What is here: text that was added because it is determined, text that was added because it is the shortest
    ending, text that was removed, the end of what is determined, the first byte that the constraint refuses, or one of
    several texts that the constraint accepts."""
    start: int
    """Offset in characters."""
    end: int
    """Offset of its end; equal to `start` where there is nothing between."""
    byte_start: int
    """The same in bytes of UTF-8."""
    byte_end: int
    """Its end in bytes of UTF-8."""
    text: str
    """What was added, was removed, or is a candidate."""
    expected: tuple[str, ...] = ()
    """What the constraint expects here, in words."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """What became of a text.

    The statuses:

    - "unchanged": the text is complete under the constraint as it is;
    - "repaired": it is complete after additions and removals that were determined, or after the shortest ending where
      that was asked for;
    - "ambiguous": it can be completed in several ways. What is determined was added, the rest is left; or it contains
      several texts that the constraint accepts, and is left as it is;
    - "invalid": the constraint refuses it, and it is left as it is.
    """

    status: Literal["unchanged", "repaired", "ambiguous", "invalid"]
    """Which of the statuses above."""
    data: bytes
    """The text as bytes."""
    places: tuple[Place, ...]
    """What was added and removed, and where it is ambiguous or invalid, by ascending offset."""
    constraint: Constraint = field(repr=False, compare=False)
    """What it was held against."""

    @property
    def text(self) -> str:
        """The text. Bytes that are no UTF-8, such as a character that was cut, are U+FFFD; `data` has them."""
        return self.data.decode("utf-8", "replace")

    @property
    def complete(self) -> bool:
        """Whether the text is complete under the constraint."""
        return self.status in ("unchanged", "repaired")

    @property
    def value(self) -> Any:
        """What the text means, as `Generation.value`.

        Raises:
            IncompleteError: the text is ambiguous or invalid.
        """
        if not self.complete:
            last = next((place for place in reversed(self.places) if place.kind in ("ambiguous", "invalid")), None)
            expected = f": expected {'; '.join(last.expected)}" if last is not None and last.expected else ""
            raise IncompleteError(
                f"the text is {self.status}{expected}",
                place="" if last is None else f"byte {last.byte_start}",
                help="look at .places; resume() lets a model write the rest of an ambiguous text",
            )
        return _value(self.constraint, self.data)


Close = Literal["determined", "shortest"]
"""How far a text that the constraint accepts as a beginning is completed."""


def repair(text: str | bytes, constraint: Any, *, close: Close = "determined") -> Repaired:
    """Holds a text against a constraint.

    ```python
    from logitree.repair import repair

    made = repair("[true, fal", list[bool])
    print(made.status, made.text)  # ambiguous [true, false
    print(repair("Sure: [true, false].", list[bool]).value)  # [True, False]
    ```

    A text that the constraint accepts as a beginning is completed: a byte is added where it is the only one that may
    follow, until the text is complete. For a JSON Schema, whitespace between the parts of a value is not a choice: none
    is added where it may be left out.

    With `close="shortest"` a beginning that may be completed in several ways gets the shortest legal ending, in bytes,
    as `generate(on_limit="close")` gives it. What is determined comes first; the place of the rest has the kind
    "closed".

    Any other text is searched for one that the constraint accepts: between the lines of Markdown fences, and for JSON
    from a brace or bracket on, for other constraints at the borders of words. If there is exactly one, it is the
    result; what is around it was removed. For a JSON Schema, whitespace that the constraint refuses is left out, and so
    is a comma before a closing brace or bracket.

    Args:
        text: what a model wrote, or the part of it that arrived. Bytes may end within a character.
        constraint: what `generate` takes, if it can be held against bytes: not a matcher, and nothing that is made of
            the tokens of one vocabulary.
        close: "determined" adds what is determined; "shortest" completes the text.

    Raises:
        TypeError: the value means no constraint.
        ValueError: `close` is none of these.
        ConstraintError: the constraint names tokens, or cannot be honoured.
        LimitError: the text is longer than 4 MiB, more than 1 MiB would be added, or the search takes too long.
    """
    return _Bound.of(constraint, close).repaired(_bytes(text))


class Repairer:
    """Repairs a text that arrives in pieces.

    ```python
    from logitree.repair import Repairer

    repairer = Repairer(["yes", "no"])
    for piece in ("y", "e"):
        repairer.feed(piece)
        print(repairer.state.text)  # yes
    ```

    While the constraint accepts the whole text, a piece costs its own length. `close` is as of `repair`. Raises what
    `repair` raises.
    """

    def __init__(self, constraint: Any, *, close: Close = "determined") -> None:
        self._bound = _Bound.of(constraint, close)
        self._data = bytearray()
        self._reading: _Reading | None = _Reading(self._bound.start.fork(), 0)
        self._state: Repaired | None = None

    def feed(self, piece: str | bytes) -> None:
        """Takes the next piece of the text; bytes may end within a character."""
        new = _bytes(piece)
        if len(self._data) + len(new) > MAX_TEXT:
            raise _too_long(len(self._data) + len(new))
        self._data += new
        self._state = None
        if self._reading is not None:
            self._bound.advance(self._reading, self._data, len(self._data))
            if self._reading.at < len(self._data):
                self._reading = None

    @property
    def text(self) -> str:
        """All that was fed."""
        return self._data.decode("utf-8", "replace")

    @property
    def state(self) -> Repaired:
        """What `repair` makes of the text so far."""
        if self._state is None:
            data = bytes(self._data)
            if self._reading is not None:
                self._state = self._bound.closed(data, self._reading.fork(), 0, len(data))
            else:
                self._state = self._bound.repaired(data)
        return self._state


def resume(model: Any, prompt: Any, text: str | bytes, constraint: Any, **options: Any) -> Generation[Any]:
    """Lets a model continue a text that broke off, under the same constraint.

    ```python
    generation = logitree.repair.resume("model.gguf", "Describe a cat as JSON.", '{"name": "Mi', schema)
    print(generation.value)
    ```

    What `repair` makes of the text becomes the beginning of the model's answer: the constraint accepts its tokens, and
    the model has read them after the prompt. `Generation.text` is what the model adds; `Generation.value` is what both
    mean together. The text's tokens are the model's own tokenisation of it, so a word that was cut continues within the
    word.

    Args:
        model, prompt, constraint, options: as of `generate`, for one prompt.
        text: the beginning of the answer.

    Raises:
        ConstraintError: the text is not the beginning of anything that the constraint accepts, or contains several
            candidates.
        LogitreeError: as of `repair` and `generate`.
    """
    held = constraint_of(constraint)
    made = repair(text, held)
    undecided = [place for place in made.places if place.kind in ("invalid", "candidate")]
    if undecided:
        first = undecided[0]
        what = "several candidates" if first.kind == "candidate" else f"expected {'; '.join(first.expected)}"
        message = f"the text cannot be continued: {what}"
        raise error(
            _core.ConstraintError, message, place=f"byte {first.byte_start}", help="repair(text) has the places"
        )
    engine = open_engine(model)
    tokenize = engine.tokenize
    whole = made.data.decode("utf-8", "ignore").encode() == made.data
    tokens = list(tokenize(made.text)) if tokenize is not None and whole else _spelled(engine.vocabulary, made.data)
    chat = options.pop("chat", None)
    before = engine.encode(prompt, chat=chat) if isinstance(prompt, str) or not _is_tokens(prompt) else list(prompt)
    generation: Generation[Any] = generate(
        engine, [*before, *tokens], _Resumed(held, made.data, tokens, len(before)), **options
    )
    return generation


def _is_tokens(prompt: Any) -> bool:
    """Whether a prompt is a sequence of token ids."""
    return isinstance(prompt, Sequence) and all(isinstance(one, int) for one in prompt)


class _Resumed(Constraint):
    """A constraint that has accepted a beginning."""

    def __init__(self, inner: Constraint, data: bytes, tokens: list[int], prompt: int) -> None:
        self._inner, self._data, self._tokens, self._prompt = inner, data, tokens, prompt

    def matcher(self, vocabulary: _core.Vocabulary, /) -> _core.Matcher:
        """The matcher after the beginning."""
        return self.bind(Context(vocabulary))

    def bind(self, context: Context) -> _core.Matcher:
        """The matcher after the beginning."""
        inside = Context(context.vocabulary, context.tokenize, context.prompt[: self._prompt])
        matcher = bind_in(self._inner, inside)
        matcher.accept_many(self._tokens)
        return matcher

    def value(self, text: str, tokens: Sequence[int]) -> Any:
        """What the beginning and the text mean together."""
        return _value(self._inner, self._data + text.encode())

    def __repr__(self) -> str:
        return f"<{self._inner!r} after {self._data[:40]!r}>"


@cache
def _vocabulary() -> _core.Vocabulary:
    """A token for every byte, by its value, and one that ends a text."""
    tokens = [bytes([byte]) for byte in range(256)] + [b"</s>"]
    return _core.Vocabulary.from_tokens(tokens, end_tokens=[_END], kinds=["byte"] * 256 + ["control"], name="bytes")


def _bytes(text: str | bytes) -> bytes:
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
    if len(data) > MAX_TEXT:
        raise _too_long(len(data))
    return data


def _too_long(length: int) -> _core.LimitError:
    message = f"the text is {length:,} bytes long, the limit is {MAX_TEXT:,}"
    return error(_core.LimitError, message, help="give the part that holds the answer")


def _value(constraint: Constraint, data: bytes) -> Any:
    """What a complete text means."""
    tokens = list(data)
    tokens = tokens[constraint.answer_start(tokens, _context()) :]
    return constraint.value(bytes(tokens).decode("utf-8", "replace"), tokens)


def _context() -> Context:
    return Context(_vocabulary(), lambda text: list(text.encode()))


def _spelled(vocabulary: _core.Vocabulary, data: bytes) -> list[int]:
    """The longest tokens, from the left, that spell the bytes.

    Raises:
        ConstraintError: the vocabulary has no token for a byte.
    """
    made: list[int] = []
    at = 0
    while at < len(data):
        found = vocabulary.trie.longest_match(data[at:])
        if found is None:
            raise error(_core.ConstraintError, f"the vocabulary cannot spell {data[at : at + 1]!r}")
        made.append(found[0])
        at += found[1]
    return made


def _is_json(constraint: Any) -> bool:
    """Whether what it accepts is JSON, so that whitespace between the parts of a value means nothing."""
    grammar = constraint.inner if isinstance(constraint, Typed) else constraint
    if not isinstance(grammar, _core.Grammar):
        return False
    parts = json.loads(grammar.__reduce__()[1][0])
    return len(parts) == 1 and parts[0].get("is") == "json_schema"


def _ends_as_json(matcher: _core.Matcher) -> bool:
    """Whether the shortest text of a skeleton is JSON: then its fixed text is, whatever the values are."""
    try:
        json.loads(_vocabulary().decode(matcher.shortest_ending()))
    except (ValueError, _core.LogitreeError):
        return False
    return True


class _Reading:
    """A constraint that reads a text from some offset: what it took, and what it left out."""

    def __init__(self, matcher: _core.Matcher, start: int) -> None:
        self.matcher, self.start, self.at = matcher, start, start
        self.body = bytearray()
        """What it took: the matcher's tokens."""
        self.dropped: list[tuple[int, int]] = []
        """What it left out: offsets, ascending."""
        self._scanned, self._inside, self._escaped = 0, False, False

    def fork(self) -> _Reading:
        """The same, to be continued on its own."""
        made = _Reading(self.matcher.fork(), self.start)
        made.at, made.body, made.dropped = self.at, bytearray(self.body), list(self.dropped)
        return made

    def take(self, tokens: list[int]) -> int:
        """Takes as many of the tokens as the constraint allows, and gives their number."""
        taken = self.matcher.validate(tokens)
        self.matcher.accept_many(tokens[:taken])
        if self.matcher.is_finished:
            # Where anything may follow the end, more was taken than belongs to the constraint.
            self.matcher.rollback(taken)
            taken = next(n for n, token in enumerate(tokens, start=1) if self._ends(token))
        self.body += bytes(tokens[:taken])
        return taken

    def _ends(self, token: int) -> bool:
        """Takes a token; whether the matcher has ended."""
        self.matcher.accept(token)
        return self.matcher.is_finished

    def back(self, n: int) -> int:
        """Takes back the last n bytes, and forgets what was left out after the first of them. Gives its offset."""
        self.matcher.rollback(n)
        del self.body[len(self.body) - n :]
        self._scanned = min(self._scanned, len(self.body))
        first = self.at
        while n:
            if self.dropped and self.dropped[-1][1] == first:
                first = self.dropped.pop()[0]
            else:
                first, n = first - 1, n - 1
        return first

    def drop(self, start: int, end: int) -> None:
        """Leaves out a part of the text."""
        if self.dropped and self.dropped[-1][1] == start:
            start = self.dropped.pop()[0]
        self.dropped.append((start, end))

    def in_string(self) -> bool:
        """Whether JSON text is within a string here. What is taken back is outside of strings."""
        for byte in self.body[self._scanned :]:
            if self._escaped:
                self._escaped = False
            elif byte == 0x5C and self._inside:
                self._escaped = True
            elif byte == 0x22:
                self._inside = not self._inside
        self._scanned = len(self.body)
        return self._inside


class _Places:
    """Makes places of ascending offsets in bytes, each with the offset in characters."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at, self._begun = data, 0, 0

    def __call__(self, kind: Any, start: int, end: int, text: str | None = None, expected: Sequence[str] = ()) -> Place:
        shown = self._data[start:end].decode("utf-8", "replace") if text is None else text
        return Place(kind, self._characters(start), self._characters(end), start, end, shown, tuple(expected))

    def _characters(self, at: int) -> int:
        """The number of characters before an offset; of an offset within a character, those before that one."""
        self._begun += sum(byte & 0xC0 != 0x80 for byte in self._data[self._at : at])
        self._at = at
        return self._begun - 1 if at < len(self._data) and self._data[at] & 0xC0 == 0x80 else self._begun


@dataclass(frozen=True, slots=True)
class _Found:
    """A part of the text that the constraint accepts, whole or as a beginning."""

    reading: _Reading
    end: int


class _Bound:
    """A constraint over bytes."""

    def __init__(self, constraint: Constraint, start: _core.Matcher, close: Close) -> None:
        self.constraint, self.start, self.close = constraint, start, close
        self.json = _is_json(constraint) or (isinstance(constraint, Skeleton) and _ends_as_json(start))
        self._left = 0

    @staticmethod
    def of(value: Any, close: Close = "determined") -> _Bound:
        """A value that means a constraint, over bytes."""
        if close not in get_args(Close):
            raise ValueError(f"close is {close!r}, expected one of {', '.join(map(repr, get_args(Close)))}")
        constraint = constraint_of(value, numbers="any")
        if isinstance(constraint, _core.Matcher):
            message = "a matcher is bound to the tokens of a vocabulary, a repair works on bytes"
            raise error(_core.ConstraintError, message, help="give the constraint that the matcher was made of")
        return _Bound(constraint, bind_in(constraint, _context()), close)

    # -- reading

    def advance(self, reading: _Reading, data: bytes | bytearray, end: int) -> None:
        """Reads as far as the constraint allows, and to `end` at most."""
        size = 8
        while reading.at < end and not reading.matcher.is_finished:
            chunk = list(data[reading.at : min(end, reading.at + size)])
            taken = reading.take(chunk)
            self._left -= taken + 1
            reading.at += taken
            size = min(2 * size, 4096) if taken == len(chunk) else 8
            if taken < len(chunk) and not (self.json and self._leave_out(reading, data, end)):
                return

    def _leave_out(self, reading: _Reading, data: bytes | bytearray, end: int) -> bool:
        """Leaves out what keeps JSON text from being read and means nothing: whitespace outside of strings, and a comma
        before a closing brace or bracket. False if there is no such thing."""
        at, body = reading.at, reading.body
        if reading.matcher.is_finished or reading.in_string():
            return False
        if (spaces := _SPACES.match(data, at, end)) is not None:
            # What is allowed here does not change while nothing is taken.
            allowed = {space for space in _SPACE if reading.matcher.is_allowed(space)}
            reading.at = next((k for k in range(at, spaces.end()) if data[k] in allowed), spaces.end())
            reading.drop(at, reading.at)
            return True
        taken = len(body) - len(body.rstrip(_SPACE))
        if taken:
            reading.drop(reading.back(taken), at)
            return True
        if data[at] == 0x2C:
            after = _CLOSING.match(data, at + 1, end)
            if after is None:
                return False
            reading.drop(at, at + 1)
            reading.at += 1
            return True
        if data[at] in b"]}" and body[-1:] == b",":
            reading.drop(reading.back(1), at)
            return True
        return False

    def read(self, data: bytes, start: int, end: int) -> _Reading:
        """Reads a part of the text."""
        if self._left < 0:
            message = f"the text of {len(data):,} bytes has too many beginnings that the constraint accepts"
            raise error(_core.LimitError, message, help="give the part that holds the answer")
        reading = _Reading(self.start.fork(), start)
        self.advance(reading, data, end)
        return reading

    # -- completing

    def closed(self, data: bytes, reading: _Reading, start: int, end: int) -> Repaired:
        """A reading that came to the end of its part of the text, completed as far as that is determined."""
        matcher, body = reading.matcher, reading.body
        given = len(body)
        while not matcher.is_accepting:
            more = [token for token in matcher.forced_tokens() if token < _END]
            if not more:
                byte = self._only(matcher) if self.json and not reading.in_string() else None
                if byte is None:
                    break
                more = [byte]
            matcher.accept_many(more)
            body += bytes(more)
            if len(body) - given > MAX_ADDED:
                message = f"more than {MAX_ADDED:,} bytes are determined"
                raise error(_core.LimitError, message, help="give a constraint with shorter repetitions")
        determined = len(body)
        if self.close == "shortest" and not matcher.is_accepting:
            ending = matcher.shortest_ending()
            matcher.accept_many(ending)
            body += bytes(token for token in ending if token < _END)
        place = _Places(data)
        places = [place("removed", 0, start)] if start else []
        places += [place("removed", first, last) for first, last in reading.dropped]
        for kind, first, last in (("added", given, determined), ("closed", determined, len(body))):
            if last > first:
                places.append(place(kind, end, end, bytes(body[first:last]).decode("utf-8", "replace")))
        if not matcher.is_accepting:
            places.append(place("ambiguous", end, end, "", _expected(matcher)))
        if end < len(data):
            places.append(place("removed", end, len(data)))
        if not matcher.is_accepting:
            return Repaired("ambiguous", bytes(body), tuple(places), self.constraint)
        return Repaired("repaired" if places else "unchanged", bytes(body), tuple(places), self.constraint)

    def _only(self, matcher: _core.Matcher) -> int | None:
        """The only byte that may come next, whitespace apart: it may come here, and nothing else after whitespace."""
        allowed = [token for token in matcher.allowed() if token < _END]
        spaces = [byte for byte in allowed if byte in _SPACE]
        others = [byte for byte in allowed if byte not in _SPACE]
        if len(others) != 1:
            return None
        for space in spaces:
            after = matcher.fork()
            after.accept(space)
            if any(byte not in _SPACE and byte != others[0] for byte in after.allowed() if byte < _END):
                return None
        return others[0]

    # -- searching

    def repaired(self, data: bytes) -> Repaired:
        """What becomes of the text."""
        self._left = MAX_READINGS * len(data) + (1 << 18)
        furthest = whole = self.read(data, 0, len(data))
        if whole.at == len(data):
            return self.closed(data, whole, 0, len(data))
        start, end = len(data) - len(data.lstrip(_SPACE)), len(data.rstrip(_SPACE))
        trimmed = self.read(data, start, end)
        if trimmed.at == end:
            return self.closed(data, trimmed, start, end)
        found = list(self._fenced(data))
        for reading, stop in self._scanned(data, [(one.reading.start, one.end) for one in found]):
            if stop is not None:
                found.append(_Found(reading, stop))
            elif reading.at > furthest.at:
                furthest = reading
        if trimmed.at > furthest.at:
            furthest = trimmed
        found.sort(key=lambda one: one.reading.start)
        place = _Places(data)
        if len({bytes(one.reading.body) for one in found}) > 1:
            places = [
                place("candidate", one.reading.start, one.end, one.reading.body.decode("utf-8", "replace"))
                for one in found
            ]
            return Repaired("ambiguous", data, tuple(places), self.constraint)
        if found:
            return self.closed(data, found[0].reading, found[0].reading.start, found[0].end)
        refused = place("invalid", furthest.at, furthest.at, "", _expected(furthest.matcher))
        return Repaired("invalid", data, (refused,), self.constraint)

    def _fenced(self, data: bytes) -> Iterator[_Found]:
        """The contents of Markdown fences that the constraint accepts, whole or as a beginning."""
        for start, end, closed in _fences(data):
            ends = [end, len(data[:end].rstrip(b"\n")), len(data[:end].rstrip(_SPACE))]
            if not closed:
                # The stream may have ended within the closing fence.
                ends.append(len(_PART_OF_FENCE.sub(b"", data[:end])))
            inside = data[start:end]
            starts = [start, start + len(inside) - len(inside.lstrip(_SPACE))]
            for begin, stop in dict.fromkeys((begin, stop) for begin in starts for stop in ends if begin < stop):
                reading = self.read(data, begin, stop)
                if reading.at == stop:
                    yield _Found(reading, stop)
                    break

    def _scanned(self, data: bytes, skip: list[tuple[int, int]]) -> Iterator[tuple[_Reading, int | None]]:
        """Readings from every place where a text may begin, outside the ranges of `skip`: each with its end, or None if
        the constraint does not accept it."""
        first = {token for token in self.start.fork().allowed() if token < _END} - {*_SPACE}
        brackets = first & {*b"{["} if self.json else set()
        starts, at = sorted(skip), 0
        while at < len(data):
            while starts and starts[0][1] <= at:
                starts.pop(0)
            if starts and starts[0][0] <= at:
                at = starts[0][1]
                continue
            if data[at] not in (brackets or first) or not (brackets or _is_border(data, at)):
                at += 1
                continue
            reading = self.read(data, at, starts[0][0] if starts else len(data))
            end = self._accepted(reading, data, bool(brackets))
            yield reading, end
            at = at + 1 if end is None else end

    def _accepted(self, reading: _Reading, data: bytes, brackets: bool) -> int | None:
        """Where what was read is complete; for JSON also where the text ends before it is."""
        if brackets:
            return reading.at if reading.matcher.is_accepting or reading.at == len(data) else None
        longest, matcher = reading.fork(), reading.matcher
        while reading.body and not (matcher.is_accepting and _is_border(data, reading.at)):
            reading.back(1)
            reading.at -= 1
            self._left -= 1
        if reading.body:
            return reading.at
        reading.matcher, reading.at = longest.matcher, longest.at
        return None


_SPACES = re.compile(rb"[ \t\n\r]+")
_CLOSING = re.compile(rb"[ \t\n\r]*[\]}]")
_PART_OF_FENCE = re.compile(rb"\n[ \t]*(`{1,2}|~{1,2})\Z")
_FENCE = re.compile(rb"^[ \t]{0,3}(`{3,}|~{3,})([^\n]*)(?:\n|\Z)", re.MULTILINE)


def _fences(data: bytes) -> Iterator[tuple[int, int, bool]]:
    """The contents of Markdown fences: start, end, and whether the fence was closed (CommonMark 0.31, 4.5)."""
    at = 0
    while (opening := _FENCE.search(data, at)) is not None:
        mark, start = opening[1], opening.end()
        closing = re.compile(rb"^[ \t]{0,3}%b{%d,}[ \t]*$" % (mark[:1], len(mark)), re.MULTILINE).search(data, start)
        yield start, closing.start() if closing else len(data), closing is not None
        at = closing.end() if closing else len(data)


def _is_border(data: bytes, at: int) -> bool:
    """Whether an offset is not within a word."""
    return not (0 < at < len(data) and _is_word(data[at - 1]) and _is_word(data[at]))


def _is_word(byte: int) -> bool:
    return byte >= 0x80 or chr(byte).isalnum() or byte == 0x5F


def _expected(matcher: _core.Matcher) -> tuple[str, ...]:
    """What a matcher expects, in words."""
    if matcher.is_finished:
        return ("the end of the text",)
    words = matcher.explain().expected
    if words:
        return tuple(words)
    allowed = [token for token in matcher.allowed() if token < _END]
    shown = [json.dumps(chr(byte)) if byte < 0x80 else f"byte {byte:#04x}" for byte in allowed[:8]]
    return (f"next {' or '.join(shown)}{' or others' if len(allowed) > 8 else ''}",) if shown else ()
