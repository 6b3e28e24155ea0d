"""OpenAI's responses API, as a chat in other words: items in place of messages, and streams of named events."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

from .._events import Finish, Token
from ._answers import Answer, Chat, Chunk
from ._fields import RequestError

_ELSEWHERE = ("previous_response_id", "conversation", "background", "prompt", "truncation", "include")
"""Fields of servers that keep state; this one does not."""


def as_chat(body: Mapping[str, Any]) -> dict[str, Any]:
    """The chat request that a request of the responses API means.

    Raises:
        RequestError: it asks for what this server has kept, or has an item that is not known.
    """
    left = {name: value for name, value in body.items() if value is not None}
    for name in _ELSEWHERE:
        if left.pop(name, None):
            raise RequestError(f"{name}: this server keeps no responses; send the whole input", name)
    made: dict[str, Any] = {"messages": _messages(left.pop("input", None), left.pop("instructions", None))}
    tools = left.pop("tools", None)
    if tools is not None:
        made["tools"] = [_tool(tool) for tool in tools] if isinstance(tools, list) else tools
    choice = left.pop("tool_choice", None)
    if isinstance(choice, Mapping) and "name" in choice:
        choice = {"type": "function", "function": {"name": choice["name"]}}
    made["tool_choice"] = choice
    made["max_tokens"] = left.pop("max_output_tokens", None)
    text = left.pop("text", None)
    if text is not None:
        if not isinstance(text, Mapping):
            raise RequestError(f'text is {text!r:.60}: give {{"format": ...}}', "text")
        given = text.get("format")
        if isinstance(given, Mapping) and given.get("type") == "json_schema":
            given = {"type": "json_schema", "json_schema": {"schema": given.get("schema")}}
        made["response_format"] = given
    # What is left is a field of chats, such as those of samplers, or an error there.
    return {**left, **made}


def _messages(given: Any, instructions: Any) -> list[Any]:
    messages: list[Any] = []
    if instructions is not None:
        messages.append({"role": "system", "content": instructions})
    if isinstance(given, str):
        return [*messages, {"role": "user", "content": given}]
    if not isinstance(given, list):
        raise RequestError(f"input is {given!r:.60}: give a text, or a list of items", "input")
    for item in given:
        kind = item.get("type", "message") if isinstance(item, Mapping) else None
        if kind == "message":
            messages.append({"role": item.get("role"), "content": item.get("content")})
        elif kind == "function_call":
            function = {"name": item.get("name"), "arguments": item.get("arguments")}
            call = {"id": item.get("call_id"), "type": "function", "function": function}
            if messages and messages[-1].get("tool_calls"):
                messages[-1]["tool_calls"].append(call)
            else:
                messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        elif kind == "function_call_output":
            output = item.get("output")
            messages.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": output})
        elif kind != "reasoning":  # what a model thought before is shown to no model again
            raise RequestError(f"input has an item of the type {kind!r:.60}", "input")
    for message in messages:
        if message["role"] == "developer":
            message["role"] = "system"
    return messages


def _tool(tool: Any) -> Any:
    if not isinstance(tool, Mapping) or tool.get("type") != "function":
        kind = tool.get("type") if isinstance(tool, Mapping) else tool
        raise RequestError(f"a tool of the type {kind!r:.60}: give functions", "tools")
    return {"type": "function", "function": {name: value for name, value in tool.items() if name != "type"}}


class Responses(Answer):
    """A chat's answer as a response. `asked` is the request."""

    prefix, object, chunk_object = "resp", "response", ""
    ends_with_done = False

    def __init__(self, chat: Chat, asked: Mapping[str, Any]) -> None:
        super().__init__(chat.rows, chat.model, chat.vocabulary)
        self._chat, self._asked = chat, asked
        self._number = 0
        self._items: list[Chunk] = []
        """What the response consists of; the last may not be done."""

    def begin(self) -> Iterator[Chunk]:
        for kind in ("response.created", "response.in_progress"):
            yield self._event(kind, response=self._response("in_progress"))

    def _token(self, at: int, event: Token) -> Iterator[Chunk]:
        yield from self._events_of(self._chat.take(at, event))

    def _finish(self, at: int, event: Finish) -> Iterator[Chunk]:
        yield from self._events_of(self._chat.take(at, event))
        yield from self._close()

    def end(self) -> Iterator[Chunk]:
        whole = self.whole()
        yield self._event(f"response.{whole['status']}", response=whole)

    def whole(self) -> Chunk:
        is_cut = self._finishes[0].reason in ("max_tokens", "context_full")
        return self._response("incomplete" if is_cut else "completed")

    def line(self, chunk: Chunk) -> str:
        return f"event: {chunk.get('type', 'error')}\n{super().line(chunk)}"

    def _events_of(self, parts: Iterator[Chunk]) -> Iterator[Chunk]:
        """The events of parts of a chat's stream."""
        for part in parts:
            yield from self._delta(part["choices"][0]["delta"])

    def _delta(self, delta: Chunk) -> Iterator[Chunk]:
        """The events of a part of a chat's message."""
        if text := delta.get("reasoning_content"):
            yield from self._open("reasoning", {"summary": [], "content": [{"type": "reasoning_text", "text": ""}]})
            self._items[-1]["content"][0]["text"] += text
            yield self._part("response.reasoning_text.delta", delta=text)
        if text := delta.get("content"):
            part = {"type": "output_text", "text": "", "annotations": []}
            is_new = not self._items or self._items[-1]["type"] != "message"
            yield from self._open("message", {"role": "assistant", "content": [part]})
            if is_new:
                yield self._part("response.content_part.added", part={**part})
            self._items[-1]["content"][0]["text"] += text
            yield self._part("response.output_text.delta", delta=text, logprobs=[])
        for call in delta.get("tool_calls", ()):
            yield from self._close()
            function = call["function"]
            fields = {"call_id": call["id"], "name": function["name"], "arguments": ""}
            yield from self._open("function_call", fields)
            self._items[-1]["arguments"] = function["arguments"]
            yield self._event("response.function_call_arguments.delta", **self._place(), delta=function["arguments"])
            yield from self._close()

    def _open(self, kind: str, fields: Chunk) -> Iterator[Chunk]:
        """Begins an item, unless it is the last that has begun."""
        if self._items and self._items[-1]["type"] == kind and self._items[-1]["status"] == "in_progress":
            return
        yield from self._close()
        number = len(self._items)
        self._items.append({"id": f"{kind[:3]}_{self.id[5:]}{number}", "type": kind, "status": "in_progress", **fields})
        shown = json.loads(json.dumps(self._items[-1]))
        if kind == "message":
            shown["content"] = []
        yield self._event("response.output_item.added", output_index=number, item=shown)

    def _close(self) -> Iterator[Chunk]:
        """The last item is done."""
        if not self._items or self._items[-1]["status"] != "in_progress":
            return
        item = self._items[-1]
        item["status"] = "completed"
        if item["type"] == "message":
            (part,) = item["content"]
            yield self._part("response.output_text.done", text=part["text"], logprobs=[])
            yield self._part("response.content_part.done", part=part)
        elif item["type"] == "reasoning":
            yield self._part("response.reasoning_text.done", text=item["content"][0]["text"])
        else:
            named = {"name": item["name"], "arguments": item["arguments"]}
            yield self._event("response.function_call_arguments.done", **self._place(), **named)
        yield self._event("response.output_item.done", output_index=len(self._items) - 1, item=item)

    def _place(self) -> Chunk:
        return {"item_id": self._items[-1]["id"], "output_index": len(self._items) - 1}

    def _part(self, kind: str, **fields: Any) -> Chunk:
        return self._event(kind, **self._place(), content_index=0, **fields)

    def _event(self, kind: str, **fields: Any) -> Chunk:
        self._number += 1
        return {"type": kind, "sequence_number": self._number - 1, **fields}

    def _response(self, status: str) -> Chunk:
        usage = None
        if status != "in_progress":
            found = self.usage()
            usage = {
                "input_tokens": found["prompt_tokens"],
                "input_tokens_details": found["prompt_tokens_details"],
                "output_tokens": found["completion_tokens"],
                "output_tokens_details": {"reasoning_tokens": found["completion_tokens_details"]["reasoning_tokens"]},
                "total_tokens": found["total_tokens"],
            }
        return {
            "id": self.id,
            "object": "response",
            "created_at": self._created,
            "completed_at": None if usage is None else int(time.time()),
            "status": status,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "instructions": self._asked.get("instructions"),
            "metadata": self._asked.get("metadata") or {},
            "model": self.model,
            "output": [] if usage is None else self._items,
            "parallel_tool_calls": self._asked.get("parallel_tool_calls", True),
            "temperature": self._asked.get("temperature"),
            "tool_choice": self._asked.get("tool_choice") or "auto",
            "tools": self._asked.get("tools") or [],
            "top_p": self._asked.get("top_p"),
            "max_output_tokens": self._asked.get("max_output_tokens"),
            "text": self._asked.get("text") or {"format": {"type": "text"}},
            "usage": usage,
        }
