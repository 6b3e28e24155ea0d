"""`tokenization=`: which tokens spell a constrained text, for each kind of constraint, engine and option."""

from __future__ import annotations

import enum
import gc
import weakref
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import logitree as lt
from logitree import compose, protocols
from logitree import skeleton as sk
from logitree.engines import Engine, Session
from table_engine import DraftingEngine, TableEngine


class Own(Engine):
    """SmolLM2's vocabulary and tokenizer over random logits, the same after the same last token."""

    def __init__(self, tokenizer: Any) -> None:
        self.own_tokenizer, self.tokenize = tokenizer, tokenizer.encode
        self.vocabulary = tokenizer.vocabulary

    def encode(self, prompt: Any, *, chat: bool | None = None) -> list[int]:
        """The tokenizer's tokens."""
        made: list[int] = self.own_tokenizer.encode(prompt)
        return made

    def session(self) -> Session:
        """One sequence; its last token alone counts."""
        return OwnSession(len(self.vocabulary))


class OwnSession(Session):
    """One sequence."""

    def __init__(self, size: int) -> None:
        self.size = size

    def evaluate(self, tokens: Any) -> Any:
        """Random logits of the last token."""
        return np.random.default_rng(tokens[-1]).normal(0, 1, self.size).astype(np.float32)


@pytest.fixture(scope="module")
def tokenizer(smollm2_gguf: Path) -> lt.Tokenizer:
    return lt.Tokenizer.from_gguf(smollm2_gguf)


@pytest.fixture
def own(tokenizer: lt.Tokenizer) -> Own:
    return Own(tokenizer)


class Answer(enum.Enum):
    """Two answers."""

    YES = "yes indeed"
    NO = "not at all"


SHORT = lt.Grammar.regex("(animals|vegetables), [a-z]{3,9} and (minerals|metals)")
TEXTS = ["animals and vegetables", "minerals", "one thousand things"]
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}, "required": ["name"]}
CANONICAL = {
    "texts": TEXTS,
    "enum": Answer,
    "following": lt.OneOf(TEXTS, following='"}'),
    "grammar": SHORT,
    "schema": SCHEMA,
    "type": list[bool],
    "skeleton": lt.Skeleton("Kind: ", sk.enum(TEXTS).named("kind"), ". Done."),
    "then": compose.then(TEXTS, SHORT),
    "either": compose.either(SHORT, TEXTS),
    "both": compose.both(SHORT, lt.Grammar.regex("animals.*")),
    "repeat": compose.repeat(lt.Grammar.literal("again "), 2, 3),
    "until": compose.until("###", lt.Grammar.regex("[a-z#]{0,20}")),
    "banned words": compose.ban(SHORT, words=["metals"]),
    "control token": lt.Grammar.literal("one thousand") + lt.Grammar.token("<|im_start|>"),
    "response": protocols.Protocol.named("hermes").constraint(
        tools=[{"name": "find", "parameters": SCHEMA}], tool_choice="required"
    ),
}
ANY = {
    "text token": lt.Grammar.token(339) + SHORT,
    "prefilled skeleton": lt.Skeleton("Kind: ", sk.enum(TEXTS).named("kind"), ". Done.").prefill(),
    "banned tokens": compose.ban(SHORT, tokens=[[5]]),
    "at least": compose.at_least(9, SHORT),
    "at most": compose.at_most(40, SHORT),
    "with a skeleton": compose.either(lt.Skeleton(sk.enum(TEXTS)), SHORT),
}


def run(engine: Any, constraint: Any, **options: Any) -> lt.Generation[Any]:
    return lt.generate(
        engine, "Say:", constraint, **{"temperature": 1.5, "top_k": 0, "top_p": 1.0, "seed": 3} | options
    )


def of_text(engine: Own, tokens: Any) -> list[int]:
    return [token for token in tokens if engine.vocabulary.kind(token) == "normal"]


@pytest.mark.parametrize("kind", CANONICAL)
def test_auto_is_canonical_where_the_constraint_is_about_text(own: Own, kind: str) -> None:
    constraint = CANONICAL[kind]
    auto, canonical = run(own, constraint), run(own, constraint, tokenization="canonical")
    assert auto.complete
    assert auto.tokens == canonical.tokens
    assert own.own_tokenizer.is_canonical(auto.tokens)
    assert run(own, constraint, force=False).tokens == auto.tokens == run(own, constraint).tokens
    differ = [run(own, constraint, tokenization="any", seed=seed).tokens for seed in range(3)]
    assert any(not own.own_tokenizer.is_canonical(tokens) for tokens in differ), "any spelling differs"
    sources = {event.source for event in auto if isinstance(event, lt.Token)}
    assert "canonical" in sources and "forced" not in sources


@pytest.mark.parametrize("kind", ANY)
def test_auto_is_any_where_tokens_are_counted_or_given(own: Own, kind: str) -> None:
    for seed in range(3):
        auto = run(own, ANY[kind], seed=seed)
        assert auto.tokens == run(own, ANY[kind], seed=seed, tokenization="any").tokens
        assert "canonical" not in {event.source for event in auto if isinstance(event, lt.Token)}


def test_matchers_trees_and_own_constraints_keep_their_tokens(own: Own) -> None:
    class Mine(lt.Constraint):
        def matcher(self, vocabulary: lt.Vocabulary) -> lt.Matcher:
            return SHORT.matcher(vocabulary)

    letters = [own.tokenize(letter)[0] for letter in "minerals"]
    spelled = lt.OneOf(["minerals"], tokenize=lambda text: letters)
    catalogue = lt.Catalogue.from_texts(["minerals"], lambda text: letters)
    assert list(run(own, spelled).tokens) == letters != own.tokenize("minerals")
    assert list(run(own, catalogue).tokens)[:8] == letters
    for constraint in (Mine(), SHORT.matcher(own.vocabulary)):
        assert run(own, constraint).tokens == run(own, SHORT, tokenization="any").tokens


def test_free_text_is_spelled_as_the_model_likes(own: Own) -> None:
    tokens = {run(own, None, max_tokens=8, tokenization=how).tokens for how in ("auto", "any", "canonical")}
    assert len(tokens) == 1


def test_no_value_is_lost_for_its_spelling(own: Own) -> None:
    tokenizer = DraftingEngine(0)
    values = [b"\xff", "red"]
    found = {run(tokenizer, values, seed=seed).value for seed in range(12)}
    assert found == set(values)
    with pytest.raises(lt.ConstraintError, match=r'a value is no text.*tokenization="any"'):
        run(tokenizer, values, tokenization="canonical")
    pattern = lt.Grammar.regex("[a-z]{1,3}")
    assert run(tokenizer, pattern).complete, "lists need tokenize alone, all else the tokenizer itself"
    with pytest.raises(lt.EngineError, match=r'does not give its tokenizer; give tokenization="any"'):
        run(tokenizer, pattern, tokenization="canonical")


def test_a_list_needs_no_more_than_tokenize() -> None:
    class Spaced(DraftingEngine):
        def tokenize(self, text: str) -> list[int]:
            return super().tokenize(" " + text)

    for engine in (DraftingEngine(1), Spaced(1)):
        for how in ("auto", "canonical"):
            made = run(engine, ["abc", "red"], tokenization=how, seed=2)
            assert made.value in ("abc", "red") and len(made.tokens) <= 2
    assert run(TableEngine(1), ["abc", "red"]).tokens == run(TableEngine(1), ["abc", "red"], tokenization="any").tokens


def test_a_constraint_keeps_no_engine_alive() -> None:
    engine, values = DraftingEngine(1), lt.OneOf(["abc", "red"])
    assert run(engine, values).value in values
    known = weakref.ref(engine)
    del engine
    gc.collect()
    assert known() is None
    assert run(DraftingEngine(2), values).value in values


def test_an_error_of_the_engine_is_not_taken_for_a_value_without_text() -> None:
    class Broken(DraftingEngine):
        def tokenize(self, text: str) -> list[int]:
            raise TypeError("the engine's own")

    with pytest.raises(TypeError, match="the engine's own"):
        run(Broken(1), ["abc", "red"], force=False)


def test_an_answer_after_reasoning_is_spelled_as_alone(own: Own) -> None:
    block = lt.ReasoningBudget("<think>", "</think>", budget=4, inside=True, whole_tags=True)
    for seed in range(3):
        made = run(own, block + TEXTS, seed=seed, max_tokens=80)
        answer = made.tokens[made.stats.reasoning_tokens :]
        assert made.value in TEXTS
        assert of_text(own, answer) == own.tokenize(made.value)


def test_a_healed_prompt_and_its_constraint_are_one_text(own: Own) -> None:
    for constraint in (TEXTS, SHORT):
        made = lt.generate(own, "These are miner and ", constraint, seed=1, temperature=1.5)
        whole = [*made.prompt, *(token for token in made.tokens if token not in own.vocabulary.end_tokens)]
        text = b"".join(own.vocabulary[token] for token in whole).decode()
        assert text == "These are miner and " + made.text
        assert own.own_tokenizer.is_canonical(whole) and len(made.prompt) < len(own.tokenize("These are miner and "))


def test_several_outputs_are_those_of_each_alone(own: Own) -> None:
    constraints = [TEXTS, SHORT, ANY["at least"]]
    together = lt.generate(own, ["Say:"] * 3, constraints, seed=5, temperature=1.5, top_k=0)
    for made, constraint in zip(together, constraints, strict=True):
        assert made.tokens == lt.generate(own, "Say:", constraint, seed=5, temperature=1.5, top_k=0).tokens
    answers = lt.generate(own, "Say:", SHORT, n=3, seed=5, temperature=1.5, top_k=0)
    for at, made in enumerate(answers):
        assert made.tokens == lt.generate(own, "Say:", SHORT, seed=5 + at, temperature=1.5, top_k=0).tokens
    drafter = lt.speculation.NGramDrafter()
    assert run(own, SHORT, drafter=drafter).tokens == run(own, SHORT).tokens


def test_a_tokenizer_of_an_unknown_kind_means_any(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    class Unknown(Own):
        @property
        def own_tokenizer(self) -> Any:
            """A tokenizer that is not read."""
            raise lt.VocabularyError("the tokenizer is of the kind 'wpm'")

        @own_tokenizer.setter
        def own_tokenizer(self, _: Any) -> None:
            pass

        def encode(self, prompt: Any, *, chat: bool | None = None) -> list[int]:
            return list(own.tokenize(prompt))

    engine = Unknown(own.own_tokenizer)
    assert run(engine, SHORT).tokens == run(own, SHORT, tokenization="any").tokens
    with pytest.raises(lt.VocabularyError, match="wpm"):
        run(engine, SHORT, tokenization="canonical")


def test_a_spelling_that_fails_is_not_looked_for_again(own: Own) -> None:
    engine, asked = Own(own.own_tokenizer), []

    class Counting:
        """A tokenizer that counts the spellings that are asked for."""

        encode, vocabulary = own.own_tokenizer.encode, own.own_tokenizer.vocabulary

        def canonical(self, matcher: lt.Matcher) -> lt.Matcher:
            """Always the error."""
            asked.append(1)
            raise lt.ConstraintError("it has no spelling that the tokenizer would give")

    engine.own_tokenizer = Counting()
    lt.engines.clear_caches()
    raised = []
    for _ in range(3):
        with pytest.raises(lt.ConstraintError, match="spelling that the tokenizer would give") as caught:
            run(engine, SHORT, tokenization="canonical")
        raised.append(caught.value)
    assert len(asked) == 1 and len({id(error) for error in raised}) == 3
    assert len({str(error) for error in raised}) == 1 and all(error.help == raised[0].help for error in raised)
    assert lt.engines.cache_info()["not_canonical"]["entries"] == 1
    assert run(engine, SHORT).tokens == run(engine, SHORT, tokenization="any").tokens
    assert len(asked) == 1
    lt.engines.clear_caches()
    assert all(counts["entries"] == 0 for counts in lt.engines.cache_info().values())
    run(engine, SHORT)
    assert len(asked) == 2


def test_a_tokenizer_is_read_once_and_a_missing_file_is_looked_for_again(own: Own) -> None:
    class Reading(Own):
        """Reads its tokenizer."""

        results: ClassVar[list[Any]] = []

        def read_tokenizer(self) -> Any:
            """The next result."""
            result = self.results.pop(0)
            if isinstance(result, Exception):
                raise result
            return result

    engine = Reading(own.own_tokenizer)
    engine.own_tokenizer = None
    Reading.results = [lt.FileError("not there"), own.own_tokenizer]
    with pytest.raises(lt.FileError):
        _ = engine.own_tokenizer
    assert engine.own_tokenizer is own.own_tokenizer is engine.own_tokenizer

    engine = Reading(own.own_tokenizer)
    engine.own_tokenizer = None
    kind = lt.EngineError("of no kind", help="take another")
    Reading.results = [kind]
    raised = []
    for _ in range(2):
        with pytest.raises(lt.EngineError, match="of no kind; take another") as caught:
            _ = engine.own_tokenizer
        raised.append(caught.value)
    assert raised[0] is kind and raised[1] is not kind and raised[1].help == "take another"


class Starved:
    """A tokenizer whose matchers have little fuel."""

    def __init__(self, tokenizer: lt.Tokenizer, fuel: int) -> None:
        self.tokenizer, self.fuel = tokenizer, fuel
        self.vocabulary, self.encode = tokenizer.vocabulary, tokenizer.encode

    def canonical(self, matcher: lt.Matcher) -> lt.Matcher:
        """With the fuel."""
        return self.tokenizer.canonical(matcher, fuel=self.fuel)


def outcome(engine: Own) -> tuple[int, ...] | lt.LimitError:
    """The tokens of an output, or what ended it."""
    try:
        return run(engine, SCHEMA).tokens
    except lt.LimitError as raised:
        return raised


def test_too_much_work_is_an_error_that_says_how_to_go_on(tokenizer: lt.Tokenizer) -> None:
    seen = set()
    for fuel in (1, 5_000, 60_000, 10_000_000):
        tokenizer.vocabulary.clear_bindings()
        engine = Own(Starved(tokenizer, fuel))
        told = outcome(engine)
        if isinstance(told, lt.LimitError):
            assert "canonical spelling takes more than" in str(told)
            assert told.help == 'give tokenization="any"'
        else:
            assert tokenizer.is_canonical(told)
        seen.add(type(told))
        assert run(engine, SCHEMA, tokenization="any").complete
    assert seen == {tuple, lt.LimitError}


def test_the_names_of_0_1_warn_and_mean_what_they_meant(own: Own) -> None:
    options: Any
    for options, new in [
        ({"tokenizations": "all"}, "any"),
        ({"tokenization": "all"}, "any"),
        ({"tokenizations": "canonical"}, "canonical"),
        ({"tokenizations": "fast_forward"}, "fast_forward"),
    ]:
        with pytest.warns(DeprecationWarning, match=f'"{new}"') as caught:
            made = run(own, SHORT, **options)
        assert caught[0].filename == __file__
        assert made.tokens == run(own, SHORT, tokenization=new).tokens
    with pytest.warns(DeprecationWarning, match='write tokenization="any"'):
        old = lt.choose(DraftingEngine(1), [120], ["abc", "red"], tokenizations="all")  # type: ignore[call-overload]
    assert old.probabilities == lt.choose(DraftingEngine(1), [120], ["abc", "red"], tokenization="any").probabilities


@pytest.mark.parametrize(
    "value", ["", "Canonical", "auto ", "canon", None, True, 1, b"any", ["any"], {"any": 1}, np.str_("none"), object]
)
def test_what_is_no_tokenization_is_an_error_at_the_call(value: Any) -> None:
    with pytest.raises(lt.ConstraintError, match='tokenization is .*give one of "auto", "any", "canonical"'):
        lt.generate(TableEngine(), "x", ["a"], tokenization=value)
    with pytest.raises(lt.ConstraintError, match="tokenization is"):
        lt.choose(TableEngine(), "x", ["a"], tokenization=value)


def test_both_names_and_other_names_are_errors() -> None:
    with pytest.raises(TypeError, match="both tokenization= and tokenizations="):
        lt.generate(TableEngine(), "x", ["a"], tokenization="any", tokenizations="all")  # type: ignore[call-overload]
    for name, told in [("canonical", 'write tokenization="canonical"'), ("tokenisation", "did you mean tokenization=")]:
        with pytest.raises(TypeError, match=told):
            lt.generate(TableEngine(), "x", ["a"], **{name: True})
    with pytest.raises(lt.ConstraintError, match="tokenization is 'fast_forward', and probabilities are exact"):
        lt.choose(TableEngine(), "x", ["a", "b"], tokenization="fast_forward")


@pytest.mark.parametrize("kind", CANONICAL)
@pytest.mark.parametrize("most", [1, 3, 6])
def test_an_output_that_is_cut_is_closed_in_the_same_spelling(
    own: Own, tokenizer: lt.Tokenizer, kind: str, most: int
) -> None:
    closed = run(own, CANONICAL[kind], max_tokens=most, on_limit="close")
    assert closed.complete
    assert tokenizer.is_canonical(closed.tokens)
