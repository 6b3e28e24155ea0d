"""Catalogues: building, opening, beam steps, matchers, changes while they are read."""

import _texts
import numpy as np

import logitree as lt

SHAPES = ((200_000, 2_048, 6), (200_000, 8_192, 4))
BEAMS = 140
STEPS = 40


def run(model: _texts.Model, *, quick: bool) -> str:
    """Search items by beams, and generate some under a matcher."""
    rng = np.random.default_rng(4)
    steps = 0
    for shape in SHAPES:
        items, codes, levels = (2_000, *shape[1:]) if quick else shape
        rows = rng.integers(0, codes, (items, levels), dtype=np.uint32)
        catalogue = lt.Catalogue.from_bytes(lt.Catalogue.from_codes(rows).to_bytes())
        logits = rng.normal(0, 1, (BEAMS, codes)).astype(np.float32)
        for n in range(2 if quick else STEPS):
            walk = catalogue.walk()
            first = walk.top([walk.start], logits[:1], None, BEAMS)
            states = first.states
            for _ in range(levels - 1):
                step = walk.top(states, logits[: len(states)], None, BEAMS)
                states = step.states
                steps += 1
            if n % 10 == 0:
                catalogue.add(rng.integers(0, codes, (20, levels), dtype=np.uint32))
                catalogue.remove(rows[20 * n : 20 * n + 10])
        matcher = catalogue.matcher(model.vocabulary)
        for row in rows[-200:]:
            fork = matcher.fork()
            for token in row:
                fork.allowed().mask()
                fork.accept(int(token))
    return f"{steps:,} beam steps"
