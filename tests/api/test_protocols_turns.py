"""Turns as the models' own chat templates write them: allowed, and read as what they were made of."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

import logitree as lt
from logitree._constraint import Context
from logitree.protocols import Protocol
from protocol_texts import KINDS, in_chunks, read, spelled, vocabulary

Calls = list[tuple[str, dict[str, Any]]]

F = {"type": "object", "properties": {"a": {"type": "integer"}}}
TOOLS: dict[str, Any] = {"f": F, "g": {"type": "object", "properties": {}}}

MISTRAL = '[TOOL_CALLS][{"name": "f", "arguments": {"a": 1}, "id": "abcdefghi"}]'
DSML = "<｜DSML｜function_calls>\n<｜DSML｜invoke name="
INKLING = '<|content_invoke_tool_json|>{"name":"f","args":{"a":1}}<|end_message|>'


class KIMI:
    """Pieces of Kimi K3's turns."""

    think = "<|open|>think<|sep|>hm<|close|>think<|sep|>"
    empty = "<|open|>response<|sep|><|close|>response<|sep|>"
    call = (
        '<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|><|open|>argument key="a" type="number"<|sep|>1'
        "<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>"
    )
    end = "<|close|>message<|sep|>"


PLAMO = (
    "<|plamo:begin_think:plamo|>hm<|plamo:end_think:plamo|><|plamo:begin_tool_requests:plamo|>"
    "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>f<|plamo:end_tool_name:plamo|>"
    '<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>{"a": 1}'
    "<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|><|plamo:end_tool_requests:plamo|>"
)
MUSE = (
    ' to=f<|message|><atem:function_calls>\n<atem:invoke name="f">\n<atem:parameter name="a">1</atem:parameter>\n'
    "</atem:invoke>\n</atem:function_calls>"
)
LLAMA = '{"name": "f", "parameters": {"a": 1}}'

TURNS: list[tuple[str, str, str | None, str, Calls]] = [
    # protocol, text, reasoning, content, calls
    ("glm_4_5", "<think>hm</think>\n<tool_call>g\n</tool_call>", "hm", "", [("g", {})]),
    ("glm_4_5", "\n<think>hm</think>\nHello", "hm", "Hello", []),
    (
        "glm_4_5",
        "\n<think></think>\n<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>",
        "",
        "",
        [("f", {"a": 1})],
    ),
    # Ling: two line ends.
    ("glm_4_5", "<think>hm</think>\n\n<tool_call>g\n</tool_call>", "hm", "", [("g", {})]),
    # Nemotron, Step: one line end; Bielik: none.
    ("qwen3_coder", "<think>hm</think>\nHello", "hm", "Hello", []),
    ("qwen3_coder", "<think>hm</think>Hello", "hm", "Hello", []),
    ("qwen3", "<think>hm</think>Hello", "hm", "Hello", []),
    (
        "qwen3_coder",
        "<think>hm</think>\n<tool_call>\n<function=g>\n</function>\n</tool_call>\n\n"
        "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
        "hm",
        "",
        [("g", {}), ("f", {"a": 1})],
    ),
    ("mistral_args", '[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{"a": 1}', None, "", [("f", {"a": 1})]),
    ("mistral_args", '[TOOL_CALLS]f{"a": 1}', None, "", [("f", {"a": 1})]),
    ("mistral_args", 'Hm.[TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g{}', None, "Hm.", [("f", {"a": 1}), ("g", {})]),
    ("mistral", MISTRAL, None, "", [("f", {"a": 1})]),
    ("mistral", MISTRAL.replace("[[", "[ [").replace("S][", "S] ["), None, "", [("f", {"a": 1})]),
    ("granite_3", '<|tool_call|> [{"name": "f", "arguments": {"a": 1}}]', None, "", [("f", {"a": 1})]),
    ("deepseek_v3_2", f'\n\n{DSML}"g">\n\n</｜DSML｜invoke>\n</｜DSML｜function_calls>', None, "", [("g", {})]),
    ("deepseek_v3_2", f'\n\n{DSML}"g">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>', None, "", [("g", {})]),
    ("inkling", "<|content_thinking|>hm<|end_message|><|message_model|>" + INKLING, "hm", "", [("f", {"a": 1})]),
    ("muse_glimmer", " to=self<|message|>hm<|eom|><|start|>assistant" + MUSE + "<|eot|>", "hm", "", [("f", {"a": 1})]),
    ("muse_glimmer", MUSE + "<|eom|><|start|>assistant" + MUSE + "<|eot|>", None, "", [("f", {"a": 1})] * 2),
    (
        "muse_glimmer",
        " to=user<|message|>Go to=there.<|eom|><|start|>assistant" + MUSE + "<|eot|>",
        None,
        "Go to=there.",
        [("f", {"a": 1})],
    ),
    ("kimi_k3", KIMI.think + KIMI.empty + KIMI.call + KIMI.end, "hm", "", [("f", {"a": 1})]),
    ("kimi_k3", KIMI.call, None, "", [("f", {"a": 1})]),
    ("kimi_k3", KIMI.think + KIMI.empty.replace("><|close", ">Hi<|close") + KIMI.end, "hm", "Hi", []),
    ("plamo_3", PLAMO, "hm", "", [("f", {"a": 1})]),
    ("inkling", "f" + INKLING, None, "", [("f", {"a": 1})]),
    ("inkling", INKLING + "<|message_model|>f" + INKLING, None, "", [("f", {"a": 1})] * 2),
    ("inkling", "<|content_text|>Hi<|end_message|>", None, "Hi", []),
    ("inkling", "<|content_text|>Hi<|end_message|><|message_model|>f" + INKLING, None, "Hi", [("f", {"a": 1})]),
    (
        "magistral_2506",
        '<think>\nhm\n</think>\n\n[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{"a": 1}',
        "\nhm\n",
        "",
        [("f", {"a": 1})],
    ),
    ("granite_3_2", "Here's my thought process:\n\nhm\n\nHere's my response:\n\nHi", "\n\nhm\n\n", "Hi", []),
    ("granite_3_3", "<think>hm</think>\n<response>Hi</response>", "hm", "Hi", []),
    ("granite_3_3", "<think>hm</think><response>\nHi\n</response>", "hm", "\nHi\n", []),
    ("granite_3_3", "Hi", None, "Hi", []),
    ("granite_3_3", '<|tool_call|>[{"name": "f", "arguments": {"a": 1}}]', None, "", [("f", {"a": 1})]),
    ("granite_3_3", '<think>hm</think>\n<|tool_call|>[{"name": "g", "arguments": {}}]', "hm", "", [("g", {})]),
    ("k2_horizon", "<ifm|think_faster>hm</ifm|think_faster>Hi", "hm", "Hi", []),
    ("llama3", f"<|python_tag|>{LLAMA}", None, "", [("f", {"a": 1})]),
    ("llama3", f"{LLAMA}; {LLAMA}", None, "", [("f", {"a": 1})] * 2),
    (
        "harmony",
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant to=functions.f<|channel|>commentary json"
        '<|message|>{"a": 1}<|call|>',
        "hm",
        "",
        [("f", {"a": 1})],
    ),
    (
        "harmony",
        '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": 1}<|call|>'
        "<|start|>assistant<|channel|>commentary to=functions.g<|message|>{}<|call|>",
        None,
        "",
        [("f", {"a": 1}), ("g", {})],
    ),
]


def allowed(matcher: lt.Matcher, tokens: Sequence[int]) -> bool:
    """Whether a matcher takes all tokens and may end then."""
    for token in tokens:
        if matcher.is_finished or not matcher.is_allowed(token):
            return False
        matcher.accept(token)
    return matcher.is_accepting


@pytest.mark.parametrize("turn", TURNS, ids=lambda turn: f"{turn[0]}-{turn[1][:40]!r}")
@pytest.mark.parametrize("kind", KINDS)
def test_turns_of_templates_are_allowed_and_read(turn: tuple[str, str, str | None, str, Calls], kind: str) -> None:
    name, text, reasoning, content, calls = turn
    protocol, rng = Protocol.named(name), random.Random(0)
    vocab = vocabulary(protocol, kind)
    tokens = spelled(text, vocab, rng, markers=kind != "text")
    some = ["auto"] + (["required"] if calls and not content else [])
    budgets: list[Any] = [None] + ([True] if reasoning is not None else [])
    budgets += [9] if protocol.reasoning else []
    for choice, budget in itertools.product(some, budgets):
        constraint = protocol.constraint(tools=TOOLS, tool_choice=choice, reasoning=budget)
        assert allowed(constraint.matcher(vocab), tokens), (choice, budget)
    found = read(protocol, vocab, [tokens], tools=TOOLS)
    assert (found.text, found.notes) == (text, ())
    assert (found.reasoning, found.content) == (reasoning, content)
    assert [(call.name, call.arguments) for call in found.tool_calls] == calls
    assert read(protocol, vocab, in_chunks(tokens, rng), tools=TOOLS) == found
    assert read(protocol, None, list(text), tools=TOOLS).parts == found.parts


@pytest.mark.parametrize("effort", ["think", "think_fast", "think_faster"])
def test_reasoning_ends_with_the_marker_that_the_prompt_began(effort: str) -> None:
    protocol = Protocol.named("k2_horizon")
    vocab, rng = vocabulary(protocol, "control"), random.Random(0)
    prompt = spelled(f"<ifm|{effort}>\n", vocab, rng, markers=True)
    ends = {
        f"</ifm|{word}>": vocab.find(f"</ifm|{word}>".encode())[0] for word in ("think", "think_fast", "think_faster")
    }
    for budget in (None, True, 0, 1):
        matcher = protocol.constraint(reasoning=budget).bind(Context(vocab, prompt=prompt))
        if budget != 0:
            matcher.accept(97)
        assert [text for text, id in ends.items() if matcher.is_allowed(id)] == [f"</ifm|{effort}>"]
    for end in ends.values():  # a parser takes any of the ends
        assert protocol.parse([97, end, 98], vocab, prompt=prompt).reasoning == "a"
    said = protocol.constraint(begun=True).matcher(vocab)
    assert all(said.is_allowed(id) for id in ends.values())


def test_suffixes_of_markers_are_found_in_the_vocabulary() -> None:
    protocol, rng = Protocol.named("hunyuan_4"), random.Random(0)
    suffixed = replace(protocol, markers=tuple(f"{marker[:-1]}:6124c78e>" for marker in protocol.markers))
    for kind in ("control", "user_defined"):
        vocab = vocabulary(suffixed, kind)
        assert Protocol.recognise(vocabulary=vocab) == protocol.of_vocabulary(vocab) != protocol
        text = "<think:6124c78e>hm</think:6124c78e><tool_calls:6124c78e><tool_call:6124c78e>f<arg_key:6124c78e>a"
        text += (
            "</arg_key:6124c78e><arg_value:6124c78e>1</arg_value:6124c78e></tool_call:6124c78e></tool_calls:6124c78e>"
        )
        tokens = spelled(text, vocab, rng, markers=True)
        for form in (protocol, protocol.of_vocabulary(vocab)):
            assert allowed(form.constraint(tools=TOOLS, reasoning=9).matcher(vocab), tokens)
            found = form.parse(tokens, vocab, tools=TOOLS)
            assert (found.reasoning, found.content, found.notes) == ("hm", "", ())
            assert [(call.name, call.arguments) for call in found.tool_calls] == [("f", {"a": 1})]
        assert protocol.of_vocabulary(vocab).parse(text).tool_calls[0].name == "f"
        # Not one of the suffixed markers is missing, and plain ones come first.
        some = vocabulary(replace(protocol, markers=suffixed.markers[:-1]), kind)
        both = vocabulary(replace(protocol, markers=protocol.markers + suffixed.markers), kind)
        assert [protocol.of_vocabulary(one) for one in (some, both, None)] == [protocol] * 3


def test_a_tool_with_a_name_that_begins_something_else_is_refused() -> None:
    protocol = Protocol.named("muse_glimmer")
    for name in ("self", "user"):
        with pytest.raises(lt.ConstraintError, match=f"a tool is called '{name}', which begins something else"):
            protocol.constraint(tools={name: F}).matcher(vocabulary(protocol, "control"))
    protocol.constraint(tools={"self.user": F}).matcher(vocabulary(protocol, "control"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_before_a_marker_is_no_content(kind: str) -> None:
    protocol = Protocol.named("inkling")
    vocab, rng = vocabulary(protocol, kind), random.Random(0)
    matcher = protocol.constraint(tools=TOOLS, tool_choice="required").matcher(vocab)
    other = spelled("g" + INKLING, vocab, rng, markers=kind != "text")
    assert not allowed(matcher, other)  # the two names are one tool's
    for text, content in (
        ("g" + INKLING, ""),
        ("f<|content_text|>Hi<|end_message|>", "Hi"),
        ("plain", "plain"),
        ("plain text " + INKLING, "plain text "),
        ("x" * 300 + INKLING, "x" * 300),
        ("f<|content_model_end_sampling|>", "f" if kind != "text" else "f<|content_model_end_sampling|>"),
        ("f<|message_model|>", "f"),
        ("\n", ""),
    ):
        tokens = spelled(text, vocab, rng, markers=kind != "text")
        found = read(protocol, vocab, [tokens])
        assert (found.content, len(found.tool_calls)) == (content, text.count(INKLING)), text
        assert found.text == text
        assert read(protocol, vocab, tokens) == found
        assert read(protocol, None, list(text)).parts == read(protocol, None, [text]).parts


def test_harmony_ends_with_the_end_tokens_of_its_own_vocabulary() -> None:
    protocol = Protocol.named("harmony")
    words = list(protocol.markers)
    tokens = [*(bytes([byte]) for byte in range(256)), *(word.encode() for word in words)]
    ends = [256 + words.index(word) for word in ("<|return|>", "<|call|>")]
    vocab = lt.Vocabulary.from_tokens(tokens, kinds=["normal"] * 256 + ["control"] * len(words), end_tokens=ends)
    final = spelled("<|channel|>final<|message|>yes", vocab, random.Random(0), markers=True)
    header = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>"
    call = spelled(header + '{"a": 1}', vocab, random.Random(0), markers=True)
    for constraint, text, end in (
        (protocol.constraint(), final, ends[0]),
        (protocol.constraint(["yes"]), final, ends[0]),
        (protocol.constraint(["yes"], tools=TOOLS, reasoning=5), final, ends[0]),
        (protocol.constraint(tools=TOOLS), call, ends[1]),
        (protocol.constraint(tools=TOOLS, tool_choice="f", reasoning=5), call, ends[1]),
    ):
        matcher = constraint.matcher(vocab)
        matcher.accept_many(text)
        assert not matcher.is_accepting
        assert [id for id in ends if matcher.is_allowed(id)] == [end]
        assert matcher.shortest_ending()[-1:] == [end]
        matcher.accept(end)
        assert matcher.is_finished
        assert matcher.is_accepting
        for given in (text, [*text, end]):
            found = constraint.read(given, Context(vocab))
            assert found.notes == ()
            assert (found.content, len(found.tool_calls)) == (("yes", 0) if text is final else ("", 1))
        matcher.rollback(1)
        assert not matcher.is_accepting
        assert matcher.is_allowed(end)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('{"type": "function", "name": "f", "parameters": {"a": 1}}', True),
        ('{\n  "name": "f",\n  "parameters": {\n    "a": 1\n  }\n}', True),
        ('{ "name" : "f", "parameters": {"a": 1}}', True),
        ('{"parameters": {"a": 1}, "name": "f"}', True),
        ('{"arguments":{"a":1},"type":"function","name":"f"}', True),
        ('{"type": "object", "name": "f", "parameters": {"a": 1}}', False),
        ('{"named": "f", "parameters": {"a": 1}}', False),
        ('{"name": 3, "parameters": {"a": 1}}', False),
        ('{"a": {"b": 1}}', False),
        ("{}", False),
        ("{", False),
    ],
)
@pytest.mark.parametrize("before", ["", "<|python_tag|>", "Look: ", f"{LLAMA}; "])
def test_objects_of_llama_in_any_order_and_spacing(text: str, calls: bool, before: str) -> None:
    protocol = Protocol.named("llama3")
    found = read(protocol, None, [before + text])
    more = [("f", {"a": 1})] * (before.startswith("{"))
    assert [(call.name, call.arguments) for call in found.tool_calls] == more + [("f", {"a": 1})] * calls
    content = {"Look: ": "Look: ", f"{LLAMA}; ": "; " * (not calls)}.get(before, "")
    assert found.content == content + text * (not calls)
    assert found.text == before + text
    assert read(protocol, None, list(before + text)) == found
    vocab = vocabulary(protocol, "control")
    if before == "Look: " and calls:
        # What is read as a call is not allowed as text.
        exact = text.startswith('{"name": "')
        assert allowed(protocol.constraint(tools=TOOLS).matcher(vocab), list((before + text).encode())) == exact


def test_an_answer_that_begins_like_a_call_of_llama_is_refused() -> None:
    protocol = Protocol.named("llama3")
    vocab = vocabulary(protocol, "control")
    for key in ("type", "parameters", "arguments", "name"):
        value = {"name": {"type": "string"}, "type": {"const": "function"}}.get(key, {"type": "object"})
        schema = {"type": "object", "properties": {key: value, "b": {}}, "required": [key, "b"]}
        with pytest.raises(lt.ConstraintError, match="the answer may begin with"):
            protocol.constraint(schema, tools=TOOLS).matcher(vocab)
    protocol.constraint({"type": "object", "properties": {"a": {}}, "required": ["a"]}, tools=TOOLS).matcher(vocab)


@pytest.mark.parametrize(
    ("value", "read_as"),
    [
        ("1e400", None),
        ("-1e400", None),
        ("NaN", None),
        ("Infinity", None),
        ("-Infinity", None),
        ("1e3", 1000),
        ("1.5e3", 1500.0),
        ("-0", 0),
        ("9" * 5_000, 10**5_000 - 1),
        ("-" + "9" * 5_000, 1 - 10**5_000),
        ("9" * 30_000, None),
    ],
    ids=lambda value: str(value)[:12] if isinstance(value, str) else "",
)
def test_numbers_are_read_exactly_or_not_at_all(value: str, read_as: Any) -> None:
    protocol = Protocol.named("hermes")
    text = f'<tool_call>\n{{"name": "f", "arguments": {{"a": {value}}}}}\n</tool_call>'
    found = protocol.parse(text)
    if read_as is None:
        assert found.notes == ("a tool call is malformed, or has no end",)
        assert found.content == text
    else:
        (call,) = found.tool_calls
        assert (call.arguments["a"], type(call.arguments["a"])) == (read_as, type(read_as))
    keyed = Protocol.named("qwen3_coder")
    text = f"<tool_call>\n<function=f>\n<parameter=a>\n{value}\n</parameter>\n</function>\n</tool_call>"
    (call,) = keyed.parse(text, tools=TOOLS).tool_calls
    assert call.arguments == {"a": value if read_as is None else read_as}


CONTINUED: list[tuple[str, str, str, str, Calls]] = [
    # protocol, prompt, text, content, calls
    ("kimi_k3", KIMI.empty[: KIMI.empty.index("<|close|>")], "Hi<|close|>response<|sep|>" + KIMI.end, "Hi", []),
    ("kimi_k3", "<|open|>response<|sep|>", "Hi<|close|>response<|sep|>" + KIMI.call, "Hi", [("f", {"a": 1})]),
    ("kimi_k3", "<|open|>response<|sep|>", "<|close|>response<|sep|>" + KIMI.call + KIMI.end, "", [("f", {"a": 1})]),
    ("harmony", "<|start|>assistant<|channel|>final<|message|>", "Hi<|return|>", "Hi", []),
    (
        "harmony",
        "<|channel|>commentary<|message|>",
        'Hi<|end|><|start|>assistant<|channel|>commentary to=functions.f<|message|>{"a": 1}<|call|>',
        "Hi",
        [("f", {"a": 1})],
    ),
    (
        "harmony",
        "<|channel|>commentary<|message|>",
        "x<|end|><|start|>assistant<|channel|>final<|message|>Hi",
        "xHi",
        [],
    ),
]


@pytest.mark.parametrize("turn", CONTINUED, ids=lambda turn: f"{turn[0]}-{turn[2][:40]!r}")
@pytest.mark.parametrize("kind", KINDS)
def test_a_prompt_may_begin_the_content(turn: tuple[str, str, str, str, Calls], kind: str) -> None:
    name, begun, text, content, calls = turn
    protocol, rng = Protocol.named(name), random.Random(0)
    vocab = vocabulary(protocol, kind)
    prompt = spelled("x" + begun, vocab, rng, markers=kind != "text")
    tokens = spelled(text, vocab, rng, markers=kind != "text")
    required = [("required", None)] if calls and not content else []
    for choice, budget in [("auto", None), ("auto", True), ("auto", 9), *required]:
        matcher = protocol.constraint(tools=TOOLS, tool_choice=choice, reasoning=budget).bind(
            Context(vocab, prompt=prompt)
        )
        if text.endswith("Hi"):  # the answer's end is missing
            assert all(matcher.accept(token) is None for token in tokens)
        else:
            assert allowed(matcher, tokens), (choice, budget)
    found = protocol.parse(tokens, vocab, prompt=prompt, tools=TOOLS)
    assert (found.reasoning, found.content) == (None, content)
    assert [(call.name, call.arguments) for call in found.tool_calls] == calls
    if kind == "control" and not calls and not text.endswith("Hi"):
        chosen = protocol.constraint(["Hi", "Ho"]).bind(Context(vocab, prompt=prompt))
        assert allowed(chosen, tokens)
    if protocol.name == "harmony" and "final" in begun:
        with pytest.raises(lt.ConstraintError, match="a call is required, and the prompt has begun the answer"):
            protocol.constraint(tools=TOOLS, tool_choice="required").bind(Context(vocab, prompt=prompt))
