"""The fields of a tree-decode file, with their defaults."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass

from .. import _core
from .._errors import error
from ._report import Findings

LARGEST = 2**31 - 1


@dataclass
class Document:
    """What a file has. Keys are text as they are written; which path they spell depends on `sep`."""

    start: int
    end: int
    sep: str
    field: str
    """The one that says what is allowed: prefix_dict or prefix_weight_dict."""
    table: dict[str, bytes | None]
    """The candidates of each key, as `candidates` reads them; None once a path has reached the key."""
    weights: dict[str, float]
    """By the key of the child."""

    @property
    def weighted(self) -> bool:
        """Whether the table has weights."""
        return self.field == "prefix_weight_dict"

    def candidates(self, row: bytes) -> tuple[list[int], list[float] | None]:
        """The tokens of a key, ascending, and their weights if the table has some."""
        end = len(row) // 2 if self.weighted else len(row)
        tokens, weights = array("i", row[:end]), array("f", row[end:])
        return tokens.tolist(), weights.tolist() if self.weighted else None

    def add(self, key: str, tokens: list[int]) -> None:
        """Sets the candidates of a key, with weights of 0."""
        weights = array("f", [0.0] * len(tokens)) if self.weighted else array("f")
        self.table[key] = array("i", tokens).tobytes() + weights.tobytes()

    def status(self, tokens: list[int]) -> str:
        """The key that these tokens spell, whether it is one or not."""
        return self.sep.join(map(str, [self.start, *tokens]))

    def place(self, key: str) -> str:
        """A key as a JSON pointer."""
        return f"/{self.field}/{key[:200]}"


def read_document(read: Callable[[int], str], findings: Findings) -> Document:
    """Reads a whole file.

    Args:
        read: returns about as many characters as it is asked for, and none at the end.
        findings: where what means nothing is counted.

    Raises:
        PayloadError: it is no JSON, or no tree-decode file; the message says where.
    """
    fields, found = _core.read_tree_decode(read)
    for kind, count, place in found:
        findings.add(kind, place, count)
    field = "prefix_weight_dict" if "prefix_weight_dict" in fields else "prefix_dict"
    if field not in fields:
        help = "give the candidates of each key: {'prefix_dict': {'225': [1, 2]}}"
        raise error(_core.PayloadError, "there is no prefix_dict", place="the root", help=help)
    if field != "prefix_dict" and "prefix_dict" in fields:
        findings.add("prefix_dict beside prefix_weight_dict", "/prefix_dict")
    return Document(
        start=fields.get("start_token_id", 225),
        end=fields.get("end_token_id", 2),
        sep=fields.get("sep", "_"),
        field=field,
        table=fields[field],
        weights=fields.get("weight_dict", {}),
    )
