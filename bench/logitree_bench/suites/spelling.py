"""What `tokenization=` does to outputs: their probability without a constraint, the passes that they take, and seeds.

Counts and probabilities of one model, which do not depend on the machine's speed: every proposal is made, whatever it
costs. The times at the end are those of first calls: a vocabulary's, and a constraint's of a known vocabulary.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import logitree as lt
from logitree_bench import Bench, model_file, optional, required
from logitree_bench.suites._actions import ACTIONS, REQUESTS, prompt
from logitree_bench.suites._people import people
from logitree_bench.suites.responses import MAX_TOKENS, PERSON, Responses, planner

REPEATED = 2
"""Prompts of each task that are answered again, with the same seed."""

MODES = ("any", "canonical", "auto", "fast_forward")

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 24},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "city": {"type": "string", "maxLength": 24},
        "member": {"type": "boolean"},
    },
    "required": ["name", "age", "city", "member"],
    "additionalProperties": False,
}
"""The four fields of a person that have one true value."""


@dataclass(frozen=True)
class Task:
    """A constraint and its prompts; with them what is true, where that is known."""

    name: str
    constraint: Any
    prompts: Sequence[tuple[str, dict[str, Any]]]
    sampling: dict[str, Any]


GREEDY: dict[str, Any] = {"temperature": 0.0, "seed": 0}
SAMPLED: dict[str, Any] = {"temperature": 0.8, "seed": 7}
PEOPLE = [(f"{about}\nAs JSON: ", truth) for about, truth in people()]
TASKS = (
    Task("five-field object, GBNF", lt.Grammar.gbnf(PERSON), PEOPLE, GREEDY),
    Task("four-field object, JSON Schema, temperature 0.8", SCHEMA, PEOPLE[::3], SAMPLED),
    Task("plan, skeleton", planner(), [(f"Request: {one}\nPlan as JSON: ", {}) for one in REQUESTS], GREEDY),
    Task("one of 30 actions", list(ACTIONS), [(prompt(one), {}) for one in REQUESTS], GREEDY),
)


def run(bench: Bench) -> None:
    """Measure every task in every mode, then first calls."""
    path = str(required(model_file()))
    stage = Responses(required(optional("llama_cpp")), path)
    stage.engine.pass_costs = None
    for task in TASKS:
        quality(bench, stage, task)
    first_calls(bench, path)


def quality(bench: Bench, stage: Responses, task: Task) -> None:
    """One row for each mode."""
    prompts = task.prompts[:1] if bench.quick else task.prompts
    any_texts: list[bytes] = []
    for mode in MODES:
        spelt = respelt = 0.0
        right = passes = tokens = length = same = repeated = 0
        for at, (text, truth) in enumerate(prompts):
            options = {"max_tokens": MAX_TOKENS, "chat": False, "tokenization": mode, **task.sampling}
            made = lt.generate(stage.engine, text, task.constraint, **options)
            if at < REPEATED:
                repeated += made.tokens == lt.generate(stage.engine, text, task.constraint, **options).tokens
            before = list(made.prompt)
            out = [token for token in made.tokens if token not in stage.vocabulary.end_tokens]
            data = b"".join(stage.vocabulary[token] for token in out)
            spelt += log_probability(stage, before, out)
            respelt += log_probability(stage, before, stage.engine.tokenize(data.decode("utf-8", "replace")))
            with contextlib.suppress(ValueError):
                value = json.loads(data)
                right += sum(value[key] == truth[key] for key in truth)
            any_texts += [data] if mode == "any" else []
            same += data == any_texts[at]
            passes, tokens = passes + made.stats.forward_passes, tokens + len(made.tokens)
            length += len(data)
        bench.fact(
            f"{task.name}: {mode}",
            what=task.name,
            tokenization=mode,
            nats_a_byte=round(spelt / length, 3),
            of_the_tokenizers_spelling=round(respelt / length, 3),
            right=f"{right} of {4 * len(prompts)}" if prompts[0][1] else "",
            output_tokens=tokens,
            forward_passes=passes,
            tokens_a_pass=round(tokens / passes, 2),
            texts_of_any=f"{same} of {len(prompts)}",
            repeated=f"{repeated} of {min(REPEATED, len(prompts))}",
        )


def log_probability(stage: Responses, before: Sequence[int], tokens: Sequence[int]) -> float:
    """That of tokens after others, without a constraint, in nats."""
    session = stage.engine.session()
    session.begin([])
    rows = session.evaluate_all([*before, *tokens], len(tokens) + 1)
    total = 0.0
    for row, token in zip(rows, tokens, strict=False):
        logits = np.asarray(row, np.float64)
        total += float(logits[token] - logits.max() - np.log(np.exp(logits - logits.max()).sum()))
    return total


def first_calls(bench: Bench, path: str) -> None:
    """Milliseconds of processor time of what is done once: for a vocabulary, and for a constraint of a known one."""
    rounds = range(1 if bench.quick else 5)
    tokenizers: list[lt.Tokenizer] = []
    schema, other = lt.Grammar.json_schema(SCHEMA), lt.Grammar.regex("(yes|no), because [a-z ]{1,40}")

    def read() -> None:
        tokenizers.append(lt.Tokenizer.from_gguf(path))

    def canonical(grammar: lt.Grammar) -> Callable[[], lt.Matcher]:
        return lambda: tokenizers[-1].canonical(grammar.matcher(tokenizers[-1].vocabulary))

    cases: dict[str, Callable[[], Any]] = {
        "read the tokenizer": read,
        "the first grammar of the vocabulary, any spelling": lambda: (
            schema.matcher(tokenizers[-1].vocabulary).allowed().mask()
        ),
        "the first grammar of the vocabulary, canonical spelling besides": canonical(schema),
        "the next grammar, canonical spelling": canonical(other),
        "the same grammar again": canonical(other),
    }
    took: dict[str, list[float]] = {name: [] for name in cases}
    for _ in rounds:
        for name, case in cases.items():
            began = time.process_time()
            case()
            took[name].append(time.process_time() - began)
    for name, seconds in took.items():
        bench.fact(f"first calls: {name}", first_call=name, milliseconds=round(min(seconds) * 1e3, 2))
