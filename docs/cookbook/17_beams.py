"""Beams: the likeliest texts of a list, with their log-probabilities."""

import logitree
from logitree import engines
from logitree.engines.llama_cpp import bundled_model

engine = engines.open(bundled_model())
cities = [" Rome", " Milan", " Naples", " Paris", " Turin"]
(found,) = logitree.beam_search(engine, "The capital of Italy is", cities, width=3, chat=False)
for hypothesis in found:
    print(hypothesis.items, round(hypothesis.log_probability, 2))
