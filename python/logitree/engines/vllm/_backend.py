"""The backend of vLLM's structured outputs: compiling in its executor, and the grammar of one request."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from vllm.logger import init_logger
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

from ... import _core
from .._requests import SECONDS
from ._compiler import SLOWER, compiler_of

logger = init_logger("vllm.logitree")


@dataclass
class LogitreeBackend(StructuredOutputBackend):  # type: ignore[misc]
    """Makes the grammars of an engine's requests. `compile_grammar` runs in the engine's executor, off its loop.

    Raises:
        VocabularyError: the tokenizer cannot be read.
        ConstraintError: no token ends a generation.
    """

    def __post_init__(self) -> None:
        config = self.vllm_config
        self.compiler = compiler_of(self.tokenizer, config.model_config, config.structured_outputs_config)
        self._rows: tuple[Any, npt.NDArray[np.int32]] | None = None

    def compile_grammar(
        self,
        request_type: StructuredOutputOptions,
        grammar_spec: str,
        stop_token_ids: set[int] | None = None,
    ) -> LogitreeGrammar:
        """The grammar of a request, at the beginning of its output.

        Raises:
            ConstraintError, LimitError: the request cannot be honoured; vLLM ends it alone.
        """
        seconds = SLOWER * SECONDS
        matcher = self.compiler.matcher(request_type.name.lower(), grammar_spec, stop_token_ids, seconds=seconds)
        ends = stop_token_ids or self.compiler.vocabulary.end_tokens
        return LogitreeGrammar(self, matcher, frozenset(ends))

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """int32 [max_num_seqs, words], all ones: nothing is masked."""
        return torch.full((max_num_seqs, _core.mask_words(self.vocab_size)), -1, dtype=torch.int32)

    def destroy(self) -> None:
        """Forgets the last bitmask; what requests share goes with the vocabulary."""
        self._rows = None

    def fill(self, matcher: _core.Matcher, bitmask: torch.Tensor, row: int) -> None:
        """Writes what a matcher allows over a row, padding of the logits left out."""
        self.compiler.fill([matcher], self.row(bitmask, row)[None])

    def row(self, bitmask: torch.Tensor, row: int) -> npt.NDArray[np.int32]:
        """A row of the bitmask, in place. vLLM has one bitmask, whose array is kept."""
        rows = self._rows
        if rows is None or rows[0] is not bitmask:
            rows = self._rows = (bitmask, bitmask.numpy())
        words: npt.NDArray[np.int32] = rows[1][row]
        return words


class LogitreeGrammar(StructuredOutputGrammar):  # type: ignore[misc]
    """The state of one request.

    A request whose matcher fails, because a step takes more than its fuel, takes no more tokens: vLLM ends it with an
    error. Others do not notice.
    """

    def __init__(self, backend: LogitreeBackend, matcher: _core.Matcher, ends: Collection[int]) -> None:
        self.matcher = matcher
        """Where the output is."""
        self._backend, self._ends = backend, ends
        self._is_over = False
        """An end token was taken: nothing is masked, and nothing that follows counts."""
        self._failed: _core.LogitreeError | None = None

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Takes tokens; those after the end count for nothing. False: one is not allowed, or the request has failed."""
        for token in tokens:
            if self._is_over:
                return True
            if self._failed is None:
                try:
                    self.matcher.accept(token)
                except _core.TokenError as refused:
                    logger.error("request %s: %s", request_id, refused)
                    return False
                except _core.LogitreeError as failed:
                    self._fail(failed)
            if self._failed is not None:
                logger.error("request %s failed: %s", request_id, self._failed)
                return False
            self._is_over = token in self._ends
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """The longest beginning of `tokens` that may follow, up to an end token. Changes nothing."""
        if self._is_over or self._failed is not None:
            return []
        try:
            count = self.matcher.validate(tokens)
        except _core.LogitreeError as failed:
            self._fail(failed)
            return []
        taken = tokens[:count]
        end = next((at for at, token in enumerate(taken) if token in self._ends), count)
        return taken[: end + 1]

    def rollback(self, num_tokens: int) -> None:
        """Takes the last tokens back, an end token among them. Raises StateError if there are fewer."""
        if num_tokens > 0:
            self.matcher.rollback(num_tokens)
            self._is_over = False

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Writes what is allowed over a row of the bitmask."""
        if self._failed is None:
            try:
                self._backend.fill(self.matcher, bitmask, batch_index)
                return
            except _core.LogitreeError as failed:
                self._fail(failed)
        # Any row that the sampler can draw from: whatever it draws is refused.
        self._backend.row(bitmask, batch_index)[:] = -1

    def is_terminated(self) -> bool:
        """Whether an end token was taken."""
        return self._is_over

    def reset(self) -> None:
        """Back to the beginning of the output."""
        self.matcher.reset()
        self._is_over, self._failed = False, None

    def _fail(self, failed: _core.LogitreeError) -> None:
        self._failed = failed
