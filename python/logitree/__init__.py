"""Decides an LLM's next token."""

from logitree._core import __profile__, __version__

__all__ = ["__profile__", "__version__"]
