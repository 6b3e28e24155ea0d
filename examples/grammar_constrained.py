"""Constrained generation: what is not allowed is never picked, and no logits are written for it.

tsampler's example masks by a GBNF grammar, root ::= "hello" | "goodbye"; here the same set of texts is a constraint.
"""

import tiny

import logitree as lt

engine = tiny.engine(tiny.STORY + "hello hello goodbye")
choices = lt.choices(["hello", "goodbye"], engine.vocabulary)

seen = set()
for seed in range(12):
    session = engine.session()
    chain = lt.Chain.llama_cpp(seed=seed, temp=0.8, top_k=40, top_p=0.95)
    decoder = lt.Decoder(engine.vocabulary, chain, choices.matcher())
    logits = session.evaluate(engine.encode("He said ", chat=False))
    while not decoder.is_finished:
        # Mask, chain, pick, and the acceptance by constraint and history: one call.
        token = decoder.step(logits)
        # Where the constraint leaves one way, the model need not be asked.
        logits = session.evaluate([token, *decoder.take_forced()])
    text = engine.vocabulary.decode(decoder.tokens).decode()
    assert text in ("hello", "goodbye"), text
    seen.add(text)
    print(seed, text)

# The same by hand, with the mask shown.
matcher, chain = choices.matcher(), lt.Chain.greedy()
logits = engine.session().evaluate(engine.encode("He said ", chat=False))
allowed = matcher.mask()
token = chain.sample(logits, allowed)
assert lt.mask.contains(allowed, token)
assert not lt.mask.contains(allowed, engine.tokenize("x")[0])
print(f"{lt.mask.count(allowed)} of {len(engine.vocabulary)} tokens may come first")
assert seen
