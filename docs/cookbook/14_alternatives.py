"""Top alternatives of each token: how it was decided, with the likeliest candidates."""

import logitree
from logitree import engines
from logitree.engines.llama_cpp import bundled_model

engine = engines.open(bundled_model())
generation = logitree.generate(engine, "The capital of France is", max_tokens=6, seed=1, chat=False, trace=True)
for step in generation.trace:
    alternatives = {engine.vocabulary[token].decode(): round(p, 3) for token, p in step.candidates[:3]}
    print(repr(engine.vocabulary[step.token].decode()), alternatives)
