"""A regular expression: the output matches it as a whole."""

import re

import logitree
from logitree.engines.llama_cpp import bundled_model

date = re.compile(r"(19|20)\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")
print(logitree.generate(bundled_model(), "When did the first person walk on the moon?", date, temperature=0))
