"""Drafts: what the output copies from its prompt is proposed, and one forward pass decides several tokens."""

import logitree
from logitree import engines
from logitree.engines.llama_cpp import bundled_model
from logitree.speculation import NGramDrafter

letter = "Ship to: Mill Road 27, Cambridge\nProblem: The fridge for the vaccines does not stay below eight degrees."
grammar = logitree.Grammar.regex(r'\{"ship_to": "[^"\n]{1,60}", "problem": "[^"\n]{1,100}"\}')
shown = 'Ship to: Quay 1, Bergen\nProblem: It is wet.\nJSON: {"ship_to": "Quay 1, Bergen", "problem": "It is wet."}'
model, prompt = engines.open(bundled_model()), f"{shown}\n\n{letter}\nJSON: "
model.pass_costs = None  # every proposal is made: by default only those that pay in time on this machine
found = logitree.generate(model, prompt, grammar, chat=False, temperature=0, drafter=NGramDrafter())
print(found.text)
print(found.stats.forward_passes, "passes,", found.stats.passes_saved.get("drafted", 0), "saved by drafts")
