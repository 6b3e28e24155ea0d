"""Trees of continuations in llama.cpp, by each of its ways: logits and choices against sessions of their own."""

from __future__ import annotations

import math
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import logitree as lt
from logitree.engines import ContextFull
from logitree.engines._trees import by_rows, by_sessions

llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
from logitree.engines.llama_cpp import LlamaCpp  # noqa: E402

LABELS = [" yes", " no", " maybe", " maybe not", " certainly", " certainly not", " unknown"]


@pytest.fixture(scope="module")
def engine(smollm2_gguf: Path) -> LlamaCpp:
    return LlamaCpp(smollm2_gguf, n_ctx=256, n_batch=32, n_threads=1)


def random_tree(seed: int, n: int) -> tuple[list[int], list[int]]:
    """A tree, children of some nodes far from each other in the lists."""
    numbers = np.random.default_rng(seed)
    parents = [int(numbers.integers(-1, node)) for node in range(n)]
    return parents, numbers.integers(1000, 40000, n).tolist()


def path(parents: list[int], tokens: list[int], node: int) -> list[int]:
    """The tokens from the prompt to a node."""
    made: list[int] = []
    while node >= 0:
        made.append(tokens[node])
        node = parents[node]
    return made[::-1]


@pytest.mark.parametrize("n", [0, 1, 40])
def test_a_tree_gives_the_logits_of_sessions(engine: LlamaCpp, n: int) -> None:
    prompt = engine.tokenize("The capital of France is Paris, and that of Mongolia")
    parents, tokens = random_tree(n, n)
    rows: dict[int, np.ndarray] = {}
    before = engine.counters.forward_passes
    took = engine.tree_logits(prompt, parents, tokens, lambda node, row: rows.update({node: row.copy()}))
    assert sorted(rows) == list(range(-1, n))
    assert took.passes <= engine.counters.forward_passes - before <= took.passes + 1
    for way in (by_rows, by_sessions) if n else (by_sessions,):
        others: dict[int, np.ndarray] = {}
        way(engine, prompt, parents, tokens, lambda node, row: others.update({node: row.copy()}))  # noqa: B023
        assert sorted(others) == sorted(rows)
        assert max(float(np.abs(others[node] - rows[node]).max()) for node in rows) <= 1e-3
    for node in (-1, *range(0, n, 9)):
        alone = engine.session().evaluate([*prompt, *path(parents, tokens, node)])
        assert np.array_equal(alone, rows[node]), "to the bit"


def test_the_prompt_stays_in_memory_and_nothing_else(engine: LlamaCpp) -> None:
    prompt = engine.tokenize("One, two, three, four, five, six, seven")
    parents, tokens = random_tree(5, 12)
    engine.tree_logits(prompt, parents, tokens, lambda node, row: None)
    session = engine.session()
    assert session.begin([*prompt, *path(parents, tokens, 11)]) == len(prompt)
    assert engine.tree_logits(prompt, parents, tokens, lambda node, row: None).reused == len(prompt) - 1

    def fails(node: int, row: np.ndarray) -> None:
        if node == 3:
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        engine.tree_logits(prompt, parents, tokens, fails)
    greedy = {"chat": False, "temperature": 0.0, "max_tokens": 4}
    assert lt.generate(engine, prompt, **greedy).text == lt.generate(engine, prompt, **greedy, seed=1).text


def test_what_does_not_fit_is_evaluated_in_parts_or_refused(engine: LlamaCpp) -> None:
    prompt = engine.tokenize("word " * 90)
    parents, tokens = random_tree(2, 300)
    rows: dict[int, float] = {}
    took = engine.tree_logits(prompt, parents, tokens, lambda node, row: rows.update({node: float(row[0])}))
    assert len(rows) == 301
    assert took.passes >= 300 // 32
    for node in (150, 299):
        alone = engine.session().evaluate([*prompt, *path(parents, tokens, node)])
        assert float(alone[0]) == rows[node]
    line = list(range(-1, 255 - len(prompt) + 1))
    with pytest.raises(ContextFull):
        engine.tree_logits(prompt, line, [1000] * len(line), lambda node, row: None)
    with pytest.raises(lt.TokenError, match="outside the model's vocabulary"):
        engine.tree_logits(prompt, [-1], [10**6], lambda node, row: None)


def test_threads_choose_in_turns(engine: LlamaCpp) -> None:
    prompts = [f"Question: Is {what} wet? Answer:" for what in ("water", "sand", "fire", "snow")]
    alone = [lt.choose(engine, prompt, LABELS, chat=False).probabilities for prompt in prompts]
    with ThreadPoolExecutor(4) as pool:
        both = pool.map(lambda prompt: lt.choose(engine, prompt, LABELS, chat=False).probabilities, prompts * 2)
        for expected, got in zip(alone * 2, both, strict=True):
            assert got == pytest.approx(expected, abs=1e-3)


def test_an_engine_is_freed_with_its_last_name(smollm2_gguf: Path) -> None:
    freed = weakref.ref(LlamaCpp(smollm2_gguf, n_ctx=64, n_batch=32, n_threads=1))
    assert freed() is None


def slowly(engine: LlamaCpp, prompt: list[int], sequence: list[int]) -> float:
    """The log-probability of tokens, each in a session of its own."""
    total = 0.0
    for at, token in enumerate(sequence):
        row = engine.session().evaluate([*prompt, *sequence[:at]]).astype(np.float64)
        total += row[token] - row.max() - math.log(np.exp(row - row.max()).sum())
    return total


def test_choices_are_those_of_values_scored_alone(engine: LlamaCpp) -> None:
    question = "Question: Is water wet? Answer:"
    prompt = engine.encode(question, chat=False)
    spelled = [engine.tokenize(label) for label in LABELS]
    logs = []
    for tokens in spelled:
        ends = any(o != tokens and o[: len(tokens)] == tokens for o in spelled)
        of_ends = [slowly(engine, prompt, [*tokens, end]) for end in engine.vocabulary.end_tokens] if ends else []
        logs.append(float(np.logaddexp.reduce(of_ends)) if ends else slowly(engine, prompt, tokens))
    weights = np.exp(np.array(logs) - max(logs))
    chosen = lt.choose(engine, question, LABELS, chat=False)
    assert chosen.probabilities == pytest.approx(weights / weights.sum(), abs=1e-5)
    assert chosen.stats.forward_passes == 1, "one batch holds the prompt's last token and the whole tree"
    everywhere = lt.choose(engine, question, LABELS[:2], chat=False, tokenization="any")
    usual = lt.choose(engine, question, LABELS[:2], chat=False)
    assert everywhere.probabilities == pytest.approx(usual.probabilities, abs=0.05)


def test_an_adopted_model_chooses_alike(engine: LlamaCpp, smollm2_gguf: Path) -> None:
    llama = llama_cpp.Llama(str(smollm2_gguf), n_ctx=256, n_threads=1, flash_attn=True, verbose=False)
    question = "Question: Is water wet? Answer:"
    adopted, own = (lt.choose(one, question, LABELS, chat=False) for one in (llama, engine))
    assert adopted.probabilities == pytest.approx(own.probabilities, abs=1e-3)
