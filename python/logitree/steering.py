"""Edits of logits before a chain, and rules that change a chain's parameters from token to token."""

from logitree._core import Burst, Effect, EntropyRule, PerplexityGate, Steering

__all__ = ["Burst", "Effect", "EntropyRule", "PerplexityGate", "Steering"]
