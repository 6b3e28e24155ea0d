"""Decides an LLM's next token: which tokens are legal, what the samplers make of them, which is picked, and why.

``logitree.Vocabulary`` says what bytes each token id stands for; everything else builds on it.
"""

from logitree import _mask as mask
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
    TokenTrie,
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
    "TokenTrie",
    "Vocabulary",
    "VocabularyError",
    "__profile__",
    "__version__",
    "mask",
]
