"""A custom sampler: a story without the letter e."""

import numpy as np

import logitree
from logitree import engines, samplers
from logitree.engines.llama_cpp import bundled_model

engine = engines.open(bundled_model())
without_e = np.array([b"e" not in token.lower() for token in engine.vocabulary])
lipogram = samplers.custom(lambda ids, logits: without_e[ids], "lipogram")
chain = logitree.Chain([lipogram, samplers.top_k(40), samplers.temp(0.8), samplers.dist(seed=1)])
print(logitree.generate(engine, "Tell me about a cat.", chain=chain, max_tokens=30))
