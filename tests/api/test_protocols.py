"""Protocols of chat models: what the constraint allows the parser reads, each character once, for every protocol.

The slow version of the parser is in `rendered`: a response is made of parts first and written out then, so the parts
that the parser must give are known.
"""

from __future__ import annotations

import itertools
import json
import pickle
import random
import time
from collections.abc import Sequence
from functools import reduce
from typing import Any

import pytest

import logitree as lt
from data_files import corpus, gguf_vocabulary
from logitree._constraint import Context
from logitree.engines.llama_cpp import LlamaCpp
from logitree.protocols import (
    NAMES,
    PROTOCOLS,
    Content,
    Protocol,
    Reasoning,
)
from protocol_texts import (
    KINDS,
    TOOLS,
    WEATHER,
    check_events,
    in_chunks,
    kind_of,
    read,
    rendered,
    some_arguments,
    some_text,
    spelled,
    stops,
    vocabulary,
)

CASES: list[dict[str, Any]] = corpus("protocols", "written.toml")["case"]

ids = pytest.mark.parametrize("protocol", PROTOCOLS, ids=NAMES)
kinds = pytest.mark.parametrize("kind", KINDS)


@ids
@kinds
def test_what_the_protocol_writes_is_allowed_and_read(protocol: Protocol, kind: str) -> None:
    vocab = vocabulary(protocol, kind)
    constraint = protocol.constraint(tools=TOOLS)
    called = 0
    for seed in range(12):
        rng = random.Random(seed)
        banned = stops(protocol)
        reasoning = some_text(rng, banned) if protocol.reasoning and rng.random() < 0.6 else None
        content = some_text(rng, banned)
        content = "" if not content.strip(" \n") else content
        most = 3
        calls = [
            ("weather", some_arguments(rng, protocol)) if rng.random() < 0.8 else ("stop-now", {})
            for _ in range(rng.randrange(most + 1))
        ]
        called += len(calls)
        pieces = rendered(protocol, reasoning, content, calls)
        whole = "".join(text for text, _ in pieces)
        tokens = [id for text, marks in pieces for id in spelled(text, vocab, rng, markers=marks and kind != "text")]
        matcher = constraint.matcher(vocab)
        taken = matcher.validate(tokens)
        assert taken == len(tokens), (whole, vocab.decode(tokens[:taken], skip_special=False))
        matcher.accept_many(tokens)
        assert matcher.is_accepting

        found = read(protocol, vocab, [tokens], tools=TOOLS)
        assert found.text == whole
        assert found.notes == ()
        assert found.reasoning == reasoning
        assert found.content == content
        assert [(call.name, dict(call.arguments)) for call in found.tool_calls] == calls, whole
        assert [call.index for call in found.tool_calls] == list(range(len(calls)))
        assert read(protocol, vocab, tokens, tools=TOOLS).parts == found.parts
        assert read(protocol, vocab, in_chunks(tokens, rng), tools=TOOLS) == found
        assert read(protocol, vocab, [[*tokens, len(vocab) - 1]], tools=TOOLS).parts == found.parts
    assert called > 3


@ids
def test_text_is_read_in_any_chunks_of_bytes(protocol: Protocol) -> None:
    for seed in range(10):
        rng = random.Random(seed)
        banned = stops(protocol)
        reasoning = some_text(rng, banned) if protocol.reasoning else None
        calls = [("weather", some_arguments(rng, protocol)), ("stop-now", {})]
        whole = "".join(text for text, _ in rendered(protocol, reasoning, "Hm: é", calls))
        found = read(protocol, None, [whole], tools=TOOLS)
        assert (found.text, found.reasoning, found.content) == (whole, reasoning, "Hm: é")
        assert [(call.name, dict(call.arguments)) for call in found.tool_calls] == calls, whole
        assert read(protocol, None, in_chunks(whole.encode(), rng), tools=TOOLS) == found
        assert read(protocol, None, list(whole), tools=TOOLS) == found


def walked(matcher: lt.Matcher, vocab: lt.Vocabulary, protocol: Protocol, rng: random.Random, n: int) -> list[int]:
    """A random text of a constraint: plain characters, quotes and brackets, whole markers where they are allowed."""
    out: list[int] = []
    plain = [id for id in range(256) if chr(id) in 'abc1 "{}[]:,<>/\\\n']
    marks = [*stops(protocol), "</think>", "[/THINK]", "<|end|>", "</tool_call>"]
    while len(out) < n and not matcher.is_finished:
        if matcher.is_accepting and rng.random() < 0.02:
            return out
        if rng.random() < 0.2:
            tokens = spelled(rng.choice(marks), vocab, rng, markers=rng.random() < 0.8)
            tokens = tokens[: matcher.validate(tokens)]
        else:
            allowed = matcher.allowed()
            tokens = [
                rng.choice([id for id in plain if id in allowed] or [id for id in allowed if id < len(vocab) - 1])
            ]
        matcher.accept_many(tokens)
        out += tokens
    return out + ended(matcher, vocab, protocol)


def ended(matcher: lt.Matcher, vocab: lt.Vocabulary, protocol: Protocol) -> list[int]:
    """Tokens that complete a response: of reasoning and content their end markers, then the shortest ending."""
    out: list[int] = []
    for block in (protocol.reasoning, *protocol.content):
        for markers in (True, False):
            tokens = spelled(block.end, vocab, random.Random(0), markers=markers) if block else []
            if not matcher.is_accepting and matcher.validate(tokens) == len(tokens):
                matcher.accept_many(tokens)
                out += tokens
            forced = matcher.forced_tokens()
            matcher.accept_many(forced)
            out += forced
    return out if matcher.is_accepting else out + matcher.shortest_ending(max_states=100_000)


@ids
@kinds
def test_whatever_the_constraint_allows_is_read(protocol: Protocol, kind: str) -> None:
    vocab = vocabulary(protocol, kind)
    choices: list[dict[str, Any]] = [
        {"tools": TOOLS},
        {"tools": TOOLS, "tool_choice": "required"},
        {"tools": TOOLS, "tool_choice": "weather"},
        {"tools": TOOLS, "parallel": False, "reasoning": 0},
        {"tools": TOOLS, "tool_choice": "none"},
        {},
    ]
    if protocol.reasoning:
        choices += [{"tools": TOOLS, "tool_choice": "required", "reasoning": True}]
        if kind != "text" and protocol.reasoning.end in protocol.markers:
            choices += [{"tools": TOOLS, "tool_choice": "stop-now", "reasoning": 5}]
        choices += [{"tools": TOOLS, "tool_choice": "required", "begun": True}]
    for options, seed in itertools.product(choices, range(2)):
        rng = random.Random(seed)
        constraint = protocol.constraint(**options)
        tokens = walked(constraint.matcher(vocab), vocab, protocol, rng, 120)
        parser = constraint.parser(vocab)
        events = parser.feed(tokens) + parser.finish()
        found = parser.response
        check_events(events, found)
        whole = vocab.decode(tokens, skip_special=False).decode("utf-8", "replace")
        assert found.text == whole
        assert found.notes == (), whole
        choice = options.get("tool_choice", "auto")
        assert len(found.tool_calls) >= (choice in ("required", "weather", "stop-now"))
        assert len(found.tool_calls) <= (
            1 if choice in ("weather", "stop-now") or not options.get("parallel", True) else 99
        )
        assert not found.tool_calls or choice != "none"
        assert all(call.name == "weather" for call in found.tool_calls if choice == "weather")
        assert not (found.tool_calls and choice in ("required", "weather") and found.content)
        for call in found.tool_calls:
            assert call.arguments.keys() <= WEATHER["properties"].keys()
            assert ("city" in call.arguments) == (call.name == "weather")
        if options.get("reasoning") == 0:
            assert found.reasoning is None
        if options.get("reasoning") is True or options.get("begun"):
            assert isinstance(found.parts[0], Reasoning)


@ids
def test_calls_have_strict_schemas_and_known_names(protocol: Protocol) -> None:
    vocab, rng = vocabulary(protocol, "control"), random.Random(1)

    def allowed(calls: Sequence[tuple[str, dict[str, Any]]], content: str = "", **options: Any) -> bool:
        pieces = rendered(protocol, None, content, calls)
        tokens = [id for text, marks in pieces for id in spelled(text, vocab, rng, markers=marks)]
        matcher = protocol.constraint(tools=TOOLS, **options).matcher(vocab)
        for token in tokens:
            if matcher.is_finished or not matcher.is_allowed(token):
                return False
            matcher.accept(token)
        return matcher.is_accepting

    call = ("weather", {"city": "Oslo"})
    assert allowed([call])
    assert not allowed([("weather", {})])
    assert not allowed([("weather", {"city": "Oslo", "more": 1})])
    assert not allowed([("weather", {"city": "Oslo", "days": 100})])
    assert not allowed([("forecast", {"city": "Oslo"})])
    assert allowed([call, call])
    assert not allowed([call, call], parallel=False)
    assert allowed([call], parallel=False)
    assert allowed([], "Hello.")
    assert not allowed([], "Hello.", tool_choice="required")
    assert not allowed([call], "Hello.", tool_choice="required")
    assert allowed([call, ("stop-now", {})], tool_choice="required")
    assert not allowed([call], tool_choice="stop-now")
    assert allowed([("stop-now", {})], tool_choice="stop-now")
    assert not allowed([call, call], tool_choice="weather")
    assert not allowed([call], tool_choice="none")
    assert allowed([], "Hello.", tool_choice="none")


def test_reasoning_none_required_bounded_and_begun_by_the_prompt() -> None:
    protocol = Protocol.named("qwen3")
    vocab = vocabulary(protocol, "user_defined")
    (begin,), (end,), (newlines,) = vocab.find(b"<think>"), vocab.find(b"</think>"), vocab.find(b"\n\n")
    a, yes = ord("a"), ["yes"]

    def first(reasoning: Any, prompt: Sequence[int] = ()) -> set[int]:
        matcher = protocol.constraint(yes, reasoning=reasoning).bind(Context(vocab, None, prompt))
        return set(matcher.allowed())

    assert first(None) == {begin, ord("<"), ord("y")} - {ord("<")}
    assert first(True) == {begin}
    assert first(7) == {begin, ord("y")}
    assert first(0) == first(False) == {ord("y")}
    assert begin not in first(None, [a, begin])
    assert {a, end} <= first(True, [a, begin, ord("\n")])
    assert {a, end} <= first(7, [begin, newlines])
    assert first(0, [begin]) == {end}
    assert first(None, [begin, a, end]) == first(None)

    matcher = protocol.constraint(yes, reasoning=3).bind(Context(vocab, None, [begin]))
    matcher.accept_many([a, a, a])
    assert matcher.forced_tokens()[:2] == [end, newlines]
    matcher.accept_many([end, newlines, *b"yes"])
    assert matcher.is_accepting
    found = protocol.constraint(yes, reasoning=3).read([a, a, a, end, newlines, *b"yes"], Context(vocab, None, [begin]))
    assert (found.reasoning, found.content, found.answer) == ("aaa", "yes", "yes")


def test_a_budget_counts_where_markers_are_text() -> None:
    protocol, yes = Protocol.named("qwen3"), ["yes"]
    plain = vocabulary(protocol, "text")
    matcher = protocol.constraint(yes, reasoning=3).bind(Context(plain, None, list(b"x<think>")))
    for _ in range(3):
        assert {ord("a"), ord("<")} <= set(matcher.allowed())
        matcher.accept(ord("a"))
    assert {plain[token] for token in matcher.allowed()} == {b"<", b"</"}
    matcher.accept_many([*b"</think>\n\nyes"])
    assert matcher.is_accepting
    whole = protocol.constraint(yes, reasoning=3).matcher(plain)
    assert {plain[token][:1] for token in whole.allowed()} == {b"<", b"y"}
    whole.accept_many([*b"<think>a<b"])
    assert {plain[token] for token in whole.allowed()} == {b"<", b"</"}

    class Other(lt.Constraint):
        def matcher(self, vocabulary: lt.Vocabulary, /) -> lt.Matcher:
            return lt.Grammar.literal("yes").matcher(vocabulary)

    with pytest.raises(lt.ConstraintError, match=r"'</think>' is no token .* before an answer of this kind"):
        protocol.constraint(Other(), reasoning=3).matcher(plain)


def test_an_answer_is_all_of_the_content_and_gives_its_value() -> None:
    protocol = Protocol.named("hermes")
    vocab = vocabulary(protocol, "text")
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    constraint = protocol.constraint(schema, tools=TOOLS)
    tricky = json.dumps({"text": '<tool_call>{"name": "weather", "arguments": {"city": "x"}}</tool_call>'})
    matcher = constraint.matcher(vocab)
    matcher.accept_many(tricky.encode())
    assert matcher.is_accepting
    found = constraint.read(list(tricky.encode()), Context(vocab))
    assert found.parts == (Content(tricky, tricky),)
    assert found.answer == json.loads(tricky)
    call = b'<tool_call>\n{"name": "weather", "arguments": {"city": "x"}}\n</tool_call>'
    matcher = constraint.matcher(vocab)
    matcher.accept_many(call)
    assert [part.name for part in constraint.read(list(call + b"\n" + call), Context(vocab)).tool_calls] == [
        "weather"
    ] * 2

    harmony = Protocol.named("harmony")
    vocab = vocabulary(harmony, "control")
    constraint = harmony.constraint(int, reasoning=4)
    text = [(f"{harmony.content[0].begin}", True), ("42", False), ("<|return|>", True)]
    tokens = [id for one, marks in text for id in spelled(one, vocab, random.Random(0), markers=marks)]
    matcher = constraint.matcher(vocab)
    matcher.accept_many(tokens)
    assert matcher.is_accepting
    assert constraint.read(tokens, Context(vocab)).answer == 42
    with pytest.raises(lt.ConstraintError, match="so an answer cannot be distinguished from its end"):
        constraint.protocol.constraint(int).matcher(vocabulary(harmony, "text"))


def test_answers_that_begin_like_something_else_are_refused() -> None:
    llama, hermes = Protocol.named("llama3"), Protocol.named("hermes")
    person = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    with pytest.raises(lt.ConstraintError, match="the answer may begin with"):
        llama.constraint(person, tools=TOOLS).matcher(vocabulary(llama, "control"))
    llama.constraint(person).matcher(vocabulary(llama, "control"))
    with pytest.raises(lt.ConstraintError, match="the answer may begin with '<tool_call>'"):
        hermes.constraint(lt.Grammar.text(), tools=TOOLS).matcher(vocabulary(hermes, "text"))
    hermes.constraint(lt.Grammar.text(), tools=TOOLS).matcher(vocabulary(hermes, "control"))
    with pytest.raises(lt.ConstraintError, match="the answer may begin with '<tool_call>'"):
        hermes.constraint(lt.Grammar.text(), tools=TOOLS).matcher(vocabulary(hermes, "user_defined"))
    call = lt.Grammar.token("<tool_call>") + "x"
    with pytest.raises(lt.ConstraintError, match="the answer may begin with '<tool_call>'"):
        hermes.constraint(call, tools=TOOLS).matcher(vocabulary(hermes, "control"))
    with pytest.raises(lt.ConstraintError, match="the answer names tokens"):
        llama.constraint(lt.Grammar.token('{"') + "x", tools=TOOLS).matcher(vocabulary(llama, "control"))


def test_an_answer_may_have_any_added_token_in_it() -> None:
    protocol = Protocol.named("qwen3")
    vocab = vocabulary(protocol, "user_defined")
    constraint = protocol.constraint({"type": "string"}, tools=TOOLS, reasoning=True)
    quoted = "".join((*protocol.markers, *protocol.turn_end))
    pieces = [("<think>", True), ("a", False), ("</think>\n\n", True), (f'"{quoted}"', True)]
    tokens = [id for text, marks in pieces for id in spelled(text, vocab, random.Random(0), markers=marks)]
    matcher = constraint.matcher(vocab)
    matcher.accept_many(tokens)
    assert matcher.is_accepting
    found = constraint.read(tokens, Context(vocab))
    assert (found.reasoning, found.answer) == ("a", quoted)
    assert len(found.parts) == 2
    harmony = Protocol.named("harmony")
    with pytest.raises(lt.ConstraintError, match="'<|return|>' is text in this vocabulary"):
        harmony.constraint(int).matcher(vocabulary(harmony, "user_defined"))


def test_the_end_of_a_value_may_be_inside_of_its_json_any_number_of_times() -> None:
    protocol = Protocol.named("qwen3_coder")
    tags = ["</parameter>" * 200, 'a"\\', "\n</parameter>\n</function>"]
    call = "".join(text for text, _ in rendered(protocol, None, "", [("weather", {"city": "", "tags": tags})]))
    found = read(protocol, None, in_chunks(call, random.Random(3)), tools=TOOLS)
    assert [dict(one.arguments) for one in found.tool_calls] == [{"city": "", "tags": tags}]


def test_a_control_token_is_told_from_its_characters() -> None:
    protocol = Protocol.named("hermes")
    vocab = vocabulary(protocol, "control")
    call = '{"name": "weather", "arguments": {"city": "Rome"}}\n'
    (begin,), (end,) = vocab.find(b"<tool_call>"), vocab.find(b"</tool_call>")
    spelled_out = list(f"Write <tool_call>\n{call}</tool_call> so.".encode())
    assert protocol.parse(spelled_out, vocab).tool_calls == ()
    assert protocol.parse(spelled_out, vocab).content == bytes(spelled_out).decode()
    found = protocol.parse([*spelled_out, begin, *call.encode(), end], vocab)
    assert [call.arguments for call in found.tool_calls] == [{"city": "Rome"}]
    assert found.content == bytes(spelled_out).decode()
    matcher = protocol.constraint(tools=TOOLS).matcher(vocab)
    matcher.accept_many(list(b"Write <tool_call> so."))
    assert matcher.is_accepting


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['protocol']}-{case['text'][:40]}")
def test_what_models_write_without_a_constraint(case: dict[str, Any]) -> None:
    protocol, text = Protocol.named(case["protocol"]), case["text"]
    found = read(protocol, None, [text])
    assert found.text == text
    calls = json.loads(case.get("calls", "[]"), strict=False)
    assert [[call.name, dict(call.arguments)] for call in found.tool_calls] == calls
    assert found.content == case.get("content", "")
    assert len(found.notes) == case.get("notes", 0)
    assert read(protocol, None, list(text)) == found


def test_reasoning_that_is_open_or_has_no_end() -> None:
    protocol = Protocol.named("qwen3")
    assert read(protocol, None, ["Hm</think>\n\nyes"], begun=True).parts == (
        Reasoning("Hm", "Hm</think>"),
        Content("yes", "\n\nyes"),
    )
    (part,) = read(protocol, None, ["<think>Hm <tool_call>"]).parts
    assert part == Reasoning("Hm <tool_call>", "<think>Hm <tool_call>", "the reasoning has no end")
    found = read(protocol, None, ["Look: <think> is a tag </think>."])
    assert found.parts == (Content("Look: <think> is a tag </think>.", "Look: <think> is a tag </think>."),)


def test_the_prompt_says_whether_reasoning_has_begun() -> None:
    for name in ("qwen3", "harmony", "mistral_args"):
        protocol = Protocol.named(name)
        assert protocol.reasoning is not None
        for kind in KINDS:
            vocab, rng = vocabulary(protocol, kind), random.Random(0)
            begin = spelled(protocol.reasoning.begin, vocab, rng, markers=kind != "text")
            end = spelled(protocol.reasoning.end, vocab, rng, markers=kind != "text")
            for prompt, begun in (([], False), (begin, True), ([65, *begin, 10], True), ([*begin, *end], False)):
                parser = protocol.parser(vocab, prompt=prompt)
                parser.feed([97])
                parser.finish()
                assert isinstance(parser.parts[0], Reasoning) == begun, (name, kind, prompt)
            # A message that quotes the marker in its middle begins nothing.
            assert protocol.parse([97], vocab, prompt=[*begin, 97]).reasoning is None


@pytest.mark.parametrize(
    "piece",
    ["<", "<tool_call>", '<tool_call>\n{"name": "f", "arguments": {"a": "', "{", " ", '{"name": "', "[", "<think>"],
)
def test_hostile_streams_take_linear_time(piece: str) -> None:
    for protocol in PROTOCOLS:
        text = piece * (8_000 // len(piece))
        began = time.perf_counter()
        parser = protocol.parser()
        for at in range(0, len(text), 7):
            parser.feed(text[at : at + 7])
        parser.finish()
        assert parser.response.text == text
        assert time.perf_counter() - began < 5


def test_deep_arguments_are_refused_in_time() -> None:
    text = '<tool_call>{"name": "f", "arguments": ' + '{"a":' * 100_000
    found = read(Protocol.named("hermes"), None, [text])
    assert found.text == text
    assert found.tool_calls == ()


def test_a_parser_says_what_it_needs() -> None:
    parser = Protocol.named("qwen3").parser()
    with pytest.raises(lt.StateError, match="token ids without a vocabulary"):
        parser.feed(3)
    parser.finish()
    assert parser.finish() == []
    with pytest.raises(lt.StateError, match="the response is finished"):
        parser.feed("x")


def test_protocols_are_recognised_from_vocabularies_or_by_name() -> None:
    def of(*texts: str, name: str = "") -> lt.Vocabulary:
        tokens = [b"a", *(text.encode() for text in texts)]
        return lt.Vocabulary.from_tokens(tokens, kinds=["normal"] + ["control"] * len(texts), name=name)

    assert Protocol.recognise(vocabulary=of(*Protocol.named("harmony").markers)).name == "harmony"
    assert Protocol.recognise(vocabulary=of("[TOOL_CALLS]", "[INST]")).name == "mistral"
    assert Protocol.recognise(vocabulary=of("[TOOL_CALLS]", "[ARGS]")).name == "mistral_args"
    assert Protocol.recognise(vocabulary=of("<|im_start|>", "<tool_call>")).name == "hermes"
    qwen = ("<|im_start|>", "<tool_call>", "<think>")
    assert Protocol.recognise(vocabulary=of(*qwen, name="Qwen3 0.6B")).name == "qwen3"
    assert Protocol.recognise(vocabulary=of(*qwen, name="Qwen3 Coder 30B A3B Instruct")).name == "qwen3_coder"
    with pytest.raises(lt.ConstraintError, match="fits several protocols: qwen3_coder, qwen3; give the chat template"):
        Protocol.recognise(vocabulary=of(*qwen))
    with pytest.raises(lt.ConstraintError, match="no protocol is recognised in the vocabulary; looked for .*<think>"):
        Protocol.recognise(vocabulary=of("<|im_start|>"))
    with pytest.raises(lt.ConstraintError, match="neither a template nor a vocabulary"):
        Protocol.recognise()
    with pytest.raises(lt.ConstraintError, match="no protocol is called 'qwen'; the names are harmony, "):
        Protocol.named("qwen")


@pytest.mark.data
def test_real_vocabularies_are_recognised() -> None:
    assert Protocol.recognise(vocabulary=lt.Vocabulary.from_gguf(gguf_vocabulary("llama-bpe"))).name == "llama3"
    with pytest.raises(lt.ConstraintError, match="no protocol is recognised"):
        Protocol.recognise(vocabulary=lt.Vocabulary.from_gguf(gguf_vocabulary("qwen2")))


@pytest.mark.data
@pytest.mark.parametrize("kind", ["control", "user_defined"])
@pytest.mark.parametrize("name", ["qwen3", "qwen3_coder", "harmony"])
def test_a_real_vocabulary_with_markers(name: str, kind: str) -> None:
    base = lt.Vocabulary.from_gguf(gguf_vocabulary("qwen2"))
    protocol = Protocol.named(name)
    kinds = [base.kind(id) for id in range(len(base))] + [kind] * len(protocol.markers)
    tokens = [*base, *(marker.encode() for marker in protocol.markers)]
    vocab = lt.Vocabulary.from_tokens(tokens, kinds=kinds, end_tokens=base.end_tokens)
    bounded = {"tool_choice": "stop-now", "reasoning": 8}
    constraint = protocol.constraint(tools=TOOLS, **bounded if kind == "control" else {"tool_choice": "required"})
    for seed in range(3):
        rng = random.Random(seed)
        matcher, out = constraint.matcher(vocab), []
        while not matcher.is_finished and len(out) < 60:
            allowed = matcher.allowed()
            few = list(allowed) if len(allowed) < 999 else rng.sample(list(allowed), 99)
            out.append(rng.choice([id for id in few if id not in base.end_tokens] or few))
            matcher.accept(out[-1])
        out += ended(matcher, vocab, protocol)
        found = constraint.read(out, Context(vocab))
        assert found.notes == ()
        assert found.text == vocab.decode(out, skip_special=False).decode("utf-8", "replace")
        assert len(found.tool_calls) >= 1


def test_constraints_are_values() -> None:
    protocol = Protocol.named("qwen3")
    one, two = (protocol.constraint(["a", "b"], reasoning=3) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert one != protocol.constraint(["a", "c"], reasoning=3)
    assert one != protocol.constraint(["a", "b"], reasoning=4)
    vocab = vocabulary(protocol, "control")
    one.matcher(vocab)
    again = pickle.loads(pickle.dumps(one))
    assert again == one
    assert set(again.matcher(vocab).allowed()) == set(one.matcher(vocab).allowed())
    assert repr(protocol.constraint(tools=TOOLS)) == "<response of qwen3, tools weather, stop-now>"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("hermes", {"tool_choice": "required"}, "there are no tools"),
        ("hermes", {"tools": TOOLS, "tool_choice": "what"}, "give \"auto\", .* 'weather', 'stop-now'"),
        ("hermes", {"reasoning": 3}, "hermes has no reasoning"),
        ("qwen3", {"reasoning": -1}, "reasoning is -1"),
        ("qwen3", {"tools": TOOLS, "tool_choice": "required", "answer": int}, "would never be written"),
        ("qwen3", {"tools": [{"name": "a b", "parameters": {}}]}, "a tool is called 'a b'"),
        ("qwen3", {"tools": [{"name": "a", "parameters": {"type": "array"}}]}, "the parameters are of type 'array'"),
        ("qwen3", {"tools": {"a": lt.Grammar.json()}}, "the parameters are a Grammar"),
        ("qwen3", {"tools": [{"name": "a"}, {"name": "a"}]}, "two tools are called 'a'"),
        ("qwen3", {"tools": {"a": {"x": {1}}}}, r"the parameters are no JSON: .*set.*\(at tool a\)"),
        ("qwen3", {"tools": {"a": reduce(lambda x, _: {"x": x}, range(20_000), {})}}, "the parameters are no JSON"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_options_that_cannot_be_honoured(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(lt.ConstraintError, match=message):
        Protocol.named(name).constraint(**options)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"additionalProperties": True}, "arguments that have no name"),
        ({"patternProperties": {"^a": {}}}, r"arguments that have no name .*\(at tool f\)"),
        ({"minProperties": 1}, "no value is valid"),
        ({"properties": {"a b": {}}}, r'the key "a b" cannot be written .*\(at tool f\)'),
        ({"properties": {"a": {"enum": ["x</parameter>"]}}}, r'every value of "a" contains what ends .*\(at tool f\)'),
        ({"required": ["a"]}, '"a" is required and not described'),
        ({"properties": {"a": {"enum": 5}}}, r"`enum` is 5, .*#/properties/a/enum\) \(at tool f\)"),
        ({"properties": {"a": {"type": "string", "pattern": 3}}}, "`pattern` is 3, not a regular expression"),
        ({"properties": {"a": {"type": "string", "maxLength": "x"}}}, '`maxLength` is "x", not a whole number'),
    ],
)
def test_arguments_without_quotes_that_cannot_be_honoured(schema: dict[str, Any], message: str) -> None:
    protocol = Protocol.named("qwen3_coder")
    constraint = protocol.constraint(tools={"f": {"type": "object", **schema}}, tool_choice="f")
    with pytest.raises(lt.ConstraintError, match=message):
        constraint.matcher(vocabulary(protocol, "control"))


def test_texts_without_quotes_keep_their_patterns_and_lengths() -> None:
    protocol = Protocol.named("qwen3_coder")
    vocab = vocabulary(protocol, "text")
    properties = {"a": {"type": "string", "pattern": "^[a-z</>p]+/$", "maxLength": 14, "minLength": 2}}
    constraint = protocol.constraint(tools={"f": {"type": "object", "properties": properties}}, tool_choice="f")

    def allowed(value: str) -> bool:
        text = f"<tool_call>\n<function=f>\n<parameter=a>\n{value}\n</parameter>\n</function>\n</tool_call>".encode()
        return constraint.matcher(vocab).validate(text) == len(text)

    assert allowed("ab/")
    assert allowed("a<b>/")
    assert not allowed("/")
    assert not allowed("ab")
    assert not allowed("AB/")
    assert not allowed("abcdefghijklmn/")
    assert not allowed("a</parameter>/")


def test_keywords_of_the_arguments_mean_what_they_do_in_json() -> None:
    """Whatever the form, the constraint allows the arguments that a validator takes, in the order of the schema."""
    jsonschema = pytest.importorskip("jsonschema")
    properties = {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": ["string", "null"]}}
    schemas: list[dict[str, Any]] = [
        {"minProperties": 2},
        {"maxProperties": 1},
        {"dependentRequired": {"a": ["c"]}},
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"not": {"required": ["a", "b"]}},
        {"if": {"required": ["a"]}, "then": {"required": ["c"]}},
        {"dependentSchemas": {"b": {"properties": {"c": {"type": "null"}}}}},
    ]
    for name in ("qwen3_coder", "glm_4_7", "deepseek_v4", "hermes"):
        protocol = Protocol.named(name)
        vocab = vocabulary(protocol, "control")
        for extra in schemas:
            closed = {"type": "object", "properties": properties, "additionalProperties": False, **extra}
            oracle = jsonschema.Draft202012Validator(closed)
            tools = {"f": {"type": "object", "properties": properties, **extra}}
            constraint = protocol.constraint(tools=tools, tool_choice="f")
            for number in range(16):
                values = [("a", "x"), ("b", 3), ("c", None if number & 8 else "y")]
                arguments = {key: value for bit, (key, value) in enumerate(values) if number >> bit & 1}
                whole = "".join(text for text, _ in rendered(protocol, None, "", [("f", arguments)]))
                tokens = spelled(whole, vocab, random.Random(0), markers=True)
                is_allowed = constraint.matcher(vocab).validate(tokens) == len(tokens)
                assert is_allowed == oracle.is_valid(arguments), (name, extra, arguments)


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"type": ["string", "integer"], "minimum": 3, "maxLength": 2},
        {"enum": ["a", 3, None]},
        {"anyOf": [{"$ref": "#/$defs/o"}, {"type": "boolean"}]},
        {"type": ["integer", "null"]},
        {"type": ["string"]},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["deepseek_v4", "kimi_k3"])
def test_values_that_may_be_texts_say_so(schema: dict[str, Any], name: str) -> None:
    """Where the markup says whether a value is a text, one that may be a text or something else has both forms."""
    protocol = Protocol.named(name)
    vocab = vocabulary(protocol, "control")
    defs = {"o": {"anyOf": [{"const": "x"}, {"type": "null"}]}}
    tools = {"f": {"type": "object", "properties": {"a": schema}, "required": ["a"], "$defs": defs}}
    constraint = protocol.constraint(tools=tools, tool_choice="f")

    def read_back(value: str, is_text: bool) -> Any:
        assert protocol.calls is not None
        assert protocol.calls.pairs is not None
        pairs = protocol.calls.pairs
        kind = kind_of(json.loads(value)) if value in ("null", "1", "3", "77", "true") else "null"
        middle = next(middle for kinds, middle in pairs.ways if ("string" if is_text else kind) in kinds)
        whole = "".join(text for text, _ in rendered(protocol, None, "", [("f", {})]))
        at = whole.index(protocol.calls.tail)
        whole = whole[:at] + pairs.begin + "a" + middle + value + pairs.end + whole[at:]
        tokens = spelled(whole, vocab, random.Random(0), markers=True)
        if constraint.matcher(vocab).validate(tokens) < len(tokens):
            return KeyError
        (call,) = read(protocol, vocab, [tokens], tools=tools).tool_calls
        return call.arguments["a"]

    jsonschema = pytest.importorskip("jsonschema")
    oracle = jsonschema.Draft202012Validator({**schema, "$defs": defs})
    for value in ("", "null", "a", "x", "1", "ab", "abc", "3", "77", "true", '"a"'):
        assert read_back(value, True) == (value if oracle.is_valid(value) else KeyError), value
        other = json.loads(value) if value in ("null", "1", "3", "77", "true") else ""
        fits = not isinstance(other, str) and oracle.is_valid(other)
        assert read_back(value, False) == (other if fits else KeyError), value


def test_a_recursive_union_of_texts_is_json_below_some_depth() -> None:
    protocol = Protocol.named("deepseek_v4")
    tree = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/t"}]}
    tools = {"f": {"type": "object", "properties": {"a": {"$ref": "#/$defs/t"}}, "$defs": {"t": tree}}}
    with pytest.raises(lt.LogitreeError):
        protocol.constraint(tools=tools, tool_choice="f").matcher(vocabulary(protocol, "text"))
    many = {name: {"anyOf": [{"$ref": f"#/$defs/{after}"}] * 40} for name, after in ("tu", "uv", "vw")}
    several = {
        "f": {"type": "object", "properties": {"a": {"$ref": "#/$defs/t"}}, "$defs": {**many, "w": {"type": "null"}}}
    }
    matcher = protocol.constraint(tools=several, tool_choice="f").matcher(vocabulary(protocol, "text"))
    assert not matcher.is_accepting


def test_generations_give_responses(engine: LlamaCpp) -> None:
    protocol = Protocol.named("hermes")
    tools = {"weather": {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]}}
    constraint = protocol.constraint(tools=tools, tool_choice="required", parallel=False)
    generation = lt.generate(engine, "How is the weather in Rome?", constraint, temperature=0)
    (call,) = generation.value.tool_calls
    assert call.name == "weather"
    assert call.arguments["city"] in ("Paris", "Rome")
    assert protocol.parts(generation) == generation.value
    free = lt.generate(engine, "Say hello.", max_tokens=8, temperature=0)
    assert protocol.parts(free).content == free.text
    answered = lt.generate(engine, "Is fire hot?", protocol.constraint(["yes", "no"]), temperature=0)
    assert answered.value.answer in ("yes", "no")
    assert answered.value.content == answered.text
