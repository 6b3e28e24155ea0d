"""Renders chat templates, which are programs from strangers: sandboxed, and bounded in time, memory and output."""

from __future__ import annotations

import copy
import json
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, wraps
from typing import Any

from .._core import ConstraintError
from .._errors import error

MAX_SOURCE = 400_000
"""Characters of a template."""
MAX_VALUE = 400_000
"""Characters and items of one value: a text, a list with all that is in it."""
MAX_MADE = 4_000_000
"""What one call could make at most, estimated from its arguments before it is made."""
MAX_NUMBER = 100_000
"""A number that says how long something becomes."""
FUEL = 20_000_000
"""What one rendering may use: rounds of loops, and the characters and items of all values that it handles."""
SECONDS = 2.0
"""The time of one rendering."""
NOW = datetime(2025, 1, 1, 12)
"""The date that templates are given, so that a template always writes the same."""

_WIDTHS = re.compile(r"\d{4}|\*|\{[^{}]*\{")
"""Widths in a format, or one that an argument gives."""
_WITHOUT = ("urlize", "random")
"""Filters that no chat template has: one that searches without a bound, one that gives another value each time."""


class TemplateFailed(Exception):
    """A template that cannot be read, or that refuses a conversation; the message is its own."""


class _Spent(Exception):
    """A template that uses too much."""


def compiled(source: str) -> ChatTemplate:
    """A chat template, compiled once; the last 32 are kept.

    Raises:
        ConstraintError: jinja2 is not installed.
        TemplateFailed: the template is malformed, or too long.
    """
    _environment_class()
    made = compiled_template(source)
    if isinstance(made, TemplateFailed):
        raise made
    return made


@lru_cache(maxsize=32)
def compiled_template(source: str) -> ChatTemplate | TemplateFailed:
    try:
        return ChatTemplate(source)
    except TemplateFailed as wrong:
        return wrong


class ChatTemplate:
    """A compiled template. Conversations are copied for each rendering, so a template may change what it gets."""

    def __init__(self, source: str) -> None:
        if len(source) > MAX_SOURCE:
            raise TemplateFailed(f"the template has {len(source)} characters; the most are {MAX_SOURCE}")
        self.source = source
        self._lock = threading.Lock()
        self._environment = _environment_class()()
        self._environment.refuel()
        try:
            self._template = self._environment.from_string(source)
        except Exception as wrong:
            raise TemplateFailed(_said(wrong)) from wrong

    def render(self, messages: Sequence[Mapping[str, Any]], **variables: Any) -> str:
        """What the template writes for a conversation.

        Raises:
            TemplateFailed: the template refuses the conversation, or uses too much time, memory or output.
        """
        given = copy.deepcopy({"messages": list(messages), **variables})
        with self._lock:
            self._environment.refuel()
            try:
                return "".join(self._template.generate(**given))
            except Exception as wrong:
                raise TemplateFailed(_said(wrong)) from wrong


def _said(wrong: Exception) -> str:
    text = " ".join(str(wrong).split())[:200]
    return text if isinstance(wrong, _Spent) else f"{type(wrong).__name__}: {text}" if text else type(wrong).__name__


@lru_cache(maxsize=1)
def _environment_class() -> Any:
    """jinja2's sandbox with a bound on all that a template may use.

    Loops and macros pay for each round. Every value that is assigned, passed, joined or written is weighed, so nothing
    grows beyond `MAX_VALUE` between two payments, and what one call could make is estimated before it runs.
    """
    try:
        from jinja2 import ext, nodes, sandbox
        from jinja2.exceptions import TemplateRuntimeError
    except ImportError as wrong:
        message = "jinja2 is not installed, and a chat template says what a model writes only when it is run"
        help = "pip install 'logitree[templates]', or name the protocol: Protocol.named(...)"
        raise error(ConstraintError, message, help=help) from wrong

    class Generation(ext.Extension):  # type: ignore[misc] # without jinja2 this has no type
        """`{% generation %}`: what the model writes, in training."""

        tags = {"generation"}  # noqa: RUF012 # jinja2's own form

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    class Bounded(sandbox.SandboxedEnvironment):  # type: ignore[misc] # without jinja2 this has no type
        intercepted_binops = frozenset(("+", "*", "%", "**"))

        def __init__(self) -> None:
            super().__init__(
                trim_blocks=True,
                lstrip_blocks=True,
                extensions=[Generation, ext.loopcontrols],
                optimized=False,
                finalize=self.weighed,
                cache_size=0,
            )
            self.filters: dict[str, Callable[..., Any]] = {
                name: _guarded(self, name, made) for name, made in dict(self.filters).items() if name not in _WITHOUT
            }
            self.filters["tojson"] = _guarded(self, "tojson", _tojson)
            self.globals.update(raise_exception=_raised, strftime_now=NOW.strftime)
            self.globals.pop("lipsum", None)

        def refuel(self) -> None:
            self._left, self._until = FUEL, time.monotonic() + SECONDS

        def pay(self, amount: int) -> None:
            self._left -= amount
            if self._left < 0 or time.monotonic() > self._until:
                raise _Spent("the template uses too much time or output")

        def step(self, size: int) -> str:
            """One round of a loop, or one call of a macro, with the characters of text in it."""
            self.pay(10 + size)
            return ""

        def weighed(self, value: Any) -> Any:
            """The value itself."""
            self.pay(1 + _weight(value))
            return value

        def joined(self, *values: Any) -> str:
            """`a ~ b`."""
            self._allow(sum(map(_weight, values)))
            return "".join(map(str, values))

        def _allow(self, size: int) -> None:
            if size > MAX_MADE:
                raise _Spent("the template makes a value that is too large")
            self.pay(1 + size)

        def _parse(self, source: str, name: str | None, filename: str | None) -> Any:
            tree = super()._parse(source, name, filename)
            _instrumented(tree)
            tree.set_lineno(1)
            return tree

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            sizes = _weight(left), _weight(right)
            if isinstance(left, int) and isinstance(right, int):
                power = left.bit_length() * abs(right) if operator == "**" else left.bit_length() + right.bit_length()
                if operator in "**" and power > MAX_NUMBER:
                    raise _Spent("the template makes a number that is too large")
            elif operator == "*":
                times = next((value for value in (left, right) if isinstance(value, int)), 0)
                self._allow(max(sizes) * max(times, 0))
            elif operator == "%" and isinstance(left, str) and _WIDTHS.search(left):
                raise _Spent("the template formats with widths")
            self._allow(sum(sizes) if operator == "+" else 0)
            return super().call_binop(context, operator, left, right)

        def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
            """Every call of a template goes through here."""
            owner = getattr(getattr(__obj, "__wrapped__", __obj), "__self__", None)
            if __obj != __self.step and __obj != __self.joined:
                _check(__self._allow, __obj, owner, args, kwargs)
            made = super().call(__context, __obj, *args, **kwargs)
            if isinstance(owner, list | dict):
                __self.weighed(owner)
            return made

    def _check(allow: Callable[[int], None], called: Any, owner: Any, args: Any, kwargs: Any) -> None:
        given = [*args, *kwargs.values()]
        sizes = sum(map(_weight, given))
        if isinstance(owner, str | bytes | list | dict | tuple):
            if called.__name__ in ("format", "format_map", "translate") and (
                called.__name__ == "translate" or _WIDTHS.search(str(owner))
            ):
                raise _Spent("the template formats with widths")
            sizes = _estimate(owner, given)
        elif called is sandbox.safe_range or getattr(called, "__name__", "") == "safe_range":
            sizes = len(range(*args))
        allow(sizes)

    def _guarded(environment: Any, name: str, filter: Callable[..., Any]) -> Callable[..., Any]:
        skipped = 1 if hasattr(filter, "jinja_pass_arg") else 0

        @wraps(filter)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            first, rest = args[skipped], [*args[skipped + 1 :], *kwargs.values()]
            if name == "format" and _WIDTHS.search(str(first)):
                raise _Spent("the template formats with widths")
            environment._allow(_estimate(first, rest))
            return filter(*args, **kwargs)

        return guarded

    def _raised(message: str) -> None:
        raise TemplateRuntimeError(message)

    def _call(name: str, *arguments: Any) -> Any:
        return nodes.Call(nodes.EnvironmentAttribute(name), list(arguments), [], None, None)

    def _instrumented(node: Any) -> int:
        """Puts the payments into a template's tree; gives the characters of text in it."""
        size = len(node.data) if isinstance(node, nodes.TemplateData) else 0
        for field in node.fields:
            value = getattr(node, field, None)
            inner = value if isinstance(value, list) else [value]
            for place, one in enumerate(inner):
                if isinstance(one, nodes.Node):
                    size += _instrumented(one)
                    if isinstance(one, nodes.Concat):
                        inner[place] = _call("joined", *one.nodes)
            if isinstance(value, nodes.Node):
                setattr(node, field, inner[0])
        if isinstance(node, rounds):
            node.body.insert(0, nodes.ExprStmt(_call("step", nodes.Const(size))))
        elif isinstance(node, nodes.Assign):
            node.node = _call("weighed", node.node)
        return size

    rounds = (nodes.For, nodes.Macro, nodes.CallBlock, nodes.FilterBlock, nodes.AssignBlock)
    return Bounded


def _tojson(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """JSON as chat templates expect it, without jinja2's escapes for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _estimate(value: Any, given: Sequence[Any]) -> int:
    """What a call on a value could make at most, in characters and items."""
    most = 0
    for one in given:
        if isinstance(one, int | float) and abs(one) > MAX_NUMBER:
            return MAX_MADE + 1
        most = max(most, int(abs(one)) if isinstance(one, int | float) else _weight(one))
    return (_weight(value) + 1) * (most + 1)


def _weight(value: Any) -> int:
    """The characters and items in a value, each as often as it occurs; raises above `MAX_VALUE`."""
    if type(value) is str:
        found = len(value)
    elif value is None or isinstance(value, bool | int | float):
        return 1
    elif isinstance(value, str | bytes):
        found = len(value)
    elif isinstance(value, list | tuple | dict | set):
        found, open = 0, list[Any]([value])
        while open and found <= MAX_VALUE:
            one = open.pop()
            if isinstance(one, str):
                found += len(one)
            elif isinstance(one, dict):
                found += 1 + len(one)
                open += [*one, *one.values()]
            elif isinstance(one, list | tuple | set):
                found += 1 + len(one)
                open += one
            else:
                found += 1
    else:
        return 1
    if found > MAX_VALUE:
        raise _Spent("the template makes a value that is too large")
    return found
