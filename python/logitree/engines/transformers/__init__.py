"""transformers: an engine for a loaded model or a local folder, and logits processors for its own `generate`."""

from ._engine import Transformers
from ._processor import ConstraintLogitsProcessor
from ._rows import TransformersRows
from ._session import TransformersSession
from ._trees import TreeLogitsProcessor, prefix_allowed_tokens_fn

__all__ = [
    "ConstraintLogitsProcessor",
    "Transformers",
    "TransformersRows",
    "TransformersSession",
    "TreeLogitsProcessor",
    "prefix_allowed_tokens_fn",
]
