"""One forward pass of a transformers model: its arguments, its cache, and its logits in this machine's memory."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._errors import EngineError
from .._cached import CachedSequence
from .._session import Logits

PASS_TOKENS_CPU = 512
"""Tokens of one pass on a CPU, where more are no faster."""

PASS_TOKENS_DEVICE = 2048
"""Tokens of one pass on an accelerator."""


def import_torch() -> Any:
    """The torch module, or an EngineError that says how to install it."""
    try:
        import torch
    except ImportError as missing:
        raise EngineError(
            f"torch is not usable: {missing}", help="pip install 'logitree[transformers]' torch"
        ) from missing
    return torch


class Runner:
    """A causal model, the arguments that its `forward` takes, and the kind of its cache.

    The kind is read from the cache that the model itself makes for one token.

    Args:
        model: a loaded model of transformers, in evaluation mode.

    Raises:
        EngineError: torch is missing, or this is no such model.
    """

    def __init__(self, model: Any) -> None:
        torch = import_torch()
        config = getattr(model, "config", None)
        if config is None or not callable(getattr(model, "forward", None)):
            raise EngineError(f"cannot run a {type(model).__name__}", help="give a model of transformers")
        if getattr(config, "is_encoder_decoder", False):
            raise EngineError("the model has an encoder and a decoder", help="give a causal model")
        if model.training:
            raise EngineError("the model is in training mode: its logits are random", help="call model.eval()")
        takes = frozenset(inspect.signature(model.forward).parameters)
        self.model = model
        self.config = config.get_text_config()
        self.takes_positions = "position_ids" in takes
        """Whether the position of each token can be given, so that rows of a batch may have gaps."""
        self._takes_keep = "logits_to_keep" in takes
        self._cache_name = next((name for name in ("cache", "past_key_values", "cache_params") if name in takes), None)
        cache = self.run(torch.zeros((1, 1), dtype=torch.long, device=self.device), None)[1]
        if cache is None:
            raise EngineError("the model keeps no cache", help="use a model with a key-value or state cache")
        layers = getattr(cache, "layers", ())
        self.is_padded = (
            self.takes_positions and bool(layers) and all(type(x).__name__ == "DynamicLayer" for x in layers)
        )
        """Whether rows can be padded: layers hold the keys and values of all positions, and positions are given."""
        self.is_recurrent = not layers or any(hasattr(layer, "recurrent_states") for layer in layers)
        """Whether states take tokens one by one, once there are any."""

    @property
    def device(self) -> Any:
        """Where the model takes its tokens."""
        return self.model.device

    @property
    def vocabulary_size(self) -> int:
        """Length of the model's logits."""
        return int(self.config.vocab_size)

    def run(self, ids: Any, cache: Any, mask: Any = None) -> tuple[Any, Any]:
        """Appends a block of tokens to a cache.

        Args:
            ids: int64 tensor [R, L] on the model's device.
            cache: what an earlier pass returned, or None. It must not be used again after this call.
            mask: int64 tensor [R, T], 1 where a position of cache and block has a token; None: everywhere.

        Returns:
            The logits after the last column, [R, V] on the model's device, and the new cache or None.
        """
        logits, cache = self.run_all(ids, cache, mask, keep=1)
        return logits[:, -1], cache

    def run_all(self, ids: Any, cache: Any, mask: Any = None, *, keep: int = 0) -> tuple[Any, Any]:
        """As `run`, with the logits after each column, [R, L, V], or after the last `keep` of them at least."""
        given = self._given(ids, cache)
        if mask is not None:
            given["attention_mask"] = mask
            if self.takes_positions:
                given["position_ids"] = (mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        if self._takes_keep:
            given["logits_to_keep"] = keep
        with import_torch().inference_mode():
            out = self.model(**given)
        if getattr(out, "logits", None) is None:
            raise EngineError(f"a {type(self.model).__name__} has no logits", help="load it with AutoModelForCausalLM")
        return out.logits, None if self._cache_name is None else getattr(out, self._cache_name, None)

    def states(self, ids: Any, cache: Any) -> tuple[Any, Sequence[Any]]:
        """As `run_all`, with the states [R, L, D] after the embedding and after each layer, the last one normalised, in
        place of the cache."""
        with import_torch().inference_mode():
            out = self.model(**self._given(ids, cache), output_hidden_states=True)
        if not getattr(out, "hidden_states", None):
            raise EngineError(f"a {type(self.model).__name__} shows no states of its layers")
        return out.logits, out.hidden_states

    def _given(self, ids: Any, cache: Any) -> dict[str, Any]:
        given = {"input_ids": ids}
        if self._cache_name is not None:
            given |= {self._cache_name: cache, "use_cache": True}
        return given


def to_host(logits: Any) -> npt.NDArray[np.float32]:
    """Logits [R, V] as float32 in this machine's memory, read-only; one copy, and one wait for the device."""
    torch = import_torch()
    with torch.inference_mode():
        logits = logits.float()
        if logits.device.type == "cuda":
            # torch keeps pinned blocks for reuse, so this allocates once.
            host = torch.empty(logits.shape, dtype=torch.float32, pin_memory=True)
            host.copy_(logits, non_blocking=True)
            torch.cuda.current_stream(logits.device).synchronize()
        else:
            host = logits.cpu().contiguous()
    rows: npt.NDArray[np.float32] = host.numpy()
    rows.flags.writeable = False
    return rows


def padded(rows: Sequence[Sequence[int]], device: Any) -> tuple[Any, Any]:
    """Rows of tokens as one block, padded on the left: ids and mask (1 where there is a token), int64 [R, longest]."""
    torch = import_torch()
    longest = max(map(len, rows))
    ids = torch.zeros((len(rows), longest), dtype=torch.long)
    mask = torch.zeros_like(ids)
    for at, row in enumerate(rows):
        if len(row):
            ids[at, longest - len(row) :] = torch.tensor(row)
            mask[at, longest - len(row) :] = 1
    return ids.to(device), mask.to(device)


class ModelCache(CachedSequence):
    """The key-value or state cache of a model of transformers, for one sequence."""

    def __init__(self, runner: Runner, pass_tokens: int, n_ctx: int | None) -> None:
        super().__init__(runner.vocabulary_size, n_ctx)
        self._runner, self._pass_tokens = runner, pass_tokens
        self._cache: Any = None

    @property
    def cache(self) -> Any:
        """The cache, which is not to be changed; None where it holds nothing."""
        return self._cache

    def cut(self, n: int) -> bool:
        """Removes the last `n` tokens. Recurrent states and sliding windows that have dropped positions cannot."""
        try:
            self._cache.crop(-n)
        except (AttributeError, RuntimeError, ValueError):
            return False
        return True

    def clear(self) -> None:
        """Forgets everything."""
        super().clear()
        self._cache = None

    def append(self, tokens: Sequence[int]) -> Logits:
        """Evaluates tokens, at least one, in passes of at most `pass_tokens`; float32 [V] after the last one.

        A recurrent model takes the first tokens in one pass, and the others one by one: models differ in what a longer
        pass makes of a state.
        """
        torch = import_torch()
        held, cache = self.tokens, self._cache
        self.clear()
        ids = torch.tensor([tokens], device=self._runner.device)
        size = self._pass_tokens
        if self._runner.is_recurrent:
            size = 1 if held else len(tokens)
        for block in ids.split(size, dim=1):
            logits, cache = self._runner.run(block, cache)
        self.tokens, self._cache = [*held, *tokens], cache
        last: Logits = to_host(logits)[0]
        return last
