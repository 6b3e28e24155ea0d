"""A vocabulary of the usual size with its tokenizer, made from the words of the sources."""

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import logitree as lt

ROOT = Path(__file__).resolve().parents[2]
PIECES = re.compile(r" ?[^\W\d_]+|\d{1,3}|[ \t]*[^\s\w]+|\s+")
SIZE = 90_000
"""Fewer than the sources give."""
SCRIPTS = ((0x80, 0x600), (0x900, 0xA00), (0x3040, 0x3100), (0x4E00, 0x6E00), (0xAC00, 0xB800), (0x1F300, 0x1F500))
"""Ranges of characters that are each a token."""
CONTROL = ("<|begin|>", "<|end|>", "<|turn|>")


@dataclass(frozen=True)
class Model:
    """What a model's files say of its tokens."""

    vocabulary: lt.Vocabulary
    tokenizer: lt.Tokenizer

    @classmethod
    def made(cls, size: int = SIZE) -> "Model":
        """At most `size` tokens from the sources' words, read from a tokenizer.json."""
        tokens = _tokens(size)
        file = json.dumps(_tokenizer_json(tokens)).encode()
        vocabulary = lt.Vocabulary.from_tokenizer_json(file)
        tokenizer = lt.Tokenizer.from_tokenizer_json(file)
        return cls(vocabulary.replace(end_tokens=[len(tokens) + CONTROL.index("<|end|>")]), tokenizer)


def _words() -> Counter[str]:
    """How often each piece occurs in the sources."""
    found: Counter[str] = Counter()
    for pattern in ("crates/logitree*/src/**/*.rs", "python/**/*.py"):
        for path in sorted(ROOT.glob(pattern)):
            found.update(PIECES.findall(path.read_text(encoding="utf-8")))
    return found


def _tokens(size: int) -> list[bytes]:
    """Single bytes, then pieces, each after the piece that it continues by one byte."""
    tokens = {bytes([byte]): None for byte in range(256)}
    characters = [chr(code) for begin, end in SCRIPTS for code in range(begin, end)]
    words = [word for word, _ in _words().most_common() if len(word) <= 24]
    for text in [*words, *characters, *(word.title() for word in words), *(word.upper() for word in words)]:
        piece = text.encode()
        for length in range(2, len(piece) + 1):
            if len(tokens) == size:
                return list(tokens)
            tokens.setdefault(piece[:length])
    return list(tokens)


def _tokenizer_json(tokens: list[bytes]) -> dict[str, object]:
    letters = _letters()
    spelled = ["".join(letters[byte] for byte in token) for token in tokens]
    return {
        "added_tokens": [
            {"id": len(tokens) + n, "content": name, "special": True, "normalized": False}
            for n, name in enumerate(CONTROL)
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True, "trim_offsets": True},
        "decoder": {"type": "ByteLevel"},
        "model": {
            "type": "BPE",
            "ignore_merges": False,
            "vocab": {text: id for id, text in enumerate(spelled)},
            "merges": [[text[:-1], text[-1]] for text in spelled[256:]],
        },
    }


def _letters() -> list[str]:
    """The characters that spell bytes in the files of byte-level tokenizers (GPT-2's table)."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]
