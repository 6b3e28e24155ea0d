"""Types of the compiled core. Shapes, units and errors are in the docstrings."""

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from typing import Any, Protocol, TypeAlias, final

import numpy as np
import numpy.typing as npt

__version__: str
__profile__: str

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
    def from_tokens(
        tokens: Iterable[bytes],
        special_ids: Sequence[int] = ...,
        eog_ids: Sequence[int] = ...,
        bos_id: int | None = None,
        name: str = "",
        *,
        kinds: Sequence[str] | None = None,
        adds_prefix_space: bool = False,
        source: str = "tokens",
    ) -> Vocabulary:
        """A vocabulary of ``tokens``, whose ids are their positions.

        ``special_ids`` are control tokens. ``kinds`` gives every token's kind (see ``kind``); without it tokens
        are "normal", and the ``eog_ids`` control tokens. Raises VocabularyError for ids out of range.
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
    def trie(self) -> TokenTrie:
        """The text tokens as a byte trie, built on first use (about 70 ns a token).

        Raises LimitError if a token is longer than 1,023 bytes or the trie needs more than 4,194,303 nodes.
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

# -- trie --

_Automaton: TypeAlias = npt.NDArray[np.uint16] | npt.NDArray[np.uint32] | npt.NDArray[np.int32]
"""``table[state, byte]`` is the next state, or the dead value: shape [states, 256], C-contiguous."""

@final
class TokenTrie:
    """A vocabulary's text tokens as a byte trie (``vocabulary.trie``). Immutable; shared between threads.

    Control, unknown, unused and empty tokens are not in it. ``len`` is the number of nodes, root included.
    """

    def __len__(self) -> int: ...
    def __contains__(self, bytes: bytes, /) -> bool: ...
    def lookup(self, bytes: bytes) -> list[int]:
        """Ids of the tokens that are exactly ``bytes``, ascending."""

    def has_prefix(self, bytes: bytes) -> bool:
        """Whether some token begins with ``bytes``."""

    def with_prefix(self, bytes: bytes) -> list[int]:
        """Ids of the tokens that begin with ``bytes``, in the order of their bytes, then ascending."""

    def longest_match(self, bytes: bytes) -> tuple[int, int] | None:
        """The longest token that ``bytes`` begin with: its lowest id and its length in bytes."""

    def prefixes(self, bytes: bytes) -> list[tuple[int, int]]:
        """All tokens that ``bytes`` begin with, shortest first: (id, length in bytes)."""

    def dump(self, prefix: bytes = ..., depth: int | None = None, max_nodes: int = 200) -> str:
        """The part below ``prefix`` as an indented tree; what is left out is said in the last line."""

    def graphviz(self, prefix: bytes = ..., depth: int | None = None, max_nodes: int = 200) -> str:
        """The same part as a Graphviz digraph."""

    def allowed(
        self, table: _Automaton, start: int = 0, dead: int | None = None, out: _Mask | None = None
    ) -> npt.NDArray[np.int32]:
        """The tokens all of whose bytes the automaton takes from ``start``, as a mask.

        ``dead`` is the value that refuses a byte; without it the largest of uint16 or uint32. ``out``, if
        given, is a mask of one row to write instead of a new one, and is returned.
        Every entry of the table is checked. Raises ConstraintError for a table of another shape or dtype, or
        with an entry that is no state; MaskError for an ``out`` that does not fit.
        """

    def count_visited(self, table: _Automaton, start: int = 0, dead: int | None = None) -> int:
        """Number of nodes whose byte the plain walk tests: a refused one counts, those below it do not."""

    @property
    def token_count(self) -> int:
        """Number of ids in the trie."""

    @property
    def max_depth(self) -> int:
        """Length of the longest token in bytes."""

    @property
    def memory(self) -> int:
        """Bytes of memory that the trie holds."""

# -- mask --

class _DLPack(Protocol):
    def __dlpack__(self) -> Any: ...

_Mask: TypeAlias = npt.NDArray[np.int32] | npt.NDArray[np.uint32] | _DLPack
"""Words [words], or rows [rows, words]; see ``logitree.mask``."""

def mask_new(size: int, rows: int | None = None, *, fill: bool = False) -> npt.NDArray[np.int32]:
    """A mask of ids below ``size`` with none in it, or, with ``fill``, all; with ``rows``, a batch."""

def mask_words(size: int) -> int:
    """Number of 32-bit words of a mask of ``size`` ids."""

def mask_from_ids(size: int, ids: Iterable[int]) -> npt.NDArray[np.int32]:
    """The mask of ``ids``, in any order. Raises MaskError for one that is not below ``size``."""

def mask_ids(mask: _Mask) -> npt.NDArray[np.int32]:
    """The ids in a mask of one row, ascending."""

def mask_count(mask: _Mask) -> Any:
    """How many ids are in the mask: an int, or for a batch an int64 array [rows]."""

def mask_first(mask: _Mask) -> int | None:
    """The lowest id in a mask of one row."""

def mask_contains(mask: _Mask, id: int) -> bool:
    """Whether ``id`` is in a mask of one row; ids past its end are not."""

def mask_insert(mask: _Mask, id: int) -> bool:
    """Puts ``id`` into a mask of one row, in place; says whether it is new. MaskError past the mask's end."""

def mask_remove(mask: _Mask, id: int) -> bool:
    """Takes ``id`` out of a mask of one row, in place; says whether it was there. MaskError past its end."""

def mask_fill(mask: _Mask, size: int, value: bool = True) -> None:
    """Puts every id below ``size`` in, or takes every id out, in place, in every row."""

def mask_and(a: _Mask, b: _Mask, out: Any = None) -> Any:
    """Ids in both, into ``out`` (may be ``a`` or ``b``) or a new array. MaskError if the shapes differ."""

def mask_or(a: _Mask, b: _Mask, out: Any = None) -> Any:
    """Ids in either; as ``and_``."""

def mask_xor(a: _Mask, b: _Mask, out: Any = None) -> Any:
    """Ids in exactly one; as ``and_``."""

def mask_and_not(a: _Mask, b: _Mask, out: Any = None) -> Any:
    """Ids in ``a`` that are not in ``b``; as ``and_``."""

def mask_not(mask: _Mask, size: int, out: Any = None) -> Any:
    """Ids below ``size`` that are not in the mask; as ``and_``."""

def mask_apply(logits: Any, mask: _Mask) -> None:
    """Minus infinity wherever the mask's bit is 0, in place; nothing else is written: NaN of legal ids stays.

    ``logits``: float32, float16, bfloat16, or uint16 (bfloat16 bits), [ids] or [rows, ids]; rows may be part
    of longer ones (``logits[:, :size]``). NumPy arrays, or tensors in this machine's memory (DLPack).
    ``mask``: one row for all, or one for each. Ids past the mask's end are banned.
    Raises LogitsError for another dtype, shape or layout, read-only memory, or a mask that allows an id past
    the end of the logits (that row is not written then); MaskError for a mask of another dtype or shape.
    """
