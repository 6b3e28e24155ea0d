"""Scores of continuations: the model's logits under a normalisation, as arrays for all beams at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._errors import error
from ._options import Normalize
from ._walk import Candidates, Floats, Ints, TokenWalk


class Continuations(NamedTuple):
    """Continuations on, ordered by group and, where it was asked for, by rank."""

    rows: Ints
    """The beam that it continues."""
    tokens: Ints
    scores: Floats
    """The log-probability of all tokens so far, in nats."""
    states: Ints
    ranks: Floats
    """What they are compared by: the scores, or the scores and what diversity or sampling makes of them."""

    def only(self, chosen: Any) -> Continuations:
        """These of them: an index, a mask or a slice."""
        return Continuations(*(column[chosen] for column in self))


def scored(found: Candidates) -> Continuations:
    """What a walk found, as continuations whose ranks are their scores.

    Raises:
        LogitsError: a score is NaN or +inf.
    """
    rows = np.asarray(found.rows, np.int64)
    scores = np.asarray(found.scores, np.float64)
    if not np.all(scores < np.inf):
        wrong = np.flatnonzero(~(scores < np.inf))[0]
        raise error(
            _core.LogitsError,
            f"token {found.tokens[wrong]} scores {scores[wrong]}",
            place=f"beam {rows[wrong]}",
            help="logits must be numbers below +inf",
        )
    return Continuations(rows, np.asarray(found.tokens, np.int64), scores, np.asarray(found.states, np.int64), scores)


def bases(walk: TokenWalk, normalize: Normalize, states: Ints, logits: Any, scores: Floats) -> Floats:
    """What to add to each row's logits to get the log-probabilities of walk: float64 [R].

    "vocabulary" divides by the sum over all tokens, "allowed" by the sum over the allowed ones with their weights.

    Raises:
        LogitsError: NaN or +inf among the logits that count.
    """
    if normalize == "none":
        return scores
    if normalize == "vocabulary":
        peaks = np.max(logits, axis=1, initial=-np.inf)
        if not np.all(peaks < np.inf):
            row = int(np.flatnonzero(~(peaks < np.inf))[0])
            raise error(
                _core.LogitsError,
                f"the largest logit is {peaks[row]}",
                place=f"beam {row}",
                help="logits must be numbers below +inf",
            )
        sums = np.array([_core.log_sum_exp(row) for row in logits], np.float64)
    else:
        allowed = scored(walk.gather(states, logits))
        sums = log_sums(allowed.rows, allowed.scores, len(states))
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(sums), -np.inf, scores - sums)


def log_sums(rows: Ints, values: Floats, count: int) -> Floats:
    """log(sum(exp)) of the values of each row: float64 [count], -inf for a row without any. Rows do not decrease."""
    sums = np.full(count, -np.inf)
    if rows.size:
        begins = np.flatnonzero(np.diff(rows, prepend=-1))
        peaks = np.maximum.reduceat(values, begins)
        shift = np.where(np.isneginf(peaks), 0.0, peaks)
        sizes = np.diff(begins, append=rows.size)
        with np.errstate(divide="ignore"):
            total = np.log(np.add.reduceat(np.exp(values - np.repeat(shift, sizes)), begins))
        sums[rows[begins]] = total + shift
    return sums


def possible(walk: TokenWalk, states: Ints, logits: Any, base: Floats) -> Continuations:
    """All continuations of every row that are possible, ordered by row and token. `base`: of `bases`."""
    found = scored(walk.gather(states, logits, base))
    finite = found.scores > -np.inf
    return found if finite.all() else found.only(finite)


def every(walk: TokenWalk, normalize: Normalize, states: Ints, logits: Any, scores: Floats) -> Continuations:
    """`possible`, under a normalisation."""
    return possible(walk, states, logits, bases(walk, normalize, states, logits, scores))


def by_rank(some: Continuations, groups: Ints) -> Continuations:
    """Ordered by group, rank (descending), row and token. `groups`: each row's."""
    return some.only(np.lexsort((some.tokens, some.rows, -some.ranks, groups[some.rows])))


def portions(groups: Ints) -> Iterator[tuple[int, slice]]:
    """Each group with the slice that is its own; groups do not decrease."""
    begins = np.flatnonzero(np.diff(groups, prepend=-1))
    for begin, size in zip(begins, np.diff(begins, append=len(groups)), strict=True):
        yield int(groups[begin]), slice(int(begin), int(begin + size))
