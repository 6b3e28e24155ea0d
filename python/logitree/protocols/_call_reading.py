"""The reading of tool calls: names, and arguments as JSON, as Python's, as pairs, as nested elements."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ._arguments import Element, Reader, read_unquoted
from ._forms import Bare
from ._marks import TOKEN_CHARACTERS, Marks
from ._numbers import DECODER
from ._parts import ToolCall
from ._protocol import TYPES, Pairs
from ._python import read_keywords
from ._reading import Machine, Reading, Search
from ._tools import Tool

MAX_DEPTH = 256
"""Nesting of arguments."""

_NAME = re.compile(r"[\w.\-/]")
_PLAIN = re.compile(r"[\s0-9A-Za-z+\-.,:]*")
"""JSON outside of texts, up to a bracket or a quote."""
_QUOTES = re.compile(r"""\\.|["']""", re.DOTALL)
"""Quotes, and what is escaped."""
_SPACE = re.compile(r"\s*")
_HEADED = re.compile(r'\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"(\w+)"\s*:\s*')
_MAX_HEAD = 1_024


class CallReading(Reading):
    """What reads the calls of some tools.

    Args:
        marks, has_tokens: as of `Reading`.
        tools: the tools that may be called, as far as they are known.
        bare: how calls begin that have no marker.
    """

    def __init__(self, marks: Marks, *, has_tokens: bool, tools: Sequence[Tool], bare: Bare | None) -> None:
        super().__init__(marks, has_tokens=has_tokens)
        self._tools = {tool.name: tool.parsed for tool in tools}
        self._readers: dict[tuple[int, int], Reader] = {}
        """By the identity of a tool's schema and of a part of it: they live as long as the parser."""
        self._described = {tool.name: tool for tool in tools}
        self._calls_read = 0
        self._bare_form = bare

    def _calls(self, rest: str, middles: Sequence[str]) -> Machine:
        """Reads calls after their trigger; `rest` follows it."""
        calls, bound = self.protocol.calls, self._marks.bound
        assert calls is not None
        name = calls.opening
        if (yield from self._expect([rest.removesuffix(name)])) < 0:
            return self._broken("a tool call is malformed: its beginning is not complete")
        more = bound((calls.separator + calls.head).removesuffix(name))
        while True:
            if not (yield from self._call(middles)):
                return None
            if not calls.end or (yield from self._expect([more, bound(calls.end)])) != 0:
                return None

    def _call(self, middles: Sequence[str]) -> Machine:
        """Reads a call after its head, tail included; gives whether it is one."""
        calls = self.protocol.calls
        assert calls is not None
        tails = [self._marks.bound(tail) for tail in (calls.tail, *calls.tails)]
        tail = tails[0]
        note = ""
        if calls.in_object:
            read = yield from self._object()
            tails = [tail := tail.removeprefix("}")]
        elif calls.pairs is not None:
            read = yield from self._paired(tails)
        else:
            read = yield from self._named(middles)
        if read is None:
            self._broken("a tool call is malformed, or has no end")
            return False
        if calls.pairs is None and tail and (yield from self._expect(tails)) < 0:
            note = "the end marker is missing"
            if not (yield from self._is_over()):
                if self._left or tail not in self._enders:
                    self._broken("a tool call has no end")
                    return False
                note = ""  # the token that ends the turn was not given
        name, arguments = read
        if name in self._described:
            arguments, wrong = self._described[name].converted(arguments)
            note = note or wrong
        number = self._calls_read
        self._calls_read += 1
        self._end(lambda _, raw: ToolCall(name, arguments, raw, number, note))
        return True

    def _named(self, middles: Sequence[str]) -> Machine:
        """Reads a name and its JSON, or its keywords."""
        yield from self._spaces()
        name = yield from self._word(lambda character: _NAME.match(character) is None)
        if name is None:
            return None
        if (yield from self._expect([middle.replace("{name}", name) for middle in middles])) < 0:
            return None
        self._begin("tool_call", name)
        calls = self.protocol.calls
        if calls is not None and calls.quote:
            return (yield from self._unquoted(name))
        if calls is not None and calls.keywords:
            written = yield from self._python()
            keywords = None if written is None else read_keywords(self._marks.shown(written))
            return None if keywords is None else (name, keywords)
        text = yield from self._json(lambda piece, depth: self._emit(piece))
        arguments = self._loaded(text)
        return (name, arguments) if isinstance(arguments, dict) else None

    def _unquoted(self, name: str) -> Machine:
        """Reads arguments whose keys have no quotes, up to the brace that ends them, and gives the name and them."""
        calls = self.protocol.calls
        assert calls is not None
        quote = self._marks.bound(calls.quote)
        inside = Search([quote, *self._inner_enders])
        outside = Search([*inside.texts, *"{}[]"])
        depth, in_text, start = 0, False, len(self._pieces)
        while True:
            found = yield from self._until(inside if in_text else outside)
            if found is None or found in self._inner_enders:
                return None
            if found == quote:
                in_text = not in_text
            elif found in "{[" and depth < MAX_DEPTH:
                depth += 1
            elif found == "}" and not depth:
                break
            elif found in "]}" and depth:
                depth -= 1
            else:
                return None
            self._emit(self._take(len(found)))
        read = read_unquoted("".join(self._pieces[start:]), quote, self._marks.shown)
        return None if read is None else (name, read)

    def _python(self) -> Machine:
        """Reads arguments of Python up to the parenthesis that ends them, and gives their text; None if they have no
        end."""
        depth, quote = 0, ""
        pieces: list[str] = []
        ends = {one: re.compile(f"[{one}\\\\{self._inner_enders}]") for one in "'\""}
        outside = re.compile(f"['\"()\\[\\]{{}}{self._inner_enders}]")
        while True:
            if not self._left:
                if self._final:
                    return None
                yield
                continue
            found = (ends[quote] if quote else outside).search(self._buffer, self._at)
            n = self._left if found is None else found.start() - self._at
            if n:
                pieces.append(self._take(n))
                self._emit(pieces[-1])
                continue
            character = self._buffer[self._at]
            if character == "\\":
                while self._left < 2 and not self._final:
                    yield
                n = 2
            elif character in "'\"":
                quote = "" if quote else character
                n = 1
            elif character in "([{" and depth < MAX_DEPTH:
                depth += 1
                n = 1
            elif character in ")]}" and (depth or character == ")"):
                if not depth:
                    return "".join(pieces)
                depth -= 1
                n = 1
            else:
                return None
            pieces.append(self._take(n))
            self._emit(pieces[-1])

    def _object(self) -> Machine:
        """Reads an object of name and arguments, which come in either order."""
        head: list[str] = []
        done = False
        calls = self.protocol.calls
        assert calls is not None

        def on_piece(piece: str, depth: int) -> None:
            """Gives the arguments as they come where the name came before them."""
            nonlocal done
            if self._open is not None:
                if not done:
                    self._emit(piece)
                done = done or depth < 2
                return
            head.append(piece)
            if depth != 2 or done:
                return
            done = True  # what is the first value of the object decides
            text = "".join(head)
            found = _HEADED.match(text, 0, _MAX_HEAD)
            whole = found is not None and found.end() == len(text) - 1 and found[2] in calls.keys
            name = self._loaded(found[1]) if found is not None and whole else None
            if name:
                done = False
                self._begin("tool_call", name)
                self._emit(text[-1])

        made = self._loaded((yield from self._json(on_piece)))
        if not isinstance(made, dict) or not isinstance(made.get("name"), str) or not made["name"]:
            return None
        given = [made[key] for key in calls.keys if key in made]
        if not given and self._bare_form is not None:
            return None
        arguments = given[0] if given else {}
        if isinstance(arguments, str):
            arguments = self._loaded(arguments)
        if not isinstance(arguments, dict):
            return None
        if self._open is None:
            self._begin("tool_call", made["name"])
            self._emit(json.dumps(arguments, ensure_ascii=False))
        return made["name"], arguments

    def _loaded(self, text: str | None) -> Any:
        """What JSON means; None if it is malformed."""
        return None if text is None else self._value(text)[0]

    def _value(self, text: str) -> tuple[Any, bool]:
        """What JSON means, and whether it is JSON. Control characters in texts are let pass, as models write them."""
        try:
            return DECODER.decode(self._marks.shown(text)), True
        except (ValueError, RecursionError):
            return None, False

    def _json(self, on_piece: Callable[[str, int], None]) -> Machine:
        """Reads a JSON object and gives its text; None if it is malformed or has no end.

        `on_piece` gets what is read with the depth after it: one bracket at most, the last character of its piece.
        """
        stack: list[str] = []
        pieces: list[str] = []
        in_text = False
        inside = re.compile(f'["\\\\{self._inner_enders}]')

        def read(n: int) -> None:
            if n:
                pieces.append(self._take(n))
                on_piece(pieces[-1], len(stack))

        while True:
            if not self._left:
                if self._final:
                    return None
                yield
                continue
            if in_text:
                found = inside.search(self._buffer, self._at)
                if found is None:
                    read(self._left)
                elif found[0] == '"':
                    in_text = False
                    read(found.end() - self._at)
                else:
                    read(found.start() - self._at)
                    if found[0] != "\\":
                        return None
                    while self._left < 2 and not self._final:
                        yield
                    read(2)
                continue
            found = (_PLAIN if stack else _SPACE).match(self._buffer, self._at)
            assert found is not None
            if found.end() > self._at:
                read(found.end() - self._at)
                continue
            character = self._buffer[self._at]
            if character == '"' and stack:
                in_text = True
            elif character in "{[" and (stack or character == "{") and len(stack) < MAX_DEPTH:
                stack.append("}" if character == "{" else "]")
            elif stack and character == stack[-1]:
                stack.pop()
            else:
                return None
            read(1)
            if not stack:
                return "".join(pieces)

    def _paired(self, tails: Sequence[str]) -> Machine:
        """Reads a name and its pairs of key and value, tail included."""
        calls = self.protocol.calls
        assert calls is not None
        assert calls.pairs is not None
        name = yield from self._word(lambda character: _NAME.match(character) is None)
        if name is None or (yield from self._expect([self._marks.bound(calls.middle).replace("{name}", name)])) < 0:
            return None
        self._begin("tool_call", name)
        return (yield from (self._nested if calls.pairs.nested else self._keyed)(name, calls.pairs, tails))

    def _keyed(self, name: str, pairs: Pairs, tails: Sequence[str]) -> Machine:
        """Reads pairs, tail included, and gives the name and them."""
        bound = self._marks.bound
        arguments: dict[str, Any] = {}
        ways = pairs.ways
        middles = [bound(middle) for _, middle in ways]
        between = middles[-1]
        stop = re.compile(f"[{re.escape(between.strip()[0])}{TOKEN_CHARACTERS}]")
        end = bound(pairs.end)
        search = Search([end.strip(), *self._inner_enders])
        # The token that ends the turn need not be given.
        unended = [one.removesuffix(ender) for one in tails for ender in self._enders if one.endswith(ender)]
        while True:
            before = len(self._raw)
            which = yield from self._expect([bound(pairs.begin), *tails, *unended])
            if which < 0:
                return None
            if which > 0:
                return name, arguments
            key = yield from self._word(lambda character: stop.match(character) is not None)
            form = -1 if key is None else (yield from self._expect(middles))
            if key is None or form < 0:
                return None
            key = key.strip()  # white space of the marker before it
            if between.endswith("\n"):
                yield from self._skip("\n")
            self._emit("".join(self._raw[before:]))
            reader = self._reader(name, key)
            if len(ways) > 1:
                reader, text = None, ways[form][0] == TYPES[:1]
            else:
                text = reader is not None and reader.is_text
            value: list[str] = []
            quote, first = "", ""
            before = len(self._raw)
            is_quoted = bool(pairs.quotes[0]) and (yield from self._expect([bound(pairs.quotes[0]), ""])) == 0
            self._emit("".join(self._raw[before:]))
            ended = search if not is_quoted else Search([bound(pairs.quotes[1]) + end.strip(), *self._inner_enders])
            is_json = not text if reader is None else not reader.may_be_text
            while True:
                start = len(self._pieces)
                found = yield from self._until(ended)
                if found is None or found in self._inner_enders:
                    return None
                read = "".join(self._pieces[start:])
                value.append(read)
                first = first or read.lstrip()[:1]
                quote = _quote_after(read, quote, "\"'" if pairs.python == "literals" else '"')
                self._emit(self._take(len(found)))
                # Inside of a text of JSON it is no end.
                if is_quoted or text or not quote or not (is_json or first in ("[", "{")):
                    break
                value.append(end.strip())
            written = "".join(value)
            if end.startswith("\n"):
                written = written.removesuffix("\n")
            if is_quoted:
                arguments[key] = self._marks.shown(written)
                continue
            made, is_json = (None, False) if text else self._value(written)
            shown = self._marks.shown(written)
            if reader is not None:
                arguments[key] = reader(shown, made, is_json)
            else:
                arguments[key] = made if is_json else shown

    def _nested(self, name: str, pairs: Pairs, tails: Sequence[str]) -> Machine:
        """Reads arguments as elements, tail included, and gives the name and them."""
        tag = self._marks.bound(pairs.tag)
        search = Search([tag, *self._inner_enders])
        ends = [end.strip().removeprefix(tag) for end in tails]
        open_elements = [Element(name)]
        while True:
            start = len(self._pieces)
            if (yield from self._until(search)) != tag:
                return None
            innermost = open_elements[-1]
            innermost.texts.append("".join(self._pieces[start:]))
            before = len(self._raw)
            self._take(len(tag))
            found = yield from self._word(lambda character: character == ">")
            if found is None or (yield from self._expect([">"])) < 0 or found[0] != "<":
                return None
            key = found.removeprefix("</")
            if len(open_elements) == 1 and found + ">" in ends:
                yield from self._skip("\n")
                root = self._tools.get(name, {})
                return name, {one.key: self._element(one, root) for one in innermost.elements}
            self._emit("".join(self._raw[before:]))
            if key == found:
                if len(open_elements) == MAX_DEPTH:
                    return None
                innermost.elements.append(Element(found[1:]))
                open_elements.append(innermost.elements[-1])
            elif len(open_elements) > 1 and key == innermost.key:
                open_elements.pop()
            else:
                return None

    def _element(self, element: Element, root: Any) -> Any:
        """What an argument means that is written as an element."""
        root = root if isinstance(root, dict) else {}
        declared = root.get("properties", {})
        schema = declared.get(element.key) if isinstance(declared, dict) else None
        reader_of = partial(self._reader_of, root)
        return element.value(schema, root, reader_of, lambda text: (self._marks.shown(text), *self._value(text)))

    def _reader(self, name: str, key: str) -> Reader | None:
        """What reads the value of a tool's argument; None for one that no schema describes."""
        root = self._tools.get(name, {})
        declared = root.get("properties", {})
        return self._reader_of(root, declared[key]) if isinstance(declared, dict) and key in declared else None

    def _reader_of(self, root: Any, schema: Any) -> Reader:
        """What reads the values of a part of a tool's schema."""
        place = id(root), id(schema)
        if place not in self._readers:
            self._readers[place] = Reader(schema, root)
        return self._readers[place]


def _quote_after(text: str, quote: str, quotes: str) -> str:
    """The quote that is open after a text, from the one that was open before it."""
    for found in _QUOTES.findall(text):
        if found in quotes and quote in ("", found):
            quote = "" if quote else found
    return quote
