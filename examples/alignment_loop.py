"""Test-time alignment, the whole loop: the application's state steers, the distribution picks the parameters."""

import tiny

import logitree as lt

engine = tiny.engine(tiny.STORY)
vocabulary = engine.vocabulary
state = {"boats": 0}  # the application's own


def constraints(steering: lt.steering.Steering) -> lt.steering.Steering:
    """1. The state becomes edits of logits: after two boats there shall be no third."""
    steering.clear()
    if state["boats"] >= 2:
        steering.veto(vocabulary.search("boat"))
    return steering.boost(vocabulary.search(" river"), 1.0)


def strategy(entropy: float, top_p: float) -> dict[str, float] | None:
    """2. The distribution picks the parameters of this step; None leaves the chain's own."""
    if entropy < 0.5:
        return {"temp": 1.5, "top_k": 256, "top_p": 0.98}
    return {"temp": 0.5, "top_k": 20, "top_p": 0.9} if entropy > 4.0 else None


# 3. There is no workspace to size: buffers grow by themselves.
chain = lt.Chain.llama_cpp(seed=3, temp=0.8, penalty_repeat=1.1)
chain.adapt(strategy)
gate = lt.steering.PerplexityGate(50.0, window=16)
session, steering, out = engine.session(), lt.steering.Steering(), list[int]()
logits = session.evaluate(engine.encode("The boy saw the boat and the boat", chat=False))
state["boats"] = 2
for _ in range(40):
    chain.steer(constraints(steering))
    # 4. One call: steering, rule, samplers, pick.
    token = chain.sample(logits)
    out.append(token)
    # 5. The state and the quality follow.
    state["boats"] += b"boat" in vocabulary[token]
    if gate.add(lt.metrics.surprisal(logits, token)):
        print(f"perplexity {gate.value:.1f}: time to prune or to retrieve")
    logits = session.evaluate([token])

text = vocabulary.decode(out).decode(errors="replace")
print(text)
assert state["boats"] == 2, "no third boat"
assert chain.get("temp") == lt.Chain.llama_cpp(temp=0.8).get("temp"), "what a step sets, the step takes back"
