"""Streaming to a terminal: pieces of text as they become certain."""

import logitree
from logitree.engines.llama_cpp import bundled_model

for piece in logitree.generate(bundled_model(), "Tell me about the sea.", max_tokens=30, seed=1).pieces():
    print(piece, end="", flush=True)
print()
