"""Catalogues: large sets of items. Each is a sequence of tokens, and only items that exist may be generated."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .. import _core
from .._constraint import bind, constraint_of
from .._errors import error
from .._progress import OnProgress, telling
from . import _tables
from ._arrays import Codes, Items, Weights, has_keys, rows_of

Tokenize = Callable[[str], Sequence[int]]
"""A model's own tokenisation of a text, without special tokens."""


class Tokenizer(Protocol):
    """An engine, or anything else with its tokenisation."""

    def tokenize(self, text: str, /) -> Sequence[int]:
        """The token ids of a text, without special tokens."""
        ...


class CatalogueBuilder:
    """Takes items in portions and writes an index: for more items than fit in memory."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        weighted: bool = False,
        keyed: bool = False,
        memory: int | None = None,
    ) -> None:
        """Starts an empty index.

        Args:
            path: where to write the index; None keeps it in memory.
            weighted: whether tokens have weights.
            keyed: whether items have keys, which are texts, instead of numbers.
            memory: bytes for unsorted items, 3 GiB by default; more is sorted on disk, beside `path`.
        """
        self._path = None if path is None else os.fspath(path)
        folder = None if self._path is None else os.path.dirname(self._path) or "."
        self._core = _core.CatalogueIndexBuilder(weighted=weighted, keyed=keyed, memory=memory, folder=folder)

    def add(self, codes: Codes, *, items: Items | None = None, weights: Weights | None = None) -> None:
        """Takes items. Without `items` their numbers continue from the largest so far.

        Raises:
            ConstraintError, LimitError: as `Catalogue.from_codes`. Items before the wrong one may have been taken.
        """
        for rows in rows_of(codes, items, weights):
            self._core.push(rows.tokens, rows.numbers, ends=rows.ends, weights=rows.weights, keys=rows.keys)

    def finish(self, on_progress: OnProgress | None = None) -> Catalogue:
        """Writes the index and opens it; `on_progress` as of `Catalogue.from_codes`.

        Raises:
            ConstraintError: a token has two weights in one place.
            FileError: the index cannot be written.
            StateError: it is already written.
        """
        with telling("writing the index", on_progress) as tell:
            index, repeated = self._core.finish(self._path, tell)
        return Catalogue(index, repeated)

    def __len__(self) -> int:
        """Items so far."""
        return len(self._core)


class Catalogue(_core.Constraint):
    """A large set of items. Each is a sequence of tokens, and only items that exist may be generated.

    ```python
    catalogue = logitree.Catalogue.from_texts(titles, engine, items=skus)
    logitree.generate(engine, prompt, catalogue).value  # a key of `skus`
    ```

    Many threads may read it while one adds and removes: `walk` and `matcher` see the catalogue of the moment when they
    are made, and later changes do not affect them.
    """

    def __init__(self, index: _core.CatalogueIndex, repeated: int = 0) -> None:
        self._core = index
        self.repeated = repeated
        """How many items were given more than once with the same number, when the index was built."""

    # -- making one

    @classmethod
    def from_codes(
        cls,
        codes: Codes,
        *,
        items: Items | None = None,
        weights: Weights | None = None,
        path: str | os.PathLike[str] | None = None,
        memory: int | None = None,
        on_progress: OnProgress | None = None,
    ) -> Catalogue:
        """A catalogue of items that are given as tokens.

        Args:
            codes: the items' tokens: an integer array [N, L], or N sequences of 1 to 4,096 tokens with ids below 2**31.
                Sequences may repeat, and one may be the beginning of another.
            items: a number below 2**64 or a key (a text of at most 4,096 bytes) for each item, which is what searches
                return; by default 0, 1, 2, ... Numbers may repeat: the same tokens with the same number are kept once.
                A key belongs to one item.
            weights: a finite float32 for each token, which is added to its logit; items that begin alike must agree.
            path: where to write the index. The whole file appears at once, or nothing. None keeps it in memory.
            memory: bytes for unsorted items, 3 GiB by default; more is sorted on disk, beside `path`. Keys take about
                30 bytes each on top.
            on_progress: called with a number from 0 to 1 while the index is written. None: where standard error is a
                terminal, what takes more than a second is shown there.

        Raises:
            ConstraintError: an item without tokens, something that is not a token, weights that disagree, a key that is
                empty or given twice, or not one entry of `items` for each item.
            LimitError: an item or a key is too long.
            FileError: the index cannot be written.
        """
        if items is not None and not hasattr(items, "__len__"):
            items = list(items)
        builder = CatalogueBuilder(path, weighted=weights is not None, keyed=has_keys(items), memory=memory)
        builder.add(codes, items=items, weights=weights)
        return builder.finish(on_progress)

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str] | os.PathLike[str],
        tokenizer: Tokenizer | Tokenize,
        *,
        items: Items | None = None,
        path: str | os.PathLike[str] | None = None,
        memory: int | None = None,
        on_progress: OnProgress | None = None,
    ) -> Catalogue:
        """A catalogue of texts as a model's tokenizer writes them.

        A repeated text is another item with the same tokens. Where one text's tokens are the beginning of another's, an
        end token must tell them apart: `matcher(vocabulary)` takes the vocabulary's.

        Args:
            texts: texts, or a `pathlib.Path` of a UTF-8 file with one text a line; empty lines are skipped, but count.
            tokenizer: an engine, or a function such as `engine.tokenize`, without special tokens.
            items: a number or a key for each text, as in `from_codes`; by default a text's position, from 0. With a
                file, one for each line that is not empty.
            path, memory: as in `from_codes`.
            on_progress: as in `from_codes`; the first half is reading and tokenising, the second writing.

        Raises:
            ConstraintError: a text without tokens; `items` as in `from_codes`.
            PayloadError: the file is not UTF-8.
            FileError: it cannot be read, or the index cannot be written.
        """
        if isinstance(texts, str):
            raise TypeError("texts is one text: give a list of texts, or a pathlib.Path of a file")
        tokenize: Any = getattr(tokenizer, "tokenize", tokenizer)
        if not callable(tokenize):
            raise TypeError(f"a {type(tokenizer).__name__} does not tokenise texts: give an engine or its tokenize")
        if items is not None and not hasattr(items, "__len__"):
            items = list(items)
        builder = CatalogueBuilder(path, keyed=has_keys(items), memory=memory)
        done = 0
        with telling("building the index", on_progress) as tell:
            with closing(_tables.tokenised(texts, tokenize, lambda read: tell(read / 2))) as parts:
                for numbers, rows in parts:
                    names = np.array(numbers, np.uint64) if items is None else items[done : done + len(rows)]  # type: ignore[index]
                    builder.add(rows, items=names)
                    done += len(rows)
            if items is not None and len(items) != done:  # type: ignore[arg-type]
                message = f"{len(items)} entries of items for {done} texts"  # type: ignore[arg-type]
                raise error(_core.ConstraintError, message, help="give one for each text")
            return builder.finish(lambda written: tell(0.5 + written / 2))

    @classmethod
    def from_table(
        cls,
        source: _tables.Source,
        columns: Sequence[str] | None = None,
        *,
        item: str | None = None,
        weights: Sequence[str] | None = None,
        path: str | os.PathLike[str] | None = None,
        memory: int | None = None,
        on_progress: OnProgress | None = None,
    ) -> Catalogue:
        """A catalogue of a table's rows, which are read in portions.

        Args:
            source: a file, known by its ending (.csv, .tsv, .jsonl, .ndjson, .parquet, .arrow, .feather, .ipc, .npy),
                or a table with the Arrow C stream interface (of pyarrow, polars, pandas, DuckDB). Files other than
                CSV, JSON lines and NumPy need pyarrow.
            columns: the columns of codes in their order, one for each level; or one column of lists of any lengths. In
                a CSV file a list is written `[1, 2, 3]`. By default all columns but those of `item` and `weights`; a
                NumPy array has no names and is taken whole.
            item: the column of item numbers; by default rows are counted from 0.
            weights: the columns of weights, one for each column of codes; or one of lists.
            path, memory: as in `from_codes`.
            on_progress: as in `from_codes`; the first half is reading, the second writing.

        Raises:
            ConstraintError: a code that is missing, negative or not a whole number (texts of digits are), with its
                file, column, and row (from 0) or line (from 1); an unknown column.
            PayloadError: the file is not of its kind.
            FileError: it cannot be read, or the index cannot be written.
            ImportError: pyarrow is needed and not installed.
        """
        builder = CatalogueBuilder(path, weighted=weights is not None, memory=memory)
        with telling("building the index", on_progress) as tell:
            with closing(_tables.portions(source, columns, item, weights, lambda read: tell(read / 2))) as parts:
                for part in parts:
                    first = len(builder)
                    numbers = np.arange(first, first + len(part), dtype=np.uint64) if part.items is None else part.items
                    flat = None if part.weights is None else part.weights.reshape(-1)
                    builder._core.push(part.tokens.astype(np.uint32), numbers, ends=part.ends, weights=flat)
            return builder.finish(lambda written: tell(0.5 + written / 2))

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, durable: bool = False) -> Catalogue:
        """Opens an index file in well under a millisecond: it is mapped, and a page is checked when it is first read.

        Changes that were recorded in the file are made again, in some ten microseconds each. While it is open, only
        logitree may write to the file; another file may be renamed to its place.

        Args:
            path: the file.
            durable: whether `add` and `remove` record each change at the end of the file, before they return and before
                anything sees it. It costs what the change costs, and a write to the disk. Several processes may do so:
                a change first takes over what the others recorded.

        Raises:
            FileError: it cannot be read, or not be written where it is durable.
            PayloadError: it is not an index, or it is damaged; so may every later call.
        """
        return cls(_core.CatalogueIndex.open(os.fspath(path), durable=durable))

    @classmethod
    def from_bytes(cls, data: bytes) -> Catalogue:
        """The catalogue of an index file's bytes, with the changes in it. Raises PayloadError for other bytes."""
        return cls(_core.CatalogueIndex.from_bytes(data))

    def to_bytes(self) -> bytes:
        """The index file's bytes, without what was added and removed since it was made."""
        return self._core.to_bytes()

    # -- generating from it

    def matcher(
        self,
        vocabulary: _core.Vocabulary,
        *,
        end_token: int | None = None,
        allowed: Any = None,
        intersect: Any = None,
        fuel: int | None = None,
    ) -> _core.Matcher:
        """A matcher at the beginning of an item, for one sequence.

        Args:
            vocabulary: the model's vocabulary.
            end_token: the token that ends every item. None: items end by themselves; where one item is the beginning of
                another, every item ends with the vocabulary's first end-of-generation token.
            allowed: only the items with these numbers or keys, as in `walk`.
            intersect: a constraint or matcher, or several, that must allow the item too. What they allow is found out
                step by step: a token is allowed if it leads to a whole item that all allow. Forks share what they find
                out, so make one matcher and fork it.
            fuel: steps that finding out the allowed tokens once may take, 1,048,576 by default: tokens that are offered
                to the others, or 64 continuations that are read. For `intersect` only.

        Raises:
            ConstraintError: there is no item, or none that all allow; a token is outside the vocabulary; or one item is
                the beginning of another and no end token is known.
            LimitError: it takes more than the fuel; so may each later call. What a matcher found out is kept, up to
                some three million states: asking it again gets further. `walk(intersect=...)` has no such limits.
            SamplingError: `fuel` is not a whole number above 0.
        """
        options = {"end_token": end_token, "allowed": allowed, "intersect": intersect, "fuel": fuel}
        return _matcher(CatalogueConstraint(self, **options), vocabulary)

    def constraint(
        self, *, end_token: int | None = None, allowed: Any = None, intersect: Any = None, fuel: int | None = None
    ) -> CatalogueConstraint:
        """This catalogue with options of `matcher`, as a constraint for `generate`."""
        return CatalogueConstraint(self, end_token=end_token, allowed=allowed, intersect=intersect, fuel=fuel)

    def form(self) -> str:
        """As `Constraint.form`: the index by its path."""
        return self.constraint().form()

    def __and__(self, other: Any) -> CatalogueConstraint:
        """The items that another constraint allows too."""
        made: CatalogueConstraint = self.constraint() & other
        return made

    __rand__ = __and__

    def walk(
        self,
        vocabulary: _core.Vocabulary | int | None = None,
        *,
        end_token: int | None = None,
        allowed: Any = None,
        intersect: Any = None,
    ) -> _core.ItemWalk:
        """The catalogue as it is now, walked by many sequences at once: what a beam search needs.

        Args:
            vocabulary: the model's vocabulary, or the number of ids that masks cover; None: just enough for the items.
            end_token: the token that ends every item; None: an item ends by itself.
            allowed: only these items: a bool array whose index is the item number, or a list of numbers or keys. It
                takes a pass over all numbers (and keys), so keep the walk of a subset that is used again.
            intersect: only the items that this constraint or matcher, or each of several, allows from its present
                state: it accepts all tokens of the item and is then complete, or is after `end_token`. A finished
                matcher accepts nothing more. Matchers are not advanced. All states that they reach are visited, so
                keep this walk, too. No item may be left.

        Raises:
            ConstraintError: a token is outside the vocabulary; `intersect` is empty.
            LimitError: as the matchers of `intersect`.
        """
        others = _matchers(intersect, vocabulary)
        options: dict[str, Any] = {"end_token": end_token, "allowed": allowed, "intersect": others}
        if isinstance(vocabulary, _core.Vocabulary):
            return self._core.walk(vocabulary=vocabulary, **options)
        return self._core.walk(vocabulary_size=vocabulary, **options)

    def value(self, text: str, tokens: Sequence[int]) -> Any:
        """The item that a complete output is: its number or key, or a tuple where several items have these tokens."""
        for sequence in (tokens, tokens[:-1]):  # with and without an end token
            found = tuple(item if isinstance(item, str) else int(item) for item in self.items(sequence))
            if found:
                return found[0] if len(found) == 1 else found
        return text

    # -- changing it

    def add(self, codes: Codes, *, items: Items | None = None, weights: Weights | None = None) -> int:
        """Adds items. Existing walks and matchers do not see them. Up to a million are added all at once or not at all.

        Args:
            codes: as in `from_codes`.
            items: a number for each, by default continuing from the largest that this catalogue ever had, in its index
                or added since it was opened, removed or not; the first time that takes a pass over all numbers of the
                index. With keys: a key for each; a known key keeps its number. That takes a pass over all keys.
            weights: as in `from_codes`; by default 0. Where the index or another added item has a token in that place,
                its weight is kept.

        Returns:
            How many were new.

        Raises:
            ConstraintError, LimitError: as `from_codes`; LimitError also if no number is left.
            FileError: a durable catalogue cannot write the change to its file. Then nothing changes.
            StateError: another index has the place of a durable catalogue's file: `reload` it.
        """
        return sum(
            self._core.add_rows(rows.tokens, rows.numbers, ends=rows.ends, weights=rows.weights, keys=rows.keys)
            for rows in list(rows_of(codes, items, weights))
        )

    def remove(self, codes: Codes | None = None, *, items: Any = None) -> int:
        """Removes items: by their tokens, by their numbers or keys (a pass over all of them), or by both, in pairs.

        Returns:
            How many existed.

        Raises:
            FileError, StateError: as `add`, of a durable catalogue.
        """
        if codes is None:
            if items is None:
                raise error(_core.ConstraintError, "nothing to remove", help="give codes, items=, or both")
            return self._core.remove_items(items)
        return sum(
            self._core.remove_rows(rows.tokens, rows.numbers, ends=rows.ends, keys=rows.keys)
            for rows in list(rows_of(codes, items, None))
        )

    def merge(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        memory: int | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Writes one index of all present items, to a file or to memory, and continues with it.

        Readers do not wait; writers do, also those of other processes on the same file. Arguments and errors as those
        of `from_codes`; StateError for a durable catalogue without a path.
        """
        with telling("writing the index", on_progress) as tell:
            self._core.merge(None if path is None else os.fspath(path), memory=memory, progress=tell)

    def reload(self, path: str | os.PathLike[str]) -> None:
        """Replaces everything by the index of a file with the changes in it, at once. Errors as those of `open`."""
        self._core.reload(os.fspath(path))

    # -- asking it

    def check(self) -> None:
        """Reads the whole index and compares it with its checksums.

        Raises:
            PayloadError: it is damaged; the message names the page or row.
        """
        self._core.check()

    def items(self, codes: Sequence[int] | npt.NDArray[Any]) -> npt.NDArray[np.uint64] | list[str]:
        """The numbers (uint64 [N], ascending) or keys of the items that are exactly these tokens."""
        return self._core.items(codes)

    @property
    def path(self) -> str | None:
        """The file that it was opened from or written to."""
        return None if self._core.path is None else os.fspath(self._core.path)

    def info(self) -> dict[str, Any]:
        """Counts and sizes.

        items (present now), rows and tokens (of the index), longest (tokens), largest_token, fixed_length, nested (an
        item is the beginning of another), weighted, keyed, wide_nodes, added_nodes (since the index was made), bytes
        (of the index).
        """
        return self._core.info()

    def __contains__(self, codes: Sequence[int] | npt.NDArray[Any]) -> bool:
        return codes in self._core

    def __len__(self) -> int:
        """Items that are present; one with several numbers counts as several."""
        return len(self._core)

    def __repr__(self) -> str:
        return f"Catalogue({len(self)} items{'' if self.path is None else ', ' + self.path})"


class CatalogueConstraint(_core.Constraint):
    """A catalogue with options, as a constraint: what `Catalogue.constraint` and `catalogue & other` give."""

    __slots__ = ("_options", "catalogue")

    def __init__(self, catalogue: Catalogue, **options: Any) -> None:
        self.catalogue = catalogue
        """The catalogue."""
        self._options = {name: value for name, value in options.items() if value is not None}

    def matcher(self, vocabulary: _core.Vocabulary) -> _core.Matcher:
        """A matcher at the beginning of an item; errors as those of `Catalogue.matcher`."""
        return _matcher(self, vocabulary)

    def form(self) -> str:
        """As `Constraint.form`: the index by its path.

        Raises:
            ConstraintError: the index is in memory, or only some items are allowed.
        """
        options = {name: value for name, value in self._options.items() if name != "intersect"}
        if "allowed" in options:
            raise error(_core.ConstraintError, "some items of a catalogue have no JSON form", help="leave out allowed")
        if self.catalogue.path is None:
            help = "build it with a path"
            raise error(_core.ConstraintError, "a catalogue in memory has no JSON form", help=help)
        given = _several(self._options.get("intersect"))
        others = [json.loads(constraint_of(other).form()) for other in given]
        form = {"type": "catalogue", "index": self.catalogue.path, "and": others, "fuel": options.get("fuel")}
        form["end"] = options.get("end_token")
        return json.dumps({name: value for name, value in form.items() if value not in (None, [])})

    def walk(self, vocabulary: _core.Vocabulary | int | None = None) -> _core.ItemWalk:
        """`Catalogue.walk` with these options, and with the end token that `Catalogue.matcher` takes."""
        options = {name: value for name, value in self._options.items() if name != "fuel"}
        walk = self.catalogue.walk(vocabulary, **options)
        if walk.end is None and isinstance(vocabulary, _core.Vocabulary) and vocabulary.end_tokens and walk.nested:
            walk = self.catalogue.walk(vocabulary, **{**options, "end_token": vocabulary.end_tokens[0]})
        return walk

    def value(self, text: str, tokens: Sequence[int]) -> Any:
        """As `Catalogue.value`."""
        return self.catalogue.value(text, tokens)

    def __and__(self, other: Any) -> CatalogueConstraint:
        """The items that another constraint allows too."""
        others = [*_several(self._options.get("intersect")), *_several(other)]
        return CatalogueConstraint(self.catalogue, **{**self._options, "intersect": others})

    __rand__ = __and__

    def __repr__(self) -> str:
        shown = "".join(f", {name}={value!r}" for name, value in self._options.items())
        return f"CatalogueConstraint({self.catalogue!r}{shown})"


def _matcher(constraint: CatalogueConstraint, vocabulary: _core.Vocabulary) -> _core.Matcher:
    """A matcher at the beginning of an item."""
    options = {"intersect": None, "fuel": None, **constraint._options}
    others, fuel = options.pop("intersect"), options.pop("fuel")
    walk = CatalogueConstraint(constraint.catalogue, **options).walk(vocabulary)
    return walk.matcher(intersect=_matchers(others, vocabulary), fuel=fuel)


def _several(others: Any) -> list[Any]:
    """One constraint, or several."""
    if others is None:
        return []
    return list(others) if isinstance(others, list | tuple) and not any(map(_is_plain, others)) else [others]


def _is_plain(value: Any) -> bool:
    """Whether it is an element of a list of texts or numbers, which is one constraint."""
    return isinstance(value, str | bytes | int | float)


def _matchers(others: Any, vocabulary: _core.Vocabulary | int | None) -> list[_core.Matcher] | None:
    """The matchers of constraints that an item must pass."""
    if others is None:
        return None
    if not isinstance(others, _core.Constraint) and isinstance(others, Iterable):
        others = list(others)
    found = []
    for other in _several(others):
        if isinstance(other, _core.Matcher):
            found.append(other)
        elif isinstance(vocabulary, _core.Vocabulary):
            found.append(bind(other, vocabulary))
        elif not isinstance(other, _core.Constraint):
            raise TypeError(
                f"intersect takes matchers, and constraints with a vocabulary, not a {type(other).__name__}"
            )
        else:
            message = f"a {type(other).__name__} without a vocabulary"
            raise error(_core.ConstraintError, message, help="give the vocabulary, or a matcher")
    return found
