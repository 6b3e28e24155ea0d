"""vLLM with each of its backends of structured outputs: tokens per second of eight requests at once, and validity.

``python -m logitree_bench.vllm_backends MODEL`` starts vLLM once for each backend. Each workload runs three times after
one that is not counted, and after each run the same requests run without a constraint, as long as they were: the ratio
of the two times is what the constraint costs. The first run has compiled what the others reuse.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from logitree_bench._data import data_file, parse_case, read_maskbench
from logitree_bench._harness import Skip
from logitree_bench.maskbench._judge import Judge, judge

BACKENDS = ("logitree", "xgrammar", "guidance", "outlines")
REQUESTS = 8
RUNS = 3
MARK = "figures: "
"""How a line with the figures of a workload begins."""


@dataclass(frozen=True)
class Workload:
    """Eight requests: a prompt and a schema for each."""

    name: str
    prompts: list[str]
    schemas: list[Any]
    max_tokens: int


def workloads() -> list[Workload]:
    """What is measured. The schemas of MaskBench are of some kilobytes, drawn with a fixed seed."""
    rng = random.Random(4)
    keys = [f"{word}_{at}" for at in range(25) for word in ("id", "name", "size", "flag")]
    kinds = [{"type": "integer"}, {"type": "string", "maxLength": 8}, {"type": "number"}, {"type": "boolean"}]
    large = {
        "type": "object",
        "properties": {key: kinds[at % 4] for at, key in enumerate(keys)},
        "required": keys,
        "additionalProperties": False,
    }
    words = sorted(
        {"".join(rng.choices("abcdefghijklmnopqrstuvwxyz ", k=rng.randint(6, 24))).strip() for _ in range(1010)}
    )
    enum = {"type": "array", "items": {"enum": words[:1000]}, "minItems": 10, "maxItems": 10}
    text = {
        "type": "object",
        "properties": {"title": {"type": "string", "maxLength": 40}, "story": {"type": "string", "maxLength": 300}},
        "required": ["title", "story"],
        "additionalProperties": False,
    }
    made = [
        Workload("a schema of 100 keys", ["Fill in the record: "] * REQUESTS, [large] * REQUESTS, 160),
        Workload("an enum of 1,000", ["Ten of the words: "] * REQUESTS, [enum] * REQUESTS, 160),
        Workload("JSON with free text", [f"Story {at} as JSON: " for at in range(REQUESTS)], [text] * REQUESTS, 160),
    ]
    path = data_file("maskbench-dev.tar.xz")
    if not isinstance(path, Skip):
        files = read_maskbench(path)
        names = [name for name in sorted(files) if 1_000 < len(files[name]) < 8_000]
        schemas = [parse_case(name, files[name]).schema for name in rng.sample(names, REQUESTS)]
        prompt = "JSON that is valid under this schema: "
        prompts = [prompt + json.dumps(schema)[:1200] + "\nJSON: " for schema in schemas]
        made.insert(0, Workload("MaskBench schemas, mixed", prompts, schemas, 160))
    return made


def measure(backend: str, model: str) -> None:
    """Starts vLLM with a backend and prints a line of figures for each workload."""
    from vllm import LLM, SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    if backend == "logitree":
        from logitree.engines.vllm import register

        register()
    llm = LLM(
        model,
        dtype="bfloat16",
        max_model_len=2048,
        enforce_eager=True,
        max_num_seqs=REQUESTS,
        enable_prefix_caching=False,
        structured_outputs_config={"backend": backend},
    )
    referee = judge()

    def timed(prompts: list[str], params: list[SamplingParams]) -> tuple[float, list[Any]]:
        began = time.perf_counter()
        outputs = llm.generate(prompts, params, use_tqdm=False)
        return time.perf_counter() - began, [output.outputs[0] for output in outputs]

    def free(prompts: list[str], lengths: Iterable[int]) -> tuple[float, list[Any]]:
        given = [SamplingParams(max_tokens=max(1, n), temperature=0, ignore_eos=True) for n in lengths]
        return timed(prompts, given)

    free(["A warm-up. "] * REQUESTS, [32] * REQUESTS)
    for work in workloads():
        accepted, refused = [], 0
        for prompt, schema in zip(work.prompts, work.schemas, strict=True):
            try:
                one = SamplingParams(
                    max_tokens=work.max_tokens, temperature=0, structured_outputs=StructuredOutputsParams(json=schema)
                )
                one.clone().verify(
                    llm.model_config, None, llm.llm_engine.vllm_config.structured_outputs_config, llm.get_tokenizer()
                )
                accepted.append((prompt, schema, one))
            except Exception:  # each backend has errors of its own
                refused += 1
        found: dict[str, Any] = {"backend": backend, "workload": work.name, "refused": refused}
        if accepted:
            prompts = [prompt for prompt, _, _ in accepted]
            rates, ratios = [], []
            for run in range(RUNS + 1):
                seconds, outputs = timed(prompts, [one.clone() for _, _, one in accepted])
                lengths = [len(output.token_ids) for output in outputs]
                without, _ = free(prompts, lengths)
                if run == 0:
                    found["first use"] = without / seconds
                else:
                    rates.append(sum(lengths) / seconds)
                    ratios.append(without / seconds)
            ended = [
                (schema, output.text)
                for (_, schema, _), output in zip(accepted, outputs, strict=True)
                if output.finish_reason == "stop"
            ]
            found |= {
                "tokens": sum(lengths),
                "tokens per second": statistics.median(rates),
                "of unconstrained": statistics.median(ratios),
                "ended": len(ended),
                "valid": sum(_is_valid(referee, schema, text) for schema, text in ended),
            }
        print(MARK + json.dumps(found), flush=True)


def _is_valid(referee: Judge | Skip, schema: Any, text: str) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return isinstance(referee, Skip) or referee.opinion(schema, value)[0] is not False


def run(model: str, backends: Iterable[str], minutes: float) -> list[dict[str, Any]]:
    """The figures of each backend, each in a process of its own; what takes longer than `minutes` has none."""
    rows: list[dict[str, Any]] = []
    for backend in backends:
        print(f"{backend}: load {os.getloadavg()[0]:.2f}", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "logitree_bench.vllm_backends", model, "--measure", backend]
        environment = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOGGING_LEVEL": "ERROR", **os.environ}
        try:
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=60 * minutes)
            said = done.stdout
        except subprocess.TimeoutExpired as late:
            said = (late.stdout or b"").decode() if isinstance(late.stdout, bytes) else late.stdout or ""
            print(f"{backend}: stopped after {minutes:g} minutes", file=sys.stderr)
        lines = [line for line in said.splitlines() if line.startswith(MARK)]
        rows += [json.loads(line.removeprefix(MARK)) for line in lines]
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """The figures as a table of Markdown."""
    lines = [
        "| workload | backend | tokens/s | of unconstrained | first use | ended, valid | refused |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: row["workload"]):
        figures = [f"{row[name]:.{digits}f}" if name in row else "-" for name, digits in _COLUMNS]
        ended = f"{row['ended']}, {row['valid']}" if "ended" in row else "-"
        lines.append(f"| {row['workload']} | {row['backend']} | {' | '.join(figures)} | {ended} | {row['refused']} |")
    return "\n".join(lines)


_COLUMNS = (("tokens per second", 1), ("of unconstrained", 3), ("first use", 3))


def main() -> None:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m logitree_bench.vllm_backends", description=__doc__)
    parser.add_argument("model", help="a folder that vLLM loads")
    parser.add_argument("--backends", nargs="+", default=BACKENDS, choices=BACKENDS)
    parser.add_argument("--minutes", type=float, default=8.0, help="the longest that one backend may take")
    parser.add_argument("--save", type=Path, help="a folder for the figures, as vllm.json")
    parser.add_argument("--measure", choices=BACKENDS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure, arguments.model)
        return
    load = os.getloadavg()[0]
    rows = run(arguments.model, arguments.backends, arguments.minutes)
    print(table(rows))
    if arguments.save:
        text = json.dumps({"load": load, "requests": REQUESTS, "rows": rows}, indent=1)
        (arguments.save / "vllm.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
