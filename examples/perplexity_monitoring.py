"""Perplexity as a monitor: the quality of each token and of the text, with a gate that opens where it is lost."""

import tiny

import logitree as lt

engine = tiny.engine(tiny.STORY)
session, vocabulary = engine.session(), engine.vocabulary
chain = lt.Chain.llama_cpp(seed=42, top_k=0, top_p=1.0, min_p=0.0, temp=1.6)  # hot, so that it goes astray
whole, gate = lt.metrics.RollingPerplexity(), lt.steering.PerplexityGate(20.0, window=8, patience=2)
log: list[tuple[int, float, float, float]] = []
opened_at = None

logits = session.evaluate(engine.encode("The fox", chat=False))
for at in range(80):
    ids, left, _ = chain.apply(logits)
    token = chain.pick()
    model = lt.metrics.surprisal(logits, token)  # before the filters
    sampling = lt.metrics.surprisal(left, token, ids=ids)  # of what the filters left
    whole.add(model)
    log.append((token, model, sampling, whole.value))
    if gate.add(model):
        print(f"token {at}: perplexity {gate.value:.1f} of the last 8, the gate opens")
        # Recovery: lower the temperature and reset the gate. (Or prune the cache, retrieve, compress.)
        opened_at = at if opened_at is None else opened_at
        chain.set(temp=0.3, top_k=5)
        gate.reset()
    chain.accept(token)
    logits = session.evaluate([token])

print(repr(vocabulary.decode([entry[0] for entry in log]).decode(errors="replace")))
mean = sum(entry[1] for entry in log) / len(log)
print(f"perplexity {whole.value:.2f}, mean surprisal {mean:.2f} nats")
spans = [(at, round(entry[1], 1)) for at, entry in enumerate(log) if entry[1] > 6.0]
print("uncertain tokens:", spans)

assert opened_at is not None, "it went astray"
before, after = log[: opened_at + 1], log[opened_at + 9 :]
calmer = sum(e[1] for e in after) / len(after) < sum(e[1] for e in before) / len(before)
assert calmer, "and came back"
