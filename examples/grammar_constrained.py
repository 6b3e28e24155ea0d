"""Constrained generation: what is not allowed is never picked, and no logits are written for it.

tsampler's example masks by a GBNF grammar, root ::= "hello" | "goodbye"; here the same set of texts is a constraint.
"""

import tiny

import logitree as lt

engine = tiny.engine(tiny.STORY + "hello hello goodbye")
choices = lt.OneOf(["hello", "goodbye"])

seen = set()
for seed in range(12):
    session = engine.session()
    chain = lt.Chain.llama_cpp(seed=seed, temp=0.8, top_k=40, top_p=0.95)
    decoder = lt.Decoder(engine.vocabulary, chain, choices)
    logits = session.evaluate(engine.encode("He said ", chat=False))
    while not decoder.is_finished:
        # Mask, chain, pick, and the acceptance by constraint and history: one call.
        token = decoder.step(logits)
        # Forced tokens need no forward pass of their own.
        logits = session.evaluate([token, *decoder.take_forced()])
    text = engine.vocabulary.decode(decoder.tokens).decode()
    assert text in ("hello", "goodbye"), text
    seen.add(text)
    print(seed, text)

# The same by hand, with the mask shown.
matcher, chain = choices.matcher(engine.vocabulary), lt.Chain.greedy()
logits = engine.session().evaluate(engine.encode("He said ", chat=False))
allowed = matcher.allowed().mask()
token = chain.draw(logits, allowed)
assert lt.masks.contains(allowed, token)
assert not lt.masks.contains(allowed, engine.tokenize("x")[0])
print(f"{lt.masks.count(allowed)} of {len(engine.vocabulary)} tokens may come first")
assert seen
