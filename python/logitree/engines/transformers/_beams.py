"""Beam sessions of a transformers engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from ..._errors import EngineError
from .. import Rows
from .._rows import checked_prompts, checked_step
from ._forward import import_torch, padded, to_host

if TYPE_CHECKING:
    from ._engine import Transformers


class TransformersBeams:
    """A beam session of a Transformers engine: the rows of a key-value cache, reordered by parents each step."""

    def __init__(self, engine: Transformers) -> None:
        self._engine = engine
        self._cache: Any = None
        self._mask: Any = None
        """int64 [rows, positions]: 0 where a prompt was padded on the left."""
        self._begun = False
        self._vocabulary = engine.runner.vocabulary_size

    def begin(self, prompts: Sequence[Sequence[int]]) -> Rows:
        """Evaluates the prompts in one pass, shorter ones padded on the left; float32 [P, V].

        Raises:
            EngineError: a prompt is empty or too long, the session has begun already, the model keeps no cache, or it
                takes no positions and the prompts have several lengths.
            TokenError: a token is not in the vocabulary.
        """
        runner = self._engine.runner
        checked = checked_prompts(prompts, self._vocabulary)
        if self._begun:
            raise EngineError("the session has begun already", help="use a new session for new prompts")
        longest = max(map(len, checked))
        self._fits(longest)
        if min(map(len, checked)) < longest and not runner.takes_positions:
            raise EngineError(
                "the model takes no position_ids, and the prompts have several lengths",
                help="search prompts of the same length together",
            )
        self._begun = True
        ids, mask = padded(checked, runner.device)
        return self._evaluate(ids, mask, None)

    def step(self, parents: npt.ArrayLike, tokens: npt.ArrayLike) -> Rows:
        """Copies the parents' rows of the cache and evaluates a token in each; float32 [R, V].

        Raises:
            StateError, TokenError: a parent is not a row, or a token not in the vocabulary. Nothing has changed.
            EngineError: the sequences are as long as the model allows, and nothing has changed; or the session has no
                rows.
        """
        torch = import_torch()
        if self._cache is None:
            raise EngineError(
                "the session has no rows", help="begin it first; after a failure or close, make a new one"
            )
        old, new = checked_step(parents, tokens, self._mask.shape[0], self._vocabulary)
        self._fits(self._mask.shape[1] + 1)
        index = torch.tensor(old, device=self._mask.device)
        ids = torch.tensor(new, device=self._mask.device)[:, None]
        cache, self._cache = self._cache, None
        cache.reorder_cache(index)
        return self._evaluate(ids, torch.cat((self._mask[index], torch.ones_like(ids)), dim=1), cache)

    def close(self) -> None:
        """Gives the cache back."""
        self._cache = None

    def _fits(self, length: int) -> None:
        """An EngineError where sequences of that many positions are too long."""
        most = self._engine.n_ctx
        if most is not None and length > most:
            raise EngineError(f"a beam is {length} tokens long, the model takes {most}", help="shorten the prompt")

    def _evaluate(self, ids: Any, mask: Any, cache: Any) -> Rows:
        """One pass; the cache is known again after it only if it went well."""
        logits, cache = self._engine.runner.run(ids, cache, mask)
        if not hasattr(cache, "reorder_cache"):
            raise EngineError("the model keeps no cache that can be reordered", help="use a model with attention only")
        self._cache, self._mask = cache, mask
        return to_host(logits)
