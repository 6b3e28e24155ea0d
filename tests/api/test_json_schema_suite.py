"""The JSON-Schema-Test-Suite: no verdict is wrong, and what was right once stays right (see json_schema_suite.py)."""

from __future__ import annotations

import pytest

import json_schema_suite as ratchet
from data_files import data_file
from logitree_bench._data import TEST_SUITE, Suite, read_test_suite

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def suite() -> Suite:
    return read_test_suite(data_file(TEST_SUITE), ratchet.DRAFTS)


@pytest.fixture(scope="module")
def outcomes(suite: Suite) -> dict[tuple[str, str], ratchet.Outcome]:
    return {(draft, kind): ratchet.run(suite, draft, kind) for draft in ratchet.DRAFTS for kind in ratchet.KINDS}


@pytest.mark.parametrize("kind", ratchet.KINDS)
@pytest.mark.parametrize("draft", ratchet.DRAFTS)
def test_the_ratchet_holds(outcomes: dict[tuple[str, str], ratchet.Outcome], draft: str, kind: str) -> None:
    before = ratchet.read_ratchet()
    outcome = outcomes[draft, kind]
    accepted = [str(w) for w in outcome.wrong if not w.valid]
    assert not accepted, "invalid instances accepted:\n" + "\n".join(accepted)
    refused = [str(w) for w in outcome.wrong if w.valid and not any(ratchet.known(w, e) for e in before["known"])]
    assert not refused, "valid instances refused:\n" + "\n".join(refused)
    worse = list(ratchet.fallen(outcome, before["count"][draft][kind]))
    assert not worse, "below the ratchet: " + "; ".join(worse)


def test_every_known_case_is_still_refused(outcomes: dict[tuple[str, str], ratchet.Outcome]) -> None:
    wrong = [w for outcome in outcomes.values() for w in outcome.wrong]
    for entry in ratchet.read_ratchet()["known"]:
        for draft in entry["drafts"]:
            found = [w for w in wrong if w.group.draft == draft and ratchet.known(w, entry)]
            assert found, f"draft {draft} has no wrong case that {entry} names: take it out"
            assert entry["reason"]


def test_the_suite_is_whole(suite: Suite) -> None:
    sizes = {(draft, kind): 0 for draft in ratchet.DRAFTS for kind in ratchet.KINDS}
    for group in suite.groups:
        sizes[group.draft, group.kind] += len(group.tests)
    assert sizes["2020-12", "required"] == 1299
    assert sizes["4", "format"] == 219
    assert min(sizes.values()) >= 100
    assert suite.documents["http://localhost:1234/integer.json"] == {"type": "integer"}
