"""Reasoning budgets: the cost of a token, mask and accept together, inside a block, at its end, and in the answer.

The answer is a JSON object; its peer is the grammar without a reasoning block before it. Rolling back between two calls
is not timed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import logitree as lt
from logitree_bench import Bench, Prepared, large_vocabulary, required
from logitree_bench.suites.decoder import spell

TOKENS = 64
"""Tokens that are thought in one call."""

MESSAGE = b"\n\nThat is enough of thinking, and now comes the answer.\n"
ANSWER = b'{"name": "Ada", "age": 36, "tags": ["mathematics", "machines"]}'
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}


def run(bench: Bench) -> None:
    """Measure one vocabulary."""
    vocabulary = lt.Vocabulary.from_gguf(required(large_vocabulary()))
    label = f"{len(vocabulary):,} ids"
    begin, end, message = (spell(vocabulary, text) for text in (b"<think>", b"</think>", MESSAGE))
    drawn = np.random.default_rng(3).integers(0, len(vocabulary), 4 * TOKENS).tolist()
    thought = tags(begin, end, message, budget=1 << 20)
    inside = thought.matcher(vocabulary, at="inside")
    words = [token for token in drawn if inside.is_allowed(token) and token not in vocabulary.end_tokens][:TOKENS]
    a_token(bench, f"{label}: inside a thought", inside, words)
    soft = tags(begin, end, message, budget=2 * TOKENS, soft=1)
    a_token(bench, f"{label}: inside, with a soft budget", soft.matcher(vocabulary, at="inside"), words, bias=True)
    closing = thought.matcher(vocabulary, at="closing")
    a_token(bench, f"{label}: closing, message and end", closing, [*message, *end])
    grammar = lt.Grammar.json_schema(SCHEMA)
    answer = spell(vocabulary, ANSWER)
    after = (thought + grammar).matcher(vocabulary, at="outside")
    after.accept_many([*begin, *words, *end])
    a_token(bench, f"{label}: in the answer, a JSON Schema", after, answer, alone=grammar.matcher(vocabulary))
    a_token(bench, f"{label}: where either may begin", (thought + grammar).matcher(vocabulary), begin[:1])


def tags(
    begin: list[int],
    end: list[int],
    message: list[int],
    *,
    budget: int,
    soft: int | None = None,
) -> lt.ReasoningBudget:
    """Reasoning with tags of ordinary tokens."""
    return lt.ReasoningBudget([begin], [end], message=message, whole_tags=True, budget=budget, soft_budget=soft)


def a_token(
    bench: Bench,
    name: str,
    matcher: lt.Matcher,
    tokens: Sequence[int],
    *,
    bias: bool = False,
    alone: lt.Matcher | None = None,
) -> None:
    """Mask and accept of one token after the other."""
    peers = {} if alone is None else {"the grammar alone": walking(alone, tokens)}
    bench.case(
        f"{name}, a token", walking(matcher, tokens, bias=bias), peers=peers, per=len(tokens), tokens=len(tokens)
    )


def walking(matcher: lt.Matcher, tokens: Sequence[int], *, bias: bool = False) -> Prepared:
    """A mask before each token, which are all accepted; to be rolled back before the next call."""
    out, born, fill = matcher.allowed().mask(), matcher.accepted, lt.masks.fill_batch

    def walk() -> None:
        for token in tokens:
            fill(matcher, out)
            if bias:
                matcher.bias()
            matcher.accept(token)

    return Prepared(lambda: matcher.rollback(matcher.accepted - born), walk)
