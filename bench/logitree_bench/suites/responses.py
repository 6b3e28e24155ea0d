"""Whole responses: what forcing, certain text and drafts save, beside llama.cpp's grammar on the same grammar.

Both sides read the same GBNF, or ours a skeleton of the same language: schema and whitespace are the same. They
answer greedily on one context, one mode after the other on each prompt. llama.cpp's grammar runs as a native chain of
grammar and greedy on the context's own logits, as in the suite choices; ours through ``logitree.generate``, events and
all. How far proposals pay depends on what the engine takes for a token more in a pass, which the suite records first.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import logitree as lt
from logitree import skeleton as sk
from logitree_bench import Bench, Skip, lower_quartile, model_file, optional, quantized_file, required, vocabulary_file
from logitree_bench.suites._actions import ACTIONS, REQUESTS
from logitree_bench.suites.choices import Mode, Run, Stage, measure

MAX_TOKENS = 160
PLAIN = "logitree, no forcing"
ALL = "logitree"
CANONICAL = "logitree, canonical"
FORWARD = "logitree, fast-forward"
DRAFTED = "logitree, n-gram drafts"
GRAMMAR = "llama.cpp grammar"

PERSON = r"""
root ::= "{\"name\": \"" text "\", \"age\": " number ", \"city\": \"" text "\", \"member\": " bool tail
tail ::= ", \"notes\": \"" note "\"}"
text ::= [A-Za-z .'-]{1,24}
note ::= [A-Za-z0-9 ,.'-]{1,32}
number ::= [1-9] [0-9]?
bool ::= "true" | "false"
"""
"""An object of five fields, three of them short; separators as `json.dumps` writes them."""

PEOPLE = (
    "Anna Berg is 31 years old, lives in Oslo and is a member. She paints.",
    "Tom Miller, 54, of Boston. Not a member any more. Collects stamps.",
    "Li Wei moved to Berlin at 27 and joined at once. Speaks German and Chinese.",
    "Maria Rossi (63) from Rome has been a member for years. She likes to cook.",
    "Jonas is 19, comes from Vienna and is no member yet. He studies physics.",
    "Olga Petrova, 45 years, Paris, member. Plays the violin.",
)

PLAN = "\n".join(
    [
        'root ::= "{\\"action\\":\\"" plan ",\\"reason\\":\\"" [A-Za-z0-9 ,.\'-]{1,60} "\\"}"',
        "plan ::= " + " | ".join(f"p{n}" for n in range(len(ACTIONS))),
        *(
            f'p{n} ::= "{name}\\",\\"parameters\\":" {("room", "message", "query")[n % 3]}'
            for n, name in enumerate(ACTIONS)
        ),
        'room ::= "{\\"room\\":\\"" text "\\",\\"minutes\\":" number "}"',
        'message ::= "{\\"to\\":\\"" text "\\",\\"urgent\\":" ("true" | "false") "}"',
        'query ::= "{\\"target\\":\\"" text "\\",\\"limit\\":" number ",\\"language\\":\\"" language "\\"}"',
        'language ::= "en" | "de" | "fr"',
        "text ::= [A-Za-z .'-]{1,24}",
        "number ::= [1-9] [0-9]?",
    ]
)
"""A plan: an action of 30, parameters by action, a short reason. `planner` is the same language as a skeleton."""


def planner() -> lt.Skeleton:
    """The language of PLAN, as a skeleton."""
    # A JSON number could be spelt 7.0, too.
    text, number = sk.string(pattern="^[A-Za-z .'-]{1,24}$"), list(range(1, 100))
    kinds = (
        {"room": text, "minutes": number},
        {"to": text, "urgent": bool},
        {"target": text, "limit": number, "language": ["en", "de", "fr"]},
    )
    return lt.Skeleton.object(
        {
            "action": list(ACTIONS),
            "parameters": sk.by("action", {name: kinds[n % 3] for n, name in enumerate(ACTIONS)}),
            "reason": sk.string(pattern="^[A-Za-z0-9 ,.'-]{1,60}$"),
        }
    )


LABELS = {"ship_to": "Ship to", "order": "Order", "problem": "Problem"}
"""The fields of a complaint, and how a letter names them."""

SHOWN = ("Harbour Lane 14, Bergen, Norway", "https://shop.example/orders/2281", "The two boxes arrived wet.")
"""A complaint that the prompt shows with its extraction."""

COMPLAINTS = (
    (
        "Lakeside Clinic, Mill Road 27, Cambridge, England",
        "https://shop.example/orders/5512",
        "The fridge for the vaccines arrived with a broken door seal, and it does not stay below eight degrees.",
    ),
    (
        "Cafe Minuit, Rue Monge 31, Paris, France",
        "https://shop.example/orders/31-B",
        "The coffee machine that you repaired in March leaks water from the bottom when it has been on for an hour.",
    ),
    (
        "Studio Kumo, Meguro 2, Tokyo, Japan",
        "https://shop.example/orders/lamp-17",
        "The desk lamps flicker when they are dimmed, and one of them smells of burnt plastic after ten minutes.",
    ),
    (
        "Hotel Alpenblick, Dorfstrasse 5, Grindelwald, Switzerland",
        "https://shop.example/orders/90034",
        "The towels lost their colour in the first wash, and the bathrobes are two sizes too small for our guests.",
    ),
    (
        "Casa Verde, Calle Mayor 112, Madrid, Spain",
        "https://shop.example/orders/2024-118",
        "The olive trees have dry leaves, and the soil in their pots was frozen when they arrived on Monday.",
    ),
    (
        "Riverside Music School, Dock Street 9, Glasgow, Scotland",
        "https://shop.example/orders/v-440",
        "The second violin has a crack along its neck, and the bow of the cello is missing from the case.",
    ),
)
"""What the extraction copies from."""

EXTRACT = "\n".join(
    [
        'root ::= "{' + ", ".join(f'\\"{key}\\": \\"" text "\\"' for key in LABELS) + '}"',
        'text ::= [^"\\\\\\x00-\\x1f]{1,160}',
    ]
)
"""The fields of a complaint as an object; each is any text."""


def quoting(values: Sequence[str]) -> lt.Grammar:
    """The fields of one complaint as an object; each is a run of its words."""
    words = json.dumps({"substring_words": " ".join(values)})
    opening = [json.dumps(f'"{key}": "') for key in LABELS]
    fields = ' ", " '.join(rf'{text} quote "\""' for text in opening)
    return lt.Grammar.lark(f'start: "{{" {fields} "}}"\nquote: %regex {words}')


def complaint(values: Sequence[str]) -> str:
    """The prompt after which a model writes the fields of a complaint as JSON: one is shown with its answer."""
    letter, shown = (
        "\n".join(f"{name}: {value}" for name, value in zip(LABELS.values(), of, strict=True)) for of in (values, SHOWN)
    )
    return f"{shown}\nJSON: {json.dumps(dict(zip(LABELS, SHOWN, strict=True)))}\n\n{letter}\nJSON: "


@dataclass(frozen=True)
class Task:
    """A response: its grammar for llama.cpp, the constraint of the same language, and its prompts."""

    name: str
    gbnf: str
    constraint: lt.Grammar | lt.Skeleton
    prompts: Sequence[str]
    target: float
    """How many times the tokens per second of llama.cpp's grammar."""


TASKS = (
    Task("five-field object", PERSON, lt.Grammar.gbnf(PERSON), [f"{about}\nAs JSON: " for about in PEOPLE], 1.8),
    Task("planner", PLAN, planner(), [f"Request: {request}\nPlan as JSON: " for request in REQUESTS[:6]], 2.0),
)


def run(bench: Bench) -> None:
    """Measure each response in every mode, then the extraction and the decoder's own step."""
    llama = required(optional("llama_cpp"))
    rounds = 2 if bench.quick else 7
    stage = Responses(llama, str(required(model_file())))
    passes(bench, stage)
    for task in TASKS:
        prompts = task.prompts[:1] if bench.quick else task.prompts
        response(bench, stage, replace(task, prompts=prompts), rounds)
    extraction(bench, stage, rounds)
    small = quantized_file("Q4_0")
    if isinstance(small, Skip):
        bench.skip("extraction, Q4_0", small.reason)
    else:
        stage = Responses(llama, str(small))
        passes(bench, stage)
        extraction(bench, stage, rounds)
    step(bench)


class Responses(Stage):
    """The stage of the suite choices, for any grammar."""

    def __init__(self, llama: Any, path: str) -> None:
        super().__init__(llama, path, max_tokens=MAX_TOKENS)
        self._text = ""

    def task(self, task: Task) -> list[Mode]:
        """The modes for one grammar."""
        self._text = task.gbnf
        return [
            Mode(GRAMMAR, self._by_llama(self._grammar())),
            Mode(PLAIN, self.asked(task.constraint, force=False)),
            Mode(ALL, self.asked(task.constraint)),
            Mode(CANONICAL, self.asked(task.constraint, tokenization="canonical")),
            Mode(FORWARD, self.asked(task.constraint, tokenization="fast_forward")),
        ]

    def _grammar(self) -> Any:
        return self.llama.llama_sampler_init_grammar(self._native, self._text.encode(), b"root")

    def _complete(self) -> Callable[[list[int]], bool]:
        """Whether the last token ends the object: no field of the grammars has a brace, but parameters end with one."""
        pieces = [self.vocabulary[token] for token in range(len(self.vocabulary))]

        def complete(tokens: list[int]) -> bool:
            if b"}" not in pieces[tokens[-1]]:
                return False
            text = b"".join([pieces[token] for token in tokens])
            return text.count(b"{") == text.count(b"}")

        return complete


def passes(bench: Bench, stage: Responses) -> None:
    """What a pass of several tokens takes, with the logits of the last or of all."""
    prompt = stage.engine.encode(" ".join(PEOPLE), chat=False)
    session = stage.engine.session()
    session.evaluate(prompt)
    figures: dict[str, float] = {}
    for tokens in (1, 2, 4, 8, 16, 32):
        for name, last in (("last", 1), ("all", tokens)):
            seconds = []
            for _ in range(3 if bench.quick else 9):
                began = time.perf_counter()
                session.evaluate_all(prompt[:tokens], last)
                seconds.append(time.perf_counter() - began)
                session.rollback(tokens)
            figures[f"{tokens} tokens, logits of {name}"] = round(lower_quartile(seconds) * 1e3, 2)
    bench.fact(f"milliseconds of a pass, {stage.engine.name}", **figures)


def fact(bench: Bench, stage: Responses, name: str, mode: Mode) -> tuple[float, float]:
    """A mode's row; its characters per second, and its share of passes saved."""
    runs = mode.first()
    tokens = sum(len(run.tokens) for run in runs)
    taken = sum(run.passes for runs in mode.runs for run in runs) / len(mode.runs[0])
    text = sum(len(stage.vocabulary[token]) for run in runs for token in run.tokens)
    rate = mode.rate()
    bench.fact(
        f"{name}: {mode.name}",
        task=name,
        mode=mode.name,
        tokens_per_second=round(rate, 1),
        bytes_per_second=round(rate * text / tokens, 1),
        output_tokens=tokens,
        forward_passes=round(taken, 1),
        prompts=len(runs),
        rounds=len(mode.runs[0]),
    )
    return rate * text / tokens, 1 - taken / tokens


def response(bench: Bench, stage: Responses, task: Task, rounds: int) -> None:
    """One grammar in every mode."""
    modes = stage.task(task)
    measure(stage, modes, rounds, task.prompts)
    by_name = {mode.name: mode for mode in modes}
    figures = {mode.name: fact(bench, stage, task.name, mode) for mode in modes}
    for name in (ALL, CANONICAL, FORWARD):
        bench.higher(
            f"{task.name}: output tokens per second, {name}, beside llama.cpp's grammar",
            by_name[name].rate() / by_name[GRAMMAR].rate(),
            "times",
            task.target,
            bytes_per_second=round(figures[name][0] / figures[GRAMMAR][0], 3),
        )
        bench.higher(f"{task.name}: share of forward passes saved, {name}", figures[name][1], "of 1", 0.5)
    costs, stage.engine.pass_costs = stage.engine.pass_costs, None
    for name in (ALL, CANONICAL, FORWARD):
        made = [by_name[name].answer(text, []) for text in task.prompts]
        saved = 1 - sum(run.passes for run in made) / sum(len(run.tokens) for run in made)
        case = f"{task.name}: share of forward passes saved where every proposal is made, {name}"
        bench.higher(case, saved, "of 1", 0.5)
    stage.engine.pass_costs = costs
    same = by_name[ALL].same(by_name[PLAIN])
    bench.higher(f"{task.name}: outputs that proposals leave as they are", same, "of 1", 1.0)


def extraction(bench: Bench, stage: Responses, rounds: int) -> None:
    """The fields of a text as JSON, with and without n-gram drafts, and by llama.cpp's grammar."""
    constraint = lt.Grammar.gbnf(EXTRACT)
    prompts = [complaint(values) for values in COMPLAINTS[: 1 if bench.quick else None]]
    task = Task("extraction", EXTRACT, constraint, prompts, 2.0)
    grammar = stage.task(task)[0]
    drafts(bench, stage, f"extraction, {stage.engine.name}", lambda _: constraint, [grammar], prompts, rounds)
    # What is extracted is often meant to be word for word the text's; llama.cpp's grammars do not say that.
    quotes = {complaint(values): quoting(values) for values in COMPLAINTS}
    drafts(bench, stage, f"extraction of quotations, {stage.engine.name}", quotes.__getitem__, [], prompts, rounds)


def drafts(
    bench: Bench,
    stage: Responses,
    name: str,
    constraint: Callable[[str], lt.Grammar],
    others: Sequence[Mode],
    prompts: Sequence[str],
    rounds: int,
) -> None:
    """What n-gram drafts change. Each prompt has a constraint; `others` are measured in turn with the drafts."""

    def asked(**options: Any) -> Callable[[str, list[int]], Run]:
        return lambda text, prompt: stage.asked(constraint(text), **options)(text, prompt)

    plain, certain = Mode(PLAIN, asked(force=False)), Mode(ALL, asked())
    drafted = Mode(DRAFTED, asked(drafter=lt.speculation.NGramDrafter()))
    modes = [*others, plain, certain, drafted]
    measure(stage, modes, rounds, prompts)
    for mode in modes:
        fact(bench, stage, name, mode)
    rate = drafted.rate()
    bench.higher(
        f"{name}: tokens per second with n-gram drafts, beside none",
        rate / plain.rate(),
        "times",
        2.0,
        beside_certain_text=round(rate / certain.rate(), 3),
        peers={mode.name: mode.rate() / plain.rate() for mode in others},
    )
    bench.higher(f"{name}: outputs that drafts leave as they are", drafted.same(plain), "of 1", 1.0)
    bench.higher(f"{name}: values that are copied word for word", copied(stage, drafted), "of 1")


def copied(stage: Responses, mode: Mode) -> float:
    """The share of values that the answers give as the texts have them."""
    right = []
    for run, values in zip(mode.first(), COMPLAINTS, strict=False):
        text = b"".join(stage.vocabulary[token] for token in run.tokens).decode("utf-8", "replace")
        right += [f'"{key}": "{value}"' in text for key, value in zip(LABELS, values, strict=True)]
    return sum(right) / len(right)


def step(bench: Bench) -> None:
    """A decoder's step with a grammar and the default chain, over random logits."""
    path = vocabulary_file("llama-bpe")
    if isinstance(path, Skip):
        bench.skip("step with a grammar", path.reason)
        return
    vocabulary = lt.Vocabulary.from_gguf(str(path))
    rows = np.random.default_rng(7).normal(0, 3, (16, len(vocabulary))).astype(np.float32)
    decoder = lt.Decoder(vocabulary, lt.Chain.llama_cpp(seed=1), lt.Grammar.gbnf(PERSON))
    length = 0
    while not decoder.is_finished:
        decoder.step(rows[length % 16])
        length += 1

    def walk() -> None:
        decoder.reset()
        for n in range(length):
            decoder.step(rows[n % 16])

    bench.case(
        f"step with a grammar, default chain, {len(vocabulary):,} logits", walk, target=20.0, per=length, steps=length
    )
