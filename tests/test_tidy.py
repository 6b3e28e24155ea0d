"""Holds the source tree to ARCHITECTURE.md: who may import whom, how files open, what must not stand in them.

It reads files only; it knows nothing of what the code computes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
CORE = REPOSITORY / "crates" / "logitree" / "src"
PACKAGE = REPOSITORY / "python" / "logitree"

BOTTOM = frozenset({"vocabulary", "trie", "mask"})
"""One room with three doors: a vocabulary builds its trie, and both speak in masks."""

LAW: dict[str, frozenset[str]] = {
    "error": frozenset(),
    "kernel": frozenset(),
    "file": frozenset(),
    "threads": frozenset(),
    "vocabulary": BOTTOM | {"file"},
    "prefix": frozenset({"file", "kernel"}),
    "beam": frozenset({"prefix", "mask", "kernel"}),
    "trie": BOTTOM,
    "mask": BOTTOM | {"kernel"},
    "grammar": frozenset(),
    "constraint": BOTTOM | {"grammar", "prefix", "threads"},
    "sampling": frozenset({"mask", "kernel", "threads"}),
    "metrics": frozenset({"kernel"}),
    "trace": frozenset({"sampling", "metrics"}),
    "decoder": BOTTOM | {"threads", "grammar", "constraint", "sampling", "metrics", "trace"},
    "lib": frozenset({"decoder", "constraint", "sampling", "metrics", "trace", "grammar", "prefix", "beam"}) | BOTTOM,
}
"""Room -> rooms it may import. Every room may use `error` and the names of the crate's root.

`kernel` is loops over plain floats; a trace holds the plain values that sampling and metrics say of a step.
"""

RUNTIMES = frozenset({"llama_cpp", "mlx_lm", "onnxruntime_genai", "sglang", "tensorrt_llm", "transformers", "vllm"})
HOUSES = {"engines", "cli"}
"""Subpackages: each may import the public API, and cli also the engines."""

ENGINES_MAY = {"_core", "_errors"}
"""Where the public names that engines use are made."""

MAY_BE_UNSAFE = {
    "SIMD": "crates/logitree/src/mask/",
    "SIMD of float loops": "crates/logitree/src/kernel/",
    "memory map": "crates/logitree/src/file.rs",
    "foreign functions": "crates/logitree-c/",
    "Python buffers": "crates/logitree-python/src/",
    "counting allocators": "crates/logitree/tests/",
}
"""Why a file may say unsafe -> where such files are. Each also opts in with `allow(unsafe_code)`."""

TOUCH_FILES = {"file.rs", "vocabulary", "prefix"}
"""Rooms of the core that read files, or write an index."""

CODE_LINES = 500
EXCUSE = "tidy: long because"

UNFINISHED = re.compile(
    "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", r"unimple" + r"mented!", "NotImple" + "mentedError"))
)
MACHINE = re.compile("(?<![\\w.$~])/(?:" + "|".join(("home", "root", "opt", "work", "Users", "mnt")) + r")/[\w.]")


def files(*suffixes: str) -> list[Path]:
    """The repository's own files with these suffixes, what is built left out."""
    built = {"results", "target", ".venv", ".venv-engines", ".git", "node_modules", "__pycache__", "dist"}
    found: list[Path] = []
    todo = [REPOSITORY]
    while todo:
        for path in todo.pop().iterdir():
            if path.name in built or path.name.endswith("_cache"):
                continue
            if path.is_dir():
                todo.append(path)
            elif path.suffix in suffixes or path.name in suffixes:
                found.append(path)
    return sorted(found)


def name(path: Path) -> str:
    """The path as a message shows it."""
    return path.relative_to(REPOSITORY).as_posix()


def each(*suffixes: str) -> pytest.MarkDecorator:
    """Run a test once for each file with these suffixes."""
    return pytest.mark.parametrize("path", files(*suffixes), ids=name)


# -- Rust


def without_comments(text: str) -> str:
    """Rust without comments, strings and the tests at a file's end (close enough for finding paths)."""
    text = re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", text)[0]
    text = re.sub(r'b?r#*".*?"#*|b?"(?:\\.|[^"\\])*"', '""', text, flags=re.DOTALL)
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


def group_heads(text: str) -> Iterator[str]:
    """First names inside a `{...}` of a use tree: `{a::b, c}` gives a, c."""
    depth, path = 0, ""
    for c in text:
        depth += (c == "{") - (c == "}")
        if (depth == 1 and c == ",") or depth == 0:
            yield re.split(r"::| as ", path.strip("{ \n"))[0].strip()
            path = ""
        else:
            path += c
        if depth == 0:
            return


def crate_names(text: str, depth: int) -> Iterator[str]:
    """Names directly under the crate's root that the text reaches, by `crate::` or by enough `super::`."""
    root = rf"\bcrate::|(?<!::)\bsuper::(?:super::){{{depth - 1},}}"
    for found in re.finditer(root, text):
        rest = text[found.end() :]
        if rest.startswith("{"):
            yield from group_heads(rest)
        elif word := re.match(r"\w+", rest):
            yield word[0]


def core_files() -> list[Path]:
    """The core's sources that are not tests."""
    return [p for p in sorted(CORE.rglob("*.rs")) if p.stem != "tests" and "tests" not in p.parts]


@pytest.mark.parametrize("path", core_files(), ids=name)
def test_core_imports_point_left(path: Path) -> None:
    inside = path.relative_to(CORE).with_suffix("").parts
    room = inside[0]
    assert room in LAW, f"{name(path)} is in no room of ARCHITECTURE.md"
    depth = len(inside) - (inside[-1] == "mod") if room != "lib" else 1
    reached = set(crate_names(without_comments(path.read_text(encoding="utf-8")), depth)) & set(LAW)
    forbidden = reached - LAW[room] - {room, "error"}
    assert not forbidden, f"{room} must not know {sorted(forbidden)} ({name(path)})"


@pytest.mark.parametrize("path", core_files(), ids=name)
def test_core_prints_nothing_and_touches_files_where_it_may(path: Path) -> None:
    text = without_comments(path.read_text(encoding="utf-8"))
    assert not re.search(r"\b(e?print(ln)?|dbg)!", text)
    if path.relative_to(CORE).parts[0] not in TOUCH_FILES:
        assert not re.search(r"\bstd::(fs|net|process|env)\b", text)


def test_core_compiles_without_python() -> None:
    assert not re.search(r"pyo3|numpy", (CORE.parent / "Cargo.toml").read_text(encoding="utf-8"))


@each(".rs")
def test_rust_file_opens_with_its_purpose(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    opening = [line for line in lines if line and not line.startswith("#!")]
    assert opening, f"{name(path)} is empty"
    assert opening[0].startswith("//! "), f"{name(path)} does not open with //! and what it does"


@each(".rs")
def test_unsafe_stands_only_where_it_may(path: Path) -> None:
    text = without_comments(path.read_text(encoding="utf-8"))
    if re.search(r"\bunsafe\b", re.sub(r"\bunsafe_\w+", "", text)):
        assert any(name(path).startswith(where) for where in MAY_BE_UNSAFE.values()), name(path)
        assert "allow(unsafe_code)" in text, f"{name(path)} does not say allow(unsafe_code)"


# -- Python


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Absolute names of the modules that a file of the package imports, and whether when it is loaded."""
    tree = parsed(path)
    lazy = {
        id(inner)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef) or is_type_checking(outer)
        for inner in ast.walk(outer)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) not in lazy
        elif isinstance(node, ast.ImportFrom):
            module = absolute(path, node)
            yield module, id(node) not in lazy
            for alias in node.names if module.split(".")[0] == "logitree" else ():
                if is_module(f"{module}.{alias.name}"):
                    yield f"{module}.{alias.name}", id(node) not in lazy


def absolute(path: Path, node: ast.ImportFrom) -> str:
    """The module that a `from ... import` names, dots resolved."""
    if not node.level:
        return node.module or ""
    package = ["logitree", *path.relative_to(PACKAGE).parts[:-1]]
    base = package[: len(package) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def is_module(dotted: str) -> bool:
    """Whether this is a module of the package rather than a name in one."""
    path = PACKAGE.joinpath(*dotted.split(".")[1:])
    return path.is_dir() or path.with_suffix(".py").exists() or path.with_suffix(".pyi").exists()


def is_type_checking(node: ast.AST) -> bool:
    """Whether this is `if TYPE_CHECKING:`."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def package_files() -> list[Path]:
    """The package's modules."""
    return sorted(PACKAGE.rglob("*.py"))


def parsed(path: Path) -> ast.Module:
    """The file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"))


def forbidden_import(house: str | None, target: list[str]) -> str | None:
    """Why a room may not import a module of the package (its dotted name without `logitree`), or None."""
    private = [part for part in target if part.startswith("_") and not part.endswith("__")]
    if target[0] == house:
        return None
    if house is None:
        return "the package's inside knows its users" if target[0] in HOUSES - {"engines"} else None
    if house == "engines":
        # The package's door loads the engines' interface: engines take the public names where they are made.
        fine = target[0] in ENGINES_MAY and len(target) == 1
        return None if fine else "an engine knows the public API only"
    if private:
        return f"{house} reaches past the public API"
    return f"{house} knows {target[0]}" if target[0] in HOUSES - {"engines"} and house != "cli" else None


@pytest.mark.parametrize("path", package_files(), ids=name)
def test_package_imports_point_left(path: Path) -> None:
    inside = path.relative_to(PACKAGE).with_suffix("").parts
    house = "cli" if inside[0] == "__main__" else inside[0] if inside[0] in HOUSES else None
    for module, at_load in imports(path):
        target = module.split(".")
        if target[0] == "logitree" and len(target) > 1:
            why = forbidden_import(house, target[1:])
            assert why is None, f"{name(path)} imports {module}: {why}"
            engine = target[1] == "engines" and len(target) > 2 and not target[2].startswith("_")
            assert not (house is None and engine and at_load), f"{name(path)} loads {module} with the package"


@pytest.mark.parametrize("path", package_files(), ids=name)
def test_package_loads_numpy_and_nothing_more(path: Path) -> None:
    inside = path.relative_to(PACKAGE).with_suffix("").parts
    allowed = {"numpy", "logitree"} | set(_standard_library())
    if inside[0] == "engines":
        allowed |= RUNTIMES | {"torch"}
    outside = {m.split(".")[0] for m, at_load in imports(path) if at_load} - allowed
    assert not outside, f"{name(path)} imports {sorted(outside)} when it is loaded"


def _standard_library() -> frozenset[str]:
    import sys

    return sys.stdlib_module_names


@pytest.mark.parametrize("path", sorted((PACKAGE / "engines").glob("*.py")), ids=name)
def test_an_engine_knows_one_runtime(path: Path) -> None:
    used = {m.split(".")[0] for m, _ in imports(path)} & RUNTIMES
    assert len(used) <= 1, f"{name(path)} knows {sorted(used)}"
    if not path.stem.startswith("_"):
        others = {m for m, _ in imports(path) if m.startswith("logitree.engines.")}
        public = {m for m in others if not m.split(".")[2].startswith("_")}
        assert not public, f"{name(path)} knows another engine: {sorted(public)}"


def test_modules_of_the_package_are_private() -> None:
    shown = [p.name for p in PACKAGE.glob("*.py") if not p.name.startswith("_")]
    assert not shown, f"the package's surface is its __init__: make private: {shown}"


@each(".py")
def test_python_file_opens_with_its_purpose(path: Path) -> None:
    assert ast.get_docstring(parsed(path)), f"{name(path)} has no docstring that says what it does"


# -- every file


def code_lines(path: Path) -> int:
    """Lines that are neither blank nor comment nor docstring, tests at the end of a Rust file left out."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".rs":
        text = re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", text)[0]
        text = re.sub(r"^\s*//[^\n]*", "", text, flags=re.MULTILINE)
        return sum(1 for line in text.splitlines() if line.strip())
    tree = ast.parse(text)
    prose = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(text.splitlines(), start=1)
    return sum(1 for i, line in lines if i not in prose and line.strip() and not line.strip().startswith("#"))


@each(".rs", ".py")
def test_file_is_short_or_says_why(path: Path) -> None:
    count = code_lines(path)
    assert count <= CODE_LINES or EXCUSE in path.read_text(encoding="utf-8"), f"{name(path)}: {count} code lines"


@each(".rs", ".py", ".md", ".toml", ".pyi", "Makefile")
def test_nothing_is_left_open_and_no_machine_is_named(path: Path) -> None:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        assert not UNFINISHED.search(line), f"{name(path)}:{number}: {line.strip()}"
        assert not MACHINE.search(line), f"{name(path)}:{number} names a machine's path: {line.strip()}"


# -- the test itself can fail


def test_paths_are_found_in_rust() -> None:
    text = "use crate::{mask::{Legal, words}, error::Error as E, trace};"
    text += "fn f() { crate::decoder::g(super::trie) }"
    assert set(crate_names(text, 1)) == {"mask", "error", "trace", "decoder"} | {"trie"}
    assert set(crate_names(text, 2)) == {"mask", "error", "trace", "decoder"}
    assert "unsafe" not in without_comments('let a = "unsafe"; // unsafe\n/* unsafe */')


def test_marks_are_found() -> None:
    assert UNFINISHED.search("# TO" + "DO later")
    assert MACHINE.search("see /ho" + "me/me/x")
    assert not MACHINE.search("../shared/mnt/x and https://a.b/opt/c")
