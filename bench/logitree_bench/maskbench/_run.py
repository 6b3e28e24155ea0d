"""Walks MaskBench's schemas through the engines, one at a time and in turn, each engine in its own process.

Nothing runs beside what is measured. A process that crashes or takes too long for one schema is started again; the
schema counts as not compiled, with the reason. It draws no conclusions.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import logitree as lt
from logitree_bench._data import Case, parse_case
from logitree_bench._harness import Skip, optional
from logitree_bench.maskbench._engines import Engine
from logitree_bench.maskbench._worker import Measured, work

START_LIMIT_S = 300.0
"""How long an engine may take to load its vocabulary."""


@dataclass(frozen=True)
class Plan:
    """Which schemas go through which engine, and under which limits."""

    seed: int
    engines: dict[str, Callable[[str], Engine]]
    """What makes each engine from a vocabulary's path; it must be found in another process."""
    sizes: dict[str, int]
    """Engine -> how many schemas of the shuffled list it is given, from the start."""
    limit_s: float
    """The longest that one schema may take, all its instances included."""
    memory: int
    """Bytes of memory that an engine's process may hold."""


@dataclass
class Outcome:
    """What came of one engine."""

    measured: dict[str, Measured] = field(default_factory=dict)
    """By the schema's name."""
    restarts: int = 0
    peak_bytes: int = 0
    start_s: float = 0.0
    """How long its process took until it was ready: importing, reading the vocabulary."""


class Process:
    """An engine's process, started again after it ended."""

    def __init__(self, name: str, path: Path, ends: list[int], plan: Plan) -> None:
        self.name, self.outcome = name, Outcome()
        self._arguments = (plan.engines[name], str(path), ends, plan.memory)
        self._limit = plan.limit_s
        self._started = False

    def start(self) -> Skip | None:
        """Start the process; why it cannot run here, if it cannot."""
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs, *self._arguments), daemon=True)
        began = time.perf_counter()
        self._process.start()
        theirs.close()
        self._started = True
        try:
            if not self._pipe.poll(START_LIMIT_S):
                reason = f"not ready within {START_LIMIT_S:g} s"
            else:
                reason = self._pipe.recv()
        except EOFError:
            self._process.join()
            reason = f"its process ended with exit code {self._process.exitcode} before it was ready"
        if reason:
            self.stop()
            return Skip(reason)
        self.outcome.start_s = time.perf_counter() - began
        return None

    def measure(self, case: Case, tokens: Sequence[Sequence[int]]) -> None:
        """Have the engine walk one schema."""
        found = self._ask(case, tokens)
        if isinstance(found, str):
            self.stop()
            self.outcome.restarts += 1
            found = Measured(problem=found)
            again = self.start()
            if again is not None:
                raise RuntimeError(f"{self.name} does not start again: {again.reason}")
        self.outcome.measured[case.name] = found

    def _ask(self, case: Case, tokens: Sequence[Sequence[int]]) -> Measured | str:
        try:
            self._pipe.send((case.schema, tokens))
            if not self._pipe.poll(self._limit):
                return f"no answer within {self._limit:g} s"
            found, self.outcome.peak_bytes = self._pipe.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            return f"its process ended with exit code {self._process.exitcode}"
        assert isinstance(found, Measured)
        return found

    def stop(self) -> None:
        """End the process."""
        if self._started:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._started = False


def shuffled(files: dict[str, bytes], seed: int) -> list[str]:
    """The schemas' names in an order that only the seed decides."""
    names = sorted(files)
    random.Random(seed).shuffle(names)
    return names


def tokenizer(path: Path) -> Callable[[str], list[int]] | Skip:
    """llama.cpp's tokenizer of a GGUF vocabulary: a text is text, whatever special tokens it may spell."""
    llama: Any = optional("llama_cpp")
    if isinstance(llama, Skip):
        return llama
    model = llama.Llama(str(path), vocab_only=True, verbose=False)
    return lambda text: list(model.tokenize(text.encode(), add_bos=False, special=False))


def run(
    files: dict[str, bytes], path: Path, plan: Plan, tell: Callable[[int, int], object]
) -> tuple[dict[str, Case], dict[str, Outcome], dict[str, str]] | Skip:
    """Measure: the cases by name, each engine's outcome, and why engines are missing.

    ``tell`` is called with the number of schemas done and of all.
    """
    tokenize = tokenizer(path)
    if isinstance(tokenize, Skip):
        return tokenize
    ends = list(lt.Vocabulary.from_gguf(str(path)).end_tokens)
    processes: list[Process] = []
    skipped: dict[str, str] = {}
    cases: dict[str, Case] = {}
    names = shuffled(files, plan.seed)[: max(plan.sizes.values())]
    try:
        for engine in plan.sizes:
            process = Process(engine, path, ends, plan)
            missing = process.start()
            if missing is None:
                processes.append(process)
            else:
                skipped[engine] = missing.reason
        for at, name in enumerate(names):
            taking_part = [p for p in processes if at < plan.sizes[p.name]]
            if taking_part:
                case = cases[name] = parse_case(name, files[name])
                tokens = [tokenize(instance.text) for instance in case.instances]
                for k in range(len(taking_part)):
                    taking_part[(at + k) % len(taking_part)].measure(case, tokens)
            tell(at + 1, len(names))
    finally:
        for process in processes:
            process.stop()
    return cases, {p.name: p.outcome for p in processes}, skipped
