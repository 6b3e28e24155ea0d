"""Writes the docstrings of the compiled core into its stubs: `python scripts/stubs.py`; `--check` only compares.

The bindings' `///` comments are the one source. Signatures in `python/logitree/_core.pyi` are written by hand; every
docstring in it is the runtime one. A class, function or property that the core does not have is an error.
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from logitree import _core

STUBS = Path(__file__).resolve().parent.parent / "python" / "logitree" / "_core.pyi"
WIDTH = 112

Definition = ast.ClassDef | ast.FunctionDef


def definitions(body: list[ast.stmt], owner: object, path: str) -> Iterator[tuple[Definition, str]]:
    """Every public class, function and member of the stubs with its runtime docstring."""
    seen: set[str] = set()
    for node in body:
        if not isinstance(node, Definition) or (node.name.startswith("_") and not node.name.endswith("__")):
            continue
        thing = inspect.getattr_static(owner, node.name, None)
        if thing is None:
            raise SystemExit(f"{STUBS.name}:{node.lineno}: the core has no {path}{node.name}")
        if isinstance(thing, staticmethod | classmethod):
            thing = thing.__func__
        inherited = node.name.endswith("__") and thing.__doc__ == getattr(
            getattr(object, node.name, None), "__doc__", ""
        )
        text = (
            "" if node.name in seen or inherited or is_slot(node.name, thing) else inspect.cleandoc(thing.__doc__ or "")
        )
        yield node, text
        seen.add(node.name)  # the first overload has the docstring
        if isinstance(node, ast.ClassDef):
            yield from definitions(node.body, thing, f"{path}{node.name}.")


def is_slot(name: str, thing: object) -> bool:
    """Whether this is a special method, whose docstring is Python's own."""
    return name.endswith("__") and not isinstance(thing, type) and type(thing).__name__ != "function"


def wrapped(text: str, width: int) -> list[str]:
    """The lines of a docstring, its plain paragraphs filled; lists, tables and indented text stay as they are."""
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        rows = paragraph.split("\n")
        plain = not any(row.startswith((" ", "-", "|", "`" * 3, ">>>")) for row in rows)
        lines += [
            "",
            *(textwrap.wrap(paragraph, width, break_long_words=False, break_on_hyphens=False) if plain else rows),
        ]
    return lines[1:]


def docstring(text: str, indent: str) -> list[str]:
    """A docstring as source lines."""
    mark = 'r"""' if "\\" in text else '"""'
    first, *rest = wrapped(text, WIDTH - len(indent))
    if not rest:
        return [f'{indent}{mark}{first}"""']
    return [f"{indent}{mark}{first}", *(f"{indent}{line}" if line else "" for line in rest), f'{indent}"""']


def generated(source: str) -> str:
    """The stubs with the runtime docstrings."""
    lines = source.split("\n")
    found = list(definitions(ast.parse(source).body, _core, ""))
    for node, text in sorted(found, key=lambda pair: -pair[0].lineno):
        first = node.body[0]
        indent = " " * (node.col_offset + 4)
        new = docstring(text, indent) if text else []
        has = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        if has and isinstance(first.value.value, str):  # type: ignore[attr-defined]
            rest = [] if new or len(node.body) > 1 else [f"{indent}..."]
            lines[first.lineno - 1 : first.end_lineno] = [*new, *rest]
        elif has and new:  # the body is an ellipsis, which the docstring replaces
            head = lines[first.lineno - 1][: first.col_offset].rstrip()
            lines[first.lineno - 1 : first.end_lineno] = [*([head] if head else []), *new]
        elif new:
            begin = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", []))])
            lines[begin - 1 : begin - 1] = [*new, ""]
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", STUBS.name, "-"]
    return subprocess.run(command, input="\n".join(lines), text=True, capture_output=True, check=True).stdout


def main() -> int:
    """Write or compare; 1 where `--check` finds a difference."""
    before = STUBS.read_text(encoding="utf-8")
    after = generated(before)
    if "--check" in sys.argv[1:]:
        if before != after:
            print(f"{STUBS.name} differs from the bindings' docstrings: run python scripts/stubs.py", file=sys.stderr)
        return int(before != after)
    STUBS.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
