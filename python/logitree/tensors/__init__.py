"""Masks and draws on torch tensors, where they are: in this machine's memory by the core, on CUDA by Triton kernels."""

from ._masks import apply_masks
from ._sampling import sample_batch

__all__ = ["apply_masks", "sample_batch"]
