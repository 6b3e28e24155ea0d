"""Processes that each run a model, alone and two at once.

A process evaluates one token after the other, as a generation does, for a few seconds after all are ready. The peer is
llama.cpp's library as llama-cpp-python loads it; ours is the same library loaded by ``LlamaCpp``. The others show what
the choice of spins and threads is worth.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from dataclasses import dataclass, field

from logitree_bench import Bench, machine, model_file, optional, required

OURS = "logitree"
PLAIN = "llama-cpp-python"

PROGRAM = """
import sys, time
if sys.argv[1] == "llama-cpp-python":
    import llama_cpp
from logitree.engines.llama_cpp import LlamaCpp
engine = LlamaCpp(sys.argv[2], n_threads=int(sys.argv[3]), n_ctx=1024)
session = engine.session()
session.evaluate(engine.encode("Once upon a time there was"))
print("ready", flush=True)
sys.stdin.readline()
begun, tokens = time.perf_counter(), 0
while time.perf_counter() - begun < float(sys.argv[4]):
    if tokens % 600 == 599:
        session.close()
        session = engine.session()
    session.evaluate([100 + tokens % 50])
    tokens += 1
print(tokens / (time.perf_counter() - begun))
"""


@dataclass
class Way:
    """How processes load the library and how many threads each has."""

    name: str
    threads: int
    spins: int | None = None
    """GOMP_SPINCOUNT in the environment."""
    alone: list[float] = field(default_factory=list)
    """Tokens per second of one process, by round."""
    slower: list[float] = field(default_factory=list)
    """Of the slower one of two, by round."""

    def rates(self, path: str, seconds: float, count: int) -> list[float]:
        """The tokens per second of each of ``count`` processes that begin together."""
        env = {key: value for key, value in os.environ.items() if key not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
        if self.spins is not None:
            env["GOMP_SPINCOUNT"] = str(self.spins)
        started = [
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, self.name, path, str(self.threads), str(seconds)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=env,
            )
            for _ in range(count)
        ]
        for process in started:
            assert process.stdout is not None
            process.stdout.readline()
        for process in started:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        return [float(process.communicate()[0]) for process in started]


def run(bench: Bench) -> None:
    """Measure one process and two of each way, several rounds over."""
    required(optional("llama_cpp"))
    path, cores = str(required(model_file())), int(machine()["cores"])
    ways = [Way(OURS, cores), Way(PLAIN, cores)]
    if not bench.quick:
        ways += [Way(f"GOMP_SPINCOUNT={n}", cores, n) for n in (300, 1000, 10_000)] + [Way("n_threads=1", 1)]
    rounds, seconds = (1, 0.5) if bench.quick else (3, 6.0)
    for _ in range(rounds):
        for way in ways:
            way.alone += way.rates(path, seconds, 1)
            way.slower.append(min(way.rates(path, seconds, 2)))
    one = {way.name: statistics.median(way.alone) for way in ways}
    two = {way.name: statistics.median(way.slower) for way in ways}
    ours, peers = one.pop(OURS), one
    bench.record("one process", ours, unit="tokens/s", peers=peers, against=PLAIN, better="higher", threads=cores)
    fair = peers[PLAIN] / 2
    bench.record(
        "two processes: the slower one's part of its fair share",
        two[OURS] / fair,
        unit="share",
        peers={name: rate / fair for name, rate in two.items() if name != OURS},
        target=0.6,
        against=PLAIN,
        better="higher",
        threads=cores,
    )
