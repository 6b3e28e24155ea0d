"""Types of the compiled core. Shapes, units and errors are in the docstrings."""

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from typing import Any, final

__version__: str

# -- errors --

class LogitreeError(Exception):
    """Any error of logitree."""

    place: str
    """Where: a byte offset and field, a JSON pointer, a row and an id; empty where there is no place."""
    help: str
    """The way out; empty where there is none."""

class VocabularyError(LogitreeError, ValueError): ...
class PayloadError(LogitreeError, ValueError): ...
class ConstraintError(LogitreeError, ValueError): ...
class MaskError(LogitreeError, ValueError): ...
class LogitsError(LogitreeError, ValueError): ...
class SamplingError(LogitreeError, ValueError): ...
class TokenError(LogitreeError, ValueError): ...
class StateError(LogitreeError, RuntimeError): ...
class LimitError(LogitreeError, ValueError): ...
class FileError(LogitreeError, OSError): ...

# -- vocabulary --

@final
class Vocabulary:
    """Bytes of every token, what each is for, and which end a generation. Immutable; shared between threads.

    Equal, and of equal hash, where the fingerprints are. Pickles by value.

    The leading space: where ``adds_prefix_space``, the tokenizer puts one space in front of a text, and its
    detokeniser takes one leading space off a whole text. The tokens' bytes keep that space.

    Padding: logits may be longer than the vocabulary; ids past its end stand for nothing and are never legal.
    """

    @staticmethod
    def from_gguf(path: str | PathLike[str]) -> Vocabulary:
        """The vocabulary of a GGUF file, a whole model or vocabulary-only.

        Raises FileError if it cannot be read; VocabularyError, naming field and byte offset, if it is malformed.
        """

    @staticmethod
    def from_tokenizer_json(source: str | bytes | PathLike[str]) -> Vocabulary:
        """The vocabulary of a Hugging Face tokenizer.json: its path, or its text as bytes or as a str in braces.

        BPE and Unigram models, byte-level or SentencePiece style; a decoder whose output for one piece depends
        on its neighbours (WordPiece) is a VocabularyError. Ends of generation are the added tokens with
        well-known texts, as the file does not name them: see ``replace``.
        """

    @staticmethod
    def from_transformers(tokenizer: Any, generation_config: Any = None) -> Vocabulary:
        """The vocabulary of a transformers tokenizer, fast or slow.

        End-of-generation ids: the tokenizer's eos, the generation config's where one is given, and the
        well-known markers. Raises VocabularyError for a tokenizer that cannot be read.
        """

    @staticmethod
    def from_tiktoken(encoding: Any) -> Vocabulary:
        """The vocabulary of a tiktoken Encoding; ids that it leaves out are unused."""

    @staticmethod
    def from_sentencepiece(source: str | bytes | PathLike[str] | Any) -> Vocabulary:
        """The vocabulary of a SentencePiece model: its path, its content, or a SentencePieceProcessor."""

    @staticmethod
    def from_tekken(source: str | bytes | PathLike[str]) -> Vocabulary:
        """The vocabulary of a Mistral tekken JSON file: its path, or its content as bytes."""

    @staticmethod
    def from_llama(llm: Any) -> Vocabulary:
        """The vocabulary of a llama_cpp.Llama."""

    @staticmethod
    def from_tokens(
        tokens: Iterable[bytes],
        special_ids: Sequence[int] = ...,
        eog_ids: Sequence[int] = ...,
        bos_id: int | None = None,
        name: str = ...,
        *,
        kinds: Sequence[str] | None = None,
        adds_prefix_space: bool = False,
        source: str = ...,
        find_markers: bool = False,
    ) -> Vocabulary:
        """A vocabulary of ``tokens``, whose ids are their positions; ``source`` is "tokens" unless given.

        ``special_ids`` are control tokens. ``kinds`` gives every token's kind (see ``kind``); without it tokens
        are "normal", and the ``eog_ids`` control tokens. ``find_markers`` gives control and user-defined tokens
        with well-known texts ("<|im_end|>", "<s>", ...) the roles that they have in a GGUF file. Raises
        VocabularyError for ids out of range.
        """

    @staticmethod
    def _from_parts(
        bytes: bytes, lengths: bytes, kinds: bytes, about: tuple[str, str, int | None, list[int], bool]
    ) -> Vocabulary: ...
    def replace(
        self, *, eog_ids: Sequence[int] | None = None, bos_id: int | None = None, name: str | None = None
    ) -> Vocabulary:
        """The same tokens with other end-of-generation ids, bos id or name; ``None`` keeps what there is."""

    def __len__(self) -> int: ...
    def __getitem__(self, id: int, /) -> bytes: ...
    def __iter__(self) -> Iterator[bytes]: ...
    def __contains__(self, bytes: bytes, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def token_bytes(self, id: int) -> bytes:
        """The bytes that token ``id`` stands for; a special marker's name for one that is not text.

        Raises TokenError for an id that is not in the vocabulary.
        """

    def kind(self, id: int) -> str:
        """What token ``id`` is for: "normal", "byte", "user_defined" (text), "control", "unknown", "unused"."""

    def find(self, bytes: bytes) -> list[int]:
        """Ids of the tokens of any kind whose bytes are exactly ``bytes``, ascending."""

    def search(self, part: bytes | str, limit: int | None = None) -> list[int]:
        """Ids of the tokens of any kind whose bytes contain ``part``, ascending, at most ``limit``."""

    def decode(self, ids: Sequence[int], skip_special: bool = True) -> bytes:
        """The concatenated bytes of ``ids``; with ``skip_special`` those of text tokens only.

        Nothing is added or taken off (see the leading space, above). Raises TokenError for unknown ids.
        """

    @property
    def special_ids(self) -> list[int]:
        """Ids of the tokens that are not text (control, unknown, unused), ascending."""

    @property
    def eog_ids(self) -> list[int]:
        """End-of-generation ids, ascending."""

    @property
    def bos_id(self) -> int | None:
        """Beginning-of-sequence id, if there is one."""

    @property
    def fingerprint(self) -> str:
        """32 hex digits, equal for equal tokens, kinds and end ids, whatever they were read from."""

    @property
    def name(self) -> str:
        """The model's or tokenizer's own name; empty where the source has none."""

    @property
    def source(self) -> str:
        """What it was read from: "gguf", "tokenizer.json", "tekken", "sentencepiece", "tokens", ... ."""

    @property
    def adds_prefix_space(self) -> bool:
        """Whether the tokenizer puts one space in front of a text, which its detokeniser takes off again."""
