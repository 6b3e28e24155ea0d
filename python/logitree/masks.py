"""Sets of token ids as NumPy arrays, and masks on logits.

A mask is an int32 array of ``words(size)`` words; bit ``id % 32`` of word ``id // 32``, least significant bit
first, says whether the id is in the set. Two dimensions are a batch: one mask for each row. This is the layout of
XGrammar, llguidance, vLLM and SGLang. Wherever a mask is taken, uint32 arrays, rows of a larger array and
int32 tensors in this machine's memory (DLPack) do as well; nothing is copied.

Bits past the size are 0 in masks made here. Set operations are NumPy's: ``a & b``, ``a | b``, ``a ^ b``, ``a & ~b``,
and ``new(size, fill=True) & ~a`` for the ids that are not in ``a``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from logitree import _core
from logitree._errors import error

new = _core.mask_new
words = _core.mask_words
from_ids = _core.mask_from_ids
to_ids = _core.mask_ids
count = _core.mask_count
first = _core.mask_first
contains = _core.mask_contains
insert = _core.mask_insert
remove = _core.mask_remove
fill = _core.mask_fill
apply = _core.mask_apply
fill_batch = _core.fill_masks

__all__ = [
    "apply",
    "contains",
    "count",
    "fill",
    "fill_batch",
    "first",
    "from_ids",
    "insert",
    "new",
    "remove",
    "to_ids",
    "words",
]

_FORMER: dict[str, tuple[str, Callable[..., Any]]] = {
    "and_": ("a & b", np.bitwise_and),
    "or_": ("a | b", np.bitwise_or),
    "xor": ("a ^ b", np.bitwise_xor),
    "and_not": ("a & ~b", lambda a, b, out: np.bitwise_and(a, ~b, out=out)),
    "not_": ("new(size, fill=True) & ~a", lambda a, full, out: np.bitwise_and(full, ~a, out=out)),
}


def _former(name: str, text: str, operation: Callable[..., Any]) -> Callable[..., Any]:
    """A set operation that was here, for one release."""

    def combine(a: Any, b: Any, out: Any = None) -> Any:
        warnings.warn(f"masks.{name} is NumPy's own: {text}", DeprecationWarning, stacklevel=2)
        a, b = np.asarray(a).view(np.int32), np.asarray(new(b, fill=True) if name == "not_" else b).view(np.int32)
        if a.shape[-1] != b.shape[-1] or (name != "not_" and a.shape != b.shape):
            raise error(_core.MaskError, f"masks of the shapes {a.shape} and {b.shape}")
        made = operation(a, b, out=None if out is None else np.asarray(out).view(np.int32))
        return made if out is None else out

    return combine


# Not by the module's __getattr__: Python looks up every name of such a module the slow way.
globals().update({name: _former(name, *how) for name, how in _FORMER.items()})
