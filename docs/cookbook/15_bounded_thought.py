"""A bounded thought: at most 24 tokens of reasoning, then one of two answers."""

import logitree
from logitree.engines.llama_cpp import bundled_model

constraint = logitree.ReasoningBudget("<think>", "</think>", budget=24) + ["yes", "no"]
generation = logitree.generate(bundled_model(), "Is fire hot? <think>", constraint, seed=1, chat=False)
print(generation.text)
print(generation.value, generation.stats.reasoning_tokens)
