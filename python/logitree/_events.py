"""The events of a generation: plain frozen values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from . import _core

Source = Literal["sampled", "drafted", "forced", "canonical", "fast_forward", "external"]
"""How a token came: the chain picked it from logits that were asked for it ("sampled"), or that a proposal had asked
for already ("drafted"); or without logits, as the only allowed token ("forced"), as the only one that keeps the text
canonical ("canonical"), or as a token of text that is certain ("fast_forward"); or a caller of `Decoder.accept` passed
it in ("external"). A `Step` knows what its decoder saw: "sampled", "forced" or "external"."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A part of something long is done."""

    stage: str
    """"load" (the model's file) or "prefill" (the prompt)."""
    fraction: float
    """0.0 to 1.0."""


@dataclass(frozen=True, slots=True)
class LogProbs:
    """How likely a token was, in nats, and which tokens were the likeliest.

    "Model": the softmax of the model's logits over the whole vocabulary, before the constraint and all filters.
    "Final": what the constraint and the chain left, at the chain's temperature; with a chain that ends with greedy,
    before it takes the likeliest.
    """

    model: float
    """log p of the token by the model."""
    top: tuple[tuple[int, float], ...]
    """The model's likeliest tokens, as many as were asked for: (id, log p), descending."""
    final: float
    """log p of the token in the final distribution; 0.0 where it was the only allowed one."""
    final_top: tuple[tuple[int, float], ...]
    """The likeliest tokens of the final distribution; there may be fewer."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token was decided."""

    token: int
    """Its id."""
    bytes: bytes
    """The token's own bytes; they may be a part of a character."""
    text: str
    """The text that is certain with this token: whole characters, and nothing that may still become a stop
    string."""
    step: _core.Step | None
    """How it was decided; None without `trace=True`."""
    source: Source = "sampled"
    """How it came: "sampled", "drafted", "forced", "canonical" or "fast_forward"."""
    logprobs: LogProbs | None = None
    """How likely it was; None without `logprobs=`, and for tokens without logits (`forced`)."""

    @property
    def forced(self) -> bool:
        """Whether the model was not asked for it: it was neither sampled nor drafted."""
        return self.source not in ("sampled", "drafted")


@dataclass(frozen=True, slots=True)
class SpanStart:
    """A span of a skeleton began."""

    path: str
    """Its path, such as "action" or "contexts[0].name"; empty without a key."""
    kind: str
    """As the JSON form names it: "enum", "number", "boolean", "free-string", "free-json" or "array"."""


@dataclass(frozen=True, slots=True)
class SpanText:
    """Text of the span that began last and has not ended."""

    path: str
    """The span's path."""
    text: str
    """Whole characters: of strings without quotes and escapes, of other values as they are written."""


@dataclass(frozen=True, slots=True)
class SpanEnd:
    """A span of a skeleton ended."""

    path: str
    """The span's path."""
    value: Any
    """What it means: the enum's value, the number, the text, the parsed JSON."""


@dataclass(frozen=True, slots=True)
class Stats:
    """What a generation cost."""

    prompt_tokens: int
    """Tokens of the prompt."""
    reused_tokens: int
    """Of the prompt, how many the engine held in memory already."""
    output_tokens: int
    """Sampled plus forced."""
    sampled_tokens: int
    """Those that the chain picked from logits, drafted ones included."""
    forced_tokens: int
    """Those that the model was not asked for."""
    forward_passes: int
    """Times that the model was asked for logits; the prompt is one, however long."""
    seconds: float
    """From the first evaluation to the end, the prompt included, loading excluded."""
    prefill_seconds: float
    """Of that, the prompt's."""
    tokens_per_second: float
    """Output tokens over `seconds`."""
    seed: int | None
    """The seed that was used, drawn or given; None with a chain that draws nothing."""
    reasoning_tokens: int = 0
    """Of the output, those of the reasoning that it begins with, tags included."""
    passes_saved: Mapping[Source, int] = field(default_factory=dict)
    """Forward passes that one-token-a-pass decoding would have needed besides, by the source of the tokens that saved
    them: "forced", "canonical", "fast_forward", "drafted". Sources that saved none are left out."""
    logprob: float | None = None
    """With `logprobs=`: the sum of `LogProbs.model` over the tokens that have them."""
    logprob_tokens: int = 0
    """How many tokens that are: those that are not forced."""
    mask_seconds: float = 0.0
    """Of `seconds`, those spent on finding which tokens are allowed, where it was not there at once."""

    @property
    def mean_logprob(self) -> float | None:
        """`logprob` for each of these tokens; None where there are none."""
        return self.logprob / self.logprob_tokens if self.logprob is not None and self.logprob_tokens else None

    @property
    def perplexity(self) -> float | None:
        """exp of `-mean_logprob`; inf where the model could not have written a token."""
        mean = self.mean_logprob
        return None if mean is None else math.inf if mean < -700.0 else math.exp(-mean)

    def __str__(self) -> str:
        came = f"{self.forced_tokens} forced"
        if drafted := self.passes_saved.get("drafted"):
            came += f", {drafted} drafted"
        return (
            f"{self.output_tokens} tokens ({came}) in {self.forward_passes} forward passes, "
            f"{self.seconds:.2f} s, {self.tokens_per_second:.1f} tokens/s"
        )


@dataclass(frozen=True, slots=True)
class Finish:
    """The last event."""

    reason: str
    """"constraint" (complete), "end_of_generation", "stop" (a stop string), "max_tokens", "closed" (`max_tokens`, and
    completed the shortest way), "context_full", "cancelled"."""
    text: str
    """The whole output, stop string excluded. Equal to the tokens' texts and `tail` joined."""
    tail: str
    """The end of `text` that no token event carried."""
    tokens: tuple[int, ...]
    """The output tokens, an end-of-generation token included."""
    complete: bool
    """Whether the output is complete under its constraint. Without a constraint: whether the model ended it, or a stop
    string."""
    stats: Stats
    """What the generation cost."""


Event = Progress | Token | SpanStart | SpanText | SpanEnd | Finish
"""What a generation gives while it runs, in order."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What `logitree.choose` chose."""

    value: object
    """The chosen element."""
    index: int
    """Its place in the list of choices."""
    probability: float | None
    """Its probability among the values. Chosen token by token: the product over the sampled tokens of their
    probabilities among the allowed ones after the chain, for the one spelling that was taken."""
    stats: Stats
    """What the choice cost."""
    probabilities: tuple[float, ...] | None = None
    """The probability of each value, in their order; they sum to 1. A value that is given twice has it at its first
    place, and 0 at the others. None where tokens were decoded (`method="greedy"`)."""

    @property
    def text(self) -> str:
        """The chosen element as text."""
        return str(self.value)
