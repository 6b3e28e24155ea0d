"""Protocols beside XGrammar's built-in structural tags: both accept the same texts, ours reads theirs."""

from __future__ import annotations

import json
from typing import Any

import pytest

import logitree as lt
from logitree.protocols import Protocol
from protocol_texts import paired

pytestmark = pytest.mark.peers
xgrammar = pytest.importorskip("xgrammar")

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
THEIRS = {
    "qwen3": "qwen_3",
    "qwen3_coder": "qwen_3_coder",
    "llama3": "llama",
    "deepseek_r1": "deepseek_r1",
    "deepseek_v3_1": "deepseek_v3_1",
    "deepseek_v3_2": "deepseek_v3_2",
    "deepseek_v4": "deepseek_v4",
    "deepseek_v4_1": "deepseek_v4_1",
    "kimi_k2": "kimi",
    "glm_4_7": "glm_4_7",
    "exaone_4": "exaone",
    "mimo": "mimo",
    "minimax_m3": "minimax_m3",
}
"""Our names by those of XGrammar, where both write the same form."""


def call(protocol: Protocol, name: str, arguments: dict[str, Any]) -> str:
    """A call as our table has it."""
    calls = protocol.calls
    assert calls is not None
    if calls.pairs is None:
        written = json.dumps(arguments)
    else:
        pieces = [piece for key, value in arguments.items() for piece in paired(calls.pairs, key, value)]
        written = "".join(text for text, _ in pieces)
    head = calls.before + calls.begin + calls.head + name + calls.middle.replace("{number}", "0")
    return head + written + calls.tail + calls.end


def accepted_by_xgrammar(model: str, text: str, **options: Any) -> bool:
    words = [bytes([byte]) for byte in range(256)]
    info = xgrammar.TokenizerInfo([*words, b"</s>"], stop_token_ids=[256], vocab_type=xgrammar.VocabType.RAW)
    tag = xgrammar.builtin_structural_tag.get_model_structural_tag(model, tools=TOOLS, **options)
    matcher = xgrammar.GrammarMatcher(xgrammar.GrammarCompiler(info).compile_structural_tag(tag))
    return bool(matcher.accept_string(text)) and bool(matcher.is_completed())


def accepted_by_us(protocol: Protocol, text: str, **options: Any) -> bool:
    vocabulary = lt.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)])
    matcher = protocol.constraint(tools=TOOLS, **options).matcher(vocabulary)
    for byte in text.encode():
        if matcher.is_finished or not matcher.is_allowed(byte):
            return False
        matcher.accept(byte)
    return matcher.is_accepting


@pytest.mark.parametrize("name", THEIRS)
def test_both_accept_the_same_texts(name: str) -> None:
    protocol, model = Protocol.named(name), THEIRS[name]
    block = protocol.reasoning
    good, bare = call(protocol, "weather", {"city": "Oslo", "days": 3}), call(protocol, "weather", {"city": ""})
    texts = [
        (good, True),
        (bare, True),
        (call(protocol, "weather", {"days": 3}), False),
        (call(protocol, "weather", {"city": "Oslo", "more": 1}), False),
        (call(protocol, "forecast", {"city": "Oslo"}), False),
        (good[:-1], False),
    ]
    for text, fine in texts:
        required = {"tool_choice": "required"}
        assert accepted_by_us(protocol, text, reasoning=0 if block else None, **required) == fine, text
        assert accepted_by_xgrammar(model, text, reasoning="disabled", **required) == fine, text
        assert accepted_by_us(protocol, "Hm. " + text, reasoning=0 if block else None) == fine, text
        assert accepted_by_xgrammar(model, "Hm. " + text, reasoning="disabled") == fine, text
    if block is None:
        return
    for text, fine in ((block.begin + "Hm" + block.end + block.after + good, True), (good, False)):
        assert accepted_by_us(protocol, text, reasoning=True) == fine
        opened = text if fine else block.begin
        # XGrammar's "enabled" begins after the marker, which the prompt has then, except for MiMo.
        begun = opened if model == "mimo" else opened.removeprefix(block.begin)
        assert accepted_by_xgrammar(model, begun, reasoning="enabled") == fine


@pytest.mark.parametrize(
    "header",
    [
        "<|channel|>commentary to=functions.weather<|constrain|>json<|message|>",
        " to=functions.weather<|channel|>commentary <|constrain|>json<|message|>",
        " to=functions.weather<|channel|>commentary json<|message|>",
    ],
)
def test_every_form_of_harmony_that_xgrammar_allows_is_read(header: str) -> None:
    text = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant" + header + '{"city": "Oslo"}<|call|>'
    assert accepted_by_xgrammar("harmony", text)
    found = Protocol.named("harmony").parse(text)
    assert (found.reasoning, found.content, found.notes) == ("Hm.", "", ())
    assert [(one.name, one.arguments) for one in found.tool_calls] == [("weather", {"city": "Oslo"})]
