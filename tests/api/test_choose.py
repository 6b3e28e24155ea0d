"""Exact choices: probabilities of whole values, held against each value scored alone."""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pytest

import logitree as lt
from logitree.engines import ContextFull, Session
from logitree.engines._trees import groups
from table_engine import DraftingEngine, TableEngine


class Tabled(TableEngine):
    """A model whose probabilities are written down: by the text so far after the prompt, of each next byte."""

    def __init__(self, after: Mapping[str, Mapping[str, float]], prompt: str = "?") -> None:
        super().__init__()
        self.after, self.prompt, self.seen = after, prompt.encode(), list[bytes]()

    def tokenize(self, text: str) -> list[int]:
        """The bytes."""
        return list(text.encode())

    def session(self) -> Any:
        """A sequence that looks its text up."""
        return TabledSession(self)


class TabledSession(Session):
    """One sequence of a `Tabled`."""

    def __init__(self, engine: Tabled) -> None:
        self.engine, self.held = engine, list[int]()

    def evaluate(self, tokens: Sequence[int]) -> np.ndarray:
        """The logarithms of what is written down; what is not has next to nothing."""
        self.held += tokens
        text = bytes(self.held).removeprefix(self.engine.prompt)
        self.engine.seen.append(text)
        row = np.full(257, -40.0, np.float32)
        for byte, p in self.engine.after.get(text.decode(), {}).items():
            row[256 if byte == "</s>" else ord(byte)] = math.log(p)
        return row


def slowly(engine: Any, prompt: Sequence[int], sequences: Sequence[Sequence[int]]) -> list[float]:
    """The log-probability of each token sequence, each token of it in a session of its own."""
    made = []
    for sequence in sequences:
        total = 0.0
        for at, token in enumerate(sequence):
            row = engine.session().evaluate([*prompt, *sequence[:at]]).astype(np.float64)
            total += row[token] - row.max() - math.log(np.exp(row - row.max()).sum())
        made.append(total)
    return made


def shares(logs: Sequence[float]) -> list[float]:
    """Log-probabilities as probabilities that sum to 1."""
    weights = np.exp(np.array(logs) - max(logs))
    return list(weights / weights.sum())


LIKELIEST = {"": {"a": 0.55, "b": 0.45}, "a": {"b": 0.5, "c": 0.5}}


def test_the_likeliest_value_is_not_the_one_with_the_likeliest_beginning() -> None:
    engine = Tabled(LIKELIEST)
    chosen = lt.choose(engine, "?", ["ab", "ac", "b"])
    assert (chosen.value, chosen.index) == ("b", 2)
    assert chosen.probabilities == pytest.approx((0.275, 0.275, 0.45), abs=1e-6)
    assert chosen.probability == pytest.approx(0.45, abs=1e-6)
    assert (chosen.stats.forward_passes, chosen.stats.output_tokens) == (2, 1)
    assert sorted(engine.seen) == [b"", b"a"], "no more than the beginnings that something continues"
    greedy = lt.choose(engine, "?", ["ab", "ac", "b"], method="greedy")
    assert (greedy.value, greedy.probabilities) == ("ab", None)


def test_the_beginning_of_another_counts_with_its_end() -> None:
    table = {"": {"a": 0.8, "b": 0.2}, "a": {"b": 0.3, "</s>": 0.2, "x": 0.5}}
    chosen = lt.choose(Tabled(table), "?", ["a", "ab", "b"])
    expected = np.array([0.8 * 0.2, 0.8 * 0.3, 0.2])
    assert chosen.probabilities == pytest.approx(expected / expected.sum(), abs=1e-6)
    table = {"": {"a": 0.7, "</s>": 0.1, "b": 0.2}}
    assert lt.choose(Tabled(table), "?", ["", "b"]).probabilities == pytest.approx((1 / 3, 2 / 3), abs=1e-6)
    table = {"": {"a": 1.0}, "a": {'"': 0.4, "b": 0.6}, "ab": {'"': 0.5, "c": 0.5}}
    followed = lt.choose(Tabled(table), "?", lt.OneOf(["a", "ab"], following='"'))
    assert followed.probabilities == pytest.approx((0.4 / 0.7, 0.3 / 0.7), abs=1e-6)


def test_calibration_divides_by_the_probability_without_the_prompt() -> None:
    class Biased(Tabled):
        def session(self) -> Any:
            engine = self

            class Asked(TabledSession):
                def evaluate(self, tokens: Sequence[int]) -> np.ndarray:
                    self.held += tokens
                    row = np.full(257, -40.0, np.float32)
                    rows = {b"?": (0.6, 0.4), b"!": (0.9, 0.1)}
                    row[[ord("a"), ord("b")]] = np.log(rows[bytes(self.held)])
                    return row

            return Asked(engine)

    engine = Biased({})
    assert lt.choose(engine, "?", ["a", "b"]).value == "a"
    chosen = lt.choose(engine, "?", ["a", "b"], calibrate="!")
    expected = np.array([0.6 / 0.9, 0.4 / 0.1])
    assert (chosen.value, chosen.probabilities) == ("b", pytest.approx(expected / expected.sum(), abs=1e-6))
    with pytest.raises(lt.ConstraintError, match="calibrate=True and a prompt of token ids"):
        lt.choose(engine, [63], ["a", "b"], calibrate=True)
    with pytest.raises(lt.ConstraintError, match="calibrate needs exact"):
        lt.choose(engine, "?", ["a", "b"], calibrate=True, method="greedy")


def test_without_a_prompt_means_an_empty_one() -> None:
    engine = TableEngine(3)
    chosen = lt.choose(engine, "x", ["a", "b"], calibrate=True)
    with_prompt, without = (slowly(engine, prompt, [[97], [98]]) for prompt in ([120], [256]))
    expected = shares([a - b for a, b in zip(with_prompt, without, strict=True)])
    assert chosen.probabilities == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_equal_to_each_value_scored_alone(seed: int) -> None:
    engine = DraftingEngine(seed)
    values = ["abc", "abcd", "red", '{"name', "true", "tru", "zz", "", "b"]
    chosen = lt.choose(engine, [120], values)
    spelled = [engine.tokenize(value) for value in values]
    ends = [any(o != s and o[: len(s)] == s for o in spelled) for s in spelled]
    sequences = [[*s, 271] if end else s for s, end in zip(spelled, ends, strict=True)]
    assert 0 < sum(ends) < len(values)
    expected = shares(slowly(engine, [120], sequences))
    assert chosen.probabilities == pytest.approx(expected, rel=1e-4)
    assert chosen.index == int(np.argmax(expected))
    assert math.fsum(chosen.probabilities or ()) == pytest.approx(1.0, abs=1e-12)


def every_spelling(matcher: lt.Matcher) -> list[list[int]]:
    """Every way through a matcher."""
    found, todo = list[list[int]](), [(matcher, list[int]())]
    while todo:
        at, tokens = todo.pop()
        if at.is_finished:
            found.append(tokens)
            continue
        for token in at.allowed():
            on = at.fork()
            on.accept(token)
            todo.append((on, [*tokens, token]))
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("following", [None, '"'])
def test_all_spellings_together(seed: int, following: str | None) -> None:
    engine = DraftingEngine(seed, scale=1.0)
    one_of = lt.OneOf(["abc", "abcre", "red", " true", "b"], following=following)
    chosen = lt.choose(engine, [120], one_of, tokenization="any")
    sums: dict[bytes, list[float]] = {}
    spellings = every_spelling(one_of.matcher(engine.vocabulary))
    for tokens, log in zip(spellings, slowly(engine, [120], spellings), strict=True):
        text = b"".join(engine.vocabulary[t] for t in tokens if t != 271)
        sums.setdefault(text, []).append(math.exp(log))
    end = (following or "").encode()
    expected = np.array([math.fsum(sums[str(value).encode() + end]) for value in one_of])
    assert len(spellings) > 2 * len(one_of)
    assert chosen.probabilities == pytest.approx(expected / expected.sum(), abs=3e-6)


def test_an_engine_without_a_tokenizer_sums_all_spellings() -> None:
    class Bare(DraftingEngine):
        tokenize = None  # type: ignore[assignment]

    asked = [lt.choose(engine, [120], ["abc", "red"], tokenization="any") for engine in (DraftingEngine(1), Bare(1))]
    plain = lt.choose(Bare(1), [120], ["abc", "red"])
    assert plain.probabilities == pytest.approx(asked[0].probabilities, abs=3e-6) == asked[1].probabilities
    with pytest.raises(lt.ConstraintError, match="no tokenizer"):
        lt.choose(Bare(1), [120], ["abc", "red"], tokenization="canonical")


def test_a_tokenizer_that_spells_something_else_is_not_asked() -> None:
    class Spaced(DraftingEngine):
        def tokenize(self, text: str) -> list[int]:
            return super().tokenize(" " + text)

    assert lt.choose(Spaced(1), [120], ["abc", "red"]).probabilities == pytest.approx(
        lt.choose(DraftingEngine(1), [120], ["abc", "red"], tokenization="any").probabilities, abs=3e-6
    )
    with pytest.raises(lt.ConstraintError, match="do not spell"):
        lt.choose(Spaced(1), [120], ["abc", "red"], tokenization="canonical")


def test_values_of_other_kinds() -> None:
    class Colour(enum.Enum):
        RED = "red"
        BLUE = "blue"

    engine = TableEngine(5)
    assert isinstance(lt.choose(engine, "x", Colour).value, Colour)
    assert lt.choose(engine, "x", Literal["yes", "no"]).value in ("yes", "no")
    assert lt.choose(engine, "x", bool).value in (True, False)
    numbers = lt.choose(engine, "x", range(1, 12))
    assert numbers.value in range(1, 12)
    assert len(numbers.probabilities or ()) == 11
    chosen = lt.choose(engine, "x", [b"\xff\xfe", 1.5, None])
    assert (b"\xff\xfe", 1.5, None)[chosen.index] == chosen.value
    with pytest.raises(TypeError, match="no list of values"):
        lt.choose(engine, "x", int)


def test_many_prompts_give_many_choices() -> None:
    engine, prompts = TableEngine(2), ["x", "y", "zz"]
    for options in ({}, {"method": "greedy"}, {"calibrate": "n"}, {"tokenization": "any"}):
        chosen = lt.choose(engine, prompts, ["ab", "ac", "b"], **options)
        alone = [lt.choose(engine, prompt, ["ab", "ac", "b"], **options) for prompt in prompts]
        assert [(c.value, c.probabilities) for c in chosen] == [(c.value, c.probabilities) for c in alone]


def test_reasoning_comes_first() -> None:
    engine = DraftingEngine(4, scale=1.0)
    budget = lt.ReasoningBudget([[1]], [[2]], budget=5) + lt.OneOf(["abc", "red"])
    prompt = [120, 1]
    events: list[lt.Event] = []
    chosen = lt.choose(engine, prompt, budget, on_event=events.append)
    written = lt.generate(engine, prompt, budget, chain=lt.Chain.greedy())
    thought = written.tokens[: written.stats.reasoning_tokens]
    assert chosen.stats.reasoning_tokens == len(thought) == 6
    assert any(isinstance(event, lt.Token) for event in events)
    spelled = [engine.tokenize("abc"), engine.tokenize("red")]
    assert chosen.probabilities == pytest.approx(shares(slowly(engine, [*prompt, *thought], spelled)), rel=1e-4)
    with pytest.raises(lt.ConstraintError, match="calibrate with a reasoning"):
        lt.choose(engine, prompt, budget, calibrate="x")


def test_repeated_values_count_once() -> None:
    chosen = lt.choose(Tabled(LIKELIEST), "?", ["b", "ab", "b"])
    assert chosen.index == 0
    assert chosen.probabilities == pytest.approx((0.45 / 0.725, 0.275 / 0.725, 0.0), abs=1e-6)


def test_a_thousand_values_and_long_ones() -> None:
    engine = TableEngine(7, scale=1.0)
    values = [f"item {a}{b}{c}" for a, b, c in itertools.product("0123456789", repeat=3)]
    chosen = lt.choose(engine, "x", values)
    logs = slowly(engine, b"x", [value.encode() for value in values[:3]])
    probabilities = chosen.probabilities or ()
    assert len(probabilities) == 1000
    assert math.fsum(probabilities) == pytest.approx(1.0)
    assert math.log(probabilities[1] / probabilities[0]) == pytest.approx(logs[1] - logs[0], abs=1e-4)
    long = ["a" * 300 + "b", "a" * 300 + "c", "z" * 400]
    logs = slowly(engine, b"x", [value.encode() for value in long])
    assert lt.choose(engine, "x", long).probabilities == pytest.approx(shares(logs), rel=1e-3)
    for spelling in ("canonical", "auto"):
        with pytest.raises(lt.IncompleteError, match="max_tokens is 5, and it has"):
            lt.choose(DraftingEngine(1), [120], ["abc" * 10, "z"], max_tokens=5, tokenization=spelling)


def test_what_does_not_fit_is_an_error() -> None:
    engine = DraftingEngine(1, n_ctx=6)
    with pytest.raises(lt.IncompleteError, match="the context is full"):
        lt.choose(engine, [120, 121], ["a" * 8, "b"])


def test_logits_that_are_no_numbers_are_an_error() -> None:
    for wrong in (math.nan, math.inf):
        engine = TableEngine(1)
        engine.table[ord("a"), 5] = wrong
        with pytest.raises(lt.LogitsError, match=str(wrong)):
            lt.choose(engine, "x", ["ab", "ac", "b"])
    engine = TableEngine(1)
    engine.table[:, [97, 98]] = -math.inf
    with pytest.raises(lt.LogitsError, match="none of the values a probability"):
        lt.choose(engine, "x", ["a", "b"])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"method": "best"}, lt.ConstraintError, "method is 'best'"),
        ({"method": "exact", "temperature": 0.5}, lt.SamplingError, "exact probabilities and temperature"),
        ({"method": "exact", "seed": 1}, lt.SamplingError, "exact probabilities and seed"),
        ({"on_step": print}, lt.ConstraintError, "on_step: exact probabilities decode no tokens"),
        ({"force": False}, lt.ConstraintError, "force"),
        ({"tokenization": "fast_forward"}, lt.ConstraintError, "tokenization is 'fast_forward'"),
        ({"max_tokens": -1}, lt.LimitError, "max_tokens is -1"),
        ({"nonsense": 1}, Exception, "nonsense"),
    ],
)
def test_options_that_cannot_be_honoured(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        lt.choose(TableEngine(), "x", ["a", "b"], **options)


def test_sampling_parameters_draw_a_value() -> None:
    engine = Tabled(LIKELIEST)
    drawn = [lt.choose(engine, "?", ["ab", "ac", "b"], temperature=1.0, seed=seed) for seed in range(60)]
    assert {chosen.value for chosen in drawn} == {"ab", "ac", "b"}
    assert all(chosen.probabilities is None for chosen in drawn)


def test_groups_cover_the_tree_once() -> None:
    numbers = np.random.default_rng(0)
    for _ in range(50):
        n = int(numbers.integers(1, 40))
        parents = [int(numbers.integers(-1, node)) for node in range(n)]
        depth = [0] * n
        for node, parent in enumerate(parents):
            depth[node] = 1 if parent == -1 else depth[parent] + 1
        made = list(groups(parents, 4, max(depth) + 2))
        assert sorted(node for group in made for node in group.new) == list(range(n))
        for group in made:
            assert group.width <= 4
            assert len(group.nodes) <= max(depth) + 2
            places = {node: at for at, node in enumerate(group.nodes)}
            assert all(parents[node] == -1 or places[parents[node]] < at for node, at in places.items())
            for node in group.nodes:
                if parents[node] != -1:
                    above, below = group.leaves[parents[node]], group.leaves[node]
                    assert above.start <= below.start < below.stop <= above.stop
        with pytest.raises(ContextFull):
            list(groups(parents, 4, max(depth) - 1))


def test_values_that_cannot_be_chosen() -> None:
    engine = TableEngine()
    with pytest.raises(lt.ConstraintError, match="only choice is empty"):
        lt.choose(engine, "x", [""])
    with pytest.raises(lt.ConstraintError, match="nothing to choose from"):
        lt.choose(engine, "x", [])
    with pytest.raises(lt.ConstraintError, match="do not spell"):
        lt.choose(DraftingEngine(), "x", [b"\xff", "b"], tokenization="canonical")
    bytes_only = DraftingEngine()
    bytes_only.vocabulary = lt.Vocabulary.from_tokens([bytes([b]) for b in range(256)])
    with pytest.raises(lt.ConstraintError, match="beginning of"):
        lt.choose(bytes_only, [120], ["a", "ab"])
    with pytest.raises(lt.ConstraintError, match="surrogate"):
        lt.choose(engine, "x", ["\ud800", "b"])


@pytest.mark.parametrize("spelling", ["canonical", "any"])
def test_the_end_of_a_prompt_is_healed(spelling: Any) -> None:
    engine, values = DraftingEngine(2, scale=1.0), ["true", '"', "b"]
    chosen = lt.choose(engine, "x ", values, tokenization=spelling)
    whole = [" " + value for value in values]
    spellings = [[engine.tokenize(text)] for text in whole]
    if spelling == "any":
        matchers = [lt.OneOf([text]).matcher(engine.vocabulary) for text in whole]
        spellings = [every_spelling(matcher) for matcher in matchers]
    logs = [float(np.logaddexp.reduce(slowly(engine, [120], ways))) for ways in spellings]
    assert chosen.probabilities == pytest.approx(shares(logs), abs=3e-6)
    assert chosen.stats.prompt_tokens == 1
    as_it_is = [slowly(engine, [120, 32], [engine.tokenize(value)])[0] for value in values]
    plain = lt.choose(engine, "x ", values, heal=False)
    assert plain.probabilities == pytest.approx(shares(as_it_is), rel=1e-4)
