"""Builds the C library's test programs with the C and C++ compilers of the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-O1")
# What static maps of the process lead to counts as possibly lost, because they point into their allocations.
VALGRIND = (
    "-q",
    "--error-exitcode=99",
    "--leak-check=full",
    "--show-leak-kinds=definite",
    "--errors-for-leak-kinds=definite",
)

Run = Callable[..., str]


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prefix with the library that `cargo build -p logitree-c` made, laid out as `make install` does."""
    import c_library

    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    if not (target / "debug" / "liblogitree_c.a").exists():
        pytest.fail("there is no C library: run make test-native")
    prefix = tmp_path_factory.mktemp("prefix")

    def link(source: Path, place: Path) -> Path:
        """Links: the libraries are large."""
        place.symlink_to(source)
        return place

    c_library.install("dev", prefix, target, link)
    return prefix


@pytest.fixture(scope="session")
def build(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compiles one source file, C11 or C++17, against the installed library by its pkg-config file."""

    def built(source: Path, *flags: str, static: bool = False) -> Path:
        out = tmp_path_factory.mktemp("program") / source.stem
        cxx = source.suffix == ".cpp"
        compiler = ("c++", "-std=c++17") if cxx else ("cc", "-std=c11")
        environment = {**os.environ, "PKG_CONFIG_PATH": str(installed / "lib" / "pkgconfig")}
        ask = ["pkg-config", "--cflags", "--libs", *(["--static"] if static else []), "logitree"]
        found = subprocess.run(ask, env=environment, capture_output=True, text=True, check=True).stdout.split()
        if static:
            found = [str(installed / "lib" / "liblogitree.a") if f == "-llogitree" else f for f in found]
        else:
            found.append(f"-Wl,-rpath,{installed / 'lib'}")
        command = [*compiler, *STRICT, *flags, str(source), "-o", str(out), *found]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
        return out

    return built


@pytest.fixture(scope="session")
def run() -> Run:
    """Runs a program, under valgrind if asked and installed, and gives what it printed; a failure shows everything."""

    def ran(program: Path, *arguments: object, valgrind: bool = False) -> str:
        command = [str(program), *map(str, arguments)]
        if valgrind:
            if shutil.which("valgrind") is None:
                pytest.skip("valgrind is not installed")
            command = ["valgrind", *VALGRIND, *command]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return ran


@pytest.fixture(scope="session")
def index_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of the items [0, 1], [0, 3] and [3]."""
    import logitree as lt

    path = tmp_path_factory.mktemp("index") / "three.index"
    path.write_bytes(lt.Catalogue.from_codes([[0, 1], [0, 3], [3]]).to_bytes())
    return path
