"""Adaptive sampling: the entropy of the model's distribution picks the parameters, by a declared rule or a function."""

import tiny

import logitree as lt

engine = tiny.engine(tiny.STORY)

COLLAPSED = {"top_k": 256, "temp": 1.5, "top_p": 0.98}  # widen the search
HEALTHY = {"top_k": 40, "temp": 0.8, "top_p": 0.95}
FLAT = {"top_k": 20, "temp": 0.5, "top_p": 0.9}  # focus
RULE = lt.steering.EntropyRule([(1.2, COLLAPSED), (2.0, HEALTHY), (None, FLAT)])


def select(entropy: float, top_p: float) -> dict[str, float]:
    """The same as a function; it may look at the application's state too."""
    return COLLAPSED if entropy < 1.2 else HEALTHY if entropy < 2.0 else FLAT


def generate(adapt: lt.steering.EntropyRule | None, by_hand: bool = False) -> tuple[list[int], list[float]]:
    """40 tokens and the entropies before them."""
    session, out, entropies = engine.session(), list[int](), []
    chain = lt.Chain.llama_cpp(seed=42)
    chain.adapt(adapt)
    logits = session.evaluate(engine.encode("The fox", chat=False))
    for _ in range(40):
        entropies.append(lt.metrics.entropy(logits))
        if by_hand:
            chain.set(**select(entropies[-1], 0.0))
        out.append(chain.sample(logits))
        logits = session.evaluate(out[-1:])
    return out, entropies


tokens, entropies = generate(RULE)
print(RULE)
print(engine.vocabulary.decode(tokens).decode(errors="replace"))
print("entropies:", " ".join(f"{h:.1f}" for h in entropies))
assert generate(None, by_hand=True)[0] == tokens, "the rule is what the loop by hand does"
assert generate(None)[0] != tokens

# The same over a whole generation, with the function.
chain = lt.Chain.llama_cpp(seed=42)
chain.adapt(select)
events = lt.generate(engine, "The fox", chain=chain, chat=False, max_tokens=40)
finish = [event for event in events if isinstance(event, lt.Finish)][-1]
shared = min(len(finish.tokens), len(tokens))
print(f"generate() with the function: {shared} tokens, {finish.reason}")
assert list(finish.tokens[:shared]) == tokens[:shared]
assert shared > 0
