"""The samplers against llama.cpp's own, called through llama-cpp-python: ids in order, logits, tokens, draws.

Logits are drawn without ties, since llama.cpp leaves the order of equal logits to the standard library; so
the order of candidates at -inf is not compared, their number is. Left out, for the same reason or because it
computes NaN there: typ_p after a sampler that leaves -inf, and typ_p over thousands of candidates (their
distances to the entropy are ties then).
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import logitree as lt

llama = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")

TOKEN_DATA = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


class LlamaChain:
    """A llama.cpp sampler chain made of (name, arguments)."""

    def __init__(self, spec: list[tuple[str, tuple[Any, ...]]], vocabulary: int) -> None:
        self.chain = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
        for name, arguments in spec:
            llama.llama_sampler_chain_add(self.chain, self._sampler(name, arguments, vocabulary))

    @staticmethod
    def _sampler(name: str, arguments: tuple[Any, ...], vocabulary: int) -> Any:
        if name == "logit_bias":
            pairs = list(arguments[0].items())
            biases = (llama.llama_logit_bias * len(pairs))(*pairs)
            return llama.llama_sampler_init_logit_bias(vocabulary, len(pairs), biases)
        if name == "penalties":
            return llama.llama_sampler_init_penalties(vocabulary, *arguments)
        init = {"typ_p": "typical"}.get(name, name)
        return getattr(llama, f"llama_sampler_init_{init}")(*arguments)

    def accept(self, token: int) -> None:
        llama.llama_sampler_accept(self.chain, token)

    def apply(self, ids: np.ndarray, logits: np.ndarray) -> tuple[np.ndarray, int]:
        """What is left, and the id that was selected (-1: none)."""
        data = np.zeros(len(ids), TOKEN_DATA)
        data["id"], data["logit"] = ids, logits
        pointer = data.ctypes.data_as(ctypes.POINTER(llama.llama_token_data))
        array = llama.llama_token_data_array(data=pointer, size=len(ids), selected=-1, sorted=False)
        llama.llama_sampler_apply(self.chain, ctypes.byref(array))
        left = data[: array.size]
        return left, int(left["id"][array.selected]) if array.selected >= 0 else -1

    def __del__(self) -> None:
        llama.llama_sampler_free(self.chain)


def ours(spec: list[tuple[str, tuple[Any, ...]]]) -> lt.Chain:
    return lt.Chain([getattr(lt, name)(*arguments) for name, arguments in spec])


def random_logits(rng: np.random.Generator, n: int) -> np.ndarray:
    """Distinct logits: flat, gaussian, peaked or narrow."""
    shape = rng.integers(4)
    x = rng.normal(0, [1, 3, 8, 0.1][shape], n)
    if shape == 1:
        x[rng.integers(0, n, max(1, n // 50))] += 12
    x = x.astype(np.float32)
    while len(np.unique(x)) < n:
        _, first = np.unique(x, return_index=True)
        again = np.setdiff1d(np.arange(n), first)
        x[again] = rng.normal(0, 8, len(again)).astype(np.float32)
    return x


def random_sampler(pick: random.Random, n: int) -> tuple[str, tuple[Any, ...]]:
    keep = pick.choice([0, 0, 0, 1, 2, 5])
    return pick.choice(
        [
            ("top_k", (pick.choice([0, 1, 2, 5, 40, 129, 300, n, n + 7]),)),
            ("top_p", (pick.choice([0.0, 0.1, 0.5, 0.9, 0.95, 0.999, 1.0]), keep)),
            ("min_p", (pick.choice([0.0, 0.01, 0.05, 0.3, 0.9, 1.0, 1.5]), keep)),
            ("typ_p", (pick.choice([0.1, 0.5, 0.9, 0.95, 1.0]), keep)),
            ("top_n_sigma", (pick.choice([-1.0, 0.5, 1.0, 2.0]),)),
            ("temp", (pick.choice([0.0, 0.7, 0.8, 1.0, 1.7]),)),
            (
                "penalties",
                (pick.choice([0, 3, 64]), pick.choice([1.0, 1.1, 0.8, 2.0]), 0.3, pick.choice([0.0, 0.5])),
            ),
            ("logit_bias", ({pick.randrange(n): pick.uniform(-5, 5) for _ in range(3)},)),
        ]
    )


def comparable(spec: list[tuple[str, tuple[Any, ...]]], n: int) -> bool:
    """Whether no typ_p sees -inf or too many candidates, and no -inf comes to stand first in a stale order.

    logit_bias leaves llama.cpp's flag "sorted" as it was. If the candidate that stands first is then cut to -inf,
    llama.cpp takes -inf for the maximum and computes NaN.
    """
    ordered = floored = stale = False
    for name, arguments in spec:
        ordered |= name in ("top_k", "top_p", "min_p")
        stale |= name == "logit_bias" and ordered
        if name == "typ_p" and (floored or n > 400):
            return False
        floored |= (name == "temp" and arguments[0] == 0.0) or name == "top_n_sigma"
        if floored and stale:
            return False
    return True


def equal(spec: Any, ids: np.ndarray, logits: np.ndarray, size: int, steps: int, seed: int) -> Iterator[None]:
    """Runs both chains over some steps, accepting what is picked; yields after each step that was equal."""
    theirs, chain = LlamaChain(spec, size), ours(spec)
    history = random.Random(seed)
    for _ in range(5):
        token = int(history.choice(ids))
        theirs.accept(token)
        chain.accept(token)
    full = np.full(size, np.nan, np.float32)
    full[ids] = logits
    masked = ids.tolist() if len(ids) < size else None
    for _ in range(steps):
        left, token = theirs.apply(ids, logits)
        got_ids, got_logits, got_p = chain.apply(full, legal=masked)
        assert len(got_ids) == len(left), spec
        alive, theirs_alive = got_logits > -np.inf, left["logit"] > -np.inf
        assert got_ids[alive].tolist() == left["id"][theirs_alive].tolist(), spec
        np.testing.assert_array_equal(got_logits[alive], left["logit"][theirs_alive], err_msg=str(spec))
        if spec[-1][0] in ("greedy", "dist"):
            assert chain.pick() == token, spec
            if spec[-1][0] == "dist":
                np.testing.assert_allclose(got_p[alive], left["p"][theirs_alive], rtol=0, atol=1e-6)
            theirs.accept(token)
            chain.accept(token)
        yield


SIZES = [4, 5, 17, 100, 129, 400, 1025, 1500, 5000]


@pytest.mark.parametrize("seed", range(8))
def test_random_chains(seed: int) -> None:
    pick, rng = random.Random(seed), np.random.default_rng(seed)
    steps = 0
    for case in range(200):
        n = pick.choice(SIZES)
        spec = [random_sampler(pick, n) for _ in range(pick.randrange(0, 6))]
        while not comparable(spec, n):
            spec = [random_sampler(pick, n) for _ in range(pick.randrange(0, 6))]
        spec.append(pick.choice([("dist", (pick.randrange(2**32 - 1),)), ("greedy", ())]))
        size = n if pick.random() < 0.6 else n * 3
        ids = np.sort(rng.choice(size, n, replace=False)).astype(np.int32)
        steps += sum(1 for _ in equal(spec, ids, random_logits(rng, n), size, 3, case))
    assert steps == 600


@pytest.mark.parametrize("n", [32_000, 128_256])
def test_whole_vocabularies(n: int) -> None:
    rng = np.random.default_rng(n)
    ids = np.arange(n, dtype=np.int32)
    dist = ("dist", (0,))
    default = [("top_k", (40,)), ("top_p", (0.95, 0)), ("min_p", (0.05, 0)), ("temp", (0.8,)), dist]
    for spec in [
        [("penalties", (64, 1.1, 0.1, 0.1)), *default],
        [("min_p", (0.05, 0)), ("temp", (0.8,)), dist],
        [("top_p", (0.95, 0)), ("temp", (0.8,)), dist],
        [("typ_p", (0.95, 0)), dist],
        [("penalties", (64, 1.3, 0.0, 0.0)), ("temp", (1.5,)), dist],
        [dist],
        [("greedy", ())],
    ]:
        # Fewer distinct floats than tokens near 0 would make ties: spread them evenly instead.
        logits = (rng.permutation(n) * np.float32(30 / n) - 18).astype(np.float32)
        assert len(np.unique(logits)) == n
        assert sum(1 for _ in equal(spec, ids, logits, n, 4, n)) == 4


def test_draws_over_many_steps_of_one_seed() -> None:
    logits = np.random.default_rng(1).normal(0, 2, 50).astype(np.float32)
    ids = np.arange(50, dtype=np.int32)
    assert sum(1 for _ in equal([("dist", (12345,))], ids, logits, 50, 1000, 0)) == 1000
