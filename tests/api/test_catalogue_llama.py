"""A catalogue of 100,000 titles and the real model: nothing but titles comes out, sampled, by beams, after a thought.

`LOGITREE_CATALOGUE_RUNS=1000 pytest tests/api/test_catalogue_llama.py` makes more runs than the suite does.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import logitree as lt
from logitree.engines.llama_cpp import LlamaCpp

pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")

RUNS = int(os.environ.get("LOGITREE_CATALOGUE_RUNS", "10"))

FIRST = """
Amber Autumn Blue Broken Burning Crimson Distant Empty Endless Fallen Forgotten Frozen Gentle Glass Golden
Hidden Hollow Humble Iron Ivory Last Little Lonely Lost Lucky Midnight Narrow Northern Old Pale Paper Patient
Perfect Quiet Restless Scarlet Second Secret Seven Silent Silver Simple Sleeping Southern Stolen Summer Velvet
Wandering Wild Winter
"""
SECOND = """
Angel Bird Boat Book Bride Bridge Captain Castle Child City Clock Country Dancer Daughter Desert Door Dream
Emperor Engine Field Flower Forest Garden Ghost Harbor Hotel House Island Journey King Lamp Library Lion Map
Market Mirror Moon Mountain Ocean Orchard Painter Queen River Road Sailor Shadow Song Storm Tower Train
"""
THIRD = """
Athens Berlin Bombay Boston Cairo Dublin Genoa Havana Istanbul Kyoto Lagos Lima Lisbon London Madrid Manila
Milan Minsk Moscow Naples Nairobi Oslo Paris Porto Prague Quebec Riga Rome Samarkand Seville Siena Sydney
Tangier Tokyo Toronto Tunis Turin Venice Vienna Warsaw
"""


@pytest.fixture(scope="module")
def engine(smollm2_gguf: Path) -> LlamaCpp:
    return LlamaCpp(smollm2_gguf, n_ctx=1024)


@pytest.fixture(scope="module")
def titles() -> list[str]:
    return [f"The {a} {b} of {c}" for a in FIRST.split() for b in SECOND.split() for c in THIRD.split()]


@pytest.fixture(scope="module")
def tree(engine: LlamaCpp, titles: list[str], tmp_path_factory: pytest.TempPathFactory) -> lt.Catalogue:
    assert len(set(titles)) == 100_000
    path = tmp_path_factory.mktemp("catalogue") / "titles.index"
    return lt.Catalogue.from_codes(map(engine.tokenize, titles), path=path)


def request(number: int) -> str:
    wishes = ("a sad story by the sea", "something about winter", "a book on music", "a crime story", "a fairy tale")
    return f"Reader {number} asks for {wishes[number % len(wishes)]}. The librarian recommends this title: "


def test_every_run_gives_a_title(engine: LlamaCpp, tree: lt.Catalogue, titles: list[str]) -> None:
    end, known = engine.vocabulary.end_tokens[0], set(titles)
    matcher: Any = tree.matcher(engine.vocabulary, end_token=end)
    seen = set()
    for run in range(RUNS):
        chain = lt.Chain([lt.samplers.temp(1.5), lt.samplers.dist(run)])
        events = lt.generate(engine, request(run), matcher, chain=chain, chat=False, max_tokens=40)
        finish = [event for event in events if isinstance(event, lt.Finish)][-1]
        assert finish.text in known
        item = tree.items([token for token in finish.tokens if token != end])
        assert [titles[int(i)] for i in item] == [finish.text]
        seen.add(finish.text)
    assert len(seen) > RUNS // 2


def test_every_beam_is_a_title(engine: LlamaCpp, tree: lt.Catalogue, titles: list[str]) -> None:
    paths = tree.walk(vocabulary=len(engine.vocabulary))
    prompts = [engine.tokenize(request(number)) for number in range(5)]
    for found in lt.beam_search(engine, prompts, paths, width=10):
        assert len({tuple(hypothesis.tokens) for hypothesis in found}) == 10
        for hypothesis in found:
            title = b"".join(engine.vocabulary[token] for token in hypothesis.tokens).decode()
            assert [titles[int(item)] for item in hypothesis.items] == [title]
        scores = [hypothesis.log_probability for hypothesis in found]
        assert scores == sorted(scores, reverse=True)


def test_a_bounded_thought_stands_before_the_title(engine: LlamaCpp, tree: lt.Catalogue, titles: list[str]) -> None:
    end, known = engine.vocabulary.end_tokens[0], set(titles)
    budget = lt.ReasoningBudget(budget=12)
    for run in range(max(RUNS // 8, 3)):
        matcher = tree.matcher(engine.vocabulary, end_token=end)
        chain = lt.Chain([lt.samplers.temp(1.0), lt.samplers.dist(run)])
        prompt = request(run) + "<think>"
        events = lt.generate(engine, prompt, budget + matcher, chain=chain, chat=False, max_tokens=80)
        finish = [event for event in events if isinstance(event, lt.Finish)][-1]
        text, _, title = finish.text.rpartition("</think>")
        assert title in known
        assert 0 < finish.stats.reasoning_tokens <= 12 + len(engine.tokenize("</think>"))
        assert text.count("</think>") == 0
