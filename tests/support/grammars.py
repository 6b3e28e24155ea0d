"""Vocabularies and texts that the tests of grammars share. It knows no grammar."""

from __future__ import annotations

import random
from collections.abc import Iterator

import logitree as lt

END = 256
WORDS = (b"ab", b"abc", b"12", b"123", b'{"', b'":', b'": "', b'", "', b'"}', b"true", b"null", b"  ", b"\n ", b"<b")


def small() -> lt.Vocabulary:
    """Every byte by its value, an end token, some longer tokens, and a control token of the text <think>."""
    tokens = [*(bytes([byte]) for byte in range(256)), b"</s>", *WORDS, b"<think>"]
    kinds = ["normal"] * 256 + ["control"] + ["normal"] * len(WORDS) + ["control"]
    return lt.Vocabulary.from_tokens(tokens, end_tokens=[END], kinds=kinds)


def tokens_of(vocabulary: lt.Vocabulary, text: str | bytes) -> list[int]:
    """The longest token first, again and again."""
    rest = text.encode() if isinstance(text, str) else text
    tokens = []
    while rest:
        found = vocabulary.trie.longest_match(rest)
        assert found is not None, rest
        tokens.append(found[0])
        rest = rest[found[1] :]
    return tokens


def walk(matcher: lt.Matcher, seed: int, steps: int = 40) -> Iterator[tuple[list[int], int]]:
    """Allowed ids and the one that is taken, again and again, until the matcher is over."""
    draw = random.Random(seed)
    for _ in range(steps):
        allowed = matcher.allowed()
        if allowed.is_all:
            return
        token = draw.choice(list(allowed))
        yield list(allowed), token
        matcher.accept(token)
