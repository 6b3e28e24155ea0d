"""Factual generation: the likeliest token, with no draw and no penalty."""

import tiny

import logitree as lt

engine = tiny.engine(tiny.STORY)


def generate(chain: lt.Chain) -> list[int]:
    """Three tokens of an answer."""
    session, out = engine.session(), list[int]()
    logits = session.evaluate(engine.encode("The capital of France is", chat=False))
    for _ in range(3):
        out.append(chain.sample(logits))
        logits = session.evaluate(out[-1:])
    return out


# tsampler's greedy fast path: top_k 1 (or a temperature below 0.001) leaves the penalties and greedy.
fast = lt.Chain.tsampler(temp=0.1, top_k=1, penalty_repeat=1.0, penalty_freq=0.0, penalty_present=0.0)
assert fast.names == ["penalties", "greedy"]
assert fast.seed is None, "nothing is drawn"

answer = generate(fast)
assert answer == generate(lt.Chain.greedy())
assert answer == generate(lt.Chain.llama_cpp(seed=9, temp=0.0)), "a temperature of 0 picks the same"
print("The capital of France is" + engine.vocabulary.decode(answer).decode(errors="replace"))
