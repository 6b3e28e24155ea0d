"""GBNF: a grammar in llama.cpp's notation."""

import logitree
from logitree.engines.llama_cpp import bundled_model

grammar = logitree.Grammar.gbnf(r"""
root ::= item{3}
item ::= "- " [a-z]+ (" " [a-z]+)? "\n"
""")
print(logitree.generate(bundled_model(), "Three fruits:\n\n", grammar, temperature=0, chat=False))
