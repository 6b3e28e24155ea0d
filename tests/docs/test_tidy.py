"""Holds the source tree to ARCHITECTURE.md: who imports whom, how files open, where unsafe code and files are allowed.

The import law is the table of rooms in ARCHITECTURE.md, parsed by `rooms`. Prose is checked for idioms that a reader of
technical English would have to decode.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
CRATES = REPOSITORY / "crates"
CORE = (
    "logitree-automata",
    "logitree-grammar",
    "logitree-tokens",
    "logitree-constraint",
    "logitree-sampling",
    "logitree",
    "logitree-llama",
    "logitree-c",
)
"""The crates that compile without Python."""
PACKAGE = REPOSITORY / "python" / "logitree"
BENCH = REPOSITORY / "bench" / "logitree_bench"

PUBLIC = "public names"
"""In the table: what users may import, the package and its modules without an underscore."""

RUNTIMES = frozenset({"llama_cpp", "mlx_lm", "onnxruntime_genai", "sglang", "tensorrt_llm", "transformers", "vllm"})

MAY_BE_UNSAFE = {
    "SIMD": ("crates/logitree-tokens/src/simd/", "crates/logitree-llama/src/split.rs"),
    "memory map": ("crates/logitree-tokens/src/file.rs",),
    "foreign functions": ("crates/logitree-llama/src/interface.rs", "crates/logitree-c/"),
    "Python buffers": ("crates/logitree-python/src/",),
    "counting allocators": ("crates/logitree/tests/memory/",),
}
"""Why a file may be unsafe -> where such files are. Each also opts in with `allow(unsafe_code)`."""

TOUCH_FILES = ("file", "vocabulary", "catalogue")
"""Rooms of the core that read files, or write an index."""

CODE_LINES = 800
CORE_LINES = 600
"""Most lines of a file that is compiled into the core, its comments included."""
EXCUSE = "tidy: long because"

UNFINISHED = re.compile(
    "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", r"unimple" + r"mented!", "NotImple" + "mentedError"))
)
MACHINE = re.compile("(?<![\\w.$~])/(?:" + "|".join(("home", "root", "opt", "work", "Users", "mnt")) + r")/[\w.]")

IDIOMS = (
    (r"\bways? on\b", "continuation; forced token"),
    (r"\b(?:nobody|somebody|whoever|whomever)\b", "the caller, the user, another thread"),
    (r"\banew\b", "again"),
    (r"\bthe first first\b", "in order"),
    (r"\brefuses? to know\b", "does not depend on"),
    (r"\btold\b", "gets, reports, distinguished"),
    (r"\bof which\b", "whose, with; or a sentence of its own"),
    (r"\bwhat [\w` ]{1,60} is what\b", "the noun"),
    (r"\b(?:goes|go|going|went) on\b", "continues"),
    (r"\bfor ever\b", "forever"),
    (r"(?<!cannot\s)\bstands?\b(?! for\b|-)|\bstood\b", "is"),
    (
        r"\bbehind (?!(?:an?|one|the) (?:\w+'?s? )?(?:lock|mutex|flag|feature|pointer|reference|trait|interface)\b)",
        "after",
    ),
    (r"(?<!there\s)\b(?:is|are|was|were|be) none\b(?! of\b)", "is not a ..., or None"),
    (r"\bso long as\b", "while, as long as"),
)
"""Patterns that prose must not contain, and what to write instead."""


def files(*suffixes: str) -> list[Path]:
    """The repository's own files with these suffixes or names, without build outputs."""
    built = {"results", "target", ".git", "node_modules", "__pycache__", "dist"}
    found: list[Path] = []
    left = [REPOSITORY]
    while left:
        for path in left.pop().iterdir():
            if path.name in built or path.name.startswith(".venv") or path.name.endswith("_cache"):
                continue
            if path.is_dir():
                left.append(path)
            elif path.suffix in suffixes or path.name in suffixes:
                found.append(path)
    return sorted(found)


def name(path: Path) -> str:
    """The path as a message shows it."""
    return path.relative_to(REPOSITORY).as_posix()


def read(path: Path) -> str:
    """The text of a file."""
    return path.read_text(encoding="utf-8")


def check(problems: Iterable[str]) -> None:
    """Fail with all problems, one a line."""
    found = list(problems)
    assert not found, "\n" + "\n".join(found)


# -- the law


@dataclass(frozen=True)
class Room:
    """A row of ARCHITECTURE.md's table."""

    name: str
    where: tuple[str, ...]
    may_import: frozenset[str]


def rooms(text: str) -> dict[str, Room]:
    """The table with the columns room, where and may import; braces in a path are expanded."""
    table = text.partition("| room | where | may import |")[2].partition("\n\n")[0]
    found: dict[str, Room] = {}
    for row in table.splitlines()[2:]:
        title, where, may_import = (cell.strip() for cell in row.split("|")[1:4])
        paths = tuple(path for quoted in re.findall(r"`([^`]+)`", where) for path in expanded(quoted))
        imports = frozenset() if may_import == "nothing" else frozenset(re.split(r",\s*", may_import))
        found[title] = Room(title, paths, imports)
    unknown = {(r.name, other) for r in found.values() for other in r.may_import - {*found, PUBLIC}}
    assert not unknown, f"the table names rooms that it does not have: {sorted(unknown)}"
    return found


def expanded(path: str) -> Iterator[str]:
    """`a/{b,c}` is a/b and a/c."""
    head, brace, rest = path.partition("{")
    if not brace:
        yield path
        return
    inner, _, tail = rest.partition("}")
    for part in inner.split(","):
        yield f"{head}{part}{tail}"


LAW = rooms(read(REPOSITORY / "ARCHITECTURE.md"))


def room_of(path: str) -> str | None:
    """The room with the longest path that contains this one, such as `crates/logitree/src/trie/walk`."""
    best, found = -1, None
    for room in LAW.values():
        for where in room.where:
            inside, here = (re.sub(r"\.(?:rs|pyi?)$", "", p) for p in (where, path))
            if len(inside) > best and (here == inside or here.startswith(inside + "/")):
                best, found = len(inside), room.name
    return found


# -- Rust


def without_tests(text: str) -> str:
    """Rust without the tests at the end of a file."""
    return re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", text)[0]


def without_comments(text: str) -> str:
    """Rust without comments, strings and the tests at the end of a file; close enough for finding paths."""
    text = without_tests(text)
    text = re.sub(r'b?r#*".*?"#*|b?"(?:\\.|[^"\\])*"', '""', text, flags=re.DOTALL)
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


def tree_paths(text: str) -> Iterator[list[str]]:
    """The paths of a use tree at the start of the text: `a::{b::c, d}` gives a b c and a d."""
    word = re.match(r"\s*(\w+)\s*", text)
    if word is None:
        if text.lstrip().startswith("{"):
            yield from group_paths(text.lstrip())
        return
    rest = text[word.end() :]
    if not rest.startswith("::"):
        yield [word[1]]
        return
    yielded = False
    for path in tree_paths(rest[2:]):
        yielded = True
        yield [word[1], *path]
    if not yielded:
        yield [word[1]]


def group_paths(text: str) -> Iterator[list[str]]:
    """The paths of a `{...}` at the start of the text."""
    depth, begin = 0, 1
    for i, c in enumerate(text):
        depth += (c == "{") - (c == "}")
        if (c == "," and depth == 1) or depth == 0:
            yield from tree_paths(text[begin:i])
            begin = i + 1
        if depth == 0:
            return


def reached(text: str, crate: str, module: list[str]) -> Iterator[str]:
    """The repository paths of the modules that a Rust text names by `crate::`, `super::` or another crate's name."""
    for found in re.finditer(r"(?<![\w:])(crate|logitree(?:_\w+)?|super(?:::super)*)::", text):
        root, base = crate, list[str]()
        if found[1].startswith("super"):
            base = module[: max(0, len(module) - found[1].count("super"))]
        elif found[1] != "crate":
            root = found[1].replace("_", "-")
        for path in tree_paths(text[found.end() :]):
            whole = [*base, *path]
            other = aliases(root).get(whole[0]) if found[1] == "crate" or base == [] else None
            yield "/".join([other, *whole[1:]] if other else ["crates", root, "src", *whole])


@functools.cache
def aliases(crate: str) -> dict[str, str]:
    """Other crates and their modules that a crate's root re-exports, by their names here."""
    text = read(CRATES / crate / "src" / "lib.rs")
    found = re.findall(r"use (logitree_\w+)((?:::\w+)*)(?:::\{self,[^}]*\}| as (\w+));", text)
    names = {alias or inner.rpartition("::")[2]: (other, inner) for other, inner, alias in found}
    return {k: f"crates/{o.replace('_', '-')}/src{i.replace('::', '/')}" for k, (o, i) in names.items()}


def rust_modules() -> Iterator[tuple[Path, str, list[str]]]:
    """The sources of the core's crates that are not tests: file, crate, module path."""
    for crate in CORE:
        source = CRATES / crate / "src"
        for path in sorted(source.rglob("*.rs")):
            module = [*path.relative_to(source).with_suffix("").parts]
            if "tests" not in module and "testing" not in module:
                yield path, crate, module[:-1] if module[-1] in ("mod", "lib") else module


def test_rust_imports_follow_the_table() -> None:
    problems = []
    for path, crate, module in rust_modules():
        if path.name == "lib.rs":
            continue
        room = room_of(name(path))
        if room is None:
            problems.append(f"{name(path)} is in no room of ARCHITECTURE.md")
            continue
        for target in reached(without_comments(read(path)), crate, module):
            other = room_of(target)
            if other not in (None, room, "errors") and other not in LAW[room].may_import:
                problems.append(f"{name(path)}: {room} must not import {other} ({target})")
    check(sorted(set(problems)))


def cycles(edges: dict[str, set[str]]) -> Iterator[frozenset[str]]:
    """The largest groups of modules that all reach each other (Tarjan's strongly connected components)."""
    lowest: dict[str, int] = {}
    numbers: dict[str, int] = {}
    path: list[str] = []

    def visit(module: str) -> Iterator[frozenset[str]]:
        numbers[module] = lowest[module] = len(numbers)
        path.append(module)
        for other in sorted(edges[module]):
            if other not in numbers:
                yield from visit(other)
            if other in path:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == numbers[module]:
            group = path[path.index(module) :]
            del path[path.index(module) :]
            if len(group) > 1:
                yield frozenset(group)

    for module in sorted(edges):
        if module not in numbers:
            yield from visit(module)


def test_modules_that_need_each_other_are_named() -> None:
    """A module and the modules inside it may use each other; other cycles are in ARCHITECTURE.md's second table."""
    sources = {
        "/".join(("crates", crate, "src", *module)): (path, crate, module) for path, crate, module in rust_modules()
    }
    edges: dict[str, set[str]] = {}
    for here, (path, crate, module) in sources.items():
        targets = set()
        for target in reached(without_comments(read(path)), crate, module):
            while target and target not in sources:
                target = target.rpartition("/")[0]
            if target and not f"{here}/".startswith(f"{target}/") and not target.startswith(f"{here}/"):
                targets.add(target)
        edges[here] = targets
    table = read(REPOSITORY / "ARCHITECTURE.md").partition("| modules | why |")[2].partition("\n\n")[0]
    named = {
        frozenset(f"crates/logitree{path}" for path in expanded(found))
        for found in re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)
    }
    found = set(cycles(edges))
    check(f"{sorted(group)} need each other: divide them, or say why in ARCHITECTURE.md" for group in found - named)
    check(f"{sorted(group)} do not need each other any more" for group in named - found)


def test_crates_depend_as_the_table_says() -> None:
    problems = []
    for manifest in sorted(CRATES.glob("*/Cargo.toml")):
        crate = manifest.parent.name
        mine = {r.name for r in LAW.values() if any(w.startswith(f"crates/{crate}/") for w in r.where)}
        mine |= {r.name for r in LAW.values() if f"crates/{crate}" in r.where}
        allowed = {"errors", *(room for r in mine for room in LAW[r].may_import)}
        used = read(manifest).partition("[dependencies]")[2].partition("\n[")[0]
        for other in re.findall(r"^(logitree[\w-]*)\b", used, re.MULTILINE):
            theirs = {r.name for r in LAW.values() if any(f"{w}/".startswith(f"crates/{other}/") for w in r.where)}
            if not theirs & allowed:
                problems.append(f"{crate} must not depend on {other}")
    check(problems)


def test_the_core_prints_nothing_and_touches_files_where_it_may() -> None:
    problems = []
    for path, _, module in rust_modules():
        text = without_comments(read(path))
        if re.search(r"\b(e?print(ln)?|dbg)!", text):
            problems.append(f"{name(path)} prints")
        if (module or [""])[0] not in TOUCH_FILES and re.search(r"\bstd::(fs|net|process|env)\b", text):
            problems.append(f"{name(path)} touches the system")
    check(problems)


def test_the_core_compiles_without_python() -> None:
    check(crate for crate in CORE if re.search(r"pyo3|numpy", read(CRATES / crate / "Cargo.toml")))


def test_rust_files_open_with_their_purpose() -> None:
    for path in files(".rs"):
        opening = [line for line in read(path).splitlines() if line and not line.startswith("#!")]
        assert opening, f"{name(path)} is empty"
        assert opening[0].startswith("//! "), f"{name(path)} does not open with //! and what it does"


def test_unsafe_code_is_only_where_it_may_be() -> None:
    problems = []
    for path in files(".rs"):
        text = without_comments(read(path))
        if re.search(r"\bunsafe\b", re.sub(r"\bunsafe_\w+", "", text)):
            if not name(path).startswith(tuple(where for places in MAY_BE_UNSAFE.values() for where in places)):
                problems.append(f"{name(path)} is unsafe")
            if "allow(unsafe_code)" not in text:
                problems.append(f"{name(path)} lacks allow(unsafe_code)")
    check(problems)


# -- Python


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Absolute names of the modules that a file imports, and whether it does so when it is loaded."""
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
            for alias in node.names if module.split(".")[0] in ("logitree", "logitree_bench") else ():
                if module_file(f"{module}.{alias.name}"):
                    yield f"{module}.{alias.name}", id(node) not in lazy


def absolute(path: Path, node: ast.ImportFrom) -> str:
    """The module that a `from ... import` names, dots resolved."""
    if not node.level:
        return node.module or ""
    package = [*path.relative_to(PACKAGE.parent if path.is_relative_to(PACKAGE) else BENCH.parent).parts[:-1]]
    base = package[: len(package) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def module_file(dotted: str) -> str | None:
    """The repository path of a module of the package or the bench harness; None for a name inside a module."""
    top, *rest = dotted.split(".")
    root = {"logitree": PACKAGE, "logitree_bench": BENCH}.get(top)
    if root is None:
        return None
    path = root.joinpath(*rest)
    exists = path.is_dir() or path.with_suffix(".py").exists() or path.with_suffix(".pyi").exists()
    return name(path) if exists else None


def is_type_checking(node: ast.AST) -> bool:
    """Whether this is `if TYPE_CHECKING:`."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def package_files() -> list[Path]:
    """The package's modules."""
    return sorted(PACKAGE.rglob("*.py"))


def parsed(path: Path) -> ast.Module:
    """The file's syntax tree."""
    return ast.parse(read(path))


def test_python_imports_follow_the_table() -> None:
    problems = []
    for path in [*package_files(), *sorted(BENCH.rglob("*.py"))]:
        room = room_of(name(path))
        assert room is not None, f"{name(path)} is in no room of ARCHITECTURE.md"
        for module, _ in imports(path):
            target = module_file(module)
            other = room_of(target) if target else None
            private = any(part.startswith("_") and not part.endswith("__") for part in module.split("."))
            fine = other in (None, room) or other in LAW[room].may_import
            if not fine and not (PUBLIC in LAW[room].may_import and not private):
                problems.append(f"{name(path)}: {room} must not import {module} of {other}")
    check(sorted(set(problems)))


def test_the_package_loads_numpy_and_nothing_more() -> None:
    problems = []
    for path in package_files():
        engine = path.relative_to(PACKAGE).parts[0] == "engines"
        allowed = {"numpy", "logitree", *sys.stdlib_module_names} | ({*RUNTIMES, "torch"} if engine else set())
        if path == PACKAGE / "tensors" / "_kernels.py":  # loaded for logits on a GPU
            allowed |= {"triton"}
        if path.is_relative_to(PACKAGE / "server"):  # loaded by `logitree serve`, and by name
            allowed |= {"starlette", "prometheus_client"}
        for module, at_load in imports(path):
            if at_load and module.split(".")[0] not in allowed:
                problems.append(f"{name(path)} loads {module}")
            runtime = re.match(r"logitree\.engines\.[a-z]", module)
            if at_load and runtime and not engine and "cli" not in path.parts:
                problems.append(f"{name(path)} loads {module} with the package")
    check(problems)


def test_an_engine_imports_one_runtime() -> None:
    for path in sorted((PACKAGE / "engines").glob("*.py")):
        used = {m.split(".")[0] for m, _ in imports(path)} & RUNTIMES
        assert len(used) <= 1, f"{name(path)} imports {sorted(used)}"
        if not path.stem.startswith("_"):
            others = {m for m, _ in imports(path) if re.match(r"logitree\.engines\.[a-z]", m)}
            assert not others, f"{name(path)} imports another engine: {sorted(others)}"


def test_public_modules_are_those_of_the_interface() -> None:
    page = read(REPOSITORY / "docs" / "interface.md")
    listed = set(re.findall(r"^\| `logitree\.(\w+)` \|", page, re.MULTILINE))
    shown = {p.stem for p in PACKAGE.iterdir() if not p.name.startswith(("_", ".")) and (p / "__init__.py").exists()}
    shown |= {p.stem for p in PACKAGE.glob("*.py") if not p.name.startswith("_")}
    assert shown - listed <= {"cli"}, f"modules that docs/interface.md does not list: {sorted(shown - listed)}"


def test_python_files_open_with_their_purpose() -> None:
    check(f"{name(path)} has no docstring" for path in files(".py") if not ast.get_docstring(parsed(path)))


# -- every file


def code_lines(path: Path) -> int:
    """Lines that are neither blank nor comment nor docstring; tests at the end of a Rust file do not count."""
    text = read(path)
    if path.suffix == ".rs":
        text = without_tests(text)
        text = re.sub(r"^\s*//[^\n]*", "", text, flags=re.MULTILINE)
        return sum(1 for line in text.splitlines() if line.strip())
    prose = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(text.splitlines(), start=1)
    return sum(1 for i, line in lines if i not in prose and line.strip() and not line.strip().startswith("#"))


def test_long_files_give_a_reason() -> None:
    counts = {path: code_lines(path) for path in files(".rs", ".py")}
    long = {path: count for path, count in counts.items() if count > CODE_LINES and EXCUSE not in read(path)}
    for path, _, _ in rust_modules():
        count = len(without_tests(read(path)).splitlines())
        if count > CORE_LINES and EXCUSE not in read(path):
            long[path] = count
    check(f"{name(path)}: {count} lines; split it by concept, or say why not" for path, count in long.items())


def test_nothing_is_unfinished_and_no_machine_is_named() -> None:
    problems = []
    for path in files(".rs", ".py", ".md", ".toml", ".pyi", "Makefile"):
        for number, line in enumerate(read(path).splitlines(), start=1):
            if UNFINISHED.search(line) or MACHINE.search(line):
                problems.append(f"{name(path)}:{number}: {line.strip()}")
    check(problems)


# -- paths

MENTIONED = re.compile(
    r"`((?:[A-Za-z_][\w.-]*/)*[A-Za-z_][\w.-]*\.(?:rs|py|pyi|md|ts|toml|h|hpp|cpp|cmake|html))`"
    r"|\bpytest ((?:[\w.-]+/)+[\w.-]+\.py)"
)
"""A file that a comment, a document or a command names: its path from the repository's root, or the end of it."""

ELSEWHERE = {
    "grammars/README.md": "llama.cpp",
    "src/llama-grammar.cpp": "llama.cpp",
    "llama.h": "llama.cpp",
    "llama-cpp.h": "llama.cpp",
    "docs/syntax.md": "llguidance",
    "syntax.md": "llguidance",
}
"""Files of other projects that are named here, and whose they are."""


def dead_paths(text: str, known: set[str]) -> Iterator[tuple[int, str]]:
    """Files that the text names and that are not in `known`, with their lines."""
    for number, line in enumerate(text.splitlines(), start=1):
        for found in MENTIONED.finditer(line):
            path = found[1] or found[2]
            if path not in known and not (REPOSITORY / path).exists():
                yield number, path


def test_files_that_are_named_exist() -> None:
    known = set(ELSEWHERE)
    for path in files(".rs", ".py", ".pyi", ".md", ".ts", ".toml", ".h", ".hpp", ".cpp", ".cmake", ".html"):
        parts = path.relative_to(REPOSITORY).parts
        known |= {"/".join(parts[at:]) for at in range(len(parts))}
    checked = [p for p in files(".rs", ".py", ".md", "Makefile") if p != Path(__file__).resolve()]
    check(f"{name(p)}:{line}: there is no {dead}" for p in checked for line, dead in dead_paths(read(p), known))


# -- prose


def rust_prose(text: str) -> Iterator[tuple[int, str]]:
    """Comments and strings of a Rust text, with their lines."""
    for found in re.finditer(r'(?://[^\n]*(?:\n[ \t]*(?=//))?)+|b?r(#+)".*?"\1|b?"(?:\\.|[^"\\])*"', text, re.DOTALL):
        yield text.count("\n", 0, found.start()) + 1, found[0]


def python_prose(text: str) -> Iterator[tuple[int, str]]:
    """Comments and strings of a Python text, with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING) or "FSTRING_MIDDLE" in tokenize.tok_name[token.type]:
            yield token.start[0], token.string


def markdown_prose(text: str) -> Iterator[tuple[int, str]]:
    """A Markdown text without code and generated tables."""
    blank = lambda found: "\n" * found[0].count("\n")  # noqa: E731 - keeps the line numbers
    text = re.sub(
        r"^```.*?^```|<!-- bench:.*?<!-- /bench:\w+ -->|`[^`\n]*`", blank, text, flags=re.DOTALL | re.MULTILINE
    )
    yield 1, text


PROSE = {".rs": rust_prose, ".py": python_prose, ".pyi": python_prose, ".md": markdown_prose}


def idioms(path: Path) -> Iterator[str]:
    """What the prose of a file contains that it should not."""
    text = read(path)
    for start, part in PROSE[path.suffix](text):
        plain = re.sub(r"\n[ \t]*(?://[/!]?|#)?", "\n", part)
        for pattern, instead in IDIOMS:
            for found in re.finditer(
                pattern.replace(" ", r"\s+"), plain, re.IGNORECASE if "none" not in pattern else 0
            ):
                line = start + plain.count("\n", 0, found.start())
                yield f"{name(path)}:{line}: {' '.join(found[0].split())!r}: write {instead!r}"
    for found in re.finditer(r"\bMOST_[A-Z]\w*", text):
        yield f"{name(path)}:{text.count(chr(10), 0, found.start()) + 1}: {found[0]}: write MAX_"


def test_prose_is_plain_english() -> None:
    checked = [p for p in files(*PROSE) if p != Path(__file__).resolve()]
    check(problem for path in checked for problem in idioms(path))


# -- the tests themselves can fail


def test_paths_are_found_in_rust() -> None:
    text = "use crate::{mask::{AllowedTokens, words}, error::Error as E, trace};"
    text += "fn f() { crate::decoder::g(super::trie::x, logitree_grammar::ast::Node) }"
    found = set(reached(text, "logitree", ["constraint", "a"]))
    inside = {"mask/AllowedTokens", "mask/words", "trace", "decoder/g", "constraint/trie/x"}
    others = {"crates/logitree-automata/src/error/Error", "crates/logitree-grammar/src/ast/Node"}
    assert found == {f"crates/logitree/src/{path}" for path in inside} | others
    assert "unsafe" not in without_comments('let a = "unsafe"; // unsafe\n/* unsafe */')


def test_dead_paths_are_found() -> None:
    text = "//! Held by `it/a.rs`\n# see `b.py`, `c/d.py`\n`LOGITREE=1 pytest tests/e.py` and `f.gguf`, `x.rs()`"
    assert list(dead_paths(text, {"it/a.rs", "b.py"})) == [(2, "c/d.py"), (3, "tests/e.py")]


def test_the_table_is_read() -> None:
    text = "| room | where | may import |\n|---|---|---|\n| a | `x/{y,z}`, `w` | nothing |\n| b | `v` | a |\n\n"
    found = rooms(text)
    assert found["a"] == Room("a", ("x/y", "x/z", "w"), frozenset())
    assert found["b"].may_import == {"a"}


def test_cycles_are_found() -> None:
    edges = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d"}, "f": {"a", "f"}}
    assert set(cycles(edges)) == {frozenset("abc"), frozenset("de")}


def test_marks_and_idioms_are_found(tmp_path: Path) -> None:
    assert UNFINISHED.search("# TO" + "DO later")
    assert MACHINE.search("see /ho" + "me/me/x")
    assert not MACHINE.search("../shared/mnt/x and https://a.b/opt/c")
    for text, found in (("the only way on", 1), ("stands for a token", 0), ("where it stands", 1), ("none of them", 0)):
        assert sum(bool(re.search(pattern, text)) for pattern, _ in IDIOMS) == found, text
