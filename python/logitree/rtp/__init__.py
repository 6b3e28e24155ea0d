"""RTP-LLM's tree-decode files and logits processors over the native constraints."""

from __future__ import annotations

from ._report import Finding, Report
from ._tree import RtpTree, load_tree

__all__ = ["Finding", "Report", "RtpTree", "load_tree"]
