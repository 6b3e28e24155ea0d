"""What a chat template writes: turns of an assistant with chosen parts, rendered, and read back by protocols."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from .._core import Matcher, Vocabulary
from ._protocol import Protocol
from ._template import ChatTemplate, TemplateFailed, compiled
from ._tools import Tool, tools_of

Call = tuple[str, dict[str, Any]]

REASONING, CONTENT, USER = "Zerzura weighs quietly.", "Zephyrs answer plainly.", "Zinnias ask."
"""Texts that no template has."""
CITY, DAYS = "Zagreb old town", 7041
"""Arguments that no template has. The third is a boolean."""
ID = "q7Zk2Wv9X"
"""The id of a call: nine letters and digits, as Mistral's templates demand."""


def _tool(name: str, required: Sequence[str] = (), **properties: Mapping[str, Any]) -> dict[str, Any]:
    described = {key: {**schema, "description": f"The {key}."} for key, schema in properties.items()}
    parameters = {"type": "object", "properties": described, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": f"A {name}.", "parameters": parameters}}


def _tools(note: Mapping[str, Any], place: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        _tool(
            "zoom_weather", ["zcity"], zcity={"type": "string"}, zdays={"type": "integer"}, zfast={"type": "boolean"}
        ),
        _tool("zip_stop"),
        _tool(
            "plan_trip",
            ["city"],
            city={"type": "string"},
            days={"type": "integer"},
            rate={"type": "number"},
            fast={"type": "boolean"},
            note=note,
            tags={"type": "array", "items": {"type": "string"}},
            place=place,
        ),
    ]


SHOWN_TOOLS = _tools({"type": "string"}, {"type": "string"})
"""Tools as templates get them: some take no unions and no objects."""
_PLACE = {"type": "object", "properties": {"lat": {"type": "number"}, "name": {"type": "string"}}}
WEATHER, STOP, TRIP = "zoom_weather", "zip_stop", "plan_trip"
ARGUMENTS: dict[str, dict[str, Any]] = {WEATHER: {"zcity": CITY, "zdays": DAYS, "zfast": True}, STOP: {}}

_VARIABLES: dict[str, Any] = {
    "preserve_thinking": True,
    "preserved_thinking": True,
    "keep_past_thinking": True,
    "clear_thinking": False,
    "drop_thinking": False,
    "truncate_history_thinking": False,
    "functions": "[]",
    "datetime": "2025-01-01",
    "add_vision_id": False,
}
"""What templates ask for beside the conversation: reasoning is kept, and what has no default of its own."""

_ATOM = re.compile(r"<[^<>\n]{1,64}>|\[/?[A-Z][A-Z_]*\]|｜[^｜\s]{1,64}｜|\w+|\s|.", re.DOTALL)
_MARKER = re.compile(r"<[^<>\s][^<>\n]{0,63}>|\[/?[A-Z][A-Z_]*\]|｜[^｜\s]{1,64}｜")
"""What looks like the text of a token of its own."""


@dataclass(frozen=True)
class Turn:
    """A turn as it was rendered, with what it says: only what the template wrote."""

    text: str
    """What the model writes, from the end of the prompt to the end of the turn."""
    prompt: str
    """What comes before it."""
    reasoning: str | None
    content: str
    calls: tuple[Call, ...]

    def begun(self, protocol: Protocol) -> bool:
        """Whether the prompt has begun a block of reasoning, in the form of a protocol."""
        block = protocol.reasoning
        if block is None:
            return False
        if self.prompt.rstrip().endswith(tuple(way.begin.strip() for way in block.ways)):
            return True
        ends = (self.text.find(end.strip()) for end in block.ends)
        end = min((at for at in ends if at >= 0), default=-1)
        markers = [one.begin.strip() for one in (*block.ways, *protocol.content)]
        if protocol.content and protocol.calls is not None:  # the end of reasoning may end a message of calls, too
            markers.append(protocol.calls.trigger)
        begins = (self.text.find(marker) for marker in markers)
        return 0 <= end < min((at for at in begins if at >= 0), default=len(self.text))

    def mismatch(self, protocol: Protocol, tools: Sequence[Tool]) -> str:
        """What a protocol's parser reads otherwise than it was written; empty if all is the same but for white space
        round texts."""
        from ._parser import Parser

        parser = Parser(protocol, begun=self.begun(protocol), tools=tools)
        parser.feed(self.text)
        parser.finish()
        read = parser.response
        calls = tuple((call.name, dict(call.arguments)) for call in read.tool_calls)
        if not _same(calls, self.calls):
            return _difference(calls, self.calls)
        said = (read.reasoning or "").strip(), read.content.strip()
        if protocol.content and self.calls and said == (self.content.strip(), ""):
            return ""  # templates with frames write text before calls as reasoning
        if read.content.strip() != self.content.strip():
            return f"the content was read as {_short(read.content)}, written was {_short(self.content)}"
        if (read.reasoning or "").strip() != (self.reasoning or "").strip():
            return f"the reasoning was read as {_short(read.reasoning)}, written was {_short(self.reasoning)}"
        return f"the parser notes: {read.notes[0]}" if read.notes else ""

    def refusal(self, protocol: Protocol, tools: tuple[Tool, ...]) -> str:
        """Where a protocol's constraint does not allow the turn; empty if it does."""
        text = self.text
        ends = [at for at in (text.find(end) for end in protocol.turn_end) if at >= 0]
        data = text[: min(ends, default=len(text))].encode()
        matcher = bound_matcher(protocol, tools, self.begun(protocol)).fork()
        taken = matcher.validate(data)
        if taken < len(data):
            before, after = (part.decode("utf-8", "replace") for part in (data[:taken], data[taken:]))
            return f"the constraint refuses {_short(after[:40])} after {_short(before[-40:])}"
        matcher.accept_many(data)
        ends_so = any(matcher.validate(end.encode()) == len(end.encode()) for end in protocol.turn_end)
        return "" if matcher.is_accepting or ends_so else f"the constraint does not end after {_short(text[-40:])}"


@dataclass(frozen=True)
class Shape:
    """Which parts a turn has."""

    reasoning: bool = False
    content: bool = False
    calls: tuple[str, ...] = ()
    """Names of tools, which are called with `ARGUMENTS`."""


SHAPES = (
    Shape(content=True),
    Shape(reasoning=True, content=True),
    Shape(calls=(WEATHER,)),
    Shape(content=True, calls=(WEATHER,)),
    Shape(reasoning=True, calls=(WEATHER,)),
    Shape(calls=(WEATHER, STOP, WEATHER)),
)
"""What is rendered to learn a template's form."""


@dataclass
class Writer:
    """Writes turns with a template, in the dialect of conversations that the template takes."""

    template: ChatTemplate
    eos: str = "</s>"
    bos: str = "<s>"
    arguments_are_text: bool = False
    """Whether the arguments of calls are given as JSON text."""
    ends: tuple[str, ...] = ()
    """With what turns end."""
    refused: list[str] = field(default_factory=list)
    """What the template said to turns that it does not take."""
    has_end_inside: bool = False
    """Whether what ends turns is before calls too."""
    prompts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.prompts:
            self._learn()

    @property
    def writes_calls(self) -> bool:
        """Whether calls are in what the template writes."""
        return self._writes_calls

    def raw(
        self,
        reasoning: str | None,
        content: str | None,
        calls: Sequence[Call],
        *,
        thinking: bool = True,
    ) -> str:
        """A conversation of a question and a turn.

        Raises:
            TemplateFailed: the template refuses it.
        """
        message: dict[str, Any] = {"role": "assistant", "content": content or ""}
        if reasoning is not None:
            message.update(reasoning_content=reasoning, reasoning=reasoning, thinking=reasoning)
        if calls:
            message["tool_calls"] = [
                {
                    "id": _id(i),
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(a) if self.arguments_are_text else a},
                }
                for i, (name, a) in enumerate(calls)
            ]
        return self._render([message], thinking=thinking)

    def _render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        thinking: bool = True,
        prompt: bool = False,
    ) -> str:
        return self.template.render(
            [{"role": "user", "content": USER}, *messages],
            tools=SHOWN_TOOLS,
            bos_token=self.bos,
            eos_token=self.eos,
            add_generation_prompt=prompt,
            enable_thinking=thinking,
            thinking=thinking,
            **_VARIABLES,
        )

    def _learn(self) -> None:
        """Finds the dialect, the prompts and the end of a turn.

        Raises:
            TemplateFailed: the template takes no conversation at all.
        """
        content = self.raw(None, CONTENT, ())
        self._rendered = {repr((None, CONTENT, [])): content}
        prompts = [self._render([], prompt=True)]
        with suppress(TemplateFailed):
            prompts.append(self._render([], prompt=True, thinking=False))
        self.prompts = tuple(dict.fromkeys(prompts))
        called, self._writes_calls = "", False
        for text in (False, True):
            self.arguments_are_text = text
            try:
                called = self.raw(None, None, [(WEATHER, ARGUMENTS[WEATHER])])
            except TemplateFailed as wrong:
                self.refused.append(str(wrong))
                continue
            if WEATHER in self._after(called)[1] and '\\"zcity' not in called:
                self._writes_calls = True
                break
        self.ends = self._endings(content, called if self._writes_calls else "")
        if self._writes_calls:
            self._rendered[repr((None, None, [(WEATHER, ARGUMENTS[WEATHER])]))] = called
        before = self._after(called)[1].partition(WEATHER)[0] if self._writes_calls else ""
        self.has_end_inside = any(end in before for end in self.ends)

    def _endings(self, content: str, called: str) -> tuple[str, ...]:
        """What ends a turn: what ends turns with and without calls, or else what follows content."""
        content, called, asked = content.rstrip(), called.rstrip(), self._render([])
        tail = content[content.rfind(CONTENT) + len(CONTENT) :]
        follows = asked[asked.rfind(USER) + len(USER) :].rstrip()
        always = asked == self.prompts[0]  # the prompt of a next turn follows every turn
        shared = common(content, called, backwards=True) if called else tail
        if always and not called:
            shared = tail.removesuffix(common(self.prompts[0].rstrip(), content, backwards=True))
        bare = self._after(content)[1].startswith(CONTENT)
        if called and not shared and bare:
            shared, always = tail, True
        found = markers_in(shared)
        first = always or not called or self.eos in found or follows.endswith(shared)
        ends = [found[0 if first else -1] if found else shared.strip()]
        if bare and shared and shared != follows and follows.endswith(shared) and tail.startswith(follows):
            ends += markers_in(follows)[:1]  # instructions that follow every message
        return tuple(dict.fromkeys(filter(None, ends)))

    def _after(self, whole: str) -> tuple[str, str]:
        """A conversation as the prompt of its turn, and the rest."""
        prompt = max(self.prompts, key=lambda prompt: len(common(prompt, whole)))
        shared = common(prompt, whole)
        rest = whole[len(shared) :]
        if len(shared) < len(prompt):  # prompts may have instructions that a conversation has not
            header = _header(prompt[len(shared) :], rest)
            return shared + header, rest[len(header) :]
        return shared, rest

    def turn(
        self,
        reasoning: str | None,
        content: str | None,
        calls: Sequence[Call],
        written: Turn | None = None,
    ) -> Turn:
        """A turn. What of it the template writes is seen in the texts, or else in a turn of the same shape with texts
        that nothing else has.

        Raises:
            TemplateFailed: the template refuses it.
        """
        asked = repr((reasoning, content, calls))
        whole = self._rendered.get(asked)
        if whole is None:
            whole = self.raw(reasoning, content, calls)
        if written is None:
            self._rendered[asked] = whole
        prompt, rest = self._after(whole)
        called = max(0, rest.rfind(calls[-1][0])) if calls and self.has_end_inside else 0
        ends = [at for at in (rest.find(end, called) for end in self.ends) if at >= 0]
        text = rest[: min(ends, default=len(rest))].rstrip()
        if written is None:
            seen: list[Call] = []
            at = 0
            for call in calls:
                at = text.find(call[0], at)
                if at < 0:
                    break
                seen.append(call)
                at += len(call[0])
            return Turn(
                text,
                prompt,
                reasoning if reasoning and reasoning in text else None,
                content if content and content in text else "",
                tuple(seen),
            )
        return Turn(
            text,
            prompt,
            reasoning if written.reasoning is not None else None,
            content or "" if written.content else "",
            tuple(calls[: len(written.calls)]),
        )

    def shape(self, shape: Shape) -> Turn:
        """A turn of a shape, with texts that nothing else has."""
        calls = [(name, ARGUMENTS[name]) for name in shape.calls]
        return self.turn(REASONING if shape.reasoning else None, CONTENT if shape.content else None, calls)

    def turns(self, shapes: Sequence[Shape] = SHAPES) -> Iterator[tuple[Shape, Turn]]:
        """A turn of each shape that the template takes."""
        for shape in shapes:
            if shape.calls and not self._writes_calls:
                continue
            try:
                yield shape, self.shape(shape)
            except TemplateFailed as wrong:
                self.refused.append(str(wrong))


@lru_cache(maxsize=32)
def written_by(source: str, eos: str = "</s>") -> Writer:
    """What a template writes; the last 32 are kept.

    Raises:
        ConstraintError: jinja2 is not installed.
        TemplateFailed: the template is malformed, or takes no conversation.
    """
    return Writer(compiled(source), eos=eos)


def end_of_text(vocabulary: Vocabulary | None) -> str:
    """What templates are given as the end-of-generation text."""
    ends = [] if vocabulary is None else vocabulary.end_tokens
    return bytes(vocabulary[ends[0]]).decode("utf-8", "replace") if vocabulary is not None and ends else "</s>"


@lru_cache(maxsize=1)
def probe_tools() -> tuple[Tool, ...]:
    """The tools of the turns."""
    return tools_of(_tools({"type": ["string", "null"]}, _PLACE))


def markers_in(*texts: str) -> tuple[str, ...]:
    """What looks like tokens of its own in texts, in order, each once."""
    return tuple(dict.fromkeys(found[0] for text in texts for found in _MARKER.finditer(text)))


@lru_cache(maxsize=1)
def _bytes() -> Vocabulary:
    """A vocabulary in which every marker is text."""
    return Vocabulary.from_tokens([bytes([byte]) for byte in range(256)])


@lru_cache(maxsize=64)
def bound_matcher(protocol: Protocol, tools: tuple[Tool, ...], begun: bool) -> Matcher:
    """The constraint of a response with these tools, at its beginning."""
    from ._constraint import ResponseConstraint

    given = {tool.name: tool.parsed for tool in tools} if protocol.calls else {}
    return ResponseConstraint(protocol, tools=given, begun=begun).matcher(_bytes())


def atoms(text: str) -> list[str]:
    """A text as markers, words and single characters."""
    return _ATOM.findall(text)


def common(one: str, other: str, *, backwards: bool = False) -> str:
    """The longest beginning, or end, of both, of whole markers and words."""
    a, b = _ATOM.findall(one), _ATOM.findall(other)
    if backwards:
        a.reverse()
        b.reverse()
    n = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return "".join(reversed(a[:n])) if backwards else "".join(a[:n])


def _header(prompt: str, rest: str) -> str:
    """With what the rest begins, if the prompt ends with it: markers and words."""
    found, at = "", 0
    for atom in _ATOM.findall(rest):
        at += len(atom)
        if prompt.endswith(rest[:at]) and _MARKER.match(rest):
            found = rest[:at]
        if at > len(prompt):
            break
    return found


def _difference(read: Sequence[Call], written: Sequence[Call]) -> str:
    """How calls were read otherwise than they were written: the argument, if it is one."""
    for (name, arguments), (other, wanted) in zip(read, written, strict=False):
        if name == other and arguments.keys() == wanted.keys():
            for key, value in wanted.items():
                if not _same(arguments[key], value):
                    kind = type(value).__name__
                    return f"a {kind} is read as another value: {_short(arguments[key])} for {_short(value)}"
    return f"calls are read otherwise: {_short(read)} for {_short(written)}"


def _same(one: Any, other: Any) -> bool:
    """Equality that tells 1 from 1.0 and True."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and one == other


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:157]}..."


def _id(number: int) -> str:
    return ID[:-1] + str(number)
