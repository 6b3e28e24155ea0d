"""Trees of tokens as drop-ins for transformers' own `generate`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ... import _core
from ..._errors import error
from ._forward import import_torch

if TYPE_CHECKING:
    from ...beams import TokenWalk

_FINISHED = -1
"""The state after the end, as trees number it."""

Ints = npt.NDArray[np.int64]


class _TreeStates:
    """The states of generated rows in a tree.

    transformers reorders rows between steps without notice, so a row's state is found by all its tokens but the last.
    Equal to walking each row from the start, which happens where a row was not seen before.
    """

    def __init__(self, paths: TokenWalk, prompt_length: int, end: int | None) -> None:
        if end is None:
            end = paths.end
        if end is None:
            raise error(
                _core.ConstraintError,
                "neither the tree nor the call has an end token",
                help="give `end`: generation continues until an end token",
            )
        if paths.end is not None and end != paths.end:
            raise error(
                _core.ConstraintError, f"the tree ends with token {paths.end}, not {end}", help="leave out `end`"
            )
        if not 0 <= end < paths.vocabulary_size:
            raise error(_core.TokenError, f"the end token {end} is outside the vocabulary of {paths.vocabulary_size}")
        self.paths, self.end, self.prompt_length = paths, end, prompt_length
        self._seen: dict[int, dict[bytes, int]] = {}
        """Tokens generated -> row's bytes -> state, for this step's number and the one before."""

    def states(self, input_ids: Any) -> Ints:
        """int64 [R]: the state of each row of prompts and generated tokens [R, T]."""
        if input_ids.shape[1] < self.prompt_length:
            raise error(
                _core.StateError,
                f"{input_ids.shape[1]} tokens, the prompt has {self.prompt_length}",
                help="prompt_length is input_ids.shape[1], padding included",
            )
        rows = np.ascontiguousarray(input_ids[:, self.prompt_length :].cpu().numpy(), np.int64)
        length = rows.shape[1]
        self._seen = {n: seen for n, seen in self._seen.items() if n in (length - 1, length)}
        if not length:
            return np.full(len(rows), self.paths.start, np.int64)
        before = self._seen.get(length - 1, {})
        states = np.array([self._from_start(row[:-1], before) for row in rows], np.int64)
        states = self._advance(states, rows[:, -1])
        known = self._seen.setdefault(length, {})
        known.update(zip((row.tobytes() for row in rows), map(int, states), strict=True))
        return states

    def _from_start(self, row: Ints, seen: dict[bytes, int]) -> int:
        """The state after a row, remembered or walked to."""
        known = seen.get(row.tobytes())
        if known is not None:
            return known
        state = np.array([self.paths.start], np.int64)
        for token in row:
            state = self._advance(state, token[None])
        return int(state[0])

    def _advance(self, states: Ints, tokens: Ints) -> Ints:
        """The states after a token each. A tree without an end token is left by the given one."""
        if self.paths.end is not None:
            return np.asarray(self.paths.advance(states, tokens), np.int64)
        after = np.array(states, np.int64)
        ended = (states == _FINISHED) | (tokens == self.end)
        after[ended] = _FINISHED
        if not ended.all():
            after[~ended] = self.paths.advance(states[~ended], tokens[~ended])
        return after

    def may_end(self, states: Ints) -> npt.NDArray[np.bool_]:
        """Where the end token is allowed besides the tree's own tokens: after an item, and where nothing follows."""
        may = states < 0
        alive = np.flatnonzero(~may)
        if alive.size:
            may[alive] = ~np.asarray(self.paths.may_continue(states[alive]), np.bool_)
            if self.paths.end is None:
                may[alive] |= np.asarray(self.paths.is_item(states[alive]), np.bool_)
        return may


def prefix_allowed_tokens_fn(
    paths: TokenWalk, prompt_length: int, *, end: int | None = None
) -> Callable[[int, Any], list[int]]:
    """What `model.generate` takes as `prefix_allowed_tokens_fn`: the tokens that may follow, for one row at a time.

    Weights of the tree are not added: `TreeLogitsProcessor` adds them, and evaluates all rows at once. With more beams
    than paths transformers continues with banned tokens; `logitree.beam_search` does not.

    Args:
        paths: the tree.
        prompt_length: how many tokens precede the generated ones in each row, padding included:
            `input_ids.shape[1]`.
        end: the token that ends the generation; None: the tree's. The `eos_token_id` of `generate` must be the same.

    Raises:
        ConstraintError: there is no end token, or the tree has another.
        TokenError: the end token is not in the vocabulary.
    """
    walk = _TreeStates(paths, prompt_length, end)
    logits = np.zeros((1, paths.vocabulary_size), np.float32)

    def allowed(batch_id: int, input_ids: Any) -> list[int]:
        """The tokens that may follow this row."""
        states = walk.states(input_ids[None])
        tokens = set() if states[0] < 0 else {int(token) for token in paths.gather(states, logits).tokens}
        return sorted(tokens | ({walk.end} if walk.may_end(states)[0] else set()))

    return allowed


class TreeLogitsProcessor:
    """A logits processor for `model.generate` that bans what is not in a tree, and adds the tree's weights to the rest.

    Args and errors are those of `prefix_allowed_tokens_fn`.
    """

    def __init__(self, paths: TokenWalk, prompt_length: int, *, end: int | None = None) -> None:
        self._walk = _TreeStates(paths, prompt_length, end)

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """The scores [R, V] with -inf where the tree bans; the given ones are not changed.

        Raises:
            LogitsError: an allowed token's score is NaN, or there are fewer scores than the tree has tokens.
        """
        torch, walk = import_torch(), self._walk
        size = walk.paths.vocabulary_size
        if scores.shape[-1] < size:
            raise error(_core.LogitsError, f"{scores.shape[-1]} scores a row, the tree has {size} tokens")
        states = walk.states(input_ids)
        given = scores[:, :size].float().cpu().contiguous().numpy()
        out = torch.full_like(scores, -torch.inf)
        ends = np.flatnonzero(walk.may_end(states))
        out[torch.from_numpy(ends).to(out.device), walk.end] = torch.from_numpy(given[ends, walk.end]).to(out)
        alive = np.flatnonzero(states >= 0)
        if alive.size:
            found = walk.paths.gather(states[alive], given[alive])
            rows = torch.from_numpy(alive[np.asarray(found.rows)]).to(out.device)
            tokens = torch.from_numpy(np.asarray(found.tokens, np.int64)).to(out.device)
            out[rows, tokens] = torch.from_numpy(np.asarray(found.scores, np.float64)).to(out)
        return out
