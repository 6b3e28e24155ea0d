"""Token healing: the end of a prompt in any spelling, which is no part of the output, with everything else."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import logitree as lt
from logitree import skeleton as sk
from logitree._constraint import bind
from logitree._healing import healed
from logitree.engines.llama_cpp import LlamaCpp
from table_engine import DraftingEngine

TEXT = ("normal", "byte")


class Spelling(DraftingEngine):
    """Reads prompts with the tokens of several bytes, as a model does."""

    def encode(self, prompt: str, *, chat: bool | None = None) -> list[int]:
        """The longest tokens; with a chat, between two marks."""
        return [*self.tokenize("<"), *self.tokenize(prompt), *self.tokenize("ab")] if chat else self.tokenize(prompt)


ENGINE = Spelling()
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 3}, "red": {"type": "boolean"}},
    "required": ["name", "red"],
    "additionalProperties": False,
}


def slow_healed(prompt: Sequence[int], vocabulary: lt.Vocabulary) -> tuple[list[int], bytes]:
    """The rule, by trying every number of tokens against every token."""

    def whole(text: bytes) -> bool:
        return text == text.decode("utf-8", "ignore").encode()

    def taken(back: int) -> bytes:
        return b"".join(vocabulary[token] for token in prompt[len(prompt) - back :])

    texts = [vocabulary[token] for token in range(len(vocabulary)) if vocabulary.kind(token) != "control"]
    most = 0
    while most < len(prompt) - 1 and vocabulary.kind(prompt[-1 - most]) in TEXT:
        most += 1
    reaching = [
        back
        for back in range(1, most + 1)
        if any(text.startswith(taken(back)) and len(text) > len(taken(back)) for text in texts)
    ]
    for back in range(max(reaching, default=0), most + 1):
        if back and whole(taken(back)):
            return list(prompt[: len(prompt) - back]), taken(back)
        if not back:
            break
    return list(prompt), b""


def test_what_is_taken_back_is_what_trying_everything_takes_back() -> None:
    snow = "☃".encode()
    texts = [bytes([b]) for b in range(256)]
    texts += [
        b"ab",
        b"abc",
        b"bcd",
        b"abcab",
        b" a",
        b"  ",
        b"http",
        b"://",
        snow,
        snow[:2],
        snow[1:] + b"a",
        b"<u>",
        b"<s>",
    ]
    kinds = ["normal"] * (len(texts) - 2) + ["user_defined", "control"]
    kinds[7] = "byte"
    vocabulary = lt.Vocabulary.from_tokens(texts, kinds=kinds)
    draw = random.Random(3)
    usual = [*range(256, len(texts)), *b"abc :h<", *snow, 7]
    seen = set()
    for _ in range(1500):
        prompt = draw.choices(usual, k=draw.randrange(1, 7))
        made = healed(prompt, vocabulary)
        assert made == slow_healed(prompt, vocabulary), prompt
        seen.add(len(prompt) - len(made[0]))
        assert vocabulary.decode(made[0], skip_special=False) + made[1] == vocabulary.decode(prompt, skip_special=False)
    assert seen >= {0, 1, 2}


def check(generation: lt.Generation[Any], prompt: str, vocabulary: lt.Vocabulary) -> None:
    """The laws of one healed output."""
    read = vocabulary.decode([*generation.prompt, *generation.tokens]).decode("utf-8", "replace")
    events = list(generation)
    finish = events[-1]
    assert isinstance(finish, lt.Finish)
    tokens = [event for event in events if isinstance(event, lt.Token)]
    assert read.startswith(prompt)
    assert read[len(prompt) :].startswith(generation.text)
    if finish.reason != "stop":
        assert read == prompt + generation.text
    assert "".join(generation.pieces()) == generation.text
    assert b"".join(token.bytes for token in tokens).decode("utf-8", "replace").startswith(generation.text)
    assert tuple(token.token for token in tokens) == generation.tokens
    stats = generation.stats
    assert (stats.prompt_tokens, stats.output_tokens) == (len(generation.prompt), len(tokens))
    assert stats.sampled_tokens + stats.forced_tokens == stats.output_tokens
    assert len(vocabulary.decode(list(generation.prompt))) <= len(prompt.encode())


PROMPTS = ["x a", "xab", "x re", "x{", 'x "', "x t", "xd", "x n", "abab", "x é"]
CONSTRAINTS: list[Any] = [
    None,
    str,
    int,
    ["red", "bc", "d,"],
    lt.Grammar.json_schema(SCHEMA),
    lt.Grammar.regex("(b|c|e|ue|rue)?[abc]{0,4}"),
    lt.OneOf(["b", "c"]) + lt.OneOf([True, False]),
]


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=[repr(c)[:24] for c in CONSTRAINTS])
def test_the_output_has_no_byte_of_the_prompt(constraint: Any, prompt: str) -> None:
    for seed in range(4):
        made = lt.generate(ENGINE, prompt, constraint, heal=True, seed=seed, max_tokens=40, trace=True)
        check(made, prompt, ENGINE.vocabulary)
        assert [step.token for step in made.trace] == list(made.tokens)
        if constraint is not None:
            matcher = bind(constraint, ENGINE.vocabulary)
            matcher.accept_many(ENGINE.tokenize(made.text.rstrip("\ufffd")))
            assert matcher.is_accepting or not made.complete
        if made.finish_reason == "constraint" and constraint is not str:
            assert made.value is not None


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=[repr(c)[:24] for c in CONSTRAINTS])
def test_forcing_drafting_and_batches_change_no_token(constraint: Any) -> None:
    for prompt in PROMPTS[:6]:
        options: dict[str, Any] = {"heal": True, "seed": 5, "max_tokens": 20}
        made = lt.generate(Spelling(), prompt, constraint, **options)
        others = [
            lt.generate(Spelling(), prompt, constraint, force=False, **options),
            lt.generate(Spelling(), prompt, constraint, drafter=lt.speculation.NGramDrafter(), **options),
            lt.generate(Spelling(), ["x", prompt], [None, constraint], **options)[1],
            lt.generate(Spelling(), ENGINE.encode(prompt), constraint, **options),
        ]
        for other in others:
            assert (other.prompt, other.tokens, other.text) == (made.prompt, made.tokens, made.text)
            check(other, prompt, ENGINE.vocabulary)


def test_each_token_is_the_likeliest_that_spells_the_rest() -> None:
    """Greedy, step by step, against every token of the vocabulary."""
    for prompt in PROMPTS:
        kept, rest = healed(ENGINE.encode(prompt), ENGINE.vocabulary)
        made = lt.generate(ENGINE, prompt, heal=True, temperature=0, max_tokens=3)
        session, expected, new = ENGINE.session(), list[int](), kept
        while rest:
            logits = session.evaluate(new)
            fits = [
                token
                for token in range(len(ENGINE.vocabulary) - 1)
                if (text := ENGINE.vocabulary[token]).startswith(rest) or rest.startswith(text)
            ]
            new = [max(fits, key=lambda token: logits[token])]
            expected += new
            rest = rest[len(ENGINE.vocabulary[new[0]]) :]
        assert [*made.prompt, *made.tokens][: len(kept) + len(expected)] == [*kept, *expected]


def test_after_the_text_nothing_constrains_the_model() -> None:
    class Ending(Spelling):
        """Prefers its end token, and after it a control token."""

        def __init__(self) -> None:
            super().__init__()
            texts = [*self.vocabulary, b"<tool>"]
            kinds = ["normal"] * (len(texts) - 2) + ["control"] * 2
            self.vocabulary = lt.Vocabulary.from_tokens(texts, kinds=kinds, end_tokens=[len(texts) - 2])
            self.table = np.random.default_rng(0).normal(0, 1, (len(texts), len(texts))).astype(np.float32)
            self.table[:, -1] = 50.0

    engine = Ending()
    made = lt.generate(engine, "x re", heal=True, temperature=0, max_tokens=3)
    tool = len(engine.vocabulary) - 1
    assert made.tokens[-2:] == (tool, tool)
    assert engine.vocabulary.decode(list(made.prompt)).startswith(b"x ")


def test_limits_and_stop_strings_count_the_output_alone() -> None:
    none = lt.generate(ENGINE, "x re", heal=True, max_tokens=0)
    assert (none.text, none.tokens, none.finish_reason) == ("", (), "max_tokens")
    for on_limit in ("keep", "raise", "close"):
        assert lt.generate(ENGINE, "x re", heal=True, max_tokens=0, on_limit=on_limit).tokens == ()
    plan = lt.Skeleton("re", sk.enum(["d", "ab"]).named("one"), ".")
    at_once = lt.generate(ENGINE, "x re", plan, heal=True, max_tokens=0, on_limit="close")
    assert (at_once.finish_reason, plan.value(at_once.text)) == ("closed", at_once.value)
    for n in (1, 2, 5):
        some = lt.generate(ENGINE, "x re", heal=True, max_tokens=n, seed=1, logit_bias={271: -1e9})
        assert (len(some.tokens), some.finish_reason) == (n, "max_tokens")
        closed = lt.generate(ENGINE, "x re", SCHEMA, heal=True, max_tokens=n, seed=1, on_limit="close")
        check(closed, "x re", ENGINE.vocabulary)
        assert set(json.loads(closed.text)) == {"name", "red"}
        assert closed.finish_reason == "closed"
    whole = lt.generate(ENGINE, "x re", str, heal=True, max_tokens=60, seed=2)
    stop = whole.text[10:12]
    cut = lt.generate(ENGINE, "x re", str, heal=True, max_tokens=60, seed=2, stop=[stop, "x re"[-2:] + whole.text[:1]])
    assert cut.text == whole.text[: min(at for at in (whole.text.find(stop), len(whole.text)) if at >= 0)]
    check(cut, "x re", ENGINE.vocabulary)


def test_on_step_sees_the_tokens_that_spell_the_prompt() -> None:
    asked = list[list[int]]()
    options: dict[str, Any] = {"heal": True, "seed": 1, "max_tokens": 5}
    made = lt.generate(ENGINE, "x re", int, on_step=lambda decoder, _: asked.append(decoder.tokens), **options)
    check(made, "x re", ENGINE.vocabulary)
    assert len(asked) >= made.stats.sampled_tokens
    assert asked[0] == []

    def accepting(decoder: lt.Decoder, _: Any) -> None:
        assert decoder.matcher is not None
        decoder.accept(next(iter(decoder.matcher.allowed())))

    with pytest.raises(lt.StateError, match="on_step accepted"):
        lt.generate(ENGINE, "x re", int, on_step=accepting, **options).text  # noqa: B018


def test_by_default_texts_that_end_in_a_space_are_healed() -> None:
    engine = Spelling()
    for prompt in ("x ", "x a ", "x\n "):
        options: dict[str, Any] = {"max_tokens": 4, "seed": 1}
        for constraint in (None, ["red", " tr"], SCHEMA):
            default = lt.generate(engine, prompt, constraint, **options)
            healing = lt.generate(engine, prompt, constraint, heal=True, **options)
            assert (default.prompt, default.tokens) == (healing.prompt, healing.tokens)
        tokens = engine.encode(prompt)
        over_tokens = lt.OneOf(["red"], tokenize=ENGINE.tokenize)
        assert lt.generate(engine, prompt, over_tokens, **options).prompt == tuple(tokens)
        for given, heal in ((tokens, None), (prompt, False)):
            assert lt.generate(engine, given, heal=heal, **options).prompt == tuple(tokens)
    for prompt in ("x re", "x a", "x{", "x\n"):
        assert lt.generate(engine, prompt, max_tokens=1).prompt == tuple(engine.encode(prompt))
        assert prompt == "x\n" or healed(engine.encode(prompt), engine.vocabulary)[1]
    # Free text needs no tokenizer of the engine, whatever its end.
    lt.generate(engine, "x ", tokenization="canonical", max_tokens=3).text  # noqa: B018
    with pytest.raises(TypeError, match="heal is 1"):
        lt.generate(engine, "x", heal=1)  # type: ignore[call-overload]


def test_templates_control_tokens_and_the_first_token_stay() -> None:
    engine = Spelling()
    for prompt, chat in [("x re", True), ("x re", False), ("x re", None)]:
        made = lt.generate(engine, prompt, int, heal=True, chat=chat, max_tokens=3, seed=0)
        encoded = tuple(engine.encode(prompt, chat=chat))
        assert (made.prompt == encoded) == bool(chat) or made.prompt[-1] == encoded[-1]
        if chat:
            assert made.prompt == encoded
    assert healed([ENGINE.tokenize("re")[0]], ENGINE.vocabulary)[1] == b""
    plain = lt.generate(engine, "x re", int, max_tokens=3, seed=0)
    assert plain.prompt == tuple(engine.encode("x re"))


def test_constraints_over_tokens_begin_after_the_text() -> None:
    texts = ["red", "name", "abc"]
    catalogue = lt.Catalogue.from_texts(texts, ENGINE.tokenize, items=texts)
    budget = lt.ReasoningBudget("<", ">", budget=3, then=["red", "name"])
    plan = lt.Skeleton("re", sk.enum(["d", "ab"]).named("one"), ":", sk.number(maximum=10).named("two"), ";")
    given = lt.Grammar.regex("re[a-d]{2}").matcher(ENGINE.vocabulary)
    for constraint in [catalogue, budget, plan, given, lt.OneOf(texts, tokenize=ENGINE.tokenize)]:
        for prompt in ("x re", "x{", "x a"):
            for seed in range(3):
                made = lt.generate(ENGINE, prompt, constraint, heal=True, seed=seed, max_tokens=60)
                check(made, prompt, ENGINE.vocabulary)
                assert made.complete
                value = made.value
                if constraint is plan:
                    assert [span.path for span in made.spans] == ["one", "two"]
                    assert value["one"] in ("d", "ab")
                    spans = {span.path: made.text.encode()[span.start : span.end].decode() for span in made.spans}
                    assert json.loads(spans["one"]) == value["one"]
                    assert spans == {span.path: span.text for span in made.spans}
                if constraint is budget:
                    assert value in ("red", "name")


def test_a_model_goes_on_where_the_prompt_ended_inside_a_token(engine: LlamaCpp) -> None:
    prompt = "Roses are red, violets are bl"
    options: dict[str, Any] = {"chat": False, "temperature": 0, "max_tokens": 4}
    made = lt.generate(engine, prompt, heal=True, **options)
    check(made, prompt, engine.vocabulary)
    assert made.text.startswith("ue,")
    assert made.prompt == tuple(engine.encode("Roses are red, violets are", chat=False))
    assert not lt.generate(engine, prompt, **options).text.startswith("ue")
    link = lt.generate(engine, "See the page at http:", heal=True, **options)
    assert link.text.startswith("//")


def test_a_model_reuses_its_memory_and_gives_the_same_again(engine: LlamaCpp) -> None:
    prompt = "The capital of France is Paris. The capital of Italy is "
    for constraint in (None, ["Rome", "Paris"], SCHEMA):
        options: dict[str, Any] = {"chat": False, "seed": 3, "max_tokens": 12, "heal": True}
        engine._truncate(0)
        cold = lt.generate(engine, prompt, constraint, **options)
        cold.text  # noqa: B018
        warm = lt.generate(engine, prompt, constraint, **options)
        assert (warm.tokens, warm.prompt, warm.text) == (cold.tokens, cold.prompt, cold.text)
        assert warm.stats.reused_tokens >= len(engine.encode(prompt, chat=False)) - 2
        together = lt.generate(engine, [prompt, prompt], [constraint, constraint], **options)
        assert [one.text for one in together] == [cold.text] * 2
        forced = lt.generate(engine, prompt, constraint, force=False, **options)
        assert (forced.tokens, forced.text) == (cold.tokens, cold.text)
        check(cold, prompt, engine.vocabulary)


@pytest.mark.parametrize("tokenization", ["canonical", "fast_forward"])
def test_a_model_in_its_tokenizers_spelling(engine: LlamaCpp, tokenization: Any) -> None:
    for prompt, constraint in [("The answer is ", int), ('{"a": "', lt.Grammar.regex("[a-z]{3,9}"))]:
        made = lt.generate(
            engine, prompt, constraint, chat=False, seed=3, max_tokens=12, heal=True, tokenization=tokenization
        )
        check(made, prompt, engine.vocabulary)


def test_the_end_of_a_chat_template_is_left_as_it_is(engine: LlamaCpp) -> None:
    made = lt.generate(engine, "Say hi.", heal=True, max_tokens=2, seed=0)
    assert made.prompt == tuple(engine.encode("Say hi."))
    messages = [{"role": "user", "content": "Say hi."}]
    assert lt.generate(engine, messages, heal=True, max_tokens=2, seed=0).prompt == tuple(engine.encode(messages))


def test_beams_write_texts_together_with_the_end_of_the_prompt(engine: LlamaCpp) -> None:
    prompts = ["The capital of Italy is ", "Italy's capital is", "Roses are red, violets are bl"]
    texts = ["Rome", "Paris", "ue", "ushing"]
    found = lt.beam_search(engine, prompts, texts, chat=False, heal=True)
    plain = lt.beam_search(engine, prompts, texts, chat=False)
    best = [one[0].value for one in found]
    assert (best[0], best[2]) == ("Rome", "ue")
    for prompt, healed_ones, others in zip(prompts, found, plain, strict=True):
        kept, end = healed(engine.encode(prompt, chat=False), engine.vocabulary)
        assert {one.text for one in healed_ones} == {one.text for one in others} == set(texts)
        for one in healed_ones:
            assert one.text is not None
            assert engine.vocabulary.decode(one.tokens) == end + one.text.encode()
            whole = engine.encode(prompt + one.text, chat=False)
            assert [*kept, *one.tokens] == whole
        (alone,) = lt.beam_search(engine, prompt, texts, chat=False, heal=True)
        assert [(one.tokens, one.value) for one in alone] == [(one.tokens, one.value) for one in healed_ones]
    (chat,) = lt.beam_search(engine, prompts[0], texts, heal=True)
    (same,) = lt.beam_search(engine, prompts[0], texts)
    assert [one.tokens for one in chat] == [one.tokens for one in same]
    with pytest.raises(lt.ConstraintError, match="the items to search are tokens"):
        lt.beam_search(engine, prompts[0], lt.Catalogue.from_texts(texts, engine), heal=True)
