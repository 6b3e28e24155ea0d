"""Which old row each new row is a copy of, checked before anything is moved. Knows nothing of what a row holds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .. import _core
from .._errors import error


def reindex(parents: npt.ArrayLike, width: int) -> npt.NDArray[np.int64]:
    """The parents of new rows as an index: `old[reindex(parents, len(old))]` are the new rows.

    Args:
        parents: int [R], for each new row the old row that it goes on from. There may be more of them than old rows
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
