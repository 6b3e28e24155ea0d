"""``Chain.transformers`` and its samplers against transformers' own processors, in the order in which transformers
puts them: the same ids stay, with the same probabilities within 1e-6.

Which of equal logits goes at a cut is left open by torch's sort: there the logits that stay are compared, not the
ids. transformers sums in float32. Where that decides what stays, its own processors say otherwise on float64 scores,
or for parameters a millionth larger or smaller; then either answer is right, and such cases are counted. A top_h of 1
is left out: there rounding alone says whether the last one stays.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import logitree as lt

pytestmark = pytest.mark.peers

torch = pytest.importorskip("torch", reason="torch is not installed")
generation = pytest.importorskip("transformers.generation", reason="transformers is not installed")

NAMES = {
    "temp": "temperature",
    "typ_p": "typical_p",
    "penalty_repeat": "repetition_penalty",
    "no_repeat_ngram": "no_repeat_ngram_size",
}
"""Our keywords -> transformers', where they differ."""


class Model(generation.GenerationMixin):  # type: ignore[misc, name-defined]
    """As much of a model as the list of processors is made from."""

    config = SimpleNamespace(is_encoder_decoder=False)


def processors(params: dict[str, Any], keep: int) -> Any:
    """transformers' processors for our parameters."""
    given = {NAMES.get(name, name): value for name, value in params.items()}
    config = generation.GenerationConfig(do_sample=True, **({"top_k": 50} | given))
    if keep > 1:
        # Beams are what makes transformers keep more: one more than there are ends.
        config.num_beams = 2
        config._eos_token_tensor = [0] * (keep - 1)
    return Model()._get_logits_processor(config, input_ids_seq_length=1)


CUTS = ("top_h", "top_p", "min_p", "typ_p", "epsilon_cutoff", "eta_cutoff")
"""Parameters that sums or probabilities are compared with."""


def theirs(params: dict[str, Any], keep: int, history: list[int], logits: np.ndarray) -> Iterator[np.ndarray | None]:
    """transformers' scores, -inf where removed: its own answer, then those of other rounding. None where it fails."""
    ids = torch.tensor([history], dtype=torch.long)
    for kind, factor in ((np.float32, 1.0), (np.float64, 1.0), (np.float64, 1 + 1e-6), (np.float64, 1 - 1e-6)):
        nudged = {name: min(value * factor, 1.0) if name in CUTS else value for name, value in params.items()}
        try:
            scores = np.asarray(
                processors(nudged, keep)(ids, torch.from_numpy(logits.astype(kind))[None])[0], np.float64
            )
        except ValueError as error:
            # torch's Categorical refuses scores without a finite one.
            if "Expected parameter logits" not in str(error):
                raise
            yield None
            return
        yield None if np.isnan(scores).any() or scores.max() == -np.inf else scores


def shares(scores: np.ndarray) -> np.ndarray:
    e = np.exp(scores - scores.max())
    return np.asarray(e / e.sum())


def ours(
    params: dict[str, Any], keep: int, history: list[int], logits: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ids that stay, ascending, with their logits and probabilities."""
    chain = lt.Chain.transformers(seed=0, min_keep=keep, **params)
    for token in history:
        chain.accept(token)
    ids, left, p = chain.apply(logits)
    alive = left > -np.inf
    order = np.argsort(ids[alive])
    return ids[alive][order], left[alive][order], p[alive][order]


def agrees(params: dict[str, Any], keep: int, history: list[int], logits: np.ndarray) -> bool | None:
    """Whether both agree (False: only with other rounding); None if transformers leaves nothing."""
    ids, left, p = ours(params, keep, history, logits)
    seen = []
    for scores in theirs(params, keep, history, logits):
        if scores is None:
            return None
        stay = np.flatnonzero(scores > -np.inf)
        seen.append(stay)
        same = np.array_equal(stay, ids)
        if same or (len(stay) == len(ids) and np.allclose(np.sort(scores[stay]), np.sort(left), rtol=1e-6, atol=1e-9)):
            q = shares(scores)[stay]
            np.testing.assert_allclose(*((p, q) if same else (np.sort(p), np.sort(q))), rtol=0, atol=1e-6)
            return len(seen) == 1
    surplus, missing = np.setdiff1d(ids, seen[0]), np.setdiff1d(seen[0], ids)
    raise AssertionError(
        f"{params} keep {keep} history {history} of {len(logits)}: stays here {surplus} (logits {logits[surplus]}), "
        f"there {missing} (logits {logits[missing]}); {len(ids)} here"
    )


def random_logits(rng: np.random.Generator) -> np.ndarray:
    """Flat, gaussian, peaked, on a grid (ties), all equal; some with -inf, some with one finite logit only."""
    n = int(rng.choice([1, 2, 3, 7, 40, 150, 600, 2500]))
    shape = rng.integers(6)
    x = rng.normal(0, [0.1, 2, 5, 3, 3, 0][shape], n)
    if shape == 2:
        x[rng.integers(0, n, max(1, n // 50))] += 10
    if shape in (3, 4):
        x = np.round(x * [1, 4][shape - 3]) / [1, 4][shape - 3]
    x = x.astype(np.float32)
    if rng.random() < 0.2:
        x[rng.random(n) < 0.5] = -np.inf
    if rng.random() < 0.05 or x.max() == -np.inf:
        x[:] = -np.inf
        x[rng.integers(n)] = 1.5
    return x


CHOICES: dict[str, list[Any]] = {
    "temp": [0.5, 0.8, 1.3],
    "top_h": [0.05, 0.4, 0.8, 0.95],
    "top_k": [0, 1, 2, 5, 50, 3000],
    "top_p": [0.0, 0.1, 0.5, 0.75, 0.9, 0.95],
    "min_p": [0.0, 0.02, 0.1, 0.5, 1.0],
    "typ_p": [0.1, 0.5, 0.75, 0.9, 0.95],
    "epsilon_cutoff": [3e-4, 0.02, 0.25, 0.9],
    "eta_cutoff": [3e-4, 0.02, 0.25, 0.9],
    "penalty_repeat": [0.7, 1.2, 2.0],
    "no_repeat_ngram": [1, 2, 3, 4],
}


def random_history(pick: random.Random, n: int) -> list[int]:
    """Some tokens, often the same few, some outside the vocabulary."""
    of = pick.choice([min(n, 3), n, n + 5])
    return [pick.randrange(of) for _ in range(pick.choice([1, 2, 5, 40]))]


def run(seed: int, cases: int, names: list[str] | None) -> tuple[int, int]:
    """Compares so many random cases of these parameters (None: any of all); how many, and how many by rounding."""
    pick, rng = random.Random(seed), np.random.default_rng(seed)
    compared = rounded = 0
    while compared < cases:
        chosen = names or [name for name in CHOICES if pick.random() < 0.4]
        params = {"top_k": 0} | {name: pick.choice(CHOICES[name]) for name in chosen}
        logits = random_logits(rng)
        keep = pick.choice([1, 1, 1, 2, 3, 8])
        agreed = agrees(params, keep, random_history(pick, len(logits)), logits)
        compared += agreed is not None
        rounded += agreed is False
    return compared, rounded


@pytest.mark.parametrize("seed", range(4))
def test_whole_chains(seed: int) -> None:
    compared, rounded = run(seed, 800, None)
    assert compared == 800
    assert rounded <= 16, "rounding may decide rarely only"


@pytest.mark.parametrize("name", CHOICES)
def test_each_alone(name: str) -> None:
    compared, rounded = run(100, 400, [name])
    assert compared == 400
    assert rounded <= 8, "rounding may decide rarely only"


@pytest.mark.parametrize("params", [{}, {"top_k": 3}, {"top_p": 0.5}, {"typ_p": 0.5}, {"min_p": 1.0}, {"top_p": 0.0}])
@pytest.mark.parametrize("keep", [1, 2, 5])
def test_ties_with_exact_sums(params: dict[str, Any], keep: int) -> None:
    half = np.float32(np.log(2.0))
    for logits in (
        np.zeros(8, np.float32),
        np.array([half, 0, 0], np.float32),
        np.array([0, half, 0, half, 0], np.float32),
        np.array([-np.inf, 2, -np.inf], np.float32),
        np.array([1, 1, 0, 1, 1, 0], np.float32),
    ):
        assert agrees({"top_k": 0} | params, keep, [0], logits) is True


def test_defaults_are_theirs() -> None:
    logits = np.random.default_rng(1).normal(0, 3, 400).astype(np.float32)
    assert agrees({}, 1, [0], logits) is True
    assert len(ours({}, 1, [], logits)[0]) == 50
