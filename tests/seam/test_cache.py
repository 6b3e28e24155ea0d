"""The cache of compiled token trees: what it keeps, what it never drops, and many threads at once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import logitree as lt

cache = lt.elizaos.token_tree_cache


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


def payload(n: int, model_id: str = "m") -> str:
    leaves = [{"name": f"A{n}", "tokens": [n, n + 1]}]
    return json.dumps({"modelId": model_id, "descriptors": [{"path": "p", "leaves": leaves}]})


def change(before: dict[str, int], *keys: str) -> list[int]:
    after = cache.info()
    return [after[key] - before[key] for key in keys]


def test_the_same_content_is_built_once() -> None:
    before = cache.info()
    first = lt.elizaos.token_tree(payload(1))
    lt.elizaos.token_tree(payload(1).encode())
    lt.elizaos.token_tree(payload(1), on_mismatch="warn")  # another way to build it: another entry
    assert change(before, "misses", "hits") == [2, 1]
    [_, entry] = cache.entries()
    assert entry["in_use"]
    assert entry["hits"] == 1
    assert (entry["model_id"], entry["paths"], entry["nodes"]) == ("m", ["p"], 3)
    assert len(entry["digest"]) == 32
    assert entry["bytes"] > len(payload(1))
    del first
    assert not any(entry["in_use"] for entry in cache.entries())
    assert len(cache) == 2
    assert "2 of 128 entries" in repr(cache)


def test_dicts_are_kept_by_content_too() -> None:
    before = cache.info()
    one: dict[str, Any] = json.loads(payload(1))
    lt.elizaos.token_tree(one)
    lt.elizaos.token_tree(json.loads(payload(1)))
    one["descriptors"][0]["leaves"][0]["tokens"].append(9)
    assert lt.elizaos.token_tree(one).leaves() == [("A1", [1, 2, 9])]
    assert change(before, "misses", "hits") == [2, 1]


def test_another_vocabulary_is_another_entry() -> None:
    text = json.dumps({"descriptors": [{"path": "p", "leaves": [{"name": "A", "tokens": [0]}]}]})
    lt.elizaos.token_tree(text)
    lt.elizaos.token_tree(text, lt.Vocabulary.from_tokens([b"A"]))
    with pytest.raises(lt.PayloadError):
        lt.elizaos.token_tree(text, lt.Vocabulary.from_tokens([b"B"]))
    lt.elizaos.token_tree(text, model_id="m")
    assert len(cache) == 3


def test_at_most_128_are_kept() -> None:
    held = [lt.elizaos.token_tree(payload(n)) for n in range(128)]
    before = cache.info()
    assert lt.elizaos.token_tree(payload(999)).leaves() == [("A999", [999, 1000])]
    assert change(before, "misses", "bypassed", "entries", "evicted") == [1, 1, 0, 0]
    held.pop()
    lt.elizaos.token_tree(payload(999))
    assert change(before, "bypassed", "entries", "evicted") == [1, 0, 1]


def test_clear_leaves_trees_in_use_alone() -> None:
    tree = lt.elizaos.token_tree(payload(1))
    matcher = tree.at("p").matcher()
    cache.clear()
    assert len(cache) == 0
    assert cache.entries() == []
    assert tree.leaves() == [("A1", [1, 2])]
    assert matcher.forced_tokens() == [1, 2]


def test_threads_share_it() -> None:
    start = threading.Barrier(8)

    def work(seed: int) -> None:
        start.wait()
        for i in range(400):
            n = (seed * 7 + i * 13) % 300
            matcher = lt.elizaos.token_tree(payload(n)).at("p").matcher()
            assert matcher.forced_tokens() == [n, n + 1]
            if i % 97 == 0:
                cache.clear()
            if i % 31 == 0:
                assert len(cache.entries()) <= 128

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    assert len(cache) <= 128
