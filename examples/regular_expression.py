"""Regular expressions: a format that the model keeps to, and what is expected at every place, in words."""

import re

import tiny

import logitree as lt

PATTERN = r"(The|Some) (old|red|kind) (fox|boat|boy)s? (ran|sat) \d{1,2} (times|minutes)\."

engine = tiny.engine(tiny.STORY)
grammar = lt.Grammar.regex(PATTERN)
for seed in range(3):
    finish = list(lt.generate(engine, "Tell: ", constraint=grammar, seed=seed))[-1]
    assert isinstance(finish, lt.Finish)
    assert re.fullmatch(PATTERN, finish.text), finish.text
    print(finish.text)

matcher = grammar.matcher(engine.vocabulary)
matcher.accept_many(engine.tokenize("The old "))
explanation = matcher.explain(text="ford")
assert not explanation.is_allowed
assert explanation.taken == 2
print(explanation)

# Joined by hand: texts, choices, repetitions.
row = lt.Grammar.choice(["red", "green"]) + (", " + lt.Grammar.regex("[0-9]{2}")).repeat(1, 3)
assert row.matches("red, 12, 34")
assert not row.matches("red")
print(row)
