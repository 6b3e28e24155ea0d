"""Checks of a beam session's arguments: parents, tokens and prompts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .. import _core
from .._errors import EngineError, error


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


def checked_tokens(tokens: npt.ArrayLike, vocabulary: int) -> list[int]:
    """The tokens as a list.

    Raises:
        TokenError: one is not in the vocabulary, or not a whole number.
    """
    given = np.asarray(tokens)
    if given.size and (given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= vocabulary):
        raise error(_core.TokenError, f"a token is outside the model's vocabulary of {vocabulary}")
    return [int(token) for token in given]


def checked_step(
    parents: npt.ArrayLike, tokens: npt.ArrayLike, rows: int, vocabulary: int
) -> tuple[list[int], list[int]]:
    """The parents and tokens of a step as lists of the same length, one entry at least.

    Raises:
        EngineError: there are none, or not as many of both.
        StateError: a parent is no row.
        TokenError: a token is not in the vocabulary.
    """
    old = reindex(parents, rows).tolist()
    new = checked_tokens(tokens, vocabulary)
    if not old or len(old) != len(new):
        raise EngineError(
            f"{len(old)} parents and {len(new)} tokens", help="give a parent and a token for each new row"
        )
    return old, new


def checked_prompts(prompts: Sequence[Sequence[int]], vocabulary: int) -> list[list[int]]:
    """The prompts as lists.

    Raises:
        EngineError: there are none, or one is empty.
        TokenError: a token is not in the vocabulary.
    """
    checked = [checked_tokens(prompt, vocabulary) for prompt in prompts]
    if not checked or not all(checked):
        raise EngineError("a prompt is empty" if checked else "there is no prompt", help="give at least one token")
    return checked
