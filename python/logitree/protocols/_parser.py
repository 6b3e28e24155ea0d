"""Turns the stream of a response into typed parts, as it comes.

The slow version that it must equal: keep everything, and parse it again from its beginning with each piece. Each
character is read once; a character is held back only while it may still be the beginning of a marker.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex

from .._core import StateError, Vocabulary
from .._errors import error
from ._arguments import Element, Reader, read_unquoted
from ._forms import MAX_BEGINNING, bare, forms
from ._marks import ANY_TOKEN, TOKEN_CHARACTERS, Marks
from ._numbers import DECODER
from ._parts import Content, Kind, Part, PartEnd, PartEvent, PartStart, PartText, Reasoning, Response, ToolCall
from ._protocol import TYPES, Protocol
from ._python import read_keywords
from ._tools import Tool

if TYPE_CHECKING:
    from .._generation import Generation

Machine = Generator[None, None, Any]
"""A part of the parser, which yields where it needs more input."""

MAX_DEPTH = 256
"""Nesting of arguments."""
MAX_NAME = 256
"""Characters of a tool's name, or of a key."""
MAX_SPACE = 64
"""White space in and before a marker."""
MAX_FORM = 1_024
"""Characters of markers that are read as one, blanks and white space included."""

_NAME = re.compile(r"[\w.\-/]")
_FIRST = re.compile(rf"[\w.\-/]{{1,{MAX_NAME}}}")
"""A name before a marker."""
_PLAIN = re.compile(r"[\s0-9A-Za-z+\-.,:]*")
"""JSON outside of texts, up to a bracket or a quote."""
_QUOTES = re.compile(r"""\\.|["']""", re.DOTALL)
"""Quotes, and what is escaped."""
_SPACE = re.compile(r"\s*")
_HEADED = re.compile(r'\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"(\w+)"\s*:\s*')
_MAX_HEAD = 1_024


class Parser:
    """Reads one response piece by piece.

    ```python
    parser = protocol.parser(vocabulary)
    for token in tokens:
        for event in parser.feed(token):
            print(event)
    parser.finish()
    print(parser.response.tool_calls)
    ```

    What breaks off, or is no call although it begins like one, becomes content with a note: nothing is lost, and
    nothing is given twice.
    """

    def __init__(
        self,
        protocol: Protocol,
        vocabulary: Vocabulary | None = None,
        *,
        prompt: Sequence[int] = (),
        begun: bool | None = None,
        tools: Sequence[Tool] = (),
        answer_only: bool = False,
        without: Collection[Kind] = (),
    ) -> None:
        self._marks = marks = Marks(protocol, vocabulary)
        self.protocol = protocol = marks.protocol
        self._tools = {tool.name: tool.parsed for tool in tools}
        self._readers: dict[tuple[str, str], Reader] = {}
        self._described = {tool.name: tool for tool in tools}
        self._answer_only = answer_only and not protocol.content
        """Whether content, once it has begun, is all that follows."""
        self._without = frozenset(without)
        """Parts that do not come: what looks like their markers is content."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._buffer, self._at, self._final = "", 0, False
        self._events: list[PartEvent] = []
        self._parts: list[Part] = []
        self._raw: list[str] = []
        """What was read since the last part."""
        self._pieces: list[str] = []
        """The text of the part that is open."""
        self._open: Kind | None = None
        self._blank: list[str] = []
        self._calls_read = 0
        bound = [marks.bound(text) for text in protocol.turn_end]
        self._enders = (*marks.ends, *(end for end in bound if vocabulary is None or ANY_TOKEN.fullmatch(end)))
        """What ends the turn. With a vocabulary only tokens do."""
        self._inner_enders = "".join(end for end in self._enders if marks.is_hard(end))
        """Of these, what ends it inside of arguments too: tokens that are no text."""
        self._named_first = protocol.calls is not None and any(not head for head, _ in protocol.calls.also)
        """Whether a name may come before a message's first marker."""
        self._bare_form = None if protocol.calls is None else bare(protocol.calls)
        self._actions = self._triggers()
        reasoning = protocol.reasoning
        only_first = (*reasoning.begins, reasoning.skipped) if reasoning and not protocol.content else ()
        later = set(self._actions) - {marks.bound(begin) for begin in only_first}
        self._first, self._later = _Search(self._actions), _Search(later)
        self._machine = self._run(marks.begun(prompt) is not None if begun is None else begun)
        self._advance()

    # -- what callers use

    def feed(self, piece: SupportsIndex | str | bytes | Iterable[SupportsIndex]) -> list[PartEvent]:
        """Takes a token id, several, text or bytes; gives the events that are certain now.

        Raises:
            StateError: the parser is finished, or has no vocabulary for a token id.
        """
        if self._final:
            raise error(StateError, "the response is finished", help="make a new parser for the next one")
        text = []
        if isinstance(piece, str):
            text.append(self._decoder.decode(piece.encode("utf-8", "replace")))
        elif isinstance(piece, bytes | bytearray):
            text.append(self._decoder.decode(piece))
        else:
            for id in [piece] if isinstance(piece, SupportsIndex) else piece:
                if self._marks.vocabulary is None:
                    help = "give the vocabulary to Protocol.parser"
                    raise error(StateError, "token ids without a vocabulary", help=help)
                read = self._marks.of(index(id))
                if isinstance(read, bytes):
                    text.append(self._decoder.decode(read))
                else:
                    text += [self._decoder.decode(b"", final=True), read]
                    self._decoder.reset()
        return self._put("".join(text))

    def finish(self) -> list[PartEvent]:
        """No more comes: gives the last events. Finishing again gives no events."""
        if self._final:
            return []
        events = self._put(self._decoder.decode(b"", final=True))
        self._final = True
        self._advance()
        events += self._events
        self._events = []
        return events

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts that are complete."""
        return tuple(self._parts)

    @property
    def response(self) -> Response:
        """The complete parts, and what came after them."""
        return Response(self.parts, self._marks.raw("".join(self._raw)))

    # -- input and output

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

    # -- the response as a whole

    def _triggers(self) -> dict[str, Callable[[], Machine]]:
        """What begins something between parts, and how it is read."""
        protocol, bound = self.protocol, self._marks.bound
        actions: dict[str, Callable[[], Machine]] = {}
        if protocol.reasoning is not None and "reasoning" not in self._without:
            for begin in protocol.reasoning.begins:
                actions[bound(begin)] = self._inside
        if protocol.reasoning is not None and protocol.reasoning.skipped:
            actions.setdefault(bound(protocol.reasoning.skipped), self._nothing)
        for block in reversed(protocol.content):  # of two with the same begin the answer's
            actions[bound(block.begin)] = lambda block=block: self._framed(block)  # type: ignore[misc]
        if protocol.calls is not None and "tool_call" not in self._without:
            calls = protocol.calls
            rest = bound((calls.begin + calls.head).removeprefix(calls.trigger))
            middles: dict[str, list[str]] = {}
            for head, middle in ((calls.head, calls.middle), *calls.also):
                middles.setdefault(head, []).append(bound(middle))
            for trigger in {calls.trigger, calls.before + calls.trigger}:
                actions[bound(trigger)] = lambda: self._calls(rest, middles[calls.head])
            for head in middles:
                if head != calls.head:
                    actions[bound(head)] = lambda head=head: self._calls("", middles[head])  # type: ignore[misc]
            if self._bare_form is not None:
                actions[self._bare_form.first] = actions.pop(bound(calls.trigger))
            if calls.prefix:
                actions[bound(calls.prefix)] = self._nothing
        frame = (protocol.frame.begin, protocol.frame.end) if protocol.frame else ()
        for text in (*map(bound, (protocol.joint, *frame)), *self._enders):
            actions.setdefault(text, self._nothing)
        actions.pop("", None)
        return actions

    def _run(self, begun: bool) -> Machine:
        ended = False
        if begun:
            yield from self._inside()
        while not ended:
            trigger = yield from self._between()
            if trigger is None:
                break
            if self._open is not None:
                self._end(Content if not self.protocol.content else _outside)
            self._blank = []
            ended = trigger in self._enders
            if trigger != "{":
                self._take(len(trigger))
            yield from self._actions[trigger]()
        if self._open is not None:
            self._end(Content if not self.protocol.content else _outside)
        while True:
            self._take(self._left)
            if self._final:
                return
            yield

    def _between(self) -> Machine:
        """Reads content without a frame, and gives the trigger that follows; None at the end."""
        if self._answer_only and not self._calls_read:
            return (yield from self._answer())
        search = self._later if self._parts else self._first
        while True:
            found = search.find(self._buffer, self._at)
            if found is not None:
                self._bare(self._take(found.start() - self._at))
                if not self._final and search.may_be_longer(self._buffer, self._at):
                    yield
                    continue
                if self._actions[found[0]] == self._nothing:
                    self._no_name()
                is_other = self._open is not None and found[0] not in self._later.texts
                if is_other or not (yield from self._is_begun(found[0])):
                    self._bare(self._take(len(found[0])))
                    continue
                return found[0]
            self._bare(self._take(self._left - (0 if self._final else search.held(self._buffer, self._at))))
            if self._final:
                self._no_name()
                return None
            yield

    def _answer(self) -> Machine:
        """Reads an answer, which is all that follows once it has begun."""
        search = self._later if self._parts else self._first
        while True:
            text = self._buffer[self._at : self._at + search.longest]
            for trigger in search.texts:
                if text.startswith(trigger) and (yield from self._is_begun(trigger)):
                    return trigger
            if self._final or (text and not any(trigger.startswith(text) for trigger in search.texts)):
                break
            yield
        if self._left:
            self._begin("content")
            yield from self._until(_Search(self._inner_enders))
        return next((ender for ender in self._inner_enders if self._buffer.startswith(ender, self._at)), None)

    def _is_begun(self, trigger: str) -> Machine:
        """Whether a trigger begins anything: a call without a marker must show that it is one."""
        form = self._bare_form
        if form is None or trigger != form.first:
            return True
        while (begun := form.is_begun(self._buffer[self._at : self._at + MAX_BEGINNING])) is None and not self._final:
            yield
        return begun is True

    def _bare(self, text: str) -> None:
        """Content without a frame; white space before it is held until it is known to be content."""
        if not text:
            return
        if self._open is None:
            self._blank.append(text)
            calls = self.protocol.calls
            between = calls.separator if calls is not None and self._calls_read and not calls.end else ""
            if not text.strip(" \t\r\n" + between):
                return
            if self._named_first and len(self._blank) <= MAX_NAME and _FIRST.fullmatch("".join(self._blank)):
                return
            text, self._blank = "".join(self._blank), []
            self._begin("content")
        self._emit(text)

    def _no_name(self) -> None:
        """What could have been a name before a marker is content."""
        if self._named_first and self._open is None and (text := "".join(self._blank)).strip():
            self._blank = []
            self._begin("content")
            self._emit(text)

    def _nothing(self) -> Machine:
        """A marker that is no part."""
        yield from ()

    def _until(self, search: _Search) -> Machine:
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

    def _inside(self) -> Machine:
        """Reads a block of reasoning from its first character."""
        block = self.protocol.reasoning
        assert block is not None
        self._begin("reasoning")
        ends = [self._marks.bound(end) for end in block.ends]
        found = yield from self._until(_Search([*ends, *self._enders]))
        if found not in ends:
            self._end(lambda text, raw: Reasoning(text, raw, "the reasoning has no end"))
            return
        self._take(len(found))
        self._end(Reasoning)
        yield from self._skip(self._marks.bound(block.after))

    def _framed(self, block: Any) -> Machine:
        """Reads content in a frame."""
        self._begin("content")
        ends = [self._marks.bound(one.end) for one in self.protocol.content]
        found = yield from self._until(_Search([*ends, *self._enders]))
        if found in self._enders:
            self._end(Content)
        elif found is None:
            note = "" if self._marks.bound(block.end) in self._enders else "the message has no end"
            self._end(lambda text, raw: Content(text, raw, note))
        else:
            self._take(len(found))
            self._end(Content)

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

    # -- tool calls

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
            read_pairs = self._nested if calls.pairs.nested else self._keyed
            read = yield from read_pairs(calls.middle, tails)
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
        inside = _Search([quote, *self._inner_enders])
        outside = _Search([*inside.texts, *"{}[]"])
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

    def _keyed(self, middle: str, tails: Sequence[str]) -> Machine:
        """Reads a name and its pairs of key and value, tail included."""
        bound, calls = self._marks.bound, self.protocol.calls
        assert calls is not None
        assert calls.pairs is not None
        pairs = calls.pairs
        name = yield from self._word(lambda character: _NAME.match(character) is None)
        if name is None or (yield from self._expect([bound(middle).replace("{name}", name)])) < 0:
            return None
        self._begin("tool_call", name)
        arguments: dict[str, Any] = {}
        ways = pairs.ways
        middles = [bound(middle) for _, middle in ways]
        between = middles[-1]
        stop = re.compile(f"[{re.escape(between.strip()[0])}{TOKEN_CHARACTERS}]")
        end = bound(pairs.end)
        search = _Search([end.strip(), *self._inner_enders])
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
            ended = search if not is_quoted else _Search([bound(pairs.quotes[1]) + end.strip(), *self._inner_enders])
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

    def _nested(self, middle: str, tails: Sequence[str]) -> Machine:
        """Reads a name and its arguments as elements, tail included."""
        bound, calls = self._marks.bound, self.protocol.calls
        assert calls is not None
        assert calls.pairs is not None
        name = yield from self._word(lambda character: _NAME.match(character) is None)
        if name is None or (yield from self._expect([bound(middle).replace("{name}", name)])) < 0:
            return None
        self._begin("tool_call", name)
        tag = bound(calls.pairs.tag)
        search = _Search([tag, *self._inner_enders])
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
        return element.value(schema, root, lambda text: (self._marks.shown(text), *self._value(text)))

    def _reader(self, name: str, key: str) -> Reader | None:
        """What reads the value of a tool's argument; None for one that no schema describes."""
        known = self._readers.get((name, key))
        root = self._tools.get(name, {})
        declared = root.get("properties", {})
        if known is None and isinstance(declared, dict) and key in declared:
            known = self._readers[name, key] = Reader(declared[key], root)
        return known


def _quote_after(text: str, quote: str, quotes: str) -> str:
    """The quote that is open after a text, from the one that was open before it."""
    for found in _QUOTES.findall(text):
        if found in quotes and quote in ("", found):
            quote = "" if quote else found
    return quote


class _Search:
    """The first of several texts in a buffer, and how much of a buffer's end may still become one."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = tuple(sorted({text for text in texts if text}, key=len, reverse=True))
        self.longest = max(map(len, self.texts), default=0)
        self._pattern = re.compile("|".join(map(re.escape, self.texts))) if self.texts else None

    def find(self, text: str, at: int) -> re.Match[str] | None:
        """The first occurrence from `at` on, of several at one place the longest."""
        return None if self._pattern is None else self._pattern.search(text, at)

    def may_be_longer(self, text: str, at: int) -> bool:
        """Whether what begins at `at` may still become a longer one of the texts."""
        rest = text[at : at + self.longest]
        return len(rest) < self.longest and any(len(one) > len(rest) and one.startswith(rest) for one in self.texts)

    def held(self, text: str, at: int) -> int:
        """The length of the longest end of `text`, from `at` on, with which one of the texts begins."""
        for n in range(min(self.longest - 1, len(text) - at), 0, -1):
            if any(one.startswith(text[-n:]) for one in self.texts if len(one) > n):
                return n
        return 0


def _outside(text: str, raw: str) -> Content:
    return Content(text, raw, "text outside of a message")


def parse_generation(protocol: Protocol, generation: Generation[Any]) -> Response:
    """A generation's response in parts; `Protocol.parts` has the details."""
    finish, context = generation._finished(), generation._row.context
    from ._constraint import ResponseConstraint

    constraint = generation._row.constraint
    if isinstance(constraint, ResponseConstraint) and constraint.protocol == protocol:
        return constraint.read(finish.tokens, context)
    return protocol.parse(finish.tokens, context.vocabulary, prompt=context.prompt)
