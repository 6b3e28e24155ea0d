"""Domain validation: the report says that glucose is too high, so the text cannot call it normal."""

from collections.abc import Callable

import tiny

import logitree as lt

TEXT = """glucose is normal. glucose is normal. glucose is normal. sodium is normal. glucose is elevated. iron is low.
 glucose is normal. sodium is normal."""
REPORT = {"glucose": (182.0, (70.0, 99.0)), "sodium": (140.0, (135.0, 145.0))}

engine = tiny.engine(TEXT)
vocabulary = engine.vocabulary


def first_tokens(word: str) -> list[int]:
    """The token with which the model begins a word, with the space before it."""
    return engine.tokenize(word)[:1]


def validate(metric: str) -> Callable[[lt.Decoder, object], None]:
    """The callback of a generation: it looks at the value that the text is about, and steers."""

    def on_step(decoder: lt.Decoder, logits: object) -> None:
        value, (low, high) = REPORT[metric]
        steering = lt.steering.Steering()
        if value > high:
            steering.veto(first_tokens(" normal")).veto(first_tokens(" low")).boost(first_tokens(" elevated"), 10.0)
        elif low <= value:
            steering.veto(first_tokens(" elevated")).veto(first_tokens(" low")).boost(first_tokens(" normal"), 10.0)
        # A word is decided by its first token: steer the first step only.
        decoder.steer(steering if not decoder.tokens else None)

    return on_step


def report(metric: str, on_step: Callable[[lt.Decoder, object], None] | None) -> str:
    """What the model writes about a metric."""
    events = lt.generate(
        engine, f"{metric} is", chat=False, seed=4, temperature=0.7, top_k=40, max_tokens=2, on_step=on_step
    )
    return [event.text for event in events if isinstance(event, lt.Finish)][-1]


for metric in REPORT:
    print(f"{metric}: unchecked{report(metric, None)!r}, validated{report(metric, validate(metric))!r}")
assert report("glucose", validate("glucose")).startswith(" elevated")
assert report("sodium", validate("sodium")).startswith(" normal")
