"""Decides an LLM's next token: what is legal, what the samplers make of it, what is picked, and why.

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
    __profile__,
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
    "__profile__",
    "__version__",
]
