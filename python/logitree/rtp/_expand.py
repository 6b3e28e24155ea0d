"""Expands a document's keys to the items of a catalogue, level by level from the first step."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from itertools import repeat

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
"""Tokens that are given to the catalogue at once."""


class Level:
    """Keys of one length: their candidates, and the path to each as tokens [n, d] and weights of the same shape."""

    def __init__(
        self, keys: list[str], rows: list[bytes], tokens: npt.NDArray[np.int32], weights: npt.NDArray[np.float32]
    ):
        self.keys = keys
        self.rows = rows
        self.tokens = tokens
        self.weights = weights


class Edges:
    """Candidates of a level's keys: the place of the key, token and weight of each."""

    def __init__(self) -> None:
        self.parents = array("q")
        self.tokens = array("i")
        self.weights = array("f")

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, parent: int, token: int, weight: float) -> None:
        """One more."""
        self.parents.append(parent)
        self.tokens.append(token)
        self.weights.append(weight)

    def paths(self, level: Level, begin: int, end: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """The paths of some of them, tokens [n, d + 1] and weights of the same shape."""
        parents = np.array(self.parents[begin:end], np.int64)
        tokens = np.array(self.tokens[begin:end], np.int32)[:, None]
        weights = np.array(self.weights[begin:end], np.float32)[:, None]
        return (
            np.concatenate([level.tokens[parents], tokens], axis=1),
            np.concatenate([level.weights[parents], weights], axis=1),
        )


class Step:
    """The candidates of a level, by what they lead to."""

    def __init__(self) -> None:
        self.live = Edges()
        """Those that have a key."""
        self.keys: list[str] = []
        """The keys of `live`."""
        self.rows: list[bytes] = []
        """The candidates of those."""
        self.dead = Edges()
        """Those that have none."""
        self.complete: list[int] = []
        """The places of the keys that an item ends at."""
        self.barren: list[int] = []
        """The places of the keys whose candidates are all beyond the vocabulary."""


class TreeBuilder:
    """Builds the catalogue of a document, and counts what it has."""

    def __init__(self, document: Document, findings: Findings, limit: int | None, path: str | os.PathLike[str] | None):
        self.items = 0
        """Items of at least one token."""
        self.errors = 0
        """Candidates without a key."""
        self.barren = 0
        """Keys whose candidates are all beyond the vocabulary."""
        self.empty = False
        """Whether the empty path is an item."""
        self.end_weights: list[tuple[list[int], float]] = []
        """Of items: the weight of the end token after them, for which the catalogue has no place."""
        self._document = document
        self._findings = findings
        self._limit = LARGEST + 1 if limit is None else limit
        self._weighted = document.weighted or bool(document.weights)
        self._catalogue = CatalogueBuilder(path, weighted=self._weighted)
        self._weights_used = 0
        self._error_tokens = 0

    def build(self, tell: OnProgress) -> tuple[Catalogue, Report]:
        """Builds the tree.

        Raises:
            PayloadError: two paths are spelled alike.
            FileError, LimitError: as `Catalogue.from_codes`.
        """
        keys = len(self._document.table)
        first = self._first_key()
        if first == "none":
            self.empty = True
        else:
            root = self._document.status([])
            level = Level([root], [self._reach(root)], np.zeros((1, 0), np.int32), np.zeros((1, 0), np.float32))
            while level.keys:
                level = self._descend(level)
        self._report_rest()
        report = Report(first, keys, self.items + self.empty, self.errors, self._findings.all())
        return self._catalogue.finish(tell), report

    def _first_key(self) -> FirstKey:
        """What the first step's key looks like. Without the start's own, it is made from the keys after it."""
        table, start = self._document.table, self._document.status([])
        if start in table:
            return "start"
        head = start + self._document.sep
        firsts = {key[len(head) :] for key in table if key.startswith(head)}
        tokens = sorted(int(text) for text in firsts if _is_id(text))
        if not tokens:
            return "none"
        self._document.add(start, tokens)
        return "path"

    def _reach(self, key: str) -> bytes:
        """The candidates of a key, which no other path may reach."""
        row = self._document.table[key]
        if row is None:
            place, help = self._document.place(key), "take a separator that is no digit"
            raise error(_core.PayloadError, "two paths are spelled alike", place=place, help=help)
        self._document.table[key] = None
        return row

    def _descend(self, level: Level) -> Level:
        """Gives the catalogue what ends at a level, and returns the next one."""
        step = self._sorted(level)
        self._add_items(level, step)
        self._add_errors(level, step.dead)
        return Level(step.keys, step.rows, *step.live.paths(level, 0, len(step.live)))

    def _sorted(self, level: Level) -> Step:
        """Sorts the candidates of a level's keys by what they lead to."""
        step = Step()
        table, sep, end = self._document.table, self._document.sep, self._document.end
        for parent, (key, row) in enumerate(zip(level.keys, level.rows, strict=True)):
            tokens, weights = self._document.candidates(row)
            if self._document.weights:
                weights = self._named_weights(key, tokens, weights)
            allowed = bisect_left(tokens, self._limit)
            if allowed < len(tokens):
                self._findings.add(BEYOND, self._document.place(key), len(tokens) - allowed)
                del tokens[allowed:]
            if not tokens:
                (step.barren if row else step.complete).append(parent)
            for token, weight in zip(tokens, weights or repeat(0.0), strict=False):
                if token == end:
                    step.complete.append(parent)
                    self._keep_end_weight(level.tokens[parent].tolist(), weight)
                elif (child := f"{key}{sep}{token}") in table:
                    step.rows.append(self._reach(child))
                    step.keys.append(child)
                    step.live.add(parent, token, weight)
                else:
                    step.dead.add(parent, token, weight)
        return step

    def _named_weights(self, key: str, tokens: list[int], own: list[float] | None) -> list[float]:
        """The candidates' weights: those of the children's keys and, without one, the table's."""
        head = key + self._document.sep
        named = [self._document.weights.get(f"{head}{token}") for token in tokens]
        self._weights_used += len(tokens) - named.count(None)
        return [other if weight is None else weight for weight, other in zip(named, own or repeat(0.0), strict=False)]

    def _keep_end_weight(self, tokens: list[int], weight: float) -> None:
        if weight:
            self.end_weights.append((tokens, weight))
            self._findings.add("weight of the end", self._document.place(self._document.status(tokens)))

    def _add_items(self, level: Level, step: Step) -> None:
        """Gives the catalogue the items that end at a level, and the keys that only the end can follow."""
        if level.tokens.shape[1] == 0:
            self.empty = bool(step.complete)
            return
        numbers = np.arange(self.items, self.items + len(step.complete), dtype=np.uint64)
        self._add(level.tokens[step.complete], level.weights[step.complete], numbers)
        self._add(level.tokens[step.barren], level.weights[step.barren], NO_CANDIDATE)
        self.items += len(step.complete)
        self.barren += len(step.barren)

    def _add_errors(self, level: Level, dead: Edges) -> None:
        """Gives the catalogue what has no key, in parts: paths may be long whose text is in the file once."""
        if not dead:
            return
        first = self._document.place(f"{level.keys[dead.parents[0]]}{self._document.sep}{dead.tokens[0]}")
        self._findings.add("candidate without a key", first, len(dead))
        length = level.tokens.shape[1] + 1
        self._error_tokens += length * len(dead)
        if self._error_tokens > MAX_ERROR_TOKENS:
            raise error(
                _core.LimitError,
                f"candidates without keys make paths of more than {MAX_ERROR_TOKENS} tokens together",
                place=self._document.place(level.keys[0]),
                help="give each candidate its key, or leave it out",
            )
        at_once = max(1, PART // length)
        for at in range(0, len(dead), at_once):
            self._add(*dead.paths(level, at, at + at_once), NO_KEY)
        self.errors += len(dead)

    def _add(
        self, tokens: npt.NDArray[np.int32], weights: npt.NDArray[np.float32], numbers: npt.NDArray[np.uint64] | int
    ) -> None:
        """Gives the catalogue paths, tokens and weights [n, d], with a number each or one for all."""
        if len(tokens):
            items = np.full(len(tokens), numbers, np.uint64)
            self._catalogue.add(tokens, items=items, weights=weights if self._weighted else None)

    def _report_rest(self) -> None:
        """Reports what no path leads to."""
        sep = self._document.sep
        for key, row in self._document.table.items():
            if row is not None:
                parts = key.split(sep) if sep else [key]
                ids = all(_is_id(part) for part in parts[1:]) and _is_id(parts[0].removeprefix("-"))
                self._findings.add("unreachable key" if ids else "key that is no path", self._document.place(key))
        unused = len(self._document.weights) - self._weights_used
        if unused:
            self._findings.add("weight of no candidate", "/weight_dict", unused)
        if self.empty:
            self._findings.add("end at the start", self._document.place(self._document.status([])))


def _is_id(text: str) -> bool:
    """Whether this is how a token id is spelled in a key."""
    return (
        text.isascii()
        and text.isdigit()
        and len(text) <= 10
        and (text == "0" or text[0] != "0")
        and int(text) <= LARGEST
    )
