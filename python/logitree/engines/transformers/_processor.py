"""Constraints in transformers' own `generate`: a logits processor that leaves what each row's constraint allows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _core
from ..._errors import error
from ._forward import import_torch
from ._states import State, States, masked


class ConstraintLogitsProcessor:
    """A logits processor for `model.generate` that allows each row the tokens that its constraint allows.

    It works with batches, left padding, sampling, beams and `num_return_sequences`. An output that is complete with
    nothing to follow may only end. One processor belongs to one call of `generate`; `reset` makes it ready for the
    next.

    With more beams than outputs transformers fills up with beams of score -inf, which hold tokens that are not allowed.
    `logitree.beam_search` has no such beams.

    With a chain, that picks each row's token: the scores leave it alone, so that sampling and greedy decoding take it.
    Temperature and the like then belong into the chain. Beams, assistants and prompt lookup score tokens that are not
    taken: there it is a StateError.

    Args:
        constraint: anything that `logitree.generate` takes. A list of constraints has one entry for each prompt, None
            for a prompt without; a list of texts or numbers is one constraint.
        vocabulary: the model's tokenizer, a `Transformers` engine, or a `Vocabulary`.
        prompt_length: how many tokens precede the generated ones in each row, padding included; None: as many as the
            first call is given.
        eos_token_id: the end tokens of `generate`; None: the vocabulary's.
        pad_token_id: the token that pads prompts on the left; None: the tokenizer's. Constraints that look at the
            prompt are given it without.
        chain: samplers that pick the tokens. Row r draws as sequence r of the seed (`Chain.sequences`), and its chain
            has accepted the prompt, as llama.cpp's has.

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
        chain: _core.Chain | None = None,
    ) -> None:
        self._of = States(constraint, vocabulary, eos_token_id, pad_token_id)
        self._given_length = self._length = prompt_length
        self._chain, self._picks = chain, _Picks()
        self._starts: dict[tuple[int, bytes], State] = {}
        """Constraint's number and prompt -> state before the first generated token."""
        self._seen: dict[int, dict[tuple[int, bytes, bytes], State]] = {}
        """Tokens generated -> number, prompt, generated tokens -> state, for this step's number and the one before."""

    def reset(self) -> None:
        """Forgets the prompts and what was generated."""
        self._length = self._given_length
        self._starts, self._seen, self._picks = {}, {}, _Picks()

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """The scores with -inf for what is not allowed, or not picked; the given ones are not changed.

        Args:
            input_ids: int64 [R, T], prompts and generated tokens. Rows of a prompt are neighbours, in any order.
            scores: float [R, V] on any device.

        Raises:
            LogitsError: fewer scores a row than the vocabulary has tokens; or a row whose allowed tokens have no score
                above -inf, or a NaN.
            StateError: shorter rows than the prompt; rows that are no multiple of the constraints; generated tokens
                that the constraint never allowed; or rows that do not continue as the chain picked.
        """
        size = self._of.size
        if scores.shape[-1] < size:
            raise error(
                _core.LogitsError,
                f"{scores.shape[-1]} scores a row, the vocabulary has {size} tokens",
                help="use the vocabulary of this model",
            )
        states = self._states(input_ids)
        if self._chain is not None:
            return self._picked(self._chain, input_ids, scores, states)
        bound = [row for row, state in enumerate(states) if not state.is_free]
        if not bound:
            return scores
        out, unusable = masked(scores, bound, self._of.masks([states[row] for row in bound]), size)
        for row, found in unusable.items():
            raise error(
                _core.LogitsError,
                f"row {row}: {found} among the allowed tokens",
                help="the model's logits are NaN" if found == "a NaN" else "another processor bans all of them",
            )
        return out

    def is_over(self, input_ids: Any) -> npt.NDArray[np.bool_]:
        """bool [R]: which rows are complete with nothing to follow, or have an end token.

        Args:
            input_ids: int64 [R, T], as of a call.

        Raises:
            StateError: as a call.
        """
        return np.array([state.is_over or state.is_complete for state in self._states(input_ids)])

    def _picked(self, chain: _core.Chain, input_ids: Any, scores: Any, states: Sequence[State]) -> Any:
        """Scores of 0 for the token that each row's chain picks, -inf for all others."""
        picks = self._picks
        rows = input_ids.cpu().numpy()
        if picks.chains is None:
            picks.begin(chain, [self._of.without_padding(row[: self._length].tolist()) for row in rows])
        picks.check(rows, states)
        running = [row for row, state in enumerate(states) if not state.is_over]
        masks: list[npt.NDArray[np.int32] | None] = [None] * len(running)
        bound = [at for at, row in enumerate(running) if states[row].matcher is not None]
        for at, mask in zip(bound, self._of.masks([states[running[at]] for at in bound]), strict=True):
            masks[at] = mask
        picked = picks.pick(scores[running, : self._of.size].float().cpu().numpy(), masks, running, rows.shape[1])
        tokens = import_torch().tensor([picked.get(row, self._of.ends[0]) for row in range(len(states))])
        return scores.new_full(scores.shape, -math.inf).scatter_(1, tokens[:, None].to(scores.device), 0.0)

    def _states(self, input_ids: Any) -> list[State]:
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
        if rows % self._of.count:
            raise error(
                _core.StateError,
                f"{rows} rows for {self._of.count} constraints",
                help="give one constraint, or one for each prompt",
            )
        each = rows // self._of.count
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
                state = self._of.advance(parent, int(new[-1])) if parent else self._from_start(row, number, prompt, new)
                known[key] = state
            states.append(state)
        return states

    def _from_start(self, row: int, number: int, prompt: bytes, tokens: npt.NDArray[np.int64]) -> State:
        """The state after a row's tokens, which must each have been allowed."""
        state = self._starts.get((number, prompt))
        if state is None:
            given = self._of.without_padding(np.frombuffer(prompt, np.int64).tolist())
            state = self._starts[number, prompt] = self._of.begin(self._of.constraints[number], given)
        return self._of.after(state, tokens.tolist(), f"row {row}")


class ConstraintStoppingCriteria:
    """A stopping criterion for `model.generate` that ends each row where its constraint is complete.

    An output then needs no end token after it, and so no forward pass for one. It belongs to the processor in the same
    call.

    Args:
        processor: the one that constrains the rows.
    """

    def __init__(self, processor: ConstraintLogitsProcessor) -> None:
        self._processor = processor

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        """bool [R], on the device of the tokens: which rows end here.

        Args:
            input_ids: int64 [R, T], with the tokens that were just taken.
            scores: not looked at.

        Raises:
            StateError: as the processor.
        """
        return import_torch().from_numpy(self._processor.is_over(input_ids)).to(input_ids.device)


class _Picks:
    """The chains of the rows, and what they picked in the last step."""

    def __init__(self) -> None:
        self.chains: list[_core.Chain] | None = None
        """None: before the first step."""
        self._length = 0
        """Tokens of a row in the last step."""
        self._last: dict[int, int] = {}

    def begin(self, chain: _core.Chain, prompts: Sequence[Sequence[int]]) -> None:
        """A chain for each prompt, which has accepted it."""
        self.chains = chain.sequences(len(prompts))
        for one, prompt in zip(self.chains, prompts, strict=True):
            for token in prompt:
                one.accept(token)

    def check(self, rows: npt.NDArray[np.int64], states: Sequence[State]) -> None:
        """A StateError where rows do not continue as they were picked."""
        assert self.chains is not None
        if not self._length:
            return
        is_next = len(rows) == len(self.chains) and rows.shape[1] == self._length + 1
        # A row that was ended where it is complete has padding now.
        ended = {row for row, state in enumerate(states) if state.is_over and state.is_complete}
        if not is_next or any(rows[row, -1] != token for row, token in self._last.items() if row not in ended):
            raise error(
                _core.StateError,
                "the rows do not continue with the tokens that the chain picked",
                help="sample, or decode greedily, without beams, an assistant or prompt lookup, and with one processor "
                "for each call of generate",
            )

    def pick(
        self,
        logits: npt.NDArray[np.float32],
        masks: list[npt.NDArray[np.int32] | None],
        rows: Sequence[int],
        length: int,
    ) -> dict[int, int]:
        """Row -> the token that its chain picks and accepts after `length` tokens."""
        assert self.chains is not None
        chains = [self.chains[row] for row in rows]
        tokens = chains[0].sample_batch(logits, masks, chains).tolist() if chains else []
        self._length, self._last = length, dict(zip(rows, tokens, strict=True))
        return self._last
