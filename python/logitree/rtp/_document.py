"""Reads the fields, keys and candidates of a tree-decode file.

Keys are kept as text, because the separator may come after them in the file.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

from .. import _core
from .._errors import error
from ._json import NUMBER, Reader
from ._report import Findings

LARGEST = 2**31 - 1
SMALLEST = -(2**31)
LONGEST_SEPARATOR = 256
"""Every candidate's key is spelled with it."""
LARGEST_WEIGHT = 3.4028234663852886e38


class Table:
    """Keys and their candidates, compactly: `rows[key]` is a row of the arrays."""

    def __init__(self, weighted: bool = False) -> None:
        self.rows: dict[str, int] = {}
        self._ends = array("q", [0])
        self._tokens = array("i")
        self._weights = array("f") if weighted else None

    def add(self, key: str, tokens: Iterable[int], weights: Iterable[float] = ()) -> bool:
        """Sets what may follow a key; the last time counts. Says whether it was there already."""
        known = key in self.rows
        self.rows[key] = len(self._ends) - 1
        self._tokens.extend(tokens)
        if self._weights is not None:
            self._weights.extend(weights)
        self._ends.append(len(self._tokens))
        return known

    @property
    def weighted(self) -> bool:
        """Whether candidates have weights."""
        return self._weights is not None

    def tokens(self, row: int) -> array[int]:
        """The candidates of a row, ascending."""
        return self._tokens[self._ends[row] : self._ends[row + 1]]

    def weights(self, row: int) -> array[float] | None:
        """Their weights, if candidates have some."""
        return None if self._weights is None else self._weights[self._ends[row] : self._ends[row + 1]]

    def __len__(self) -> int:
        """Rows, those that were replaced included."""
        return len(self._ends) - 1


class Document:
    """The fields of a file."""

    def __init__(self) -> None:
        self.start = 225
        self.end = 2
        self.sep = "_"
        self.table: Table | None = None
        self.weighted_table: Table | None = None
        self.weights: dict[str, float] = {}
        """By the key of the child."""

    def chosen(self, findings: Findings) -> Table:
        """The table that says what is allowed.

        Raises:
            PayloadError: there is none.
        """
        if self.weighted_table is not None:
            if self.table is not None:
                findings.add("prefix_dict beside prefix_weight_dict", "/prefix_dict")
            return self.weighted_table
        if self.table is None:
            raise error(
                _core.PayloadError,
                "there is no prefix_dict",
                place="the root",
                help="give the candidates of each key: {'prefix_dict': {'225': [1, 2]}}",
            )
        return self.table


def read_document(reader: Reader, findings: Findings) -> Document:
    """Reads a whole file.

    Raises:
        PayloadError: it is no JSON, or no tree-decode file; the message says where.
    """
    document = Document()
    if reader.peek() not in ("{", ""):
        raise reader.wrong(f"the root is {reader.kind()}", help="it is an object with the field prefix_dict")
    for field in reader.members():
        reader.where = (field,)
        if field == "start_token_id":
            document.start = _id(reader, field, SMALLEST, "it is an int32")
        elif field == "end_token_id":
            document.end = _id(reader, field, 0, "token ids are from 0 to 2,147,483,647")
        elif field == "sep":
            document.sep = _text(reader, field)
        elif field == "prefix_dict":
            document.table = _table(reader, findings)
        elif field == "prefix_weight_dict":
            document.weighted_table = _weighted_table(reader, findings)
        elif field == "weight_dict":
            document.weights = _weights(reader, findings)
        else:
            findings.add("unknown field", f"/{field[:200]}")
            reader.skip()
        reader.where = ()
    if reader.peek():
        raise reader.malformed("the end")
    return document


def _id(reader: Reader, field: str, least: int, help: str) -> int:
    place = reader.place()
    value = reader.whole(field)
    if not least <= value <= LARGEST:
        raise error(_core.PayloadError, f"{field} is {value}", place=place, help=help)
    return value


def _text(reader: Reader, field: str) -> str:
    if reader.peek() != '"':
        raise reader.wrong(f"{field} is {reader.kind()}", help="it is a string")
    text = reader.string()
    if len(text) > LONGEST_SEPARATOR:
        raise reader.wrong(f"{field} has {len(text)} characters", help=f"{LONGEST_SEPARATOR} are enough")
    return text


def _members(reader: Reader) -> Iterator[tuple[str, str]]:
    """The keys of a field's object, each with its place for findings."""
    field = str(reader.where[0])
    if reader.peek() not in ("{", ""):
        raise reader.wrong(f"{field} is {reader.kind()}", help="it is an object")
    for key in reader.members():
        reader.where = (field, key)
        yield key, f"/{field}/{key[:200]}"


def _array(reader: Reader) -> None:
    if reader.peek() not in ("[", ""):
        raise reader.wrong(f"the candidates are {reader.kind()}", help="they are an array")


def _table(reader: Reader, findings: Findings) -> Table:
    table = Table()
    for key, place in _members(reader):
        _array(reader)
        given = reader.wholes("a candidate")
        tokens = sorted(set(given))
        if len(tokens) < len(given):
            findings.add("duplicate candidate", place, len(given) - len(tokens))
        if tokens and (tokens[0] < 0 or tokens[-1] > LARGEST):
            kept = [token for token in tokens if 0 <= token <= LARGEST]
            findings.add("candidate out of range", place, len(tokens) - len(kept))
            tokens = kept
        if table.add(key, tokens):
            findings.add("duplicate key", place)
    return table


def _weighted_table(reader: Reader, findings: Findings) -> Table:
    table = Table(weighted=True)
    for key, place in _members(reader):
        _array(reader)
        found: dict[int, float] = {}
        for at in reader.elements():
            reader.where = ("prefix_weight_dict", key, at)
            token, weight = _pair(reader, f"{place}/{at}")
            if not 0 <= token <= LARGEST:
                findings.add("candidate out of range", place)
                continue
            if token in found:
                findings.add("duplicate candidate", place)
            found[token] = weight
        tokens = sorted(found)
        if table.add(key, tokens, [found[token] for token in tokens]):
            findings.add("duplicate key", place)
    return table


def _pair(reader: Reader, place: str) -> tuple[int, float]:
    """A candidate and its weight from a string `64000:0.1`."""
    help = "write the token and its weight: '64000:0.1'"
    if reader.peek() != '"':
        raise reader.wrong(f"a weighted candidate is {reader.kind()}", help=help)
    text = reader.string()
    token, colon, weight = text.partition(":")
    plain = token.removeprefix("-")
    if not (colon and plain.isascii() and plain.isdigit() and NUMBER.fullmatch(weight)) or len(plain) > 4000:
        raise reader.wrong(f"a weighted candidate is {text[:40]!r}", help=help)
    return int(token), _finite(float(weight), place)


def _weights(reader: Reader, findings: Findings) -> dict[str, float]:
    weights: dict[str, float] = {}
    for key, place in _members(reader):
        if reader.peek() not in ("", *"-0123456789"):
            raise reader.wrong(f"a weight is {reader.kind()}", help="it is a number")
        if key in weights:
            findings.add("duplicate key", place)
        weights[key] = _finite(float(reader.word()), place)
    return weights


def _finite(value: float, place: str) -> float:
    """The weight, if a float32 holds it."""
    if not abs(value) <= LARGEST_WEIGHT:
        raise error(_core.PayloadError, "a weight is beyond float32", place=place, help="give finite weights")
    return value
