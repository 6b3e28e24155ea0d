"""Prefix trees from what Python people hold: arrays, lists, texts. It refuses to know files of other formats."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from logitree import _core
from logitree._errors import error

Rows = npt.NDArray[Any] | Iterable[Sequence[int] | npt.NDArray[Any]]
"""Items as tokens: an array [items, length], or sequences of any lengths."""

Weights = npt.NDArray[Any] | Iterable[Sequence[float] | npt.NDArray[Any]]
"""A weight for each token, in the same shape."""

Others = _core.Matcher | Iterable[_core.Matcher]
"""What an item must pass beside the tree."""

_AT_ONCE = 1 << 20
"""Rows that are converted at once, so that an array of millions is never copied whole."""


def prefix_tree(
    tokens: Rows,
    *,
    items: Iterable[int] | npt.NDArray[Any] | None = None,
    weights: Weights | None = None,
    path: str | os.PathLike[str] | None = None,
    memory: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> PrefixTree:
    """A prefix tree of these items: only they can be generated.

    Args:
        tokens: the items' tokens: an integer array [N, L], or N sequences (at most 4,096 tokens each, ids below 2**31).
            They may repeat, and one may be the beginning of another.
        items: a number below 2**64 for each item, which is what searches give back; by default 0, 1, 2, ... Several
            items may have the same tokens; what has the same tokens and the same number is kept once.
        weights: a finite float32 for each token, which is added to its logit; items that begin alike must agree.
        path: where to write the index. It stands there at once and whole, or not at all. By default it is kept in
            memory.
        memory: bytes that unsorted items may take, 3 GiB by default; what is more is sorted on disk, beside `path`.
        progress: called with a number from 0 to 1 while the index is written.

    Raises:
        ConstraintError: an item without tokens, a token that is none, weights that disagree.
        LimitError: an item that is too long.
        FileError: the index cannot be written.
    """
    builder = PrefixBuilder(path, weighted=weights is not None, memory=memory)
    builder.add(tokens, items=items, weights=weights)
    return builder.finish(progress)


class PrefixBuilder:
    """Takes items in portions, then writes the index of a prefix tree: for more than fit in memory."""

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, weighted: bool = False, memory: int | None = None
    ) -> None:
        """Arguments as those of `prefix_tree`; `weighted`: whether tokens come with weights."""
        self._path = None if path is None else os.fspath(path)
        folder = None if self._path is None else os.path.dirname(self._path) or "."
        self._core = _core.PrefixBuilder(weighted=weighted, memory=memory, folder=folder)

    def add(self, tokens: Rows, *, items: Any = None, weights: Weights | None = None) -> None:
        """Takes items; without numbers they go on from the largest so far.

        Raises:
            ConstraintError, LimitError: as `prefix_tree`. Items before the wrong one may have been taken.
        """
        for flat, numbers, ends, chosen in _rows(tokens, items, weights):
            self._core.push(flat, numbers, ends=ends, weights=chosen)

    def finish(self, progress: Callable[[float], object] | None = None) -> PrefixTree:
        """Writes the index, and gives the tree.

        Raises:
            ConstraintError: a token has two weights in one place.
            FileError: the index cannot be written.
            StateError: it is written already.
        """
        tree, repeated = self._core.finish(self._path, progress)
        return PrefixTree(tree, repeated)

    def __len__(self) -> int:
        """Items so far."""
        return len(self._core)


class PrefixTree:
    """A large set of items, each a sequence of tokens, of which only those that exist may be generated.

    Made by `prefix_tree`, or opened from a file. It may be read by many threads while one adds and removes: `paths`
    gives the tree as it is then, and what comes later does not change that.
    """

    def __init__(self, core: _core.PrefixIndex, repeated: int = 0) -> None:
        self._core = core
        self.repeated = repeated
        """How many items were given more than once with the same number, when the tree was built."""

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> PrefixTree:
        """Opens an index file, in well under a millisecond: it is mapped, and checked as it is read.

        While it is open nobody may write to the file; another may be renamed to its place.

        Raises:
            FileError: it cannot be read.
            PayloadError: it is no index, or damaged; so may each later call.
        """
        return cls(_core.PrefixIndex.open(os.fspath(path)))

    @classmethod
    def from_bytes(cls, data: bytes) -> PrefixTree:
        """The tree of an index file's bytes. Raises PayloadError if they are none."""
        return cls(_core.PrefixIndex.from_bytes(data))

    def to_bytes(self) -> bytes:
        """The index file's bytes, without what was added and removed since it was made."""
        return self._core.to_bytes()

    def paths(
        self,
        *,
        end: int | None = None,
        allowed: Any = None,
        intersect: Others | None = None,
        vocabulary_size: int | None = None,
    ) -> _core.PrefixPaths:
        """The tree as it is now, to be walked: what a search and a matcher are given.

        Args:
            end: the token behind every item; None: an item ends by itself.
            allowed: only the items with these numbers: a bool array whose place is the number, or a list of numbers. It
                takes a pass over all numbers, so keep the paths of a subset that is asked for again.
            intersect: only the items that this matcher, or each of these, allows from where it stands: it takes all
                tokens of the item and is accepting behind them, or behind `end`. What is finished takes no more. The
                matchers stay where they are. All places that they reach are looked at, so keep these paths, too. There
                may be no item left.
            vocabulary_size: number of ids that masks cover; by default just enough.

        Raises:
            ConstraintError: a token is outside the vocabulary; `intersect` is empty.
            LimitError: as the matchers of `intersect`.
        """
        return self._core.paths(end=end, allowed=allowed, intersect=intersect, vocabulary_size=vocabulary_size)

    def matcher(
        self,
        *,
        end: int | None = None,
        intersect: Others | None = None,
        fuel: int | None = None,
        vocabulary_size: int | None = None,
    ) -> _core.Matcher:
        """A matcher at the beginning of an item, for one sequence.

        Args:
            end: the token behind every item; None: an item ends by itself.
            intersect: as in `paths`, but found out where the sequence goes: a token is allowed if a whole item that all
                allow lies behind it. Forks share what they find out, so make one matcher and fork it.
            fuel: steps that finding out what is allowed once may take, 1,048,576 by default: tokens that are offered
                to the others, or 64 ways on that are read. For `intersect` only.
            vocabulary_size: number of ids that masks cover; by default just enough.

        Raises:
            ConstraintError: there is no item, or none that all allow; or one item of the tree is the beginning of
                another and `end` is None.
            LimitError: it takes more than the fuel; so may each later call. What a matcher found out is kept, up to
                some three million places: asking it again gets further. `paths(intersect=...)` has no such limits.
            SamplingError: `fuel` is no whole number above 0.
        """
        return self.paths(end=end, vocabulary_size=vocabulary_size).matcher(intersect=intersect, fuel=fuel)

    def add(self, tokens: Rows, *, items: Any = None, weights: Weights | None = None) -> int:
        """Adds items; those that read now go on with what they have. A million at most are added at once or not at all.

        Args:
            tokens: as in `prefix_tree`.
            items: a number for each; by default they go on from the largest that ever was in this tree, which is in the
                index or was added since it was opened, removed or not. The first time that takes a pass over all
                numbers of the index.
            weights: as in `prefix_tree`; by default 0. Where the index has a token in that place, or another added item
                does, its weight stays.

        Returns:
            How many were not there yet.

        Raises:
            ConstraintError, LimitError: as `prefix_tree`; LimitError, too, if no number is left.
        """
        parts = list(_rows(tokens, items, weights))
        return sum(self._core.add_rows(flat, n, ends=ends, weights=chosen) for flat, n, ends, chosen in parts)

    def remove(self, tokens: Rows | None = None, *, items: Any = None) -> int:
        """Removes items: by their tokens, by their numbers (a pass over all of them), or by both, one beside the other.

        Returns:
            How many there were.
        """
        if tokens is None:
            if items is None:
                raise error(_core.ConstraintError, "nothing to remove", help="give tokens, items=, or both")
            return self._core.remove_items(items)
        parts = list(_rows(tokens, items, None))
        return sum(self._core.remove_rows(flat, numbers, ends=ends) for flat, numbers, ends, _ in parts)

    def merge(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        memory: int | None = None,
        progress: Callable[[float], object] | None = None,
    ) -> None:
        """Makes one index of all items that are there, in a file or in memory, and goes on with it.

        Who reads is not kept waiting; who adds and removes is. Arguments and errors as those of `prefix_tree`.
        """
        self._core.merge(None if path is None else os.fspath(path), memory=memory, progress=progress)

    def reload(self, path: str | os.PathLike[str]) -> None:
        """Puts the index of a file in the place of all that is here, at once. Errors as those of `open`."""
        self._core.reload(os.fspath(path))

    def check(self) -> None:
        """Reads the whole index and compares it with its checksums.

        Raises:
            PayloadError: it is damaged; the message says where.
        """
        self._core.check()

    def items(self, tokens: Sequence[int] | npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
        """Numbers (uint64, ascending) of the items that are exactly these tokens."""
        return self._core.items(tokens)

    @property
    def path(self) -> str | None:
        """The file that it was opened from or written to."""
        return None if self._core.path is None else os.fspath(self._core.path)

    @property
    def info(self) -> dict[str, Any]:
        """Counts and sizes.

        items (there now), rows and tokens (in the index), longest (tokens), largest_token, fixed_length, nested (an
        item is the beginning of another), weighted, wide_nodes, added_nodes (over the index), bytes (of the index).
        """
        return self._core.info

    def __contains__(self, tokens: Sequence[int] | npt.NDArray[Any]) -> bool:
        return tokens in self._core

    def __len__(self) -> int:
        """Items that are there; one with several numbers counts as several."""
        return len(self._core)

    def __repr__(self) -> str:
        return f"PrefixTree({len(self)} items{'' if self.path is None else ', ' + self.path})"


Part = tuple[
    npt.NDArray[np.uint32],
    npt.NDArray[np.uint64] | None,
    npt.NDArray[np.int64] | None,
    npt.NDArray[np.float32] | None,
]
"""Rows as the core takes them: tokens, numbers if given, where each row ends (None: all are of one length), weights."""


def _rows(tokens: Rows, items: Any, weights: Weights | None) -> Iterable[Part]:
    """The rows in parts, checked and converted.

    Raises:
        ConstraintError: something is no token, no item number or no weight, or their counts differ.
    """
    numbers = None if items is None else _numbers(items)
    array = _table(tokens)
    if array is None:
        flat, ends = _ragged(tokens)
        _as_many(numbers, len(ends))
        lengths = np.diff(ends, prepend=0).tolist()
        yield flat, numbers, ends, None if weights is None else _weights(_flat(weights, lengths), len(flat))
        return
    _as_many(numbers, len(array))
    table = None if weights is None else np.asarray(weights)
    if table is not None and table.shape != array.shape:
        raise error(_core.ConstraintError, f"weights of shape {table.shape} for tokens of shape {array.shape}")
    for at in range(0, len(array), _AT_ONCE):
        part = _tokens(array[at : at + _AT_ONCE])
        chosen = None if table is None else _weights(table[at : at + _AT_ONCE].reshape(-1), part.size)
        yield part, None if numbers is None else numbers[at : at + _AT_ONCE], None, chosen


def _table(tokens: Any) -> npt.NDArray[Any] | None:
    """The tokens as an array of two dimensions, if that is what they are."""
    if isinstance(tokens, (str, bytes)):
        raise TypeError("tokens must be numbers, not text: give the ids that spell it")
    if not isinstance(tokens, np.ndarray) and not hasattr(tokens, "__array_interface__"):
        return None
    array = np.asarray(tokens)
    if array.dtype == object:
        return None
    if array.ndim != 2:
        raise error(_core.ConstraintError, f"tokens of {array.ndim} dimensions", help="give one row an item: [N, L]")
    return array


def _ragged(tokens: Iterable[Any]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    parts = [np.asarray(row) for row in tokens]
    for at, part in enumerate(parts):
        if part.ndim != 1 or (part.size and part.dtype.kind not in "iu"):
            raise error(
                _core.ConstraintError,
                "tokens that are no sequence of whole numbers",
                place=f"item {at}",
                help="give ids",
            )
    flat = np.concatenate([part.astype(np.int64) for part in parts]) if parts else np.zeros(0, np.int64)
    return _tokens(flat), np.cumsum([len(part) for part in parts], dtype=np.int64)


def _flat(weights: Iterable[Any], lengths: list[int]) -> npt.NDArray[Any]:
    parts = [np.asarray(row, np.float32) for row in weights]
    if [len(part) for part in parts] != lengths:
        raise error(_core.ConstraintError, "weights that differ in number from the tokens", help="give one a token")
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)


def _tokens(array: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    if array.size and array.dtype.kind not in "iu":
        raise error(_core.ConstraintError, f"tokens of dtype {array.dtype}", help="tokens are whole numbers")
    if array.size and (int(array.min()) < 0 or int(array.max()) >= 1 << 31):
        bad = array.min() if array.min() < 0 else array.max()
        raise error(_core.ConstraintError, f"token {bad}", help="tokens are from 0 to 2,147,483,647")
    return np.ascontiguousarray(array, dtype=np.uint32)


def _numbers(items: Any) -> npt.NDArray[np.uint64]:
    array = np.asarray(items if hasattr(items, "__len__") else list(items))
    if array.size == 0:
        return np.zeros(0, np.uint64)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array.dtype.kind == "i" and array.min() < 0):
        raise error(
            _core.ConstraintError,
            f"item numbers of dtype {array.dtype} and {array.ndim} dimensions",
            help="items are numbered by whole numbers from 0 up: keep other names in a list beside the tree",
        )
    return array.astype(np.uint64)


def _as_many(numbers: npt.NDArray[np.uint64] | None, n: int) -> None:
    if numbers is not None and len(numbers) != n:
        raise error(_core.ConstraintError, f"{len(numbers)} item numbers for {n} items", help="give one a row")


def _weights(array: npt.NDArray[Any], n: int) -> npt.NDArray[np.float32]:
    if array.size != n:
        raise error(_core.ConstraintError, f"{array.size} weights for {n} tokens", help="give one a token")
    return np.ascontiguousarray(array, dtype=np.float32)
