"""Writes docs/api.md from the package's own docstrings: `python scripts/api_docs.py > docs/api.md`.

A test compares the file with what this prints. It knows nothing of what the names do.
"""

from __future__ import annotations

import inspect
import types

import logitree

GROUPS = (
    ("Functions", lambda thing: inspect.isroutine(thing)),
    ("Errors", lambda thing: inspect.isclass(thing) and issubclass(thing, Exception)),
    ("Classes", inspect.isclass),
    ("Values and types", lambda thing: True),
)


def markdown() -> str:
    """The whole document."""
    out = [
        "# The public names",
        "",
        "Written by `python scripts/api_docs.py > docs/api.md`; a test keeps it so. The types",
        "in `python/logitree/_core.pyi`, which editors show, say more: shapes, units, errors.",
    ]
    left = [name for name in logitree.__all__ if not name.startswith("__")]
    for title, belongs in GROUPS:
        mine = [name for name in left if belongs(getattr(logitree, name))]
        left = [name for name in left if name not in mine]
        if mine:
            out += ["", f"## {title}", "", "| name | is |", "|---|---|"]
            out += [f"| `{name}` | {about(getattr(logitree, name))} |" for name in sorted(mine)]
        if title == "Classes":
            for name in sorted(mine):
                out += members(name, getattr(logitree, name))
    return "\n".join(out) + "\n"


def members(name: str, cls: type) -> list[str]:
    """A table of what a class offers; nothing for one that only holds data."""
    shown = [n for n, thing in vars(cls).items() if not n.startswith("_") and about(thing)]
    if not shown:
        return []
    rows = [f"| .{n} | {about(vars(cls)[n])} |" for n in sorted(shown)]
    return ["", f"### {name}", "", "| member | is |", "|---|---|", *rows]


def about(thing: object) -> str:
    """The first paragraph of a docstring, on one line; a plain value is described by its type, a union by itself."""
    if isinstance(thing, classmethod | staticmethod):
        thing = thing.__func__
    if isinstance(thing, types.UnionType):
        return " or ".join(part.__name__ for part in thing.__args__)
    described = callable(thing) or inspect.isdatadescriptor(thing) or inspect.ismodule(thing)
    if not described and not type(thing).__module__.startswith("logitree"):
        return ""
    text = inspect.getdoc(thing if described else type(thing)) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


if __name__ == "__main__":
    print(markdown(), end="")
