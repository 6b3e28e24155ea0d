"""Whether a cut that differs from llama.cpp's is one that its own f32 rounding, or equal logits, decide.

Each rule here is a sampler's definition in exact arithmetic (f64), and a bound on what f32 sums, exponentials and
logarithms may move: llama.cpp adds n terms one by one, so a sum of n terms is off by at most n * 2**-24 of it, and
exponentials and divisions by 2**-22. A set of survivors is right if the definition, its limit moved within the bound,
can give it; candidates of equal logits stand for one another. The file knows no chain and calls no sampler.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Set = npt.NDArray[np.bool_]
"""Which of the candidates survive."""

EPSILON = 2.0**-24


def sum_bound(n: int) -> float:
    """How far an f32 sum of ``n`` terms, of exponentials divided by another such sum, may be off, relatively."""
    return 2 * n * EPSILON + 2.0**-22


def softmax(x: Floats) -> Floats:
    """Exact probabilities."""
    with np.errstate(invalid="ignore"):
        e = np.exp(x - x.max())
        return np.asarray(e / e.sum())


def same_but_for_ties(x: Floats, ours: Set, theirs: Set) -> bool:
    """Whether the two sets have the same logits."""
    return bool(np.array_equal(np.sort(x[ours]), np.sort(x[theirs])))


def reaches(rank: Floats, slack: float, p: Floats, kept: Set, limit: float, min_keep: int) -> bool:
    """Whether ``kept`` are the first by ``rank`` (good to ``slack``) up to the one that brings the sum to ``limit``."""
    bound = sum_bound(len(p))
    out = ~kept
    worst = rank[kept].max()
    if out.any() and worst > rank[out].min() + slack:
        return False
    mass = p[kept].sum()
    last = p[kept & (rank >= worst - slack)].max()
    enough = mass >= limit - bound or not out.any()
    few = kept.sum() <= max(min_keep, 1) or mass - last <= limit + bound
    return bool(enough and few)


def top_p(x: Floats, ours: Set, theirs: Set, p: float, min_keep: int) -> bool:
    """The fewest best that reach p."""
    probability = softmax(x)
    return all(reaches(-x, 0.0, probability, kept, p, min_keep) for kept in (ours, theirs))


def typ_p(x: Floats, ours: Set, theirs: Set, p: float, min_keep: int) -> bool:
    """Those of surprisal nearest to the entropy, up to p; the distances are good to the entropy's rounding."""
    distance, slack = atypicality(x)
    return all(reaches(distance, slack, softmax(x), kept, p, min_keep) for kept in (ours, theirs))


def atypicality(x: Floats) -> tuple[Floats, float]:
    """How far each surprisal is from the entropy, and how far that may be off."""
    probability = softmax(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        surprisal = -np.log(probability)
        entropy = np.where(probability > 0, probability * surprisal, 0).sum()
    finite = surprisal[np.isfinite(surprisal)].max()
    return np.abs(surprisal - entropy), 4 * sum_bound(len(x)) * (1 + entropy) + 8 * EPSILON * finite


def min_p(x: Floats, ours: Set, theirs: Set, p: float, min_keep: int) -> bool:
    """Those at least p times as probable as the best."""
    threshold = x.max() + np.log(p)
    return bool((np.abs(x[ours ^ theirs] - threshold) <= 8 * EPSILON * max(1.0, np.abs(x.max()), -np.log(p))).all())


def top_n_sigma(x: Floats, ours: Set, theirs: Set, n: float) -> bool:
    """Those within n standard deviations of the best."""
    largest = np.abs(x).max()
    if largest**2 * len(x) > np.finfo(np.float32).max or x.var() * len(x) < 1e-30:
        return True  # llama.cpp's sum of squares is infinite, or has lost its digits.
    threshold = x.max() - n * x.std()
    bound = sum_bound(len(x)) * (1 + n) * largest
    return bool((np.abs(x[ours ^ theirs] - threshold) <= bound).all())


def xtc(x: Floats, ours: Set, theirs: Set, p: float, t: float, min_keep: int, seed: int) -> bool:
    """All but those above the threshold, the last of them staying."""
    probability = softmax(x)
    return bool((np.abs(probability - t) <= sum_bound(len(x)) * t).any())


def mirostat(
    x: Floats, ours: Set, theirs: Set, n_vocab: int, tau: float, eta: float, m: int, seed: int, mu: float
) -> bool:
    """The best k, which the best m tell; f32 is off by some units in the last place at each of the formula's powers."""
    p = np.sort(softmax(x))[::-1][:m]
    rank = np.arange(1, len(p))
    with np.errstate(all="ignore"):
        t, b = np.log((rank + 1) / rank), np.log(p[:-1] / p[1:])
        s = (t * b).sum() / (t * t).sum()
        k = (((s - 1) * 2.0**mu) / (1 - float(n_vocab) ** (1 - s))) ** (1 / s)
    slack = 1 + 1e-3 * k if np.isfinite(k) and abs(s - 1) > 1e-3 else len(x)
    return all(is_top(x, kept) and abs(kept.sum() - min(max(k, 1), len(x))) <= slack for kept in (ours, theirs))


def mirostat_v2(x: Floats, ours: Set, theirs: Set, tau: float, eta: float, seed: int, mu: float) -> bool:
    """Those of at most mu bits of surprisal."""
    surprisal = -np.log2(np.maximum(softmax(x), 1e-300))
    slack = 2 * sum_bound(len(x)) + 16 * EPSILON * (1 + abs(mu))
    return bool((np.abs(surprisal[ours ^ theirs] - mu) <= slack).all())


def infill(x: Floats, ours: Set, theirs: Set) -> bool:
    """Merges go by the order of the candidates, which equal logits leave open."""
    return len(np.unique(x)) < len(x)


def is_top(x: Floats, kept: Set) -> bool:
    """Whether none left out is better than one that is kept."""
    return bool(kept.all() or x[kept].min() >= x[~kept].max())


RULES: dict[str, Callable[..., bool]] = {
    "top_p": top_p,
    "typ_p": typ_p,
    "min_p": min_p,
    "top_n_sigma": top_n_sigma,
    "xtc": xtc,
    "infill": infill,
    "mirostat": mirostat,
    "mirostat_v2": mirostat_v2,
}


def reason(name: str, arguments: tuple[object, ...], x: Floats, ours: Set, theirs: Set) -> str:
    """Why a sampler left ``ours`` here and ``theirs`` in llama.cpp, of candidates above -inf; empty: no reason."""
    if same_but_for_ties(x, ours, theirs):
        return "equal logits"
    rule = RULES.get(name)
    some = name == "infill" or (ours.any() and theirs.any())
    if rule is not None and some and rule(x, ours, theirs, *arguments):
        return "within rounding"
    return ""


def order_reason(name: str, x: Floats, ours: npt.NDArray[np.int64], theirs: npt.NDArray[np.int64]) -> str:
    """Why typ_p left the survivors (positions in ``x``) in another order than llama.cpp's; empty: no reason."""
    if name != "typ_p":
        return ""
    distance, slack = atypicality(x)
    fit = all(
        (np.maximum.accumulate(distance[some])[:-1] <= distance[some][1:] + slack).all() for some in (ours, theirs)
    )
    return "distances that are equal within rounding" if fit else ""
