"""Metrics at each step: they look, and change nothing of what is sampled."""

import numpy as np
import tiny

import logitree as lt

engine = tiny.engine(tiny.STORY)


def generate(measure: bool) -> list[int]:
    """20 tokens, with measures or without."""
    session, chain = engine.session(), lt.Chain.llama_cpp(seed=7, temp=0.8, top_k=40)
    perplexity, out = lt.metrics.RollingPerplexity(), list[int]()
    logits = session.evaluate(engine.encode("The boy", chat=False))
    for _ in range(20):
        if measure:
            entropy = lt.metrics.entropy(logits)  # the model's own distribution, in nats
            top = lt.samplers.top_candidates(logits, 5)
        # What the filters left, for the second level of measures.
        ids, left, p = chain.apply(logits)
        token = chain.pick()
        if measure:
            surprisal = lt.metrics.surprisal(logits, token)
            sampling = lt.metrics.surprisal(left, token, ids=ids)
            perplexity.add(surprisal)
            text = engine.vocabulary[token].decode(errors="replace")
            print(f"{text!r:12} entropy {entropy:.2f}, top p {top[0][1]:.2f}, {len(ids)} left, ", end="")
            print(f"surprisal {surprisal:.2f} before the filters, {sampling:.2f} after")
            assert entropy >= 0 and len(top) == 5 and abs(float(p.sum()) - 1) < 1e-5
            assert abs(np.exp(-sampling) - p[ids == token][0]) < 1e-5
            if entropy > 5.0:
                print("  the model is exploring")
            if perplexity.value > 50:
                print("  high perplexity: time to evict or to retrieve")
        chain.accept(token)
        out.append(token)
        logits = session.evaluate([token])
    if measure:
        print(f"perplexity {perplexity.value:.2f} over {perplexity.count} tokens")
        assert perplexity.count == 20 and perplexity.value >= 1
    return out


assert generate(measure=True) == generate(measure=False)
print("the same tokens without measures")
