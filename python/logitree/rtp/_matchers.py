"""Rows with a matcher each: a grammar, or a reasoning budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from .. import _core, masks
from .._errors import error
from .._reasoning import ReasoningBudget
from ._processor import Logits, Processor, apply_masks, checked_rows


class GrammarProcessor(Processor):
    """A matcher for each row, all copies of one at the beginning."""

    rank = 1

    def __init__(self, matcher: _core.Matcher, rows: int = 1, *, terminate_without_stop_token: bool = False) -> None:
        """`terminate_without_stop_token`: a row is finished as soon as its text is complete, as XGrammar's matchers are
        with this option: the server ends it there."""
        self._ends_early = terminate_without_stop_token
        self._first = matcher.fork()
        self._matchers = [matcher.fork() for _ in range(checked_rows(rows))]

    @property
    def rows(self) -> int:
        return len(self._matchers)

    @property
    def matchers(self) -> Sequence[_core.Matcher]:
        """The matcher of each row, to look at."""
        return tuple(self._matchers)

    @property
    def finished(self) -> npt.NDArray[np.bool_]:
        """Which rows are at their end: they read nothing more."""
        return np.array([self._is_over(matcher) for matcher in self._matchers], np.bool_)

    def _is_over(self, matcher: _core.Matcher) -> bool:
        return matcher.is_finished or (self._ends_early and matcher.is_accepting)

    def _process(self, logits: Logits) -> None:
        made = masks.new(self._first.vocabulary_size, self.rows)
        _core.fill_masks(self._matchers, made)
        apply_masks(logits, made)

    def checked_tokens(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """As `Processor.checked_tokens`; a token that is not allowed is a TokenError. Finished rows read nothing."""
        checked = super().checked_tokens(tokens)
        for row, (matcher, own) in enumerate(zip(self._matchers, checked.tolist(), strict=True)):
            allowed = len(own) if self._is_over(matcher) else matcher.validate(own)
            ended = allowed < len(own) and self._ends(matcher, own[:allowed])
            if allowed < len(own) and not ended:
                raise error(_core.TokenError, f"token {own[allowed]} is not allowed", place=f"row {row}")
        return checked

    def _ends(self, matcher: _core.Matcher, tokens: list[int]) -> bool:
        """Whether these tokens finish the row."""
        trial = matcher.fork()
        for token in tokens:
            trial.accept(token)
            if self._is_over(trial):
                return True
        return False

    def _read(self, tokens: npt.NDArray[np.int64]) -> None:
        for matcher, own in zip(self._matchers, tokens.tolist(), strict=True):
            for token in own:
                if not self._is_over(matcher):
                    matcher.accept(token)

    def _take(self, parents: npt.NDArray[np.int64]) -> None:
        self._matchers = [self._matchers[parent].fork() for parent in parents.tolist()]

    def _add(self, count: int) -> None:
        self._matchers += [self._first.fork() for _ in range(count)]


class ThinkProcessor(GrammarProcessor):
    """RTP-LLM's think mode: a bounded reasoning block for each row, and free text after it."""

    rank = 0

    def __init__(
        self,
        budget: ReasoningBudget,
        vocabulary: _core.Vocabulary,
        rows: int = 1,
        *,
        at: Literal["outside", "inside", "closing"] | None = None,
        prompt: Sequence[int] = (),
        terminate_without_stop_token: bool = False,
    ) -> None:
        """Args:
            budget: the tags and the budget.
            vocabulary: the model's vocabulary.
            rows: how many rows there are.
            at, prompt: where the prompt ends, as of `ReasoningBudget.matcher`.
            terminate_without_stop_token: as of `GrammarProcessor`, for the grammar after the thought.

        Raises:
            ConstraintError: as of `ReasoningBudget.matcher`.
        """
        ends_early = terminate_without_stop_token and budget.then is not None
        matcher = budget.matcher(vocabulary, at=at, prompt=prompt)
        super().__init__(matcher, rows, terminate_without_stop_token=ends_early)

    def draft_masks(self, row: int, drafts: Sequence[int]) -> tuple[npt.NDArray[np.int32], int]:
        """The tokens allowed before each of P drafts and after the last, and how many drafts are allowed in turn.

        Returns:
            masks int32 [P + 1, words], 0 after the first draft that is not allowed; the offset of that draft, or P.
            The row stays where it is.

        Raises:
            StateError: there is no such row.
        """
        matcher = self._matchers[int(self.checked_parents([row])[0])]
        made = masks.new(matcher.vocabulary_size, len(drafts) + 1)
        allowed = matcher.draft_masks(list(drafts), made)
        return made, int(np.logical_and.accumulate(allowed).sum()) if len(allowed) else 0
