"""Catalogues from Python: what they are built from, walks, changes, files, threads, errors.

`crates/logitree/tests/it/catalogue_operations.rs` compares every question with a set of items.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logitree as lt

Items = dict[tuple[int, ...], set[int]]


def walk(paths: lt.catalogue.ItemWalk) -> Items:
    """Every item, found by following every continuation."""
    found: Items = {}
    open_places = [(paths.start, ())]
    while open_places:
        state, tokens = open_places.pop()
        if items := paths.items(state).tolist():
            found[tokens] = set(items)
        for token in paths.allowed(state).tolist():
            if token != paths.end:
                step = paths.find([token], state)
                assert step is not None
                open_places.append((step, (*tokens, token)))
    return found


def as_items(rows: Any, numbers: Any = None) -> Items:
    found: Items = {}
    for number, row in zip(numbers if numbers is not None else range(len(rows)), rows, strict=True):
        found.setdefault(tuple(int(t) for t in row), set()).add(int(number))
    return found


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.uint64])
def test_an_array_is_a_catalogue(dtype: Any) -> None:
    rows = np.random.default_rng(1).integers(0, 30, (500, 3)).astype(dtype)
    tree = lt.Catalogue.from_codes(rows)
    assert (len(tree), tree.repeated) == (500, 0)
    assert walk(tree.walk()) == as_items(rows)
    assert rows[7].tolist() in tree
    assert [99, 1, 1] not in tree
    assert rows[7].tolist()[:2] not in tree


def test_rows_of_any_length_with_numbers_of_their_own() -> None:
    rows = [[5], [5, 6], [5, 6, 7], [1, 2], [5, 6]]
    tree = lt.Catalogue.from_codes(rows, items=[10, 20, 30, 2**40, 21])
    assert walk(tree.walk(end_token=9)) == as_items(rows, [10, 20, 30, 2**40, 21])
    assert tree.items([5, 6]).tolist() == [20, 21]
    assert tree.info()["nested"]
    paths = tree.walk(end_token=9)
    state = paths.find([5, 6])
    assert state is not None
    assert paths.allowed(state).tolist() == [7, 9]
    assert paths.is_item([paths.start, state]).tolist() == [False, True]
    assert len(lt.Catalogue.from_codes(rows + rows, items=[1, 2, 3, 4, 5] * 2)) == 5
    assert lt.Catalogue.from_codes(rows + rows, items=[1, 2, 3, 4, 5] * 2).repeated == 5


def test_a_file_opens_as_it_was_written(tmp_path: Path) -> None:
    rows = np.random.default_rng(2).integers(0, 300, (4000, 4))
    fractions: list[float] = []
    tree = lt.Catalogue.from_codes(rows, path=tmp_path / "index", memory=20_000, on_progress=fractions.append)
    assert fractions[0] == 0
    assert fractions[-1] == 1
    assert fractions == sorted(fractions)
    assert [file.name for file in tmp_path.iterdir()] == ["index"]
    again = lt.Catalogue.open(tmp_path / "index")
    again.check()
    assert walk(again.walk()) == walk(tree.walk()) == as_items(rows)
    assert (tmp_path / "index").read_bytes() == lt.Catalogue.from_codes(
        rows[::-1], items=range(3999, -1, -1)
    ).to_bytes()
    assert lt.Catalogue.from_bytes(again.to_bytes()).info() == again.info()


def test_a_deadline_ends_a_build(tmp_path: Path) -> None:
    path = tmp_path / "items.index"
    with lt.Deadline(0), pytest.raises(lt.LimitError, match="deadline"):
        lt.Catalogue.from_codes(np.arange(12).reshape(6, 2), path=path)
    assert not list(tmp_path.iterdir())


def test_changes_are_seen_by_those_who_come_later(tmp_path: Path) -> None:
    rows = [[1, 2], [1, 2], [1, 3], [4]]
    tree = lt.Catalogue.from_codes(rows)
    before = tree.walk()
    assert tree.add([[5, 6], [1, 3]], items=[10, 11]) == 2
    assert tree.remove([[1, 2]], items=[0]) == 1
    assert tree.remove([[1, 2]], items=[0]) == 0
    assert tree.remove([(4,), [5, 6]]) == 2
    assert walk(tree.walk()) == {(1, 2): {1}, (1, 3): {2, 11}}
    tree.merge(tmp_path / "merged")
    assert tree.remove(items=[11, 99]) == 1
    assert walk(tree.walk(end_token=9)) == {(1, 2): {1}, (1, 3): {2}}
    assert walk(before) == as_items(rows)
    tree.reload(tmp_path / "merged")
    assert len(tree) == len(lt.Catalogue.open(tmp_path / "merged")) == 3


def test_numbers_that_are_not_given_go_on_from_the_largest(tmp_path: Path) -> None:
    tree = lt.Catalogue.from_codes([[1], [2], [3]])
    tree.remove(items=[0, 2])
    tree.add([[4], [5, 6]])
    assert (tree.items([4]).tolist(), tree.items([5, 6]).tolist()) == ([3], [4])
    tree.remove([[5, 6]])
    tree.add(np.array([[7]]), items=[100])
    tree.remove(items=[100])
    tree.add(np.array([[8], [9]]))
    assert (tree.items([8]).tolist(), tree.items([9]).tolist()) == ([101], [102])
    tree.remove(items=[102])
    tree.merge(tmp_path / "index")
    tree.add([[10]])
    assert tree.items([10]).tolist() == [103]
    again = lt.Catalogue.open(tmp_path / "index")
    again.add([[10]])
    assert again.items([10]).tolist() == [102], "a file knows the numbers that are in it"
    tree.reload(tmp_path / "index")
    with pytest.raises(lt.ConstraintError, match=r"without tokens \(at item 1"):
        tree.add([[11], []])
    tree.add([[11]])
    assert tree.items([11]).tolist() == [102], "what was not added takes no number"
    empty = lt.Catalogue.from_codes([])
    empty.add([[1], [1]])
    assert empty.items([1]).tolist() == [0, 1]
    empty.add([[2]], items=[2**64 - 1])
    with pytest.raises(lt.LimitError, match="no item number is left"):
        empty.add([[3]])
    builder = lt.catalogue.CatalogueBuilder()
    builder.add([[1], [2]], items=[7, 3])
    builder.add([[3]])
    assert builder.finish().items([3]).tolist() == [8]


def test_only_what_is_allowed() -> None:
    rows = np.random.default_rng(4).integers(0, 90, (3000, 3))
    tree = lt.Catalogue.from_codes(rows)
    tree.add([[1, 2, 3, 4], [1, 2]], items=[3001, 3002])
    flags = np.zeros(3002, bool)
    flags[::7] = True
    flags[3001] = True
    truth = as_items(rows[::7], range(0, 3000, 7))
    truth.setdefault((1, 2, 3, 4), set()).add(3001)
    assert walk(tree.walk(allowed=flags, end_token=99)) == truth
    assert walk(tree.walk(allowed=np.flatnonzero(flags), end_token=99)) == truth
    nothing = tree.walk(allowed=[], end_token=99)
    assert len(nothing) == 0
    assert nothing.allowed(nothing.start).tolist() == [99]
    with pytest.raises(lt.ConstraintError, match="no item"):
        nothing.matcher()


def test_columns_are_taken_in_every_layout() -> None:
    paths = lt.Catalogue.from_codes([[1, 2, 3], [1, 2, 4], [5, 6, 7]]).walk()
    states, scores, owners = (
        np.array([paths.start, -9, paths.start, -9]),
        np.array([1.0, 9, 2, 9]),
        np.array([0, 9, 1, 9]),
    )
    logits = np.zeros((2, 10), np.float32)
    expected = paths.top(states[::2].copy(), logits, scores[::2].copy(), 3, groups=owners[::2].copy())
    assert expected.tokens.tolist() == [1, 5, 1, 5]
    for change in (
        lambda column: column[::2],
        lambda column: column[::2].tolist(),
        lambda column: column[::2].astype(np.float32 if column.dtype == float else np.int32),
    ):
        found = paths.top(change(states), logits, change(scores), 3, groups=change(owners))
        assert found.tokens.tolist() == expected.tokens.tolist()
        assert found.scores.tolist() == expected.scores.tolist()


@pytest.mark.parametrize("width", [-1, 2**70, 1.5, True, "3", None])
def test_a_width_that_is_none(width: Any) -> None:
    paths = lt.Catalogue.from_codes([[1]]).walk()
    with pytest.raises(lt.SamplingError, match="width"):
        paths.top([paths.start], np.zeros((1, 2), np.float32), None, width)


def test_readers_go_on_while_one_writes() -> None:
    rows = np.random.default_rng(7).integers(0, 64, (20_000, 3))
    tree = lt.Catalogue.from_codes(rows)
    fixed = [row for row in rows[:200].tolist() if row[0] != 63]
    wrong: list[str] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            paths = tree.walk()
            for row in fixed:
                state = paths.find(row)
                if state is None or not len(paths.items(state)):
                    wrong.append(f"{row} is gone")
            if len(paths) < 19_000:
                wrong.append(f"{len(paths)} items")

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for turn in range(300):
        tree.add([[63, turn, 1], [64 + turn, 1, 1, 1]], items=[50_000 + turn, 60_000 + turn])
        tree.remove([[63, turn, 1]])
        if turn == 150:
            tree.merge()
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    assert len(tree) == 20_000 - int((rows[:, 0] == 63).sum()) + 300 + sum(
        1 for row in rows.tolist() if row[0] == 63 and not (row[1] < 300 and row[2] == 1)
    )


def test_masks_are_the_allowed_tokens() -> None:
    tree = lt.Catalogue.from_codes([[3, 70], [40, 1]])
    paths = tree.walk(end_token=99)
    states = paths.advance([paths.start, paths.start], [3, 5])
    masks = paths.mask([paths.start, *states.tolist(), -1])
    assert masks.shape == (4, 4)
    allowed = [[bit for bit in range(128) if row[bit // 32] >> (bit % 32) & 1] for row in masks.astype(np.int64)]
    assert allowed == [[3, 40], [70], [99], [99]]
    with pytest.raises(lt.MaskError):
        paths.mask([paths.start], np.zeros((1, 1), np.int32))
    out = np.full((2, 4), 5, np.int32)
    with pytest.raises(lt.MaskError, match="rows"):
        paths.mask([paths.start], out)
    assert (out == 5).all()
    with pytest.raises(lt.StateError, match="row 1"):
        paths.mask([paths.start, 1 << 40], out)
    assert not out.any(), "an error must not leave masks of rows before it"


def test_a_matcher_generates_one_item() -> None:
    vocabulary = lt.Vocabulary.from_tokens([b"%d" % n for n in range(81)])
    matcher = lt.Catalogue.from_codes([[3, 70], [3, 80, 9]]).matcher(vocabulary)
    assert matcher.forced_tokens() == [3]
    matcher.accept(3)
    assert list(matcher.allowed()) == [70, 80]
    with pytest.raises(lt.TokenError, match="allowed: 70, 80"):
        matcher.accept(9)
    matcher.accept(70)
    assert matcher.is_finished
    with pytest.raises(lt.ConstraintError, match="end_token="):
        lt.Catalogue.from_codes([[3], [3, 4]]).matcher(vocabulary)
    nested = lt.Catalogue.from_codes([[3], [3, 4]]).matcher(vocabulary, end_token=2)
    nested.accept(3)
    assert list(nested.allowed()) == [2, 4]
    assert not nested.is_accepting
    nested.accept(2)
    assert nested.is_finished


@pytest.mark.parametrize(
    ("tokens", "options", "says"),
    [
        ([[1, -2]], {}, "token -2"),
        ([[1, 2**31]], {}, "token 2147483648"),
        ([[]], {}, "without tokens"),
        ([[1.5]], {}, "item 0"),
        ([["a"]], {}, "item 0"),
        ([[1]] * 3, {"items": [1, 2]}, "2 item numbers for 3"),
        ([[1]], {"items": [-1]}, "from 0 up"),
        ([[1]], {"items": [1.5]}, "from 0 up"),
        ([[1]], {"items": ["a", "b"]}, "2 keys for 1"),
        ([[1], [2]], {"items": ["a", "a"]}, r"'a'|\"a\" is given twice.*item 1"),
        ([[1], [2]], {"items": ["a", 2]}, "2 among keys.*item 1"),
        ([[1]], {"items": [""]}, "an empty key.*item 0"),
        ([[1, 2]], {"weights": [[0.5]]}, "differ in number"),
        ([[1, 2]], {"weights": [[0.5, float("nan")]]}, "NaN"),
        ([[1, 2], [1, 3]], {"weights": [[0.5, 0], [0.25, 0]]}, "two weights"),
        (np.zeros((2, 2, 2), int), {}, "3 dimensions"),
        (np.zeros((2, 2)), {}, "dtype float64"),
        (np.zeros((2, 2), int), {"weights": np.zeros((2, 3))}, "shape"),
        (np.zeros((2, 0), int), {}, "without tokens"),
    ],
)
def test_what_is_no_catalogue(tokens: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(lt.ConstraintError, match=says):
        lt.Catalogue.from_codes(tokens, **options)


def test_other_mistakes(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="not text"):
        lt.Catalogue.from_codes("abc")  # type: ignore[arg-type]
    with pytest.raises(lt.LimitError, match="4096"):
        lt.Catalogue.from_codes([[1] * 5000])
    with pytest.raises(lt.FileError, match="absent"):
        lt.Catalogue.from_codes([[1]], path=tmp_path / "absent" / "index")
    with pytest.raises(FileNotFoundError):
        lt.Catalogue.open(tmp_path / "absent")
    (tmp_path / "other").write_bytes(b"GGUF" * 5000)
    with pytest.raises(lt.PayloadError, match="not an index"):
        lt.Catalogue.open(tmp_path / "other")
    tree = lt.Catalogue.from_codes([[1]])
    with pytest.raises(lt.ConstraintError, match="nothing to remove"):
        tree.remove()
    assert tree.remove(items=[2**64 - 1]) == 0
    with pytest.raises(OverflowError):
        tree.remove(items=[-1])
    with pytest.raises(lt.ConstraintError, match="item number -1"):
        tree.remove(items=np.array([-1]))
    with pytest.raises(lt.ConstraintError, match="another vocabulary"):
        tree.walk(end_token=5, vocabulary=5)
    with pytest.raises(lt.SamplingError, match="tokens for"):
        tree.walk().advance([0], [1, 2])

    def stop(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lt.Catalogue.from_codes([[1]], path=tmp_path / "index", on_progress=stop)
    assert not (tmp_path / "index").exists()


def test_what_was_removed_needs_no_logit() -> None:
    tree = lt.Catalogue.from_codes([[0], *([token] for token in range(10, 1000, 10))])
    tree.remove([[990]])
    paths = tree.walk()
    logits = np.zeros((1, 1000), np.float32)
    logits[0, 990] = np.nan
    for given in (logits, logits[:, :985]):
        assert len(paths.top([paths.start], given, None, 500).tokens) == 99
    with pytest.raises(lt.LogitsError, match="980"):
        paths.top([paths.start], logits[:, :975], None, 500)


def test_damage_below_a_wide_node_opens_nothing() -> None:
    tree = lt.Catalogue.from_codes([[a, b] for a in range(86) for b in range(70)])
    data = bytearray(tree.to_bytes())
    vocabulary = lt.Vocabulary.from_tokens([b"%d" % n for n in range(86)])
    refused = 0
    for page in range(1, len(data) // 4096):
        damaged = data.copy()
        damaged[page * 4096 + 20] ^= 1
        try:
            other = lt.Catalogue.from_bytes(bytes(damaged))
            other.remove([[85, 69]])
            matcher = other.matcher(vocabulary)
            assert list(matcher.allowed()) == list(range(86))
            for token in range(86):
                fork = matcher.fork()
                fork.accept(token)
                assert list(fork.allowed()) == list(range(69 if token == 85 else 70))
        except lt.PayloadError:
            refused += 1
    assert refused > 10


def test_a_change_within_a_change_is_refused(tmp_path: Path) -> None:
    tree = lt.Catalogue.from_codes([[1, 2]], path=tmp_path / "index")

    def within(_: float) -> None:
        tree.add([[3]])

    with pytest.raises(lt.StateError, match="while it is being changed"):
        tree.merge(on_progress=within)
    assert len(tree) == 1
    waiting: list[str] = []

    def slowly(done: float) -> None:
        if done == 0:
            thread = threading.Thread(target=lambda: (tree.reload(tmp_path / "index"), waiting.append("reloaded")))
            thread.start()
            waiting.append("begun")

    tree.merge(tmp_path / "merged", on_progress=slowly)
    for _ in range(1000):
        if len(waiting) == 2:
            break
        threading.Event().wait(0.01)
    assert waiting == ["begun", "reloaded"]
    assert tree.path == str(tmp_path / "index")


def test_a_small_change_waits_for_a_merge_that_reports_its_progress() -> None:
    tree = lt.Catalogue.from_codes([[1, 2], [1, 3]])
    changing = threading.Thread(target=lambda: tree.add([[4, 5]], items=[7]))

    def slowly(_: float) -> None:
        if changing.ident is None:
            changing.start()
        threading.Event().wait(0.01)

    tree.merge(on_progress=slowly)
    changing.join(timeout=60)
    assert not changing.is_alive() and [4, 5] in tree and len(tree) == 3


def test_durable_changes_are_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "index"
    lt.Catalogue.from_codes([[1, 2], [1, 3]], items=["a", "b"], path=path)
    tree, other = lt.Catalogue.open(path, durable=True), lt.Catalogue.open(path, durable=True)
    assert tree.add([[4, 5, 6], [1, 3]], items=["c", "d"]) == 2
    assert (other.remove([[1, 2]]), other.remove(items=["c"])) == (1, 1)
    for seen in (other, lt.Catalogue.open(path), lt.Catalogue.from_bytes(path.read_bytes())):
        assert (len(seen), seen.items([1, 3]), [4, 5, 6] in seen) == (2, ["b", "d"], False)
    assert [4, 5, 6] in tree
    tree.reload(path)
    assert [4, 5, 6] not in tree
    with pytest.raises(lt.StateError, match="durable"):
        tree.merge()
    tree.merge(path)
    with pytest.raises(lt.StateError, match="replaced"):
        other.add([[7]], items=["e"])
    assert tree.add([[7]], items=["e"]) == 1
    assert lt.Catalogue.open(path).items([7]) == ["e"]
    lt.Catalogue.open(path).add([[8]], items=["f"])
    assert [8] not in lt.Catalogue.open(path)


def test_flags_may_be_a_list() -> None:
    tree = lt.Catalogue.from_codes([[1], [2], [3]])
    assert set(walk(tree.walk(allowed=[True, False, True]))) == {(1,), (3,)}
    assert set(walk(tree.walk(allowed=[0, 1]))) == {(1,), (2,)}
    with pytest.raises(lt.ConstraintError, match="end token"):
        tree.walk(end_token=2**32 - 1)
    with pytest.raises(lt.LimitError):
        tree.walk(vocabulary=2**62)
