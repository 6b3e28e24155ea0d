"""Turns the stream of a response into typed parts, as it comes.

The slow version that it must equal: keep everything, and parse it again from its beginning with each piece. Each
character is read once; a character is held back only while it may still be the beginning of a marker.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex

from .._core import StateError, Vocabulary
from .._errors import error
from ._call_reading import CallReading
from ._forms import MAX_BEGINNING, bare
from ._marks import Marks
from ._parts import Content, Kind, Part, PartEvent, Reasoning, Response
from ._protocol import Block, Protocol
from ._reading import MAX_NAME, Machine, Search
from ._tools import Tool

if TYPE_CHECKING:
    from .._generation import Generation

_FIRST = re.compile(rf"[\w.\-/]{{1,{MAX_NAME}}}")
"""A name before a marker."""


class Parser(CallReading):
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
        marks = Marks(protocol, vocabulary)
        protocol = marks.protocol
        calls = protocol.calls
        super().__init__(
            marks, has_tokens=vocabulary is not None, tools=tools, bare=None if calls is None else bare(calls)
        )
        self.protocol = protocol
        """The form that it reads."""
        self._answer_only = answer_only and not protocol.content
        """Whether content, once it has begun, is all that follows."""
        self._without = frozenset(without)
        """Parts that do not come: what looks like their markers is content."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._named_first = calls is not None and any(not head for head, _ in calls.also)
        """Whether a name may come before a message's first marker."""
        self._actions = self._triggers()
        reasoning = protocol.reasoning
        only_first = (*reasoning.begins, reasoning.skipped) if reasoning and not protocol.content else ()
        later = set(self._actions) - {marks.bound(begin) for begin in only_first}
        self._first, self._later = Search(self._actions), Search(later)
        self._machine = self._run(marks.begun(prompt) if begun is None else reasoning if begun else None)
        self._advance()

    # -- what callers use

    def feed(self, piece: SupportsIndex | str | bytes | Iterable[SupportsIndex]) -> list[PartEvent]:
        """Takes a token id, several, text or bytes; gives the events that are certain now.

        Raises:
            StateError: the parser is finished, or has no vocabulary for a token id.
        """
        if self._final:
            raise error(StateError, "the response is finished", help="make a new parser for the next one")
        if isinstance(piece, str) and piece.isascii() and not self._decoder.getstate()[0]:
            return self._put(piece)
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

    def _run(self, begun: Block | None) -> Machine:
        ended = False
        if begun is not None:
            yield from self._framed(begun) if begun in self.protocol.content else self._inside()
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
            yield from self._until(Search(self._inner_enders))
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

    def _inside(self) -> Machine:
        """Reads a block of reasoning from its first character."""
        block = self.protocol.reasoning
        assert block is not None
        self._begin("reasoning")
        ends = [self._marks.bound(end) for end in block.ends]
        found = yield from self._until(Search([*ends, *self._enders]))
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
        found = yield from self._until(Search([*ends, *self._enders]))
        if found in self._enders:
            self._end(Content)
        elif found is None:
            note = "" if self._marks.bound(block.end) in self._enders else "the message has no end"
            self._end(lambda text, raw: Content(text, raw, note))
        else:
            self._take(len(found))
            self._end(Content)


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
