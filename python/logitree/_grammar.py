"""Grammars of tool calls: free text, and calls of functions in the form that a family of models was taught."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from logitree._core import ConstraintError, Grammar
from logitree._errors import error
from logitree._schemas import grammar_of

STYLES: dict[str, tuple[str, str, str, str]] = {
    "hermes": ("<tool_call>", '\n{"name": "{name}", "arguments": ', "}\n", "</tool_call>"),
    "llama": ("<function={name}>", "", "", "</function>"),
}
"""How a call is written: its beginning, the text before and after the arguments, its end."""


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
    """Free text with calls of ``tools`` in it; ``Grammar.tools`` has the details."""
    named = _named(tools)
    if not named:
        raise error(ConstraintError, "there are no tools", help="give at least one")
    begin, before, behind, end = _style(style)
    marked = "{name}" in begin
    calls = {
        name: before.replace("{name}", json.dumps(name)[1:-1]) + grammar_of(source, **options) + behind
        for name, source in named.items()
    }
    if marked:
        tags = [
            (_mark(begin.replace("{name}", name), tokens), call, _mark(end, tokens)) for name, call in calls.items()
        ]
    else:
        any_call = _any(calls.values())
        tags = [(_mark(begin, tokens), any_call, _mark(end, tokens))]
    triggers = [begin.partition("{name}")[0]] if marked and not tokens else []
    return Grammar.tags(
        tags, triggers=triggers, text=text, at_least_one=at_least_one, stop_after_first=stop_after_first
    )


def _style(style: str | tuple[str, str, str, str]) -> tuple[str, str, str, str]:
    if not isinstance(style, str):
        return style
    if style not in STYLES:
        names = ", ".join(map(repr, STYLES))
        help = f"expected one of {names}, or four texts: beginning, before and after the arguments, end"
        raise error(ConstraintError, f"style is {style!r}", help=help)
    return STYLES[style]


def _mark(text: str, token: bool) -> Grammar | str:
    return Grammar.token(text) if token else text


def _any(grammars: Iterable[Grammar]) -> Grammar:
    first, *rest = grammars
    for grammar in rest:
        first = first | grammar
    return first


def _named(tools: Mapping[str, Any] | Iterable[Any]) -> dict[str, Any]:
    """Names and what describes the arguments of each."""
    if isinstance(tools, Mapping):
        return dict(tools)
    named: dict[str, Any] = {}
    for tool in tools:
        name, source = _described(tool) if isinstance(tool, Mapping) else (getattr(tool, "__name__", None), tool)
        if not isinstance(name, str):
            help = 'give a mapping of names, functions or classes, or dicts with "name" and "parameters"'
            raise error(ConstraintError, f"a tool without a name: {tool!r}"[:200], help=help)
        if name in named:
            raise error(ConstraintError, f"two tools are called {name!r}", help="give each a name of its own")
        named[name] = source
    return named


def _described(tool: Mapping[str, Any]) -> tuple[Any, Any]:
    """A tool as the servers' interfaces describe it."""
    inner = tool.get("function", tool)
    for key in ("parameters", "input_schema", "inputSchema"):
        if key in inner:
            return inner.get("name"), inner[key]
    return inner.get("name"), {"type": "object", "properties": {}, "additionalProperties": False}
