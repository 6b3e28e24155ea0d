"""Creative generation: a high temperature, the nucleus instead of a fixed number, a nudge against repeats."""

import tiny

import logitree as lt

engine = tiny.engine(tiny.STORY)


def generate(chain: lt.Chain, n: int = 40) -> list[int]:
    """Tokens after the beginning of the story."""
    session, out = engine.session(), list[int]()
    logits = session.evaluate(engine.encode("The old fox", chat=False))
    for _ in range(n):
        out.append(chain.sample(logits))
        logits = session.evaluate(out[-1:])
    return out


def creative(seed: int) -> lt.Chain:
    """topP decides how many stay; minP drops what is very unlikely."""
    return lt.Chain.llama_cpp(seed=seed, temp=1.2, top_p=0.95, top_k=0, min_p=0.02, penalty_repeat=1.15)


stories = {tuple(generate(creative(seed))) for seed in range(4)}
plain = generate(lt.Chain.greedy())
for story in stories:
    print(repr(engine.vocabulary.decode(story).decode(errors="replace")))
assert len(stories) == 4, "each seed tells another story"
variety = sum(len(set(story)) for story in stories) / 4
print(f"{variety:.1f} different tokens of 40, {len(set(plain))} with greedy")
assert variety > len(set(plain))
