"""A stop string: it ends the output and is not part of it."""

import logitree
from logitree.engines.llama_cpp import bundled_model

generation = logitree.generate(bundled_model(), "Count from one to ten:", stop=[",", "\n"], temperature=0, chat=False)
print(repr(generation.text), generation.finish_reason)
