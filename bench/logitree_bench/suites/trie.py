"""The vocabulary trie: building it, and the cost of a mask by walking it, for each node and as a whole.

A visited node is one whose byte the plain walk tests: a refused node counts, the subtree skipped with it does
not. Our walk takes whole subtrees without visiting them, so its figure a node is its time divided by what the
plain walk would have visited; the time of the whole mask is given too.

Beside us: llguidance's first mask for a regular expression of the same language and the same vocabulary, from
a fresh matcher, so that nothing is cached for it; building the matcher is not counted. It includes what
a grammar engine does besides walking. Ours includes checking the table.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import logitree as lt
from logitree_bench import Bench, Skip, optional, vocabulary_file
from logitree_bench.suites._automata import REGEX, Table, random_tables, tables

NODE_TARGET_NS = 4.0
"""13 cycles at 3.3 GHz, the notes' figure."""

FEW_NODES = 1000
"""Walks of fewer nodes have no target a node: what they cost is clearing, checking and handing over a mask."""

SOME_TEXT = b"the quick brown fox"


def run(bench: Bench) -> None:
    """Measure each vocabulary."""
    for name in ("llama-bpe", "gemma-4"):
        path = vocabulary_file(name)
        if isinstance(path, Skip):
            bench.skip(f"{name}", path.reason)
            continue
        vocabulary = lt.Vocabulary.from_gguf(str(path))
        label = f"{name} {len(vocabulary):,}"
        build(bench, label, vocabulary)
        walks(bench, label, vocabulary)


def build(bench: Bench, label: str, vocabulary: lt.Vocabulary) -> None:
    """A new trie of the same tokens; what it costs to make the vocabulary is taken off."""
    trie = vocabulary.trie
    tokens = list(vocabulary)
    special = vocabulary.special_ids
    bench.case(
        f"{label}: build",
        lambda: lt.Vocabulary.from_tokens(tokens, special_ids=special).trie,
        minus=lambda: lt.Vocabulary.from_tokens(tokens, special_ids=special),
        unit="ms",
        target=40.0 if len(vocabulary) < 200_000 else None,
        nodes=len(trie),
        bytes=trie.memory,
    )
    bench.case(f"{label}: longest match", lambda: trie.longest_match(SOME_TEXT), unit="ns")


def walks(bench: Bench, label: str, vocabulary: lt.Vocabulary) -> None:
    """Masks by table automata: languages people use, and random ones that change with every call."""
    trie = vocabulary.trie
    peer = peer_masks(vocabulary)
    for name, table in tables().items():
        first = peer if isinstance(peer, Skip) else peer(REGEX[name])
        one(bench, f"{label}: {name}", trie, [table], first)
    for live in (0.5, 0.8):
        several = random_tables(16, 64, live)
        one(bench, f"{label}: random, {live:.0%} alive", trie, several, Skip("no grammar says this"))


def one(bench: Bench, name: str, trie: lt.TokenTrie, several: list[Table], peer: Callable[[], float] | Skip) -> None:
    """Time whole masks, the tables in turn, the peer's in the same rounds; then the same for each node."""
    turn = itertools.cycle(several)
    visited = statistics.fmean(trie.count_visited(table) for table in several)
    tokens = statistics.fmean(lt.masks.count(trie.allowed(table)) for table in several)
    mine, theirs = [], []
    for _ in range(8 if bench.quick else 40):
        table = next(turn)
        began = time.perf_counter()
        trie.allowed(table)
        mine.append(time.perf_counter() - began)
        if not isinstance(peer, Skip):
            theirs.append(peer())
    seconds = statistics.median(mine)
    facts: dict[str, Any] = {"visited": round(visited), "tokens": round(tokens)}
    bench.record(
        f"{name}, a mask",
        seconds * 1e6,
        unit="us",
        peers={"llguidance": statistics.median(theirs) * 1e6} if theirs else {},
        skipped={"llguidance": peer.reason} if isinstance(peer, Skip) else {},
        **facts,
    )
    target = NODE_TARGET_NS if visited >= FEW_NODES else None
    bench.record(f"{name}, a node", seconds * 1e9 / visited, unit="ns", target=target, **facts)


def peer_masks(vocabulary: lt.Vocabulary) -> Callable[[str], Callable[[], float]] | Skip:
    """For a regular expression, a function that times the first mask of a fresh llguidance matcher."""
    module: Any = optional("llguidance")
    arrays: Any = optional("llguidance.numpy")
    if isinstance(module, Skip):
        return module
    wrapped = Wrapped(vocabulary)
    tokenizer = module.LLTokenizer(module.TokenizerWrapper(wrapped))
    mask = np.zeros((1, lt.masks.words(len(vocabulary))), np.int32)

    def timed(regex: str) -> Callable[[], float]:
        grammar = module.LLMatcher.grammar_from_regex(regex)

        def first() -> float:
            matcher = module.LLMatcher(tokenizer, grammar)
            began = time.perf_counter()
            arrays.fill_next_token_bitmask(matcher, mask)
            return time.perf_counter() - began

        return first

    return timed


class Wrapped:
    """A vocabulary as llguidance wants one."""

    def __init__(self, vocabulary: lt.Vocabulary) -> None:
        self.tokens = [token or b"\xff<empty>" for token in vocabulary]
        self.special_token_ids = vocabulary.special_ids
        self.eos_token_id = vocabulary.end_tokens[0]
        self.bos_token_id = vocabulary.bos_id
        self._trie = vocabulary.trie

    def __call__(self, text: bytes | str) -> list[int]:
        """Tokens of a text, the longest match first."""
        rest = text.encode() if isinstance(text, str) else text
        ids = []
        while rest:
            token, length = self._trie.longest_match(rest) or (0, 1)
            ids.append(token)
            rest = rest[length:]
        return ids
