"""A tree-decode file as a catalogue, with its statuses and findings."""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Callable, Sequence
from typing import IO, Any

import numpy as np

from .. import _core
from .._errors import error, file_error
from .._progress import OnProgress, telling
from ..catalogue import Catalogue
from ._document import Document, read_document
from ._expand import NO_KEY, TreeBuilder
from ._report import BEYOND, Findings, Report

Source = str | bytes | os.PathLike[str] | IO[str] | IO[bytes]


class RtpTree:
    """RTP-LLM's tree of candidates, made by `load_tree`. Nothing changes it."""

    def __init__(
        self, document: Document, built: TreeBuilder, prefix: Catalogue, report: Report, size: int | None
    ) -> None:
        self.start = document.start
        """The id that statuses begin with; it is never generated."""
        self.end = document.end
        """The token that ends every item."""
        self.sep = document.sep
        """What joins the ids of a key."""
        self.report = report
        """What was seen in the file."""
        self.prefix = prefix
        """The tree with all that can be generated: what leads to the error state has the item number 2**64 - 1, a key
        without a candidate in the vocabulary 2**64 - 2; items are numbered from 0, by length."""
        self.empty = built.empty
        """Whether the end token is allowed at the start."""
        self.walk = prefix.walk(end_token=self.end, vocabulary=size)
        """All that can be generated, what leads to the error state included."""
        self.item_walk = self.walk
        """Items only: for `logitree.beam_search` and `ItemWalk.matcher`."""
        if built.errors or built.barren:
            real = np.ones(built.items, np.bool_)
            self.item_walk = prefix.walk(end_token=self.end, vocabulary=size, allowed=real)
        self.end_weights: dict[int, float] = {}
        """State of `walk` -> weight of the end token there. Processors add it; a search does not."""
        for tokens, weight in built.end_weights:
            state = self.walk.find(tokens)
            if state is not None:
                self.end_weights[state] = weight

    def is_error(self, state: int) -> bool:
        """Whether a state of `walk` is that of a candidate without a key."""
        items = np.asarray(self.walk.items(state) if state >= 0 else [], np.uint64)
        return bool(items.size and int(items[-1]) == NO_KEY)

    def status(self, tokens: Sequence[int] = ()) -> str:
        """The key that these tokens spell, whether it is one or not."""
        return self.sep.join(str(token) for token in [self.start, *tokens])

    def state(self, status: str) -> int:
        """The state of `walk` after a status.

        Raises:
            ConstraintError: no path has it.
        """
        if status == str(self.start):
            return self.walk.start
        parts = status.split(self.sep) if self.sep and not any(c.isdigit() for c in self.sep) else []
        tokens = [int(part) for part in parts[1:] if part.isascii() and part.isdigit() and len(part) <= 10]
        state = self.walk.find(tokens) if max(tokens, default=2**31) < 2**31 else None
        if state is None or self.status(tokens) != status or self.is_error(state):
            raise error(_core.ConstraintError, f"no path has the status {status[:80]!r}", help="give a key of the file")
        return state

    def check_prompt(self, tokens: Sequence[int]) -> None:
        """Whether a prompt ends with the tree's root, the id that every key begins with: what follows is then an item.

        Raises:
            ConstraintError: it does not.
        """
        if not len(tokens) or int(tokens[-1]) != self.start:
            last = f"ends with token {int(tokens[-1])}" if len(tokens) else "is empty"
            message = f"the prompt {last}, and the tree begins after token {self.start}"
            raise error(_core.ConstraintError, message, help="end the prompt with start_token_id")

    def __repr__(self) -> str:
        return f"RtpTree({self.report.items} items, start {self.start}, end {self.end})"


def load_tree(
    source: Source,
    *,
    vocabulary_size: int | None = None,
    index: str | os.PathLike[str] | None = None,
    on_progress: OnProgress | None = None,
) -> RtpTree:
    """Reads RTP-LLM's tree-decode JSON, as a stream.

    Fields: `start_token_id` (225), `end_token_id` (2), `sep` ("_") and `prefix_dict`, {key: [token id]}, or
    `prefix_weight_dict`, {key: ["id:weight"]}, instead of it; `weight_dict`, {key of the child: weight}. Others are
    skipped. The text is never held as a whole; keys and candidates are, until the tree is built.

    Args:
        source: a path; the text itself (a str that begins with a brace or bracket, or bytes of UTF-8); or an open file.
        vocabulary_size: number of token ids; candidates beyond it are left out and reported. None: just enough.
        index: where to write the catalogue's index file; None: it is kept in memory.
        on_progress: as of `Catalogue.from_codes`; the first half is reading (of a file whose size is known).

    Raises:
        PayloadError: it is no JSON, or no tree-decode file. `place` is a JSON pointer, with line and column.
        ConstraintError: the end token is outside the vocabulary, or so many candidates are that no item is left.
        LimitError: a path of more than 4,096 tokens; candidates without keys that make too long paths together.
        FileError: the file cannot be read, or the index not be written.
    """
    with telling("reading the tree", on_progress) as tell:
        return _load(source, vocabulary_size, index, tell)


def _load(
    source: Source, vocabulary_size: int | None, index: str | os.PathLike[str] | None, tell: OnProgress
) -> RtpTree:
    """As `load_tree`."""
    findings = Findings()
    opened, close = _open(source)
    try:
        document = read_document(_characters(opened, lambda read: tell(read / 2)), findings)
    except OSError as reason:
        if isinstance(reason, _core.LogitreeError):
            raise
        raise file_error(reason, "the file cannot be read", place=str(source)[:200]) from reason
    finally:
        if close:
            opened.close()
    builder = TreeBuilder(document, findings, vocabulary_size, index)
    prefix, report = builder.build(lambda written: tell(0.5 + written / 2))
    beyond = report.count(BEYOND)
    if beyond and not report.items and not report.errors:
        raise error(
            _core.ConstraintError,
            f"no item is left: {beyond} candidates lie outside the vocabulary of {vocabulary_size} tokens",
            help="load a tree of this model's vocabulary",
        )
    return RtpTree(document, builder, prefix, report, vocabulary_size)


def _open(source: Source) -> tuple[IO[Any], bool]:
    """A file of characters or bytes, and whether it is ours to close."""
    if isinstance(source, bytes):
        return io.BytesIO(source), True
    if isinstance(source, str) and source.lstrip()[:1] in ("{", "["):
        return io.StringIO(source), True
    if isinstance(source, (str, os.PathLike)):
        try:
            return open(source, "rb"), True
        except OSError as reason:
            raise file_error(reason, "the file cannot be opened", place=str(source)[:200]) from reason
    if not hasattr(source, "read"):
        raise TypeError(f"a path, JSON text or an open file is needed, not {type(source).__name__}")
    return source, False


def _characters(opened: IO[Any], tell: OnProgress) -> Callable[[int], str]:
    """Reads characters; bytes must be UTF-8. Tells how much of a file was read."""
    whole = _size(opened)
    decoder = codecs.getincrementaldecoder("utf-8")()
    read_bytes = 0

    def read(size: int) -> str:
        nonlocal read_bytes
        while True:
            part = opened.read(size)
            if isinstance(part, str):
                return part
            try:
                text = decoder.decode(part, final=not part)
            except UnicodeDecodeError as reason:
                place = f"byte {read_bytes + reason.start - len(decoder.getstate()[0])}"
                raise error(_core.PayloadError, "the text is no UTF-8", place=place) from reason
            read_bytes += len(part)
            if whole:
                tell(min(1.0, read_bytes / whole))
            if text or not part:
                return text

    return read


def _size(opened: IO[Any]) -> int:
    """The bytes of an open file; 0 where it does not say."""
    try:
        return os.fstat(opened.fileno()).st_size
    except (AttributeError, OSError, ValueError):
        return 0
