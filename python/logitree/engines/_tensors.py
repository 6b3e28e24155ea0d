"""Masks on a batch of logits where they are: in this machine's memory by the core, on a device by torch."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core


def ban(logits: Any, rows: Sequence[int], masks: npt.NDArray[np.int32], size: int) -> None:
    """Writes -inf where the mask of one of `rows` has no bit, and past `size`; other rows are not touched.

    Args:
        logits: a torch tensor, float [R, V], V at least `size`, on any device; written in place.
        rows: different rows of it.
        masks: int32 [len(rows), words], of `size` ids.
    """
    torch = importlib.import_module("torch")
    if logits.device.type == "cpu" and logits.dtype in (torch.float32, torch.float16, torch.bfloat16):
        first, count = rows[0], len(rows)
        if logits.is_contiguous() and all(row == first + at for at, row in enumerate(rows)):
            _core.mask_apply(logits[first : first + count], masks)
            return
        for row, mask in zip(rows, masks, strict=True):
            _core.mask_apply(logits[row], mask)
        return
    bits = torch.arange(32, dtype=torch.int32, device=logits.device)
    words = torch.from_numpy(masks).to(logits.device)
    banned = torch.ones((len(rows), logits.shape[1]), dtype=torch.bool, device=logits.device)
    banned[:, :size] = ((words[:, :, None] >> bits) & 1).flatten(1)[:, :size] == 0
    index = torch.tensor(rows, device=logits.device)
    logits[index] = logits[index].masked_fill(banned, -torch.inf)
