"""Writes docs/api.md from the package's own docstrings: `python scripts/api_docs.py > docs/api.md`.

Every public name of the package and of its modules is listed, and of every class each member: methods, properties,
fields. A test compares the file with what this prints. It knows nothing of what the names do.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import inspect
import pkgutil
import re
import sys
import textwrap
import types
import typing
from collections.abc import Iterator
from pathlib import Path

import logitree

GROUPS = (
    ("Functions", lambda thing: inspect.isroutine(thing)),
    ("Errors", lambda thing: inspect.isclass(thing) and issubclass(thing, Exception)),
    ("Classes", inspect.isclass),
    ("Values and types", lambda thing: True),
)
STUB = ast.parse((Path(logitree.__file__).parent / "_core.pyi").read_text(encoding="utf-8"))
"""The types of the native classes."""
NOT_IMPORTED = ("cli",)
"""Modules that are programs, not names to import."""


def modules() -> Iterator[str]:
    """The public modules below the package, `engines.llama_cpp` among them."""
    for found in sorted(pkgutil.iter_modules(logitree.__path__), key=lambda module: module.name):
        if found.name.startswith("_") or found.name in NOT_IMPORTED:
            continue
        yield found.name
        if found.ispkg:
            package = importlib.import_module(f"logitree.{found.name}")
            inner = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
            yield from (f"{found.name}.{name}" for name in inner if not name.startswith("_"))


def public(module: types.ModuleType) -> list[str]:
    """What a module offers: its `__all__`, or what it defines without an underscore."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return [name for name in listed if not name.startswith("__")]
    return [name for name in defined(module) if not name.startswith("_")]


def defined(module: types.ModuleType) -> dict[str, str]:
    """The names that a module assigns or defines at its top, each with the docstring that follows an assignment."""
    made: dict[str, str] = {}
    body = ast.parse(inspect.getsource(module)).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            made[node.name] = ""
        for name in targets(node):
            made[name] = docstring(after)
    return made


def targets(node: ast.AST, *, of_self: bool = False) -> list[str]:
    """The names to which a statement assigns; `of_self`: the members, `self.x` as `x`."""
    given = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    flat = [one for target in given for one in (target.elts if isinstance(target, ast.Tuple) else [target])]
    if of_self:
        own = [one for one in flat if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name)]
        return [one.attr for one in own if isinstance(one.value, ast.Name) and one.value.id == "self"]
    return [one.id for one in flat if isinstance(one, ast.Name)]


def docstring(node: ast.AST | None) -> str:
    """The text of a statement that is a text."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return first_paragraph(node.value.value)
    return ""


def markdown() -> str:
    """The whole document."""
    out = [
        "# The public names",
        "",
        "Written by `python scripts/api_docs.py > docs/api.md`; a test keeps it so. The types",
        "in `python/logitree/_core.pyi`, which editors show, say more: shapes, units, errors.",
        "",
        "The package itself comes first, then its modules.",
    ]
    left = [name for name in logitree.__all__ if not name.startswith("__")]
    for title, belongs in GROUPS:
        mine = [name for name in left if belongs(getattr(logitree, name))]
        left = [name for name in left if name not in mine]
        if mine:
            out += ["", f"## {title}", "", "| name | is |", "|---|---|"]
            out += [f"| `{name}` | {about(getattr(logitree, name))} |" for name in sorted(mine)]
        if title in ("Classes", "Errors"):
            for name in sorted(mine):
                out += members(name, getattr(logitree, name))
    for name in modules():
        out += of_module(name)
    return "\n".join(out) + "\n"


def of_module(name: str) -> list[str]:
    """A module's names, then the members of its classes that the package does not have itself."""
    module = importlib.import_module(f"logitree.{name}")
    later = derived_later(module)
    texts = {**texts_of(module), **later}
    out = ["", f"## logitree.{name}", "", first_paragraph(inspect.getdoc(module) or "")]
    names = sorted(public(module))
    if names:
        out += ["", "| name | is |", "|---|---|"]
        for one in names:
            out.append(f"| `{one}` | {texts.get(one) or about_value(getattr(module, one))} |")
    for one in names:
        if one in later:
            continue
        thing = getattr(module, one)
        if inspect.isclass(thing) and vars(logitree).get(one) is not thing:
            out += members(f"{name}.{one}", thing)
    return out


def about_value(thing: object) -> str:
    """What is said of a thing without a text of its own: its docstring, or its type."""
    return about(thing) or of_type(type(thing).__name__)


def derived_later(module: types.ModuleType) -> dict[str, str]:
    """The classes that derive from another package's, with their texts, read from the source: that may be absent.

    A module lists them as `_MODULES`, each with the private module that has it. Their members are those of the base.
    """
    made: dict[str, str] = {}
    for name, private in getattr(module, "_MODULES", {}).items():
        source = (Path(module.__path__[0]) / f"{private}.py").read_text(encoding="utf-8")
        classes = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}
        made[name] = first_paragraph(ast.get_docstring(classes[name]) or "")
    return made


def texts_of(module: types.ModuleType) -> dict[str, str]:
    """The texts of a module's values, those that it has from private modules included."""
    made: dict[str, str] = {}
    python = [(name, other) for name, other in sys.modules.items() if name != "logitree._core"]
    for name, other in sorted(python):
        if name.startswith("logitree._") or name.startswith(f"{module.__name__}._"):
            made |= {one: text for one, text in defined(other).items() if text and hasattr(module, one)}
    return {**made, **{one: text for one, text in defined(module).items() if text}}


def members(name: str, cls: type) -> list[str]:
    """A table of what a class offers."""
    rows = [f"| .{member} | {text} |" for member, text in sorted(members_of(cls).items())]
    return ["", f"### {name}", "", "| member | is |", "|---|---|", *rows] if rows else []


def members_of(cls: type) -> dict[str, str]:
    """The public members of a class and what is said of each: its own, and those that private bases give it."""
    made: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base is cls or (base.__module__.startswith("logitree") and base.__name__.startswith("_")):
            made |= own_members(base)
    return {member: text for member, text in made.items() if not member.startswith("_")}


def own_members(cls: type) -> dict[str, str]:
    """What a class defines itself."""
    made = {member: about(thing) for member, thing in vars(cls).items()}
    hints = {member: of_type(hint) for member, hint in vars(cls).get("__annotations__", {}).items()}
    made = {**dict.fromkeys(hints, ""), **made}
    if dataclasses.is_dataclass(cls) or typing.is_typeddict(cls):
        made |= dict.fromkeys(hints, "")
    said = attributes(cls)
    given = parameters(cls)
    for member in {*made, *said}:
        texts = (said.get(member), made.get(member), inherited(cls, member), *given.get(member, ()), hints.get(member))
        made[member] = next((text for text in texts if text), "")
    return made


def inherited(cls: type, member: str) -> str:
    """What a base says of a member that the class sets again."""
    bases = [base for base in cls.__mro__[1:] if base.__module__.startswith("logitree")]
    return next((text for base in bases if (text := attributes(base).get(member))), "")


def parameters(cls: type) -> dict[str, tuple[str, str]]:
    """What is said of the constructor's parameters, and their types: members of their names are these."""
    text = f"{inspect.getdoc(cls)}\n{inspect.getdoc(cls.__init__)}"
    listed = dict(re.findall(r"^    (\w+): (.+(?:\n        .+)*)", text, re.MULTILINE))
    try:
        taken = inspect.signature(cls).parameters
    except (TypeError, ValueError):
        return {}
    return {
        name: (sentence(listed.get(name, "")), of_type(one.annotation))
        for name, one in taken.items()
        if one.annotation is not inspect.Parameter.empty
    }


def attributes(cls: type) -> dict[str, str]:
    """The texts of a class's fields: those that follow them in the source, and those of the docstring's list."""
    made: dict[str, str] = {}
    listed = re.search(r"^Attributes:\n((?:[ \t]+.*\n?)+)", inspect.getdoc(cls) or "", re.MULTILINE)
    for line in re.split(r"\n(?=    \w+:)", listed[1]) if listed else ():
        member, _, text = line.strip().partition(": ")
        made[member] = sentence(text)
    for node in ast.walk(source_of(cls)):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for statement, after in zip(body, [*body[1:], None], strict=True):
            is_class = isinstance(node, ast.ClassDef)
            for member in targets(statement, of_self=not is_class):
                if (text := docstring(after)) or not is_class:
                    made[member] = text or made.get(member, "")
    return made


def source_of(cls: type) -> ast.AST:
    """The source of a class; of a native one that of its stub."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError):
        native = [one for one in STUB.body if isinstance(one, ast.ClassDef) and one.name == cls.__name__]
        return native[0] if native else ast.Module(body=[], type_ignores=[])


def of_type(hint: object) -> str:
    """A type as a field without a text is described."""
    hint = hint.__forward_arg__ if isinstance(hint, typing.ForwardRef) else hint
    text = hint if isinstance(hint, str) else getattr(hint, "__name__", str(hint))
    return f"`{text}`".replace("|", "\\|")


def about(thing: object) -> str:
    """The first paragraph of a docstring, on one line; a plain value is described by its type, a union by itself."""
    if isinstance(thing, classmethod | staticmethod):
        thing = thing.__func__
    if isinstance(thing, functools.cached_property):
        thing = thing.func
    if isinstance(thing, types.UnionType):
        return " or ".join(part.__name__ for part in thing.__args__)
    described = callable(thing) or inspect.isdatadescriptor(thing) or inspect.ismodule(thing)
    if not described and not type(thing).__module__.startswith("logitree"):
        return ""
    return first_paragraph(inspect.getdoc(thing if described else type(thing)) or "")


def sentence(text: str) -> str:
    """What a list says of a parameter or an attribute, with a capital letter and an end."""
    text = first_paragraph(textwrap.dedent(text)).rstrip(".;")
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def first_paragraph(text: str) -> str:
    """The first paragraph, on one line of a table."""
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split()).replace("|", "\\|")


if __name__ == "__main__":
    print(markdown(), end="")
