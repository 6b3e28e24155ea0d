"""Reasoning blocks through the Python API: options and tags, a soft budget under a decoder, and a bounded block before
an answer with the real model. `crates/logitree/tests/it/constraint/reasoning.rs` proves the matcher."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import logitree as lt
from logitree._constraint import Context
from logitree.engines.llama_cpp import LlamaCpp

WORDS = [b"a", b"b", b"c", b"d", b"<think>", b"</think>", b"yes", b"no", b"<end>", b"</", b"think", b">"]
THINK, UNTHINK, YES, NO, END = 4, 5, 6, 7, 8


def vocabulary() -> lt.Vocabulary:
    """Twelve tokens: letters, both tags, two answers, the end, and a tag in pieces."""
    return lt.Vocabulary.from_tokens(WORDS, special_ids=[THINK, UNTHINK, END], end_tokens=[END])


class Bound:
    """A reasoning budget over one vocabulary."""

    def __init__(self, budget: lt.ReasoningBudget, vocabulary: lt.Vocabulary) -> None:
        self.budget, self.vocabulary = budget, vocabulary
        self.native = budget._bound(Context(vocabulary))
        self.matcher()

    def matcher(self, **place: Any) -> lt.Matcher:
        return self.budget.matcher(self.vocabulary, **place)

    def split(self, tokens: Any, **place: Any) -> tuple[list[int], list[int]]:
        return self.budget.split(tokens, self.vocabulary, **place)

    def state(self, tokens: Any, **place: Any) -> str:
        return self.budget.state(tokens, self.vocabulary, **place)


def made(**options: Any) -> Bound:
    return Bound(lt.ReasoningBudget(**options), vocabulary())


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"end": [[UNTHINK], [0, UNTHINK]]}, lt.ConstraintError, r"end\[1\] contains end\[0\]"),
        ({"end": "nothing"}, lt.ConstraintError, "no token of the vocabulary is"),
        ({"end": [99]}, lt.ConstraintError, "99 is not in the vocabulary"),
        ({"end": -1}, lt.TokenError, "-1 is no token id"),
        ({"end": [1, [2]]}, TypeError, "a list of ids and of other things"),
        ({"budget": -1}, lt.ConstraintError, "budget is -1"),
        ({"budget": 2**64}, lt.ConstraintError, "budget is 18446744073709551616"),
        ({"budget": 1.5}, TypeError, "budget must be int or None"),
        ({"max_blocks": -1}, lt.ConstraintError, "max_blocks is -1"),
        ({"max_blocks": 0, "inside": True}, lt.ConstraintError, "none may come"),
        ({"message": [0] * 5000}, lt.LimitError, "5002 tokens"),
        ({"then": "text"}, TypeError, "may mean several constraints"),
    ],
    ids=str,
)
def test_what_means_nothing_is_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        made(**options)


def test_tags_are_ids_texts_and_sequences() -> None:
    split = {"tokenize": lambda text: {"</think>!": [9, 10, 11], "so": [0, 1]}[text]}
    assert made().native.begin == made(begin=4).native.begin == made(begin=b"<think>").native.begin == [[4]]
    assert made(begin=[4]).native.begin == [[4]]
    assert made(begin=[[4], [0, 1]]).native.begin == [[4], [0, 1]]
    assert made(end=["</think>", "</think>!"], **split).native.end == [[5], [9, 10, 11]]
    matcher = made(message="so", budget=1, **split).matcher(at="inside")
    matcher.accept(3)
    assert matcher.forced_tokens() == [0, 1, 5]
    twice = lt.Vocabulary.from_tokens([b"x", b"x", b"y"])
    with pytest.raises(lt.ConstraintError, match="2 tokens of the vocabulary.*0, 1"):
        lt.ReasoningBudget("x", "y").matcher(twice)


def test_an_answer_comes_after_the_thought_or_without_one() -> None:
    answer = lt.OneOf(["yes", "no"])
    thought = made(budget=2, then=answer)
    matcher = thought.matcher()
    assert list(matcher.allowed()) == [THINK, YES, NO]
    matcher.accept_many([THINK, 0, 1])
    assert matcher.forced_tokens() == [UNTHINK]
    assert matcher.explain(0).expected == ["the end of the reasoning block"]
    matcher.accept_many([UNTHINK, NO])
    assert matcher.is_finished
    assert list(thought.matcher(prompt=[0, THINK]).allowed()) == [i for i in range(len(WORDS)) if i not in (THINK, END)]
    assert thought.matcher(at="closing").forced_tokens() == [UNTHINK]
    for at in ("inside", "closing"):
        closed = made(budget=0, then=answer).matcher(at=at)
        assert closed.forced_tokens() == [UNTHINK]
        closed.accept(UNTHINK)
        assert list(closed.allowed()) == [YES, NO]
    assert list(made(budget=0).matcher(prompt=[0, THINK]).allowed()) == [UNTHINK]
    with pytest.raises(lt.ConstraintError, match="already"):
        thought.budget + answer
    grammar = (lt.ReasoningBudget(inside=True) + lt.Grammar.choice(["yes", "a"])).matcher(vocabulary())
    grammar.accept_many([0, UNTHINK])
    assert list(grammar.allowed()) == [0, YES]


def test_what_was_generated_is_split_and_placed() -> None:
    thought = made(max_blocks=None)
    assert thought.split([THINK, 0, UNTHINK, 1, 2]) == ([THINK, 0, UNTHINK], [1, 2])
    assert thought.split([0, UNTHINK, 1], prompt=[2, THINK]) == ([0, UNTHINK], [1])
    assert thought.split(iter([0, 1]), at="inside") == ([0, 1], [])
    assert (thought.state([], prompt=[0]), thought.state([], prompt=[THINK, 0])) == ("no", "in")
    assert made(inside=True).state([]) == "in" == made().state([], prompt=[1, 4])
    assert made(inside=True).split([0], prompt=[1]) == ([0], [])
    states = [thought.state([THINK, 0, UNTHINK, 1][:n]) for n in range(5)]
    assert states == ["no", "in", "in", "after", "after"]
    assert thought.state([], at="closing") == "closing"
    with pytest.raises(ValueError, match='at is "nowhere"'):
        thought.matcher(at="nowhere")  # type: ignore[arg-type]
    assert repr(thought.budget) == repr(lt.ReasoningBudget(max_blocks=None))


def logits(**values: float) -> npt.NDArray[np.float32]:
    """Zeros, but for what is named: a letter, or `end_tag`, `eog`."""
    row = np.zeros(len(WORDS), np.float32)
    names = {"a": 0, "b": 1, "end_tag": UNTHINK, "eog": END}
    for name, value in values.items():
        row[names[name]] = value
    return row


def test_a_soft_budget_wins_when_it_outweighs_the_model() -> None:
    matcher = made(budget=10, soft_budget=4, end_bias=6.0).matcher(at="inside")
    row = logits(a=3.5)
    decoder = lt.Decoder(vocabulary(), lt.Chain.greedy(), matcher, trace=True)
    slow, tokens = matcher.fork(), []
    while UNTHINK not in tokens:
        copy, bias = row.copy(), slow.bias()
        if bias is not None:
            copy[bias[0]] += np.float32(bias[1])
        assert lt.Chain.greedy().draw(copy, slow.allowed().mask()) == decoder.step(row)
        tokens.append(decoder.tokens[-1])
        slow.accept(tokens[-1])
    # 6 * (s + 1 - 4) / 6 is past 3.5 at s = 7.
    assert tokens == [0] * 7 + [UNTHINK]
    assert row[UNTHINK] == 0
    assert decoder.chain.draw(logits(a=0.1)) == 0, "the bias is used up"
    decoder.rollback(1)
    assert decoder.step(row) == UNTHINK
    vetoed = lt.Decoder(
        vocabulary(), lt.Chain.greedy(), made(budget=10, soft_budget=4, end_bias=90.0).matcher(at="inside")
    )
    vetoed.steer(lt.steering.Steering().veto([UNTHINK]))
    assert [vetoed.step(row) for _ in range(9)] == [0] * 9


@pytest.mark.parametrize("parity", [False, True])
def test_the_bias_changes_what_is_sampled_as_steering_does(parity: bool) -> None:
    rng = np.random.default_rng(0)
    chain = lt.Chain.llama_cpp(seed=3, temp=1.5, penalty_repeat=1.2)
    chain = chain.parity() if parity else chain
    thought = made(budget=20, soft_budget=0, end_bias=4.0)
    decoder, slow = lt.Decoder(vocabulary(), chain, thought.matcher(at="inside")), thought.matcher(at="inside")
    for _ in range(20):
        row = rng.normal(0, 2, len(WORDS)).astype(np.float32)
        row[UNTHINK], row[END] = min(row[UNTHINK], -3.0), -90.0
        bias = slow.bias()
        chain.steer([] if bias is None else [bias])
        token = chain.draw(row, slow.allowed().mask())
        assert decoder.step(row) == token
        chain.accept(token)
        slow.accept(token)


def test_free_text_ends_as_without_a_constraint() -> None:
    for at, before in (("inside", [0]), ("outside", []), ("inside", [UNTHINK, 1])):
        decoder = lt.Decoder(vocabulary(), lt.Chain.greedy(), made(budget=9).matcher(at=at), stop=["ab"])
        fork = decoder.fork()
        for token in [*before, END]:
            decoder.accept(token)
        assert decoder.finish_reason == "end_of_generation"
        for token in [*before, 0, 1]:
            fork.accept(token)
        assert fork.finish_reason == "stop"
    broken_off = lt.Decoder(vocabulary(), lt.Chain.greedy(), made().matcher(at="inside"))
    broken_off.accept(0)
    broken_off.activate(made().matcher(at="closing"))
    assert broken_off.take_forced() == [UNTHINK]


# -- the real model

PROMPT = "Is fire hot? Think in <think> and </think>, then answer yes or no.\n<think>"


def last(events: Any) -> lt.Finish:
    *_, finish = events
    assert isinstance(finish, lt.Finish)
    return finish


@pytest.mark.parametrize("whole", [False, True])
def test_a_bounded_thought_before_an_answer(engine: LlamaCpp, whole: bool) -> None:
    tokenize: Callable[[str], list[int]] = engine.tokenize
    budget = lt.ReasoningBudget(
        message="\nSo:", budget=12, soft_budget=6, whole_tags=whole, tokenize=tokenize, then=["yes", "no"]
    )
    thought = Bound(budget, engine.vocabulary)
    end, message = tokenize("</think>"), tokenize("\nSo:")
    prompt = engine.encode(PROMPT, chat=False)
    seen = set()
    for seed in range(8):
        generation = lt.generate(engine, PROMPT, budget, chat=False, temperature=1.5, seed=seed)
        thoughts, answer = thought.split(generation.tokens, prompt=prompt)
        assert (generation.finish_reason, generation.value in ("yes", "no")) == ("constraint", True)
        assert generation.stats.reasoning_tokens == len(thoughts) <= 12 + 3 + len(message) + len(end)
        assert thoughts[-len(end) :] == end
        assert engine.vocabulary.decode(answer).decode() == generation.value == generation.answer
        assert generation.text.endswith("</think>" + generation.value)
        allowed = thought.matcher(prompt=prompt)
        allowed.accept_many(generation.tokens)
        assert allowed.is_finished
        slow = lt.generate(engine, PROMPT, budget, chat=False, temperature=1.5, seed=seed, force=False)
        assert slow.tokens == generation.tokens
        seen.add(thoughts[-len(end) - len(message) : -len(end)] == message)
    assert True in seen


def test_choose_after_a_thought_counts_the_answer_only(engine: LlamaCpp) -> None:
    answers = lt.OneOf([" yes", " no"])
    budget = lt.ReasoningBudget(budget=6) + answers
    chosen = lt.choose(engine, PROMPT, budget, chat=False)
    assert chosen.stats.reasoning_tokens >= 6
    tokens = engine.tokenize(" yes"), engine.tokenize(" no")
    prefix = engine.encode(PROMPT, chat=False)
    finish = last(lt.generate(engine, PROMPT, budget, chat=False, chain=lt.Chain.greedy()))
    row = engine.session().evaluate([*prefix, *finish.tokens[: finish.stats.reasoning_tokens]]).astype(np.float64)
    yes, no = (np.exp(row[ids[0]] - row.max()) for ids in tokens)
    assert chosen.probability == pytest.approx(max(yes, no) / (yes + no), rel=1e-3)


def test_free_text_after_a_thought(engine: LlamaCpp) -> None:
    budget = lt.ReasoningBudget(budget=4)
    finish = last(lt.generate(engine, PROMPT, budget, chat=False, temperature=0.0, max_tokens=24))
    assert finish.stats.reasoning_tokens == 4 + len(engine.tokenize("</think>"))
    assert finish.reason in ("max_tokens", "end_of_generation")
    off = lt.ReasoningBudget(budget=0)
    free, plain = (
        lt.generate(engine, PROMPT.removesuffix("<think>"), constraint, chat=False, temperature=0.0, max_tokens=24)
        for constraint in (off, None)
    )
    assert free.tokens == plain.tokens
    # A block that the prompt began is closed at once.
    closed = lt.generate(engine, PROMPT, off, chat=False, temperature=0.0, max_tokens=24)
    assert closed.text.startswith("</think>") and len(closed.tokens) == 24
    answer = lt.generate(engine, PROMPT, off + lt.OneOf(["yes", "no"]), chat=False, temperature=0.0, max_tokens=24)
    assert answer.text.startswith("</think>") and answer.value in ("yes", "no")
