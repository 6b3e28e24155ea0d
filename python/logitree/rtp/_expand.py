"""Expands a document's keys to the items of a catalogue, level by level from the first step."""

from __future__ import annotations

import os
from array import array

import numpy as np
import numpy.typing as npt

from .. import _core
from .._errors import error
from .._progress import OnProgress
from ..catalogue import Catalogue, CatalogueBuilder
from ._document import LARGEST, Document
from ._report import BEYOND, Findings, FirstKey, Report

NO_KEY = 2**64 - 1
"""The item number of a candidate without a key: it leads to the error state."""
NO_CANDIDATE = 2**64 - 2
"""The item number of a key whose candidates are all beyond the vocabulary: only the end follows, and it is no item."""

MAX_ERROR_TOKENS = 1 << 28
"""Tokens of all paths to candidates without keys: a small file can have very long ones."""
PART = 1 << 22
"""Tokens that are given to the builder at once."""


class _Level:
    """Keys of one length, and what leads to them: tokens [n, d] and weights of the same shape."""

    def __init__(
        self, keys: list[str], rows: list[int], tokens: npt.NDArray[np.int32], weights: npt.NDArray[np.float32]
    ):
        self.keys = keys
        self.rows = rows
        self.tokens = tokens
        self.weights = weights


class Growth:
    """What comes of a document: the tree, and what was seen meanwhile."""

    def __init__(self, document: Document, findings: Findings, limit: int | None, path: str | os.PathLike[str] | None):
        self.findings = findings
        self.table = document.chosen(findings)
        self.items = 0
        self.errors = 0
        self.dead = 0
        self.empty = False
        """Whether the empty path is an item."""
        self.end_weights: list[tuple[list[int], float]] = []
        self._document = document
        self._limit = LARGEST + 1 if limit is None else limit
        self._weighted = self.table.weighted or bool(document.weights)
        self._builder = CatalogueBuilder(path, weighted=self._weighted)
        self._field = "prefix_weight_dict" if self.table.weighted else "prefix_dict"
        self._weights_used = 0
        self._error_tokens = 0

    def grow(self, tell: OnProgress) -> tuple[Catalogue, Report]:
        """Builds the tree.

        Raises:
            PayloadError: two paths are spelled alike.
            FileError, LimitError: as `Catalogue.from_codes`.
        """
        keys = len(self.table.rows)
        first = self._first_key()
        seen = bytearray(len(self.table))
        root = str(self._document.start)
        level: _Level | None = None
        if first != "none":
            seen[self.table.rows[root]] = 1
            level = _Level([root], [self.table.rows[root]], np.zeros((1, 0), np.int32), np.zeros((1, 0), np.float32))
        else:
            self.empty = True
        while level is not None and level.keys:
            level = self._next(level, seen)
        self._report_rest(seen)
        report = Report(first, keys, self.items + self.empty, self.errors, self.findings.all())
        return self._builder.finish(tell), report

    def _first_key(self) -> FirstKey:
        """What the first step's key looks like. Without the start's own, it is made from the keys after it."""
        start = str(self._document.start)
        if start in self.table.rows:
            return "start"
        head = start + self._document.sep
        firsts = {key[len(head) :] for key in self.table.rows if key.startswith(head)}
        tokens = sorted(int(text) for text in firsts if _is_id(text))
        if not tokens:
            return "none"
        self.table.add(start, tokens, [0.0] * len(tokens))
        return "path"

    def _next(self, level: _Level, seen: bytearray) -> _Level:
        """Gives the builder the items that end at a level, and returns the next level."""
        keys: list[str] = []
        rows: list[int] = []
        complete: list[int] = []
        dead: list[int] = []
        on, off = _Ways(), _Ways()
        known, sep, end = self.table.rows, self._document.sep, self._document.end
        for parent, (key, row) in enumerate(zip(level.keys, level.rows, strict=True)):
            tokens = self.table.tokens(row)
            weights = self._weights_of(key, tokens, row)
            allowed = len(tokens) if not tokens or tokens[-1] < self._limit else sum(t < self._limit for t in tokens)
            if allowed < len(tokens):
                self.findings.add(BEYOND, self._place(key), len(tokens) - allowed)
            if not allowed:
                (dead if len(tokens) else complete).append(parent)
            for at in range(allowed):
                token = tokens[at]
                weight = weights[at] if weights else 0.0
                if token == end:
                    complete.append(parent)
                    self._end_weight(level.tokens[parent], weight)
                    continue
                child = f"{key}{sep}{token}"
                below = known.get(child)
                if below is None:
                    off.add(parent, token, weight)
                    self.findings.add("candidate without a key", self._place(child))
                    continue
                if seen[below]:
                    raise error(
                        _core.PayloadError,
                        "two paths are spelled alike",
                        place=self._place(child),
                        help="take a separator that is no digit",
                    )
                seen[below] = 1
                keys.append(child)
                rows.append(below)
                on.add(parent, token, weight)
        self._take_items(level, complete, dead)
        self._take_errors(level, off)
        return _Level(keys, rows, on.rows(level), on.weights_of(level))

    def _weights_of(self, key: str, tokens: array[int], row: int) -> array[float] | list[float] | None:
        """The candidates' weights, from the table or from the children's keys."""
        named = self._document.weights
        if not named:
            return self.table.weights(row)
        own = self.table.weights(row)
        head = key + self._document.sep
        weights = []
        for at, token in enumerate(tokens):
            weight = named.get(f"{head}{token}")
            self._weights_used += weight is not None
            weights.append(weight if weight is not None else own[at] if own else 0.0)
        return weights

    def _end_weight(self, tokens: npt.NDArray[np.int32], weight: float) -> None:
        """Keeps the weight of an end token: the catalogue has no place for it."""
        if weight:
            self.end_weights.append((tokens.tolist(), weight))
            self.findings.add("weight of the end", self._place(self._spelled(tokens.tolist())))

    def _take_items(self, level: _Level, complete: list[int], dead: list[int]) -> None:
        if level.tokens.shape[1] == 0:
            self.empty = bool(complete)
            return
        if complete:
            numbers = np.arange(self.items, self.items + len(complete), dtype=np.uint64)
            self._builder.add(level.tokens[complete], items=numbers, weights=self._of(level.weights[complete]))
            self.items += len(complete)
        if dead:
            numbers = np.full(len(dead), NO_CANDIDATE, np.uint64)
            self._builder.add(level.tokens[dead], items=numbers, weights=self._of(level.weights[dead]))
            self.dead += len(dead)

    def _take_errors(self, level: _Level, ways: _Ways) -> None:
        """Gives the builder what has no key, in parts: paths may be long whose text is in the file once."""
        length = level.tokens.shape[1] + 1
        self._error_tokens += length * len(ways.tokens)
        if self._error_tokens > MAX_ERROR_TOKENS:
            raise error(
                _core.LimitError,
                f"candidates without keys make paths of more than {MAX_ERROR_TOKENS} tokens together",
                place=self._place(level.keys[0]),
                help="give each candidate its key, or leave it out",
            )
        at_once = max(1, PART // length)
        for at in range(0, len(ways.tokens), at_once):
            part = ways.part(at, at + at_once)
            numbers = np.full(len(part.tokens), NO_KEY, np.uint64)
            self._builder.add(part.rows(level), items=numbers, weights=self._of(part.weights_of(level)))
        self.errors += len(ways.tokens)

    def _of(self, weights: npt.NDArray[np.float32]) -> npt.NDArray[np.float32] | None:
        return weights if self._weighted else None

    def _place(self, key: str) -> str:
        """A key as a JSON pointer."""
        return f"/{self._field}/{key[:200]}"

    def _spelled(self, tokens: list[int]) -> str:
        return self._document.sep.join(str(token) for token in [self._document.start, *tokens])

    def _report_rest(self, seen: bytearray) -> None:
        """Reports what no path leads to."""
        sep = self._document.sep
        for key, row in self.table.rows.items():
            if not seen[row]:
                parts = key.split(sep) if sep else [key]
                ids = all(_is_id(part) for part in parts[1:]) and _is_id(parts[0].removeprefix("-"))
                self.findings.add("unreachable key" if ids else "key that is no path", self._place(key))
        unused = len(self._document.weights) - self._weights_used
        if unused:
            self.findings.add("weight of no candidate", "/weight_dict", unused)
        if self.empty:
            self.findings.add("end at the start", self._place(str(self._document.start)))


class _Ways:
    """Edges to the next level: parent, token and weight of each."""

    def __init__(self) -> None:
        self.parents = array("q")
        self.tokens = array("i")
        self.weights = array("f")

    def add(self, parent: int, token: int, weight: float) -> None:
        self.parents.append(parent)
        self.tokens.append(token)
        self.weights.append(weight)

    def part(self, begin: int, end: int) -> _Ways:
        """Some of them."""
        made = _Ways()
        made.parents, made.tokens, made.weights = (
            self.parents[begin:end],
            self.tokens[begin:end],
            self.weights[begin:end],
        )
        return made

    def rows(self, level: _Level) -> npt.NDArray[np.int32]:
        """The paths, tokens [n, d + 1]."""
        own = np.array(self.tokens, np.int32)[:, None]
        return np.concatenate([level.tokens[np.array(self.parents, np.int64)], own], axis=1)

    def weights_of(self, level: _Level) -> npt.NDArray[np.float32]:
        """Their weights, of the same shape."""
        own = np.array(self.weights, np.float32)[:, None]
        return np.concatenate([level.weights[np.array(self.parents, np.int64)], own], axis=1)


def _is_id(text: str) -> bool:
    """Whether this is how a token id is spelled in a key."""
    return (
        text.isascii()
        and text.isdigit()
        and len(text) <= 10
        and (text == "0" or text[0] != "0")
        and int(text) <= LARGEST
    )
