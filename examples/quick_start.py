"""Quick start: a seeded chain, a model's logits, a token, and its note in the history."""

import tiny

import logitree as lt

engine = tiny.engine(tiny.STORY)
session = engine.session()
vocabulary = engine.vocabulary

# Once for a completion: penalties, filters, temperature and generator are one thing with a state.
chain = lt.Chain.tsampler(
    seed=42, rng="xoroshiro128plus", temp=0.8, top_k=40, top_p=0.95, min_p=0.05, penalty_repeat=1.1
)

out: list[int] = []
logits = session.evaluate(engine.encode("The fox", chat=False))
for _ in range(24):
    before = logits.copy()
    token = chain.sample(logits)  # and accepts it
    assert (logits == before).all(), "the logits are read in place, never written"
    out.append(token)
    logits = session.evaluate([token])

print("The fox" + vocabulary.decode(out).decode(errors="replace"))
assert len(out) == chain.accepted == 24
