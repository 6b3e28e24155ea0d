"""GBNF, the notation of llama.cpp's grammars: rules that name each other, and themselves."""

import tiny

import logitree as lt

LIST = r"""
root  ::= item{2,3} "done\n"
item  ::= "- " thing ("; " thing)? "\n"
thing ::= adjective? noun
adjective ::= "red " | "old " | "small "
noun  ::= "fox" | "boat" | "farm" | "(" thing ")"  # rules may name themselves
"""

engine = tiny.engine(tiny.STORY + "- red fox\n- (boat); old farm\ndone\n")
grammar = lt.Grammar.gbnf(LIST)
for seed in range(2):
    finish = list(lt.generate(engine, "Things:\n", constraint=grammar, seed=seed))[-1]
    assert isinstance(finish, lt.Finish)
    assert grammar.matches(finish.text), finish.text
    assert finish.text.endswith("done\n")
    print(finish.text)

# All that is wrong in a text is said at once, with line and column.
try:
    lt.Grammar.gbnf('root ::= item\nitems ::= "x" [z-a]')
except lt.ConstraintError as error:
    print(error)
