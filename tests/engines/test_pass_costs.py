"""What passes cost, and which proposals pay."""

from __future__ import annotations

import itertools

import pytest

from logitree.engines import PassCosts


def learned(first: float, further: float, logits: float) -> PassCosts:
    """Costs after passes of these times; one was not running for a while."""
    costs = PassCosts()
    for n in range(40):
        slow = 50.0 if n == 20 else 1.0
        costs.add(1, 1, first * slow)
        costs.add(3, 1, 1e9)  # too short a pass to tell
        costs.add(16, 1, first + 15 * further)
        costs.add(5, 5, first + 4 * further + logits)
    return costs


def test_nothing_is_held_back_while_costs_are_unknown() -> None:
    costs = PassCosts()
    assert costs.worth([0.1] * 7) == 7
    costs.add(1, 1, 0.01)
    assert costs.worth([0.1] * 7) == 7
    costs.add(20, 1, 0.02)
    assert costs.worth([0.01] * 7) == 0
    assert costs.worth([]) == 0


@pytest.mark.parametrize(("first", "further", "logits"), [(8e-3, 5e-3, 6e-3), (5e-3, 1e-3, 5e-3), (1e-2, 1e-5, 0.0)])
@pytest.mark.parametrize("before", [1, 4])
def test_the_number_of_proposals_is_the_one_with_most_tokens_a_second(
    first: float, further: float, logits: float, before: int
) -> None:
    costs = learned(first, further, logits)
    assert costs.first == pytest.approx(first, rel=0.02)
    assert costs.further == pytest.approx(further, rel=0.05, abs=1e-5)
    for rate, n in itertools.product([0.2, 0.5, 0.8, 0.95, 1.0], range(12)):
        speeds = [1 / (costs.first + costs.further * (before - 1))]
        speeds += [sum(rate**i for i in range(k + 1)) / costs.of(before + k) for k in range(1, n + 1)]
        worth = costs.worth([rate] * n, before)
        assert speeds[worth] == pytest.approx(max(speeds) if max(speeds) > 1.1 * speeds[0] else speeds[0])


def test_a_length_that_is_cheap_on_its_own_is_chosen() -> None:
    costs = PassCosts()
    costs.add(1, 1, 4e-3)
    costs.add(16, 1, 19e-3)
    for _ in range(30):
        for tokens, seconds in ((2, 8e-3), (4, 8.5e-3), (7, 19e-3), (8, 15e-3)):
            costs.add(tokens, tokens, seconds)
    assert costs.of(4) == pytest.approx(8.5e-3, rel=0.01)
    assert costs.of(3) == pytest.approx(8.25e-3, rel=0.01), "between its neighbours"
    assert costs.of(7) == pytest.approx(15e-3, rel=0.01), "no dearer than a longer one"
    assert costs.of(6) <= costs.of(7)
    assert costs.worth([0.7] * 5) == 3


def test_a_length_that_was_slow_once_is_tried_again() -> None:
    costs = PassCosts()
    costs.add(1, 1, 4e-3)
    costs.add(16, 1, 19e-3)
    for _ in range(60):
        costs.add(2, 2, 1.0)
        costs.add(3, 3, 1.0)
    assert costs.worth([0.9] * 2) == 0
    assert any(costs.worth([0.9] * 2) for _ in range(1000))


def test_a_length_that_was_not_measured_is_tried_where_it_may_pay() -> None:
    costs = PassCosts()
    costs.add(1, 1, 5e-3)
    costs.add(41, 1, 45e-3)
    costs.add(4, 4, 8e-3)
    costs.add(20, 20, 60e-3)
    assert costs.of(8) == pytest.approx(12e-3), "what further tokens take, not what lies between 4 and 20"
    assert costs.worth([0.99] * 11) == 11
    costs.add(12, 12, 31e-3)
    assert costs.of(12) == pytest.approx(31e-3)
    assert costs.worth([0.99] * 11) < 11


def test_a_prompts_tokens_are_evaluated_in_lengths_that_are_not_known() -> None:
    costs = PassCosts()
    assert costs.parts(35) == [35]
    assert costs.parts(36) == [8, 4, 8, 16]
    costs.add(80, 0, 80e-3)
    costs.add(8, 8, 12e-3)
    assert costs.several == {8: 12e-3}
    assert costs.parts(100) == [80, 4, 16]
    costs.add(4, 4, 8e-3)
    costs.add(16, 16, 17e-3)
    assert costs.parts(100) == [100]
