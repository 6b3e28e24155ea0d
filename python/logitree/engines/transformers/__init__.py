"""transformers: an engine for a loaded model or a local folder, and logits processors for its own `generate`."""

from typing import TYPE_CHECKING, Any

from ... import _renamed
from ._engine import Transformers
from ._processor import ConstraintLogitsProcessor
from ._rows import TransformersRows
from ._trees import TreeLogitsProcessor, prefix_allowed_tokens_fn

__all__ = [
    "ConstraintLogitsProcessor",
    "Transformers",
    "TransformersRows",
    "TreeLogitsProcessor",
    "prefix_allowed_tokens_fn",
]

if not TYPE_CHECKING:  # a type checker knows no old names, so that it marks misspelled ones

    def __getattr__(name: str) -> Any:
        return _renamed.of_module(__name__, name)
