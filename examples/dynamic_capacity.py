"""Parameters that change between tokens: the buffers grow by themselves, and a step does not wait for it."""

import tiny

import logitree as lt

engine = tiny.engine(tiny.STORY)
session = engine.session()
logits = session.evaluate(engine.encode("The", chat=False))

# llama.cpp's chain has every filter in it; one that is switched off costs nothing until it is switched on.
chain = lt.Chain.llama_cpp(seed=5, top_k=40, top_p=0.99, min_p=0.0, temp=0.8)
steps = [
    {"top_k": 40, "temp": 0.8},  # focused
    {"top_k": 320, "temp": 1.2},  # uncertainty: widen. tsampler grows its workspace to 512 here
    {"top_k": 40, "temp": 0.6, "typ_p": 0.9},  # locally typical. Its entropy is of all that top_k left
]
left = []
for params in steps:
    chain.set(**params)
    ids, _, _ = chain.apply(logits)
    token = chain.pick()
    chain.accept(token)
    left.append(len(ids))
    print(f"{params}: {len(ids)} candidates left, picked {engine.vocabulary[token]!r}")
    assert all(abs((chain.get(name) or 0.0) - value) < 1e-6 for name, value in params.items())
assert left[1] >= left[0], "widened"

# What tsampler calls requiredKcap, for the sake of comparison: how many candidates a filter may look at there.
# Here every filter looks at all that is allowed, however many those are.
everything = lt.Chain([lt.samplers.top_k(0)])
ids, _, _ = everything.apply(logits)
assert len(ids) == len(logits)
