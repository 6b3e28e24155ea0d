"""The state of one request in a vLLM batch: the tokens that it has, and what its next rows of logits allow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _core

Deciding = _core.Matcher | _core.Decoder


class Row:
    """One request.

    A request that fails (a step takes more than its fuel, or another processor forced a token that is not allowed)
    may not end any more: it continues until vLLM's `max_tokens`, so its finish reason is never "stop".

    Args:
        made: what decides, which another thread may still be making.
        ends: the vocabulary's end tokens.
        failed: called with the error, once.
    """

    def __init__(self, made: Future[Deciding], ends: Sequence[int], failed: Callable[[BaseException], None]) -> None:
        self._made, self._ends, self._report = made, frozenset(ends), failed
        self.read = 0
        """How many of the request's tokens have been taken."""
        self._ahead: list[int] = []
        """Tokens that the decoder has picked, and vLLM has not given back yet."""
        self._is_over = False
        self._has_failed = False

    def take(self, tokens: Sequence[int]) -> None:
        """Takes the tokens that vLLM has appended to the request since the last call."""
        self.read += len(tokens)
        try:
            deciding = self._made.result()
            for token in tokens:
                self._take(deciding, token)
        except _core.LogitreeError as wrong:
            self._fail(wrong)

    def mask(self, logits: Any, drafts: Sequence[int], size: int) -> npt.NDArray[np.int32] | None:
        """int32 [len(drafts) + 1, words]: what may come after the tokens taken, and after each of the drafts.

        Args:
            logits: float32 [len(drafts) + 1, V], a tensor; a chain reads it, a constraint may add a bias.
            drafts: tokens that are proposed. After one that is not allowed the rows are like the one before.
            size: the vocabulary's.

        Returns:
            None: everything may come.
        """
        rows = len(drafts) + 1
        try:
            deciding = self._made.result()
            if not self._has_failed:
                if self._is_over:
                    return None
                if isinstance(deciding, _core.Decoder):
                    return self._picked(deciding, logits, drafts, size)
                return _masks(deciding, logits, drafts, size)
        except _core.LogitreeError as wrong:
            self._fail(wrong)
        unended = ~_core.mask_from_ids(size, self._ends)
        return np.repeat(unended[None], rows, axis=0)

    def _take(self, deciding: Deciding, token: int) -> None:
        if self._has_failed or self._is_over:
            return
        self._is_over = token in self._ends
        if isinstance(deciding, _core.Decoder) and deciding.is_finished and not self._ahead and self._is_over:
            return  # vLLM's end of an output that the constraint has completed
        if self._ahead:
            picked = self._ahead.pop(0)
            if picked == token:
                return
            # A draft was refused, or another processor picked.
            assert isinstance(deciding, _core.Decoder)
            deciding.rollback(1 + len(self._ahead))
            self._ahead = []
        deciding.accept(token)

    def _picked(self, decoder: _core.Decoder, logits: Any, drafts: Sequence[int], size: int) -> npt.NDArray[np.int32]:
        """Masks with one token each: the one that the chain picks there."""
        if self._ahead:  # what was picked was never taken
            decoder.rollback(len(self._ahead))
            self._ahead = []
        host = logits.detach().cpu().numpy()
        masks = np.zeros((len(drafts) + 1, _core.mask_words(size)), np.int32)
        for at in range(len(drafts) + 1):
            if decoder.is_finished:
                masks[at:] = _core.mask_from_ids(size, self._ends)
                break
            token = decoder.step(host[at])
            self._ahead.append(token)
            masks[at:] = _core.mask_from_ids(size, [token])
            if at < len(drafts) and (drafts[at] != token or token in self._ends):
                break  # the rows after it are of a draft that is refused
        return masks

    def _fail(self, wrong: BaseException) -> None:
        if not self._has_failed:
            self._has_failed = True
            self._report(wrong)


def _masks(matcher: _core.Matcher, logits: Any, drafts: Sequence[int], size: int) -> npt.NDArray[np.int32]:
    masks = np.zeros((len(drafts) + 1, _core.mask_words(size)), np.int32)
    _add_bias(matcher, logits[0])
    if not drafts:
        _core.fill_masks([matcher], masks, 1)
        return masks
    allowed = matcher.draft_masks(drafts, masks)
    count = len(allowed) if allowed.all() else int(allowed.argmin())
    masks[count + 1 :] = masks[count]
    for at, token in enumerate(drafts[:count]):
        matcher.accept(token)
        _add_bias(matcher, logits[at + 1])
    matcher.rollback(count)
    return masks


def _add_bias(matcher: _core.Matcher, logits: Any) -> None:
    bias = matcher.bias()
    if bias is not None:
        token, number = bias
        logits[token] += number
