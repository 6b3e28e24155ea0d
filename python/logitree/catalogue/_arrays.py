"""Converts arrays, lists, item numbers and keys to the columns that the core reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from .._errors import error

Codes = npt.NDArray[Any] | Iterable[Sequence[int] | npt.NDArray[Any]]
"""Items as tokens: an integer array [N, L], or N sequences of any lengths."""

Weights = npt.NDArray[Any] | Iterable[Sequence[float] | npt.NDArray[Any]]
"""A weight for each token, in the same shape."""

Items = Iterable[int] | Iterable[str] | npt.NDArray[Any]
"""A number or a key for each item."""

_AT_ONCE = 1 << 20
"""Rows that are converted at once, so that an array of millions is never copied whole."""


class Rows(NamedTuple):
    """Rows as the core takes them."""

    tokens: npt.NDArray[np.uint32]
    """[N, L], or flat where rows differ in length."""
    numbers: npt.NDArray[np.uint64] | None
    keys: list[str] | None
    """At most one of numbers and keys is given."""
    ends: npt.NDArray[np.int64] | None
    """Where each row ends in flat tokens; None: all rows have length L."""
    weights: npt.NDArray[np.float32] | None
    """Flat, one for each token."""


def rows_of(codes: Codes, items: Items | None, weights: Weights | None) -> Iterable[Rows]:
    """The rows in portions, checked and converted.

    Raises:
        ConstraintError: something is not a token, an item number, a key or a weight, or their counts differ.
    """
    numbers, keys = _named(items)
    named: Any = keys if numbers is None else numbers
    count = None if items is None else len(named)
    array = _table(codes)
    if array is None:
        flat, ends = _ragged(codes)
        _check_count(count, len(ends), numbers is None)
        lengths = np.diff(ends, prepend=0).tolist()
        yield Rows(flat, numbers, keys, ends, None if weights is None else _weights(_flat(weights, lengths), len(flat)))
        return
    _check_count(count, len(array), numbers is None)
    table = None if weights is None else np.asarray(weights)
    if table is not None and table.shape != array.shape:
        raise error(_core.ConstraintError, f"weights of shape {table.shape} for tokens of shape {array.shape}")
    for at in range(0, len(array), _AT_ONCE):
        part = _tokens(array[at : at + _AT_ONCE])
        chosen = None if table is None else _weights(table[at : at + _AT_ONCE].reshape(-1), part.size)
        yield Rows(
            part,
            None if numbers is None else numbers[at : at + _AT_ONCE],
            None if keys is None else keys[at : at + _AT_ONCE],
            None,
            chosen,
        )


def has_keys(items: Any) -> bool:
    """Whether items have keys, by the first of them."""
    if isinstance(items, np.ndarray):
        return bool(items.dtype.kind == "U")
    return items is not None and any(isinstance(item, str) for item in items[:1])


def _named(items: Any) -> tuple[npt.NDArray[np.uint64] | None, list[str] | None]:
    """Item numbers, or keys, of what a caller gave."""
    if items is None:
        return None, None
    if isinstance(items, str | bytes):
        raise TypeError("items is one text: give a list with a key or a number for each item")
    if not isinstance(items, np.ndarray):
        items = items if hasattr(items, "__getitem__") else list(items)
        if has_keys(items):
            keys = list(items)
            for at, key in enumerate(keys):
                if not isinstance(key, str):
                    message = f"{key!r} among keys"
                    raise error(_core.ConstraintError, message, place=f"item {at}", help="give a text for each item")
            return None, keys
    elif items.dtype.kind == "U":
        return None, items.tolist()
    return _numbers(items), None


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
                "tokens that are not a sequence of whole numbers",
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
            help="give whole numbers from 0 up, or texts as keys",
        )
    return array.astype(np.uint64)


def _check_count(count: int | None, n: int, keys: bool) -> None:
    if count is not None and count != n:
        what = "keys" if keys else "item numbers"
        raise error(_core.ConstraintError, f"{count} {what} for {n} items", help="give one a row")


def _weights(array: npt.NDArray[Any], n: int) -> npt.NDArray[np.float32]:
    if array.size != n:
        raise error(_core.ConstraintError, f"{array.size} weights for {n} tokens", help="give one a token")
    return np.ascontiguousarray(array, dtype=np.float32)
