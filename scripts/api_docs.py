"""Writes docs/api.md and docs/api/*.md, the reference, from the package's own docstrings, which griffe reads.

Every public name of the package and of its modules is listed, and of every class each member: methods, properties,
fields. A test compares the files with what this makes. It knows nothing of what the names do.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import griffe

REPOSITORY = Path(__file__).resolve().parents[1]
DOCS = REPOSITORY / "docs"
NOT_IMPORTED = ("cli",)
"""Modules that are programs, not names to import."""
WIDE = 100
"""Characters of a signature on one line."""
LITERAL_WORD = re.compile(r"[a-z]+[0-9]|[a-z],|[a-z]+[A-Z]")
"""Words that keep their small letter at the beginning of a sentence: dtypes, variables, names such as vLLM."""
NOTE = "Written by `python scripts/api_docs.py` from the docstrings; a test keeps it so."


def package() -> griffe.Module:
    """The package as griffe reads it: nothing is imported, and native classes are those of the stubs."""
    # Without warnings of entries that name several parameters.
    parser, options = (
        griffe.Parser.google,
        griffe.GoogleOptions(warnings=False, returns_multiple_items=False, returns_named_value=False),
    )
    paths = [REPOSITORY / "python"]
    loader = griffe.GriffeLoader(
        search_paths=paths, docstring_parser=parser, docstring_options=options, allow_inspection=False
    )
    made = cast(griffe.Module, loader.load("logitree"))
    loader.resolve_aliases(implicit=True, external=False)
    return made


@functools.cache
def pages() -> dict[str, str]:
    """The text of each page, by its path in the folder of the documents."""
    root = package()
    modules = [module for module in sorted_modules(root) if module.name not in NOT_IMPORTED]
    made = {"api/logitree.md": page(root, [], root)}
    index = ["# Reference", "", NOTE, "", "| module | is |", "|---|---|"]
    index.append(f"| [`logitree`](api/logitree.md) | {first(root)} |")
    for module in modules:
        made[f"api/{module.name}.md"] = page(module, sorted_modules(module), root)
        index.append(f"| [`{module.path}`](api/{module.name}.md) | {first(module)} |")
    index += ["", "| name | is |", "|---|---|"]
    index += [f"| [`{name}`](api/logitree.md#{name.lower()}) | {first(thing)} |" for name, thing in public(root)]
    return {"api.md": "\n".join(index) + "\n", **made}


def sorted_modules(of: griffe.Module) -> list[griffe.Module]:
    """The public modules in a module."""
    return [of.modules[name] for name in sorted(of.modules) if not name.startswith("_")]


def page(module: griffe.Module, inner: Iterable[griffe.Module], root: griffe.Module) -> str:
    """A module's names with all that is said of them, then those of the modules in it."""
    out = [f"# {module.path}", "", NOTE, ""]
    out += of_module(module, root)
    for one in inner:
        out += [f"# {one.path}", "", *of_module(one, root)]
    return "\n".join(out).rstrip() + "\n"


def of_module(module: griffe.Module, root: griffe.Module) -> Iterator[str]:
    """What the module says of itself, a table of its names, and each of them that the package does not have itself."""
    yield from said(module)
    names, of_root = public(module), {} if module is root else dict(public(root))
    own = [(name, thing) for name, thing in names if name not in of_root or of_root[name].path != thing.path]
    if names:
        yield from ("| name | is |", "|---|---|")
        for name, thing in names:
            page = "" if (name, thing) in own else "logitree.md"
            yield f"| [`{name}`]({page}#{name.lower()}) | {first(thing)} |"
        yield ""
    for name, thing in own:
        yield from (f"## {name}", "")
        if thing.is_class:
            yield from of_class(name, cast(griffe.Class, thing))
        elif thing.is_function:
            yield from of_function(name, cast(griffe.Function, thing))
        else:
            between = ": " if is_annotated(thing) else " = "
            yield from (f"`{name}{between}{annotation(thing)}`", "", *said(thing))


def public(module: griffe.Module) -> list[tuple[str, griffe.Object]]:
    """What a module offers: its `__all__`, or what it defines without an underscore."""
    exports = module.exports
    if exports is None:
        names = [name for name, one in module.members.items() if not one.is_alias and not one.is_module]
    else:
        names = [str(name) for name in exports]
    made = []
    for name in sorted(name for name in names if not name.startswith("_")):
        thing = module.members.get(name)
        if thing is None:  # a class that is made when it is asked for, in a private module
            thing = next(one.members[name] for one in module.modules.values() if name in one.members)
        made.append((name, native(cast(griffe.Object, thing.final_target if thing.is_alias else thing))))
    return made


def native(thing: griffe.Object) -> griffe.Object:
    """The function of the core that a module has by another name; any other thing itself."""
    value = str(getattr(thing, "value", ""))
    if not thing.is_attribute or not re.fullmatch(r"_core\.\w+", value):
        return thing
    core = thing.package.modules["_core"]
    found = core.members.get(value.removeprefix("_core."))
    return cast(griffe.Object, found) if found is not None and found.is_function else thing


def of_class(name: str, cls: griffe.Class) -> Iterator[str]:
    """How it is made, what it says, and its members."""
    bases = ", ".join(str(base).rpartition(".")[2] if "[" not in str(base) else str(base) for base in cls.bases)
    shown = [f"class {name}({bases})" if bases else f"class {name}"]
    made = constructors(cls)
    taken = [one.parameters for one in made] or ([cls.parameters] if "dataclass" in cls.labels else [])
    for parameters in taken:
        shown += ["", signature(name, without_self(parameters), None)]
    yield from ("```py", *"\n".join(shown).split("\n"), "```", "", *said(cls))
    for one in made:
        yield from said(one)
    members = members_of(cls)
    if not members:
        return
    given = {key: text for place in (cls, *made) for key, text in listed(place, "parameters").items()}
    yield from ("| member | is |", "|---|---|")
    yield from (f"| .{member} | {about(member, thing, cls, given)} |" for member, thing in members.items())
    yield ""
    for member, thing in members.items():
        if thing.is_function:
            yield from (f"### {name}.{member}", "", *of_function(member, cast(griffe.Function, thing)))


def constructors(cls: griffe.Class) -> list[griffe.Function]:
    """What makes an object: `__init__`, in stubs `__new__`, each with its overloads."""
    for name in ("__init__", "__new__"):
        if overloads := cls.overloads.get(name):
            return overloads
        if (found := cls.members.get(name)) is not None and found.is_function:
            return [cast(griffe.Function, found)]
    return []


def without_self(parameters: Iterable[griffe.Parameter]) -> list[griffe.Parameter]:
    """What a caller gives."""
    return [one for one in parameters if one.name not in ("self", "cls")]


def members_of(cls: griffe.Class) -> dict[str, griffe.Object]:
    """The public members of a class: its own, those that private bases give it, and all fields of a TypedDict."""
    made: dict[str, griffe.Object] = {}
    line = [*reversed(cls.mro()), cls]
    is_dict = any(str(base).endswith("TypedDict") for one in line for base in one.bases)
    for base in line:
        if base is cls or is_dict or base.name.startswith("_"):
            made |= {name: cast(griffe.Object, one) for name, one in base.members.items() if not name.startswith("_")}
    for name, overloads in cls.overloads.items():
        if overloads and not name.startswith("_"):
            made.setdefault(name, cast(griffe.Object, next((one for one in overloads if one.docstring), overloads[0])))
    made |= {name: cast(griffe.Object, cls) for name in set(listed(cls, "attributes")) - set(made)}
    return dict(sorted(made.items()))


def about(member: str, thing: griffe.Object, cls: griffe.Class, given: dict[str, str]) -> str:
    """What a table says of a member: its text, that of a base's, of a parameter of its name, or its type."""
    if (text := listed(cls, "attributes").get(member)) is not None:
        return sentence(text)
    if thing.docstring is not None:
        text = first(thing)
        return text.partition(". ")[0].rstrip(".") + "." if thing.is_function else text
    for base in cls.mro():
        if (of_base := base.members.get(member)) is not None and of_base.docstring is not None:
            return first(cast(griffe.Object, of_base))
    return sentence(given.get(member, "")) or first(thing)


def of_function(name: str, function: griffe.Function) -> Iterator[str]:
    """The signatures of a function, and what it says."""
    overloads = function.overloads or []
    if not overloads and function.parent is not None and function.parent.is_class:
        overloads = cast(griffe.Class, function.parent).overloads.get(function.name, [])
    yield "```py"
    for one in overloads or [function]:
        before = "async " if "async" in one.labels else ""
        yield from (before + signature(name, without_self(one.parameters), one.returns)).split("\n")
    yield from ("```", "", *said(function))


def signature(name: str, parameters: Iterable[griffe.Parameter], returns: Any) -> str:
    """A signature, each parameter on a line of its own where it is long."""
    shown, keywords = [], False
    for one in parameters:
        kind = one.kind
        keywords = keywords or kind is griffe.ParameterKind.var_positional
        if kind is griffe.ParameterKind.keyword_only and not keywords:
            shown.append("*")
            keywords = True
        stars = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}.get(kind, "")
        text = stars + one.name + (f": {one.annotation}" if one.annotation is not None else "")
        if one.default is not None and not stars:
            default = "..." if str(one.default).startswith("_") else one.default  # a value that has no public name
            text += f" = {default}" if one.annotation is not None else f"={default}"
        shown.append(text)
    after = f" -> {returns}" if returns is not None else ""
    line = f"{name}({', '.join(shown)}){after}"
    if len(line) <= WIDE or not shown:
        return line
    return "\n".join([f"{name}(", *(f"    {one}," for one in shown), f"){after}"])


def said(thing: griffe.Object | griffe.Alias) -> Iterator[str]:
    """A docstring: its text, then parameters, results and errors. Attributes are members."""
    if thing.docstring is None:
        return
    for section in thing.docstring.parsed:
        kind = section.kind.value
        if kind == "text":
            yield from (*section.value.replace("```python", "```py").split("\n"), "")
        elif kind in ("parameters", "other parameters"):
            yield from ("| parameter | is |", "|---|---|")
            yield from (f"| `{item.name}` | {sentence(item.description)} |" for item in section.value)
            yield ""
        elif kind in ("returns", "yields"):
            yield from (f"{kind.capitalize()}: {one_line(item.description)}" for item in section.value)
            yield ""
        elif kind == "raises":
            yield from ("Raises:", "")
            for item in section.value:
                yield f"- `{str(item.annotation).strip('()')}`: {one_line(item.description)}"
            yield ""
        elif kind == "admonition":
            yield from (f"{section.title}: {one_line(section.value.description)}", "")


def listed(thing: griffe.Object, kind: str) -> dict[str, str]:
    """What a docstring's sections of a kind say, by name."""
    parsed = thing.docstring.parsed if thing.docstring is not None else ()
    return {item.name: item.description for section in parsed if section.kind.value == kind for item in section.value}


def annotation(thing: griffe.Object | griffe.Alias) -> str:
    """The type of a value or of a property; of a value without one how it is written."""
    return str(thing.annotation if is_annotated(thing) else getattr(thing, "value", ""))


def is_annotated(thing: griffe.Object | griffe.Alias) -> bool:
    """Whether a value or a property has a type."""
    return getattr(thing, "annotation", None) is not None


def first(thing: griffe.Object | griffe.Alias) -> str:
    """The first paragraph of a docstring, on one line of a table."""
    if thing.docstring is None:
        return f"`{annotation(thing)}`".replace("|", "\\|") if thing.is_attribute else ""
    return one_line(thing.docstring.value.split("\n\n")[0]).replace("|", "\\|")


def sentence(text: str) -> str:
    """What a list says of a parameter or an attribute, with a capital letter and an end."""
    text = one_line(text.split("\n\n")[0]).replace("|", "\\|")
    end = "" if text.endswith((".", ":")) else "."
    head = text[:1] if LITERAL_WORD.match(text) else text[:1].upper()
    return f"{head}{text[1:].rstrip(';')}{end}" if text else ""


def one_line(text: str) -> str:
    """A text without line breaks."""
    return " ".join(text.split())


def main() -> None:
    """Writes the pages, and removes those of modules that are gone."""
    made = pages()
    for old in (DOCS / "api").glob("*.md"):
        if f"api/{old.name}" not in made:
            old.unlink()
    for path, text in made.items():
        (DOCS / path).parent.mkdir(exist_ok=True)
        (DOCS / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
