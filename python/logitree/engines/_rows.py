"""What sessions are given, checked and compared: parents and tokens of rows."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

import numpy as np
import numpy.typing as npt

from .. import _core
from .._errors import EngineError, error
from ._session import ContextFull


def checked_rows(
    tokens: Sequence[Sequence[int]], held: Sequence[int], most: int | None, n_ctx: int | None, vocabulary: int
) -> list[list[int]]:
    """The new tokens of each row as lists. `held`: how many tokens each row has; empty before there are rows.

    Raises:
        EngineError: not a list for each row, all are empty, or there are too many.
        TokenError: a token is not in the vocabulary.
        ContextFull: rows do not fit.
    """
    if held and len(tokens) != len(held):
        raise EngineError(f"{len(tokens)} lists of tokens for {len(held)} rows", help="give one for each row")
    made = [[index(token) for token in new] for new in tokens]
    if not any(made):
        raise EngineError("nothing to evaluate: no row has tokens", help="give at least one token")
    _check_width(len(made), most)
    for new in made:
        checked_tokens(new, vocabulary)
    lengths = held or [0] * len(made)
    full = [i for i, new in enumerate(made) if new and n_ctx is not None and lengths[i] + len(new) > n_ctx]
    if full:
        raise ContextFull(full)
    return made


def checked_parents(parents: npt.ArrayLike, held: int, most: int | None) -> list[int]:
    """The parents of new rows, at least one and at most so many, among the old rows.

    Raises:
        EngineError: there are no old rows, or too many or no new ones.
        StateError: a parent is no old row.
    """
    if not held:
        raise EngineError("the session has no rows", help="evaluate the prompts first; after a failure, make a new one")
    made: list[int] = reindex(parents, held).tolist()
    _check_width(len(made), most)
    return made


def _check_width(rows: int, most: int | None) -> None:
    if not rows or (most is not None and rows > most):
        message = f"{rows} rows in a session made for {'any number' if most is None else most}"
        raise EngineError(message, help="ask for more rows when the session is made")


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens both begin with."""
    n = min(len(a), len(b))
    return next((i for i in range(n) if a[i] != b[i]), n)


def checked_tokens(tokens: Sequence[int], vocabulary: int) -> None:
    """A TokenError where a token is not in the model's vocabulary."""
    wrong = next((token for token in tokens if not 0 <= token < vocabulary), None)
    if wrong is not None:
        raise _core.TokenError(f"token {wrong} is outside the model's vocabulary of {vocabulary}")


def reindex(parents: npt.ArrayLike, width: int) -> npt.NDArray[np.int64]:
    """The parents of new rows as an index: `old[reindex(parents, len(old))]` are the new rows.

    Args:
        parents: int [R], for each new row the old row that it continues. There may be more of them than old rows
            (a prompt that becomes many beams: all zeros) or fewer.
        width: how many old rows there are.

    Returns:
        int64 [R], a copy.

    Raises:
        StateError: a parent is no old row, or not a whole number. Nothing was moved.
    """
    given = np.asarray(parents)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise error(
            _core.StateError,
            f"parents are {given.ndim}-dimensional {given.dtype}",
            help="give a list of row numbers",
        )
    wrong = np.flatnonzero((given < 0) | (given >= width))
    if wrong.size:
        at = int(wrong[0])
        raise error(
            _core.StateError,
            f"the parent of row {at} is {given[at]}, there are {width} rows",
            help="a parent is 0 to one less than the rows before the step",
        )
    return given.astype(np.int64)
