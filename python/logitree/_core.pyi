"""Types of the compiled core. Shapes, units and errors are in the docstrings."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from typing import Any

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

# -- constraint --

class Matcher:
    """A constraint running for one sequence: what may come next, given what was accepted.

    Not for two threads at once; ``fork`` gives each its own.
    """

    def mask(self) -> npt.NDArray[np.int32]:
        """The legal set as a new int32 array of ``ceil(vocabulary_size / 32)`` words.

        Bit ``id % 32`` of word ``id // 32``, least significant first.
        """

    def fill_mask(self, out: npt.NDArray[np.int32]) -> None:
        """Writes the legal set over ``out`` (int32, contiguous, at least as long as ``mask()``).

        Words past the vocabulary are 0, or all ones where nothing is masked. Raises MaskError otherwise.
        """

    def legal(self) -> list[int] | None:
        """The legal ids, ascending; None where nothing is masked (the constraint is over)."""

    def is_legal(self, token: int) -> bool:
        """Whether ``token`` is legal here."""

    def accept(self, token: int) -> None:
        """Takes one token. Raises TokenError, and changes nothing, if it is not legal here."""

    def rollback(self, n: int = 1) -> None:
        """Forgets the last ``n`` tokens. Raises StateError, and changes nothing, if fewer were accepted."""

    def fork(self) -> Matcher:
        """An independent copy in the same state."""

    def __copy__(self) -> Matcher: ...
    def __deepcopy__(self, memo: object, /) -> Matcher: ...
    def reset(self) -> None:
        """Back to the state it was born with."""

    def forced_tokens(self) -> list[int]:
        """The tokens that are the only way on from here, as far as there is one. Changes nothing."""

    @property
    def is_accepting(self) -> bool:
        """Whether what was accepted is complete (more may still be legal)."""

    @property
    def is_finished(self) -> bool:
        """Whether the constraint is over: complete, with nothing more to say. It then masks nothing."""

    @property
    def accepted(self) -> int:
        """Number of tokens accepted."""

    @property
    def vocabulary_size(self) -> int:
        """Number of token ids that masks cover."""

class TokenTree:
    """A compiled token-tree payload: the values' token lists, by path. Immutable; shared between threads."""

    @staticmethod
    def from_binary(data: bytes, vocabulary: Vocabulary | None = None) -> TokenTree:
        """Reads the binary form of one descriptor; leaf names are not part of it.

        Raises PayloadError, naming the byte offset, for anything malformed.
        """

    def to_binary(self, path: str | None = None) -> bytes:
        """The binary form of the descriptor at ``path`` (which may be left out where there is one)."""

    @property
    def paths(self) -> list[str]:
        """The paths of the descriptors, in the payload's order."""

    @property
    def model_id(self) -> str | None:
        """The model id that the payload carried."""

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The vocabulary it was held against."""

    @property
    def warnings(self) -> list[str]:
        """What did not fit, where told to warn."""

    def matcher(
        self,
        path: str,
        end_tokens: Sequence[int] | None = None,
        following: str | bytes | None = None,
        vocabulary: Vocabulary | None = None,
    ) -> Matcher:
        """A matcher for the span at ``path``.

        Without ``following`` the token lists are the only ways to write a value. With it (and a vocabulary),
        any tokens whose bytes are a value and then the following text will do. ``end_tokens`` end a value
        that is the beginning of another; the default is the vocabulary's end-of-generation ids.

        Raises ConstraintError for an unknown path, a path without leaves, and a value that nothing ends.
        """

    def leaves(self, path: str | None = None) -> list[tuple[str | None, list[int]]]:
        """Each leaf's name (None where the binary form lost it) and token list, in the order of the lists."""

    def look(self, path: str, tokens: Sequence[int]) -> dict[str, Any] | None:
        """What stands after ``tokens``, or None if they lead nowhere.

        children (ids, ascending), terminal (a value is complete), leaf_end (and none goes on), name.
        """

    def info(self, path: str | None = None) -> dict[str, Any]:
        """path, leaves, nodes, depth, inner_leaves (others go on from them), widest (children), bytes."""

    def dump(self, path: str | None = None, *, max_lines: int = 200) -> str:
        """The tree drawn in text."""

    def __contains__(self, path: str, /) -> bool: ...

class Choices:
    """Texts of which one is to be generated, bound to a vocabulary. Immutable; shared between threads."""

    def matcher(self) -> Matcher:
        """A matcher at the beginning of a choice."""

    @property
    def texts(self) -> list[str | bytes]:
        """The texts as they were given."""

    @property
    def tokenizations(self) -> str:
        """Which tokenisations are legal: "all" or "canonical"."""

    def __len__(self) -> int:
        """Number of distinct texts."""

class TokenTreeCache:
    """The process-wide cache of compiled token trees: 128 entries, least recently used out first.

    Entries whose tree is in use stay. With all 128 in use, a new tree is built and handed out but not kept.
    """

    def info(self) -> dict[str, int]:
        """capacity, entries, hits, misses, bypassed (built, not kept), evicted."""

    def entries(self) -> list[dict[str, Any]]:
        """One dict an entry, latest use first: digest, model_id, paths, nodes, bytes, hits, in_use."""

    def clear(self) -> None:
        """Forgets every entry; trees in use live on with their holders."""

    def __len__(self) -> int: ...

token_tree_cache: TokenTreeCache

def token_tree(
    payload: str | bytes | bytearray | dict[str, Any],
    vocabulary: Vocabulary | None = None,
    *,
    on_mismatch: str = "error",
    model_id: str | None = None,
) -> TokenTree:
    """Compiles a token-tree payload ``{modelId, descriptors: [{path, leaves: [{name, tokens}]}]}``.

    With a ``vocabulary``, ids must be in range and each leaf's tokens must spell its name (with or without
    one leading space, bare or as a JSON string); with a ``model_id``, the payload's must be that, if any.
    ``on_mismatch="warn"`` makes warnings of these; a leaf with ids out of range is then left out.
    Compiled trees are kept in ``token_tree_cache``.

    Raises PayloadError, saying where by JSON pointer, line and column; LimitError past 2^28 tokens.
    """

def choices(
    texts: Iterable[str | bytes],
    vocabulary: Vocabulary,
    *,
    following: str | bytes | None = None,
    end_tokens: Sequence[int] | None = None,
    tokenizations: str = "all",
    tokenize: Callable[[str], Sequence[int]] | None = None,
) -> Choices:
    """One of several texts, in any tokens that spell it; repeated texts count once.

    ``following`` is text that comes after every choice: one token may hold the end of a choice and the
    beginning of what follows, but not go past its end. ``end_tokens`` end a choice that is the beginning of
    another; the default is the vocabulary's end-of-generation ids. ``tokenizations="canonical"`` allows only
    what ``tokenize(text + following)`` gives.

    Raises ConstraintError if there are no choices, one cannot be spelled, or nothing ends one that is the
    beginning of another; LimitError past 16 MiB of text.
    """

def prefill_plan(
    skeleton: str | bytes | dict[str, Any],
    tokenize: Callable[[str], Sequence[int]] | None = None,
) -> dict[str, Any] | None:
    """What of a response can be written without sampling; None if there is nothing.

    ``skeleton`` is ``{spans: [{kind, key?, value?, enumValues?, rule?}], id?}`` with the kinds literal, enum,
    number, boolean, free-string and free-json. The plan is ``{prefix, runs, free_count, id}``; a run is
    ``{after_free_span, text, token_ids}``, after_free_span -1 at the very beginning, token_ids only with
    ``tokenize``. Enum values are JSON values: with quotes, unless the text before them opened a string.

    Raises PayloadError, with line and column, for any other skeleton.
    """

def span_sampler_plan(skeleton: str | bytes | dict[str, Any]) -> dict[str, Any]:
    """``{overrides: [{span_index, temperature, top_k}]}``, for the spans that take the likeliest token.

    These are enums of several values, numbers and booleans.
    """
