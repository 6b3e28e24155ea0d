"""XGrammar's structural tags by model name: read here, each has the texts that it has there."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import logitree as lt
from drawn_texts import drawn, mutated

pytestmark = pytest.mark.peers

xgrammar = pytest.importorskip("xgrammar")
INFO = xgrammar.TokenizerInfo(
    [*(bytes([byte]) for byte in range(256)), b"</s>"], stop_token_ids=[256], vocab_type=xgrammar.VocabType.RAW
)
COMPILER = xgrammar.GrammarCompiler(INFO, cache_enabled=False)
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "on": {"type": "boolean"}},
                "required": ["city"],
            },
        },
    }
    for name in ("weather", "time")
]
MODELS = [
    "cohere",
    "deepseek_r1",
    "deepseek_v3_1",
    "deepseek_v3_2",
    "deepseek_v4",
    "deepseek_v4_1",
    "exaone",
    "glm_4_7",
    "harmony",
    "kimi",
    "kimi_k3",
    "llama",
    "mimo",
    "minimax",
    "minimax_m3",
    "qwen_3",
    "qwen_3_5",
    "qwen_3_coder",
]


def requested(model: str, **options: Any) -> dict[str, Any]:
    made = xgrammar.get_model_structural_tag(model, tools=TOOLS, max_whitespace_cnt=2, **options)
    tag: dict[str, Any] = json.loads(made.model_dump_json(exclude_none=True))
    return tag


def same(tag: dict[str, Any], seed: str) -> None:
    rnd, ours = random.Random(seed), lt.Grammar.structural_tag(tag)
    compiled = COMPILER.compile_structural_tag(tag)
    texts = [drawn(ours, rnd) for _ in range(12)]
    texts += [mutated(text, rnd) for text in texts for _ in range(4)]
    accepted = 0
    for text in texts:
        theirs = xgrammar.GrammarMatcher(compiled)
        known = bool(theirs.accept_string(text)) and bool(theirs.is_completed())
        assert ours.matches(text) == known, text
        accepted += known
    assert accepted >= 12


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("reasoning", ["enabled", "disabled"])
@pytest.mark.parametrize("choice", ["auto", "required", "none"])
def test_the_tag_of_a_model_has_xgrammars_texts(model: str, choice: str, reasoning: str) -> None:
    same(requested(model, tool_choice=choice, reasoning=reasoning), model + choice + reasoning)


@pytest.mark.parametrize("model", MODELS)
def test_one_call_of_one_tool_has_xgrammars_texts(model: str) -> None:
    choice = {"type": "function", "function": {"name": "time"}}
    same(requested(model, tool_choice=choice, parallel_tool_calls=False, any_order=False), model)
