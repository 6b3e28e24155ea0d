"""An engine in twenty lines: a table of logits, the row of the last token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import logitree as lt


class TableEngine:
    """Logits are a row of a table, chosen by the last token; tokens are single bytes and an end."""

    def __init__(self, seed: int = 0, scale: float = 3.0) -> None:
        self.vocabulary = lt.Vocabulary.from_tokens([bytes([b]) for b in range(256)] + [b"</s>"], eog_ids=[256])
        self.table = np.random.default_rng(seed).normal(0, scale, (257, 257)).astype(np.float32)

    def encode(self, prompt: str, *, chat: bool | None = None) -> list[int]:
        """The bytes of the prompt."""
        return list(prompt.encode())

    def session(self) -> TableSession:
        """A sequence, of which only the last token counts."""
        return TableSession(self.table)


class TableSession:
    """One sequence."""

    def __init__(self, table: np.ndarray) -> None:
        self.table, self.evaluated = table, list[int]()

    def evaluate(self, tokens: Sequence[int]) -> np.ndarray:
        """The row of the last token."""
        self.evaluated += tokens
        row: np.ndarray = self.table[self.evaluated[-1]]
        return row
