"""Steering by constraints: amounts in yen have no decimals, so the decimal point is vetoed and digits are boosted."""

import tiny

import logitree as lt

TEXT = """currency: USD amount: 12.50; currency: USD amount: 7.25; currency: EUR amount: 3.99; currency: JPY amount:
 12.50; currency: JPY amount: 7.25; currency: JPY amount: 99.00; currency: JPY amount: 3.99;"""

engine = tiny.engine(TEXT)
vocabulary = engine.vocabulary
DECIMAL = vocabulary.search(".")
DIGITS = [token for digit in "0123456789" for token in vocabulary.find(digit.encode())]
assert DECIMAL and len(DIGITS) == 10


def amount(currency: str, steered: bool) -> str:
    """The amount that the model writes for a currency."""
    session, chain = engine.session(), lt.Chain.llama_cpp(seed=11, temp=0.8, top_k=40)
    if steered and currency == "JPY":
        # Made once: it holds until it is changed, and costs these few edits, not the vocabulary.
        chain.steer(lt.steering.Steering().veto(DECIMAL).boost(DIGITS, 2.0))
    out: list[int] = []
    logits = session.evaluate(engine.encode(f"currency: {currency} amount: 12", chat=False))
    while len(out) < 12:
        token = chain.sample(logits)
        out.append(token)
        if b";" in vocabulary[token]:
            break
        logits = session.evaluate([token])
    return "12" + vocabulary.decode(out).decode(errors="replace")


for currency in ("USD", "JPY"):
    print(currency, "steered:", repr(amount(currency, True)), "unsteered:", repr(amount(currency, False)))
assert "." not in amount("JPY", True)
assert amount("USD", True) == amount("USD", False), "nothing is steered there"

# What cannot be is an error that says so, not a token.
chain = lt.Chain.greedy()
chain.steer({token: float("-inf") for token in range(len(vocabulary))})
try:
    chain.draw(engine.session().evaluate(engine.encode("currency", chat=False)))
except lt.LogitsError as error:
    print("LogitsError:", error)
else:
    raise AssertionError("a veto of everything must not pass")
