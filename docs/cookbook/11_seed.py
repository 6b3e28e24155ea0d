"""A seed reproduced: a generation without a seed draws one, which gives the same output again."""

import logitree
from logitree.engines.llama_cpp import bundled_model

first = logitree.generate(bundled_model(), "Tell me about the sea.", max_tokens=20)
again = logitree.generate(bundled_model(), "Tell me about the sea.", max_tokens=20, seed=first.stats.seed)
print(first.stats.seed, first.text == again.text, again.text)
