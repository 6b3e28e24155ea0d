"""Compares the kernels of `logitree.tensors` with `Chain.draw` and `masks.apply`: on CUDA, or on Triton's interpreter.

A program, because Triton reads TRITON_INTERPRET when it is imported: `python tensor_checks.py cuda|cpu SEEDS WIDTH...`.
With `few` as the last word little room is given to the kernels, so that rows need more of them. Prints one JSON object.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator

import numpy as np
import torch

import logitree as lt
from logitree import _core, samplers
from logitree.tensors import _masks, _sampling, apply_masks, sample_batch

Chains = Callable[[int], lt.Chain]


def dist(seed: int) -> lt.samplers.Sampler:
    return samplers.dist(seed=seed, rng="philox")


# No share of 30, 40 or 50 equal candidates is a whole number of them: there float32 sums decide.
CHAINS: dict[str, Chains] = {
    "llama.cpp's": lambda s: lt.Chain.llama_cpp(top_k=40, top_p=0.93, min_p=0.05, temp=0.8, seed=s, rng="philox"),
    "vLLM's": lambda s: lt.Chain(
        [samplers.temp(0.7), samplers.min_p(0.02), samplers.top_k(50), samplers.top_p(0.91), dist(s)]
    ),
    "top_p alone": lambda s: lt.Chain([samplers.top_p(0.9137), samplers.temp(1.3), dist(s)]),
    "top_p of all": lambda s: lt.Chain([samplers.temp(3.0), samplers.top_p(0.99913), dist(s)]),
    "min_p alone": lambda s: lt.Chain([samplers.min_p(0.1), samplers.temp(0.9), dist(s)]),
    "temp alone": lambda s: lt.Chain([samplers.temp(1.1), dist(s)]),
    "dist alone": lambda s: lt.Chain([dist(s)]),
    "greedy": lambda s: lt.Chain.greedy(),
    "greedy of some": lambda s: lt.Chain([samplers.top_k(5), samplers.min_p(0.5), samplers.greedy()]),
    "temp 0": lambda s: lt.Chain([samplers.temp(0.0), dist(s)]),
    "temp 0 of some": lambda s: lt.Chain([samplers.top_k(20), samplers.temp(0.0), dist(s)]),
    "a temperature that overflows": lambda s: lt.Chain([samplers.temp(1e-44), samplers.top_p(0.5), dist(s)]),
    "min_p above 1": lambda s: lt.Chain([samplers.min_p(1.5), dist(s)]),
    "top_p 0": lambda s: lt.Chain([samplers.top_p(0.0), dist(s)]),
    "top_k 1": lambda s: lt.Chain([samplers.top_k(1), dist(s)]),
    "top_k of many": lambda s: lt.Chain([samplers.top_k(900), samplers.temp(2.0), dist(s)]),
    "top_k of most": lambda s: lt.Chain([samplers.top_k(3000), samplers.min_p(1e-6), samplers.temp(2.0), dist(s)]),
    "twice": lambda s: lt.Chain(
        [
            samplers.top_p(0.987),
            samplers.top_k(30),
            samplers.temp(0.5),
            samplers.min_p(0.01),
            samplers.top_p(0.79),
            dist(s),
        ]
    ),
}


def rows(rng: np.random.Generator, width: int) -> Iterator[tuple[str, np.ndarray]]:
    """Rows of logits of many kinds."""
    yield "peaked", rng.normal(0, 3, width).astype(np.float32)
    flat = rng.normal(0, 0.3, width).astype(np.float32)
    yield "flat", flat
    yield "equal", np.full(width, -1.25, np.float32)
    yield "ties", np.round(rng.normal(0, 2, width) * 4).astype(np.float32) / 4
    clustered = rng.normal(0, 1, width).astype(np.float32)
    clustered[width // 2 : width // 2 + 300] += 9
    yield "clustered", clustered
    sparse = np.full(width, -np.inf, np.float32)
    ids = rng.choice(width, 7, replace=False)
    sparse[ids] = rng.normal(0, 1, 7)
    yield "sparse", sparse
    zeros = np.where(rng.random(width) < 0.5, np.float32(0.0), np.float32(-0.0)).astype(np.float32)
    yield "both zeros", zeros


def masks(rng: np.random.Generator, width: int, row: np.ndarray) -> Iterator[np.ndarray | None]:
    """Masks that leave something: none, many ids, some, one."""
    alive = np.flatnonzero(row > -np.inf)
    yield None
    for share in (0.9, 0.05):
        ids = np.unique([rng.choice(alive), *np.flatnonzero(rng.random(width) < share)])
        yield lt.masks.from_ids(width, ids.tolist())
    yield lt.masks.from_ids(width, [int(rng.choice(alive))])


def drawn(logits: torch.Tensor, words: np.ndarray | None, states: list[lt.Chain]) -> np.ndarray:
    if logits.device.type == "cuda":
        return sample_batch(logits, words, states, accept=False)
    given = None if words is None else torch.from_numpy(words)
    plan = _sampling.Plan(_core.step_words(states), logits.device)
    return _sampling.draw(logits, given, plan).numpy().astype(np.uint32)


def compare(device: str, width: int, seeds: int) -> dict[str, object]:
    """Each kind of chain on each kind of row and mask (with one seed, one mask): how many rows, and which differ."""
    rng = np.random.default_rng(width)
    count, different = 0, []
    for at, (kind, row) in enumerate(rows(rng, width)):
        each = list(masks(rng, width, row))
        for mask in [each[at % len(each)]] if seeds == 1 else each:
            states = [make(seed) for make in CHAINS.values() for seed in range(seeds)]
            for chain in states:
                for _ in range(chain.seed or 0):
                    chain.accept(1)
            tensor = torch.from_numpy(row).to(device)[None].expand(len(states), -1)
            words = None if mask is None else np.repeat(mask[None], len(states), axis=0)
            expected = [chain.fork().draw(row, mask) for chain in states]
            got = drawn(tensor, words, states)
            count += len(states)
            for at in np.flatnonzero(np.array(expected) != got):
                name = list(CHAINS)[at // seeds]
                different.append([kind, name, int(at % seeds), mask is not None, expected[at], int(got[at])])
    return {"rows": count, "different": different}


def masked(device: str, width: int) -> list[bool]:
    """Whether `apply_masks` gives what `masks.apply` gives, for dtypes and rows; through kernels on both."""
    rng = np.random.default_rng(1)
    found = []
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        logits = torch.from_numpy(rng.normal(0, 3, (5, width + 9)).astype(np.float32)).to(dtype)
        words = np.stack([lt.masks.from_ids(width, rng.choice(width, 100).tolist()) for _ in range(3)])
        expected = logits.clone()
        for row, mask in zip((4, 0, 2), words, strict=True):
            lt.masks.apply(expected[row], mask)
        got = logits.to(device)
        if device == "cpu":
            _masks.ban(got, torch.from_numpy(words), torch.tensor([4, 0, 2]), width)
        else:
            apply_masks(got, words, [4, 0, 2], width)
        found.append(torch.equal(got.cpu(), expected))
    return found


def main() -> None:
    device, seeds, *widths = sys.argv[1:]
    if widths[-1] == "few":
        widths.pop()
        _sampling.RANKS, _sampling.MORE = ((8, 16), (16, 32), (32, 64)), 64
    found = {width: compare(device, int(width), int(seeds)) for width in widths}
    print(json.dumps({"masks": masked(device, 5000), "draws": found}))


if __name__ == "__main__":
    main()
