"""Constraints in transformers' own `generate`: a logits processor that leaves what each row's constraint allows."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _core
from ..._constraint import Context, bind_in, constraint_of
from ..._errors import error
from .._tensors import ban
from .._tokenizer_engine import plain_tokens
from ._engine import Transformers, vocabulary_of
from ._forward import import_torch


@dataclass(frozen=True)
class _State:
    """Where a row's output is."""

    matcher: _core.Matcher | None
    """None: the row has no constraint."""
    is_over: bool = False
    """Only an end token may follow: the row has one already, or a token that is not allowed."""
    is_dead: bool = False
    """The row has a token that is not allowed."""


class ConstraintLogitsProcessor:
    """A logits processor for `model.generate` that allows each row the tokens that its constraint allows.

    It works with batches, left padding, sampling, beams and `num_return_sequences`. An output that is complete with
    nothing to follow may only end. One processor belongs to one call of `generate`; `reset` makes it ready for the
    next.

    With more beams than outputs transformers fills up with beams of score -inf, which hold tokens that are not allowed.
    `logitree.beam_search` has no such beams.

    Args:
        constraint: anything that `logitree.generate` takes. A list of constraints has one entry for each prompt, None
            for a prompt without; a list of texts or numbers is one constraint.
        vocabulary: the model's tokenizer, a `Transformers` engine, or a `Vocabulary`.
        prompt_length: how many tokens precede the generated ones in each row, padding included; None: as many as the
            first call is given.
        eos_token_id: the end tokens of `generate`; None: the vocabulary's.
        pad_token_id: the token that pads prompts on the left; None: the tokenizer's. Constraints that look at the
            prompt are given it without.

    Raises:
        ConstraintError: there is no end token. At the first call: a constraint cannot be honoured with the vocabulary.
        TypeError: a value means no constraint.
        VocabularyError: the tokenizer cannot be read.
    """

    def __init__(
        self,
        constraint: Any,
        vocabulary: Any,
        *,
        prompt_length: int | None = None,
        eos_token_id: int | Sequence[int] | None = None,
        pad_token_id: int | None = None,
    ) -> None:
        given = list(constraint) if _is_one_each(constraint) else [constraint]
        self._constraints = [None if one is None else constraint_of(one) for one in given]
        self._tokenize: Callable[[str], list[int]] | None = None
        tokenizer = None
        if isinstance(vocabulary, _core.Vocabulary):
            self._vocabulary = vocabulary
        elif isinstance(vocabulary, Transformers):
            self._vocabulary, self._tokenize = vocabulary.vocabulary, vocabulary.tokenize
            tokenizer = vocabulary.tokenizer
        else:
            self._vocabulary, self._tokenize = vocabulary_of(vocabulary), lambda text: plain_tokens(vocabulary, text)
            tokenizer = vocabulary
        if eos_token_id is not None:
            ends = [eos_token_id] if isinstance(eos_token_id, int) else list(map(int, eos_token_id))
            self._vocabulary = self._vocabulary.replace(end_tokens=ends)
        self._ends = self._vocabulary.end_tokens
        if not self._ends:
            raise error(
                _core.ConstraintError,
                "the vocabulary has no end token",
                help="give eos_token_id: generation continues until such a token",
            )
        self._pad = pad_token_id if pad_token_id is not None else getattr(tokenizer, "pad_token_id", None)
        self._given_length = self._length = prompt_length
        self._starts: dict[tuple[int, bytes], _State] = {}
        """Constraint's number and prompt -> state before the first generated token."""
        self._seen: dict[int, dict[tuple[int, bytes, bytes], _State]] = {}
        """Tokens generated -> number, prompt, generated tokens -> state, for this step's number and the one before."""

    def reset(self) -> None:
        """Forgets the prompts and what was generated."""
        self._length = self._given_length
        self._starts, self._seen = {}, {}

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """The scores with -inf for what is not allowed; the given ones are not changed.

        Args:
            input_ids: int64 [R, T], prompts and generated tokens. Rows of a prompt are neighbours, in any order.
            scores: float [R, V] on any device.

        Raises:
            LogitsError: fewer scores a row than the vocabulary has tokens; or a row whose allowed tokens have no score
                above -inf, or a NaN.
            StateError: shorter rows than the prompt; rows that are no multiple of the constraints; or generated tokens
                that the constraint never allowed.
        """
        size = len(self._vocabulary)
        if scores.shape[-1] < size:
            raise error(
                _core.LogitsError,
                f"{scores.shape[-1]} scores a row, the vocabulary has {size} tokens",
                help="use the vocabulary of this model",
            )
        states = self._states(input_ids)
        masked = [row for row, state in enumerate(states) if state.is_over or state.matcher is not None]
        if not masked:
            return scores
        out = _masked(scores, masked, self._masks([states[row] for row in masked]), size)
        _check(out, masked)
        return out

    def _masks(self, states: Sequence[_State]) -> npt.NDArray[np.int32]:
        """int32 [rows, words]: what each state allows, each by `fill_batch`; a shared matcher is asked once."""
        masks = np.zeros((len(states), _core.mask_words(len(self._vocabulary))), np.int32)
        asked: dict[int, list[int]] = {}
        for at, state in enumerate(states):
            if state.is_over or state.matcher is None or state.matcher.is_finished:
                masks[at] = self._end_mask
            else:
                asked.setdefault(id(state.matcher), []).append(at)
        if asked:
            rows = list(asked.values())
            filled = np.zeros((len(rows), masks.shape[1]), np.int32)
            _core.fill_masks([m for places in rows if (m := states[places[0]].matcher) is not None], filled)
            for mask, places in zip(filled, rows, strict=True):
                masks[places] = mask
        return masks

    @functools.cached_property
    def _end_mask(self) -> npt.NDArray[np.int32]:
        return _core.mask_from_ids(len(self._vocabulary), self._ends)

    # -- states of rows

    def _states(self, input_ids: Any) -> list[_State]:
        """Each row's state, found again by the row's tokens: transformers reorders rows between steps without notice.

        Equal to accepting each row's tokens from its start, which happens where a row was not seen before.
        """
        if self._length is None:
            self._length = int(input_ids.shape[1])
        rows, length = input_ids.shape[0], int(input_ids.shape[1]) - self._length
        if length < 0:
            raise error(
                _core.StateError,
                f"{input_ids.shape[1]} tokens, the prompt has {self._length}",
                help="a processor belongs to one call of generate: make a new one, or call reset()",
            )
        if rows % len(self._constraints):
            raise error(
                _core.StateError,
                f"{rows} rows for {len(self._constraints)} constraints",
                help="give one constraint, or one for each prompt",
            )
        each = rows // len(self._constraints)
        ids = np.ascontiguousarray(input_ids.cpu().numpy(), np.int64)
        self._seen = {n: seen for n, seen in self._seen.items() if n in (length - 1, length)}
        before, known = self._seen.get(length - 1, {}), self._seen.setdefault(length, {})
        states = []
        for row in range(rows):
            prompt, new = ids[row, : self._length].tobytes(), ids[row, self._length :]
            number = row // each
            key = (number, prompt, new.tobytes())
            state = known.get(key)
            if state is None:
                parent = before.get((number, prompt, new[:-1].tobytes())) if length else None
                state = self._advance(parent, int(new[-1])) if parent else self._from_start(row, number, prompt, new)
                known[key] = state
            states.append(state)
        return states

    def _from_start(self, row: int, number: int, prompt: bytes, tokens: npt.NDArray[np.int64]) -> _State:
        """The state after a row's tokens, which must each have been allowed."""
        state = self._starts.get((number, prompt))
        if state is None:
            state = self._starts[number, prompt] = _State(self._bind(number, np.frombuffer(prompt, np.int64)))
        for at, token in enumerate(tokens.tolist()):
            state = self._advance(state, token)
            if state.is_dead:
                raise error(
                    _core.StateError,
                    f"row {row}: token {token} is not allowed after {at} generated tokens",
                    help="a processor belongs to one call of generate: make a new one, call reset(), or give "
                    "prompt_length",
                )
        return state

    def _advance(self, state: _State, token: int) -> _State:
        """The state after one more token. A token that is not allowed comes from a beam of score -inf."""
        if state.is_over:
            return state
        matcher, ends = state.matcher, token in self._ends
        if matcher is None:
            return _State(None, ends)
        if matcher.is_finished:
            return _State(matcher, True, not ends)
        if not matcher.is_allowed(token):
            return _State(matcher, True, True)
        matcher = matcher.fork()
        matcher.accept(token)
        return _State(matcher, ends)

    def _bind(self, number: int, prompt: npt.NDArray[np.int64]) -> _core.Matcher | None:
        """A matcher of a constraint for a prompt, whose padding is left out."""
        constraint = self._constraints[number]
        if constraint is None:
            return None
        tokens = prompt.tolist()
        while tokens and tokens[0] == self._pad:
            del tokens[0]
        matcher = bind_in(constraint, Context(self._vocabulary, self._tokenize, tokens))
        if matcher.vocabulary_size != len(self._vocabulary):
            raise error(
                _core.ConstraintError,
                f"a matcher for {matcher.vocabulary_size} tokens, the vocabulary has {len(self._vocabulary)}",
                help="make the matcher with this vocabulary",
            )
        return matcher


def _is_one_each(constraint: Any) -> bool:
    """Whether this is a list of constraints, and not a list of the values that the output may be."""
    return isinstance(constraint, list | tuple) and not all(
        isinstance(value, str | bytes | int | float) for value in constraint
    )


def _masked(scores: Any, rows: list[int], masks: npt.NDArray[np.int32], size: int) -> Any:
    """A copy of the scores, with -inf where the mask of one of these rows has no bit, and past `size`."""
    torch = import_torch()
    out = scores.detach().clone(memory_format=torch.contiguous_format)
    ban(out, rows, masks, size)
    return out


def _check(scores: Any, rows: list[int]) -> None:
    """A LogitsError for a masked row that has no score above -inf, or a NaN."""
    best = scores.amax(dim=1).cpu().tolist()
    wrong = next((row for row in rows if not best[row] > -math.inf), None)
    if wrong is not None:
        found = "a NaN" if math.isnan(best[wrong]) else "no score above -inf"
        raise error(
            _core.LogitsError,
            f"row {wrong}: {found} among the allowed tokens",
            help="the model's logits are NaN" if math.isnan(best[wrong]) else "another processor bans all of them",
        )
