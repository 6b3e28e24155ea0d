"""The reading of a response character by character: what has come, what is held back, and the part that is open."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

from ._forms import forms
from ._marks import ANY_TOKEN, Marks
from ._parts import Content, Kind, Part, PartEnd, PartEvent, PartStart, PartText

Machine = Generator[None, None, Any]
"""A part of the parser, which yields where it needs more input."""

MAX_NAME = 256
"""Characters of a tool's name, or of a key."""
MAX_SPACE = 64
"""White space in and before a marker."""
MAX_FORM = 1_024
"""Characters of markers that are read as one, blanks and white space included."""


class Reading:
    """What a parser has read, and the small machines that read on.

    Args:
        marks: the markers of the protocol.
        has_tokens: whether it reads tokens.
    """

    def __init__(self, marks: Marks, *, has_tokens: bool) -> None:
        self._marks, self.protocol = marks, marks.protocol
        self._buffer, self._at, self._final = "", 0, False
        self._events: list[PartEvent] = []
        self._parts: list[Part] = []
        self._raw: list[str] = []
        """What was read since the last part."""
        self._pieces: list[str] = []
        """The text of the part that is open."""
        self._open: Kind | None = None
        self._blank: list[str] = []
        bound = [marks.bound(text) for text in self.protocol.turn_end]
        self._enders = (*marks.ends, *(end for end in bound if not has_tokens or ANY_TOKEN.fullmatch(end)))
        """What ends the turn. With a vocabulary only tokens do."""
        self._inner_enders = "".join(end for end in self._enders if marks.is_hard(end))
        """Of these, what ends it inside of arguments too: tokens that are no text."""
        self._machine: Machine

    def _put(self, text: str) -> list[PartEvent]:
        if text:
            self._buffer, self._at = self._buffer[self._at :] + text, 0
            self._advance()
        events, self._events = self._events, []
        return events

    def _advance(self) -> None:
        next(self._machine, None)

    @property
    def _left(self) -> int:
        return len(self._buffer) - self._at

    def _take(self, n: int) -> str:
        """The next characters, which are read now."""
        text = self._buffer[self._at : self._at + n]
        self._at += n
        if text:
            self._raw.append(text)
        return text

    def _begin(self, kind: Kind, name: str | None = None) -> None:
        self._open = kind
        self._events.append(PartStart(len(self._parts), kind, name))

    def _emit(self, text: str) -> None:
        """Text of the open part."""
        self._pieces.append(text)
        shown = self._marks.shown(text)
        if shown:
            self._events.append(PartText(len(self._parts), shown))

    def _end(self, part: Callable[[str, str], Part]) -> None:
        """Ends a part, made of its text and of all that was read for it."""
        made = part(self._marks.shown("".join(self._pieces)), self._marks.raw("".join(self._raw)))
        self._events.append(PartEnd(len(self._parts), made))
        self._parts.append(made)
        self._raw, self._pieces, self._blank, self._open = [], [], [], None

    def _broken(self, note: str) -> None:
        """What was read for a tool call is content."""
        text = self._marks.shown("".join(self._raw))
        if self._open is None:
            self._begin("content")
            self._emit(text)
        self._end(lambda _, raw: Content(text, raw, note))

    def _until(self, search: Search) -> Machine:
        """Reads text of the open part up to one of several texts; gives it, or None at the end."""
        while True:
            found = search.find(self._buffer, self._at)
            if found is not None:
                self._emit(self._take(found.start() - self._at))
                return found[0]
            self._emit(self._take(self._left - (0 if self._final else search.held(self._buffer, self._at))))
            if self._final:
                return None
            yield

    def _is_over(self) -> Machine:
        """Whether the turn ends here."""
        while not self._final:
            rest = self._buffer[self._at :]
            if not any(len(ender) > len(rest) and ender.startswith(rest) for ender in self._enders):
                break
            yield
        return any(self._buffer.startswith(ender, self._at) for ender in self._enders)

    def _skip(self, text: str) -> Machine:
        """Reads this text if it follows; of white space as much as follows."""
        while self._left < len(text) and not self._final and text.startswith(self._buffer[self._at :]):
            yield
        if text.isspace():
            while text and not self._buffer.startswith(text, self._at):
                text = text[:-1]
        if self._buffer.startswith(text, self._at):
            self._take(len(text))

    def _expect(self, choices: Sequence[str]) -> Machine:
        """Reads one of several texts, the longest, white space aside, and gives its number; -1, and nothing is read,
        otherwise."""
        known = forms(tuple(choices))
        states = known.start
        which, taken = known.complete(states), 0
        i, space = 0, 0
        while known.may_continue(states) and space <= MAX_SPACE and i <= MAX_FORM:
            if i == self._left:
                if self._final:
                    break
                yield
                continue
            character = self._buffer[self._at + i]
            i += 1
            if character.isspace():
                space += 1
                continue
            states = known.step(states, character)
            complete = known.complete(states)
            if complete is not None:
                which, taken = complete, i
        if which is None:
            return -1
        self._take(taken)
        return which

    def _spaces(self) -> Machine:
        """Reads white space, up to its limit."""
        n = 0
        while n < MAX_SPACE:
            if n == self._left and not self._final:
                yield
            elif n < self._left and self._buffer[self._at + n].isspace():
                n += 1
            else:
                break
        self._take(n)

    def _word(self, stop: Callable[[str], bool]) -> Machine:
        """Reads a name up to a character; None if it is empty or too long."""
        i = 0
        while i <= MAX_NAME:
            if i == self._left:
                if self._final:
                    return None
                yield
            elif stop(self._buffer[self._at + i]):
                return self._take(i) or None
            else:
                i += 1
        return None


class Search:
    """The first of several texts in a buffer, and how much of a buffer's end may still become one."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = tuple(sorted({text for text in texts if text}, key=len, reverse=True))
        self.longest = max(map(len, self.texts), default=0)
        self._pattern = re.compile("|".join(map(re.escape, self.texts))) if self.texts else None
        firsts = "|".join(re.escape(first) for first in sorted({text[0] for text in self.texts}))
        self._firsts = re.compile(firsts) if firsts else None

    def find(self, text: str, at: int) -> re.Match[str] | None:
        """The first occurrence from `at` on, of several at one place the longest."""
        return None if self._pattern is None else self._pattern.search(text, at)

    def may_be_longer(self, text: str, at: int) -> bool:
        """Whether what begins at `at` may still become a longer one of the texts."""
        rest = text[at : at + self.longest]
        return len(rest) < self.longest and any(len(one) > len(rest) and one.startswith(rest) for one in self.texts)

    def held(self, text: str, at: int) -> int:
        """The length of the longest end of `text`, from `at` on, with which one of the texts begins."""
        at = max(at, len(text) - self.longest + 1)
        # Most pieces hold no character with which one begins.
        while self._firsts is not None and (found := self._firsts.search(text, at)) is not None:
            at = found.start()
            rest = text[at:]
            if any(len(one) > len(rest) and one.startswith(rest) for one in self.texts):
                return len(rest)
            at += 1
        return 0
