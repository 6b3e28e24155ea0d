"""An engine in twenty lines: a table of logits, the row of the last token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import logitree as lt
from grammars import tokens_of
from logitree.engines import ContextFull, Engine, Session


class TableEngine(Engine):
    """Logits are a row of a table, chosen by the last token; tokens are single bytes and an end."""

    def __init__(self, seed: int = 0, scale: float = 3.0) -> None:
        self.vocabulary = lt.Vocabulary.from_tokens([bytes([b]) for b in range(256)] + [b"</s>"], end_tokens=[256])
        self.table = np.random.default_rng(seed).normal(0, scale, (257, 257)).astype(np.float32)

    def encode(self, prompt: str, *, chat: bool | None = None) -> list[int]:
        """The bytes of the prompt."""
        return list(prompt.encode())

    def session(self) -> TableSession:
        """A sequence whose last token alone counts."""
        return TableSession(self.table)


class TableSession(Session):
    """One sequence."""

    def __init__(self, table: np.ndarray) -> None:
        self.table, self.evaluated = table, list[int]()

    def evaluate(self, tokens: Sequence[int]) -> np.ndarray:
        """The row of the last token."""
        self.evaluated += tokens
        row: np.ndarray = self.table[self.evaluated[-1]]
        return row


class DraftingEngine(TableEngine):
    """A table of logits over tokens of several bytes, with a tokenizer and with sessions that take tokens back.

    The row is that of the last two tokens' sum, so that tokens taken back wrongly change what comes next.
    """

    TEXTS = (
        b"ab",
        b"abc",
        b"bc",
        b"re",
        b"red",
        b"d,",
        b'":',
        b'",',
        b' "',
        b'""',
        b'{"',
        b" tr",
        b"ue",
        b"name",
        b"am",
    )

    def __init__(self, seed: int = 0, scale: float = 3.0, n_ctx: int = 1 << 20) -> None:
        super().__init__(seed, scale)
        tokens = [*(bytes([b]) for b in range(256)), *self.TEXTS, b"</s>"]
        self.vocabulary = lt.Vocabulary.from_tokens(tokens, end_tokens=[len(tokens) - 1])
        self.table = np.random.default_rng(seed).normal(0, scale, (len(tokens), len(tokens))).astype(np.float32)
        self.n_ctx = n_ctx
        self.sessions: list[DraftingSession] = []

    def tokenize(self, text: str) -> list[int]:
        """The longest token that fits, again and again."""
        return tokens_of(self.vocabulary, text)

    def session(self) -> DraftingSession:
        """A sequence that remembers all of its tokens."""
        self.sessions.append(DraftingSession(self.table, self.n_ctx))
        return self.sessions[-1]


class DraftingSession(TableSession):
    """One sequence, with what it was asked."""

    can_rollback = True

    def __init__(self, table: np.ndarray, n_ctx: int) -> None:
        super().__init__(table)
        self.n_ctx, self.passes, self.rolled_back = n_ctx, 0, 0

    def evaluate(self, tokens: Sequence[int]) -> np.ndarray:
        """The logits after the last token."""
        return self.evaluate_all(tokens, 1)[0]

    def evaluate_all(self, tokens: Sequence[int], last: int) -> list[np.ndarray]:
        """The logits after each of the last tokens."""
        if len(self.evaluated) + len(tokens) > self.n_ctx:
            raise ContextFull
        self.passes += 1
        self.evaluated += tokens
        size = len(self.evaluated)
        return [
            self.table[sum(self.evaluated[max(0, at - 2) : at]) % len(self.table)]
            for at in range(size - last + 1, size + 1)
        ]

    def draft_room(self) -> int:
        """No end."""
        return 1 << 62

    def rollback(self, n: int, row: int = 0) -> None:
        """Forgets tokens."""
        assert 0 < n <= len(self.evaluated)
        self.rolled_back += n
        del self.evaluated[len(self.evaluated) - n :]
