"""llama.cpp's grammar sampler as an engine: applying it to all candidates is its mask.

The candidates are refilled by one memory copy before each mask, which counts as its own: a hundredth of what the
grammar takes. It knows GBNF only.
"""

from __future__ import annotations

import copy
import ctypes
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from logitree_bench.maskbench._engines import Form, Refused, Sequence, Words
from logitree_bench.suites._llama import CANDIDATE


class LlamaGrammar:
    """llama.cpp's grammar over the whole vocabulary."""

    def __init__(self, path: str) -> None:
        self._llama: Any = importlib.import_module("llama_cpp")
        self._model = self._llama.Llama(path, vocab_only=True, verbose=False)
        self._vocab = self._llama.llama_model_get_vocab(self._model.model)
        size = self._llama.llama_vocab_n_tokens(self._vocab)
        self._fresh = np.zeros(size, CANDIDATE)
        self._fresh["id"] = np.arange(size)
        self._candidates()

    def _candidates(self) -> None:
        self._data = self._fresh.copy()
        pointer = self._data.ctypes.data_as(ctypes.POINTER(self._llama.llama_token_data))
        self._array = self._llama.llama_token_data_array(pointer, self._data.size, -1, False)

    @property
    def words(self) -> Words:
        """The mask that the last fill left in the candidates."""
        legal = np.packbits(np.isfinite(self._data["logit"]), bitorder="little")
        return np.pad(legal, (0, -legal.size % 4)).view(np.int32)

    def forget(self) -> None:
        """It keeps none."""

    def compile(self, source: Any, form: Form = "schema") -> Callable[[], Sequence]:
        """A grammar sampler; each sequence is a clone of it."""
        if form != "gbnf":
            raise Refused("llama.cpp's library reads GBNF only")
        made = self._llama.llama_sampler_init_grammar(self._vocab, source.encode(), b"root")
        if not made:
            raise Refused("llama.cpp does not say why")
        grammar = Owned(self._llama, made)
        return lambda: self._start(Owned(self._llama, self._llama.llama_sampler_clone(grammar.sampler)))

    def twin(self) -> LlamaGrammar:
        """Shares the vocabulary."""
        other = copy.copy(self)
        other._candidates()
        return other

    def _start(self, own: Owned) -> Sequence:
        # Both closures hold the owner: the sampler must outlive whichever of them is kept.
        apply, take, array = self._llama.llama_sampler_apply, self._llama.llama_sampler_accept, self._array
        to, source, size = self._data.ctypes.data, self._fresh.ctypes.data, self._fresh.nbytes

        def fill() -> None:
            ctypes.memmove(to, source, size)
            apply(own.sampler, ctypes.byref(array))

        def accept(token: int) -> None:
            take(own.sampler, token)

        return Sequence(fill, accept, str)


class Owned:
    """A sampler that is freed with its owner."""

    def __init__(self, llama: Any, sampler: Any) -> None:
        self.sampler = sampler
        self._free = llama.llama_sampler_free

    def __del__(self) -> None:
        self._free(self.sampler)
