"""A catalogue of twenty million random items: building, opening, a step of many beams, changes while it is read.

Beside us a dict of dicts and a hash set of prefixes with NumPy masks, and transformers' processor, all three at a
million items, for more of them do not fit; and STATIC's bound of its memory (arXiv 2602.22647). With `--quick` a
hundred thousand items stand for all. The largest catalogues are computed, not measured, and say so.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import logitree as lt
from logitree_bench import Bench, Skip, optional
from logitree_bench._harness import lower_quartile
from logitree_bench.suites._catalogue import DictTrie, Floats, Ints, PrefixSet, Shape, Slow, best, build, slow_step

PROMPTS, WIDTH = 2, 70
MANY = 2000
VOCABULARY = 128_256
CHANGES = 10_000
PORTIONS, PAUSE = 6, 0.7
PAPER = (Shape(10**8), Shape(10**9))
SCALE = (
    *(Shape(n) for n in (10**5, 10**6, 10**7, 2 * 10**7)),
    *(Shape(n, 8192, 4) for n in (10**6, 2 * 10**7)),
)
QUICK_SCALE = (Shape(10**4), Shape(10**5), Shape(10**4, 8192, 4))

Pool = list[npt.NDArray[np.float32]]


def run(bench: Bench) -> None:
    """Measure the large catalogue, then others beside it, sizes, and changes."""
    main, beside = (Shape(10**5), Shape(10**4)) if bench.quick else (Shape(2 * 10**7), Shape(10**6))
    with tempfile.TemporaryDirectory(prefix="logitree-bench-") as folder:
        path = Path(folder) / "main"
        built = building(bench, main, path)
        opening(bench, main, path)
        paths = lt.Catalogue.open(path).walk()
        for size in (main.codes, VOCABULARY):
            beams(bench, main, paths, size, PROMPTS, WIDTH, 35.0)
        beams(bench, main, paths, main.codes, 1, MANY, 1000.0)
        others(bench, beside, Path(folder) / "beside")
        changes(bench, main, path)
        scaling(bench, QUICK_SCALE if bench.quick else SCALE, Path(folder), {main: (path, built)})
    for shape in PAPER:
        bench.record(
            f"index of {shape.name}, computed",
            shape.index_bytes() / 1e9,
            unit="GB",
            peers={"STATIC's bound": shape.static_bytes() / 1e9},
        )


def building(bench: Bench, shape: Shape, path: Path) -> dict[str, Any]:
    """Builds the index elsewhere and records what it took."""
    built = build(shape, path)
    bench.record(f"build, {shape.name}", built["seconds"], unit="s", target=90.0)
    bench.record("resident memory while it is built", built["resident"] / 1e9, unit="GB", target=6.0)
    bound = {"STATIC's bound": shape.static_bytes() / 1e9}
    bench.record(
        "the index", built["bytes"] / 1e9, unit="GB", target=1.46, peers=bound, computed=shape.index_bytes() / 1e9
    )
    return built


def opened(path: Path, rounds: int = 9) -> tuple[float, float]:
    """Milliseconds until the index is open, and then until the first answer: medians.

    The system has just written the file, so its pages are in memory: a disk is not measured.
    """
    opens, firsts = [], []
    for _ in range(rounds):
        began = time.perf_counter()
        tree = lt.Catalogue.open(path)
        middle = time.perf_counter()
        paths = tree.walk()
        paths.allowed(paths.start)
        opens.append(middle - began)
        firsts.append(time.perf_counter() - middle)
    return statistics.median(opens) * 1e3, statistics.median(firsts) * 1e3


def opening(bench: Bench, shape: Shape, path: Path) -> None:
    """Opening, and the first query after it."""
    open_ms, first_ms = opened(path)
    bench.record(f"open, {shape.name}", open_ms, unit="ms", target=10.0)
    bench.record("first query after it", first_ms, unit="ms", target=1.0)


# -- steps


def turns(rounds: int) -> Iterator[int]:
    """Rounds in portions with pauses between: a shared machine is fast and slow by turns, for seconds at a time."""
    for turn in range(rounds):
        if rounds > PORTIONS and turn and turn % (rounds // PORTIONS) == 0:
            time.sleep(PAUSE)
        yield turn


def logits(rows: int, size: int, count: int) -> Pool:
    """Log-probabilities of random logits."""
    rng = np.random.default_rng(21)
    found = []
    for _ in range(count):
        raw = rng.standard_normal((rows, size), dtype=np.float32)
        found.append(raw - np.log(np.exp(raw).sum(axis=1, keepdims=True)))
    return found


def timed(paths: lt.catalogue.ItemWalk, levels: int, pool: Pool, prompts: int, width: int, rounds: int) -> list[float]:
    """Microseconds of a step at each level: the lower quartile over the rounds."""
    times: list[list[float]] = [[] for _ in range(levels)]
    for turn in turns(rounds):
        states, scores, owners = np.full(prompts, paths.start), np.zeros(prompts), np.arange(prompts)
        for level in range(levels):
            given = pool[(turn + level) % len(pool)][: len(states)]
            began = time.perf_counter()
            found = paths.top(states, given, scores, width, groups=owners)
            times[level].append(time.perf_counter() - began)
            owners, states, scores = owners[found.rows], found.states, found.scores
    return [lower_quartile(t) * 1e6 for t in times]


def beams(
    bench: Bench, shape: Shape, paths: lt.catalogue.ItemWalk, size: int, prompts: int, width: int, target: float
) -> None:
    """A step, on average over the levels."""
    pool = logits(prompts * width, size, 2 if size > 10_000 else 8)
    levels = timed(paths, shape.levels, pool, prompts, width, 6 if bench.quick else 360)
    bench.record(
        f"a step of {prompts} x {width:,} beams, {size:,} logits",
        statistics.mean(levels),
        unit="us",
        target=target,
        levels=[round(us, 2) for us in levels],
        items=shape.items,
    )


def others(bench: Bench, shape: Shape, path: Path) -> None:
    """The same steps by others, on a catalogue that they can hold."""
    build(shape, path)
    paths = lt.Catalogue.open(path).walk()
    pool = logits(PROMPTS * WIDTH, shape.codes, 8)
    ours = timed(paths, shape.levels, pool, PROMPTS, WIDTH, 6 if bench.quick else 360)
    items = np.concatenate(list(shape.portions()))
    peers: dict[str, float] = {}
    same = True
    trie = DictTrie(items, shape.codes)
    rounds = 2 if bench.quick else 12
    for slow in (trie, PrefixSet):
        made = slow(items, shape.codes) if isinstance(slow, type) else slow
        times, equal = walked(made, paths, shape, pool, rounds)
        peers[made.name] = statistics.mean(times)
        same = same and equal
    peer, name = processor(trie, paths, shape, pool), "transformers' processor"
    skipped = {name: peer.reason} if isinstance(peer, Skip) else {}
    if not isinstance(peer, Skip):
        peers[name] = peer
    case = f"a step of {PROMPTS} x {WIDTH} beams, {shape.items:,} items, beside others"
    bench.record(case, statistics.mean(ours), unit="us", peers=peers, skipped=skipped, same_scores=same)


def walked(slow: Slow, paths: lt.catalogue.ItemWalk, shape: Shape, pool: Pool, rounds: int) -> tuple[list[float], bool]:
    """Microseconds of a slow step at each level, and whether each gave the scores that ours gives."""
    times: list[list[float]] = [[] for _ in range(shape.levels)]
    same = True
    for turn in turns(rounds):
        owners: Ints = np.arange(PROMPTS)
        scores: Floats = np.zeros(PROMPTS)
        states, mine = [slow.start()] * PROMPTS, np.full(PROMPTS, paths.start)
        for level in range(shape.levels):
            given = pool[(turn + level) % len(pool)][: len(states)]
            ours = paths.top(mine, given, scores, WIDTH, groups=owners)
            began = time.perf_counter()
            rows, tokens, scores, states = slow_step(slow, states, given, scores, WIDTH, owners)
            times[level].append(time.perf_counter() - began)
            mine = paths.advance(mine[rows], tokens)
            owners = owners[rows]
            same = same and len(scores) == len(ours) and bool(np.allclose(scores, ours.scores, atol=1e-5))
    return [lower_quartile(t) * 1e6 for t in times], same


def processor(trie: DictTrie, paths: lt.catalogue.ItemWalk, shape: Shape, pool: Pool) -> float | Skip:
    """Microseconds of a step of transformers' processor, with the dicts to tell what may follow; once a level.

    Picking the best is part of it, as it is of ours.
    """
    torch, transformers = optional("torch"), optional("transformers")
    for module in (torch, transformers):
        if isinstance(module, Skip):
            return module
    known: Any = transformers

    def allowed(_: int, tokens: Any) -> list[int]:
        node: Any = trie.root
        for token in tokens.tolist()[1:]:
            node = node[token]
        return list(node)

    constrain = known.PrefixConstrainedLogitsProcessor(allowed, WIDTH)
    beams: Ints = np.zeros((PROMPTS * WIDTH, 1), np.int64)
    states, scores = np.full(len(beams), paths.start), np.zeros(len(beams))
    owners = np.repeat(np.arange(PROMPTS), WIDTH)
    times = []
    for level in range(shape.levels):
        given = pool[level % len(pool)][: len(states)]
        # Beams begin alike here, as they do there.
        found = paths.top(states, given, scores, WIDTH, groups=owners)
        ids, tensor = _tensor(torch, beams), _tensor(torch, given)
        began = time.perf_counter()
        masked = constrain(ids, tensor)
        best(masked.numpy() + scores[:, None], owners, WIDTH)
        times.append(time.perf_counter() - began)
        beams = np.concatenate([beams[found.rows], found.tokens[:, None].astype(np.int64)], axis=1)
        states, scores, owners = found.states, found.scores, owners[found.rows]
    return statistics.mean(times) * 1e6


def _tensor(torch: Any, array: npt.NDArray[Any]) -> Any:
    return torch.from_numpy(np.ascontiguousarray(array))


# -- changes


def changes(bench: Bench, shape: Shape, path: Path) -> None:
    """Adds and removes while two threads read: wrong answers, and how long a reader waits."""
    tree = lt.Catalogue.open(path)
    count = CHANGES // 10 if bench.quick else CHANGES
    known = shape.some(1000).tolist()
    wrong: list[str] = []
    alone, _ = reading(tree, shape, known, wrong, lambda: time.sleep(0.2 if bench.quick else 3.0))
    among, seconds = reading(tree, shape, known, wrong, lambda: writing(tree, shape, count, wrong))
    bench.record(f"wrong answers in {count:,} adds and removes", float(len(wrong)), unit="answers", target=0.0)
    before, during = (float(np.percentile(times, 99)) * 1e6 for times in (alone, among))
    bench.record(
        "p99 of two readers meanwhile, over p99 without a writer",
        during / before,
        unit="times",
        target=2.0,
        alone_us=round(before, 2),
        among_us=round(during, 2),
        queries=len(among),
    )
    bench.record("an add or a remove meanwhile", seconds / count * 1e6, unit="us")


def reading(
    tree: lt.Catalogue, shape: Shape, known: list[list[int]], wrong: list[str], meanwhile: Callable[[], object]
) -> tuple[list[float], float]:
    """Seconds of each query of two threads while ``meanwhile`` runs, and how long that took."""
    over = threading.Event()
    times: list[list[float]] = [[], []]

    def read(mine: list[float]) -> None:
        turn = 0
        while not over.is_set():
            row = known[turn % len(known)]
            absent = [*row[:-1], shape.codes]
            began = time.perf_counter()
            paths = tree.walk()
            state = paths.find(row)
            found = state is not None and turn % len(known) in paths.items(state)
            none = paths.find(absent) is None
            mine.append(time.perf_counter() - began)
            if not (found and none):
                wrong.append(f"item {turn % len(known)}")
            turn += 1

    readers = [threading.Thread(target=read, args=(mine,)) for mine in times]
    for reader in readers:
        reader.start()
    began = time.perf_counter()
    try:
        meanwhile()
    finally:
        seconds = time.perf_counter() - began
        over.set()
        for reader in readers:
            reader.join()
    return times[0] + times[1], seconds


def writing(tree: lt.Catalogue, shape: Shape, count: int, wrong: list[str]) -> None:
    """Adds items that no reader asks for and removes them again, the first among the last hundred first."""
    rng = np.random.default_rng(22)
    there: list[list[int]] = []
    for turn in range(count):
        if len(there) < 100 or (turn % 2 and turn < count - 100):
            row = [*rng.integers(0, shape.codes, shape.levels - 1).tolist(), shape.codes + 1 + turn]
            there.append(row)
            right = tree.add([row], items=[shape.items + turn]) == 1 and row in tree
        else:
            row = there.pop(0)
            right = tree.remove([row]) == 1 and row not in tree
        if not right:
            wrong.append(f"change {turn}")


# -- sizes


def scaling(
    bench: Bench, shapes: tuple[Shape, ...], folder: Path, there: dict[Shape, tuple[Path, dict[str, Any]]]
) -> None:
    """A row a size: building, bytes, opening, a step."""
    pools: dict[int, Pool] = {}
    for shape in shapes:
        path, built = there.get(shape) or (folder / "scale", build(shape, folder / "scale"))
        pool = pools.setdefault(shape.codes, logits(PROMPTS * WIDTH, shape.codes, 4))
        open_ms, first_ms = opened(path, 5)
        paths = lt.Catalogue.open(path).walk()
        levels = timed(paths, shape.levels, pool, PROMPTS, WIDTH, 6 if bench.quick else 240)
        bench.record(
            f"a step of {PROMPTS} x {WIDTH} beams, {shape.name}",
            statistics.mean(levels),
            unit="us",
            items=shape.items,
            shape=f"{shape.levels} x {shape.codes:,}",
            build_s=round(built["seconds"], 3),
            index_mb=round(built["bytes"] / 1e6, 2),
            resident_mb=round(built["resident"] / 1e6, 1),
            open_ms=round(open_ms, 3),
            first_ms=round(first_ms, 3),
            levels=[round(us, 2) for us in levels],
            scale=True,
        )
