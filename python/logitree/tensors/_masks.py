"""Masks on logits where they are."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from .._errors import error

CHUNK = 1024


def apply_masks(logits: Any, masks: Any, rows: Sequence[int] | None = None, size: int | None = None) -> None:
    """Writes -inf where the mask of a row has no bit, and past `size`, in place; other rows are not touched.

    Args:
        logits: a torch tensor [R, V], floating point, on any device.
        masks: int32 [rows, words], an array or a tensor on any device; `logitree.masks` says which bit is which.
        rows: different rows of the logits, one for each mask; None: row i has mask i.
        size: the vocabulary's, up to V: ids from there on are padding. None: V.

    Raises:
        MaskError: masks and rows do not fit.
    """
    height, width = logits.shape
    size = width if size is None else size
    rows = range(len(masks)) if rows is None else rows
    if len(masks) != len(rows) or masks.shape[1] * 32 < min(size, width) or size > width:
        raise error(
            _core.MaskError,
            f"masks of shape {tuple(masks.shape)} for {len(rows)} rows of {size} ids in logits of {height, width}",
            help="one mask for each row, with a bit for each id: logitree.masks.new(size, rows)",
        )
    if any(not 0 <= row < height for row in rows):
        raise error(_core.MaskError, f"a row is not among the {height} of the logits")
    if not len(rows):
        return
    torch = importlib.import_module("torch")
    if logits.device.type == "cpu" and logits.dtype in (torch.float32, torch.float16, torch.bfloat16):
        _apply_here(logits, masks, rows)
        return
    words = on_device(masks, logits)
    index = torch.tensor(rows, device=logits.device)
    if logits.device.type == "cuda" and logits.stride(1) == 1 and has_triton():
        ban(logits, words, index, size)
        return
    bits = torch.arange(32, dtype=torch.int32, device=logits.device)
    banned = torch.ones((len(rows), width), dtype=torch.bool, device=logits.device)
    banned[:, :size] = ((words[:, :, None] >> bits) & 1).flatten(1)[:, :size] == 0
    logits[index] = logits[index].masked_fill(banned, -torch.inf)


def ban(logits: Any, words: Any, index: Any, size: int) -> None:
    """`apply_masks` by the kernel, with masks and int64 rows beside the logits."""
    kernels = importlib.import_module("._kernels", __package__)
    width = logits.shape[1]
    grid = (len(index), -(-width // CHUNK))
    kernels.ban[grid](logits, logits.stride(0), index, words, words.shape[1], size, width, CHUNK=CHUNK)


def on_device(masks: Any, logits: Any) -> Any:
    """Masks as a contiguous tensor beside the logits; a copy from this machine's memory does not wait."""
    torch = importlib.import_module("torch")
    if not isinstance(masks, torch.Tensor):
        masks = torch.from_numpy(np.ascontiguousarray(masks, np.int32))
    if logits.device.type == "cuda" and masks.device.type == "cpu":
        masks = masks.pin_memory()
    return masks.to(logits.device, non_blocking=True).contiguous()


@functools.lru_cache(1)
def has_triton() -> bool:
    """Whether Triton can be imported: torch brings it on Linux."""
    return importlib.util.find_spec("triton") is not None


def _apply_here(logits: Any, masks: Any, rows: Sequence[int]) -> None:
    if not isinstance(masks, np.ndarray):
        masks = masks.cpu().numpy()
    first, count = rows[0], len(rows)
    if logits.is_contiguous() and all(row == first + at for at, row in enumerate(rows)):
        _core.mask_apply(logits[first : first + count], masks)
        return
    for row, mask in zip(rows, masks, strict=True):
        _core.mask_apply(logits[row], mask)
