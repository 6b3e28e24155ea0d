"""The model's own tokens of text that is certain, beside the tokens that come before it.

Knows nothing of constraints: what is certain is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from . import _core
from ._constraint import Tokenize
from ._kinds import TEXT_KINDS

_BEFORE = 4
"""Tokens before a text that the tokenizer sees with it: where a word or a number begins depends on them."""

_ANCHOR = "\n"
"""Where a tokenizer adds a space to the beginning of a text, the text is given to it after this."""


class Speller:
    """Cuts text that is certain into the tokens that the model's own tokenizer would give."""

    def __init__(self, vocabulary: _core.Vocabulary, tokenize: Tokenize) -> None:
        self.vocabulary = vocabulary
        self._tokenize = tokenize

    def spell(self, held: Sequence[int], movable: int, text: bytes) -> tuple[int, list[int]]:
        """The tokens of a text that comes after others.

        Args:
            held: the tokens before it, oldest first.
            movable: how many of the last ones may be replaced.
            text: what comes next; a character that is cut off at its end is left out.

        Returns:
            How many of the last held tokens are replaced, because a token of the tokenizer crosses their end, and the
            tokens of what these spelled and of the text. No tokens: there is no text, or the tokenizer does not give it
            back.
        """
        text = text[: _whole(text)]
        if not text:
            return 0, []
        before = self._before(held, movable)
        joined = b"".join(before)
        made = self.tokens(joined + text)
        if made is not None:
            ends = [0, *accumulate(len(self.vocabulary[token]) for token in made)]
            at = len(joined)
            for back in range(min(movable, len(before)) + 1):
                if at in ends:
                    return back, made[ends.index(at) :]
                if back < len(before):
                    at -= len(before[-1 - back])
        return 0, self.tokens(text) or []

    def _before(self, held: Sequence[int], movable: int) -> list[bytes]:
        """The bytes of the last tokens, from the beginning of a character on; none of them special."""
        vocabulary = self.vocabulary
        pieces: list[bytes] = []
        for token in reversed(held[-movable - _BEFORE :]):
            if vocabulary.kind(token) not in TEXT_KINDS:
                break
            pieces.append(vocabulary[token])
        pieces.reverse()
        while pieces and not (pieces[0] and _begins(pieces[0][0])):
            del pieces[0]
        return pieces

    def tokens(self, data: bytes) -> list[int] | None:
        """The tokenizer's tokens of bytes, which they spell exactly; None where it gives none such."""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return None
        for anchor in ("", _ANCHOR):
            made = list(self._tokenize(anchor + text))
            first, left = len(made), len(data)
            while first and left > 0:
                first -= 1
                left -= len(self.vocabulary[made[first]])
            if (anchor or not first) and b"".join(self.vocabulary[token] for token in made[first:]) == data:
                return made[first:]
        return None


def _whole(text: bytes) -> int:
    """How many of the bytes are whole characters, as far as they are UTF-8."""
    for back in range(1, min(4, len(text)) + 1):
        byte = text[-back]
        if _begins(byte):
            length = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(text) if back >= length else len(text) - back
    return len(text)


def _begins(byte: int) -> bool:
    """Whether a character of UTF-8 may begin with this byte."""
    return byte & 0xC0 != 0x80
