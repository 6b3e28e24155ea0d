"""Which tokens are text."""

from __future__ import annotations

from . import _core

TEXT_KINDS = ("normal", "byte", "user_defined")
"""Kinds of tokens whose bytes are part of the text."""


def shown_bytes(vocabulary: _core.Vocabulary, token: int) -> bytes:
    """What a token adds to the text."""
    return vocabulary[token] if vocabulary.kind(token) in TEXT_KINDS else b""
