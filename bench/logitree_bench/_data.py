"""Reads what the shared data folder holds of others' tests: MaskBench schemas and the JSON-Schema-Test-Suite.

Both are tar archives; nothing is unpacked to disk. It judges no schema and knows no engine.
"""

from __future__ import annotations

import functools
import json
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from logitree_bench._harness import Skip

MASKBENCH = "maskbench-dev.tar.xz"
TEST_SUITE = "json-schema-test-suite.tar.xz"
REMOTE = "http://localhost:1234/"
"""Under which address the test suite's remote documents are known, by its README."""


def data_file(name: str) -> Path | Skip:
    """A file of the shared data folder, or why it is not there.

    The folder is ``LOGITREE_DATA``, or ``../shared/data`` beside the working directory; with an empty ``LOGITREE_DATA``
    there is none.
    """
    named = os.environ.get("LOGITREE_DATA")
    folder = Path.cwd().parent / "shared" / "data" if named is None else Path(named)
    path = folder / name
    there = named != "" and path.exists()
    return path if there else Skip(f"{path.name} is absent: set LOGITREE_DATA to the data folder")


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the archive's plain files: links would repeat them."""
    with tarfile.open(path) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None and member.name.endswith(".json"):
                yield member.name.removeprefix("./"), content.read()


# -- MaskBench


@dataclass(frozen=True)
class Instance:
    """One text of a MaskBench schema: the data, and whether the data's flag calls it valid."""

    data: Any
    valid: bool

    @property
    def text(self) -> str:
        """The instance as MaskBench feeds it to an engine."""
        return json.dumps(self.data, indent=None, ensure_ascii=False)


@dataclass(frozen=True)
class Case:
    """A MaskBench file: a schema and its instances."""

    name: str
    schema: Any
    instances: tuple[Instance, ...]

    @property
    def split(self) -> str:
        """Where the schema comes from: the name up to ``---``, or up to its number."""
        return self.name.partition("---")[0] if "---" in self.name else self.name.rpartition("_")[0]


def read_maskbench(path: Path) -> dict[str, bytes]:
    """The files of the archive by name, without the suffix; :func:`parse_case` reads one."""
    return {Path(name).stem: content for name, content in _members(path)}


def parse_case(name: str, content: bytes) -> Case:
    """One file of :func:`read_maskbench`."""
    found = json.loads(content)
    return Case(name, found["schema"], tuple(Instance(t["data"], t["valid"]) for t in found["tests"]))


# -- JSON-Schema-Test-Suite


@dataclass(frozen=True)
class SuiteTest:
    """One case of the test suite."""

    description: str
    data: Any
    valid: bool


@dataclass(frozen=True)
class Group:
    """A schema of the test suite and its cases."""

    draft: str
    """``4``, ``6``, ``7``, ``2019-09``, ``2020-12``."""
    kind: str
    """``required``, ``optional`` or ``format``."""
    file: str
    """The file's path below its draft, such as ``optional/bignum.json``."""
    description: str
    schema: Any
    tests: tuple[SuiteTest, ...]


@dataclass(frozen=True)
class Suite:
    """The test suite: its groups, and the documents that their references may name, by URI."""

    groups: tuple[Group, ...]
    documents: dict[str, Any]


@functools.cache
def read_test_suite(path: Path, drafts: tuple[str, ...]) -> Suite:
    """The suite's groups of these drafts, in the order of the files' names, and all remote documents."""
    groups: list[Group] = []
    documents: dict[str, Any] = {}
    for name, content in sorted(_members(path)):
        top, _, rest = name.partition("/")
        if top == "remotes":
            documents[REMOTE + rest] = json.loads(content)
        elif top == "tests":
            folder, _, file = rest.partition("/")
            draft = folder.removeprefix("draft")
            if draft in drafts:
                groups += [_group(draft, file, found) for found in json.loads(content)]
    return Suite(tuple(groups), documents)


def _group(draft: str, file: str, found: Any) -> Group:
    kind = "format" if file.startswith("optional/format/") else file.rpartition("/")[0] or "required"
    tests = tuple(SuiteTest(t["description"], t["data"], t["valid"]) for t in found["tests"])
    return Group(draft, kind, file, found["description"], found["schema"], tests)
