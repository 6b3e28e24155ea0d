"""Decides an LLM's next token: which are legal, what the samplers make of the logits, which is picked, and why.

``logitree.Vocabulary`` says what bytes each token id stands for; everything else builds on it.
"""

from logitree._core import (
    ConstraintError,
    FileError,
    LimitError,
    LogitreeError,
    LogitsError,
    MaskError,
    PayloadError,
    SamplingError,
    StateError,
    TokenError,
    Vocabulary,
    VocabularyError,
    __version__,
)

__all__ = [
    "ConstraintError",
    "FileError",
    "LimitError",
    "LogitreeError",
    "LogitsError",
    "MaskError",
    "PayloadError",
    "SamplingError",
    "StateError",
    "TokenError",
    "Vocabulary",
    "VocabularyError",
    "__version__",
]
