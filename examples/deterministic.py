"""The same seed gives the same tokens, however many chains run beside each other."""

import tiny

import logitree as lt

engine = tiny.engine(tiny.STORY)


def generate(chain: lt.Chain) -> list[int]:
    """30 tokens from the chain's state on."""
    session, out = engine.session(), list[int]()
    logits = session.evaluate(engine.encode("The river", chat=False))
    for _ in range(30):
        out.append(chain.sample(logits))
        logits = session.evaluate(out[-1:])
    return out


for rng in ("mt19937", "xoroshiro128plus", "philox"):
    chain = lt.Chain.llama_cpp(seed=42, rng=rng, temp=0.8, top_k=40, top_p=0.95)
    first = generate(chain)
    chain.reset()
    assert generate(chain) == first, "back to the seed"
    assert generate(lt.Chain.llama_cpp(seed=42, rng=rng, temp=0.8, top_k=40, top_p=0.95)) == first
    assert generate(lt.Chain.llama_cpp(seed=43, rng=rng, temp=0.8, top_k=40, top_p=0.95)) != first
    print(f"{rng:17}", repr(engine.vocabulary.decode(first).decode(errors="replace")))

# A seed of None is drawn and reported, so that any run can be repeated.
fresh = lt.Chain.llama_cpp(seed=None, temp=1.0)
tokens = generate(fresh)
assert fresh.seed is not None
assert generate(lt.Chain.llama_cpp(seed=fresh.seed, temp=1.0)) == tokens

# The numbers by themselves, as a generator in the hand.
random = lt.samplers.Random(42, rng="xoroshiro128plus")
numbers = [random.uniform() for _ in range(3)]
random.seek(1)
assert random.uniform() == numbers[1]
print("three numbers of seed 42:", *(f"{x:.6f}" for x in numbers))
