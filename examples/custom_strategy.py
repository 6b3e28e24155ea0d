"""Custom strategies: a chain in one's own order, or filter after filter by hand, with the draw in the hand too."""

import numpy as np
import tiny

import logitree as lt

engine = tiny.engine(tiny.STORY)
logits = engine.session().evaluate(engine.encode("The", chat=False))

# Aggressive filters for concise answers, in this order; the temperature last.
concise = [lt.samplers.top_k(20), lt.samplers.min_p(0.1), lt.samplers.top_p(0.8), lt.samplers.temp(0.7)]
chain = lt.Chain([lt.samplers.penalties(64, repeat=1.1), *concise, lt.samplers.dist(seed=1)])
print(chain)
print("sampled:", repr(engine.vocabulary[chain.draw(logits)].decode(errors="replace")))

# What each filter does with these logits.
for effect in chain.explain(logits):
    print(effect)
    assert effect.after <= effect.before, "each filter only narrows"

# The same by hand: a chain of one filter is a filter. What it leaves is a row of logits for the next one.
row, ids = logits, np.arange(len(logits), dtype=np.uint32)
for filter in concise:
    kept, row, p = lt.Chain([filter]).apply(np.ascontiguousarray(row))
    ids = ids[kept]
    print(f"{filter!r:12} leaves {len(ids)}")
whole, _, together = lt.Chain(concise).apply(logits)
assert sorted(ids) == sorted(whole) and np.allclose(np.sort(p), np.sort(together), atol=1e-6)

# Drawing by hand: the first candidate whose cumulative share reaches the number. `dist` does just that.
random = lt.samplers.Random(1, rng="mt19937")
by_hand = whole[np.searchsorted(np.cumsum(together), random.uniform() * together.sum())]
assert by_hand == lt.Chain([*concise, lt.samplers.dist(seed=1)]).draw(logits)
print("drawn by hand:", repr(engine.vocabulary[int(by_hand)].decode(errors="replace")))
