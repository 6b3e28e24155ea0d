"""transformers: an engine for a model or a folder, and what constrains its own `generate` and `generate_batch`."""

from typing import TYPE_CHECKING, Any

from ... import _renamed
from ._continuous import continuous_batching
from ._custom_generate import custom_generate
from ._engine import Transformers
from ._processor import ConstraintLogitsProcessor, ConstraintStoppingCriteria
from ._rows import TransformersRows
from ._trees import TreeLogitsProcessor, prefix_allowed_tokens_fn

__all__ = [
    "ConstraintLogitsProcessor",
    "ConstraintStoppingCriteria",
    "Transformers",
    "TransformersRows",
    "TreeLogitsProcessor",
    "continuous_batching",
    "custom_generate",
    "prefix_allowed_tokens_fn",
]

if not TYPE_CHECKING:  # a type checker knows no old names, so that it marks misspelled ones

    def __getattr__(name: str) -> Any:
        return _renamed.of_module(__name__, name)
