"""Grammars of tool calls: free text, and calls of functions in the form that a family of models was taught."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from logitree._core import ConstraintError, Grammar
from logitree._errors import ValueMismatchError, error
from logitree._schemas import arguments_reader, grammar_of, reader_of

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
        name: before.replace("{name}", json.dumps(name)[1:-1]) + _arguments_grammar(source, options) + behind
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
    made = Grammar.tags(
        tags, triggers=triggers, text=text, at_least_one=at_least_one, stop_after_first=stop_after_first
    )
    return made._with_value(Calls(named, (begin, before, behind, end), tokens))


@dataclass(frozen=True)
class Calls:
    """Reads the calls in a text of `tools_grammar`: a list of dicts with "name" and "arguments".

    Arguments of a tool that is a function or a type are what its types say; otherwise what JSON has, and for a grammar
    its text.
    """

    named: Mapping[str, Any]
    style: tuple[str, str, str, str]
    tokens: bool

    def __call__(self, text: str) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = []
        at = 0
        while True:
            found = [(text.find(head, at), -len(head), name) for name, head in self._heads.items()]
            found = [one for one in found if one[0] >= 0]
            if not found:
                return calls
            start, length, name = min(found)
            arguments, at = self._arguments(text, start - length, name)
            calls.append({"name": name, "arguments": arguments})

    def __getstate__(self) -> dict[str, Any]:
        return {"named": self.named, "style": self.style, "tokens": self.tokens}

    @cached_property
    def _heads(self) -> dict[str, str]:
        """What a call of each tool begins with. Control tokens are no part of the text."""
        begin, before, _, _ = self.style
        begin = "" if self.tokens else begin
        return {
            name: begin.replace("{name}", name) + before.replace("{name}", json.dumps(name)[1:-1])
            for name in self.named
        }

    @cached_property
    def _readers(self) -> dict[str, Callable[[Any], Any]]:
        return {name: _reader(source) for name, source in self.named.items()}

    def _arguments(self, text: str, at: int, name: str) -> tuple[Any, int]:
        """The arguments that begin at a place, and the place after the call."""
        tail = self.style[2] + ("" if self.tokens else self.style[3])
        if isinstance(self.named[name], Grammar):
            end = text.find(tail, at) if tail else len(text)
            return text[at:end], end + len(tail)
        at += len(text[at:]) - len(text[at:].lstrip())
        try:
            value, end = json.JSONDecoder().raw_decode(text, at)
        except ValueError as wrong:
            message = f"the arguments of {name} are no JSON: {wrong}"
            raise ValueMismatchError(message, text=text, type=name, reason=str(wrong)) from wrong
        return self._readers[name](value), end


def _reader(source: Any) -> Callable[[Any], Any]:
    """What turns the arguments of a call, as JSON has them, into what the tool's types say."""
    by_types = arguments_reader(source)
    if by_types is None:
        return lambda value: value
    whole = reader_of(source)
    return lambda value: by_types(value) if isinstance(value, Mapping) else whole(json.dumps(value))


def _arguments_grammar(source: Any, options: Mapping[str, Any]) -> Grammar:
    """The grammar of a tool's arguments; numbers are plain, unless the options say otherwise."""
    return grammar_of(source, **(options if isinstance(source, Grammar) else {"numbers": "plain", **options}))


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
