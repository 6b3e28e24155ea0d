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
LONGEST_NUMBER = 4300
"""Characters of a number."""
DEEPEST = 1000
"""Arrays and objects inside each other in what is skipped."""

_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r'(?:[^"\\\x00-\x1f]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')
_KEY = re.compile(r'[ \t\n\r]*"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*(?=\[)')
_SCAN = json.JSONDecoder().raw_decode
_WORD = re.compile(r"[-+.0-9A-Za-z]*")
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
        character = self._text[self._at : self._at + 1]
        if character > " ":
            return character
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
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
        self.take("{")
        if self.peek() == "}":
            self._at += 1
            return
        while True:
            key = self.string()
            self.take(":")
            yield key
            if self._closes("}"):
                return

    def entries(self, array: str, element: str) -> Iterator[tuple[str, list[int]]]:
        """An object's keys, each with its array of whole numbers; the names of both are for errors.

        It equals `members` and `wholes`, which read whatever is not plain, or not whole in what was read so far.
        """
        outside = self.where
        self.take("{")
        if self.peek() == "}":
            self._at += 1
            return
        while True:
            found = _KEY.match(self._text, self._at)
            plain = _scanned(self._text, found.end()) if found else None
            if found and plain:
                key, (values, self._at) = found[1], plain
                self.where = (*outside, key)
            else:
                key = self.string()
                self.take(":")
                self.where = (*outside, key)
                if self.peek() not in ("[", ""):
                    raise self.wrong(f"{array} are {self.kind()}", help="they are an array")
                values = self.wholes(element)
            yield key, values
            if self._closes("}"):
                return

    def elements(self) -> Iterator[int]:
        """An array's places; at each, the element must be read."""
        self.take("[")
        if self.peek() == "]":
            self._at += 1
            return
        place = 0
        while True:
            yield place
            place += 1
            if self._closes("]"):
                return

    def string(self) -> str:
        """A string of at most `LONGEST_STRING` characters."""
        self.take('"')
        ended = False
        while not ended:
            found = _PLAIN.match(self._text, self._at)
            end = found.end() if found else self._at
            if end - self._at > LONGEST_STRING:
                raise self.wrong(f"a string of more than {LONGEST_STRING} characters")
            ended = self._text[end : end + 1] == '"'
            if not ended:
                self._unfinished(end)
        begin = self._at
        self._at = end + 1
        text = self._text[begin:end]
        return str(json.loads(f'"{text}"')) if "\\" in text else text

    def word(self) -> str:
        """A number, true, false or null, as it is written."""
        while True:
            found = _WORD.match(self._text, self._at)
            end = found.end() if found else self._at
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
        before = self.place()
        text = self.word()
        if not WHOLE.fullmatch(text):
            raise error(_core.PayloadError, f"{what} is {text[:40]}", place=before, help="it is a whole number")
        return int(text)

    def wholes(self, what: str) -> list[int]:
        """An array of whole numbers, of any size; `what` is an element's name in the error.

        It equals reading one element after another, which is what happens wherever a piece is not plain.
        """
        values: list[int] = []
        self.take("[")
        if self.peek() == "]":
            self._at += 1
            return values
        outside = self.where
        plain = True
        while True:
            end = self._text.find("]", self._at) if plain else -1
            cut = end if end >= 0 or not plain else self._text.rfind(",", self._at)
            piece = _plain_wholes(self._text[self._at : cut]) if cut > self._at else None
            # What is not plain has an error in it: trying again would take the square of its length.
            plain = plain and (piece is not None or cut <= self._at)
            if piece:
                values += piece
                self._at = cut + 1
                if end >= 0:
                    return values
                self.peek()
                continue
            self.where = (*outside, len(values))
            values.append(self.whole(what))
            if self._closes("]"):
                self.where = outside
                return values
            self.peek()

    def skip(self) -> None:
        """Reads a value and builds nothing."""
        closing: list[str] = []
        while True:
            character = self.peek()
            if character == '"':
                self._skip_string()
            elif character and character in "{[":
                if self._opens(closing):
                    continue
            else:
                self.word()
            while closing:
                if self._closes(closing[-1]):
                    closing.pop()
                    continue
                if closing[-1] == "}":
                    self._skip_key()
                break
            else:
                return

    def _opens(self, closing: list[str]) -> bool:
        """Enters an array or object; False if it is empty, and read."""
        if len(closing) >= DEEPEST:
            raise self.wrong(f"arrays and objects more than {DEEPEST} deep")
        close = "}" if self._text[self._at] == "{" else "]"
        self._at += 1
        if self.peek() == close:
            self._at += 1
            return False
        closing.append(close)
        if close == "}":
            self._skip_key()
        return True

    def _skip_key(self) -> None:
        if self.peek() != '"':
            raise self.malformed("a key")
        self._skip_string()
        self.take(":")

    def _skip_string(self) -> None:
        self.take('"')
        while True:
            found = _PLAIN.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._text[self._at : self._at + 1] == '"':
                self._at += 1
                return
            self._unfinished(self._at)

    def _unfinished(self, end: int) -> None:
        """More text for a string that is plain up to `end`, or the error of what follows."""
        rest = self._text[end : end + 6]
        cut = rest[:1] == "\\" and len(rest) < (6 if rest[1:2] == "u" else 2)
        if rest and not cut:
            self._at = end
            raise self.wrong(f"malformed JSON: {rest[:2]!r} in a string")
        if not self._more():
            raise self.wrong("the JSON ends inside a string")

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


def _plain_wholes(text: str) -> list[int] | None:
    """The whole numbers between commas, if that is all there is."""
    try:
        values = json.loads(f"[{text}]")
    except (ValueError, RecursionError):
        return None
    return values if set(map(type, values)) <= {int} else None


def _scanned(text: str, at: int) -> tuple[list[int], int] | None:
    """The array of whole numbers that begins here and where it ends, if there is one."""
    try:
        values, end = _SCAN(text, at)
    except (ValueError, RecursionError):
        return None
    return (values, end) if set(map(type, values)) <= {int} else None
