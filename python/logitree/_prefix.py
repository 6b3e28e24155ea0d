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

_AT_ONCE = 1 << 20
"""Rows that are converted at once, so that an array of millions is never copied whole."""


def prefix_tree(
    tokens: Rows,
    *,
    items: Iterable[int] | npt.NDArray[Any] | None = None,
    weights: Rows | None = None,
    path: str | os.PathLike[str] | None = None,
    memory: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> _core.PrefixTree:
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
    builder = _core.PrefixBuilder(weighted=weights is not None, memory=memory, folder=_folder(path))
    for part in rows(tokens, items, weights):
        builder.push(*part[:2], ends=part[2], weights=part[3])
    return builder.finish(None if path is None else os.fspath(path), progress)[0]


Part = tuple[
    npt.NDArray[np.uint32], npt.NDArray[np.uint64], npt.NDArray[np.int64] | None, npt.NDArray[np.float32] | None
]
"""Rows as the core takes them: tokens, numbers, where each row ends (None: all are of one length), weights."""


def rows(tokens: Rows, items: Any = None, weights: Rows | None = None) -> Iterable[Part]:
    """The rows in parts, checked and converted.

    Raises:
        ConstraintError: something is no token, no item number or no weight, or their counts differ.
    """
    numbers = None if items is None else _numbers(items)
    array = _table(tokens)
    if array is None:
        flat, ends = _ragged(tokens)
        numbers = _as_many(numbers, len(ends))
        yield flat, numbers, ends, None if weights is None else _weights(_flat(weights), len(flat))
        return
    numbers = _as_many(numbers, len(array))
    table = None if weights is None else np.asarray(weights)
    if table is not None and table.shape != array.shape:
        raise error(_core.ConstraintError, f"weights of shape {table.shape} for tokens of shape {array.shape}")
    for at in range(0, len(array), _AT_ONCE):
        part = _tokens(array[at : at + _AT_ONCE])
        chosen = None if table is None else _weights(table[at : at + _AT_ONCE].reshape(-1), part.size)
        yield part, numbers[at : at + _AT_ONCE], None, chosen


def _folder(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.path.dirname(os.fspath(path)) or "."


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
                _core.ConstraintError, "tokens that are no sequence of whole numbers", place=f"item {at}", help="give ids"
            )
    flat = np.concatenate([part.astype(np.int64) for part in parts]) if parts else np.zeros(0, np.int64)
    return _tokens(flat), np.cumsum([len(part) for part in parts], dtype=np.int64)


def _flat(weights: Iterable[Any]) -> npt.NDArray[Any]:
    parts = [np.asarray(row, np.float32) for row in weights]
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


def _as_many(numbers: npt.NDArray[np.uint64] | None, n: int) -> npt.NDArray[np.uint64]:
    if numbers is None:
        return np.arange(n, dtype=np.uint64)
    if len(numbers) != n:
        raise error(_core.ConstraintError, f"{len(numbers)} item numbers for {n} items", help="give one a row")
    return numbers


def _weights(array: npt.NDArray[Any], n: int) -> npt.NDArray[np.float32]:
    if array.size != n:
        raise error(_core.ConstraintError, f"{array.size} weights for {n} tokens", help="give one a token")
    return np.ascontiguousarray(array, dtype=np.float32)
