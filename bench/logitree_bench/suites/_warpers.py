"""transformers' warpers and torch's draw for a chain, in transformers' own order.

They are not llama.cpp's samplers (temperature comes first, top_k keeps ties, the penalty does not count), so the
tokens differ; what is compared is the price of the same wishes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from logitree_bench import Contender, Skip, optional
from logitree_bench.suites._llama import Sampler

WARPERS: dict[str, tuple[str, str]] = {
    "penalties": ("RepetitionPenaltyLogitsProcessor", "repeat"),
    "temp": ("TemperatureLogitsWarper", "t"),
    "top_k": ("TopKLogitsWarper", "k"),
    "top_p": ("TopPLogitsWarper", "p"),
    "min_p": ("MinPLogitsWarper", "p"),
    "typ_p": ("TypicalLogitsWarper", "p"),
}
"""Sampler -> the class, and which argument it takes; in the order in which generate() applies them."""


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """torch computes in one thread meanwhile; nothing happens without torch."""
    torch: Any = optional("torch")
    if isinstance(torch, Skip):
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def warpers(
    logits: npt.NDArray[np.float32], samplers: Sequence[Sampler], accepted: Sequence[int]
) -> Contender | Skip | None:
    """The chain as transformers would run it; None where it has no such sampler."""
    names = dict(samplers)
    if not names.keys() <= WARPERS.keys() | {"dist", "greedy"}:
        return None
    torch: Any = optional("torch")
    classes: Any = torch if isinstance(torch, Skip) else optional("transformers.generation.logits_process")
    if isinstance(classes, Skip):
        return classes
    scores = torch.from_numpy(logits)[None]
    if "greedy" in names:
        return lambda: int(scores.argmax(-1))
    steps: list[Callable[[Any, Any], Any]] = [
        getattr(classes, kind)(names[name][argument]) for name, (kind, argument) in WARPERS.items() if name in names
    ]
    before = torch.tensor([list(accepted)], dtype=torch.int64)

    def go() -> int:
        warped = scores
        for step in steps:
            warped = step(before, warped)
        return int(torch.multinomial(torch.softmax(warped, -1), 1))

    return go
