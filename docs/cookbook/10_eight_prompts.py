"""Eight prompts at once: one batched loop, each row as if it ran alone."""

import logitree
from logitree.engines.llama_cpp import bundled_model

countries = ["France", "Italy", "Spain", "Germany", "Japan", "Egypt", "Greece", "Russia"]
prompts = [f"The capital of {country} is" for country in countries]
for generation in logitree.generate(bundled_model(), prompts, stop=[",", "."], max_tokens=8, temperature=0, chat=False):
    print(generation)
