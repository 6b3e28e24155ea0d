"""A catalogue with item numbers: the output is one of its titles, the value is that title's number."""

import logitree
from logitree import engines
from logitree.engines.llama_cpp import bundled_model

engine = engines.open(bundled_model())
titles = [" The Old Man and the Sea", " The Sea Wolf", " Moby Dick", " Sense and Sensibility"]
catalogue = logitree.Catalogue.from_texts(titles, engine, items=[101, 102, 103, 104])
generation = logitree.generate(engine, "My favourite novel is", catalogue, seed=1, chat=False)
print(generation.text, generation.value)
