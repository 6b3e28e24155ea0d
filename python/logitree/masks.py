"""Sets of token ids as NumPy arrays, and masks on logits.

A mask is an int32 array of ``words(size)`` words; bit ``id % 32`` of word ``id // 32``, least significant bit
first, says whether the id is in the set. Two dimensions are a batch: one mask for each row. This is the layout of
XGrammar, llguidance, vLLM and SGLang. Wherever a mask is taken, uint32 arrays, rows of a larger array and
int32 tensors in this machine's memory (DLPack) do as well; nothing is copied.

Bits past the size are 0 in masks made here. Set operations are NumPy's: ``a & b``, ``a | b``, ``a ^ b``, ``a & ~b``,
and ``new(size, fill=True) & ~a`` for the ids that are not in ``a``.
"""

from __future__ import annotations

from logitree import _core, _renamed

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

# Not by the module's __getattr__: Python looks up every name of such a module the slow way.
globals().update(_renamed.operations())
