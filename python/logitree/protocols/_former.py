"""`Grammar.tools`, for one release: free text with tool calls in it, in a form that is given as four texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .. import _renamed
from .._core import ConstraintError, Grammar
from .._errors import ValueMismatchError, error
from .._schemas import grammar_of
from ._parser import Parser
from ._pieces import either
from ._protocol import OBJECT, Calls, Protocol
from ._tools import Tool, named_tools

FORMS: dict[str, tuple[str, str, str, str]] = {
    "hermes": ("<tool_call>", '\n{"name": "{name}", "arguments": ', "}\n", "</tool_call>"),
    "llama": ("<function={name}>", "", "", "</function>"),
}
"""The beginning of a call, the text before and the text after the arguments, and the end."""


def tools_grammar(
    tools: Mapping[str, Any] | Iterable[Any],
    *,
    style: str | tuple[str, str, str, str] = "hermes",
    tokens: bool = False,
    text: bool = True,
    at_least_one: bool = False,
    stop_after_first: bool = False,
    **options: Any,
) -> Grammar:
    """What `Grammar.tools` describes."""
    _renamed.deprecated("Grammar.tools")
    named = named_tools(tools)
    if not named:
        raise error(ConstraintError, "there are no tools", help="give at least one")
    if isinstance(style, str) and style not in FORMS:
        names = ", ".join(map(repr, FORMS))
        help = f"expected one of {names}, or four texts: beginning, before and after the arguments, end"
        raise error(ConstraintError, f"style is {style!r}", help=help)
    begin, before, behind, end = FORMS[style] if isinstance(style, str) else style
    trigger, marked, rest = begin.partition("{name}")
    calls: list[Grammar] = []
    for name, source in named.items():
        head = (name + rest if marked else "") + before.replace("{name}", json.dumps(name)[1:-1])
        plain = {} if isinstance(source, Grammar) else {"numbers": "plain"}
        calls.append(head + grammar_of(source, **{**plain, **options}) + behind)
    mark = Grammar.token if tokens else str
    made = Grammar.tags(
        [(mark(trigger), either(calls), mark(end))],
        text=text,
        at_least_one=at_least_one,
        stop_after_first=stop_after_first,
    )
    if tokens:
        return made
    head, _, middle = (begin + before).partition("{name}")
    protocol = Protocol(
        "four texts", (), (), calls=Calls(trigger, head, middle, behind + end, unmarked=trigger == OBJECT)
    )
    kinds = (Mapping, Grammar)
    read = [Tool(name, "{}", None if isinstance(source, kinds) else source) for name, source in named.items()]
    return made._with_value(CallsIn(protocol, tuple(read)))


@dataclass(frozen=True)
class CallsIn:
    """Reads the calls in a text: a list of dicts with "name" and "arguments", which are objects of JSON."""

    protocol: Protocol
    tools: tuple[Tool, ...]

    def __call__(self, text: str) -> list[dict[str, Any]]:
        parser = Parser(self.protocol, tools=self.tools)
        parser.feed(text)
        parser.finish()
        for part in parser.parts:
            if part.note:
                name = getattr(part, "name", "a tool")
                raise ValueMismatchError(f"{name}: {part.note}", text=text, type=name, reason=part.note)
        return [{"name": call.name, "arguments": call.arguments} for call in parser.response.tool_calls]
