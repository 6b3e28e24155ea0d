"""Texts that are drawn from a grammar, and mutations of them."""

from __future__ import annotations

import random

import logitree as lt

VOCABULARY = lt.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), b"</s>"], end_tokens=[256])
LETTERS = 'abcxyz 019-<>/="[]{},:\n!é'


def drawn(grammar: lt.Grammar, rnd: random.Random, most: int = 60) -> str:
    """A text of the grammar: random bytes among the allowed ones, and the shortest ending after some of them."""
    matcher = grammar.matcher(VOCABULARY)
    written = bytearray()
    for _ in range(rnd.randrange(most)):
        ids = [] if matcher.is_finished else [token for token in matcher.allowed().ids if token < 256]
        plain = [token for token in ids if chr(token) in LETTERS]
        if not ids or (matcher.is_accepting and rnd.random() < 0.1):
            break
        token = rnd.choice(plain if plain and rnd.random() < 0.95 else ids)
        matcher.accept(token)
        written.append(token)
    return (written + bytes(matcher.shortest_ending())).decode()


def mutated(text: str, rnd: random.Random) -> str:
    """The text with one character added, removed or replaced, or a part of it twice."""
    at = rnd.randrange(len(text) + 1)
    end = min(len(text), at + rnd.randrange(1, 6))
    return rnd.choice(
        [
            text[:at] + rnd.choice(LETTERS) + text[at:],
            text[:at] + text[end:],
            text[:at] + rnd.choice(LETTERS) + text[at + 1 :],
            text[:at] + 2 * text[at:end] + text[end:],
        ]
    )
