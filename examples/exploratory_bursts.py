"""Exploratory bursts: where the model is unsure, other parameters for a few tokens, then the chain's own again."""

import tiny

import logitree as lt

engine = tiny.engine(tiny.STORY)
EXPLORE = {"top_k": 256, "temp": 1.3, "typ_p": 0.9}


def generate(rule: lt.steering.Burst | None, n: int = 60) -> tuple[list[int], list[float]]:
    """Tokens, and how sure the model was before each."""
    session, chain = engine.session(), lt.Chain.llama_cpp(seed=8, top_k=40, temp=0.8)
    chain.adapt(rule)
    out, top = list[int](), []
    logits = session.evaluate(engine.encode("The", chat=False))
    for _ in range(n):
        top.append(lt.samplers.top_candidates(logits, 1)[0][1])
        out.append(chain.sample(logits))
        logits = session.evaluate(out[-1:])
    return out, top


burst = lt.steering.Burst(EXPLORE, top_p_below=0.2, tokens=3)
tokens, top = generate(burst)
marks, left = "", 0
for p in top:
    left = 3 if left == 0 and p < 0.2 else left
    marks += "^" if left else "."
    left = max(0, left - 1)
print(burst)
print(engine.vocabulary.decode(tokens).decode(errors="replace"))
print("bursts:", marks)
assert "^" in marks and "." in marks
assert tokens != generate(None)[0]
assert tokens == generate(burst)[0], "each chain has its own state of the rule"

# The state of a burst goes with the tokens: what is taken back and done again is the same.
chain = lt.Chain.llama_cpp(seed=8, top_k=40, temp=0.8)
chain.adapt(burst)
logits = engine.session().evaluate(engine.encode("The", chat=False))
first = [(chain.draw(logits), chain.accept(0))[0] for _ in range(9)]
chain.rollback(5)
assert [(chain.draw(logits), chain.accept(0))[0] for _ in range(5)] == first[4:]
