"""Canonical spelling on MaskBench texts: what a step costs beside the same constraint with every spelling.

Every valid instance is walked token by token, as the tokenizer spells it. Cold: the first walk, in which the
states of its matcher are met for the first time. Warm: the second walk. A greedy step decides the likeliest token
alone; masks are what all other chains and engines ask for.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

import logitree as lt
from logitree_bench import Bench, required, vocabulary_file
from logitree_bench._data import MASKBENCH, data_file, parse_case, read_maskbench

VOCABULARY = "llama-bpe"
EVERY = 40
"""One schema in so many; a tenth of them in a quick run."""
TARGET_US = 20.0


def run(bench: Bench) -> None:
    """Measure cold and warm steps."""
    path, archive = required(vocabulary_file(VOCABULARY)), required(data_file(MASKBENCH))
    tokenizer = lt.Tokenizer.from_gguf(path)
    words = np.zeros(lt.masks.words(len(tokenizer.vocabulary)), np.int32)
    logits = np.zeros(len(tokenizer.vocabulary), np.float32)
    spent = {"cold": 0.0, "warm": 0.0, "plain, cold": 0.0, "plain, warm": 0.0, "greedy": 0.0, "plain, greedy": 0.0}
    steps = texts = refused = exceeded = 0
    files = read_maskbench(archive)
    for name in sorted(files)[:: EVERY * 10 if bench.quick else EVERY]:
        case = parse_case(name, files[name])
        try:
            plain, plain_greedy, other = (first_use(case.schema, tokenizer.vocabulary) for _ in range(3))
            canonical, greedy = tokenizer.canonical(plain), tokenizer.canonical(other)
        except lt.LogitreeError:
            refused += 1
            continue
        for instance in case.instances:
            tokens = tokenizer.encode(instance.text)
            if not instance.valid or not takes(plain, tokens):
                continue
            try:
                took = {
                    f"{whose}{which}": walked(matcher.fork(), tokens, words)
                    for which in ("cold", "warm")
                    for whose, matcher in (("plain, ", plain), ("", canonical))
                }
                for whose, matcher in (("plain, ", plain_greedy), ("", greedy)):
                    took[f"{whose}greedy"] = stepped(tokenizer.vocabulary, matcher.fork(), tokens, logits)
            except lt.LimitError:
                exceeded += 1
                continue
            texts, steps = texts + 1, steps + len(tokens)
            for which, seconds in took.items():
                spent[which] += seconds
    if not steps:
        bench.skip("what canonical spelling adds to a step", f"no text of {archive.name} could be walked")
        return
    greedy_mean = {key: 1e6 * spent[key] / steps for key in ("greedy", "plain, greedy")}
    more: dict[str, Any] = {
        "steps": steps,
        "texts": texts,
        "schemas refused": refused,
        "texts past the limits": exceeded,
        "vocabulary": VOCABULARY,
    }
    bench.record(
        f"what canonical spelling adds to a greedy step, cold, {steps:,} steps",
        greedy_mean["greedy"] - greedy_mean["plain, greedy"],
        unit="us",
        target=TARGET_US,
        step=round(greedy_mean["greedy"], 2),
        step_of_every_spelling=round(greedy_mean["plain, greedy"], 2),
        **more,
    )
    for which in ("cold", "warm"):
        mean = {key: 1e6 * spent[key] / steps for key in (which, f"plain, {which}")}
        bench.record(
            f"a step's mask in canonical spelling, {which}, {steps:,} steps",
            mean[which],
            unit="us",
            peers={"every spelling": mean[f"plain, {which}"]},
            target=TARGET_US,
            **more,
        )


def first_use(schema: Any, vocabulary: lt.Vocabulary) -> lt.Matcher:
    """A matcher that shares nothing with those before it."""
    vocabulary.clear_bindings()
    return lt.Grammar.json_schema(schema, order="any").matcher(vocabulary)


def takes(matcher: lt.Matcher, tokens: list[int]) -> bool:
    """Whether the constraint takes the text."""
    fresh = matcher.fork()
    try:
        for token in tokens:
            fresh.accept(token)
    except lt.LogitreeError:
        return False
    return True


def walked(matcher: lt.Matcher, tokens: list[int], words: npt.NDArray[np.int32]) -> float:
    """Seconds for the masks of all steps."""
    seconds, fill = 0.0, lt.masks.fill_batch
    for token in tokens:
        start = time.perf_counter()
        fill(matcher, words)
        seconds += time.perf_counter() - start
        matcher.accept(token)
    return seconds


def stepped(
    vocabulary: lt.Vocabulary, matcher: lt.Matcher, tokens: list[int], logits: npt.NDArray[np.float32]
) -> float:
    """Seconds for a greedy decoder's steps, and for asking after each which tokens are forced. The logit of the text's
    next token is the greatest."""
    seconds, decoder = 0.0, lt.Decoder(vocabulary, lt.Chain.greedy(), matcher)
    for token in tokens:
        logits[token] = 1.0
        start = time.perf_counter()
        decoder.step(logits)
        decoder.forced_tokens()
        seconds += time.perf_counter() - start
        logits[token] = 0.0
    return seconds
