"""Sequences that are decoded together: rows that join, leave and change places. What a row does is its decoder's
business; a step of all of them is one native call."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from . import _core, masks
from ._errors import error
from .engines._rows import reindex


class Batch:
    """Decoders that take their steps together, one native call a step for all rows.

    ```python
    batch = lt.Batch(vocabulary, lt.Decoder(vocabulary, chain, matcher).sequences(4))
    while not batch.finished.all():
        tokens = batch.step(logits)  # float32 [len(batch), V], one row for each decoder
    ```

    Each row has its own constraint, chain, seed, stop conditions and trace. A row that is finished gives an end token
    and may take no other, until it leaves. Not for two threads at once.
    """

    def __init__(
        self,
        vocabulary: _core.Vocabulary,
        decoders: Iterable[_core.Decoder] = (),
        *,
        end_tokens: int | Sequence[int] | None = None,
    ) -> None:
        """`end_tokens`: the ids that may follow where a row is finished; the first fills it. None: the
        vocabulary's.

        Raises:
            ConstraintError: there is no end token, or it is outside the vocabulary.
        """
        ends = vocabulary.end_tokens if end_tokens is None else _ids(end_tokens)
        if not ends:
            message = "there is no end token for finished rows"
            raise error(_core.ConstraintError, message, help="give the token that ends a sequence: end_tokens=")
        outside = [id for id in ends if not 0 <= id < len(vocabulary)]
        if outside:
            raise error(_core.ConstraintError, f"end token {outside[0]} in a vocabulary of {len(vocabulary)}")
        self._vocabulary = vocabulary
        self._ends = ends
        self._rows: list[_core.Decoder] = []
        self.join(*decoders)

    def join(self, *decoders: _core.Decoder) -> None:
        """Appends these decoders as rows.

        Raises:
            StateError: one is a row already.
            ConstraintError: one is of another vocabulary.
        """
        known = {id(row) for row in self._rows}
        for decoder in decoders:
            if not isinstance(decoder, _core.Decoder):
                raise TypeError(f"a row is a Decoder, not {type(decoder).__name__}; for a list write join(*decoders)")
            if id(decoder) in known:
                help = "give each row a decoder of its own: fork(), or sequences(n)"
                raise error(_core.StateError, "a decoder that is a row already", help=help)
            if decoder.vocabulary != self._vocabulary:
                raise error(_core.ConstraintError, "a decoder of another vocabulary than the batch's")
            known.add(id(decoder))
        self._rows = [*self._rows, *decoders]

    def leave(self, *decoders: _core.Decoder) -> None:
        """Removes the rows of these decoders; later rows move up.

        Raises:
            StateError: one is no row.
        """
        leaving = {id(decoder) for decoder in decoders}
        if not leaving <= {id(row) for row in self._rows}:
            raise error(_core.StateError, "a decoder that is no row", help="rows are what join() was given")
        self._rows = [row for row in self._rows if id(row) not in leaving]

    def leave_finished(self) -> list[_core.Decoder]:
        """The rows that are finished leave; their decoders, in the order of the rows."""
        over = [row for row in self._rows if row.is_finished]
        self.leave(*over)
        return over

    def reorder(self, parents: npt.ArrayLike) -> None:
        """Row i continues the former row `parents[i]`, as beams do. There may be more or fewer rows than before.

        A row that continues keeps its decoder; if it continues several times, the others are copies, which draw alike.

        Raises:
            StateError: a parent is no row; nothing has changed then.
        """
        taken: set[int] = set()
        rows = []
        for parent in reindex(parents, len(self._rows)).tolist():
            rows.append(self._rows[parent].fork() if parent in taken else self._rows[parent])
            taken.add(parent)
        self._rows = rows

    def step(self, logits: object, *, threads: int | None = None) -> npt.NDArray[np.uint32]:
        """One step of every row: allowed tokens, chain, pick, acceptance. All rows take their token, or none.

        Args:
            logits: [B, V], or a list of B rows; float32, float16 or bfloat16, read in place. The rows of finished
                decoders are not looked at.
            threads: at most so many; None is one a core, fewer where the work is not worth them. A batch with a Python
                callback in a chain runs on the calling thread. Else the interpreter is free for others meanwhile.

        Returns:
            The tokens, [B]; an end token where a row was finished.

        Raises:
            LogitreeError: as of `Decoder.step`, for the first row that has an error, with "row 3" in its place; an
                exception of a Python callback comes as it is.
            SamplingError: there are not as many rows as decoders.
        """
        return _core.step_batch(self._rows, logits, self._ends[0], threads=threads)[0]

    def try_step(
        self, logits: object, *, threads: int | None = None
    ) -> tuple[npt.NDArray[np.uint32], dict[int, Exception]]:
        """As `step`, but each row for itself: one that fails is as it was, and costs the others nothing.

        Returns:
            The tokens, [B], and the exceptions by row. A row that failed has an end token there, which it did not take;
            it may be tried again, or leave. KeyboardInterrupt and SystemExit in a callback are raised, as by `step`.
        """
        tokens, failed = _core.step_batch(self._rows, logits, self._ends[0], each=True, threads=threads)
        return tokens, dict(failed)

    def accept(self, tokens: Sequence[int] | npt.NDArray[np.integer]) -> None:
        """Every row takes a token that was chosen elsewhere: all of them, or none. A finished row takes an end token,
        and stays as it is.

        Raises:
            TokenError: a token is not allowed in its row, whose number is in the place.
            StateError: another token than an end for a finished row.
            SamplingError: there are not as many tokens as rows.
        """
        _core.accept_batch(self._rows, tokens, self._ends)

    def masks(self, out: npt.NDArray[np.int32] | None = None) -> npt.NDArray[np.int32]:
        """Deprecated: `masks.fill_batch(batch, out)`."""
        if out is None:
            out = masks.new(len(self._vocabulary), rows=len(self._rows))
        self._fill(out)
        return out

    def _fill(self, out: npt.NDArray[np.int32]) -> None:
        """As `masks.fill_batch` of this batch."""
        _core.mask_batch(self._rows, out, self._ends)

    def take_forced(self) -> list[list[int]]:
        """Every row accepts its forced tokens; returns them. They need no forward pass of their own.

        Raises:
            LimitError: finding them takes more work than the fuel of a row's constraint allows; no row has moved then.
        """
        return _core.take_forced_batch(self._rows)

    @property
    def finished(self) -> npt.NDArray[np.bool_]:
        """Which rows are finished, bool [B]."""
        return np.array([row.is_finished for row in self._rows], np.bool_)

    @property
    def vocabulary(self) -> _core.Vocabulary:
        """The vocabulary of every row."""
        return self._vocabulary

    def __getitem__(self, row: int) -> _core.Decoder:
        return self._rows[row]

    def __iter__(self) -> Iterator[_core.Decoder]:
        return iter(tuple(self._rows))

    def __len__(self) -> int:
        return len(self._rows)

    def __copy__(self) -> NoReturn:
        raise TypeError("a batch cannot be copied: fork its decoders, and make another of them")

    def __repr__(self) -> str:
        return f"Batch({len(self)} rows, {int(self.finished.sum())} finished)"


def _ids(end: int | Sequence[int]) -> list[int]:
    """Token ids, of whatever whole numbers they are.

    Raises:
        TypeError: something is no whole number.
    """
    given = end if np.iterable(end) else [end]
    if any(isinstance(id, bool) for id in given):
        raise TypeError("an end token is a whole number, not bool")
    return [operator.index(id) for id in given]
