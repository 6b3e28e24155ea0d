"""What a response consists of, and the events of a parser: plain frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["reasoning", "content", "tool_call"]


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What the model wrote for itself."""

    text: str
    """The text, without its markers."""
    raw: str
    """The text with its markers, and with what came between the part before and this one."""
    note: str = ""
    """What is wrong with it; empty for a part that is complete."""


@dataclass(frozen=True, slots=True)
class Content:
    """What the model wrote for the reader."""

    text: str
    """The text, without markers."""
    raw: str
    """As of `Reasoning`."""
    note: str = ""
    """Why this is content: a tool call that is malformed or has no end, text outside of a message."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool."""

    name: str
    """The tool's name."""
    arguments: Mapping[str, Any]
    """By name. Of a tool that is a function or a type, the values that its types say: members of enums, dates, models.
    Otherwise, and without the tools, what JSON has."""
    raw: str
    """As of `Reasoning`."""
    index: int
    """Its place among the calls of the response, from 0."""
    note: str = ""
    """What is wrong with its markers, or which argument the tool's types refuse; the arguments are complete."""


Part = Reasoning | Content | ToolCall
"""A part of a response."""


@dataclass(frozen=True, slots=True)
class PartStart:
    """A part has begun."""

    index: int
    """Its place among the parts of the response, from 0."""
    kind: Kind
    """"reasoning", "content" or "tool_call"."""
    name: str | None = None
    """The tool's name; None for other parts."""


@dataclass(frozen=True, slots=True)
class PartText:
    """A piece of a part: text that is certain, or for a tool call its arguments as the model writes them."""

    index: int
    """The part's place, as of `PartStart`."""
    text: str
    """The piece."""


@dataclass(frozen=True, slots=True)
class PartEnd:
    """A part is complete. What began as a tool call and breaks off is `Content` here: `part` has the last word."""

    index: int
    """The part's place, as of `PartStart`."""
    part: Part
    """The part as a whole."""


PartEvent = PartStart | PartText | PartEnd
"""What a parser gives while it reads, in order."""


@dataclass(frozen=True, slots=True)
class Response:
    """A whole response in parts."""

    parts: tuple[Part, ...]
    """Reasoning, content and calls in their order."""
    tail: str = ""
    """What came after the last part: white space, the end of a section, the end of the turn."""
    answer: Any = None
    """The value of the content under the constraint of the answer; None without one, and where there is no content."""

    @property
    def reasoning(self) -> str | None:
        """All reasoning, joined; None if there is no block."""
        found = [part.text for part in self.parts if isinstance(part, Reasoning)]
        return "".join(found) if found else None

    @property
    def content(self) -> str:
        """All content, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, Content))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def notes(self) -> tuple[str, ...]:
        """What is wrong with the response; empty if it keeps to the protocol."""
        return tuple(part.note for part in self.parts if part.note)

    @property
    def text(self) -> str:
        """What the model wrote, markers included: each character exactly once."""
        return "".join(part.raw for part in self.parts) + self.tail
