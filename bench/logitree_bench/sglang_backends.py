"""SGLang's grammar backends beside ours on a CPU: the time to a request's first mask, and to the masks of a batch.

``python -m logitree_bench.sglang_backends TOKENIZER`` compiles MaskBench schemas with each backend as SGLang's manager
does, in turns. Then a batch of 128 rows reads valid texts of the schemas that all backends take, token by token, and
each step fills its masks by the call that SGLang's sampler makes and takes a token in each row. The order of the
backends changes from step to step.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from logitree_bench._data import Case, data_file, parse_case, read_maskbench
from logitree_bench._harness import Skip

BACKENDS = ("logitree", "xgrammar", "llguidance")
SCHEMAS = 150
ROWS = 128
STEPS = 60


def load_tokenizer(path: Path) -> Any:
    """The transformers tokenizer of a folder, or of a GGUF file."""
    import transformers

    if path.is_dir():
        return transformers.AutoTokenizer.from_pretrained(path)
    return transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)


def make_backend(name: str, tokenizer: Any) -> Any:
    """A grammar backend, as SGLang's scheduler makes it."""
    from sglang.srt.constrained.base_grammar_backend import create_grammar_backend
    from sglang.srt.runtime_context import get_context

    with get_context().override_server_args(grammar_backend=name) as args:
        return create_grammar_backend(args, tokenizer, len(tokenizer), {tokenizer.eos_token_id})


def first_mask(backend: Any, schema: str, size: int) -> tuple[float, Any]:
    """Seconds from the request to its first mask, and its grammar; None: the schema is refused."""
    began = time.perf_counter()
    try:
        grammar = backend._init_value_dispatch(("json", schema), False)
        grammar.fill_vocab_mask(grammar.allocate_vocab_mask(size, 1, "cpu"), 0)
    except Exception:  # each backend has errors of its own; what is refused has no masks
        return time.perf_counter() - began, None
    return time.perf_counter() - began, grammar


def takes(grammar: Any, tokens: list[int]) -> bool:
    """Whether a grammar takes all tokens, each allowed by its mask's own backend."""
    walk = grammar.copy()
    try:
        for token in tokens:
            walk.accept_token(token)
    except ValueError:
        return False
    return True


def draw_cases(count: int) -> list[Case] | Skip:
    """MaskBench schemas of 0.3 to 8 kB that have a valid text, drawn with a fixed seed."""
    path = data_file("maskbench-dev.tar.xz")
    if isinstance(path, Skip):
        return path
    files = read_maskbench(path)
    names = [name for name in sorted(files) if 300 < len(files[name]) < 8_000]
    cases = [parse_case(name, files[name]) for name in random.Random(5).sample(names, min(len(names), 3 * count))]
    return [case for case in cases if any(instance.valid for instance in case.instances)][:count]


def measure(tokenizer: Any) -> list[dict[str, Any]] | Skip:
    """The figures of each backend."""
    cases = draw_cases(SCHEMAS)
    if isinstance(cases, Skip):
        return cases
    size = len(tokenizer)
    backends = {name: make_backend(name, tokenizer) for name in BACKENDS}
    for name in BACKENDS:
        first_mask(backends[name], '{"type": "object"}', size)
    seconds: dict[str, list[float]] = {name: [] for name in BACKENDS}
    refused = dict.fromkeys(BACKENDS, 0)
    rows: list[tuple[dict[str, Any], list[int]]] = []
    for at, case in enumerate(cases):
        schema = json.dumps(case.schema)
        made: dict[str, Any] = {}
        taken: dict[str, float] = {}
        for name in (*BACKENDS[at % 3 :], *BACKENDS[: at % 3]):
            taken[name], made[name] = first_mask(backends[name], schema, size)
            refused[name] += made[name] is None
        if None in made.values():
            continue
        for name in BACKENDS:
            seconds[name].append(taken[name])
        text = next(instance.text for instance in case.instances if instance.valid)
        tokens = tokenizer.encode(text, add_special_tokens=False)
        if len(tokens) > 1 and all(takes(grammar, tokens) for grammar in made.values()):
            rows.append((made, tokens))
    fills, accepts = step_times(rows, size)
    found = []
    for name in BACKENDS:
        first = np.sort(np.array(seconds[name])) * 1e3
        found.append(
            {
                "backend": name,
                "refused": refused[name],
                "first mask, ms": statistics.median(first),
                "first mask, 90%": float(first[int(0.9 * len(first))]),
                "first mask, most": float(first[-1]),
                "batch, ms": statistics.median(fills[name]) * 1e3,
                "batch, most": max(fills[name]) * 1e3,
                "tokens, ms": statistics.median(accepts[name]) * 1e3,
                "schemas": len(first),
                "texts": len(rows),
            }
        )
    return found


def step_times(
    rows: list[tuple[dict[str, Any], list[int]]], size: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Seconds of each step's masks of `ROWS` rows, and of their tokens, by backend; a row that ends begins again."""
    from sglang.srt.constrained.base_grammar_backend import GrammarRow

    fills: dict[str, list[float]] = {name: [] for name in BACKENDS}
    accepts: dict[str, list[float]] = {name: [] for name in BACKENDS}
    texts = [rows[row % len(rows)] for row in range(ROWS)]
    at = [(row // len(rows)) * 7 % (len(tokens) - 1) for row, (_, tokens) in enumerate(texts)]
    grammars: dict[str, list[Any]] = {name: [made[name].copy() for made, _ in texts] for name in BACKENDS}
    for name in BACKENDS:
        for row, (_, tokens) in enumerate(texts):
            for token in tokens[: at[row]]:
                grammars[name][row].accept_token(token)
    masks = {name: grammars[name][0].allocate_vocab_mask(size, ROWS, "cpu") for name in BACKENDS}
    for step in range(STEPS):
        order = (*BACKENDS[step % 3 :], *BACKENDS[: step % 3])
        for name in order:
            entries = [GrammarRow(row, grammar) for row, grammar in enumerate(grammars[name])]
            began = time.perf_counter()
            grammars[name][0].fill_vocab_mask_batched(entries, masks[name])
            fills[name].append(time.perf_counter() - began)
        for row, (made, tokens) in enumerate(texts):
            if at[row] == len(tokens):
                at[row] = 0
                for name in BACKENDS:
                    grammars[name][row] = made[name].copy()
        for name in order:
            began = time.perf_counter()
            for row, (_, tokens) in enumerate(texts):
                grammars[name][row].accept_token(tokens[at[row]])
            accepts[name].append(time.perf_counter() - began)
        at = [one + 1 for one in at]
    return fills, accepts


def table(found: list[dict[str, Any]]) -> str:
    """The figures as a table of Markdown."""
    lines = [
        "| backend | first mask, ms: median, 90%, most | 128 masks, ms: median, most | 128 tokens, ms | refused |",
        "|---|---|---|---|---|",
    ]
    for row in found:
        first = ", ".join(f"{row[f'first mask, {what}']:.2f}" for what in ("ms", "90%", "most"))
        lines.append(
            f"| {row['backend']} | {first} | {row['batch, ms']:.2f}, {row['batch, most']:.2f} "
            f"| {row['tokens, ms']:.2f} | {row['refused']} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m logitree_bench.sglang_backends", description=__doc__)
    parser.add_argument("tokenizer", type=Path, help="a folder of transformers, or a GGUF file")
    parser.add_argument("--save", type=Path, help="a folder for the figures, as sglang.json")
    arguments = parser.parse_args()
    from sglang.srt.plugins import load_plugins

    load_plugins()
    logging.disable(logging.ERROR)  # each schema that a backend refuses
    load = os.getloadavg()[0]
    tokenizer = load_tokenizer(arguments.tokenizer)
    found = measure(tokenizer)
    if isinstance(found, Skip):
        raise SystemExit(str(found))
    print(f"{found[0]['schemas']} schemas, {found[0]['texts']} texts, {len(tokenizer)} tokens, load {load:.2f}")
    print(table(found))
    if arguments.save:
        text = json.dumps({"load": load, "tokens": len(tokenizer), "rows": found}, indent=1)
        (arguments.save / "sglang.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
