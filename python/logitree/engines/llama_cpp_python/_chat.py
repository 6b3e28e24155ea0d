"""Chat requests of llama-cpp-python as constraints, and the tokens of completions as messages with tool calls."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any
from typing import Protocol as Interface

from ... import _core
from ..._core import Constraint
from ..._errors import error
from ..._text import TextStream
from ...protocols import Parser, PartEnd, PartEvent, PartStart, Protocol, ToolCall
from ...protocols._tools import tools_of
from .._requests import SECONDS, read_json

Delta = dict[str, Any]
"""What is new in a message, as OpenAI's streams have it."""


class Request:
    """A constraint on its way through llama-cpp-python to the generation, and what became of it there."""

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint
        self.prompt: list[int] = []
        """The prompt's tokens, once the generation has begun."""
        self.tokens: list[int] = []
        """The tokens so far, the end of generation included."""


def complete_chat(
    llm: Any,
    vocabulary: Callable[[], _core.Vocabulary],
    create: Callable[..., Any],
    args: Sequence[Any],
    named: Mapping[str, Any],
) -> Any:
    """`Llama.create_chat_completion` with constraints in the place of `response_format` and `tools`.

    Args:
        llm: the `Llama`.
        vocabulary: gives the model's, where a request needs it.
        create: its own method.
        args, named: what the method was called with.

    Raises:
        ConstraintError, LimitError: a response format or tools that cannot be honoured.
    """
    asked = dict(inspect.signature(create).bind(*args, **named).arguments)
    if asked.get("grammar") is not None:
        return create(**asked)
    with _core.Deadline(SECONDS):
        request, reader = _read(llm, vocabulary, asked)
    if request is None:
        return create(**asked)
    is_legacy = asked.get("functions") is not None
    made = create(**asked | {"grammar": request})
    if reader is None:
        return made
    if asked.get("stream"):
        return _streamed(made, reader, is_legacy)
    return _whole(made, reader, is_legacy)


def _read(
    llm: Any, read_vocabulary: Callable[[], _core.Vocabulary], asked: Delta
) -> tuple[Request | None, _Reader | None]:
    """The constraint of a request, and how its tokens are read; None: as text.

    Takes out of `asked` what the constraint does in its place.
    """
    answer = _answer(asked.pop("response_format", None))
    tools, choice = _tools(asked)
    if not tools and answer is None:
        return None, None
    template = _template(llm)
    if template is None and tools:
        if answer is not None and choice in ("auto", "none"):
            help = "leave out one of them, or use the model's own chat template"
            raise error(_core.ConstraintError, "this chat format takes no response format with tools", help=help)
        return None, None  # a handler of its own writes and reads the calls; its grammars come to `generate`
    vocabulary = read_vocabulary()
    protocol = _protocol(template, vocabulary)
    if tools and choice != "none":
        asked |= {"tool_choice": "auto", "function_call": None}
        if choice != "auto":
            answer = None
        if protocol is None or protocol.calls is None:
            if choice == "required":
                help = "name the tool in tool_choice, or use a model whose chat template writes tool calls"
                raise error(_core.ConstraintError, "the chat template has no form for tool calls", help=help)
            if choice != "auto":
                request = Request(read_json(_parameters(tools, choice), "bounded"))
                return request, _OneCall(request, vocabulary, choice)
            tools = []
    if protocol is None or (not tools and answer is None):
        return (None if answer is None else Request(answer)), None
    constraint = protocol.constraint(answer, tools=tools, tool_choice=choice)
    request = Request(constraint)
    stop = asked.get("stop") or []
    return request, _Parts(
        request, lambda: constraint.parser(vocabulary, prompt=request.prompt), [stop] if isinstance(stop, str) else stop
    )


class _Reader(Interface):
    """Reads the tokens of a request."""

    calls: int
    """How many calls were read."""

    def read(self, is_over: bool) -> Iterator[Delta]:
        """What the tokens since the last time add to the message."""


class _OneCall:
    """Tokens that are the arguments of one tool."""

    def __init__(self, request: Request, vocabulary: _core.Vocabulary, name: str) -> None:
        self.calls = 0
        self._request, self._vocabulary, self._name = request, vocabulary, name

    def read(self, is_over: bool) -> Iterator[Delta]:
        if is_over:
            ends = self._vocabulary.end_tokens
            written = b"".join(self._vocabulary[token] for token in self._request.tokens if token not in ends)
            self.calls = 1
            yield {"tool_calls": [_call(0, self._name, written.decode("utf-8", "replace"))]}


class _Parts:
    """Tokens in the form of a model's protocol.

    Args:
        request: whose tokens they are.
        parser: makes the parser, when the prompt is known.
        stop: texts that end the content.
    """

    def __init__(self, request: Request, parser: Callable[[], Parser], stop: Sequence[str]) -> None:
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


def _whole(completion: Delta, reader: _Reader, is_legacy: bool) -> Delta:
    """A completion whose message has reasoning, content and calls apart."""
    (choice,) = completion["choices"]
    message: Delta = {"role": "assistant", "content": None}
    for delta in reader.read(is_over=True):
        for key, value in delta.items():
            message[key] = value if message.get(key) is None else message[key] + value
    if not reader.calls:
        message["content"] = message["content"] or ""
    else:
        message["tool_calls"] = [_identified(call, completion["id"]) for call in message["tool_calls"]]
        for call in message["tool_calls"]:
            del call["index"]
        if is_legacy:
            message["function_call"] = message["tool_calls"][0]["function"]
    choice["message"], choice["finish_reason"] = message, _reason(choice["finish_reason"], reader)
    return completion


def _streamed(chunks: Iterator[Delta], reader: _Reader, is_legacy: bool) -> Iterator[Delta]:
    """The chunks of a stream, with reasoning, content and calls apart."""
    for chunk in chunks:
        (choice,) = chunk["choices"]
        if "role" in choice["delta"]:
            yield chunk
            continue
        over = choice["finish_reason"]
        for delta in reader.read(is_over=over is not None):
            if "tool_calls" in delta:
                delta["tool_calls"] = [_identified(call, chunk["id"]) for call in delta["tool_calls"]]
                if is_legacy:
                    delta["function_call"] = delta["tool_calls"][0]["function"]
            yield chunk | {"choices": [choice | {"delta": delta, "finish_reason": None}]}
        if over is not None:
            yield chunk | {"choices": [choice | {"delta": {}, "finish_reason": _reason(over, reader)}]}


def _reason(given: str, reader: _Reader) -> str:
    return "tool_calls" if given == "stop" and reader.calls else given


def _call(index: int, name: str, arguments: str) -> Delta:
    return {"index": index, "type": "function", "function": {"name": name, "arguments": arguments}}


def _identified(call: Delta, completion: str) -> Delta:
    return {**call, "id": f"call_{call['index']}_{completion}"}


def _answer(given: Any) -> Constraint | None:
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


def _tools(asked: Mapping[str, Any]) -> tuple[list[Any], str]:
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


def _template(llm: Any) -> str | None:
    """The model's own chat template, if the `Llama` writes prompts by it; None: by a handler or a format of its own."""
    name = str(llm.chat_format).removeprefix("chat_template.")
    if llm.chat_handler is not None or llm.chat_format not in llm._chat_handlers:
        return None
    key = "tokenizer.chat_template"
    found: str | None = llm.metadata.get(key if name == "default" else f"{key}.{name}")
    return found


def _protocol(template: str | None, vocabulary: _core.Vocabulary) -> Protocol | None:
    """The form of a chat template's responses; None where it is unknown."""
    if template is None:
        return None
    try:
        return Protocol.of(SimpleNamespace(chat_template=template, vocabulary=vocabulary))
    except _core.ConstraintError:
        return None
