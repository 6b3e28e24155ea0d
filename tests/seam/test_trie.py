"""The trie through Python: look-ups, tables of any dtype, masks that are written into, threads.

`crates/logitree/tests/it/trie.rs` compares walks and look-ups with scans.
"""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pytest

import logitree as lt

TOKENS = [
    *(b"\n", b" ", b" cat", b" dog", b'"', b'":', b"1", b"10", b"100", b"12", b"a", b"cat", b"cat", b"cats"),
    *(
        b"do",
        b"dog",
        b"no",
        b"o",
        b"ok",
        b"to",
        b"top",
        b"\xc3\xa9",
        b"\xe4",
        b"\xe4\xbd\xa0",
        b"\xe4\xbd\xa5",
    ),
    b"<end>",
]
"""The 26 tokens drawn in crates/logitree/tests/it/support; the last is control."""

DEAD = 0xFFFF


@pytest.fixture(scope="module")
def small() -> lt.Vocabulary:
    return lt.Vocabulary.from_tokens(TOKENS, end_tokens=[25])


def language(*rows: dict[str, int], dtype: type = np.uint16) -> npt.NDArray[np.uint16]:
    """A table from one dictionary a state: characters -> next state."""
    table = np.full((len(rows), 256), np.iinfo(dtype).max, dtype)
    for state, row in enumerate(rows):
        for characters, to in row.items():
            table[state, list(characters.encode())] = to
    return table


def test_look_ups(small: lt.Vocabulary) -> None:
    trie = small.trie
    assert (len(trie), trie.token_count, trie.max_depth) == (36, 25, 4)
    assert repr(trie) == "TokenTrie(25 tokens, 36 nodes, max_depth=4)"
    assert trie.lookup(b"cat") == [11, 12]
    assert trie.lookup(b"ca") == []
    assert trie.lookup(b"<end>") == []
    assert b"cat" in trie
    assert b"ca" not in trie
    assert b"<end>" not in trie
    assert trie.has_prefix(b"ca")
    assert trie.has_prefix(b"")
    assert not trie.has_prefix(b"cab")
    assert trie.with_prefix(b"1") == [6, 7, 8, 9]
    assert trie.with_prefix(b"x") == []
    assert trie.longest_match(b"cats and dogs") == (13, 4)
    assert trie.longest_match(b"zebra") is None
    assert trie.prefixes(b"cats") == [(11, 3), (12, 3), (13, 4)]
    assert trie.prefixes(b"") == []
    assert trie.memory > 8 * len(trie)


def test_dumps(small: lt.Vocabulary) -> None:
    assert small.trie.dump(b"1", depth=1) == "1 6\n├─ 0 7 …\n└─ 2 9\n(1 nodes below are not shown)\n"
    assert len(small.trie.dump(max_nodes=3).splitlines()) == 5
    dot = small.trie.graphviz(b"1", max_nodes=2)
    assert dot.startswith("digraph trie {")
    assert dot.count(" -> ") == 2


def test_a_limit_is_an_error() -> None:
    v = lt.Vocabulary.from_tokens([b"a", b"x" * 1024])
    with pytest.raises(lt.LimitError, match="token 1 has 1024 bytes"):
        v.trie  # noqa: B018 - the getter builds it


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.int32])
def test_allowed_is_what_the_table_reads(small: lt.Vocabulary, dtype: type) -> None:
    table = language({"cdo ": 1}, {"catdogsk": 1}, dtype=dtype)
    given = {"dead": int(np.iinfo(dtype).max)} if dtype is np.int32 else {}
    for start, pattern in enumerate((b"[cdo ][catdogsk]*", b"[catdogsk]+")):
        mask = small.trie.allowed(table, start, **given)
        assert (mask.dtype, mask.shape) == (np.int32, (1,))
        assert lt.masks.to_ids(mask).tolist() == [i for i, t in enumerate(TOKENS[:-1]) if re.fullmatch(pattern, t)]
    table[table == np.iinfo(dtype).max] = 0
    mask = small.trie.allowed(table, 1, 0)
    assert lt.masks.to_ids(mask).tolist() == [10, 11, 12, 13, 14, 15, 17, 18, 19]


def test_allowed_writes_into_out(small: lt.Vocabulary) -> None:
    table = language({"1": 0})
    batch = lt.masks.new(100, rows=2, fill=True)
    assert small.trie.allowed(table, out=batch[1]) is not None
    assert batch.tolist() == [lt.masks.new(100, fill=True).tolist(), [1 << 6, 0, 0, 0]]
    for out in (np.zeros(0, np.int32), np.zeros((2, 1), np.int32), np.zeros(1, np.int64), [0]):
        with pytest.raises(lt.MaskError):
            small.trie.allowed(table, out=out)  # type: ignore[arg-type]
    frozen = lt.masks.new(26)
    frozen.flags.writeable = False
    with pytest.raises(lt.MaskError, match="read-only"):
        small.trie.allowed(table, out=frozen)


def test_strange_tables_are_refused(small: lt.Vocabulary) -> None:
    fine = language({"a": 1}, {"b": 0})
    strange = fine.copy()
    strange[1, 7] = 2
    with pytest.raises(lt.ConstraintError, match=r"next state 2 is not below 2 \(at state 1, byte 7\)"):
        small.trie.allowed(strange)
    for table, start, dead in [
        (fine.astype(np.float32), 0, None),
        (fine.astype(np.uint64), 0, None),
        (fine[:, :255], 0, None),
        (fine[:, ::-1], 0, None),
        (fine.T, 0, None),
        (fine[:0], 0, None),
        (np.zeros((2, 2, 256), np.uint16), 0, None),
        (fine.astype(">u2"), 0, None),
        (fine.tolist(), 0, None),
        (fine, 2, None),
        (fine, -1, None),
        (fine, 1 << 40, None),
        (fine, DEAD, None),
        (fine, 0, -1),
        (fine, 0, 0),
        (fine, 0, 1 << 16),
        (np.zeros((2, 512), np.uint16)[:, :256], 0, None),
    ]:
        with pytest.raises(lt.ConstraintError):
            small.trie.allowed(table, start, dead)  # type: ignore[arg-type]
        with pytest.raises(lt.ConstraintError):
            small.trie.count_visited(table, start, dead)  # type: ignore[arg-type]


def test_visited_nodes_by_hand(small: lt.Vocabulary) -> None:
    # twelve children of the root; below "1": 0 2, below "10": 0
    assert small.trie.count_visited(language({"10": 0})) == 12 + 2 + 1
    everything = np.zeros((1, 256), np.uint16)
    assert small.trie.count_visited(everything) == len(small.trie) - 1


def test_many_threads_build_one_trie() -> None:
    v = lt.Vocabulary.from_tokens([bytes([a, b]) for a in range(256) for b in range(64)])
    start = threading.Barrier(4)

    def nodes(_: int) -> int:
        start.wait()
        return len(v.trie)

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(nodes, range(4))) == [1 + 256 + 256 * 64] * 4
