"""Decides an LLM's next token: which tokens are legal, what the samplers make of the logits, which is picked, and why.

``logitree.Vocabulary`` says what bytes each token id stands for; everything else builds on it.
"""

from logitree._core import (
    Choices,
    ConstraintError,
    FileError,
    LimitError,
    LogitreeError,
    LogitsError,
    MaskError,
    Matcher,
    PayloadError,
    SamplingError,
    StateError,
    TokenError,
    TokenTree,
    TokenTreeCache,
    Vocabulary,
    VocabularyError,
    __version__,
    choices,
    prefill_plan,
    span_sampler_plan,
    token_tree,
    token_tree_cache,
)
from logitree._token_tree import (
    TokenizerCache,
    token_tree_descriptor,
    token_tree_payload,
    tokenizer_cache,
)

__all__ = [
    "Choices",
    "ConstraintError",
    "FileError",
    "LimitError",
    "LogitreeError",
    "LogitsError",
    "MaskError",
    "Matcher",
    "PayloadError",
    "SamplingError",
    "StateError",
    "TokenError",
    "TokenTree",
    "TokenTreeCache",
    "TokenizerCache",
    "Vocabulary",
    "VocabularyError",
    "__version__",
    "choices",
    "prefill_plan",
    "span_sampler_plan",
    "token_tree",
    "token_tree_cache",
    "token_tree_descriptor",
    "token_tree_payload",
    "tokenizer_cache",
]
