"""Masks: applying them to logits in place at every density, and the calls on one mask.

Beside us, on the same logits and mask: XGrammar's CPU kernel (torch tensors), llguidance's NumPy version, and
the obvious NumPy line, which is given its booleans for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from logitree import masks
from logitree_bench import Bench, Skip, optional

SIZE = 128_256
TARGET_US = 12.0
DENSITIES = {
    "none legal": 0.0,
    "0.01 % legal": 1e-4,
    "1 % legal": 0.01,
    "half legal": 0.5,
    "99 % legal": 0.99,
    "99.99 % legal": 0.9999,
    "all legal": 1.0,
}

Words = npt.NDArray[np.int32]


def run(bench: Bench) -> None:
    """Measure applying, then the rest."""
    rng = np.random.default_rng(11)
    sets = {
        name: masks.from_ids(SIZE, np.flatnonzero(rng.random(SIZE) < density)) for name, density in DENSITIES.items()
    }
    for name, mask in sets.items():
        logits = aligned(rng.normal(0, 3, SIZE).astype(np.float32))
        bench.case(
            f"apply to {SIZE:,} float32, {name}",
            applying(logits, mask),
            peers=peers(logits, mask),
            target=TARGET_US,
        )
    half = sets["half legal"]
    for kind, dtype in (("float16", np.float16), ("bfloat16", np.uint16)):
        short = aligned(np.zeros(SIZE, dtype))
        bench.case(f"apply to {SIZE:,} {kind}, half legal", applying(short, half), target=TARGET_US)
    batch = aligned(np.zeros((8, SIZE), np.float32))
    bench.case(f"apply to 8 rows of {SIZE:,} float32, half legal", applying(batch, half), per=8, target=TARGET_US)
    small, word = np.zeros(32, np.float32), masks.new(32, fill=True)
    bench.case("apply to 32 float32 (the call itself)", applying(small, word), unit="ns", target=1000.0)
    calls(bench, half, sets["1 % legal"])


def aligned(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy at the beginning of a cache line: elsewhere a third of the time depends on where memory was free."""
    room = np.empty(values.nbytes + 64, np.uint8)
    begin = -room.ctypes.data % 64
    copy = room[begin : begin + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


def calls(bench: Bench, half: Words, few: Words) -> None:
    """What is done with one mask or two."""
    bench.case(
        f"count of {SIZE:,}",
        lambda: masks.count(half),
        peers={"NumPy unpackbits, sum": lambda: booleans(half).sum()},
        unit="ns",
        target=1000.0,
    )
    bench.case("contains", lambda: masks.contains(half, 77_777), unit="ns", target=1000.0)
    for name, mask in (("1 % legal", few), ("half legal", half)):
        ours, numpy = listing(mask)
        bench.case(f"ids of {SIZE:,}, {name}", ours, peers={"NumPy unpackbits, flatnonzero": numpy})


def listing(mask: Words) -> tuple[Callable[[], object], Callable[[], object]]:
    """The ids in a mask, by us and by NumPy."""
    return lambda: masks.to_ids(mask), lambda: np.flatnonzero(booleans(mask))


def booleans(mask: Words) -> npt.NDArray[np.bool_]:
    """The bits as an array."""
    return np.unpackbits(mask.view(np.uint8), bitorder="little").view(np.bool_)


def applying(logits: npt.NDArray[Any], mask: Words) -> Callable[[], None]:
    """Ours."""
    return lambda: masks.apply(logits, mask)


def peers(logits: npt.NDArray[np.float32], mask: Words) -> dict[str, Callable[[], object] | Skip]:
    """The others, each on logits of its own."""
    banned = ~booleans(mask)[: logits.size]
    for_numpy, for_llguidance = logits.copy(), logits.copy()

    def numpy() -> None:
        for_numpy[banned] = -np.inf

    found: dict[str, Callable[[], object] | Skip] = {"NumPy": numpy}
    llguidance: Any = optional("llguidance.numpy")
    found["llguidance"] = (
        llguidance
        if isinstance(llguidance, Skip)
        else lambda: llguidance.apply_token_bitmask_inplace(for_llguidance, mask)
    )
    torch: Any = optional("torch")
    xgrammar: Any = torch if isinstance(torch, Skip) else optional("xgrammar")
    if isinstance(xgrammar, Skip):
        return {**found, "xgrammar": xgrammar}
    tensor = torch.from_numpy(logits.copy())[None]
    bitmask = torch.from_numpy(mask.copy())[None]
    return {**found, "xgrammar": lambda: xgrammar.apply_token_bitmask_inplace(tensor, bitmask)}
