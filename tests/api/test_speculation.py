"""Drafts: whatever is proposed, the output is that of one pass for each token."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import logitree as lt
from logitree._drafts import Drafts
from logitree.engines import PassCosts, Session
from logitree.speculation import Draft, Drafter, ModelDrafter, NGramDrafter
from table_engine import DraftingEngine, TableEngine

PROMPT = 'red, red: {"name": "abc"} :'
OBJECT = {
    "type": "object",
    "properties": {"name": {"enum": ["ab", "abc", "red"]}, "red": {"type": "boolean"}, "n": {"type": "integer"}},
    "required": ["name", "red", "n"],
}
CONSTRAINTS: list[Any] = [
    None,
    lt.Grammar.json_schema(OBJECT, whitespace="compact"),
    lt.Grammar.json_schema(OBJECT),
    lt.Grammar.regex("(abc|abd,|red,){3,9}"),
    ["abcabc", "abcred", "red", "redred,"],
]
CHAINS: list[dict[str, Any]] = [
    {"temperature": 0.0},
    {"temperature": 1.0},
    {"temperature": 1.4, "penalty_repeat": 1.4, "penalty_present": 0.5, "top_k": 0, "top_p": 1.0, "min_p": 0.0},
    {"mirostat": 2},
]


class Proposing:
    """A drafter of whatever a function gives."""

    def __init__(self, seed: int, tokens: Sequence[int], known: Sequence[int] = ()) -> None:
        self.draw, self.tokens, self.known = random.Random(seed), tokens, list(known)

    def begin(self, tokens: Sequence[int], vocabulary: lt.Vocabulary) -> Draft:
        """Itself."""
        self.at = 0
        return self

    def accept(self, tokens: Sequence[int]) -> None:
        """Counts them."""
        self.at += len(tokens)

    def propose(self, ahead: Sequence[int], most: int, matcher: lt.Matcher | None) -> Sequence[int]:
        """The known output with mistakes, or any tokens."""
        at = self.at + len(ahead)
        known = self.known[at : at + self.draw.randrange(9)]
        return [token if self.draw.random() < 0.9 else self.draw.choice(self.tokens) for token in known] or [
            self.draw.choice(self.tokens) for _ in range(self.draw.randrange(3))
        ]


def outcome(generation: lt.Generation[Any]) -> tuple[Any, ...]:
    """What must not change."""
    return generation.tokens, generation.text, generation.finish_reason, generation.complete


def counted(generation: lt.Generation[Any], engine: DraftingEngine) -> None:
    """What holds for every generation."""
    stats, session = generation.stats, engine.sessions[-1]
    sources = [event.source for event in generation if isinstance(event, lt.Token)]
    assert stats.forward_passes + sum(stats.passes_saved.values()) == stats.output_tokens
    assert stats.forward_passes == session.passes == sources.count("sampled")
    assert stats.passes_saved.get("drafted", 0) == sources.count("drafted")
    held, out = session.evaluated[len(PROMPT) :], list(generation.tokens)
    assert held == out[: len(held)], "memory holds what was put out, and nothing else"


@pytest.mark.parametrize("chain", CHAINS, ids=str)
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda one: repr(one)[:30])
def test_no_draft_changes_a_token(constraint: Any, chain: dict[str, Any]) -> None:
    saved = 0
    for seed in range(5):
        engine = DraftingEngine(seed)
        options: dict[str, Any] = {"seed": seed, "max_tokens": 40, "tokenization": "any", **chain}
        plain = lt.generate(engine, PROMPT, constraint, force=False, **options)
        assert plain.stats.forward_passes == engine.sessions[-1].passes == plain.stats.output_tokens
        assert plain.stats.passes_saved == {}
        drafters: list[Drafter | None] = [
            None,
            NGramDrafter(1),
            NGramDrafter(2, sources=[plain.tokens]),
            ModelDrafter(DraftingEngine(seed)),
            ModelDrafter(DraftingEngine(seed + 1), most=2),
            Proposing(seed, range(len(engine.vocabulary)), plain.tokens),
        ]
        for drafter in drafters:
            for force in (True, False):
                drafted = lt.generate(engine, PROMPT, constraint, drafter=drafter, force=force, **options)
                assert outcome(drafted) == outcome(plain), (seed, drafter)
                counted(drafted, engine)
                saved += drafted.stats.passes_saved.get("drafted", 0)
    assert saved > 20


def test_a_drafter_that_knows_saves_nearly_all_passes() -> None:
    engine = DraftingEngine(3)
    plain = lt.generate(engine, PROMPT, temperature=0.0, max_tokens=100, seed=0)
    known = ModelDrafter(DraftingEngine(3), most=8)
    drafted = lt.generate(engine, PROMPT, temperature=0.0, max_tokens=100, seed=0, drafter=known)
    assert outcome(drafted) == outcome(plain)
    assert plain.stats.forward_passes == 100
    assert drafted.stats.forward_passes <= 100 / 8 + 2
    assert "drafted" in str(drafted.stats)


def test_certain_text_is_evaluated_in_one_pass_without_a_drafter() -> None:
    engine = DraftingEngine(1, scale=0.1)
    # A model that writes as its tokenizer does.
    text = '{"name":"abc","red":true,"n":7}'
    tokens = [*PROMPT.encode(), *engine.tokenize(text)]
    for at in range(len(PROMPT), len(tokens)):
        engine.table[sum(tokens[at - 2 : at]) % len(engine.table), tokens[at]] += 9
    compact = CONSTRAINTS[1]
    plain = lt.generate(engine, PROMPT, compact, temperature=0.0, force=False)
    drafted = lt.generate(engine, PROMPT, compact, temperature=0.0)
    assert outcome(plain) == outcome(drafted)
    assert drafted.stats.forward_passes < plain.stats.forward_passes * 0.7


@pytest.mark.parametrize("limit", range(8))
def test_limits_and_stop_strings_inside_a_draft(limit: int) -> None:
    engine = DraftingEngine(5)
    long = lt.generate(engine, PROMPT, temperature=0.0, max_tokens=40, seed=0)
    drafter = Proposing(0, [0], long.tokens)
    for options in (
        {"max_tokens": limit},
        {"max_tokens": 40, "stop": long.text[limit : limit + 2]},
        {"max_tokens": 40, "stop": [long.text[limit + 3 : limit + 9], "zz"]},
    ):
        plain = lt.generate(engine, PROMPT, temperature=0.0, seed=0, **options)
        expected = outcome(plain)
        drafted = lt.generate(engine, PROMPT, temperature=0.0, seed=0, drafter=drafter, **options)
        assert outcome(drafted) == expected
        counted(drafted, engine)


@pytest.mark.parametrize("on_limit", ["keep", "close", "raise"])
def test_the_limit_of_a_constrained_output(on_limit: Any) -> None:
    for limit in range(2, 9):
        options: dict[str, Any] = {"max_tokens": limit, "on_limit": on_limit, "temperature": 1.0, "seed": limit}
        engine = DraftingEngine(limit)
        plain = lt.generate(engine, PROMPT, CONSTRAINTS[1], force=False, **options)
        drafted = lt.generate(engine, PROMPT, CONSTRAINTS[1], drafter=NGramDrafter(1), **options)
        if on_limit == "raise":
            with pytest.raises(lt.IncompleteError):
                plain.text  # noqa: B018
            with pytest.raises(lt.IncompleteError):
                drafted.text  # noqa: B018
        else:
            assert outcome(drafted) == outcome(plain)


def test_a_full_context_ends_where_it_ends_without_drafts() -> None:
    for room in range(1, 12):
        engine = DraftingEngine(2, n_ctx=len(PROMPT) + room)
        plain = lt.generate(engine, PROMPT, temperature=0.0, max_tokens=40, seed=0)
        drafter = Proposing(room, [0], plain.tokens)
        drafted = lt.generate(engine, PROMPT, temperature=0.0, max_tokens=40, seed=0, drafter=drafter)
        assert plain.finish_reason == "context_full"
        assert outcome(drafted) == outcome(plain)


def test_cancelling_ends_before_the_next_pass() -> None:
    engine = DraftingEngine(2)
    generation = lt.generate(engine, PROMPT, temperature=0.0, max_tokens=400, seed=0, drafter=NGramDrafter(1))
    for n, _ in enumerate(generation):
        if n == 10:
            generation.cancel()
            passes = engine.sessions[-1].passes
    assert (generation.finish_reason, engine.sessions[-1].passes) == ("cancelled", passes)
    counted(generation, engine)


def test_steering_and_errors_of_on_step_within_a_draft() -> None:
    engine = DraftingEngine(4)
    seen: dict[bool, list[np.ndarray]] = {True: [], False: []}
    drafted_now = False

    def steer(decoder: lt.Decoder, logits: np.ndarray) -> None:
        """Bans what is likeliest, every third time."""
        seen[drafted_now].append(logits.copy())
        decoder.steer([(int(logits.argmax()), -100.0)] if len(decoder.tokens) % 3 == 0 else None)

    options: dict[str, Any] = {"temperature": 0.0, "max_tokens": 30, "seed": 0, "on_step": steer}
    plain = lt.generate(engine, PROMPT, **options)
    plain.text  # noqa: B018
    drafted_now = True
    drafted = lt.generate(engine, PROMPT, drafter=Proposing(1, [0], plain.tokens), **options)
    assert outcome(drafted) == outcome(plain)
    assert np.array_equal(seen[True], seen[False])

    def fail(decoder: lt.Decoder, logits: np.ndarray) -> None:
        """Fails at the sixth token."""
        if len(decoder.tokens) == 5:
            raise ValueError("no sixth token")

    failing = lt.generate(engine, PROMPT, **{**options, "on_step": fail}, drafter=Proposing(1, [0], plain.tokens))
    with pytest.raises(ValueError, match="no sixth token"):
        failing.text  # noqa: B018


def test_the_trace_of_a_drafted_token_is_that_of_a_sampled_one() -> None:
    engine = DraftingEngine(6)
    options: dict[str, Any] = {"temperature": 1.0, "max_tokens": 30, "seed": 1, "trace": True}
    plain = lt.generate(engine, PROMPT, CONSTRAINTS[1], force=False, **options)
    drafted = lt.generate(engine, PROMPT, CONSTRAINTS[1], drafter=NGramDrafter(1, sources=[plain.tokens]), **options)
    for a, b in zip(plain.trace, drafted.trace, strict=True):
        assert (a.token, a.allowed) == (b.token, b.allowed)
        assert b.forced or (a.p, a.p_model, a.surprisal, a.effects) == (b.p, b.p_model, b.surprisal, b.effects)
    events = [event for event in drafted if isinstance(event, lt.Token)]
    assert any(event.source == "drafted" and event.step is not None and not event.forced for event in events)
    assert drafted.probability == pytest.approx(plain.probability)


def test_engines_that_cannot_take_tokens_back_run_as_before() -> None:
    engine = TableEngine()
    plain = lt.generate(engine, "x", max_tokens=20, seed=1)
    assert outcome(lt.generate(engine, "x", max_tokens=20, seed=1, drafter=NGramDrafter(1))) == outcome(plain)

    class Recurrent(DraftingEngine):
        """Could take tokens back, at a price."""

        def session(self) -> Any:
            """Says so."""
            made = super().session()
            made.draft_room = lambda: 0  # type: ignore[method-assign]
            return made

    recurrent = Recurrent(0)
    assert isinstance(recurrent.session(), Session)
    drafted = lt.generate(recurrent, PROMPT, max_tokens=20, seed=1, drafter=NGramDrafter(1))
    assert drafted.stats.forward_passes == drafted.stats.output_tokens
    assert recurrent.sessions[-1].rolled_back == 0


def test_several_prompts_give_what_each_gives_alone() -> None:
    engine = DraftingEngine(7)
    prompts, options = ["ab", "red"], {"temperature": 1.0, "seed": 3, "max_tokens": 20}
    together = lt.generate(engine, prompts, CONSTRAINTS[1], drafter=NGramDrafter(1), **options)
    alone = [lt.generate(engine, one, CONSTRAINTS[1], drafter=NGramDrafter(1), **options) for one in prompts]
    assert [outcome(one) for one in together] == [outcome(one) for one in alone]


def slow_ngrams(texts: Sequence[Sequence[int]], ahead: Sequence[int], shortest: int, most: int) -> list[int]:
    """The continuation of the longest earlier match, the latest of equal ones; each text for itself."""
    end = [*texts[-1], *ahead]
    longest, found = 0, list[int]()
    for text in texts:
        is_last = text is texts[-1]
        for place in range(1, len(text)):
            same = 0
            while same < min(place, len(end), 32) and text[place - 1 - same] == end[-1 - same]:
                same += 1
            if same >= max(longest, shortest):
                longest, found = same, list(text[place:])
                if is_last:
                    found += ahead
                    period = len(found)
                    while len(found) < most:
                        found.append(found[-period])
    return found[:most]


@pytest.mark.parametrize("shortest", [1, 2, 3])
@pytest.mark.parametrize("seed", range(30))
def test_n_grams_are_found_as_by_looking_everywhere(seed: int, shortest: int) -> None:
    draw = random.Random(seed)
    vocabulary = TableEngine().vocabulary
    sources = [[draw.randrange(5) for _ in range(draw.randrange(9))] for _ in range(draw.randrange(3))]
    text = [draw.randrange(5) for _ in range(draw.randrange(1, 9))]
    draft = NGramDrafter(shortest, sources=sources).begin(text, vocabulary)
    for _ in range(8):
        ahead = [draw.randrange(5) for _ in range(draw.randrange(3))]
        expected = slow_ngrams([*sources, text], ahead, shortest, 6)
        assert list(draft.propose(ahead, 6, None)) == expected
        new = [draw.randrange(5) for _ in range(draw.randrange(4))]
        draft.accept(new)
        text = text + new


def test_bytes_are_looked_up_where_no_tokens_are_the_same() -> None:
    texts = [b" Anna", b"Anna", b" Berg", b" lives", b'"', b"na", b"x"]
    vocabulary = lt.Vocabulary.from_tokens([*texts, b"</s>"], end_tokens=[7])
    draft = NGramDrafter().begin([6, 0, 2, 3], vocabulary)
    draft.accept([4])
    assert list(draft.propose([], 4, None)) == []
    draft.accept([1])
    assert list(draft.propose([], 2, None)) == [2, 3], "Anna with a space came before Berg"
    draft.accept([5])
    assert list(draft.propose([], 2, None)) == [], "nana did not come"
    assert list(draft.propose([6, 0], 2, None)) == [2, 3], "two tokens are the same"


def test_nothing_is_proposed_where_logits_depend_on_the_batch() -> None:
    class Near(DraftingEngine):
        """Its passes agree up to some tokens."""

        room = 0

        def session(self) -> Any:
            """Says how far."""
            made = super().session()
            made.draft_room = lambda: self.room - len(made.evaluated)  # type: ignore[method-assign]
            return made

    plain = lt.generate(DraftingEngine(3), PROMPT, temperature=0.0, max_tokens=40, seed=0)
    expected, passes = outcome(plain), []
    for room in (0, len(PROMPT), len(PROMPT) + 8, len(PROMPT) + 99):
        engine = Near(3)
        engine.room = room
        known = ModelDrafter(DraftingEngine(3), most=8)
        drafted = lt.generate(engine, PROMPT, temperature=0.0, max_tokens=40, seed=0, drafter=known)
        assert outcome(drafted) == expected
        passes.append(drafted.stats.forward_passes)
    assert passes[0] == passes[1] == 40 > passes[2] > passes[3]


def test_drafters_are_checked_at_the_call() -> None:
    with pytest.raises(lt.SamplingError, match="shortest is 0"):
        NGramDrafter(0)
    with pytest.raises(lt.SamplingError, match="most is 0"):
        ModelDrafter(DraftingEngine(0), most=0)
    with pytest.raises(lt.EngineError, match="is not the model's"):
        lt.generate(DraftingEngine(0), PROMPT, drafter=ModelDrafter(TableEngine()))
    with pytest.raises(lt.EngineError, match="cannot roll back"):
        lt.generate(TableEngine(), PROMPT, drafter=ModelDrafter(TableEngine()))
    assert repr(NGramDrafter(3)) == "NGramDrafter(3)"
    assert isinstance(NGramDrafter(), Drafter)
    assert isinstance(NGramDrafter().begin([1], TableEngine().vocabulary), Draft)


class Copying:
    """A drafter that proposes the output from `right` on, and a token that never comes before."""

    def __init__(self, truth: Sequence[int], right: int) -> None:
        self.truth, self.right, self.at = truth, right, 0

    def accept(self, tokens: Sequence[int]) -> None:
        """Counts them."""
        self.at += len(tokens)

    def propose(self, ahead: Sequence[int], most: int, matcher: lt.Matcher | None) -> Sequence[int]:
        """At most eight tokens."""
        at = self.at + len(ahead)
        return [token if at >= self.right else 0 for token in self.truth[at : at + min(most, 8)]]


@pytest.mark.parametrize("right", [0, 20, 60])
def test_a_drafter_that_is_wrong_is_left_out_until_it_is_right(right: int) -> None:
    costs = PassCosts()
    costs.first, costs.further = 1.0, 0.4
    truth = [3 + at % 2 for at in range(60)]
    drafts = Drafts(TableEngine().vocabulary, None, Copying(truth, right), costs)
    decoder = lt.Decoder(TableEngine().vocabulary, lt.Chain.greedy())
    at, wrong, passes_right = 0, 0, 0
    while at < len(truth):
        made = drafts.propose(decoder, truth[:at], 32)
        same = next((n for n, token in enumerate(made) if token != truth[at + n]), len(made))
        wrong += len(made) - same
        passes_right += at >= right
        drafts.accept(truth[at : at + same + 1])
        at += same + 1
    # The right ones are met again although nothing was proposed meanwhile.
    assert wrong <= 8, (wrong, passes_right)
    assert passes_right <= 6 + (60 - right) // 6
