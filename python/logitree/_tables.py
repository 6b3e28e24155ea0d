"""Prefix trees from tables and texts: rows are read in portions and checked where they stand.

It refuses to know the index: what is read goes to a builder. CSV and JSON lines take the standard library; Parquet,
Arrow and frames take pyarrow, which is loaded when it is needed.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from logitree import _core
from logitree._errors import error
from logitree._prefix import PrefixBuilder, PrefixTree

Source = str | os.PathLike[str] | Any
"""A file (.csv, .tsv, .jsonl, .ndjson, .parquet, .arrow, .feather, .ipc, .npy), or a table with the Arrow interface:
of pyarrow, polars, pandas, DuckDB."""

_ROWS = 1 << 16
"""Rows of a portion: enough to spread the cost of a call, few enough to forget."""

_TEXTS = 1 << 13
"""Texts that are tokenised before their tokens are handed on."""

_DIGITS = 24
"""Digits of a text that may be a number: more than any has, and few enough to be read fast."""

_MOST_CODE = (1 << 31) - 1
_MOST_NUMBER = (1 << 64) - 1


@dataclass(frozen=True)
class ItemRows:
    """A portion of a table, as `PrefixTree.add`, `PrefixTree.remove` and `PrefixBuilder.add` take it."""

    tokens: npt.NDArray[np.int64] | list[npt.NDArray[np.int64]]
    """[N, L], or N arrays if the codes stood in a list column."""
    items: npt.NDArray[np.uint64] | None
    """A number each; None if no column was named."""
    weights: npt.NDArray[np.float32] | list[npt.NDArray[np.float32]] | None
    """Of the shape of the tokens; None if no columns were named."""


def prefix_tree_from_table(
    source: Source,
    columns: Sequence[str] | None = None,
    *,
    item: str | None = None,
    weights: Sequence[str] | None = None,
    path: str | os.PathLike[str] | None = None,
    memory: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> PrefixTree:
    """A prefix tree of a table's rows, which are read in portions.

    Args:
        source: a file, known by its ending (.csv, .tsv, .jsonl, .ndjson, .parquet, .arrow, .feather, .ipc, .npy), or a
            table with the Arrow interface (of pyarrow, polars, pandas, DuckDB). What is no CSV, JSON or NumPy file
            takes pyarrow.
        columns: the columns of codes in their order, one a level; or one column of lists, each of any length. In a CSV
            file a list is written `[1, 2, 3]`. By default all columns but those of `item` and `weights`; a NumPy
            array has none and is taken whole.
        item: the column of item numbers; by default rows are counted from 0.
        weights: the columns of weights, one for each column of codes; or one of lists.
        path, memory: as in `prefix_tree`.
        progress: called with a number from 0 to 1: the first half is reading, the second writing.

    Raises:
        ConstraintError: a code that is missing, negative or no whole number (texts of digits are), with its file,
            column, and row (from 0) or line (from 1); a column that is not there.
        PayloadError: the file is not of its kind.
        FileError: it cannot be read, or the index not be written.
        ImportError: pyarrow is needed and not installed.
    """
    builder = PrefixBuilder(path, weighted=weights is not None, memory=memory)
    tell = progress or (lambda _: None)
    for portion in _portions(source, columns, item, weights, lambda done: tell(done / 2)):
        portion.push(builder)
    return builder.finish(lambda done: tell(0.5 + done / 2))


def table_items(
    source: Source,
    columns: Sequence[str] | None = None,
    *,
    item: str | None = None,
    weights: Sequence[str] | None = None,
    progress: Callable[[float], object] | None = None,
) -> Iterator[ItemRows]:
    """The rows of a table in portions, to be added to a tree that is there, or removed from it.

    Arguments and errors as those of `prefix_tree_from_table`; `progress` is of reading.
    """
    for portion in _portions(source, columns, item, weights, progress or (lambda _: None)):
        yield portion.rows()


def prefix_tree_of_texts(
    texts: Iterable[str] | os.PathLike[str],
    tokenize: Callable[[str], Sequence[int]],
    *,
    path: str | os.PathLike[str] | None = None,
    memory: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> PrefixTree:
    """A prefix tree of texts as a tokenizer writes them. A text's item number is its place, counted from 0.

    A text that comes again is an item of its own with the same tokens. Items then begin one another, so walk the tree
    with an end token: `tree.paths(end=...)`.

    Args:
        texts: texts, or a `pathlib.Path` of a UTF-8 file with one a line; its empty lines are no items, but count.
        tokenize: such as `LlamaCpp.tokenize`, without special tokens.
        path, memory: as in `prefix_tree`.
        progress: called with a number from 0 to 1: for a file the first half is reading, the second writing.

    Raises:
        ConstraintError: a text without tokens.
        PayloadError: the file is not UTF-8.
        FileError: it cannot be read, or the index not be written.
    """
    if isinstance(texts, str):
        raise TypeError("texts is one text: give a list of texts, or a pathlib.Path of a file")
    builder = PrefixBuilder(path, memory=memory)
    tell = progress or (lambda _: None)
    lines = _lines_of_file(texts, tell) if isinstance(texts, os.PathLike) else enumerate(texts)
    while some := list(itertools.islice(lines, _TEXTS)):
        rows = [tokenize(text) for _, text in some]
        for (number, text), row in zip(some, rows, strict=True):
            if len(row) == 0:
                raise error(_core.ConstraintError, f"the text {text!r} has no tokens", place=f"text {number}")
        builder.add(rows, items=np.array([number for number, _ in some], np.uint64))
    return builder.finish(lambda done: tell(0.5 + done / 2))


def _lines_of_file(path: os.PathLike[str], tell: Callable[[float], object]) -> Iterator[tuple[int, str]]:
    """The lines that are not empty, with their numbers from 0."""
    with _opened(Path(path)) as file:
        for number, line in enumerate(file.lines(lambda done: tell(done / 2))):
            if text := line.rstrip("\r\n"):
                yield number, text


# -- portions: columns that are checked


class _Column(NamedTuple):
    """A column's numbers, row after row."""

    flat: npt.NDArray[Any]
    ends: npt.NDArray[np.int64] | None
    """Where each row ends; None: one number a row."""


Place = Callable[[int], str]
"""Where a row of the portion stands, for messages."""


@dataclass
class _Portion:
    """Some rows of a table, converted: tokens [N, L], or flat with the ends of rows; a number and weights alike."""

    tokens: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64] | None
    items: npt.NDArray[np.uint64] | None
    weights: npt.NDArray[np.float32] | None

    def __len__(self) -> int:
        return len(self.tokens if self.ends is None else self.ends)

    def push(self, builder: PrefixBuilder) -> None:
        """Hands the rows on without making one array of each."""
        first = len(builder)
        items = np.arange(first, first + len(self), dtype=np.uint64) if self.items is None else self.items
        weights = None if self.weights is None else self.weights.reshape(-1)
        builder._core.push(self.tokens.astype(np.uint32), items, ends=self.ends, weights=weights)

    def rows(self) -> ItemRows:
        """The rows as arrays."""
        if self.ends is None:
            return ItemRows(self.tokens, self.items, self.weights)
        cuts = self.ends[:-1]
        weights = None if self.weights is None else np.split(self.weights, cuts)
        return ItemRows(np.split(self.tokens, cuts), self.items, weights)


class _Wanted(NamedTuple):
    """Which columns are read."""

    codes: list[str]
    item: str | None
    weights: list[str] | None

    def all(self) -> list[str]:
        """Their names, each once."""
        return list(dict.fromkeys([*self.codes, *([self.item] if self.item else []), *(self.weights or [])]))


def _wanted(
    there: Sequence[str], columns: Sequence[str] | None, item: str | None, weights: Sequence[str] | None, place: str
) -> _Wanted:
    """The columns that were asked for, or all others.

    Raises:
        ConstraintError: one is not there, or there are none.
    """
    for name, given in (("columns", columns), ("weights", weights)):
        if isinstance(given, str):
            raise TypeError(f"{name} is one text: give a list of names")
    apart = {item, *(weights or ())}
    codes = [name for name in there if name not in apart] if columns is None else list(columns)
    wanted = _Wanted(codes, item, None if weights is None else list(weights))
    for name in wanted.all():
        if name not in there:
            listed = ", ".join(map(repr, there))
            raise error(_core.ConstraintError, f"there is no column {name!r}", place=place, help=f"there are {listed}")
    if not codes:
        raise error(_core.ConstraintError, "no columns of codes", place=place, help="name them with columns=")
    if wanted.weights is not None and len(wanted.weights) != len(codes):
        message = f"{len(wanted.weights)} columns of weights for {len(codes)} of codes"
        raise error(_core.ConstraintError, message, place=place, help="give one for each, in the same order")
    return wanted


def _portion(wanted: _Wanted, columns: dict[str, Any], place: Place) -> _Portion:
    """Converts a portion's columns: lists of cells as they were read, or NumPy arrays, or `_Column` of lists."""
    codes = [_whole(columns[name], name, place, _MOST_CODE, "code") for name in wanted.codes]
    tokens, ends = _joined(codes, wanted.codes, place)
    items = None
    if wanted.item is not None:
        numbers = _whole(columns[wanted.item], wanted.item, place, _MOST_NUMBER, "item number")
        if numbers.ends is not None:
            _refuse("a list for an item number", place, 0, wanted.item)
        items = numbers.flat.astype(np.uint64)
    weights = None
    if wanted.weights is not None:
        floats = [_floats(columns[name], name, place) for name in wanted.weights]
        weights, weight_ends = _joined(floats, wanted.weights, place)
        if not _alike(ends, weight_ends):
            _refuse("not one weight for each code", place, _first_difference(ends, weight_ends), wanted.weights[0])
    return _Portion(tokens, ends, items, None if weights is None else np.ascontiguousarray(weights, np.float32))


def _joined(
    columns: list[_Column], names: list[str], place: Place
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64] | None]:
    """Columns of numbers as a table, or the one column of lists with its ends."""
    lists = [name for name, column in zip(names, columns, strict=True) if column.ends is not None]
    if not lists:
        return np.stack([column.flat for column in columns], axis=1), None
    if len(columns) > 1:
        _refuse("a list beside other columns", place, 0, lists[0], "give one column of lists, or columns of numbers")
    (column,) = columns
    assert column.ends is not None
    empty = np.flatnonzero(np.diff(column.ends, prepend=0) == 0)
    if len(empty):
        _refuse("an empty list", place, int(empty[0]), names[0], "an item has at least one token")
    return column.flat, column.ends


def _alike(a: npt.NDArray[np.int64] | None, b: npt.NDArray[np.int64] | None) -> bool:
    return a is b if a is None or b is None else np.array_equal(a, b)


def _first_difference(a: npt.NDArray[np.int64] | None, b: npt.NDArray[np.int64] | None) -> int:
    if a is None or b is None or len(a) != len(b):
        return 0
    return int(np.flatnonzero(a != b)[0])


def _whole(cells: Any, name: str, place: Place, most: int, what: str) -> _Column:
    """A column of whole numbers from 0 to `most`.

    Raises:
        ConstraintError: the first cell that is none, with its place.
    """
    dtype = np.int64 if most <= _MOST_CODE else np.uint64
    if isinstance(cells, _Column):
        return _Column(_checked(cells.flat, name, _owner(place, cells.ends), most, what, dtype), cells.ends)
    if isinstance(cells, np.ndarray):
        return _Column(_checked(cells, name, place, most, what, dtype), None)
    if any(_is_list(cell) for cell in cells[:1]):
        flat, ends = _flattened(cells, name, place)
        inner = _owner(place, ends)
        return _Column(_checked(_from_cells(flat, name, inner, what), name, inner, most, what, dtype), ends)
    return _Column(_checked(_from_cells(cells, name, place, what), name, place, most, what, dtype), None)


def _checked(array: npt.NDArray[Any], name: str, place: Place, most: int, what: str, dtype: Any) -> npt.NDArray[Any]:
    if array.dtype.kind == "O":
        bad = [at for at, value in enumerate(array) if not 0 <= value <= most]
    elif array.dtype.kind not in "iu":
        _refuse(f"{what}s of type {array.dtype}", place, 0, name, "they are whole numbers")
    else:
        bad = np.flatnonzero((array < 0) | (array > most))[:1].tolist() if array.size else []
    if bad:
        _refuse(f"{what} {array[bad[0]]}", place, bad[0], name, f"{what}s are from 0 to {most:,}")
    return array.astype(dtype)


def _from_cells(cells: Sequence[Any], name: str, place: Place, what: str) -> npt.NDArray[Any]:
    """Whole numbers of a text file's cells: texts of digits, or JSON's numbers."""
    kinds = set(map(type, cells))
    if kinds == {str}:
        together = "".join(cells)
        plain = together.isascii() and together.isdigit() and all(cells)
        if not plain or max(map(len, cells)) > _DIGITS:
            cells = [_digits(cell, name, place, at, what) for at, cell in enumerate(cells)]
    elif kinds - {int}:
        for at, cell in enumerate(cells):
            if type(cell) is not int:
                _refuse(_told(cell, what), place, at, name)
    numbers = list(map(int, cells))
    try:
        return np.array(numbers, np.int64)
    except OverflowError:
        return np.array(numbers, object)


def _digits(cell: str, name: str, place: Place, at: int, what: str) -> str:
    digits = cell.strip()
    if not (digits.removeprefix("-").isdigit() and digits.isascii()) or len(digits) > _DIGITS:
        _refuse(_told(digits or None, what), place, at, name)
    return digits


def _told(cell: Any, what: str) -> str:
    if cell is None:
        return f"a missing {what}"
    if _is_list(cell):
        return f"a list where other rows have one {what}"
    written = json.dumps(cell) if isinstance(cell, (str, bool, float, dict)) else repr(cell)
    return f"{written[:60]} is no {what}"


def _is_list(cell: Any) -> bool:
    return isinstance(cell, list) or (isinstance(cell, str) and cell.lstrip()[:1] == "[")


def _flattened(cells: Sequence[Any], name: str, place: Place) -> tuple[list[Any], npt.NDArray[np.int64]]:
    """Cells that are lists as one list, with the ends of rows. In CSV they are texts."""
    flat: list[Any] = []
    ends = np.empty(len(cells), np.int64)
    for at, cell in enumerate(cells):
        found = cell
        if isinstance(cell, str) and _is_list(cell):
            try:
                found = json.loads(cell)
            except ValueError:
                _refuse(f"{cell[:60]!r} is no list", place, at, name, "write [1, 2, 3]")
        if not isinstance(found, list):
            _refuse("a missing list" if found in (None, "") else f"{found!r} is no list", place, at, name)
        flat += found
        ends[at] = len(flat)
    return flat, ends


def _owner(place: Place, ends: npt.NDArray[np.int64] | None) -> Place:
    """Where an element of a list stands: where its row does."""
    return place if ends is None else lambda at: place(int(np.searchsorted(ends, at, side="right")))


def _floats(cells: Any, name: str, place: Place) -> _Column:
    """A column of finite numbers."""
    ends = None
    if isinstance(cells, _Column):
        cells, ends = cells.flat, cells.ends
    elif not isinstance(cells, np.ndarray) and any(_is_list(cell) for cell in cells[:1]):
        cells, ends = _flattened(cells, name, place)
    where = _owner(place, ends)
    if isinstance(cells, np.ndarray):
        if cells.dtype.kind not in "iuf":
            _refuse(f"weights of type {cells.dtype}", place, 0, name, "they are numbers")
        array = cells.astype(np.float32)
    else:
        array = np.array([_float(cell, name, where, at) for at, cell in enumerate(cells)], np.float64)
        array = np.where(np.abs(array) <= np.finfo(np.float32).max, array, np.inf).astype(np.float32)
    if len(bad := np.flatnonzero(~np.isfinite(array))[:1]):
        _refuse(f"weight {cells[int(bad[0])]}", where, int(bad[0]), name, "weights are finite float32")
    return _Column(array, ends)


def _float(cell: Any, name: str, place: Place, at: int) -> float:
    if isinstance(cell, bool) or not isinstance(cell, (str, int, float)):
        _refuse(_told(cell, "weight"), place, at, name)
    try:
        return float(cell)
    except (ValueError, OverflowError):
        _refuse(_told(cell or None, "weight"), place, at, name)


def _refuse(message: str, place: Place, at: int, name: str, help: str = "") -> NoReturn:
    raise error(_core.ConstraintError, message, place=f"{place(at)}, column {name!r}", help=help)


# -- files and tables


def _portions(
    source: Source,
    columns: Sequence[str] | None,
    item: str | None,
    weights: Sequence[str] | None,
    tell: Callable[[float], object],
) -> Iterator[_Portion]:
    """A table's rows in portions."""
    if not isinstance(source, (str, os.PathLike)):
        if not hasattr(source, "__arrow_c_stream__"):
            raise TypeError(f"a {type(source).__name__} is no table: give a file, or a table with the Arrow interface")
        yield from _arrow_table(source, columns, item, weights, tell)
        return
    path = Path(source)
    read = _READERS.get(path.suffix.lower())
    if read is None:
        kinds = " ".join(_READERS)
        raise error(_core.PayloadError, f"a table of kind {path.suffix!r}", place=str(path), help=f"read are {kinds}")
    try:
        yield from read(path, columns, item, weights, tell)
    except _core.FileError:
        raise
    except OSError as problem:
        raise _unreadable(path, problem) from problem


def _unreadable(path: Path, problem: OSError) -> _core.FileError:
    return error(_core.FileError, f"cannot be read: {problem.strerror or problem}", place=str(path))


class _Text:
    """A UTF-8 file, read by lines, that knows how far it is."""

    def __init__(self, path: Path, raw: Any) -> None:
        self._path = path
        self._raw = raw
        self._size = max(os.fstat(raw.fileno()).st_size, 1)
        self._text = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")

    def __enter__(self) -> _Text:
        return self

    def __exit__(self, *_: object) -> None:
        self._text.close()

    def lines(self, tell: Callable[[float], object]) -> Iterator[str]:
        """The lines with their ends.

        Raises:
            PayloadError: it is not UTF-8.
        """
        try:
            for number, line in enumerate(self._text):
                if number % _ROWS == 0:
                    tell(min(self._raw.tell() / self._size, 1.0))
                yield line
        except UnicodeDecodeError as problem:
            raise error(_core.PayloadError, f"not UTF-8: {problem.reason}", place=str(self._path)) from problem


def _opened(path: Path) -> _Text:
    try:
        return _Text(path, path.open("rb"))
    except OSError as problem:
        raise _unreadable(path, problem) from problem


def _csv(
    path: Path, columns: Any, item: str | None, weights: Any, tell: Callable[[float], object]
) -> Iterator[_Portion]:
    with _opened(path) as file:
        rows = csv.reader(file.lines(tell), delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
        try:
            there = next(rows, None)
            if there is None:
                raise error(
                    _core.PayloadError, "an empty file", place=str(path), help="its first line names the columns"
                )
            if len(set(there)) != len(there):
                raise error(_core.PayloadError, "two columns of one name", place=f"{path}, line 1")
            wanted = _wanted(there, columns, item, weights, str(path))
            at = {name: there.index(name) for name in wanted.all()}
            numbered = ((rows.line_num, row) for row in rows if row)
            while some := list(itertools.islice(numbered, _ROWS)):
                yield _csv_portion(path, wanted, at, some, len(there))
        except csv.Error as problem:
            raise error(_core.PayloadError, str(problem), place=f"{path}, line {rows.line_num}") from problem


def _csv_portion(
    path: Path, wanted: _Wanted, at: dict[str, int], some: list[tuple[int, list[str]]], width: int
) -> _Portion:
    for line, row in some:
        if len(row) > width:
            message = f"{len(row)} cells under {width} names"
            raise error(_core.PayloadError, message, place=f"{path}, line {line}")
    cells = {name: [row[i] if i < len(row) else "" for _, row in some] for name, i in at.items()}
    return _portion(wanted, cells, lambda row: f"{path}, line {some[row][0]}")


def _jsonl(
    path: Path, columns: Any, item: str | None, weights: Any, tell: Callable[[float], object]
) -> Iterator[_Portion]:
    wanted = None
    with _opened(path) as file:
        numbered = ((n, line) for n, line in enumerate(file.lines(tell), start=1) if not line.isspace())
        while some := list(itertools.islice(numbered, _ROWS)):
            rows = [_object(path, number, line) for number, line in some]
            wanted = wanted or _wanted(list(rows[0]), columns, item, weights, f"{path}, line {some[0][0]}")
            cells = {name: [row.get(name) for row in rows] for name in wanted.all()}
            yield _portion(wanted, cells, _line_of(path, some))


def _line_of(path: Path, some: list[tuple[int, str]]) -> Place:
    return lambda row: f"{path}, line {some[row][0]}"


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise error(_core.PayloadError, f"no JSON: {problem}", place=f"{path}, line {number}") from problem
    if not isinstance(row, dict):
        raise error(_core.PayloadError, "no JSON object", place=f"{path}, line {number}", help="give an object a line")
    return row


def _npy(
    path: Path, columns: Any, item: str | None, weights: Any, tell: Callable[[float], object]
) -> Iterator[_Portion]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as problem:
        raise error(_core.PayloadError, f"no NumPy array: {problem}", place=str(path)) from problem
    if not isinstance(array, np.ndarray) or array.ndim != 2:
        raise error(_core.PayloadError, "no array of two dimensions", place=str(path), help="one row an item: [N, L]")
    if columns is not None or item is not None or weights is not None:
        raise error(_core.ConstraintError, "a NumPy array has no columns", place=str(path), help="leave them out")
    wanted = _Wanted([str(level) for level in range(array.shape[1])], None, None)
    if not wanted.codes:
        raise error(_core.ConstraintError, "an array without columns", place=str(path))
    for first in range(0, len(array), _ROWS):
        tell(first / len(array))
        part = np.asarray(array[first : first + _ROWS])
        cells = {name: part[:, level] for level, name in enumerate(wanted.codes)}
        yield _portion(wanted, cells, _row_of(str(path), first))


def _row_of(name: str, first: int) -> Place:
    return lambda row: f"{name}, row {first + row}"


# -- Arrow


def _pyarrow(module: str = "pyarrow") -> Any:
    """pyarrow, or an error that says how to get it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as problem:
        raise ImportError("this table takes pyarrow: pip install 'logitree[tables]'") from problem


def _arrow_table(
    source: Any, columns: Any, item: str | None, weights: Any, tell: Callable[[float], object]
) -> Iterator[_Portion]:
    pa = _pyarrow()
    stream = pa.RecordBatchReader.from_stream(source)
    rows = getattr(source, "num_rows", None) or getattr(source, "height", None)
    yield from _arrow("table", stream.schema.names, stream, rows, columns, item, weights, tell)


def _parquet(
    path: Path, columns: Any, item: str | None, weights: Any, tell: Callable[[float], object]
) -> Iterator[_Portion]:
    pa, parquet = _pyarrow(), _pyarrow("pyarrow.parquet")
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            wanted = _wanted(names, columns, item, weights, str(path))
            batches = file.iter_batches(batch_size=_ROWS, columns=wanted.all())
            yield from _arrow(str(path), names, batches, file.metadata.num_rows, columns, item, weights, tell)
    except pa.ArrowException as problem:
        raise error(_core.PayloadError, f"no Parquet file: {problem}", place=str(path)) from problem


def _ipc(
    path: Path, columns: Any, item: str | None, weights: Any, tell: Callable[[float], object]
) -> Iterator[_Portion]:
    pa, ipc = _pyarrow(), _pyarrow("pyarrow.ipc")
    try:
        with pa.memory_map(str(path)) as mapped:
            begins = mapped.read(6)
            mapped.seek(0)
            file = ipc.open_file(mapped) if begins == b"ARROW1" else ipc.open_stream(mapped)
            batches = (file.get_batch(i) for i in range(file.num_record_batches)) if begins == b"ARROW1" else file
            yield from _arrow(str(path), file.schema.names, batches, None, columns, item, weights, tell)
    except pa.ArrowException as problem:
        raise error(_core.PayloadError, f"no Arrow file: {problem}", place=str(path)) from problem


def _arrow(
    place: str,
    there: Sequence[str],
    batches: Iterable[Any],
    rows: int | None,
    columns: Any,
    item: str | None,
    weights: Any,
    tell: Callable[[float], object],
) -> Iterator[_Portion]:
    wanted = _wanted(there, columns, item, weights, place)
    first = 0
    for batch in batches:
        for at in range(0, batch.num_rows, _ROWS):
            part = batch.slice(at, _ROWS)
            where = _row_of(place, first)
            cells = {name: _arrow_column(part.column(name), name, where) for name in wanted.all()}
            yield _portion(wanted, cells, where)
            first += part.num_rows
            if rows:
                tell(min(first / rows, 1.0))


def _arrow_column(array: Any, name: str, place: Place) -> Any:
    """An Arrow array as NumPy, or as lists laid flat."""
    types = _pyarrow().types
    if array.null_count:
        _refuse("a missing value", place, int(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[0]), name)
    kind = array.type
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        if types.is_fixed_size_list(kind):
            ends = np.arange(1, len(array) + 1, dtype=np.int64) * kind.list_size
        else:
            offsets = array.offsets.to_numpy().astype(np.int64)
            ends = offsets[1:] - offsets[0]
        inner = _arrow_column(array.flatten(), name, _owner(place, ends))
        if isinstance(inner, _Column):
            _refuse("lists of lists", place, 0, name)
        return _Column(inner, ends)
    if types.is_integer(kind) or types.is_floating(kind):
        return array.to_numpy(zero_copy_only=False)
    _refuse(f"a column of type {kind}", place, 0, name, "codes are whole numbers")


_READERS: dict[str, Callable[..., Iterator[_Portion]]] = {
    ".csv": _csv,
    ".tsv": _csv,
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".parquet": _parquet,
    ".arrow": _ipc,
    ".feather": _ipc,
    ".ipc": _ipc,
    ".npy": _npy,
}
"""The kinds of files, by their ending."""
