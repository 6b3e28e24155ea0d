"""Reads JSON from chunks of text, member by member, with the place of every error.

It never holds the whole text, skips values that are not asked for without building them, and does not recurse.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

from .. import _core
from .._errors import error

CHUNK = 1 << 16
"""Characters that are read at once, at least."""
LONGEST_STRING = 1 << 20
"""Characters of a string that is built; skipped ones may be longer."""
LONGEST_ARRAY = 1 << 24
"""Characters of an array of whole numbers that is read at once; longer ones are read one by one."""
LONGEST_NUMBER = 4300
"""Characters of a number."""
DEEPEST = 1000
"""Arrays and objects inside each other in what is skipped."""

_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r'(?:[^"\\\x00-\x1f]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')
_CUT = re.compile(r"\\(?:u.{0,3})?", re.DOTALL)
_WORD = re.compile(r"[-+.0-9A-Za-z]*")
_SCAN = json.JSONDecoder().raw_decode
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)")
_KINDS = {'"': "a string", "{": "an object", "[": "an array", "t": "a boolean", "f": "a boolean", "n": "null"}


class Reader:
    """A position in JSON text that comes in chunks."""

    def __init__(self, read: Callable[[int], str]) -> None:
        """`read` gives about as many characters as it is asked for, and none at the end."""
        self.where: tuple[str | int, ...] = ()
        """The members that lead to what is read now, for errors."""
        self._read = read
        self._text = ""
        self._at = 0
        self._ended = False
        self._line = 1
        self._column = 1

    def place(self) -> str:
        """Where the reader is: a JSON pointer, if any, with line and column."""
        pointer = "".join("/" + str(part).replace("~", "~0").replace("/", "~1")[:200] for part in self.where)
        self._drop()
        position = f"line {self._line}, column {self._column}"
        return f"{pointer}, {position}" if pointer else position

    def wrong(self, message: str, help: str = "") -> _core.PayloadError:
        """An error at this place."""
        return error(_core.PayloadError, message, place=self.place(), help=help)

    def malformed(self, expected: str) -> _core.PayloadError:
        """The error of text that is no JSON here."""
        found = self.peek()
        return self.wrong(
            f"malformed JSON: {expected} expected, found {found!r}" if found else "the JSON ends too early"
        )

    def kind(self) -> str:
        """What value begins here, in words."""
        return _KINDS.get(self.peek(), "a number")

    def peek(self) -> str:
        """The next character that is no space; empty at the end."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self, character: str) -> None:
        """Reads this character."""
        if self.peek() != character:
            raise self.malformed(repr(character))
        self._at += 1

    def members(self) -> Iterator[str]:
        """An object's keys; after each, its value must be read."""
        more = self._opens("{")
        while more:
            key = self.string()
            self.take(":")
            yield key
            more = not self._closes("}")

    def elements(self) -> Iterator[int]:
        """An array's places; at each, the element must be read."""
        more, place = self._opens("["), 0
        while more:
            yield place
            more, place = not self._closes("]"), place + 1

    def string(self, build: bool = True) -> str:
        """A string of at most `LONGEST_STRING` characters; one that is not built is read and forgotten."""
        self.take('"')
        while True:
            end = _PLAIN.match(self._text, self._at).end()  # type: ignore[union-attr]
            if build and end - self._at > LONGEST_STRING:
                raise self.wrong(f"a string of more than {LONGEST_STRING} characters")
            if self._text[end : end + 1] == '"':
                break
            if not build:
                self._at = end
            rest = self._text[end : end + 6]
            if rest and not _CUT.fullmatch(rest):
                self._at = end
                raise self.wrong(f"malformed JSON: {rest[:2]!r} in a string")
            if not self._more():
                raise self.wrong("the JSON ends inside a string")
        text = self._text[self._at : end]
        self._at = end + 1
        return str(json.loads(f'"{text}"')) if build and "\\" in text else text

    def word(self) -> str:
        """A number, true, false or null, as it is written."""
        self.peek()
        while True:
            end = _WORD.match(self._text, self._at).end()  # type: ignore[union-attr]
            if end - self._at > LONGEST_NUMBER:
                raise self.wrong(f"a number of more than {LONGEST_NUMBER} characters")
            if end < len(self._text) or not self._more():
                break
        text = self._text[self._at : end]
        if text not in ("true", "false", "null") and not NUMBER.fullmatch(text):
            raise self.malformed("a value")
        self._at = end
        return text

    def whole(self, what: str) -> int:
        """A whole number; `what` is its name in the error."""
        kind = self.kind()
        if kind != "a number":
            raise self.wrong(f"{what} is {kind}", help="it is a whole number")
        text = self.word()
        if not WHOLE.fullmatch(text):
            self._at -= len(text)
            raise self.wrong(f"{what} is {text[:40]}", help="it is a whole number")
        return int(text)

    def wholes(self, what: str) -> list[int]:
        """An array of whole numbers, of any size; `what` is an element's name in the error.

        It equals reading one element after another, which is what happens to an array that is long or not plain.
        """
        self.peek()
        while self._text.find("]", self._at) < 0 and len(self._text) < LONGEST_ARRAY and self._more():
            pass
        try:
            values, end = _SCAN(self._text, self._at)
        except (ValueError, RecursionError):
            values = None
        if type(values) is list and set(map(type, values)) <= {int}:
            self._at = end
            return values
        outside, values = self.where, []
        for at in self.elements():
            self.where = (*outside, at)
            values.append(self.whole(what))
        self.where = outside
        return values

    def skip(self) -> None:
        """Reads a value and builds nothing."""
        closing: list[str] = []
        while True:
            character = self.peek()
            if character in ("{", "["):
                if len(closing) >= DEEPEST:
                    raise self.wrong(f"arrays and objects more than {DEEPEST} deep")
                if self._opens(character):
                    closing.append("}" if character == "{" else "]")
                    self._skip_key(closing)
                    continue
            elif character == '"':
                self.string(build=False)
            else:
                self.word()
            while closing and self._closes(closing[-1]):
                closing.pop()
            if not closing:
                return
            self._skip_key(closing)

    def _skip_key(self, closing: list[str]) -> None:
        if closing[-1] == "}":
            self.string(build=False)
            self.take(":")

    def _opens(self, open: str) -> bool:
        """Enters an array or object; False if it is empty, and read."""
        self.take(open)
        empty = self.peek() == ("}" if open == "{" else "]")
        self._at += empty
        return not empty

    def _closes(self, close: str) -> bool:
        """Reads what follows a value: a comma, or the end."""
        character = self.peek()
        if character not in (",", close) or not character:
            raise self.malformed(f"',' or '{close}'")
        self._at += 1
        return character == close

    def _more(self) -> bool:
        """Reads more text, and forgets what was used. The amount doubles, so that a long value costs no more."""
        if self._ended:
            return False
        self._drop()
        chunk = self._read(max(CHUNK, len(self._text)))
        self._ended = not chunk
        self._text += chunk
        return bool(chunk)

    def _drop(self) -> None:
        """Forgets what was read."""
        last = self._text.rfind("\n", 0, self._at)
        if last >= 0:
            self._line += self._text.count("\n", 0, self._at)
            self._column = self._at - last
        else:
            self._column += self._at
        self._text = self._text[self._at :]
        self._at = 0
