"""Measures of logits and of running text: entropy, surprisal, perplexity, and how often tokens occurred."""

from logitree._core import (
    Measures,
    RollingPerplexity,
    TokenHistory,
    entropy,
    log_softmax,
    log_sum_exp,
    surprisal,
)
from logitree._events import LogProbs

__all__ = [
    "LogProbs",
    "Measures",
    "RollingPerplexity",
    "TokenHistory",
    "entropy",
    "log_softmax",
    "log_sum_exp",
    "surprisal",
]
