"""One engine in a process of its own: it is handed schemas and tokens, and hands back verdicts and times.

A crash or a hang ends this process only. It does not know which verdict is right.

How a schema is measured, after MaskBench's runner: time to first mask is compiling and the first mask of the first
instance; time between masks is, for each token of each instance, the mask and (where the token is legal) accepting
it. A first mask counts in both. Starting a sequence is not timed, nor is looking up a bit in the mask, nor the end:
after the last token one more mask says whether the text may end there.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from array import array
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from logitree_bench.maskbench._engines import Engine, Refused
from logitree_bench.maskbench._engines import Sequence as Text

ACCEPTED, REFUSED, FAILED = "accepted", "refused", "failed"


@dataclass(frozen=True)
class Verdict:
    """What the engine said of one instance."""

    word: str
    """``accepted``, ``refused``, or ``failed`` where the engine itself did."""
    at: int
    """How many tokens were accepted."""
    why: str = ""
    """The engine's message where it failed."""


@dataclass
class Measured:
    """What came of one schema."""

    problem: str = ""
    """Why it was not compiled; then the rest is empty."""
    first_ns: int = 0
    """Time to first mask."""
    between_ns: array[int] = field(default_factory=lambda: array("Q"))
    """Time between masks, one for each token."""
    verdicts: list[Verdict] = field(default_factory=list)


def measure(engine: Engine, ends: Collection[int], schema: Any, instances: Sequence[Sequence[int]]) -> Measured:
    """Compile a schema and walk every instance (token lists); ``ends`` are the end-of-generation ids."""
    clock = time.perf_counter_ns
    out = Measured()
    engine.forget()
    began = clock()
    try:
        start = engine.compile(schema)
    except Refused as problem:
        out.problem = str(problem) or "no message"
        return out
    out.first_ns = clock() - began
    if not instances:
        _first(start(), out)
    for at, tokens in enumerate(instances):
        times: list[int] = []
        out.verdicts.append(_walk(engine, ends, start(), tokens, times))
        if at == 0 and times:
            out.first_ns += times[0]
        out.between_ns.extend(a + b for a, b in zip(times[::2], times[1::2], strict=True))
    return out


def _walk(engine: Engine, ends: Collection[int], text: Text, tokens: Sequence[int], times: list[int]) -> Verdict:
    """Feed the tokens; ``times`` gets two figures a token, the mask's and the accepting's."""
    clock, words, fill, accept = time.perf_counter_ns, engine.words, text.fill, text.accept
    for at, token in enumerate(tokens):
        try:
            a = clock()
            fill()
            b = clock()
            times += (b - a, 0)
            if not words[token >> 5] >> (token & 31) & 1:
                problem = text.problem()
                return Verdict(FAILED, at, problem) if problem else Verdict(REFUSED, at)
            a = clock()
            taken = accept(token)
            times[-1] = clock() - a
        except Exception as problem:  # any engine, any exception: its verdict is that it failed
            return Verdict(FAILED, at, f"{type(problem).__name__}: {problem}")
        if taken is False:
            return Verdict(FAILED, at, text.problem() or "the mask allows a token that is not accepted")
    return _end(engine, ends, text, len(tokens))


def _first(text: Text, out: Measured) -> None:
    """The first mask, where no instance asks for one; an engine that fails at it has not compiled the schema."""
    began = time.perf_counter_ns()
    try:
        text.fill()
    except Exception as problem:  # as in _walk
        out.problem = f"{type(problem).__name__}: {problem}"
    out.first_ns += time.perf_counter_ns() - began


def _end(engine: Engine, ends: Collection[int], text: Text, at: int) -> Verdict:
    try:
        text.fill()
    except Exception as problem:  # as above
        return Verdict(FAILED, at, f"{type(problem).__name__}: {problem}")
    may_end = any(engine.words[id >> 5] >> (id & 31) & 1 for id in ends)
    return Verdict(ACCEPTED if may_end else REFUSED, at, "")


def peak_bytes() -> int:
    """The most memory that this process ever held."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _limit_memory(size: int) -> None:
    """Have the system refuse this process more, where the system can: a schema must not take the machine with it."""
    if sys.platform.startswith("linux"):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def work(pipe: Connection, make: Callable[[str], Engine], path: str, ends: list[int], memory: int) -> None:
    """The process: says that it is ready (or why not), then answers ``(schema, instances)`` until it gets None."""
    _limit_memory(memory)
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)  # engines warn there, thousands of times
    try:
        engine = make(path)
    except ImportError as problem:
        pipe.send(str(problem))
        return
    gc.collect()
    gc.freeze()
    gc.disable()
    pipe.send("")
    done = 0
    while (job := pipe.recv()) is not None:
        pipe.send((measure(engine, ends, *job), peak_bytes()))
        done += 1
        if done % 50 == 0:
            gc.collect()
