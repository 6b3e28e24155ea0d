"""Which markers of a protocol are tokens of a vocabulary, and text in which each such token is one character.

Text from UTF-8 has no surrogates, so the surrogates U+D800 to U+DFFF represent tokens: `<tool_call>` the token is one
character, and `<tool_call>` spelled by other tokens is eleven.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .._core import Vocabulary
from .._kinds import TEXT_KINDS
from ._protocol import Block, Protocol

FIRST, LAST = 0xD800, 0xDFFF
TOKEN_CHARACTERS = f"{chr(FIRST)}-{chr(LAST)}"
"""For a class of a regular expression."""

ANY_TOKEN = re.compile(f"[{TOKEN_CHARACTERS}]")


class Marks:
    """The markers of a protocol in a vocabulary; without one they are all text."""

    def __init__(self, protocol: Protocol, vocabulary: Vocabulary | None) -> None:
        self.protocol, self.vocabulary = protocol.of_vocabulary(vocabulary), vocabulary
        protocol = self.protocol
        self.ids: dict[str, int] = {}
        """The token of each marker that is one; a control token before an added token."""
        self.ends: str = ""
        """The characters of the tokens that end a generation, without those that are markers of their own."""
        self._characters: dict[int, str] = {}
        self._names: dict[str, str] = {}
        self._shown: set[str] = set()
        self._bound: re.Pattern[str] | None = None
        if vocabulary is None:
            return
        for marker in (*protocol.markers, *protocol.turn_end):
            found = [
                id for id in vocabulary.find(marker.encode()) if vocabulary.kind(id) in ("control", "user_defined")
            ]
            if not found or marker in self.ids:
                continue
            found.sort(key=lambda id: vocabulary.kind(id) != "control")
            self.ids[marker] = found[0]
            character = self._new(found[0], marker)
            if marker in protocol.markers or vocabulary.kind(found[0]) in TEXT_KINDS:
                self._shown.add(character)
            self._characters.update(dict.fromkeys(found, character))
        ends = [id for id in vocabulary.end_tokens if id not in self._characters]
        self.ends = "".join(self._new(id, _name(vocabulary, id)) for id in ends)
        pattern = "|".join(re.escape(marker) for marker in sorted(self.ids, key=len, reverse=True))
        self._bound = re.compile(pattern) if pattern else None

    def _new(self, id: int, name: str) -> str:
        character = chr(FIRST + min(len(self._names), LAST - FIRST))
        self._characters[id] = character
        self._names[character] = name
        return character

    def bound(self, text: str) -> str:
        """The text with each marker that is a token as one character."""
        if self.vocabulary is None or self._bound is None:
            return text
        return self._bound.sub(lambda found: self._characters[self.ids[found[0]]], text)

    def token(self, character: str) -> int | None:
        """The token that a character represents; None for text."""
        name = self._names.get(character)
        return None if name is None else self.ids.get(name)

    def is_hard(self, text: str) -> bool:
        """Whether a bound text is one token that is no text or ends a generation."""
        if self.vocabulary is None or not ANY_TOKEN.fullmatch(text):
            return False
        ids = [id for id, character in self._characters.items() if character == text]
        ends = self.vocabulary.end_tokens
        return any(id in ends or self.vocabulary.kind(id) not in TEXT_KINDS for id in ids)

    def of(self, id: int) -> str | bytes:
        """A token as its character, or as bytes of text."""
        character = self._characters.get(id)
        if character is not None:
            return character
        assert self.vocabulary is not None
        if self.vocabulary.kind(id) in TEXT_KINDS:
            return bytes(self.vocabulary[id])
        return self._new(id, _name(self.vocabulary, id))

    def raw(self, text: str) -> str:
        """The text with the names of all tokens."""
        return ANY_TOKEN.sub(lambda found: self._names.get(found[0], ""), text)

    def shown(self, text: str) -> str:
        """The text with the markers; control tokens that are no markers are no text."""
        if text.isascii():  # as most pieces are: no token's character is
            return text
        return ANY_TOKEN.sub(lambda found: self._names[found[0]] if found[0] in self._shown else "", text)

    def begun(self, prompt: Sequence[int]) -> Block | None:
        """The block of reasoning or content with whose beginning a prompt ends, white space after it aside."""
        reasoning = self.protocol.reasoning.ways if self.protocol.reasoning is not None else ()
        # Of two with the same beginning the answer's.
        ways = {self.bound(way.begin).strip(): way for way in (*reasoning, *reversed(self.protocol.content))}
        if not ways or self.vocabulary is None:
            return None
        longest = max(map(len, ways))
        tail, text = "", b""
        for id in reversed(prompt):
            piece = self.of(id)
            if isinstance(piece, str):
                tail, text = piece + text.decode("utf-8", "replace") + tail, b""
            else:
                text = piece + text
            whole = (text.decode("utf-8", "replace") + tail).rstrip()
            if len(whole) > longest:
                break
        whole = (text.decode("utf-8", "replace") + tail).rstrip()
        return next((way for begin, way in ways.items() if whole.endswith(begin)), None)


def _name(vocabulary: Vocabulary, id: int) -> str:
    return bytes(vocabulary[id]).decode("utf-8", "replace")
