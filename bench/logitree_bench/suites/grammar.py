"""Grammars: the mask and accepting a token, by what is warm, beside llguidance, XGrammar and llama.cpp's grammar.

There are three temperatures. Cold process: the first grammar after the vocabulary was loaded. Warm vocabulary: a
grammar never seen before, in a process that has used others. Warm grammar: further texts of a grammar that was walked
once. A figure a token is the mean over one text, mask and accept together. Schemas at large are MaskBench's, which is a
command of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from logitree_bench import Bench, Skip, lower_quartile, vocabulary_file
from logitree_bench.maskbench._engines import Engine, Refused
from logitree_bench.maskbench._run import tokenizer
from logitree_bench.suites._subjects import SUBJECTS
from logitree_bench.suites._walks import CONTENDERS, Start, cold, engines, first_use, scaling, tokenize_all, walks

OURS = "logitree"
LARGE = ("JSON (GBNF)", "maxLength 1,000", "128 tools")
"""What is also measured with the vocabulary of 262,144 tokens."""
COLD = ("JSON (GBNF)", "128 tools")
THREADS = "128 tools"
THREAD_GRAMMARS = {"logitree": 48, "llguidance": 24, "xgrammar": 6, "llama.cpp": 0}
"""How many grammars the threads are given in all: a third alone, the rest two at a time."""

Tokenize = Callable[[str], list[int]]


def run(bench: Bench) -> None:
    """Measure both vocabularies."""
    for vocabulary, subjects in (("llama-bpe", tuple(SUBJECTS)), ("gemma-4", LARGE)):
        path = vocabulary_file(vocabulary)
        tokenize = path if isinstance(path, Skip) else tokenizer(path)
        if isinstance(path, Skip) or isinstance(tokenize, Skip):
            bench.skip(vocabulary, path.reason if isinstance(path, Skip) else _reason(tokenize))
            continue
        found = engines(path)
        variants = count(1)
        for subject in subjects:
            one(bench, vocabulary, subject, found, tokenize, variants)
        if vocabulary == "llama-bpe":
            threads(bench, found, tokenize, variants)
            for subject in COLD:
                fresh_process(bench, path, subject, tokenize)


def _reason(found: Tokenize | Skip) -> str:
    return found.reason if isinstance(found, Skip) else ""


def one(
    bench: Bench,
    vocabulary: str,
    name: str,
    found: dict[str, Engine | Skip],
    tokenize: Tokenize,
    variants: Iterator[int],
) -> None:
    """One subject: new grammars of its kind, then one grammar over and over."""
    rounds = 3 if bench.quick else 9
    first: dict[str, list[float]] = {}
    token: dict[str, list[float]] = {}
    starts: dict[str, Start] = {}
    skipped = {engine: made.reason for engine, made in found.items() if isinstance(made, Skip)}
    subject = SUBJECTS[name](0)
    tokens = tokenize(subject.text)
    for engine, made in found.items():
        if isinstance(made, Skip):
            continue
        try:
            starts[engine], _, _ = first_use(made, engine, subject, tokens)
            for _ in range(rounds):
                other = SUBJECTS[name](next(variants))
                _, first_s, token_s = first_use(made, engine, other, tokenize(other.text))
                first.setdefault(engine, []).append(first_s)
                token.setdefault(engine, []).append(token_s)
        except Refused as problem:
            skipped[engine] = str(problem)[:100]
            starts.pop(engine, None)
    later = walks(starts, tokens, 7 if bench.quick else 25, 0.5 if bench.quick else 4.0)
    label = f"{vocabulary}, {name}"
    for what, seconds, length in (
        ("new grammar, compile and first mask", first, None),
        ("new grammar, a token", token, None),
        ("warm grammar, a token", later, len(tokens)),
    ):
        compare(bench, f"{label}: {what}", quartiles(seconds), skipped, unit="us", tokens=length)


def compare(bench: Bench, name: str, figures: dict[str, float], skipped: dict[str, str], **more: Any) -> None:
    """Record ours beside the others'."""
    if OURS in figures:
        own = figures.pop(OURS)
        bench.record(name, own, peers=figures, skipped=skipped, **more)
    else:
        bench.skip(name, skipped.get(OURS, "not measured"), peers=figures)


def quartiles(seconds: dict[str, list[float]]) -> dict[str, float]:
    """Lower quartiles in microseconds."""
    return {engine: lower_quartile(found) * 1e6 for engine, found in seconds.items() if found}


def threads(bench: Bench, found: dict[str, Engine | Skip], tokenize: Tokenize, variants: Iterator[int]) -> None:
    """Two threads with new grammars, beside one."""
    figures: dict[str, float] = {}
    skipped: dict[str, str] = {}
    for engine, made in found.items():
        size = THREAD_GRAMMARS[engine] // (2 if bench.quick else 1)
        if isinstance(made, Skip) or not size:
            skipped[engine] = made.reason if isinstance(made, Skip) else "reads GBNF only"
            continue
        subjects, texts = tokenize_all(SUBJECTS[THREADS], [next(variants) for _ in range(size)], tokenize)
        try:
            figures[engine] = scaling(made, engine, subjects, texts)
        except Refused as problem:
            skipped[engine] = str(problem)[:100]
    name = f"{THREADS}: two threads, new grammars, as fast as one"
    compare(bench, name, figures, skipped, unit="times", better="higher")


def fresh_process(bench: Bench, path: Path, subject: str, tokenize: Tokenize) -> None:
    """A process for each engine: time until ready, first use, memory."""
    tokens = tokenize(SUBJECTS[subject](0).text)
    answers = {engine: cold(engine, path, subject, tokens) for engine in CONTENDERS}
    skipped = {engine: found.reason for engine, found in answers.items() if isinstance(found, Skip)}
    rows = {
        "ready_s": ("cold process, import and vocabulary", 1.0, "s"),
        "first_s": ("cold process, compile and first mask", 1e6, "us"),
        "token_s": ("cold process, a token", 1e6, "us"),
        "grammar_bytes": ("memory of a grammar", 1 / 1024, "KiB"),
        "matcher_bytes": ("memory of a matcher", 1 / 1024, "KiB"),
    }
    for key, (what, scale, unit) in rows.items():
        values = {
            engine: found[key] * scale
            for engine, found in answers.items()
            if not isinstance(found, Skip) and key in found
        }
        compare(bench, f"{subject}: {what}", values, skipped, unit=unit)
