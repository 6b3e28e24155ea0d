"""Counts the findings of a loader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BEYOND = "candidate beyond the vocabulary"
"""The kind of a finding: a candidate whose id the vocabulary does not have."""
FirstKey = Literal["start", "path", "none"]


@dataclass(frozen=True)
class Finding:
    """Something that a tree-decode file has, how often, and where first."""

    kind: str
    """One of: "candidate beyond the vocabulary", "candidate out of range", "candidate without a key",
    "duplicate candidate", "duplicate key", "end at the start", "key that is no path", "prefix_dict beside
    prefix_weight_dict", "unknown field", "unreachable key", "weight of no candidate", "weight of the end"."""
    count: int
    """How often."""
    first: str
    """Where, as a JSON pointer."""

    def __str__(self) -> str:
        return f"{self.kind}: {self.count} (first at {self.first})"


@dataclass(frozen=True)
class Report:
    """What was seen in a tree-decode file."""

    first_key: FirstKey
    """The key of the first step: "start" is the start id alone, as RTP-LLM's code has it; "path" is `{start}_{t0}`, as
    its documentation says (the first tokens are then those of such keys); "none": there is neither."""
    keys: int
    """Keys of the file."""
    items: int
    """Items; the empty one, if it exists, included."""
    errors: int
    """Candidates that can be generated but have no key: they lead to the error state and are no items."""
    findings: tuple[Finding, ...]
    """What was found, by kind."""

    def count(self, kind: str) -> int:
        """How often something was found, 0 if never."""
        return sum(finding.count for finding in self.findings if finding.kind == kind)

    def __str__(self) -> str:
        lines = [f"{self.keys} keys, {self.items} items, {self.errors} errors, first key: {self.first_key}"]
        return "\n".join([*lines, *map(str, self.findings)])


class Findings:
    """Counts findings by their kind, so that a file full of them takes no memory."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, str]] = {}

    def add(self, kind: str, place: str, count: int = 1) -> None:
        """One more."""
        before, first = self._found.get(kind, (0, place))
        self._found[kind] = (before + count, first)

    def all(self) -> tuple[Finding, ...]:
        """Those there were, by kind."""
        return tuple(Finding(kind, *self._found[kind]) for kind in sorted(self._found))
