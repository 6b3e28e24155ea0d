"""How the grammar suite measures: first use of a new grammar, later walks of the same, a cold process, two threads.

Every function takes engines with MaskBench's interface.
"""

from __future__ import annotations

import functools
import gc
import multiprocessing
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from logitree_bench import Skip
from logitree_bench.maskbench._engines import ENGINES, Engine, Logitree, Refused
from logitree_bench.maskbench._engines import Sequence as Text
from logitree_bench.suites._llama_grammar import LlamaGrammar
from logitree_bench.suites._subjects import SUBJECTS, Subject

Start = Callable[[], Text]

CONTENDERS: dict[str, Callable[[str], Engine]] = {
    "logitree": functools.partial(Logitree, order="schema"),  # what it has not prepared is measured here
    **{name: ENGINES[name] for name in ("llguidance", "xgrammar")},
    "llama.cpp": LlamaGrammar,
}
MEMORY_GRAMMARS, MEMORY_MATCHERS, MEMORY_S = 100, 1000, 10.0
"""How many grammars, and matchers of one, are held to see what they take; fewer if making them takes so long."""
COLD_LIMIT_S = 300.0


def engines(path: Path) -> dict[str, Engine | Skip]:
    """Every contender for this vocabulary, or why it is not there."""
    found: dict[str, Engine | Skip] = {}
    for name, make in CONTENDERS.items():
        try:
            found[name] = make(str(path))
        except ImportError as problem:
            found[name] = Skip(str(problem))
    return found


def first_use(engine: Engine, name: str, subject: Subject, tokens: Sequence[int]) -> tuple[Start, float, float]:
    """A grammar's first use: what starts further texts, seconds until the first mask, seconds a token.

    A token is its mask and accepting it, on average over the text; the first mask counts in both figures. Raises
    :class:`Refused` if the engine does not take the grammar or not the text.
    """
    form, source = subject.given(name)
    clock = time.perf_counter
    engine.forget()
    began = clock()
    start = engine.compile(source, form)
    text = start()
    compiled = clock() - began
    masks, accepting = [], 0.0
    for token in tokens:
        began = clock()
        text.fill()
        masks.append(clock() - began)
        if not engine.words[token >> 5] >> (token & 31) & 1:
            raise Refused(f"it refuses the text: {subject.text}")
        began = clock()
        text.accept(token)
        accepting += clock() - began
    return start, compiled + masks[0], (sum(masks) + accepting) / len(tokens)


def walk(text: Text, tokens: Sequence[int]) -> float:
    """Seconds of mask and accept for each token of a text whose grammar was walked before, on average."""
    fill, accept = text.fill, text.accept
    began = time.perf_counter()
    for token in tokens:
        fill()
        accept(token)
    return (time.perf_counter() - began) / len(tokens)


def walks(starts: dict[str, Start], tokens: Sequence[int], rounds: int, seconds: float) -> dict[str, list[float]]:
    """Walks in turn: at least two of each, at most ``rounds``, and no more once an engine spent ``seconds``."""
    out: dict[str, list[float]] = {name: [] for name in starts}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, start in starts.items():
                if len(out[name]) < 2 or sum(out[name]) * len(tokens) < seconds:
                    out[name].append(walk(start(), tokens))
    finally:
        if collecting:
            gc.enable()
    return out


def scaling(engine: Engine, name: str, subjects: Sequence[Subject], texts: Sequence[Sequence[int]]) -> float:
    """How many times as fast two threads are that share new grammars between them: compile and walk each."""

    def work(own: Engine, part: slice) -> None:
        for subject, tokens in zip(subjects[part], texts[part], strict=True):
            first_use(own, name, subject, tokens)

    third = len(subjects) // 3
    began = time.perf_counter()
    work(engine, slice(0, third))
    alone = time.perf_counter() - began
    parts = (slice(third, 2 * third), slice(2 * third, 3 * third))
    threads = [threading.Thread(target=work, args=(engine.twin(), part)) for part in parts]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 2 * alone / (time.perf_counter() - began)


# -- in a process of its own


def cold(name: str, path: Path, subject: str, tokens: Sequence[int]) -> dict[str, float] | Skip:
    """What a fresh process finds: ``ready_s`` (imports and vocabulary), ``first_s``, ``token_s``, bytes of memory."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_cold, args=(theirs, name, str(path), subject, list(tokens)), daemon=True)
    process.start()
    theirs.close()
    try:
        found = ours.recv() if ours.poll(COLD_LIMIT_S) else f"no answer within {COLD_LIMIT_S:g} s"
    except EOFError:
        process.join()
        found = f"its process ended with exit code {process.exitcode}"
    finally:
        process.kill()
        process.join()
    return Skip(found) if isinstance(found, str) else found


def _cold(pipe: Connection, name: str, path: str, subject: str, tokens: list[int]) -> None:
    began = time.perf_counter()
    try:
        engine = CONTENDERS[name](path)
        ready = time.perf_counter() - began
        _, first, token = first_use(engine, name, SUBJECTS[subject](0), tokens)
    except (ImportError, Refused) as problem:
        pipe.send(str(problem))
        return
    pipe.send({"ready_s": ready, "first_s": first, "token_s": token, **_memory(engine, name, subject)})


def _memory(engine: Engine, name: str, subject: str) -> dict[str, float]:
    """Resident bytes that further grammars of the kind take, each with a mask made, and further matchers of one.

    What the system cannot see, because it is too little or was held free, is left out.
    """

    def grammar(variant: int) -> Start:
        form, source = SUBJECTS[subject](variant).given(name)
        return engine.compile(source, form)

    def matcher(start: Start) -> Text:
        text = start()
        text.fill()
        return text

    first = grammar(MEMORY_GRAMMARS + 1)
    found = {
        "grammar_bytes": _growth(lambda at: (made := grammar(at), matcher(made)), MEMORY_GRAMMARS),
        "matcher_bytes": _growth(lambda _: matcher(first), MEMORY_MATCHERS),
    }
    return {key: size for key, size in found.items() if size}


def _growth(make: Callable[[int], object], most: int) -> float:
    """Resident bytes that each of many things takes while all are held; 0 where nothing is seen."""
    held = [make(1)]
    before = _resident()
    began = time.perf_counter()
    while len(held) <= most and time.perf_counter() - began < MEMORY_S:
        held.append(make(len(held) + 1))
    return max(0.0, (_resident() - before) / (len(held) - 1))


def _resident() -> int:
    """Bytes that this process holds in memory; 0 where the system does not say."""
    gc.collect()
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


def tokenize_all(
    subject: Callable[[int], Subject], variants: Sequence[int], tokenize: Callable[[str], list[int]]
) -> tuple[list[Subject], list[list[int]]]:
    """Variants of a subject and the tokens of their texts."""
    found = [subject(variant) for variant in variants]
    return found, [tokenize(s.text) for s in found]
