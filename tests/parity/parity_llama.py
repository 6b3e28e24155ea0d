"""llama.cpp's samplers, called through ctypes with little overhead: a million calls a minute.

The library is the one inside llama-cpp-python; its functions are taken once more, with argument types of plain
addresses, so that nothing is converted for each call. It knows how llama.cpp is called, and nothing of what is
compared.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import llama_cpp
import numpy as np
import numpy.typing as npt

TOKEN_DATA = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
"""llama.cpp's ``llama_token_data``."""

Candidates = npt.NDArray[Any]
"""Records of :data:`TOKEN_DATA`."""


class TokenDataArray(ctypes.Structure):
    """llama.cpp's ``llama_token_data_array``, its pointer being a plain address."""

    _fields_ = (
        ("data", ctypes.c_size_t),
        ("size", ctypes.c_size_t),
        ("selected", ctypes.c_int64),
        ("sorted", ctypes.c_bool),
    )


def function(name: str, result: Any, *arguments: Any) -> Any:
    """A function of libllama under types of our own; llama-cpp-python's stays as it is."""
    found = llama_cpp.llama_cpp._lib[f"llama_sampler_{name}"]
    found.restype, found.argtypes = result, list(arguments)
    return found


POINTER, INT, UINT, FLOAT, SIZE = ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint32, ctypes.c_float, ctypes.c_size_t
apply = function("apply", None, POINTER, POINTER)
accept = function("accept", None, POINTER, INT)
reset = function("reset", None, POINTER)
clone = function("clone", POINTER, POINTER)
free = function("free", None, POINTER)
chain_add = function("chain_add", None, POINTER, POINTER)
chain_get = function("chain_get", POINTER, POINTER, INT)


@functools.cache
def init(name: str, *arguments: Any) -> Any:
    """The constructor of a sampler."""
    return function(f"init_{name}", POINTER, *arguments)


class Array:
    """Candidates in llama.cpp's form, to be refilled for each call."""

    def __init__(self) -> None:
        self.struct = TokenDataArray()
        self.address = ctypes.addressof(self.struct)
        self.records = np.zeros(0, TOKEN_DATA)

    def fill(self, candidates: Candidates) -> None:
        """Begins a step with these candidates, as llama.cpp's own callers do: unsorted, none selected."""
        n = len(candidates)
        if n > len(self.records):
            self.records = np.zeros(2 * n, TOKEN_DATA)
            self.start = self.records.ctypes.data
        self.records[:n] = candidates
        struct = self.struct
        # xtc moves the pointer, so that it is set for each call.
        struct.data, struct.size, struct.selected, struct.sorted = self.start, n, -1, False

    @property
    def left(self) -> Candidates:
        """What is left now: a view."""
        first = (self.struct.data - self.start) // TOKEN_DATA.itemsize
        return self.records[first : first + self.struct.size]

    @property
    def selected(self) -> int:
        """The selected id; -1 if there is none."""
        at = self.struct.selected
        return int(self.left["id"][at]) if at >= 0 else -1


class LlamaChain:
    """A chain of llama.cpp's samplers, which it owns."""

    def __init__(self, samplers: Sequence[int] = (), pointer: int | None = None) -> None:
        if pointer is None:
            params = llama_cpp.llama_sampler_chain_default_params()
            params.no_perf = True
            pointer = llama_cpp.llama_sampler_chain_init(params)
        self.pointer = ctypes.cast(pointer, POINTER).value if not isinstance(pointer, int) else pointer
        self.length = len(samplers)
        for sampler in samplers:
            chain_add(self.pointer, sampler)

    def accept(self, token: int) -> None:
        """Takes note of an accepted token."""
        accept(self.pointer, token)

    def apply(self, array: Array) -> None:
        """Applies the chain to the array."""
        apply(self.pointer, array.address)

    def apply_one(self, at: int, array: Array) -> None:
        """Applies one sampler of the chain."""
        apply(chain_get(self.pointer, at), array.address)

    def reset(self) -> None:
        """Back to the state it was born with."""
        reset(self.pointer)

    def clone(self) -> LlamaChain:
        """llama.cpp's copy of it."""
        copy = LlamaChain(pointer=clone(self.pointer))
        copy.length = self.length
        return copy

    def __del__(self) -> None:
        free(self.pointer)
