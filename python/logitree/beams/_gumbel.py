"""Sampling without replacement in a beam search: scores that are perturbed so that the best are the drawn.

Formulas: Kool, van Hoof, Welling, "Stochastic Beams and Where to Find Them", ICML 2019 (arXiv 1903.06059), section 4
and appendix B.3 for the stable form.
"""

from __future__ import annotations

import numpy as np

from ._walk import Floats, Ints


def perturb(generator: np.random.Generator, rows: Ints, log_p: Floats, parents: Floats) -> Floats:
    """Gumbel noise on log-probabilities, such that the best child of each row has exactly its parent's value.

    Args:
        generator: where the noise comes from; one number is drawn a child.
        rows: int64 [N], not decreasing: each child's row.
        log_p: float64 [N], each child's log-probability in nats, of the whole path to it; finite.
        parents: float64 [R], the perturbed log-probability of each row.

    Returns:
        float64 [N], the children's perturbed log-probabilities: Gumbel(log_p), given that their maximum is
        `parents[row]`.
    """
    if not rows.size:
        return np.zeros(0)
    noisy = log_p + generator.gumbel(size=log_p.size)
    begins = np.flatnonzero(np.diff(rows, prepend=-1))
    most = np.repeat(np.maximum.reduceat(noisy, begins), np.diff(begins, append=rows.size))
    goal = parents[rows]
    below = goal - noisy + _log_1_minus_exp(noisy - most)
    moved: Floats = goal - np.maximum(below, 0.0) - np.log1p(np.exp(-np.abs(below)))
    return moved


def _log_1_minus_exp(x: Floats) -> Floats:
    """log(1 - exp(x)) for x <= 0, exact at both ends (Maechler 2012); -inf at 0."""
    with np.errstate(divide="ignore"):
        near: Floats = np.log(-np.expm1(x))
        return np.where(x > -0.6931471805599453, near, np.log1p(-np.exp(np.minimum(x, -0.6931471805599453))))
