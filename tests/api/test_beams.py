"""Beam search without a model: equal to all items by brute force, to the naive search, and to what sampling must be."""

from __future__ import annotations

import itertools
import math
import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest

import logitree as lt
from logitree.beams import FAILED, reindex
from slow_beams import Entry, HashModel, brute, naive, walk_of

V = 12
END = 0


def catalogue(
    seed: int, items: int = 12, end: int | None = None, weighted: bool = False
) -> tuple[lt.catalogue.ItemWalk, list[Any]]:
    """A random tree: items of 1 to 4 of six tokens, one the beginning of another at times."""
    generator = np.random.default_rng(seed)
    drawn = {tuple(int(t) for t in generator.integers(1, 7, generator.integers(1, 5))) for _ in range(items)}
    weights = {item[: i + 1]: float(generator.normal()) for item in sorted(drawn) for i in range(len(item))}
    return walk_of(sorted(drawn), V, end, weights=weights if weighted else None), sorted(drawn)


def same(got: list[lt.beams.Hypothesis], expected: list[Entry], returned: int | None = None) -> None:
    """The best of the same sequences in the same order, with the same scores; of equals any may come first.

    `expected`: all of them, the best first; `returned`: how many were asked for, None: all.
    """
    scores = {tokens: (score, log_probability) for score, log_probability, tokens in expected}
    expected = expected[:returned]
    assert len({h.tokens for h in got}) == len(got) == len(expected)
    for h, (score, _, _) in zip(got, expected, strict=True):
        assert (h.score, h.log_probability) == pytest.approx(scores[h.tokens], abs=1e-6)
        assert h.score == pytest.approx(score, abs=1e-6)
        assert sum(h.token_scores) == pytest.approx(h.log_probability, abs=1e-9)
        assert len(h.token_scores) == len(h.tokens)


@pytest.mark.parametrize("normalize", ["vocabulary", "allowed", "none"])
@pytest.mark.parametrize("power", [0.0, 1.0, -0.7])
@pytest.mark.parametrize(("end", "weighted"), [(None, False), (END, False), (None, True), (END, True)])
def test_with_enough_beams_it_is_exact(normalize: Any, power: float, end: int | None, weighted: bool) -> None:
    for seed in range(12):
        paths, items = catalogue(seed, end=end, weighted=weighted)
        model = HashModel(V)
        options: dict[str, Any] = {"normalize": normalize, "length_penalty": power}
        for returned in (1, 3, len(items)):
            (got,) = lt.beam_search(model, [7, seed], paths, width=len(items), returned=returned, **options)
            same(got, brute(model, [7, seed], paths, items, normalize, power), returned)


def test_the_temperature_divides_the_logits() -> None:
    paths, items = catalogue(3, end=END)
    model = HashModel(V)
    (got,) = lt.beam_search(model, [7], paths, width=len(items), temperature=2.5)
    same(got, brute(model, [7], paths, items, temperature=2.5))


@pytest.mark.parametrize("normalize", ["vocabulary", "allowed", "none"])
@pytest.mark.parametrize("power", [0.0, 0.8, -0.5])
@pytest.mark.parametrize("end", [None, END])
def test_narrow_searches_are_the_naive_one(normalize: Any, power: float, end: int | None) -> None:
    for seed in range(25):
        paths, _ = catalogue(seed, items=30, end=end, weighted=bool(seed % 2))
        model = HashModel(V)
        for width, returned, most in ((1, 1, 99), (2, 2, 99), (3, 5, 3), (5, 2, 99), (2, 9, 99)):
            (got,) = lt.beam_search(
                model,
                [seed],
                paths,
                width=width,
                returned=returned,
                max_tokens=most,
                normalize=normalize,
                length_penalty=power,
            )
            same(got, naive(model, [seed], paths, lambda _, w=width: w, 99, normalize, power, most), returned)


def test_more_may_be_returned_than_there_are_beams() -> None:
    paths = walk_of(itertools.product((1, 2), range(1, 7)), V)
    for normalize, returned in itertools.product(("vocabulary", "none"), (1, 3, 6, 20)):
        model = HashModel(V)
        (got,) = lt.beam_search(model, [5], paths, width=1, returned=returned, normalize=normalize)
        same(got, naive(model, [5], paths, lambda _: 1, 99, normalize), returned)
        assert len(got) == min(returned, 6)


def test_widths_may_change_from_step_to_step() -> None:
    widths = [3, 5, 2]
    for seed in range(20):
        items = np.random.default_rng(seed).integers(1, 7, (80, 4))
        paths = walk_of({tuple(item) for item in items.tolist()}, V, END)
        model = HashModel(V)
        seen: list[lt.beams.BeamStep] = []
        (got,) = lt.beam_search(model, [seed], paths, width=widths, on_step=seen.append)
        same(got, naive(model, [seed], paths, lambda step: widths[min(step, 2)], 99), 2)
        (again,) = lt.beam_search(
            model, [seed], paths, width=lambda step: widths[min(step, 2)], returned=2, max_tokens=9
        )
        assert again == got
        assert [len(s.tokens) for s in seen[:3]] == [3, 5, 2]
        assert [s.step for s in seen] == list(range(len(seen)))
        for before, after in itertools.pairwise(seen):
            assert np.array_equal(paths.advance(before.states[after.parents], after.tokens), after.states)


def test_reindex_is_checked_before_anything_moves() -> None:
    state = np.array([5])
    assert reindex([0, 0, 0], 1).tolist() == [0, 0, 0]
    state = np.array([5, 6, 7])
    assert state[reindex([2, 0, 1], 3)].tolist() == [7, 5, 6]
    state = state[reindex([0, 1, 2, 0, 1], 3)]
    assert state[reindex(np.array([4, 3], np.int32), 5)].tolist() == [6, 5]
    assert reindex([], 3).dtype == np.int64
    for wrong, width, says in (([0, 3], 3, "row 1 is 3"), ([-1], 3, "row 0 is -1"), ([0], 0, "there are 0 rows")):
        with pytest.raises(lt.StateError, match=says):
            reindex(wrong, width)
    with pytest.raises(lt.StateError, match="float64"):
        reindex([0.5], 3)
    with pytest.raises(lt.StateError, match="2-dimensional"):
        reindex([[0]], 3)


def test_fewer_paths_than_beams_leave_no_padding() -> None:
    paths = walk_of([(1, 2), (3,)], V, END)
    seen: list[lt.beams.BeamStep] = []
    (got,) = lt.beam_search(HashModel(V), [9], paths, width=50, on_step=seen.append)
    assert sorted(h.tokens for h in got) == [(1, 2, END), (3, END)]
    assert [len(s.tokens) for s in seen] == [2, 1, 0]
    assert lt.beam_search(HashModel(V), [9], walk_of([], V, END), width=3) == [[]]


def test_items_are_told_with_all_their_ids() -> None:
    paths = walk_of([(1, 2), (1, 2), (1,), (4,)], V, ids=[70, 2**63, 5, 6])
    (got,) = lt.beam_search(HashModel(V), [9], paths, width=4)
    assert {h.tokens: h.items for h in got} == {(1, 2): (70, 2**63), (1,): (5,), (4,): (6,)}


def test_prompts_are_searched_together_as_they_are_alone() -> None:
    paths, _ = catalogue(4, items=40, end=END)
    prompts = [[1, 2, 3], [4], [1, 2, 3], [5, 6]]
    for rows in (None, 3, 7):
        model = HashModel(V, rows=rows)
        together = lt.beam_search(model, prompts, paths, width=3)
        assert together == [lt.beam_search(HashModel(V), [prompt], paths, width=3)[0] for prompt in prompts]
        assert len(model.sessions) == {None: 1, 3: 4, 7: 2}[rows]
        assert all(session.closed for session in model.sessions)
    assert together[0] == together[2] != together[1]
    text = lt.beam_search(HashModel(V), "ab", paths, width=3)
    assert text == lt.beam_search(HashModel(V), [97, 98], paths, width=3)
    chat = [{"role": "user", "content": "x"}]
    assert len(lt.beam_search(HashModel(V), chat, paths)) == 1
    assert len(lt.beam_search(HashModel(V), ["ab", [3], np.array([4]), chat], paths)) == 4


def test_an_impossible_token_is_never_taken() -> None:
    def ban(tokens: tuple[int, ...], logits: np.ndarray) -> None:
        logits[3] = -math.inf

    def nothing(tokens: tuple[int, ...], logits: np.ndarray) -> None:
        logits[:] = -math.inf

    for seed, normalize in itertools.product(range(8), ("vocabulary", "allowed", "none")):
        paths, items = catalogue(seed, end=END)
        model = HashModel(V, ban)
        (got,) = lt.beam_search(model, [seed], paths, width=len(items), normalize=normalize)  # type: ignore[arg-type]
        same(got, brute(model, [seed], paths, items, normalize))
        assert len(got) == sum(3 not in item for item in items)
        (sampled,) = lt.beam_search(model, [seed], paths, width=len(items), sample=True, seed=seed)
        assert {h.tokens for h in sampled} == {h.tokens for h in got}
        assert lt.beam_search(HashModel(V, nothing), [1], paths, normalize=normalize) == [[]]  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{}, {"sample": True}, {"groups": 2, "diversity": 1.0}])
@pytest.mark.parametrize("normalize", ["vocabulary", "allowed", "none"])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_logits_that_are_no_numbers_are_an_error(options: dict[str, Any], normalize: Any, bad: float) -> None:
    def spoil(tokens: tuple[int, ...], logits: np.ndarray) -> None:
        logits[3] = bad

    model = HashModel(V, spoil)
    paths = walk_of([(3, 1), (4, 1)], V)
    with pytest.raises(lt.LogitsError):
        lt.beam_search(model, [1], paths, width=2, normalize=normalize, **options)
    assert model.sessions[0].closed


class Losing:
    """A tree of one's own: a walk in which one token leads to the error state."""

    def __init__(self, walk: lt.catalogue.ItemWalk, lost: int) -> None:
        self.start, self.end, self.vocabulary_size = walk.start, walk.end, walk.vocabulary_size
        self.advance, self.items, self.is_item, self.may_continue = (
            walk.advance,
            walk.items,
            walk.is_item,
            walk.may_continue,
        )
        self.walk, self.lost, self.weighted = walk, lost, True

    def gather(self, *given: Any) -> Any:
        return self.found(self.walk.gather(*given))

    def top(self, *given: Any, groups: Any = None) -> Any:
        return self.found(self.walk.top(*given, groups=groups))

    def found(self, ways: lt.beams.Candidates) -> lt.beams.Candidates:
        ways.states[ways.tokens == self.lost] = FAILED
        return ways


def test_the_error_state_is_no_item() -> None:
    paths = Losing(walk_of([(1, 6), (2, 6), (3, 7), (4, 6), (5, 1)], V, END), lost=5)
    (got,) = lt.beam_search(HashModel(V), [1], paths, width=9)
    assert sorted(h.tokens for h in got) == [(1, 6, END), (2, 6, END), (3, 7, END), (4, 6, END)]
    (sampled,) = lt.beam_search(HashModel(V), [1], paths, width=9, sample=True)
    assert len(sampled) == 4


def test_it_stops_when_nothing_can_get_better() -> None:
    def early(tokens: tuple[int, ...], logits: np.ndarray) -> None:
        logits[:] = 0.0
        logits[END] = 20.0

    deep = [tuple([1] * n) for n in range(1, 40)]
    model = HashModel(V, early)
    paths = walk_of(deep, V, END)
    (got,) = lt.beam_search(model, [1], paths, width=2)
    assert [len(h.tokens) for h in got] == [2, 3]
    assert model.sessions[0].steps < 5
    same(got, naive(model, [1], paths, lambda _: 2, 99), 2)
    lt.beam_search(model, [1], paths, width=2, normalize="none")
    assert model.sessions[1].steps == 39
    assert lt.beam_search(model, [1], walk_of(deep, V, END, weights={(1,): 0.0}), width=2) == [got]
    assert model.sessions[2].steps == 39


@pytest.mark.parametrize("end", [None, END])
def test_groups_are_the_naive_ones(end: int | None) -> None:
    for seed, (width, groups, diversity) in itertools.product(range(15), ((2, 2, 0.5), (6, 3, 2.0), (6, 2, 50.0))):
        paths, _ = catalogue(seed, items=40, end=end, weighted=bool(seed % 2))
        model = HashModel(V)
        (got,) = lt.beam_search(model, [seed], paths, width=width, groups=groups, diversity=diversity)
        expected = naive(model, [seed], paths, lambda _, w=width: w, width, groups=groups, diversity=diversity)
        same(got, expected)
        assert lt.beam_search(model, [[1], [seed]], paths, width=width, groups=groups, diversity=diversity)[1] == got


def test_groups_begin_differently() -> None:
    paths = walk_of(itertools.product(range(1, 7), repeat=3), V)
    alone, apart = 0, 0
    for seed in range(20):
        (plain,) = lt.beam_search(HashModel(V), [seed], paths, width=4)
        (diverse,) = lt.beam_search(HashModel(V), [seed], paths, width=4, groups=4, diversity=100.0)
        alone += len({h.tokens[0] for h in plain})
        apart += len({h.tokens[0] for h in diverse})
        assert max(h.score for h in diverse) <= plain[0].score + 1e-9
    assert apart == 20 * 4 > alone


def test_samples_come_as_drawn_one_after_another_without_replacement() -> None:
    items = [(1, 2), (1,), (3, 4, 5), (3, 4, 6)]
    paths = walk_of(items, V, END)
    model = HashModel(V)
    p = {tokens: math.exp(log_p) for _, log_p, tokens in brute(model, [8], paths, items, "allowed", temperature=3.0)}
    assert sum(p.values()) == pytest.approx(1.0, abs=1e-9)
    draws = 6000
    got = lt.beam_search(model, [[8]] * draws, paths, width=2, sample=True, seed=3, temperature=3.0)
    pairs = Counter((a.tokens, b.tokens) for a, b in got)
    chi = 0.0
    for first, second in itertools.permutations(p, 2):
        expected = draws * p[first] * p[second] / (1.0 - p[first])
        assert expected > 5.0
        chi += (pairs[first, second] - expected) ** 2 / expected
    # The chi-squared distribution with 11 degrees of freedom passes 31.3 once in a thousand.
    assert chi < 31.3
    assert sum(pairs.values()) == draws
    assert all(a.perturbed > b.perturbed for a, b in got)  # type: ignore[operator]
    for a, _ in got[:50]:
        assert a.log_probability == pytest.approx(math.log(p[a.tokens]), abs=1e-6)


def test_one_sample_is_a_draw_and_all_samples_are_all_items() -> None:
    paths, items = catalogue(5, end=END)
    model = HashModel(V)
    p = [(tokens, math.exp(log_p)) for _, log_p, tokens in brute(model, [8], paths, items, "allowed", temperature=3.0)]
    draws = 3000
    got = Counter(
        h.tokens for (h,) in lt.beam_search(model, [[8]] * draws, paths, width=1, sample=True, seed=1, temperature=3.0)
    )
    chi = sum((got[tokens] - draws * q) ** 2 / (draws * q) for tokens, q in p)
    # 11 degrees of freedom at most.
    assert chi < 31.3
    (every,) = lt.beam_search(model, [8], paths, width=len(items), sample=True, seed=1)
    assert {h.tokens for h in every} == {tokens for tokens, _ in p}
    assert lt.beam_search(model, [8], paths, width=9, sample=True, seed=1)[0] == every[:9] or len(every) <= 9


def test_the_same_seed_draws_the_same() -> None:
    paths, _ = catalogue(6, items=30, end=END)
    first, second, third = (
        lt.beam_search(HashModel(V), [[8], [9]], paths, width=4, sample=True, seed=seed) for seed in (1, 1, 2)
    )
    assert first == second != third
    assert len({h.tokens for h in first[0]}) == 4


def test_a_sample_needs_a_probability_for_the_end() -> None:
    paths = walk_of([(1,), (1, 2)], V)
    with pytest.raises(lt.ConstraintError, match="an item is the beginning of another"):
        lt.beam_search(HashModel(V), [8], paths, width=2, sample=True)
    paths = walk_of([(1, 3), (1, 2)], V)
    assert len(lt.beam_search(HashModel(V), [8], paths, width=2, sample=True)[0]) == 2


def test_it_can_be_cancelled_and_limited() -> None:
    paths, _ = catalogue(7, items=40, end=END)
    stop = threading.Event()
    model = HashModel(V)

    def after_two(step: lt.beams.BeamStep) -> None:
        if step.step == 2:
            stop.set()

    (got,) = lt.beam_search(model, [1], paths, width=5, on_step=after_two, cancel=stop)
    assert model.sessions[0].steps == 3
    assert all(len(h.tokens) <= 3 for h in got)
    assert lt.beam_search(model, [1], paths, width=5, cancel=lambda: True) == [[]]
    (short,) = lt.beam_search(model, [1], paths, width=50, max_tokens=2)
    assert short
    assert {len(h.tokens) for h in short} == {2}
    assert model.sessions[2].steps == 1

    def fail(step: lt.beams.BeamStep) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lt.beam_search(model, [1], paths, on_step=fail)
    assert model.sessions[-1].closed


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"width": 0}, "width is 0 (at step 0)"),
        ({"width": 2.0}, "width is 2.0"),
        ({"width": []}, "width is []"),
        ({"width": [2, 0]}, "width is 0 (at step 1)"),
        ({"width": lambda step: 3}, "`returned` is not given"),
        ({"width": lambda step: -step, "returned": 1}, "width is 0"),
        ({"returned": 0}, "returned is 0"),
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"length_penalty": math.nan}, "length_penalty is nan"),
        ({"length_penalty": 17}, "use -16 to 16"),
        ({"normalize": "all"}, "normalize is 'all'"),
        ({"temperature": 0.0}, "temperature is 0.0"),
        ({"temperature": "hot"}, "temperature is 'hot'"),
        ({"groups": 2}, "2 groups with a diversity of 0.0"),
        ({"diversity": 1.0}, "1 groups with a diversity of 1.0"),
        ({"diversity": -1.0}, "diversity is -1.0"),
        ({"width": 5, "groups": 2, "diversity": 1.0}, "5 beams cannot be 2 equal groups"),
        ({"seed": 3}, "a seed without sampling"),
        ({"sample": True, "seed": -2}, "seed is -2"),
        ({"sample": True, "width": 2, "returned": 3}, "2 beams cannot draw 3 items"),
        ({"sample": True, "width": 4, "groups": 2, "diversity": 1.0}, "sampling in groups"),
    ],
)
def test_options_that_mean_nothing(options: dict[str, Any], says: str) -> None:
    model = HashModel(V)
    with pytest.raises(lt.SamplingError) as caught:
        lt.beam_search(model, [1], catalogue(0)[0], **options)
    assert says in str(caught.value)


def test_prompts_that_are_none() -> None:
    for prompts in ([], "", [[]], [[1], []]):
        with pytest.raises(lt.EngineError, match="prompt"):
            lt.beam_search(HashModel(V), prompts, catalogue(0)[0])
