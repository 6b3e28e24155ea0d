"""Tags and tool calls: free text, what triggers a tag in it, and tokens distinguished from the same characters."""

from __future__ import annotations

import importlib.util
import json
import pickle
from typing import Any

import pytest

import logitree as lt
from grammars import END, small, tokens_of

G = lt.Grammar
needs_pydantic = pytest.mark.skipif(importlib.util.find_spec("pydantic") is None, reason="pydantic is not installed")
NUMBERS = [("<n>", G.regex("[0-9]+"), "</n>"), ("<x>", "y", ["</x>", "."])]


def test_free_text_and_tags_in_it() -> None:
    grammar = G.tags(NUMBERS)
    for text in ("", "free", "a <n>12</n> b <x>y. <x>y</x>", "<n>1</n>", "<m> < <<n>2</n>"):
        assert grammar.matches(text), text
    for text in ("<n>", "<n>a</n>", "<x>z</x>", "a <n>1</n> <n>"):
        assert not grammar.matches(text), text
    assert pickle.loads(pickle.dumps(grammar)) == grammar
    assert repr(grammar) == "Grammar.tags([('<n>', ...), ('<x>', ...)])"


def test_options_of_tags() -> None:
    only = G.tags(NUMBERS, text=False, at_least_one=True, stop_after_first=True)
    assert only.matches("<n>1</n>")
    for text in ("", "a<n>1</n>", "<n>1</n>b", "<n>1</n><n>1</n>"):
        assert not only.matches(text), text
    started = G.tags(NUMBERS, triggers=["<"])
    assert started.matches("a <n>1</n>")
    assert not started.matches("a < b")
    without = G.tags(NUMBERS, excludes=["!"])
    assert without.matches("hello <n>1</n>")
    assert not without.matches("hello!")


def test_tokens_are_told_apart_from_their_characters() -> None:
    vocabulary = small()
    think, spelled = vocabulary.find(b"<think>")[0], tokens_of(vocabulary, "<think>")
    for begin, takes_token, takes_text in ((G.token("<think>"), True, False), ("<think>", False, True)):
        for mark, token, text in ((begin, takes_token, takes_text), (G.token("<think>") | "<think>", True, True)):
            matcher = G.tags([(mark, "ab", "!")], at_least_one=True).matcher(vocabulary)
            assert matcher.is_allowed(think) == token
            matcher.accept_many([*spelled, *tokens_of(vocabulary, "ab!")])
            assert matcher.is_allowed(END) == text


def test_what_is_no_tag_is_refused() -> None:
    for wrong in (("<a>", "b"), "abc", ["<a>", "b", "c"], (G.regex("a"), "b", "c"), ("a", 3, "c"), ("a", "b", None)):
        with pytest.raises(TypeError):
            G.tags([wrong])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="a mark must be"):
        G.tags([(G.token("<a>") | "<b>", "c", "d")])
    with pytest.raises(lt.ConstraintError):
        G.tags([("<a>", "b", "</a>")], triggers=["<b>"])


def test_lazy_grammars_start_with_their_trigger() -> None:
    call = G.gbnf('root ::= "<call>" [0-9]+ ";"')
    grammar = G.lazy(call, words=["<call>"])
    for text in ("", "free text", "so: <call>12;", "<call>3;", "<cal <call>1;"):
        assert grammar.matches(text), text
    for text in ("<call>", "<call>x;", "<call>1; and more"):
        assert not grammar.matches(text), text
    assert pickle.loads(pickle.dumps(grammar)) == grammar != G.lazy(call, words=["<call"])
    patterned = G.lazy(call, patterns=[r"now: (<call>)"])
    assert patterned.matches("a <call>x; now: <call>7;")
    assert not patterned.matches("now: <call>x")
    for wrong in ({}, {"words": [""]}, {"words": ["<other>"]}, {"patterns": ["("]}):
        with pytest.raises(lt.ConstraintError):
            G.lazy(call, **wrong)
    with pytest.raises(TypeError):
        G.lazy(3, words=["a"])  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        G.lazy(call, words="<call>")


def test_tokens_trigger_too() -> None:
    vocabulary = small()
    think = vocabulary.find(b"<think>")[0]
    grammar = G.lazy("<think>" + G.regex("[0-9]+"), tokens=["<think>"])
    matcher = grammar.matcher(vocabulary)
    matcher.accept_many([*tokens_of(vocabulary, "free "), think])
    assert list(matcher.allowed()) == list(range(ord("0"), ord("9") + 1)) + [
        token for token in range(len(vocabulary)) if vocabulary[token] in (b"12", b"123")
    ]
    by_id = G.lazy(G.token(think) + "12", tokens=[think]).matcher(vocabulary)
    by_id.accept_many([*tokens_of(vocabulary, "<think>"), think])
    assert not by_id.is_allowed(ord("2"))
    assert by_id.is_allowed(ord("1"))


def test_structural_tags() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tag = {
        "type": "structural_tag",
        "structures": [{"begin": "<f>", "schema": schema, "end": "</f>"}],
        "triggers": ["<f"],
    }
    grammar = G.structural_tag(tag)
    assert grammar == G.structural_tag(json.dumps(tag))
    assert grammar.matches('x <f>{"n": 3}</f> y')
    assert not grammar.matches('x <f>{"n": "3"}</f> y')
    with pytest.raises(lt.ConstraintError, match="schema"):
        G.structural_tag({"type": "structural_tag", "structures": [{"begin": "<f>", "end": ""}], "triggers": ["<f"]})
    with pytest.raises(lt.ConstraintError, match="JSON"):
        G.structural_tag("{")
    for nothing in ({"type": "structural_tag"}, {"type": "structural_tag", "format": None}):
        with pytest.raises(lt.ConstraintError, match='no "format"'):
            G.structural_tag(nothing)
    text = {"type": "any_text", "excludes": ["<b", "<|open|>"]}
    inside = G.structural_tag({"type": "tag", "begin": "", "content": text, "end": "<bc>"})
    assert inside.matches("a<bc>")
    assert not inside.matches("a<b<bc>")


def test_styles_of_arguments() -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    }
    form = {"type": "json_schema", "json_schema": schema, "style": "qwen_xml"}
    call = G.structural_tag({"format": {"type": "tag", "begin": "<f>", "content": form, "end": "</f>"}})
    assert call.matches("<f>\n<parameter=city>\nNew\nYork\n</parameter>\n<parameter=days>3</parameter>\n</f>")
    assert not call.matches("<f><parameter=days>3</parameter></f>")
    assert not call.matches("<f><parameter=city>Oslo</parameter><parameter=days>x</parameter></f>")
    assert not call.matches("<f><parameter=city>Oslo</parameter><parameter=no>3</parameter></f>")
    assert G.structural_tag({"type": "qwen_xml_parameter", "json_schema": schema}).matches(
        "<parameter=city>Oslo</parameter>"
    )
    for wrong, message in (
        ({**form, "style": "html"}, "known are json, qwen_xml"),
        ({**form, "style": "cohere_xml", "excludes": ["x"]}, "excludes"),
        ({**form, "style": "qwen_xml", "excludes": [" x"]}, "white space"),
        ({**form, "max_whitespace_cnt": 0}, "max_whitespace_cnt"),
        ({"type": "any_text", "max_tokens": -3}, "max_tokens"),
    ):
        with pytest.raises(lt.ConstraintError, match=message):
            G.structural_tag({"format": wrong})


def test_schemas_of_structural_tags_are_closed() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {}}}}}
    tag = G.structural_tag({"format": {"type": "json_schema", "json_schema": schema}})
    assert tag.matches('{"a": {"b": 1}}')
    assert not tag.matches('{"a": {"c": 1}}')
    assert not tag.matches('{"c": 1}')
    assert G.json_schema(schema).matches('{"c": 1}')
    spaced = {"type": "json_schema", "json_schema": schema, "max_whitespace_cnt": 2}
    assert G.structural_tag({"format": spaced}).matches('{  "a" : {} }')
    assert not G.structural_tag({"format": spaced}).matches('{   "a": {}}')


def weather(city: str, days: int = 1) -> None:
    """Says nothing."""


DESCRIBED: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "move", "parameters": {"enum": [{"to": "left"}, {"to": "right"}]}}},
    {"name": "stop", "input_schema": {"type": "object", "additionalProperties": False}},
    {"name": 'say "hi"'},
]


@pytest.mark.filterwarnings("ignore:Grammar.tools:DeprecationWarning")
def test_described_tools() -> None:
    grammar = G.tools(DESCRIBED)
    move = '<tool_call>\n{"name": "move", "arguments": {"to": "left"}}\n</tool_call>'
    for text in (
        "free text",
        move,
        f"I will. {move} {move}",
        '<tool_call>\n{"name": "stop", "arguments": {}}\n</tool_call>',
    ):
        assert grammar.matches(text), text
    assert grammar.matches('<tool_call>\n{"name": "say \\"hi\\"", "arguments": {}}\n</tool_call>')
    for text in ("<tool_call>", move.replace("left", "up"), move.replace("move", "stop")):
        assert not grammar.matches(text), text
    forced = G.tools(DESCRIBED, text=False, at_least_one=True, stop_after_first=True)
    assert forced.matches(move)
    assert not forced.matches("free text")
    assert not forced.matches(move + move)


@pytest.mark.filterwarnings("ignore:Grammar.tools:DeprecationWarning")
def test_styles_of_tool_calls() -> None:
    tools = {"move": {"enum": ["left"]}, "stop": {"const": None}}
    llama = G.tools(tools, style="llama")
    assert llama.matches('so: <function=move>"left"</function> <function=stop>null</function>')
    for text in ("<function=move>null</function>", "<function=turn>", "<function=move>"):
        assert not llama.matches(text), text
    own = G.tools(tools, style=("call:", "{name}(", ")", ";"))
    assert own.matches('x call:move("left"); call:stop(null);')
    with pytest.raises(lt.ConstraintError, match="style is"):
        G.tools(tools, style="gpt")
    for wrong in ([], {}, [{"parameters": {}}], [3], [DESCRIBED[1], DESCRIBED[1]]):
        with pytest.raises(lt.ConstraintError):
            G.tools(wrong)


@pytest.mark.filterwarnings("ignore:Grammar.tools:DeprecationWarning")
def test_tool_calls_by_control_tokens() -> None:
    vocabulary = small()
    think = vocabulary.find(b"<think>")[0]
    tools = {"move": {"enum": ["left"]}}
    matcher = G.tools(tools, style=("<think>", "{name}:", "", "</s>"), tokens=True).matcher(vocabulary, end_tokens=[])
    matcher.accept_many([*tokens_of(vocabulary, "go "), think, *tokens_of(vocabulary, 'move:"left"'), END])
    assert matcher.is_accepting
    assert matcher.is_allowed(ord("x"))


@needs_pydantic
def test_functions_as_tools() -> None:
    with pytest.deprecated_call(match="Protocol.named"):
        grammar = G.tools([weather], whitespace="compact")
    call = '<tool_call>\n{"name": "weather", "arguments": {"city":"Oslo","days":2}}\n</tool_call>'
    assert grammar.matches(f"Let me look. {call}")
    assert not grammar.matches(call.replace("2", '"2"'))
