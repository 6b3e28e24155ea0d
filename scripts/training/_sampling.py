"""Every sampler, in fast mode and in parity mode, over logits of several shapes and sizes; masks; batches."""

import _texts
import numpy as np

import logitree as lt
from logitree import samplers as s

DIST = s.dist(seed=1)
LLAMA_CPP = (
    [s.greedy()],
    [s.penalties(64, 1.1), s.top_k(40), s.top_p(0.95), s.min_p(0.05), s.temp(0.8), DIST],
    [s.min_p(0.05), s.temp(0.8), DIST],
    [s.top_p(0.95), s.temp(0.8), DIST],
    [s.top_k(100), DIST],
    [s.temp(0.8), DIST],
    [DIST],
    [s.typ_p(0.95), DIST],
    [s.top_n_sigma(1.0), s.temp(0.8), DIST],
    [s.xtc(1.0, 0.1), DIST],
    [s.temp_ext(0.8, 0.5), DIST],
    [s.dry(0.8, allowed_length=2), s.top_k(40), DIST],
    [s.mirostat(seed=1)],
    [s.mirostat_v2(seed=1)],
    [s.min_p(0.05), s.adaptive_p(0.5)],
)
OTHERS = (
    [s.logit_bias({5: 1.0}), s.no_repeat_ngram(3), s.hf_top_k(50), s.hf_top_p(0.9), DIST],
    [s.hf_typ_p(0.9), s.epsilon_cutoff(3e-4), DIST],
    [s.eta_cutoff(3e-4), DIST],
    [s.hf_top_h(0.4), DIST],
    [s.top_h(0.4), DIST],
    [s.p_less(), DIST],
    [s.min_k(3.0), DIST],
    [s.edt(1.0, 0.8), DIST],
)
SIZES = (32_000, 128_256)
DRAWS = 3
REPEATS = 20
"""The mask of all tokens takes less time than the others."""


def run(model: _texts.Model, *, quick: bool) -> str:
    """Draw with each chain, over all tokens, under masks and in batches."""
    rng = np.random.default_rng(3)
    drawn = 0
    for size in (len(model.vocabulary),) if quick else SIZES:
        shapes = [rng.normal(0, spread, size).astype(np.float32) for spread in (1, 3)]
        shapes[1][rng.choice(size, 40, replace=False)] += 14
        masks = [_mask(rng, size, share) for share in (1e-4, 0.01, 0.5, 0.99, 0.9999)]
        chains = [lt.Chain(samplers) for samplers in (*LLAMA_CPP, *OTHERS)]
        for chain in (*chains, *(lt.Chain(samplers).parity() for samplers in LLAMA_CPP)):
            for logits in shapes:
                for mask in (None, *masks):
                    drawn += _draw(chain, logits, mask)
        rows = np.stack([*shapes, *shapes])
        chain = lt.Chain(LLAMA_CPP[1])
        chain.sample_batch(rows, None, chain.sequences(4))
        every = _mask(rng, size, 1.0)
        for dtype in (np.float32, np.float16):
            for mask in (*masks, *[every] * REPEATS):
                lt.masks.apply(shapes[0].astype(dtype), mask)
    return f"{drawn:,} draws"


def _mask(rng: np.random.Generator, size: int, share: float) -> np.ndarray:
    return lt.masks.from_ids(size, [0, *np.flatnonzero(rng.random(size) < share)])


def _draw(chain: lt.Chain, logits: np.ndarray, mask: np.ndarray | None) -> int:
    for _ in range(DRAWS):
        chain.accept(chain.draw(logits, mask))
    return DRAWS
