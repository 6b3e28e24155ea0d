"""JSON of a schema in the tokenizer's own spelling: certain text costs no forward passes."""

import logitree
from logitree.engines.llama_cpp import bundled_model

engine = logitree.engines.open(bundled_model())
person = logitree.Grammar.regex(r'\{"name": "[A-Za-z ]{1,20}", "age": [1-9][0-9]?\}')
made = logitree.generate(engine, "Anna is 31.\nAs JSON: ", person, tokenization="canonical", temperature=0, chat=False)
print(made.text, engine.own_tokenizer.is_canonical(made.tokens), dict(made.stats.passes_saved))
