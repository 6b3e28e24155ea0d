"""Traces of every kind without a model: tokens in many scripts, markup, parts of characters, forced tokens, spans."""

from __future__ import annotations

import numpy as np

import logitree as lt

WORDS = (" the", " of", " lighthouse", ". And", "\n\n", " مرحبا", "שלום", " 世界", "😀", "</script>", "<!--", '"', "'")
WORDS += ("&amp;", "\u202e", "\u200b", "\x00", "\t", "\\u003c", "{{data}}", "]]>", "\u2028", " caf\u00e9")


def vocabulary() -> lt.Vocabulary:
    """The bytes, the words, a control token that looks like markup, and an end."""
    tokens = [bytes([byte]) for byte in range(256)] + [word.encode() for word in WORDS] + [b"<img src=x>", b"</s>"]
    n = len(tokens)
    return lt.Vocabulary.from_tokens(tokens, special_ids=[n - 2], end_tokens=[n - 1], name="<b>Test & 'words'</b>")


def decoded(n: int, seed: int = 0) -> lt.Decoder:
    """A decoder after `n` sampled tokens; most are words."""
    vocab = vocabulary()
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2, (64, len(vocab))).astype(np.float32)
    logits[:, :256] -= 5
    logits[:, -1] = -60
    decoder = lt.Decoder(vocab, lt.Chain.llama_cpp(seed=seed, temperature=0.9), None, trace=True)
    for at in range(n):
        decoder.step(logits[at % 64])
    return decoder


def constrained() -> tuple[lt.Decoder, np.ndarray]:
    """A decoder whose constraint allows two tokens, then forces one; and the logits of its first step."""
    vocab = vocabulary()
    logits = np.random.default_rng(1).normal(0, 3, len(vocab)).astype(np.float32)
    choice = lt.OneOf(["Qz", "Wz"])
    decoder = lt.Decoder(vocab, lt.Chain.llama_cpp(seed=1, temperature=0.7), choice, trace=True)
    decoder.step(logits)
    decoder.take_forced()
    return decoder, logits
