"""The profile-guided build: what trains it works with the package as it is, and every place has the same flags."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import logitree as lt
import profile_guided

REPOSITORY = Path(__file__).resolve().parents[2]
TRAINING = REPOSITORY / "scripts" / "training"


@pytest.fixture
def schemas(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The part of the training that writes schemas."""
    monkeypatch.syspath_prepend(str(TRAINING))
    yield importlib.import_module("_schemas")
    for name in ("_schemas", "_texts"):
        del sys.modules[name]


def test_every_part_runs() -> None:
    done = subprocess.run([sys.executable, TRAINING, "--quick"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    counts = re.findall(r"(\d[\d,]*) ([a-z ]+)", re.sub(r": [\d.]+ s$", "", done.stdout, flags=re.MULTILINE))
    assert [name.strip() for _, name in counts] == [
        "tokens",
        "schemas",
        "masks",
        "masks of grammars",
        "decoded tokens",
        "draws",
        "beam steps",
    ]
    assert all(int(count.replace(",", "")) > 0 for count, _ in counts), done.stdout


def test_an_unknown_option_is_refused() -> None:
    assert subprocess.run([sys.executable, TRAINING, "--quik"], capture_output=True).returncode == 2


def test_documents_are_allowed_by_their_schemas(schemas: ModuleType) -> None:
    """A document that is refused early would train little."""
    for seed in range(schemas.SCHEMAS):
        schema, documents = schemas.written(seed)
        grammar = lt.Grammar.json_schema(schema, order="any")
        for document in documents:
            assert grammar.matches(json.dumps(document, ensure_ascii=False)), (seed, document)


def test_released_wheels_have_the_same_flags() -> None:
    workflow = (REPOSITORY / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert f"RUSTFLAGS: {profile_guided.FLAGS}\n" in workflow
    assert "--pgo" in workflow


def test_a_compiler_without_its_tools_makes_a_plain_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not profile_guided.is_possible(), "no rustc"
    rustc = tmp_path / "rustc"
    rustc.write_text(f"#!/bin/sh\necho {tmp_path}/lib\n", encoding="utf-8")
    rustc.chmod(0o755)
    assert not profile_guided.is_possible(), "no llvm-profdata"
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "bin" / "llvm-profdata").touch()
    assert profile_guided.is_possible()
    rustc.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    assert not profile_guided.is_possible(), "a compiler that does not run"
