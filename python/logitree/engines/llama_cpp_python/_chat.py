"""Chat requests of llama-cpp-python with constraints, and its completions as messages with tool calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ... import _core
from ..._errors import error
from .._chat import Delta, Reader, Request, answer_asked, finish_reason, identified, protocol_of, respond, tools_asked
from .._requests import SECONDS


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
) -> tuple[Request | None, Reader | None]:
    """The constraint of a request, and how its tokens are read; None: as text.

    Takes out of `asked` what the constraint does in its place.
    """
    answer = answer_asked(asked.pop("response_format", None))
    tools, choice = tools_asked(asked)
    if not tools and answer is None:
        return None, None
    template = _template(llm)
    if template is None and tools:
        if answer is not None and choice in ("auto", "none"):
            help = "leave out one of them, or use the model's own chat template"
            raise error(_core.ConstraintError, "this chat format takes no response format with tools", help=help)
        return None, None  # a handler of its own writes and reads the calls; its grammars come to `generate`
    vocabulary = read_vocabulary()
    if tools and choice != "none":
        asked |= {"tool_choice": "auto", "function_call": None}
    stop = asked.get("stop") or []
    stop = [stop] if isinstance(stop, str) else stop
    constraint, read = respond(answer, tools, choice, protocol_of(template, vocabulary), vocabulary, stop)
    if constraint is None:
        return None, None
    request = Request(constraint)
    return request, None if read is None else read(request)


def _whole(completion: Delta, reader: Reader, is_legacy: bool) -> Delta:
    """A completion whose message has reasoning, content and calls apart."""
    (choice,) = completion["choices"]
    message: Delta = {"role": "assistant", "content": None}
    for delta in reader.read(is_over=True):
        for key, value in delta.items():
            message[key] = value if message.get(key) is None else message[key] + value
    if not reader.calls:
        message["content"] = message["content"] or ""
    else:
        message["tool_calls"] = [identified(call, completion["id"]) for call in message["tool_calls"]]
        for call in message["tool_calls"]:
            del call["index"]
        if is_legacy:
            message["function_call"] = message["tool_calls"][0]["function"]
    choice["message"], choice["finish_reason"] = message, finish_reason(choice["finish_reason"], reader)
    return completion


def _streamed(chunks: Iterator[Delta], reader: Reader, is_legacy: bool) -> Iterator[Delta]:
    """The chunks of a stream, with reasoning, content and calls apart."""
    for chunk in chunks:
        (choice,) = chunk["choices"]
        if "role" in choice["delta"]:
            yield chunk
            continue
        over = choice["finish_reason"]
        for delta in reader.read(is_over=over is not None):
            if "tool_calls" in delta:
                delta["tool_calls"] = [identified(call, chunk["id"]) for call in delta["tool_calls"]]
                if is_legacy:
                    delta["function_call"] = delta["tool_calls"][0]["function"]
            yield chunk | {"choices": [choice | {"delta": delta, "finish_reason": None}]}
        if over is not None:
            yield chunk | {"choices": [choice | {"delta": {}, "finish_reason": finish_reason(over, reader)}]}


def _template(llm: Any) -> str | None:
    """The model's own chat template, if the `Llama` writes prompts by it; None: by a handler or a format of its own."""
    name = str(llm.chat_format).removeprefix("chat_template.")
    if llm.chat_handler is not None or llm.chat_format not in llm._chat_handlers:
        return None
    key = "tokenizer.chat_template"
    found: str | None = llm.metadata.get(key if name == "default" else f"{key}.{name}")
    return found
