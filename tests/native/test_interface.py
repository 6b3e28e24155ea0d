"""The C interface: its header, its symbols, and a program that uses all of it, right and wrong."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import c_header

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HEADER = ROOT / "include" / "logitree.h"
DESIGN = ROOT / "include" / "eliza_token_trie_sampler.h"
LISTED = HERE / "abi.txt"

Build = Callable[..., Path]
Run = Callable[..., str]


def declared() -> set[str]:
    """The functions that the headers declare."""
    text = "".join(header.read_text(encoding="utf-8") for header in (HEADER, DESIGN))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return set(re.findall(r"\b((?:logitree|llama|eliza)_\w+)\(", text))


def listed() -> tuple[set[str], dict[str, int]]:
    """The committed list: functions, and sizes of structs on a machine of 64 bits."""
    functions, sizes = set(), {}
    for line in LISTED.read_text(encoding="utf-8").splitlines():
        name, _, size = line.partition(" ")
        if size:
            sizes[name] = int(size)
        else:
            functions.add(name)
    return functions, sizes


def test_the_header_is_what_the_sources_say() -> None:
    assert HEADER.read_text(encoding="utf-8") == c_header.header(), "run scripts/c_header.py > include/logitree.h"


def test_the_table_of_typescript_is_what_the_sources_say() -> None:
    table = ROOT / "bindings" / "typescript" / "src" / "functions.ts"
    expected = c_header.typescript()
    assert table.read_text(encoding="utf-8") == expected, "run scripts/c_header.py --typescript > functions.ts"
    assert set(re.findall(r"^  (\w+): \[", expected, re.MULTILINE)) == {
        n for n in listed()[0] if n.startswith("logitree_")
    }


def test_every_symbol_is_declared_and_listed(installed: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("symbols are read with nm of Linux")
    done = subprocess.run(
        ["nm", "-D", "--defined-only", installed / "lib" / "liblogitree.so"], capture_output=True, text=True, check=True
    )
    exported = {line.split()[-1] for line in done.stdout.splitlines()}
    mine = {name for name in exported if name.startswith(("logitree_", "llama_", "eliza_"))}
    assert mine == declared() == listed()[0]
    assert exported - mine <= {"rust_eh_personality"}


def test_structs_have_the_listed_sizes(build: Build, run: Run, tmp_path: Path) -> None:
    source = tmp_path / "sizes.c"
    lines = "".join(f'    printf("{name} %zu\\n", sizeof({name}));\n' for name in listed()[1])
    source.write_text(f"#include <stdio.h>\n#include <logitree.h>\nint main(void) {{\n{lines}    return 0;\n}}\n")
    sizes = dict(line.split() for line in run(build(source)).splitlines())
    assert {name: int(size) for name, size in sizes.items()} == listed()[1]
    structs = set(re.findall(r"^\} (logitree_\w+);", HEADER.read_text(encoding="utf-8"), re.MULTILINE))
    assert structs == set(sizes)


@pytest.mark.parametrize("static", [False, True])
def test_c_uses_all_of_it(build: Build, run: Run, index_file: Path, static: bool) -> None:
    assert int(run(build(HERE / "interface.c", static=static), index_file).split()[0]) > 500


def test_no_memory_is_misused_or_lost(build: Build, run: Run, index_file: Path) -> None:
    run(build(HERE / "interface.c"), index_file, valgrind=True)


def test_the_header_compiles_as_cxx(build: Build, run: Run, tmp_path: Path) -> None:
    source = tmp_path / "version.cpp"
    source.write_text(
        "#include <cstdio>\n#include <logitree.h>\n"
        "int main() { std::puts(logitree_version()); return logitree_abi_version() != LOGITREE_ABI_VERSION; }\n"
    )
    version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert version is not None
    assert run(build(source)).strip() == version[1]


def test_cxx_wraps_it(build: Build, run: Run, index_file: Path) -> None:
    program = build(HERE / "processors.cpp")
    assert int(run(program, index_file).split()[0]) >= 35
    run(program, index_file, valgrind=True)
