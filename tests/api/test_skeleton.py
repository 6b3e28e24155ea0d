"""Skeletons in Python: the builder, generation, events, samplers, plans, token trees."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest

import logitree as lt
from logitree import skeleton as sk
from table_engine import TableEngine, TableSession

PLAN = lt.Skeleton.object(
    {
        "action": ["SEND", "IGNORE", "SEND_ALL"],
        "parameters": sk.by(
            "action",
            {"SEND": {"to": sk.string(max_length=5), "urgent": bool}, "IGNORE": {}},
            default={"n": sk.number(minimum=0, maximum=9, integer=True)},
        ),
        "contexts": sk.array({"name": ["a", "b"]}, min_items=1, max_items=2),
        "thought": sk.string(max_length=8),
        "fixed": sk.constant(3),
    },
    id="plan",
)


class PlainEngine(TableEngine):
    """Tokens of several bytes, so that tokens hold the ends of spans; a tokeniser that takes the longest."""

    def __init__(self, seed: int = 0) -> None:
        words = [
            "SE",
            "ND",
            "_ALL",
            'ND","',
            '{"',
            '":"',
            '","',
            '":',
            "},",
            'a"',
            '"a"',
            "]",
            '"}',
            "true",
            "urgent",
            '"to',
        ]
        self.words = [bytes([b]) for b in range(256)] + [word.encode() for word in words]
        self.vocabulary = lt.Vocabulary.from_tokens([*self.words, b"</s>"], end_tokens=[len(self.words)])
        n = len(self.words) + 1
        self.table = np.random.default_rng(seed).normal(0, 3, (n, n)).astype(np.float32)

    def tokenize(self, text: str) -> list[int]:
        """The longest tokens from the left."""
        data, made = text.encode(), []
        while data:
            best = max(
                (i for i, word in enumerate(self.words) if data.startswith(word)), key=lambda i: len(self.words[i])
            )
            made.append(best)
            data = data[len(self.words[best]) :]
        return made


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("make", [TableEngine, PlainEngine])
def test_events_and_values_are_those_of_the_text(make: type[TableEngine], seed: int) -> None:
    generation = lt.generate(make(seed), "x", PLAN, seed=seed, temperature=1.5, max_tokens=400)
    value, text = generation.value, generation.text
    assert value == json.loads(text)
    assert PLAN.matches(text)
    assert PLAN.value(text) == value
    assert list(generation.spans) == list(PLAN.parse(text))
    data = text.encode()
    for span in generation.spans:
        assert data[span.start : span.end].decode() == span.text
    open_: list[tuple[str, str]] = []
    seen: dict[str, Any] = {}
    for event in generation:
        if isinstance(event, lt.SpanStart):
            open_.append((event.path, ""))
        elif isinstance(event, lt.SpanText):
            assert open_[-1][0] == event.path
            assert event.text
            open_[-1] = (event.path, open_[-1][1] + event.text)
        elif isinstance(event, lt.SpanEnd):
            path, said = open_.pop()
            assert path == event.path
            seen[path] = event.value
            if isinstance(event.value, str) and not path.endswith(("action", "name")):
                assert said == event.value
    assert not open_
    assert seen["action"] == value["action"]
    assert seen["contexts[0].name"] == value["contexts"][0]["name"]
    assert seen["fixed"] == 3


def test_events_come_with_the_token_that_makes_them_certain() -> None:
    engine = PlainEngine(1)
    tokens = ['{"', *"action", '":"', "SE", 'ND","', *"parameters"]
    ids = [engine.words.index(token.encode()) for token in tokens]
    decoder = lt.Decoder(engine.vocabulary, lt.Chain.greedy(), PLAN)
    stream = PLAN.span_stream()
    said = []
    for token in ids:
        decoder.accept(token)
        said.append(stream.token(decoder, engine.words[token]))
    flat = [event for events in said for event in events]
    assert flat[0] == lt.SpanStart("action", "enum")
    assert flat[-1] == lt.SpanEnd("action", "SEND")
    assert said[ids.index(engine.words.index(b'ND","'))][-1] == lt.SpanEnd("action", "SEND")


def test_a_number_at_the_end_ends_with_the_generation() -> None:
    plan = lt.Skeleton("n = ", sk.number().named("n"))
    generation = lt.generate(TableEngine(5), "x", plan, seed=1, max_tokens=12)
    if generation.complete:
        assert isinstance(list(generation)[-2], lt.SpanEnd)
        assert generation.value == {"n": json.loads(generation.text[4:])}
    assert plan.value("n = 12") == {"n": 12}
    with pytest.raises(lt.IncompleteError):
        plan.value("n = -")
    with pytest.raises(lt.TokenError) as caught:
        plan.value("m = 1")
    assert "byte 0" in str(caught.value)


def test_strings_in_pieces_are_unescaped() -> None:
    plan = lt.Skeleton("", sk.string().named("s"))
    text = '"a\\n\\u00e9\\ud83d\\ude00é😀\\\\\\""'
    data = text.encode()
    vocabulary = TableEngine().vocabulary
    decoder, stream = lt.Decoder(vocabulary, lt.Chain.greedy(), plan), plan.span_stream()
    said = ""
    for byte in data:
        decoder.accept(byte)
        said += "".join(e.text for e in stream.token(decoder, bytes([byte])) if isinstance(e, lt.SpanText))
    assert said == json.loads(text) == plan.value(text)["s"]


def test_spans_are_sampled_by_their_own_samplers() -> None:
    engine = TableEngine(2, scale=1.0)

    def values(plan: lt.Skeleton) -> tuple[set[str], set[str]]:
        made = [
            lt.generate(engine, "x", plan, seed=s, temperature=3.0, top_k=0, max_tokens=300).value for s in range(25)
        ]
        return {one["pick"] for one in made}, {one["text"] for one in made}

    fields: dict[str, Any] = {
        "pick": ["aa", "ab", "ba", "bb", "cc", "d"],
        "text": sk.string(min_length=3, max_length=3),
    }
    plan = lt.Skeleton.object(fields)
    picks, texts = values(plan)
    assert len(picks) == 1
    assert len(texts) > 15
    picks, texts = values(plan.sampled({"pick": {"temperature": 3.0}, "text": lt.Chain.greedy()}))
    assert len(picks) > 2
    assert len(texts) == 1
    sampled = {"overrides": [{"span_index": 3, "temperature": 0.0, "top_k": 1}]}
    assert plan.sampled(sampled).span_sampler_plan()["overrides"][1] == sampled["overrides"][0]
    assert len(values(plan.sampled(sampled))[1]) == 1
    with pytest.raises(lt.ConstraintError, match="'pick', 'text'"):
        plan.sampled({"other": {"temperature": 1.0}})
    with pytest.raises(lt.SamplingError):
        plan.sampled({"pick": {"warmth": 1.0}})


def test_a_sampler_equal_to_the_chain_changes_nothing() -> None:
    engine, same = TableEngine(3), {"temperature": 2.0, "top_k": 0}
    plan = lt.Skeleton.object({"a": sk.string(max_length=6), "b": sk.string(max_length=6)})
    for seed in range(5):
        options: dict[str, Any] = {"seed": seed, "max_tokens": 200, **same}
        alone = lt.generate(engine, "x", plan, **options)
        spans = lt.generate(engine, "x", plan.sampled({"a": same, "b": same}), **options)
        assert alone.tokens == spans.tokens


def test_rollback_brings_spans_and_chains_back() -> None:
    plan = PLAN.sampled({"thought": {"temperature": 2.0}})
    engine = TableEngine(7)
    decoder = lt.Decoder(engine.vocabulary, lt.Chain.llama_cpp(seed=3, temperature=1.5), plan)
    session = TableSession(engine.table)
    first: list[int] = []
    logits = session.evaluate([65])
    while not decoder.is_finished and len(first) < 300:
        first.append(decoder.step(logits))
        logits = session.evaluate([first[-1]])
    marks = decoder.span_marks(len(first))
    for back in (1, 10, len(first)):
        decoder.rollback(back)
        for token in range(len(first) - back, len(first)):
            before = first[token - 1] if token else 65
            assert decoder.step(engine.table[before]) == first[token]
        assert decoder.span_marks(len(first)) == marks


def test_batches_give_the_tokens_of_single_generations() -> None:
    engine = TableEngine(4)
    many = lt.generate(engine, ["x", "y"], [PLAN, lt.Skeleton.object({"b": bool})], seed=[1, 2], max_tokens=300)
    assert many[0].tokens == lt.generate(engine, "x", PLAN, seed=1, max_tokens=300).tokens
    assert set(many[1].value) == {"b"}


def test_reasoning_comes_before_a_skeleton() -> None:
    budget = lt.ReasoningBudget("<", ">", budget=3)
    plan = lt.Skeleton.object({"pick": ["a", "b"]})
    generation = lt.generate(TableEngine(1), "x<", budget + plan, seed=1, max_tokens=60)
    assert generation.value == json.loads(generation.answer)
    assert [span.path for span in generation.spans] == ["pick"]
    assert generation.spans[0].text == json.dumps(generation.value["pick"])


def test_plans_force_their_tokens_and_change_no_byte() -> None:
    engine = PlainEngine(3)
    plan = PLAN.prefill_plan(engine.tokenize)
    assert plan is not None
    assert plan["free_count"] == 4
    for seed in range(4):
        options: dict[str, Any] = {"seed": seed, "temperature": 0, "max_tokens": 300}
        planned = lt.generate(engine, "x", PLAN.prefill(plan), **options)
        slow = lt.generate(engine, "x", PLAN.prefill(plan), force=False, **options)
        assert planned.tokens == slow.tokens
        assert planned.stats.forward_passes < slow.stats.forward_passes
        own = lt.generate(engine, "x", PLAN.prefill(), **options)
        assert own.stats.forward_passes <= planned.stats.forward_passes
        assert own.value == json.loads(own.text)
    # Where each text has one spelling, the plan changes nothing at all.
    bytewise = TableEngine(3)
    codes = PLAN.prefill_plan(lambda text: list(text.encode()))
    assert codes is not None
    a = lt.generate(bytewise, "x", PLAN, temperature=0, max_tokens=300)
    b = lt.generate(bytewise, "x", PLAN.prefill(codes), temperature=0, max_tokens=300)
    assert a.text.encode() == b.text.encode()


def test_plans_of_another_skeleton_or_vocabulary_are_refused() -> None:
    engine = PlainEngine()
    plan = PLAN.prefill_plan(engine.tokenize)
    assert plan is not None
    with pytest.raises(lt.ConstraintError, match="another skeleton"):
        lt.Skeleton("a", sk.number().named("n")).prefill(plan)
    with pytest.raises(lt.ConstraintError, match="token_ids"):
        PLAN.prefill(PLAN.prefill_plan())
    plan["runs"][0]["token_ids"] = engine.tokenize("other")
    with pytest.raises(lt.ConstraintError, match='spell "other"'):
        PLAN.prefill(plan).matcher(engine.vocabulary)
    plan["runs"][0]["token_ids"] = [10_000]
    with pytest.raises(lt.ConstraintError):
        PLAN.prefill(plan).matcher(engine.vocabulary)
    with pytest.raises(lt.ConstraintError, match="tokeniser"):
        PLAN.prefill().matcher(engine.vocabulary)


def test_token_trees_hold_their_spans_only() -> None:
    engine = PlainEngine(6)
    leaves = [{"name": name, "tokens": engine.tokenize(name)} for name in ("SEND", "SEND_ALL", "ELSE")]
    tree = lt.elizaos.token_tree({"modelId": None, "descriptors": [{"path": "action", "leaves": leaves}]})
    free = lt.Skeleton('{"action":"', sk.enum(["SEND", "IGNORE", "SEND_ALL"]).named("action"), '"}')
    held = free.attach(tree)
    matcher = held.matcher(engine.vocabulary)
    matcher.accept_many(b'{"action":"')
    assert matcher.forced_tokens() == [engine.words.index(b"SE"), engine.words.index(b"ND")]
    assert lt.generate(engine, "x", held, seed=1, temperature=2.0).value["action"] in ("SEND", "SEND_ALL")
    nested = {"descriptors": [{"path": "contexts[].name", "leaves": [{"name": "b", "tokens": engine.tokenize("b")}]}]}
    made = lt.generate(engine, "x", PLAN.attach(lt.elizaos.token_tree(nested)), seed=1, max_tokens=300).value
    assert {context["name"] for context in made["contexts"]} == {"b"}
    other = lt.elizaos.token_tree({"descriptors": [{"path": "other", "leaves": leaves}]})
    with pytest.raises(lt.ConstraintError, match='no enum of the skeleton has the path "other"'):
        free.attach(other).matcher(engine.vocabulary)


def test_the_reference_form_is_read_and_written() -> None:
    form = {
        "id": "planner",
        "spans": [
            {"kind": "literal", "value": '{"action":'},
            {"kind": "enum", "key": "action", "enumValues": ["SEND_MESSAGE", "IGNORE"]},
            {"kind": "literal", "value": ',"parameters":'},
            {"kind": "free-json", "key": "parameters"},
            {"kind": "literal", "value": ',"thought":'},
            {"kind": "free-string", "key": "thought"},
            {"kind": "literal", "value": "}"},
        ],
    }
    plan = lt.Skeleton.from_json(form)
    assert plan.to_json() == form
    assert plan.id == "planner"
    text = '{"action":"SEND_MESSAGE","parameters":{"channelId":"c1"},"thought":"reply now"}'
    assert plan.value(text) == json.loads(text)
    made = plan.prefill_plan()
    assert made is not None
    assert made["free_count"] == 3
    again = lt.Skeleton.from_json(json.dumps(form))
    assert again == plan and hash(again) == hash(plan)
    assert plan.prefill().is_prefilled and not plan.is_prefilled
    for other in (
        pickle.loads(pickle.dumps(plan)),
        pickle.loads(pickle.dumps(PLAN.sampled({"thought": {"temp": 1.0}}))),
    ):
        assert isinstance(other, lt.Skeleton)
    assert lt.Skeleton.from_json(PLAN.to_json()).to_json() == PLAN.to_json()


def test_what_means_no_skeleton_is_refused() -> None:
    for wrong in (3.5j, object(), [object()]):
        with pytest.raises(TypeError):
            lt.Skeleton.object({"a": wrong})
    with pytest.raises(TypeError):
        lt.Skeleton(5)  # type: ignore[arg-type]
    with pytest.raises(lt.ConstraintError):
        lt.Skeleton.object({"a.b": str})
    with pytest.raises(lt.PayloadError, match="no enum before it"):
        lt.Skeleton.object({"a": sk.by("b", {})})
    with pytest.raises(lt.PayloadError) as caught:
        lt.Skeleton.from_json({"spans": [{"kind": "enum", "enumValues": 1}]})
    assert caught.value.place == "spans[0].enumValues"
    with pytest.raises(lt.LimitError):
        lt.Skeleton("", sk.enum(range(70_000)))
    with pytest.raises(lt.ConstraintError) as unwritten:
        lt.Skeleton("", sk.string(sampler=lt.Chain.greedy()).named("s")).to_json()
    assert unwritten.value.place == "spans[1] 's'"
