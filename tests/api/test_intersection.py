"""Catalogues intersected with other matchers, from Python: what a walk and a matcher keep, errors, threads.

`crates/logitree/tests/it/constraint/intersection.rs` compares them with feeding every item to the others.
"""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import logitree as lt

EOG, SIZE = 7, 10
TEXTS = [b"a", b"b", b"c", b"ab", b"bc", b"ca", b"abc"]
VOCABULARY = lt.Vocabulary.from_tokens([*TEXTS, b"</s>"], end_tokens=[EOG], special_ids=[EOG])


def test_all_that_a_tree_has_stays() -> None:
    rows = [[0, 1], [0, 1], [0, 2], [3], [3, 0]]
    weights = [[0.5, 0.25], [0.5, 0.25], [0.5, 1.0], [2.0], [2.0, -1.0]]
    tree = lt.Catalogue.from_codes(rows, items=[10, 11, 20, 30, 31], weights=weights)
    tree.add([[3, 1], [0, 1], [2]], items=[32, 12, 40], weights=[[2.0, 4.0], [0.5, 0.25], [8.0]])
    tree.remove([[0, 1]], items=[11])
    ends_in_b = lt.Grammar.regex(".*b").matcher(VOCABULARY)
    paths = tree.walk(end_token=EOG, intersect=ends_in_b, vocabulary=SIZE)
    assert len(paths) == 4
    assert paths.weighted
    assert paths.items(paths.find([0, 1]) or 0).tolist() == [10, 12]
    assert paths.items(paths.find([3]) or 0).tolist() == [30]
    assert paths.allowed(paths.find([3]) or 0).tolist() == [1, EOG]
    logits = np.zeros((1, SIZE), np.float32)
    assert paths.gather([paths.start], logits).scores.tolist() == [0.5, 2.0]
    assert paths.gather([paths.find([3])], logits).scores.tolist() == [4.0, 0.0]
    mask = lt.masks.to_ids(paths.mask([paths.start])[0])
    assert list(mask) == [0, 3]
    some = tree.walk(end_token=EOG, allowed=[12, 20], intersect=ends_in_b)
    assert (len(some), some.items(some.find([0, 1]) or 0).tolist()) == (1, [12])
    assert some.matcher(intersect=ends_in_b).forced_tokens() == [0, 1, EOG]
    assert (len(tree), len(tree.walk(end_token=EOG))) == (7, 7)


def test_what_is_left_may_need_no_end() -> None:
    tree = lt.Catalogue.from_codes([[0], [0, 1], [2, 1]])
    bare = lt.Vocabulary.from_tokens(TEXTS)
    ends_in_b = lt.Grammar.regex(".*b").matcher(VOCABULARY)
    assert list(tree.walk(intersect=ends_in_b).matcher().allowed()) == [0, 2]
    with pytest.raises(lt.ConstraintError, match="beginning of another"):
        tree.matcher(bare, intersect=lt.Grammar.regex(".*b").matcher(bare))
    with pytest.raises(lt.ConstraintError, match="beginning of another"):
        tree.walk(intersect=lt.Grammar.regex("ab?").matcher(VOCABULARY)).matcher()


def test_a_constraint_that_is_under_way_goes_on_from_there() -> None:
    other = lt.Grammar.regex("a(b|c)").matcher(VOCABULARY)
    other.accept(0)
    tree = lt.Catalogue.from_codes([[0], [1], [2], [1, 1]])
    lazy = tree.matcher(VOCABULARY, end_token=EOG, intersect=other)
    other.accept(1)
    assert list(lazy.allowed()) == [1, 2]
    lazy.accept(1)
    assert list(lazy.allowed()) == [EOG]
    lazy.reset()
    assert list(lazy.allowed()) == [1, 2]
    assert other.accepted == 2


def test_it_goes_wherever_matchers_go() -> None:
    tree = lt.Catalogue.from_codes([[0, 1], [0, 2], [1, 2]])
    other = lt.Grammar.regex("a.").matcher(VOCABULARY)
    lazy = tree.matcher(VOCABULARY, end_token=EOG, intersect=other)
    assert '1 token: "a"' in str(lazy.explain(1))
    matcher = lt.ReasoningBudget([[3]], [[4]], budget=4, then=lazy).matcher(VOCABULARY)
    matcher.accept_many([3, 0, 0, 4])
    assert list(matcher.allowed()) == [0]
    paths = tree.walk(end_token=EOG, intersect=lazy)
    assert [paths.items(paths.find([0, token]) or 0).tolist() for token in (1, 2)] == [[0], [1]]
    # Reasoning without a constraint after it is free text, which is complete everywhere.
    free = lt.ReasoningBudget([[3]], [[4]], budget=4).matcher(VOCABULARY)
    assert len(tree.walk(end_token=EOG, intersect=free)) == 3
    assert len(lt.Catalogue.from_codes([[0, 4], [0, 1]]).walk(end_token=EOG, intersect=free)) == 1


def test_others_are_of_one_vocabulary() -> None:
    def grammar(tokens: list[bytes], pattern: str) -> lt.Matcher:
        return lt.Grammar.regex(pattern).matcher(lt.Vocabulary.from_tokens(tokens, end_tokens=[2]))

    pair = [grammar([b"a", b"b", b"<e>"], "[ab]+"), grammar([b"b", b"a", b"<e>"], "a+")]
    tree = lt.Catalogue.from_codes([[0], [1]])
    for call in (tree.walk, tree.matcher):
        with pytest.raises(lt.ConstraintError, match="different vocabularies"):
            call(VOCABULARY, intersect=pair)
    assert tree.walk(intersect=pair[1]).allowed(tree.walk().start).tolist() == [1]


def test_fuel_is_for_intersections() -> None:
    tree = lt.Catalogue.from_codes([[59, 59], *([a, b] for a in range(60) for b in range(59))])
    wide = lt.Vocabulary.from_tokens([b"%d" % n for n in range(61)])
    hidden = lt.Catalogue.from_codes([[59, 59], *([a, 60] for a in range(59))]).matcher(wide)
    with pytest.raises(lt.LimitError, match=r"300 steps.*intersect the whole catalogue once"):
        tree.matcher(wide, intersect=hidden, fuel=300)
    assert len(tree.walk(intersect=hidden)) == 1
    with pytest.raises(lt.ConstraintError, match="fuel without intersect"):
        tree.matcher(wide, fuel=5)
    for fuel in (0, -1, 1 << 64, 2.5, True):
        with pytest.raises(lt.SamplingError, match="fuel"):
            tree.matcher(wide, intersect=tree.matcher(wide), fuel=fuel)  # type: ignore[arg-type]


def test_what_is_refused() -> None:
    tree = lt.Catalogue.from_codes([[0, 1], [2]])
    for wrong in (3, "ab", [VOCABULARY]):
        with pytest.raises(TypeError, match="matchers"):
            tree.walk(intersect=wrong)
    with pytest.raises(lt.ConstraintError, match="Grammar without a vocabulary"):
        tree.walk(intersect=lt.Grammar.regex("a"))
    with pytest.raises(lt.ConstraintError, match="no matcher"):
        tree.matcher(VOCABULARY, intersect=[])
    nothing = lt.Grammar.regex("b+").matcher(VOCABULARY)
    assert len(tree.walk(intersect=nothing)) == 0
    with pytest.raises(lt.ConstraintError, match="allowed"):
        tree.matcher(VOCABULARY, intersect=nothing)
    with pytest.raises(lt.ConstraintError, match="no item"):
        tree.walk(intersect=nothing).matcher()
    matcher = tree.matcher(VOCABULARY, intersect=lt.Grammar.regex("ab|c").matcher(VOCABULARY))
    with pytest.raises(lt.TokenError, match="token 1 is not allowed"):
        matcher.accept(1)
    assert matcher.accepted == 0


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_threads_run_and_interrupts_come_through() -> None:
    rows = np.random.default_rng(5).integers(0, 200, (400_000, 5))
    tree = lt.Catalogue.from_codes(rows)
    same = tree.matcher(lt.Vocabulary.from_tokens([b"%d" % n for n in range(200)]))
    began = time.perf_counter()
    sizes: list[int] = []
    thread = threading.Thread(target=lambda: sizes.append(len(tree.walk(intersect=same))))
    thread.start()
    turns = 0
    while thread.is_alive():
        time.sleep(0.001)
        turns += 1
    took = time.perf_counter() - began
    assert sizes == [len(tree)]
    assert turns > 10

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, took / 10)
        began = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            tree.walk(intersect=same)
        assert time.perf_counter() - began < took
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
