"""Chains of samplers over a whole vocabulary, beside llama.cpp's, transformers' and one read of the logits.

How they are compared, one thread each:

- ours is ``chain.draw(logits)`` from Python, the call and the reading of the logits in place included;
- llama.cpp's is ``llama_sampler_apply`` alone, on an array of candidates filled just before; the filling, which
  its callers pay for every token, is left out (``LlamaChain.apply_only``). Its call through ctypes is included, as
  ours is: about a microsecond;
- transformers' is its warpers on a torch tensor, softmax and ``torch.multinomial``;
- one read of the logits is the fastest of some NumPy reductions over the same array, hence nearly what memory or
  cache allows; a record's ``reads`` says how many times as long ours takes.

All see the same logits. Nothing is accepted while the clock runs, so histories stay as they are; a draw advances the
generator, and mirostat's mu moves, on both sides alike. Nothing here knows how a sampler works.
"""

from __future__ import annotations

import functools
import os
import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import logitree as lt
from logitree_bench import Bench, Contender, Skip
from logitree_bench.suites._llama import LlamaChain, Sampler, llama_chain
from logitree_bench.suites._warpers import one_thread, warpers

Logits = npt.NDArray[np.float32]

SIZE = 128_256
SIZES = (32_000, 262_144)
SEED = 1
TEMP: Sampler = ("temp", {"t": 0.8})
DIST: Sampler = ("dist", {"seed": SEED})
MIN_P: Sampler = ("min_p", {"p": 0.05, "min_keep": 0})
TOP_P: Sampler = ("top_p", {"p": 0.95, "min_keep": 0})
TOP_K: Sampler = ("top_k", {"k": 40})
PENALTIES: Sampler = ("penalties", {"last_n": 64, "repeat": 1.1})
DEFAULT = (PENALTIES, TOP_K, TOP_P, MIN_P, TEMP, DIST)


@dataclass(frozen=True)
class Wish:
    """A chain, and how many times faster than llama.cpp's ours should be; None where nothing was asked."""

    name: str
    samplers: tuple[Sampler, ...]
    target_ratio: float | None


WISHES = (
    Wish("greedy", (("greedy", {}),), 5),
    Wish("penalties, top_k 40, top_p .95, min_p .05, temp .8, dist", DEFAULT, 25),
    Wish("min_p .05, temp .8, dist", (MIN_P, TEMP, DIST), 10),
    Wish("top_p .95, temp .8, dist", (TOP_P, TEMP, DIST), 15),
    Wish("dist", (DIST,), 15),
    Wish("typ_p .95, dist", (("typ_p", {"p": 0.95, "min_keep": 0}), DIST), 50),
    Wish("mirostat_v2", (("mirostat_v2", {"tau": 5.0, "eta": 0.1, "seed": SEED}),), 70),
)
"""The chains that have a target; they are measured over all logits, the target being for the main ones."""

MORE = (
    Wish("mirostat", (("mirostat", {"tau": 5.0, "eta": 0.1, "m": 100, "seed": SEED}),), None),
    Wish("top_n_sigma 1, temp .8, dist", (("top_n_sigma", {"n": 1.0}), TEMP, DIST), None),
    Wish("xtc 1 .1, dist", (("xtc", {"p": 1.0, "t": 0.1, "min_keep": 0, "seed": SEED}), DIST), None),
    Wish(
        "dry, top_k 40, temp .8, dist",
        (("dry", {"multiplier": 0.8, "base": 1.75, "allowed_length": 2, "last_n": 64}), TOP_K, TEMP, DIST),
        None,
    ),
    Wish("temp_ext .8 .5, dist", (("temp_ext", {"t": 0.8, "delta": 0.5, "exponent": 1.0}), DIST), None),
    Wish("min_p .05, adaptive_p .5", (MIN_P, ("adaptive_p", {"target": 0.5, "decay": 0.9, "seed": SEED})), None),
)


def run(bench: Bench, size: int = SIZE, sizes: Sequence[int] = SIZES) -> None:
    """Measure every chain over the main logits of this size, those with a target over other shapes and sizes."""
    with one_thread():
        main = forty_peaks(size)
        for wish in (*WISHES, *MORE):
            chain(bench, wish, main, "40 peaks", is_main=True)
        masked(bench, main)
        batches(bench, main)
        others = {
            f"{size:,} tight": tight(size),
            f"{size:,} flat": flat(size),
            **{f"{n:,} with 40 peaks": forty_peaks(n) for n in sizes},
        }
        for name, logits in others.items():
            for wish in WISHES:
                chain(bench, wish, logits, name, is_main=False)


# -- logits


def forty_peaks(size: int) -> Logits:
    """Normal with standard deviation 3; 40 of them uniform in 14 to 20, which hold over 99 % of the probability.

    With these llama.cpp's top_p finds its nucleus in the first 256 candidates, as over most logits of a model.
    """
    rng = np.random.default_rng(7)
    logits = rng.normal(0, 3, size)
    logits[peaks(size)] = rng.uniform(14, 20, 40)
    return logits.astype(np.float32)


def peaks(size: int) -> npt.NDArray[np.int64]:
    """The ids of the 40 peaks."""
    return np.random.default_rng(8).choice(size, 40, replace=False)


def tight(size: int) -> Logits:
    """Normal with standard deviation 3, and one token at 30: the model is certain."""
    logits = np.random.default_rng(9).normal(0, 3, size)
    logits[peaks(size)[0]] = 30
    return logits.astype(np.float32)


def flat(size: int) -> Logits:
    """Normal with standard deviation 1, no peaks: the nucleus is most of the vocabulary."""
    return np.random.default_rng(10).normal(0, 1, size).astype(np.float32)


def history(size: int, *, repeating: bool = False) -> list[int]:
    """64 tokens, 20 of the peaks first; ``repeating``: the last 16 are the first 16 again."""
    tokens = [*peaks(size)[:20].tolist(), *np.random.default_rng(11).choice(size, 44, replace=False).tolist()]
    return [*tokens[:48], *tokens[:16]] if repeating else tokens


# -- cases


def ours(samplers: Sequence[Sampler], size: int, accepted: Sequence[int]) -> lt.Chain | Skip:
    """Our chain, which has accepted these tokens; or the sampler that we do not have."""
    made = []
    for name, arguments in samplers:
        if not hasattr(lt.samplers, name):
            return Skip(f"logitree has no {name} yet")
        sized = {"n_vocab": size} if name == "mirostat" else {}
        made.append(getattr(lt.samplers, name)(**sized, **arguments))
    found = lt.Chain(made)
    for token in accepted:
        found.accept(token)
    return found


def chain(bench: Bench, wish: Wish, logits: Logits, shape: str, *, is_main: bool) -> None:
    """One chain over one row of logits."""
    name = wish.name if is_main else f"{wish.name}: {shape}"
    of: dict[str, Any] = {"chain": wish.name, "logits": shape, "size": logits.size, "main": is_main}
    # DRY looks for what came before; the others have the more to do the more different tokens there are.
    accepted = history(logits.size, repeating="dry" in dict(wish.samplers))
    mine = ours(wish.samplers, logits.size, accepted)
    if isinstance(mine, Skip):
        bench.skip(name, mine.reason, **of)
        return
    theirs = llama_chain(logits, wish.samplers, accepted=accepted)
    peers: dict[str, Contender | Skip] = {"llama.cpp": theirs if isinstance(theirs, Skip) else theirs.apply_only()}
    warped = warpers(logits, wish.samplers, accepted) if is_main else None
    if warped is not None:
        peers["transformers"] = warped
    sample = mine.sample
    way, read = fastest_read(logits)
    bench.case(
        name,
        lambda: sample(logits),
        peers=peers,
        against="llama.cpp",
        target_ratio=wish.target_ratio if is_main else None,
        read=read,
        read_by=way,
        same_token=same_token(mine, theirs, logits),
        **of,
    )


def same_token(mine: lt.Chain, theirs: LlamaChain | Skip, logits: Logits, allowed: Sequence[int] | None = None) -> Any:
    """Whether both pick the same token first, which says that they are the same chain; None without a peer."""
    if isinstance(theirs, Skip):
        return None
    theirs.refill()
    theirs.apply()
    return mine.draw(logits, allowed=allowed) == theirs.picked()


def fastest_read(logits: Logits) -> tuple[str, Callable[[], object]]:
    """The fastest of some ways to look at every logit once."""
    words = logits.view(np.int32)
    ways: Mapping[str, Callable[[], object]] = {
        "max": lambda: logits.max(),
        "argmax": lambda: logits.argmax(),
        "int32 max": lambda: words.max(),
        "int32 or": lambda: np.bitwise_or.reduce(words),
    }
    name = min(ways, key=lambda way: min(timeit.repeat(ways[way], number=20, repeat=5)))
    return name, ways[name]


def masked(bench: Bench, logits: Logits) -> None:
    """Where 30 tokens are allowed, as mask words and as a list of ids, and where nearly all are, as in a string."""
    few = sorted({*peaks(logits.size)[:10].tolist(), *history(logits.size)[30:50]})
    most = [id for id in range(logits.size) if id % 64]
    accepted = history(logits.size)
    of: dict[str, Any] = {"logits": "40 peaks", "size": logits.size, "main": True}
    few_mask, most_mask = (lt.masks.from_ids(logits.size, allowed) for allowed in (few, most))
    for name, chain, allowed, given, target in (
        ("mask with 30 allowed tokens, default chain", DEFAULT, few, {"mask": few_mask}, 2.0),
        ("list of 30 allowed tokens, default chain", DEFAULT, few, {"allowed": few}, None),
        (f"mask with {len(most):,} allowed tokens, default chain", DEFAULT, most, {"mask": most_mask}, None),
        (f"mask with {len(most):,} allowed tokens, greedy", WISHES[0].samplers, most, {"mask": most_mask}, None),
    ):
        mine = ours(chain, logits.size, accepted)
        if isinstance(mine, Skip):
            bench.skip(name, mine.reason, chain=name, **of)
            continue
        theirs = llama_chain(logits, chain, accepted=accepted, allowed=allowed)
        bench.case(
            name,
            sampling(mine, logits, given),
            peers={"llama.cpp": theirs if isinstance(theirs, Skip) else theirs.apply_only()},
            against="llama.cpp",
            target=target,
            same_token=same_token(mine, theirs, logits, allowed),
            chain=name,
            **of,
        )


def sampling(mine: lt.Chain, logits: Logits, given: Mapping[str, Any]) -> Callable[[], object]:
    """A sample among the allowed tokens."""
    sample = mine.sample
    if "mask" in given:
        mask = given["mask"]
        return lambda: sample(logits, mask)
    allowed = given["allowed"]
    return lambda: sample(logits, allowed=allowed)


def batches(bench: Bench, logits: Logits, several: Sequence[int] = (8, 64)) -> None:
    """The default chain over several rows at once, beside one thread and one call a row; figures are per row."""
    for rows in several:
        name = f"default chain, {rows} rows in one call"
        mine, alone, single = (ours(DEFAULT, logits.size, history(logits.size)) for _ in range(3))
        if isinstance(mine, Skip) or isinstance(alone, Skip) or isinstance(single, Skip):
            bench.skip(name, "logitree lacks a sampler of the chain")
            continue
        table = np.stack([np.roll(logits, i) for i in range(rows)])
        way, read = fastest_read(table)
        bench.case(
            name,
            functools.partial(mine.sample_batch, table),
            peers={
                "logitree, one thread": functools.partial(alone.sample_batch, table, threads=1),
                "logitree, a call a row": functools.partial(each_row, single, table),
            },
            against="logitree, one thread",
            target_ratio=1.8 if rows == max(several) and (os.cpu_count() or 1) > 1 else None,
            read=read,
            read_by=way,
            per=rows,
            main=False,
        )


def each_row(chain: lt.Chain, table: Logits) -> list[int]:
    """A sample of each row, one after the other."""
    return [chain.sample(row) for row in table]
