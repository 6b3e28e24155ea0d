"""OpenAI's chat requests as constraints, and tokens as messages with reasoning and tool calls apart."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any
from typing import Protocol as Interface

from .. import _core
from .._core import Constraint
from .._errors import error
from .._text import TextStream
from ..protocols import Parser, PartEnd, PartEvent, PartStart, Protocol, ToolCall
from ..protocols._tools import tools_of
from ._requests import read_json

Delta = dict[str, Any]
"""What is new in a message, as OpenAI's streams have it."""


class Written:
    """What a model has written, for those that read it."""

    def __init__(self) -> None:
        self.prompt: list[int] = []
        """The prompt's tokens, once the generation has begun."""
        self.tokens: list[int] = []
        """The tokens so far, the end of generation included."""


class Request(Written):
    """A constraint on its way to a generation, and what became of it there."""

    def __init__(self, constraint: Constraint) -> None:
        super().__init__()
        self.constraint = constraint


def respond(
    answer: Constraint | None,
    tools: Sequence[Any],
    choice: str,
    protocol: Protocol | None,
    vocabulary: _core.Vocabulary,
    stop: Sequence[str] = (),
    *,
    parallel: bool = True,
    reasoning: int | None = None,
) -> tuple[Constraint | None, MakeReader | None]:
    """The constraint of a chat response, and what reads its tokens; None: they are text.

    Args:
        answer: what the content must be; None: anything.
        tools, choice: as `tools_asked` gives them.
        protocol: the form of the model's responses; None: it is unknown.
        vocabulary: the model's.
        stop: texts that end the content.
        parallel: whether there may be several calls.
        reasoning: the most tokens of reasoning; None: any number.

    Raises:
        ConstraintError, LimitError: it cannot be honoured.
    """
    if reasoning is not None and (protocol is None or protocol.reasoning is None):
        help = "leave the budget out: this model's responses have no block of reasoning that is known"
        raise error(_core.ConstraintError, "a budget of reasoning, and nothing that it limits", help=help)
    if choice == "none":
        tools = []
    if tools:
        if choice != "auto":
            answer = None
        if protocol is None or protocol.calls is None:
            if choice == "required":
                help = "name the tool in tool_choice, or use a model whose chat template writes tool calls"
                raise error(_core.ConstraintError, "the chat template has no form for tool calls", help=help)
            if choice != "auto":
                return read_json(_parameters(tools, choice), "bounded"), lambda of: _OneCall(of, vocabulary, choice)
            tools = []
    if protocol is None or (not tools and answer is None and reasoning is None):
        return answer, None
    constraint = protocol.constraint(answer, tools=tools, tool_choice=choice, parallel=parallel, reasoning=reasoning)
    return constraint, lambda of: Parts(of, lambda: constraint.parser(vocabulary, prompt=of.prompt), stop)


class Reader(Interface):
    """Reads the tokens of a request."""

    calls: int
    """How many calls were read."""

    def read(self, is_over: bool) -> Iterator[Delta]:
        """What the tokens since the last time add to the message."""


MakeReader = Callable[[Written], Reader]
"""What reads the tokens that a model writes."""


class _OneCall:
    """Tokens that are the arguments of one tool."""

    def __init__(self, request: Written, vocabulary: _core.Vocabulary, name: str) -> None:
        self.calls = 0
        self._request, self._vocabulary, self._name = request, vocabulary, name

    def read(self, is_over: bool) -> Iterator[Delta]:
        if is_over:
            ends = self._vocabulary.end_tokens
            written = b"".join(self._vocabulary[token] for token in self._request.tokens if token not in ends)
            self.calls = 1
            yield {"tool_calls": [_call(0, self._name, written.decode("utf-8", "replace"))]}


class Parts:
    """Tokens in the form of a model's protocol.

    Args:
        request: whose tokens they are.
        parser: makes the parser, when the prompt is known.
        stop: texts that end the content.
    """

    def __init__(self, request: Written, parser: Callable[[], Parser], stop: Sequence[str]) -> None:
        self.calls = 0
        self._request, self._make, self._content = request, parser, TextStream(stop)
        self._parser: Parser | None = None
        self._fed = 0
        self._kind = ""

    def read(self, is_over: bool) -> Iterator[Delta]:
        parser = self._parser = self._parser or self._make()
        new, self._fed = self._request.tokens[self._fed :], len(self._request.tokens)
        yield from self._deltas(parser.feed(new))
        if is_over:
            yield from self._deltas(parser.finish())
            if rest := self._content.end():
                yield {"content": rest}

    def _deltas(self, events: Sequence[PartEvent]) -> Iterator[Delta]:
        """Text as it comes, calls when they are whole."""
        for event in events:
            if isinstance(event, PartStart):
                self._kind = event.kind
            elif isinstance(event, PartEnd):
                if isinstance(event.part, ToolCall):
                    arguments = json.dumps(dict(event.part.arguments), ensure_ascii=False)
                    yield {"tool_calls": [_call(self.calls, event.part.name, arguments)]}
                    self.calls += 1
                elif self._kind == "tool_call":  # it broke off: its text is content
                    yield from self._said(event.part.text)
            elif self._kind == "reasoning":
                yield {"reasoning_content": event.text}
            elif self._kind == "content":
                yield from self._said(event.text)

    def _said(self, text: str) -> Iterator[Delta]:
        if text := self._content.push(text.encode()):
            yield {"content": text}


def finish_reason(given: str, reader: Reader) -> str:
    """OpenAI's finish reason of a response that was read."""
    return "tool_calls" if given == "stop" and reader.calls else given


def _call(index: int, name: str, arguments: str) -> Delta:
    return {"index": index, "type": "function", "function": {"name": name, "arguments": arguments}}


def identified(call: Delta, completion: str) -> Delta:
    """A call with an id of its own in a completion."""
    return {**call, "id": f"call_{call['index']}_{completion}"}


def answer_asked(given: Any) -> Constraint | None:
    """The constraint of a response format.

    Raises:
        ConstraintError: a format of another type, or a schema that cannot be honoured.
    """
    kind = given.get("type") if isinstance(given, Mapping) else given
    if kind in (None, "text"):
        return None
    schema: Any
    if kind == "json_object":
        schema = given.get("schema", {"type": "object"})
    elif kind == "json_schema" and isinstance(given.get("json_schema"), Mapping):
        schema = given["json_schema"].get("schema")
    else:
        help = 'give "text", "json_object" or "json_schema" with {"schema": ...} as its type'
        raise error(_core.ConstraintError, f"unknown: {given!r:.80}", place="response_format", help=help)
    if not isinstance(schema, Mapping | bool):
        raise error(_core.ConstraintError, f"{schema!r:.80} is no JSON Schema", place="response_format")
    return read_json(json.dumps(schema), "bounded")


def tools_asked(asked: Mapping[str, Any]) -> tuple[list[Any], str]:
    """The tools of a request, and "auto", "none", "required" or the name of one.

    Raises:
        ConstraintError: a choice that is none of them.
    """
    tools = [{"type": "function", "function": function} for function in asked.get("functions") or ()]
    tools = tools or list(asked.get("tools") or ())
    choice = asked.get("function_call") or asked.get("tool_choice") or "auto"
    if isinstance(choice, Mapping):
        choice = choice.get("function", choice).get("name")
        known = [tool.get("function", {}).get("name") for tool in tools]
        if choice not in known:
            help = f"name one of {', '.join(map(str, known))}" if known else "give the tools too"
            raise error(_core.ConstraintError, f"no tool is called {choice!r}", place="tool_choice", help=help)
    elif choice not in ("auto", "none", "required"):
        help = 'give "auto", "none", "required" or {"type": "function", "function": {"name": ...}}'
        raise error(_core.ConstraintError, f"unknown: {choice!r:.80}", place="tool_choice", help=help)
    return tools, str(choice)


def _parameters(tools: Sequence[Mapping[str, Any]], name: str) -> str:
    """The schema of one tool's arguments, as text."""
    (tool,) = tools_of([tool for tool in tools if tool["function"]["name"] == name])
    return tool.schema


def protocol_of(template: str | None, vocabulary: _core.Vocabulary) -> Protocol | None:
    """The form of a chat template's responses; None where it is unknown."""
    if template is None:
        return None
    try:
        return Protocol.of(SimpleNamespace(chat_template=template, vocabulary=vocabulary))
    except _core.ConstraintError:
        return None
