"""An engine of your own: a vocabulary, a tokenizer, and NumPy logits of the last token."""

import numpy as np

import logitree


class TableEngine(logitree.engines.Engine, logitree.engines.Session):
    vocabulary = logitree.Vocabulary.from_tokens([*(bytes([b]) for b in range(256)), b"</s>"], end_tokens=[256])
    table = np.random.default_rng(0).normal(0, 3, (257, 257)).astype(np.float32)

    def encode(self, prompt: str, *, chat: bool | None = None) -> list[int]:
        return list(prompt.encode())

    def session(self) -> "TableEngine":
        return self  # a session of a model has a sequence of its own

    def evaluate(self, tokens: list[int]) -> np.ndarray:
        return self.table[tokens[-1]]


print(logitree.generate(TableEngine(), "How many?", logitree.Grammar.regex("[1-9][0-9]{1,3} (cats|dogs)"), seed=1))
