"""Processes that each run a model with a thread per core, alone and two at once.

A process evaluates one token after the other, as a generation does, for a few seconds after all are ready. The peer is
llama.cpp's library as llama-cpp-python loads it; ours is the same library loaded by ``LlamaCpp``.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

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


def run(bench: Bench) -> None:
    """Measure one process and two of either, several rounds over."""
    required(optional("llama_cpp"))
    path, threads = str(required(model_file())), int(machine()["cores"])
    rounds, seconds = (1, 0.5) if bench.quick else (3, 8.0)
    alone: dict[str, list[float]] = {OURS: [], PLAIN: []}
    slower: dict[str, list[float]] = {OURS: [], PLAIN: []}
    for _ in range(rounds):
        for name in alone:
            alone[name] += rates(name, path, threads, seconds, 1)
            slower[name].append(min(rates(name, path, threads, seconds, 2)))
    one = {name: statistics.median(found) for name, found in alone.items()}
    two = {name: statistics.median(found) for name, found in slower.items()}
    peers = {PLAIN: one[PLAIN]}
    bench.record("one process", one[OURS], unit="tokens/s", peers=peers, better="higher", threads=threads)
    share = {name: two[name] / (one[PLAIN] / 2) for name in two}
    bench.record(
        "two processes: the slower one's part of its fair share",
        share[OURS],
        unit="share",
        peers={PLAIN: share[PLAIN]},
        target=0.6,
        better="higher",
        threads=threads,
        rates={name: round(rate, 1) for name, rate in two.items()},
    )


def rates(name: str, path: str, threads: int, seconds: float, count: int) -> list[float]:
    """The tokens per second of each of ``count`` processes that begin together."""
    env = {key: value for key, value in os.environ.items() if key not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    arguments = [sys.executable, "-c", PROGRAM, name, path, str(threads), str(seconds)]
    started = [
        subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
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
