"""Where each row's output is: constraints bound to prompts, states that advance token by token, and their masks."""

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
from ..._core import Constraint
from ..._errors import error
from ...tensors import apply_masks
from .._tokenizer_engine import plain_tokens
from ._engine import Transformers, vocabulary_of
from ._forward import import_torch


@dataclass(frozen=True)
class State:
    """Where a row's output is."""

    matcher: _core.Matcher | None
    """None: the row has no constraint."""
    is_over: bool = False
    """Only an end token may follow: the row has one already, or a token that is not allowed."""
    is_dead: bool = False
    """The row has a token that is not allowed."""

    @property
    def is_free(self) -> bool:
        """Whether any token may follow."""
        return self.matcher is None and not self.is_over

    @property
    def is_complete(self) -> bool:
        """Whether the constraint has ended: only an end token may follow."""
        return self.matcher is not None and self.matcher.is_finished


class States:
    """What makes states of rows; arguments and errors as of `ConstraintLogitsProcessor`."""

    size: int
    """Tokens of the vocabulary."""
    ends: list[int]
    """The end tokens."""
    constraints: list[Constraint | None]
    """One for all rows, or one for each prompt."""

    def __init__(
        self, constraint: Any, vocabulary: Any, eos_token_id: int | Sequence[int] | None, pad_token_id: int | None
    ) -> None:
        given = list(constraint) if _is_one_each(constraint) else [constraint]
        self.constraints = [None if one is None else constraint_of(one) for one in given]
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
        self.size, self.ends = len(self._vocabulary), self._vocabulary.end_tokens
        if not self.ends:
            raise error(
                _core.ConstraintError,
                "the vocabulary has no end token",
                help="give eos_token_id: generation continues until such a token",
            )
        self._pad = pad_token_id if pad_token_id is not None else getattr(tokenizer, "pad_token_id", None)

    @property
    def count(self) -> int:
        """How many constraints there are."""
        return len(self.constraints)

    def begin(self, constraint: Constraint | None, prompt: Sequence[int]) -> State:
        """The state after a prompt without padding."""
        if constraint is None:
            return State(None)
        matcher = bind_in(constraint, Context(self._vocabulary, self._tokenize, prompt))
        if matcher.vocabulary_size != self.size:
            raise error(
                _core.ConstraintError,
                f"a matcher for {matcher.vocabulary_size} tokens, the vocabulary has {self.size}",
                help="make the matcher with this vocabulary",
            )
        return State(matcher)

    def after(self, state: State, tokens: Sequence[int], row: str) -> State:
        """The state after tokens that must each be allowed.

        Raises:
            StateError: one is not; it names the row.
        """
        for at, token in enumerate(tokens):
            state = self.advance(state, token)
            if state.is_dead:
                raise error(
                    _core.StateError,
                    f"{row}: token {token} is not allowed after {at} generated tokens",
                    help="a processor belongs to one call of generate: make a new one, call reset(), or give "
                    "prompt_length",
                )
        return state

    def advance(self, state: State, token: int) -> State:
        """The state after one more token. A token that is not allowed comes from a beam of score -inf."""
        if state.is_over:
            return state
        matcher, ends = state.matcher, token in self.ends
        if matcher is None:
            return State(None, ends)
        if state.is_complete:
            return State(matcher, True, not ends)
        if not matcher.is_allowed(token):
            return State(matcher, True, True)
        matcher = matcher.fork()
        matcher.accept(token)
        return State(matcher, ends)

    def masks(self, states: Sequence[State]) -> npt.NDArray[np.int32]:
        """int32 [rows, words]: what each state allows, each by `fill_batch`; a shared matcher is asked once."""
        masks = np.zeros((len(states), _core.mask_words(self.size)), np.int32)
        asked: dict[int, list[int]] = {}
        for at, state in enumerate(states):
            if state.is_over or state.matcher is None or state.is_complete:
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
        return _core.mask_from_ids(self.size, self.ends)

    def without_padding(self, prompt: list[int]) -> list[int]:
        """A prompt from its first token that is no padding."""
        first = next((at for at, token in enumerate(prompt) if token != self._pad), len(prompt))
        return prompt[first:]


def masked(scores: Any, rows: Sequence[int], masks: npt.NDArray[np.int32], size: int) -> tuple[Any, dict[int, str]]:
    """A copy of the scores with -inf where a row's mask has no bit, and past `size`; and what is wrong with rows of it.

    Args:
        scores: float [R, V] on any device.
        rows: which have a mask, ascending.
        masks: int32 [rows, words].
        size: the vocabulary's.

    Returns:
        The copy, and for rows that have a NaN or no score above -inf among the allowed tokens which of the two.
    """
    torch = import_torch()
    scores = scores.detach()
    if scores.device.type == "cpu" and scores.dtype == torch.float32:
        out = torch.empty_like(scores, memory_format=torch.contiguous_format)
        found = _core._mask_copy(scores.contiguous(), masks, rows, out)
    else:
        out = scores.clone(memory_format=torch.contiguous_format)
        apply_masks(out, masks, rows, size)
        best = out.amax(dim=1).cpu().tolist()
        found = [(row, math.isnan(best[row])) for row in rows if not best[row] > -math.inf]
    return out, {row: "a NaN" if is_nan else "no score above -inf" for row, is_nan in found}


def _is_one_each(constraint: Any) -> bool:
    """Whether this is a list of constraints, and not a list of the values that the output may be."""
    return isinstance(constraint, list | tuple) and not all(
        isinstance(value, str | bytes | int | float) for value in constraint
    )
