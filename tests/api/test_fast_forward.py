"""`generate(tokenization="fast_forward")`: text that is certain in the tokenizer's own tokens, without the model."""

from __future__ import annotations

import json
from typing import Any

import pytest

import logitree as lt
from grammars import tokens_of
from logitree._certain import Speller, _whole
from table_engine import DraftingEngine, TableEngine

OBJECT = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 4}, "red": {"type": "boolean"}, "abc": {"type": "integer"}},
    "required": ["name", "red", "abc"],
    "additionalProperties": False,
}
COMPACT = lt.Grammar.json_schema(OBJECT, whitespace="compact")


class Tokenizing(DraftingEngine):
    """Tokenizes, and cannot take tokens back."""

    def session(self) -> Any:
        """A sequence that only grows."""
        made = super().session()
        made.can_rollback, made.draft_room = False, lambda: 0  # type: ignore[method-assign]
        return made


def run(engine: TableEngine, constraint: Any, **options: Any) -> lt.Generation[Any]:
    return lt.generate(engine, "ab:", constraint, tokenization="fast_forward", **options)


@pytest.mark.parametrize("kind", [DraftingEngine, Tokenizing])
@pytest.mark.parametrize("seed", range(8))
def test_certain_text_costs_no_passes_and_the_constraint_holds(kind: type[DraftingEngine], seed: int) -> None:
    engine = kind(seed)
    generation = run(engine, COMPACT, temperature=1.0, seed=seed)
    events = list(generation)
    tokens = [event for event in events if isinstance(event, lt.Token)]
    assert generation.complete
    assert set(json.loads(generation.text)) == {"name", "red", "abc"}
    assert COMPACT.matches(generation.text)
    assert tuple(token.token for token in tokens) == generation.tokens
    assert b"".join(token.bytes for token in tokens).decode() == generation.text
    assert "".join(generation.pieces()) == generation.text
    stats = generation.stats
    assert stats.forward_passes + sum(stats.passes_saved.values()) == stats.output_tokens
    assert stats.passes_saved["fast_forward"] >= 7
    assert all(token.forced == (token.source in ("forced", "fast_forward")) for token in tokens)
    assert stats.forced_tokens == sum(token.forced for token in tokens)
    # The first certain text, but for its last token, which the tokens `""` or `",` could replace.
    assert [token.token for token in tokens[:3]] == engine.tokenize('{"name":"')[:3]
    assert tokens[0].source == tokens[2].source == "fast_forward"


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_proposals_change_no_token_of_fast_forward(temperature: float) -> None:
    saved = 0
    for seed in range(12):
        options: dict[str, Any] = {"temperature": temperature, "seed": seed}
        growing = run(Tokenizing(seed), COMPACT, **options)
        drafted = run(DraftingEngine(seed), COMPACT, **options)
        assert drafted.tokens == growing.tokens
        assert "drafted" not in growing.stats.passes_saved
        assert drafted.stats.forward_passes + sum(drafted.stats.passes_saved.values()) == len(drafted.tokens)
        assert drafted.stats.forward_passes <= growing.stats.forward_passes
        saved += growing.stats.forward_passes - drafted.stats.forward_passes
    assert saved > 0


def test_a_longer_token_replaces_the_end_of_what_was_sampled() -> None:
    engine = DraftingEngine(0, scale=0.0)
    (re,), (red,) = engine.tokenize("re"), engine.tokenize("red")
    engine.table[:, re] += 5
    constraint = ["red; blue", "rat"]
    plain = lt.generate(engine, "ab: ", constraint, temperature=0.0, tokenization="any")
    forward = run(engine, constraint, temperature=0.0, trace=True)
    assert plain.value == forward.value == "red; blue"
    assert (plain.tokens[0], forward.tokens[0]) == (re, red)
    assert list(forward.tokens) == engine.tokenize("red; blue")
    assert forward.stats.forward_passes + sum(forward.stats.passes_saved.values()) == forward.stats.output_tokens
    assert [step.token for step in forward.trace] == list(forward.tokens)


def test_steering_bans_tokens_of_certain_text() -> None:
    engine = DraftingEngine(0)
    (name,) = engine.tokenize("name")

    def ban(decoder: lt.Decoder, logits: Any) -> None:
        """Bans one token from the first step on."""
        decoder.steer([(name, float("-inf"))])

    constraint = lt.Grammar.regex("[xy]name[xy]")
    assert name in run(engine, constraint, seed=0).tokens
    banned = run(engine, constraint, seed=0, on_step=ban)
    assert name not in banned.tokens
    assert banned.complete


@pytest.mark.parametrize("limit", range(9))
def test_limits_and_stop_strings_within_certain_text(limit: int) -> None:
    engine = DraftingEngine(1)
    whole = run(engine, COMPACT, seed=1)
    cut = run(engine, COMPACT, seed=1, max_tokens=limit)
    assert cut.tokens == whole.tokens[:limit]
    assert cut.finish_reason == "max_tokens"
    assert run(engine, COMPACT, seed=1, max_tokens=limit, on_limit="close").complete
    stopped = run(engine, COMPACT, seed=1, stop='me":')
    assert (stopped.text, stopped.finish_reason) == ('{"na', "stop")


def test_several_prompts_give_what_each_gives_alone() -> None:
    engine = DraftingEngine(2)
    together = lt.generate(engine, ["a", "b"], COMPACT, seed=4, tokenization="fast_forward")
    for prompt, one in zip(["a", "b"], together, strict=True):
        alone = lt.generate(engine, prompt, COMPACT, seed=4, tokenization="fast_forward")
        assert alone.tokens == one.tokens


def test_what_cannot_be_honoured_is_an_error_at_the_call() -> None:
    with pytest.raises(lt.EngineError, match="no tokenizer"):
        lt.generate(TableEngine(), "x", COMPACT, tokenization="fast_forward")
    with pytest.raises(lt.EngineError, match="does not give its tokenizer"):
        lt.generate(TableEngine(), "x", COMPACT, tokenization="canonical")
    with pytest.raises(lt.ConstraintError, match="tokenization is 'some'"):
        lt.generate(TableEngine(), "x", COMPACT, tokenization="some")  # type: ignore[call-overload]


def test_without_forcing_every_token_is_asked_for() -> None:
    generation = run(DraftingEngine(3), COMPACT, seed=0, force=False)
    assert generation.stats.forward_passes == generation.stats.output_tokens


class Sentence:
    """A tokenizer that puts a space before every text, as SentencePiece does."""

    vocabulary = lt.Vocabulary.from_tokens([bytes([b]) for b in range(256)] + [b" a", b"ab", b" ab", "ä".encode()])

    def tokenize(self, text: str) -> list[int]:
        """The longest token that fits, after a space."""
        return tokens_of(self.vocabulary, " " + text)


def test_a_speller_gives_the_bytes_that_it_was_given() -> None:
    for tokenizer in (Sentence(), DraftingEngine(0)):
        vocabulary = tokenizer.vocabulary
        speller = Speller(vocabulary, tokenizer.tokenize)
        for held in ("", "x", " a", "\n", "ä"):
            tokens = list(held.encode())
            for text in ("ab", " ab", "a b", "ä", "\n", "b\xff"):
                for movable in range(len(tokens) + 1):
                    back, made = speller.spell(tokens, movable, text.encode())
                    kept = b"".join(vocabulary[token] for token in [*tokens[: len(tokens) - back], *made])
                    assert kept == (held + text).encode()
                    assert back <= movable
        assert speller.spell(list(b"x"), 1, b"") == (0, [])
        assert speller.spell([], 0, b"\xff\xfe") == (0, [])
    crossing = Speller(Sentence.vocabulary, Sentence().tokenize)
    assert crossing.spell(list(b"\na"), 1, b"b c") == (1, [257, *b" c"])
    assert crossing.spell(list(b"\na"), 0, b"b c") == (0, list(b"b c"))


def test_characters_that_are_cut_off_wait() -> None:
    for text in ("aé", "a€", "a😀"):
        data = text.encode()
        for at in range(2, len(data)):
            assert _whole(data[:at]) == 1
        assert _whole(data) == len(data)
    assert (_whole(b""), _whole(b"\xc3"), _whole(b"a\x80\x80\x80\x80\x80")) == (0, 0, 6)
