"""A quotation: the value is a run of words of a given text, and cannot be anything else."""

import json

import logitree
from logitree.engines.llama_cpp import bundled_model

letter = "Dear shop, the fridge that you sent on Monday hums all night. Please call me at noon. Anna Berg"
words = json.dumps({"substring_words": letter})
grammar = logitree.Grammar.lark('start: "Problem: \\"" quote "\\"\\n"\nquote: %regex ' + words)
found = logitree.generate(bundled_model(), f"{letter}\n", grammar, chat=False, temperature=0)
print(found.text.strip(), found.text.split('"')[1] in letter)
