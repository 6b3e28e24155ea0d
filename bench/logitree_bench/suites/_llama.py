"""llama.cpp's sampler chains over an array of candidates, through llama-cpp-python's low-level functions.

It times nothing, and knows samplers by llama.cpp's names and parameters only.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from logitree_bench import Prepared, Skip, optional

Sampler = tuple[str, Mapping[str, Any]]
"""A sampler's name and its arguments by name: the same for us and for llama.cpp."""

PARAMETERS = {
    "adaptive_p": ("adaptive_p", "target decay seed"),
    "dist": ("dist", "seed"),
    "dry": ("dry", "vocab multiplier base allowed_length last_n breakers n_breakers"),
    "greedy": ("greedy", ""),
    "min_p": ("min_p", "p min_keep"),
    "mirostat": ("mirostat", "n_vocab seed tau eta m"),
    "mirostat_v2": ("mirostat_v2", "seed tau eta"),
    "penalties": ("penalties", "n_vocab last_n repeat freq present"),
    "temp": ("temp", "t"),
    "temp_ext": ("temp_ext", "t delta exponent"),
    "top_k": ("top_k", "k"),
    "top_n_sigma": ("top_n_sigma", "n"),
    "top_p": ("top_p", "p min_keep"),
    "typ_p": ("typical", "p min_keep"),
    "xtc": ("xtc", "p t min_keep seed"),
}
"""Name -> the end of its llama_sampler_init function's name, and the order of that function's parameters."""

DEFAULTS = {"min_keep": 0, "freq": 0.0, "present": 0.0, "vocab": None, "breakers": None, "n_breakers": 0}
"""What need not be said. Without breakers DRY does not look at the vocabulary."""

CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


class LlamaChain:
    """A llama.cpp chain and the array of candidates that it is applied to."""

    def __init__(
        self,
        llama: Any,
        logits: npt.NDArray[np.float32],
        samplers: Sequence[Sampler],
        accepted: Sequence[int],
        allowed: Sequence[int] | None,
    ) -> None:
        ids = np.arange(logits.size) if allowed is None else np.asarray(allowed)
        self._fresh = np.zeros(ids.size, CANDIDATE)
        self._fresh["id"], self._fresh["logit"] = ids, logits[ids]
        self._data = self._fresh.copy()
        self._pointer = self._data.ctypes.data_as(ctypes.POINTER(llama.llama_token_data))
        self._array = llama.llama_token_data_array(self._pointer, ids.size, -1, False)
        self._free = llama.llama_sampler_free
        self._chain = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
        for name, given in samplers:
            init, parameters = PARAMETERS[name]
            values = {**DEFAULTS, "n_vocab": logits.size, **given}
            made = getattr(llama, f"llama_sampler_init_{init}")(*(values[p] for p in parameters.split()))
            llama.llama_sampler_chain_add(self._chain, made)
        for token in accepted:
            llama.llama_sampler_accept(self._chain, token)
        self.apply = functools.partial(llama.llama_sampler_apply, self._chain, ctypes.byref(self._array))
        """Apply the chain to what is in the array; nothing of Python but the call itself."""

    def refill(self) -> None:
        """Put all candidates back, in the vocabulary's order, by one copy."""
        ctypes.memmove(self._data.ctypes.data, self._fresh.ctypes.data, self._fresh.nbytes)
        # xtc cuts by moving the pointer: without its reset the next apply would write past the array.
        self._array.data, self._array.size = self._pointer, self._data.size
        self._array.selected, self._array.sorted = -1, False

    def candidates(self) -> npt.NDArray[Any]:
        """The current content of the array: ids, logits and probabilities."""
        first = (ctypes.addressof(self._array.data.contents) - self._data.ctypes.data) // CANDIDATE.itemsize
        return self._data[first : first + self._array.size]

    def picked(self) -> int | None:
        """The token that the last apply selected."""
        at = int(self._array.selected)
        return int(self.candidates()["id"][at]) if at >= 0 else None

    def apply_only(self) -> Prepared:
        """For the clock: the apply alone, on an array that was filled just before.

        An apply sorts, cuts and rescales the array, so it must be refilled each time; refilling is not counted.
        It leaves the array in the cache as a caller's own filling would, so the peer loses nothing by it.
        """
        return Prepared(self.refill, self.apply)

    def __del__(self) -> None:
        self._free(self._chain)


def llama_chain(
    logits: npt.NDArray[np.float32],
    samplers: Sequence[Sampler],
    *,
    accepted: Sequence[int] = (),
    allowed: Sequence[int] | None = None,
) -> LlamaChain | Skip:
    """The chain, which has accepted these tokens, over all logits or the allowed ones; or why there is none."""
    llama: Any = optional("llama_cpp")
    return llama if isinstance(llama, Skip) else LlamaChain(llama, logits, samplers, accepted, allowed)
