"""Messages as chat templates read them: a role, and one text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._errors import EngineError

_TEXTS = ("text", "input_text", "output_text")
"""Types of parts that are text."""


def read_messages(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """Messages whose contents are texts: those in parts are joined with line breaks, as llama.cpp and vLLM do.

    A message of tool calls may have no content.

    Raises:
        TypeError: a message has no role, or its content is neither text nor a list of parts.
        EngineError: a part that is no text, such as an image.
    """
    return [_message(message, f"message {at}") for at, message in enumerate(messages)]


def _message(message: Any, place: str) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise TypeError(f'{place} is {message!r:.60}: give {{"role": "user", "content": ...}}')
    made = dict(message)
    if not isinstance(made.get("role"), str):
        raise TypeError(f'{place} has no "role": give "system", "user" or "assistant"')
    content = made.get("content")
    if isinstance(content, list | tuple):
        made["content"] = "\n".join(_part(part, f"part {at} of {place}") for at, part in enumerate(content))
    elif not isinstance(content, str) and not (content is None and made.get("tool_calls")):
        shown = "is missing" if "content" not in made else f"is {content!r:.60}"
        raise TypeError(f'the "content" of {place} {shown}: give a text, or a list of parts of text')
    return made


def _part(part: Any, place: str) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping):
        kind = part.get("type", "text")
        if kind in _TEXTS and isinstance(part.get("text"), str):
            return str(part["text"])
        if kind not in _TEXTS:
            raise EngineError(f"{place} is of the type {kind!r:.60}", help="logitree reads parts of text only")
    raise TypeError(f'{place} is {part!r:.60}: give {{"type": "text", "text": ...}}')
