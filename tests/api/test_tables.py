"""Prefix trees from tables and texts: every kind of file gives the same tree, and errors come with their place.

What needs pyarrow or polars is marked peers: it runs with the other libraries that are not installed everywhere.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

import logitree as lt
from logitree.catalogue import _tables

ROWS = [[5, 6, 7], [5, 6, 9], [1, 2, 3], [5, 6, 7]]
NUMBERS = [10, 2**40, 30, 40]
WEIGHTS = [[0.5, 1.5, -2.0], [0.5, 1.5, 0.25], [0.0, 1.0, 2.0], [0.5, 1.5, -2.0]]
LISTS = [[5], [5, 6, 7], [1, 2], [5]]
NAMES = ["a", "b", "c"]
WEIGHT_NAMES = ["wa", "wb", "wc"]


def records() -> list[dict[str, Any]]:
    made = []
    for row, number, weights in zip(ROWS, NUMBERS, WEIGHTS, strict=True):
        made.append(
            {"id": number, **dict(zip(NAMES, row, strict=True)), **dict(zip(WEIGHT_NAMES, weights, strict=True))}
        )
    return made


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """The rows as a table of the kind that the ending says."""
    if path.suffix == ".jsonl":
        path.write_text("\n\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    elif path.suffix in (".csv", ".tsv"):
        comma = "\t" if path.suffix == ".tsv" else ","
        cells = [[f'"{v}"' if isinstance(v, list) else str(v) for v in row.values()] for row in rows]
        lines = map(comma.join, [list(rows[0]), *cells])
        path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    else:
        table = arrow().Table.from_pylist(rows)
        if path.suffix == ".parquet":
            importlib.import_module("pyarrow.parquet").write_table(table, path, row_group_size=3)
        else:
            make = {".arrow": "new_file", ".ipc": "new_stream"}[path.suffix]
            with getattr(importlib.import_module("pyarrow.ipc"), make)(path, table.schema) as file:
                file.write_table(table, max_chunksize=3)
    return path


def arrow() -> Any:
    return pytest.importorskip("pyarrow", reason="pyarrow is not installed")


KINDS = [
    ".csv",
    ".tsv",
    ".jsonl",
    *(pytest.param(kind, marks=pytest.mark.peers) for kind in (".parquet", ".arrow", ".ipc")),
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_gives_the_same_tree(tmp_path: Path, kind: str) -> None:
    table = write(tmp_path / f"t{kind}", records())
    truth = lt.Catalogue.from_codes(np.array(ROWS), items=NUMBERS, weights=np.array(WEIGHTS, np.float32))
    fractions: list[float] = []
    tree = lt.Catalogue.from_table(
        table, NAMES, item="id", weights=WEIGHT_NAMES, path=tmp_path / "index", on_progress=fractions.append
    )
    assert tree.to_bytes() == truth.to_bytes() == (tmp_path / "index").read_bytes()
    assert fractions == sorted(fractions)
    assert (fractions[-1], min(fractions) >= 0) == (1, True)
    others = lt.Catalogue.from_table(table, item="id", weights=WEIGHT_NAMES)
    assert others.to_bytes() == truth.to_bytes()
    backwards = lt.Catalogue.from_table(table, ["c", "a"])
    assert backwards.items([7, 5]).tolist() == [0, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_lists_has_items_of_any_length(tmp_path: Path, kind: str) -> None:
    weights = [[float(token) for token in row] for row in LISTS]
    rows = [{"w": w, "codes": row, "n": n} for w, row, n in zip(weights, LISTS, NUMBERS, strict=True)]
    table = write(tmp_path / f"t{kind}", rows)
    tree = lt.Catalogue.from_table(table, ["codes"], item="n", weights=["w"])
    truth = lt.Catalogue.from_codes(LISTS, items=NUMBERS, weights=weights)
    assert tree.to_bytes() == truth.to_bytes()
    portions = list(lt.catalogue.table_items(table, ["codes"], item="n", weights=["w"]))
    assert [row.tolist() for portion in portions for row in portion.tokens] == LISTS
    assert [int(n) for portion in portions for n in (portion.items if portion.items is not None else [])] == NUMBERS


@pytest.mark.peers
def test_frames_are_tables(tmp_path: Path) -> None:
    table = arrow().Table.from_pylist(records())
    truth = lt.Catalogue.from_codes(np.array(ROWS), items=NUMBERS)
    assert lt.Catalogue.from_table(table, NAMES, item="id").to_bytes() == truth.to_bytes()
    lists = arrow().table({"codes": arrow().array(ROWS, arrow().list_(arrow().int16(), 3))})
    assert lt.Catalogue.from_table(lists.slice(1)).to_bytes() == lt.Catalogue.from_codes(ROWS[1:]).to_bytes()
    with pytest.raises(lt.ConstraintError, match=r"missing value \(at table, row 1, column 'a'\)"):
        lt.Catalogue.from_table(arrow().table({"a": [1, None]}))
    with pytest.raises(lt.ConstraintError, match=r"code -7 \(at table, row 1, column 'a'\)"):
        lt.Catalogue.from_table(arrow().table({"a": [[1, 2], [3, -7]]}))
    with pytest.raises(lt.ConstraintError, match="type float64"):
        lt.Catalogue.from_table(arrow().table({"a": [1.5]}))


@pytest.mark.peers
def test_polars_frames_are_tables() -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    arrow()
    truth = lt.Catalogue.from_codes(np.array(ROWS), items=NUMBERS)
    assert lt.Catalogue.from_table(polars.DataFrame(records()), NAMES, item="id").to_bytes() == truth.to_bytes()


def test_a_numpy_file_is_read_in_place(tmp_path: Path) -> None:
    array = np.random.default_rng(1).integers(0, 300, (70_000, 3)).astype(np.uint16)
    np.save(tmp_path / "t.npy", array)
    assert lt.Catalogue.from_table(tmp_path / "t.npy").to_bytes() == lt.Catalogue.from_codes(array).to_bytes()
    parts = list(lt.catalogue.table_items(tmp_path / "t.npy"))
    assert np.array_equal(np.concatenate([part.tokens for part in parts]), array)
    np.save(tmp_path / "flat.npy", array[0])
    (tmp_path / "no.npy").write_bytes(b"nonsense")
    np.save(tmp_path / "float.npy", array.astype(float))
    for name, why in (("flat", "two dimensions"), ("no", "no NumPy array"), ("float", "codes of type float64")):
        with pytest.raises(lt.LogitreeError, match=why):
            lt.Catalogue.from_table(tmp_path / f"{name}.npy")
    with pytest.raises(lt.ConstraintError, match="no columns"):
        lt.Catalogue.from_table(tmp_path / "t.npy", ["a"])


WRONG = {
    "a,b\n1,2\n3,\n": "a missing code (at {}, line 3, column 'b')",
    "a,b\n1,2\n\n3\n": "a missing code (at {}, line 4, column 'b')",
    'a,b\n1,"2\n"\n-3,4\n': "code -3 (at {}, line 4, column 'a'); codes are from 0 to 2,147,483,647",
    "a,b\n1,2.0\n": "\"2.0\" is no code (at {}, line 2, column 'b')",
    "a,b\n1,2147483648\n": "code 2147483648 (at {}, line 2, column 'b')",
    f"a,b\n1,{'9' * 5000}\n": "is no code (at {}, line 2, column 'b')",
    f"a,b\n1,{'9' * 22}\n": "9999 (at {}, line 2, column 'b')",
    "a,b\n1,2,3\n": "3 cells under 2 names (at {}, line 2)",
    "a,b\n1,٣\n": "is no code (at {}, line 2, column 'b')",
    "a,a\n1,2\n": "two columns of one name (at {}, line 1)",
    "": "an empty file (at {})",
    'a\n"[1, 2]"\n"[3, -1]"\n': "code -1 (at {}, line 3, column 'a')",
    'a\n"[1, 2]"\n"[]"\n': "an empty list (at {}, line 3, column 'a')",
    'a\n"[1, 2]"\n5\n': "'5' is no list (at {}, line 3, column 'a')",
    'a\n"[1, 2"\n': "is no list (at {}, line 2, column 'a')",
    'a\n5\n"[1]"\n': "a list where other rows have one code (at {}, line 3, column 'a')",
    'a,b\n"[1, 2]",3\n': "a list beside other columns (at {}, line 2, column 'a')",
}


@pytest.mark.parametrize(("text", "message"), WRONG.items(), ids=range(len(WRONG)))
def test_what_is_wrong_in_a_csv_file_is_reported_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    table = tmp_path / "t.csv"
    table.write_text(text, encoding="utf-8")
    with pytest.raises((lt.ConstraintError, lt.PayloadError)) as caught:
        lt.Catalogue.from_table(table, path=tmp_path / "index")
    assert message.format(table) in str(caught.value)
    assert not (tmp_path / "index").exists()


def without_y(text: str) -> list[int]:
    return [ord(character) for character in text if character != "y"]


BROKEN = {
    "t.csv": ("a\n-1\n2\n", lt.Catalogue.from_table),
    "t.jsonl": ('{"a": -1}\n{"a": 2}\n', lt.Catalogue.from_table),
    "t.txt": ("y\nx\n", lambda file: lt.Catalogue.from_texts(file, without_y)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_an_error_leaves_no_file_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    text, read = BROKEN[name]
    table = tmp_path / name
    table.write_text(text)
    opened: list[IO[bytes]] = []
    really = Path.open

    def remembered(path: Path, mode: str) -> IO[bytes]:
        opened.append(really(path, mode))  # type: ignore[arg-type]
        return opened[-1]

    monkeypatch.setattr(Path, "open", remembered)
    monkeypatch.setattr(_tables, "_ROWS", 1)
    monkeypatch.setattr(_tables, "_TEXTS", 1)
    with pytest.raises(lt.ConstraintError) as caught:
        read(table)
    assert [file.closed for file in opened] == [True], caught


WRONG_JSON = {
    '{"a": 1}\n{"a": 1.0}\n': "1.0 is no code (at {}, line 2, column 'a')",
    '{"a": 1}\n{"a": true}\n': "true is no code (at {}, line 2, column 'a')",
    '{"a": 1}\n{"b": 1}\n': "a missing code (at {}, line 2, column 'a')",
    '{"a": 1}\n{"a": null}\n': "a missing code (at {}, line 2, column 'a')",
    '{"a": [1, 2]}\n{"a": [1, "x"]}\n': "\"x\" is no code (at {}, line 2, column 'a')",
    '{"a": [[1]]}\n': "a list where other rows have one code",
    '{"a": 1}\n{"a": \n': "no JSON",
    '{"a": 1}\n[1]\n': "no JSON object (at {}, line 2)",
    '{"a": 100000000000000000000}\n': "code 100000000000000000000 (at {}, line 1, column 'a')",
}


@pytest.mark.parametrize(("text", "message"), WRONG_JSON.items(), ids=range(len(WRONG_JSON)))
def test_what_is_wrong_in_json_lines_is_reported_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    table = tmp_path / "t.jsonl"
    table.write_text(text, encoding="utf-8")
    with pytest.raises((lt.ConstraintError, lt.PayloadError)) as caught:
        list(lt.catalogue.table_items(table))
    assert message.format(table) in str(caught.value)


def test_what_is_wrong_with_the_question(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", records())
    with pytest.raises(lt.ConstraintError, match="there is no column 'x'.*there are 'id', 'a'"):
        lt.Catalogue.from_table(table, ["x"])
    with pytest.raises(lt.ConstraintError, match="1 columns of weights for 3 of codes"):
        lt.Catalogue.from_table(table, NAMES, weights=["wa"])
    with pytest.raises(lt.ConstraintError, match=r'"1.5" is no code \(at .*, line 2, column .wb.\)'):
        lt.Catalogue.from_table(table, ["a", "wb"])
    with pytest.raises(TypeError, match="columns is one text"):
        lt.Catalogue.from_table(table, "abc")
    with pytest.raises(TypeError, match="a dict is no table"):
        lt.Catalogue.from_table({"a": [1]})
    with pytest.raises(FileNotFoundError, match="absent.csv"):
        lt.Catalogue.from_table(tmp_path / "absent.csv")
    with pytest.raises(lt.FileError, match="absent.npy"):
        lt.Catalogue.from_table(tmp_path / "absent.npy")
    with pytest.raises(lt.PayloadError, match=r"kind '.xls'.*\.parquet"):
        lt.Catalogue.from_table(tmp_path / "t.xls")
    (tmp_path / "l.csv").write_bytes(b"a\n\xff\n")
    with pytest.raises(lt.PayloadError, match="not UTF-8"):
        lt.Catalogue.from_table(tmp_path / "l.csv")
    weights = tmp_path / "w.jsonl"
    for bad, why in (
        ("NaN", "weight nan"),
        ("1e39", "weight 1e.39"),
        ('"x"', '"x" is no weight'),
        ("null", "missing weight"),
    ):
        weights.write_text(f'{{"a": 1, "w": 0}}\n{{"a": 2, "w": {bad}}}\n', encoding="utf-8")
        with pytest.raises(lt.ConstraintError, match=f"{why}.*line 2, column 'w'"):
            lt.Catalogue.from_table(weights, ["a"], weights=["w"])
    weights.write_text('{"a": [1], "w": [0]}\n{"a": [2, 3], "w": [0]}\n', encoding="utf-8")
    with pytest.raises(lt.ConstraintError, match="not one weight for each code.*line 2"):
        lt.Catalogue.from_table(weights, ["a"], weights=["w"])


@pytest.mark.peers
def test_files_that_are_not_arrows(tmp_path: Path) -> None:
    arrow()
    for kind in (".parquet", ".arrow"):
        (tmp_path / f"t{kind}").write_bytes(b"nonsense, and more of it")
        with pytest.raises(lt.PayloadError, match="no (Parquet|Arrow) file"):
            lt.Catalogue.from_table(tmp_path / f"t{kind}")
        with pytest.raises(lt.FileError, match="absent"):
            lt.Catalogue.from_table(tmp_path / f"absent{kind}")


def test_without_pyarrow_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'logitree\[tables\]'"):
        lt.Catalogue.from_table(tmp_path / "t.parquet")


def test_many_rows_come_in_portions(tmp_path: Path) -> None:
    array = np.random.default_rng(2).integers(0, 1000, (140_000, 2))
    table = tmp_path / "t.csv"
    np.savetxt(table, array, fmt="%d", delimiter=",", header="a,b", comments="")
    parts = list(lt.catalogue.table_items(table))
    assert len(parts) == 3
    assert np.array_equal(np.concatenate([part.tokens for part in parts]), array)
    assert lt.Catalogue.from_table(table, memory=1 << 20).to_bytes() == lt.Catalogue.from_codes(array).to_bytes()


def spell(text: str) -> list[int]:
    return list(text.encode())


def test_texts_are_numbered_by_their_place(tmp_path: Path) -> None:
    titles = ["Dune", "Emma", "Dune", "Dune II"]
    tree = lt.Catalogue.from_texts(titles, spell)
    assert tree.items(spell("Dune")).tolist() == [0, 2]
    assert tree.items(spell("Dune II")).tolist() == [3]
    assert (len(tree), tree.info()["nested"]) == (4, True)
    file = tmp_path / "titles.txt"
    file.write_text("Dune\n\nEmma\r\nD\u2028e", encoding="utf-8")
    fractions: list[float] = []
    tree = lt.Catalogue.from_texts(file, spell, path=tmp_path / "index", on_progress=fractions.append)
    assert [tree.items(spell(t)).tolist() for t in ("Dune", "", "Emma", "D\u2028e")] == [[0], [], [2], [3]]
    assert fractions[-1] == 1
    many = [f"title {n}" for n in range(20_000)]
    assert lt.Catalogue.from_texts(iter(many), spell).items(spell("title 19999")).tolist() == [19_999]
    with pytest.raises(lt.ConstraintError, match=r"'' has no tokens \(at text 1\)"):
        lt.Catalogue.from_texts(["a", ""], spell)
    with pytest.raises(TypeError, match="one text"):
        lt.Catalogue.from_texts("Dune", spell)
    with pytest.raises(lt.FileError, match="absent"):
        lt.Catalogue.from_texts(tmp_path / "absent", spell)
