"""Any constraint, or none, as a walk of token sequences: a state is a matcher, made when a beam comes there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from .._errors import error
from ._scores import portions
from ._walk import FAILED, FINISHED, Floats, Ints, Truths


class _Found(NamedTuple):
    """Continuations, as `Candidates` has them."""

    rows: Ints
    tokens: npt.NDArray[np.int32]
    scores: Floats
    states: Ints


class _State(NamedTuple):
    """What may come after some tokens."""

    number: int
    """Its own; the numbers of its children are made of it."""
    matcher: _core.Matcher | None
    goes: Ints
    """The tokens that continue, ascending."""
    ends: Ints
    """The end tokens that may come."""


class MatcherWalk:
    """What a matcher allows, and an end token after it: the likeliest of those that may come.

    A state lives from the `gather` that it is given to until the next one, and so do its children's numbers: a search
    never goes back further.

    Args:
        matcher: at the beginning; None: every token is allowed, and every text may end.
        vocabulary: of the tokens.

    Raises:
        ConstraintError: the vocabulary has no end token.
    """

    weighted = False
    start = 0

    def __init__(self, matcher: _core.Matcher | None, vocabulary: _core.Vocabulary) -> None:
        self.vocabulary_size = len(vocabulary)
        self._ends = np.array(vocabulary.end_tokens, np.int64)
        if not len(self._ends):
            message = "the vocabulary has no end-of-generation token, and a beam under a constraint ends with one"
            raise error(_core.ConstraintError, message, help="give a list of texts or a catalogue")
        self.end: int | None = int(self._ends[0])
        self._everything = np.setdiff1d(np.arange(self.vocabulary_size), self._ends)
        self._made = 0
        self._held = {self.start: self._state(matcher)}
        self._parents = {state.number: state for state in self._held.values()}

    def advance(self, states: npt.ArrayLike, tokens: npt.ArrayLike) -> Ints:
        """The states after one token each, as `TokenWalk.advance`."""
        pairs = zip(np.asarray(states, np.int64).tolist(), np.asarray(tokens, np.int64).tolist(), strict=True)
        return np.array([self._after(state, token) for state, token in pairs], np.int64)

    def gather(self, states: npt.ArrayLike, logits: Any, scores: npt.ArrayLike | None = None) -> _Found:
        """All continuations, as `TokenWalk.gather`."""
        numbers = np.asarray(states, np.int64).tolist()
        self._held = {number: self._at(number) for number in numbers if number >= 0}
        self._parents = {state.number: state for state in self._held.values()}
        bases = np.zeros(len(numbers)) if scores is None else np.asarray(scores, np.float64)
        none = np.zeros(0, np.int64)
        parts = [self._part(0, none, np.zeros(0), none)]
        for row, number in enumerate(numbers):
            if number == FAILED:
                parts.append(self._part(row, np.array([self.end]), bases[row : row + 1], np.array([FINISHED])))
            elif number != FINISHED:
                parts.append(self._ways(row, self._held[number], np.asarray(logits[row]), float(bases[row])))
        return _Found(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def top(
        self,
        states: npt.ArrayLike,
        logits: Any,
        scores: npt.ArrayLike,
        width: int,
        *,
        groups: npt.ArrayLike | None = None,
    ) -> _Found:
        """The best of each group, as `TokenWalk.top`."""
        found = self.gather(states, logits, scores)
        of = np.zeros(len(found.rows), np.int64) if groups is None else np.asarray(groups, np.int64)[found.rows]
        best = [np.zeros(0, np.int64)]
        for _, its in portions(of):
            scores_of = found.scores[its]
            least = np.partition(scores_of, -width)[-width] if len(scores_of) > width else -np.inf
            some = its.start + np.flatnonzero(scores_of >= least)
            best.append(some[np.lexsort((found.tokens[some], found.rows[some], -found.scores[some]))][:width])
        chosen = np.concatenate(best)
        return _Found(found.rows[chosen], found.tokens[chosen], found.scores[chosen], found.states[chosen])

    def is_item(self, states: npt.ArrayLike) -> Truths:
        """Whether an end token may come, as `TokenWalk.is_item`."""
        return self._each(states, lambda state: len(state.ends) > 0)

    def may_continue(self, states: npt.ArrayLike) -> Truths:
        """Whether any other token may come, as `TokenWalk.may_continue`."""
        return self._each(states, lambda state: len(state.goes) > 0)

    def items(self, state: int) -> tuple[str, ...]:
        """None: what tokens mean is the constraint's to say."""
        return ()

    def _each(self, states: npt.ArrayLike, says: Any) -> Truths:
        numbers = np.asarray(states, np.int64).tolist()
        return np.array([number >= 0 and says(self._at(number)) for number in numbers], np.bool_)

    def _at(self, number: int) -> _State:
        """The state of a number: one that is held, or a child of one."""
        held = self._held.get(number)
        if held is not None:
            return held
        parent, token = divmod(number - 1, self.vocabulary_size)
        before = self._parents[parent].matcher
        matcher = None if before is None else before.fork()
        if matcher is not None:
            matcher.accept(token)
        return self._state(matcher)

    def _state(self, matcher: _core.Matcher | None) -> _State:
        number, self._made = self._made, self._made + 1
        if matcher is None:
            return _State(number, None, self._everything, self._ends)
        if matcher.is_finished:
            return _State(number, matcher, self._everything[:0], self._ends)
        allowed = matcher.allowed()
        if allowed.is_all:
            return _State(number, matcher, self._everything, self._ends)
        ids = allowed.ids.astype(np.int64)
        is_end = np.isin(ids, self._ends)
        return _State(number, matcher, ids[~is_end], ids[is_end])

    def _ways(self, row: int, state: _State, logits: npt.NDArray[np.float32], base: float) -> _Found:
        """The continuations of one row."""
        tokens, after = state.goes, 1 + state.number * self.vocabulary_size + state.goes
        if len(state.ends):
            end = state.ends[np.argmax(logits[state.ends])]
            at = int(np.searchsorted(tokens, end))
            tokens, after = np.insert(tokens, at, end), np.insert(after, at, FINISHED)
        scores = base + logits[tokens].astype(np.float64)
        if not np.all(scores < np.inf):
            wrong = int(np.flatnonzero(~(scores < np.inf))[0])
            message = f"the logit of token {tokens[wrong]} is {logits[tokens[wrong]]}"
            raise error(_core.LogitsError, message, place=f"row {row}", help="logits must be numbers below +inf")
        possible = scores > -np.inf
        return self._part(row, tokens[possible], scores[possible], after[possible])

    def _part(self, row: int, tokens: Ints, scores: Floats, after: Ints) -> _Found:
        return _Found(np.full(len(tokens), row, np.int64), tokens.astype(np.int32), scores, after)

    def _after(self, number: int, token: int) -> int:
        if number == FINISHED or token in self._ends:
            return FINISHED
        if number == FAILED:
            return FAILED
        state = self._at(number)
        at = int(np.searchsorted(state.goes, token))
        is_allowed = at < len(state.goes) and state.goes[at] == token
        return 1 + state.number * self.vocabulary_size + token if is_allowed else FAILED
