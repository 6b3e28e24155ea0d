"""Tool calls for models whose chat template knows none: the tools are described in the system message."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..protocols import Protocol

FORM = Protocol.named("hermes")
"""The form in which such a model writes calls: JSON between two tags, which more models have seen than any other."""

_TEXT = """You can call functions. Each line between <tools> and </tools> describes one of them as JSON:
<tools>
{tools}
</tools>
To call a function, write its name and its arguments as JSON between two tags:
<tool_call>
{{"name": "the_function", "arguments": {{"argument": "value"}}}}
</tool_call>"""


def with_tools(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages that describe the tools, with earlier calls and their results as text."""
    made = [_as_text(message) for message in messages]
    if not tools:
        return made
    described = _TEXT.format(tools="\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools))
    if made and made[0].get("role") == "system" and isinstance(made[0].get("content"), str):
        made[0]["content"] += "\n\n" + described
    else:
        made.insert(0, {"role": "system", "content": described})
    return made


def with_objects(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages whose calls have their arguments as objects, as chat templates read them; OpenAI's clients send text."""
    made = []
    for message in messages:
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            message = {**message, "tool_calls": [_with_object(call) for call in calls]}
        made.append(dict(message))
    return made


def _with_object(call: Any) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("arguments"), str):
        return call
    try:
        arguments = json.loads(function["arguments"])
    except (ValueError, RecursionError):
        return call
    return {**call, "function": {**function, "arguments": arguments}} if isinstance(arguments, dict) else call


def _as_text(message: Mapping[str, Any]) -> dict[str, Any]:
    if message.get("role") == "tool":
        return {"role": "user", "content": f"<tool_response>\n{message.get('content')}\n</tool_response>"}
    calls = message.get("tool_calls")
    if not isinstance(calls, list) or not calls:
        return dict(message)
    written = [_call(call) for call in calls]
    said = [message["content"]] if isinstance(message.get("content"), str) and message["content"] else []
    return {"role": "assistant", "content": "\n".join([*said, *written])}


def _call(call: Any) -> str:
    function = _with_object(call).get("function") if isinstance(call, Mapping) else None
    found = function if isinstance(function, Mapping) else {}
    shown = {"name": found.get("name"), "arguments": found.get("arguments")}
    return f"<tool_call>\n{json.dumps(shown, ensure_ascii=False)}\n</tool_call>"
