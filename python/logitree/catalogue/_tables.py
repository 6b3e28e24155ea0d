"""Reads tables and lines of text in portions of checked columns: CSV, JSON lines, NumPy, and Arrow through pyarrow."""

from __future__ import annotations

import csv
import importlib
import io
import itertools
import json
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Sized
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from .. import _core
from .._errors import error, file_error

Source = str | os.PathLike[str] | Any
"""A file (.csv, .tsv, .jsonl, .ndjson, .parquet, .arrow, .feather, .ipc, .npy), or a table with the Arrow C stream
interface: of pyarrow, polars, pandas, DuckDB."""

_ROWS = 1 << 16
"""Rows of a portion."""

_TEXTS = 1 << 13
"""Texts that are tokenised at once."""

_MAX_DIGITS = 24
"""Digits of a text that may be a number: more than any valid one has, and few enough to be read fast."""

Place = Callable[[int], str]
"""Where a row of the portion is, for messages."""

Read = Callable[[float], object]
"""Called with the part that was read, from 0 to 1."""


@dataclass(frozen=True)
class ItemRows:
    """A portion of a table, as `Catalogue.add`, `Catalogue.remove` and `CatalogueBuilder.add` take it."""

    tokens: npt.NDArray[np.int64] | list[npt.NDArray[np.int64]]
    """[N, L], or N arrays if the codes are in a list column."""
    items: npt.NDArray[np.uint64] | None
    """A number each; None if no column was named."""
    weights: npt.NDArray[np.float32] | list[npt.NDArray[np.float32]] | None
    """Of the shape of the tokens; None if no columns were named."""


def table_items(
    source: Source,
    columns: Sequence[str] | None = None,
    *,
    item: str | None = None,
    weights: Sequence[str] | None = None,
    on_progress: Read | None = None,
) -> Iterator[ItemRows]:
    """The rows of a table in portions, to be added to a catalogue or removed from it.

    Arguments and errors as those of `Catalogue.from_table`; `on_progress` is of reading.
    """
    with closing(portions(source, columns, item, weights, on_progress or (lambda _: None))) as parts:
        for part in parts:
            if part.ends is None:
                yield ItemRows(part.tokens, part.items, part.weights)
            else:
                cuts = part.ends[:-1]
                split = None if part.weights is None else np.split(part.weights, cuts)
                yield ItemRows(np.split(part.tokens, cuts), part.items, split)


def tokenised(
    texts: Iterable[str] | os.PathLike[str], tokenize: Callable[[str], Sequence[int]], tell: Read
) -> Generator[tuple[list[int], list[Sequence[int]]], None, None]:
    """Texts in portions, each with its position and its tokens.

    Raises:
        ConstraintError: a text without tokens.
        PayloadError, FileError: the file cannot be read.
    """
    whole = len(texts) if isinstance(texts, Sized) else 0
    if isinstance(texts, os.PathLike):
        numbered = _lines_of_file(Path(texts), tell)
    else:
        numbered = (pair for pair in enumerate(texts))
    with closing(numbered):
        while some := list(itertools.islice(numbered, _TEXTS)):
            rows = [tokenize(text) for _, text in some]
            for (number, text), row in zip(some, rows, strict=True):
                if len(row) == 0:
                    raise error(_core.ConstraintError, f"the text {text!r} has no tokens", place=f"text {number}")
            yield [number for number, _ in some], rows
            if whole:
                tell((some[-1][0] + 1) / whole)


def _lines_of_file(path: Path, tell: Read) -> Generator[tuple[int, str], None, None]:
    """The lines that are not empty, with their numbers from 0."""
    with closing(_lines(path, tell)) as lines:
        for number, line in enumerate(lines):
            if text := line.rstrip("\r\n"):
                yield number, text


# -- portions of checked columns


@dataclass
class Portion:
    """Rows of a table: tokens [N, L], or flat with the ends of rows; weights of the same shape."""

    tokens: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64] | None
    items: npt.NDArray[np.uint64] | None
    weights: npt.NDArray[np.float32] | None

    def __len__(self) -> int:
        return len(self.tokens if self.ends is None else self.ends)


class _Column(NamedTuple):
    """A column's numbers, row after row, and where each row's list ends; None: one number a row."""

    flat: npt.NDArray[Any]
    ends: npt.NDArray[np.int64] | None


class _Kind(NamedTuple):
    """What the numbers of a column are."""

    name: str
    dtype: Any
    most: int


_CODE = _Kind("code", np.int64, (1 << 31) - 1)
_ITEM = _Kind("item number", np.uint64, (1 << 64) - 1)
_WEIGHT = _Kind("weight", np.float32, 0)


class _Wanted(NamedTuple):
    """Which columns are read."""

    codes: list[str]
    item: str | None
    weights: list[str] | None

    def all(self) -> list[str]:
        """Their names, each once."""
        return list(dict.fromkeys([*self.codes, *([self.item] if self.item else []), *(self.weights or [])]))


class _Question(NamedTuple):
    """The columns that a caller asked for."""

    columns: Sequence[str] | None
    item: str | None
    weights: Sequence[str] | None

    def of(self, there: Sequence[str], place: str) -> _Wanted:
        """The columns of this table: those asked for, or all others.

        Raises:
            ConstraintError: an unknown column, or no columns.
        """
        apart = {self.item, *(self.weights or ())}
        codes = [name for name in there if name not in apart] if self.columns is None else list(self.columns)
        wanted = _Wanted(codes, self.item, None if self.weights is None else list(self.weights))
        for name in wanted.all():
            if name not in there:
                listed = ", ".join(map(repr, there))
                message = f"there is no column {name!r}"
                raise error(_core.ConstraintError, message, place=place, help=f"there are {listed}")
        if not codes:
            raise error(_core.ConstraintError, "no columns of codes", place=place, help="name them with columns=")
        if wanted.weights is not None and len(wanted.weights) != len(codes):
            message = f"{len(wanted.weights)} columns of weights for {len(codes)} of codes"
            raise error(_core.ConstraintError, message, place=place, help="give one for each, in the same order")
        return wanted


def _portion(wanted: _Wanted, columns: dict[str, Any], place: Place) -> Portion:
    """Converts a portion's columns: lists of cells as they were read, NumPy arrays, or `_Column`."""
    tokens, ends = _joined([_numbers(columns[name], name, place, _CODE) for name in wanted.codes], wanted.codes, place)
    items = weights = None
    if wanted.item is not None:
        items, lists = _numbers(columns[wanted.item], wanted.item, place, _ITEM)
        if lists is not None:
            _refuse("a list for an item number", place, 0, wanted.item)
    if wanted.weights is not None:
        floats = [_numbers(columns[name], name, place, _WEIGHT) for name in wanted.weights]
        weights, others = _joined(floats, wanted.weights, place)
        if (ends is None) != (others is None) or (ends is not None and not np.array_equal(ends, others)):  # type: ignore[arg-type]
            same = ends is not None and others is not None and len(ends) == len(others)
            row = int(np.flatnonzero(ends != others)[0]) if same else 0
            _refuse("not one weight for each code", place, row, wanted.weights[0])
        weights = np.ascontiguousarray(weights)
    return Portion(tokens, ends, items, weights)


def _joined(columns: list[_Column], names: list[str], place: Place) -> _Column:
    """Columns of numbers as a table, or the one column of lists with its ends."""
    lists = [name for name, column in zip(names, columns, strict=True) if column.ends is not None]
    if not lists:
        return _Column(np.stack([column.flat for column in columns], axis=1), None)
    if len(columns) > 1:
        _refuse("a list beside other columns", place, 0, lists[0], "give one column of lists, or columns of numbers")
    empty = np.flatnonzero(np.diff(columns[0].ends, prepend=0) == 0)  # type: ignore[arg-type]
    if len(empty):
        _refuse("an empty list", place, int(empty[0]), names[0], "an item has at least one token")
    return columns[0]


def _numbers(cells: Any, name: str, place: Place, kind: _Kind) -> _Column:
    """A column of numbers of this kind.

    Raises:
        ConstraintError: the first cell that is not one, with its place.
    """
    ends = None
    if isinstance(cells, _Column):
        cells, ends = cells
    elif not isinstance(cells, np.ndarray) and any(map(_is_list, cells[:1])):
        cells, ends = _flattened(cells, name, place)
    where = place if ends is None else lambda at: place(int(np.searchsorted(ends, at, side="right")))
    array = cells if isinstance(cells, np.ndarray) else _from_cells(cells, name, where, kind)
    if kind is _WEIGHT:
        if array.dtype.kind not in "iuf":
            _refuse(f"weights of type {array.dtype}", where, 0, name, "they are numbers")
        with np.errstate(over="ignore"):
            array = array.astype(np.float32)
        if len(bad := np.flatnonzero(~np.isfinite(array))):
            _refuse(f"weight {cells[int(bad[0])]}", where, int(bad[0]), name, "weights are finite float32")
        return _Column(array, ends)
    if array.dtype.kind not in "iuO":
        _refuse(f"{kind.name}s of type {array.dtype}", where, 0, name, "they are whole numbers")
    if len(bad := np.flatnonzero((array < 0) | (array > kind.most))):
        _refuse(f"{kind.name} {array[bad[0]]}", where, int(bad[0]), name, f"{kind.name}s are from 0 to {kind.most:,}")
    return _Column(array.astype(kind.dtype), ends)


def _from_cells(cells: Sequence[Any], name: str, place: Place, kind: _Kind) -> npt.NDArray[Any]:
    """Numbers of a text file's cells: texts of digits, or JSON's numbers."""
    if kind is _WEIGHT:
        return np.array([_float(cell, name, place, at) for at, cell in enumerate(cells)], np.float64)
    if set(map(type, cells)) == {str}:
        together = "".join(cells)
        plain = together.isascii() and together.isdigit() and all(cells)
        if not plain or max(map(len, cells)) > _MAX_DIGITS:
            cells = [cell.strip() for cell in cells]
            for at, cell in enumerate(cells):
                if not (cell.removeprefix("-").isdigit() and cell.isascii()) or len(cell) > _MAX_DIGITS:
                    _refuse(_shown(cell or None, kind), place, at, name)
    else:
        for at, cell in enumerate(cells):
            if type(cell) is not int:
                _refuse(_shown(cell, kind), place, at, name)
    numbers = list(map(int, cells))
    try:
        return np.array(numbers, np.int64)
    except OverflowError:
        return np.array(numbers, object)


def _float(cell: Any, name: str, place: Place, at: int) -> float:
    try:
        if not isinstance(cell, bool) and isinstance(cell, (str, int, float)):
            return float(cell)
    except (ValueError, OverflowError):
        pass
    return _refuse(_shown(None if cell == "" else cell, _WEIGHT), place, at, name)


def _flattened(cells: Sequence[Any], name: str, place: Place) -> _Column:
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
    return _Column(flat, ends)  # type: ignore[arg-type]


def _is_list(cell: Any) -> bool:
    return isinstance(cell, list) or (isinstance(cell, str) and cell.lstrip()[:1] == "[")


def _shown(cell: Any, kind: _Kind) -> str:
    """What is wrong with a cell that is not a number."""
    if cell is None:
        return f"a missing {kind.name}"
    if _is_list(cell):
        return f"a list where other rows have one {kind.name}"
    written = json.dumps(cell) if isinstance(cell, (str, bool, float, dict)) else repr(cell)
    return f"{written[:60]} is no {kind.name}"


def _refuse(message: str, place: Place, at: int, name: str, help: str = "") -> NoReturn:
    raise error(_core.ConstraintError, message, place=f"{place(at)}, column {name!r}", help=help)


# -- files and tables


def portions(
    source: Source, columns: Sequence[str] | None, item: str | None, weights: Sequence[str] | None, tell: Read
) -> Generator[Portion, None, None]:
    """A table's rows in portions; arguments and errors as those of `Catalogue.from_table`."""
    for name, given in (("columns", columns), ("weights", weights)):
        if isinstance(given, str):
            raise TypeError(f"{name} is one text: give a list of names")
    question = _Question(columns, item, weights)
    if not isinstance(source, (str, os.PathLike)):
        if not hasattr(source, "__arrow_c_stream__"):
            raise TypeError(f"a {type(source).__name__} is no table: give a file, or a table with the Arrow interface")
        stream = _pyarrow().RecordBatchReader.from_stream(source)
        rows = getattr(source, "num_rows", None) or getattr(source, "height", None)
        yield from _arrow("table", question, stream.schema.names, lambda _: stream, rows, tell)
        return
    path = Path(source)
    read = _READERS.get(path.suffix.lower())
    if read is None:
        kinds = " ".join(_READERS)
        raise error(_core.PayloadError, f"a table of kind {path.suffix!r}", place=str(path), help=f"read are {kinds}")
    try:
        yield from read(path, question, tell)
    except _core.FileError:
        raise
    except OSError as problem:
        raise _unreadable(path, problem) from problem


def _unreadable(path: Path, problem: OSError) -> _core.FileError:
    return file_error(problem, "cannot be read", place=str(path))


def _lines(path: Path, tell: Read) -> Generator[str, None, None]:
    """The lines of a UTF-8 file with their ends.

    Raises:
        PayloadError: it is not UTF-8.
        FileError: it cannot be read.
    """
    try:
        with path.open("rb") as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as text:
            size = max(os.fstat(raw.fileno()).st_size, 1)
            for number, line in enumerate(text):
                if number % _ROWS == 0:
                    tell(min(raw.tell() / size, 1.0))
                yield line
    except UnicodeDecodeError as problem:
        raise error(_core.PayloadError, f"not UTF-8: {problem.reason}", place=str(path)) from problem
    except OSError as problem:
        raise _unreadable(path, problem) from problem


def _csv(path: Path, question: _Question, tell: Read) -> Iterator[Portion]:
    with closing(_lines(path, tell)) as lines:
        rows = csv.reader(lines, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
        try:
            there = next(rows, None)
            if there is None:
                help = "its first line names the columns"
                raise error(_core.PayloadError, "an empty file", place=str(path), help=help)
            if len(set(there)) != len(there):
                raise error(_core.PayloadError, "two columns of one name", place=f"{path}, line 1")
            wanted = question.of(there, str(path))
            numbered = ((rows.line_num, row) for row in rows if row)
            while some := list(itertools.islice(numbered, _ROWS)):
                for line, row in some:
                    if len(row) > len(there):
                        message = f"{len(row)} cells under {len(there)} names"
                        raise error(_core.PayloadError, message, place=f"{path}, line {line}")
                at = {name: there.index(name) for name in wanted.all()}
                cells = {name: [row[i] if i < len(row) else "" for _, row in some] for name, i in at.items()}
                yield _portion(wanted, cells, _line_of(path, some))
        except csv.Error as problem:
            raise error(_core.PayloadError, str(problem), place=f"{path}, line {rows.line_num}") from problem


def _jsonl(path: Path, question: _Question, tell: Read) -> Iterator[Portion]:
    wanted = None
    with closing(_lines(path, tell)) as lines:
        numbered = ((n, line) for n, line in enumerate(lines, start=1) if not line.isspace())
        while some := list(itertools.islice(numbered, _ROWS)):
            rows = [_object(path, number, line) for number, line in some]
            wanted = wanted or question.of(list(rows[0]), f"{path}, line {some[0][0]}")
            cells = {name: [row.get(name) for row in rows] for name in wanted.all()}
            yield _portion(wanted, cells, _line_of(path, some))


def _line_of(path: Path, some: Sequence[tuple[int, object]]) -> Place:
    return lambda row: f"{path}, line {some[row][0]}"


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise error(_core.PayloadError, f"no JSON: {problem}", place=f"{path}, line {number}") from problem
    if not isinstance(row, dict):
        raise error(_core.PayloadError, "no JSON object", place=f"{path}, line {number}", help="give an object a line")
    return row


def _npy(path: Path, question: _Question, tell: Read) -> Iterator[Portion]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as problem:
        raise error(_core.PayloadError, f"no NumPy array: {problem}", place=str(path)) from problem
    if not isinstance(array, np.ndarray) or array.ndim != 2:
        raise error(_core.PayloadError, "no array of two dimensions", place=str(path), help="one row an item: [N, L]")
    if question != _Question(None, None, None):
        raise error(_core.ConstraintError, "a NumPy array has no columns", place=str(path), help="leave them out")
    wanted = question.of([str(level) for level in range(array.shape[1])], str(path))
    for first in range(0, len(array), _ROWS):
        tell(first / len(array))
        part = np.asarray(array[first : first + _ROWS])
        yield _portion(wanted, {name: part[:, int(name)] for name in wanted.codes}, _row_of(str(path), first))


def _row_of(name: str, first: int) -> Place:
    return lambda row: f"{name}, row {first + row}"


# -- Arrow


def _pyarrow(module: str = "pyarrow") -> Any:
    """pyarrow, or an error that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        raise ImportError("this table takes pyarrow: pip install 'logitree[tables]'") from problem


def _arrow_file(path: Path, question: _Question, tell: Read) -> Iterator[Portion]:
    """A Parquet file, an Arrow file or an Arrow stream."""
    pa, parquet, ipc = _pyarrow(), _pyarrow("pyarrow.parquet"), _pyarrow("pyarrow.ipc")
    is_parquet = path.suffix.lower() == ".parquet"
    try:
        if is_parquet:
            with parquet.ParquetFile(path) as file:
                batches = lambda names: file.iter_batches(batch_size=_ROWS, columns=names)  # noqa: E731
                rows = file.metadata.num_rows
                yield from _arrow(str(path), question, file.schema_arrow.names, batches, rows, tell)
            return
        with pa.memory_map(str(path)) as mapped:
            is_file = mapped.read(6) == b"ARROW1"
            mapped.seek(0)
            file = ipc.open_file(mapped) if is_file else ipc.open_stream(mapped)
            some = (file.get_batch(i) for i in range(file.num_record_batches)) if is_file else file
            yield from _arrow(str(path), question, file.schema.names, lambda _: some, None, tell)
    except pa.ArrowException as problem:
        kind = "Parquet" if is_parquet else "Arrow"
        raise error(_core.PayloadError, f"no {kind} file: {problem}", place=str(path)) from problem


def _arrow(
    place: str,
    question: _Question,
    there: Sequence[str],
    batches: Callable[[list[str]], Iterable[Any]],
    rows: int | None,
    tell: Read,
) -> Iterator[Portion]:
    wanted = question.of(there, place)
    first = 0
    for batch in batches(wanted.all()):
        for at in range(0, batch.num_rows, _ROWS):
            part = batch.slice(at, _ROWS)
            where = _row_of(place, first)
            yield _portion(
                wanted, {name: _arrow_column(part.column(name), name, where) for name in wanted.all()}, where
            )
            first += part.num_rows
            if rows:
                tell(min(first / rows, 1.0))


def _arrow_column(array: Any, name: str, place: Place, inner: bool = False) -> Any:
    """An Arrow array as NumPy, or its lists as one column."""
    types, kind = _pyarrow().types, array.type
    if array.null_count:
        _refuse("a missing value", place, int(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[0]), name)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        if inner:
            _refuse("lists of lists", place, 0, name)
        lengths = array.value_lengths().to_numpy(zero_copy_only=False)
        ends = np.cumsum(lengths, dtype=np.int64)
        where: Place = lambda at: place(int(np.searchsorted(ends, at, side="right")))  # noqa: E731
        return _Column(_arrow_column(array.flatten(), name, where, inner=True), ends)
    if types.is_integer(kind) or types.is_floating(kind):
        return array.to_numpy(zero_copy_only=False)
    _refuse(f"a column of type {kind}", place, 0, name, "codes are whole numbers")


_READERS: dict[str, Callable[[Path, _Question, Read], Iterator[Portion]]] = {
    ".csv": _csv,
    ".tsv": _csv,
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".parquet": _arrow_file,
    ".arrow": _arrow_file,
    ".feather": _arrow_file,
    ".ipc": _arrow_file,
    ".npy": _npy,
}
"""The kinds of files, by their ending."""
