"""What `logitree.generate` tells while it runs: plain frozen values. Knows nothing of how they come about."""

from __future__ import annotations

from dataclasses import dataclass

from . import _core


@dataclass(frozen=True, slots=True)
class Progress:
    """Something that takes long is part done."""

    stage: str
    """"load" (the model's file) or "prefill" (the prompt)."""
    fraction: float
    """0.0 to 1.0."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token was decided."""

    id: int
    bytes: bytes
    """The token's own bytes; they may be part of a character only."""
    text: str
    """The text that is certain with this token: whole characters, and nothing that may still become a stop
    string."""
    forced: bool
    """True: the only way on, so the model was not asked."""
    step: _core.Step | None
    """How it was decided; None without `trace=True`, and for forced tokens."""


@dataclass(frozen=True, slots=True)
class Stats:
    """What a generation cost."""

    prompt_tokens: int
    reused_tokens: int
    """Of the prompt, how many were in the engine's memory already."""
    output_tokens: int
    """Sampled plus forced."""
    sampled_tokens: int
    forced_tokens: int
    forward_passes: int
    """Times that the model was asked for logits; the prompt is one, however long."""
    passes_saved: int
    """Passes that one-token-a-pass decoding would have needed beyond these: one per forced token. (A loop that
    waits for the model to end its turn would need one more after a constraint is over; that is not counted.)"""
    seconds: float
    """From the first evaluation to the end, the prompt included, loading not."""
    prefill_seconds: float
    """Of that, the prompt's."""
    tokens_per_second: float
    """Output tokens over `seconds`."""
    seed: int | None
    """The seed that was used, drawn or given; None with a chain that draws nothing."""
    reasoning_tokens: int = 0
    """Of the output, those of the thoughts it begins with, begins and ends included."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The last event."""

    reason: str
    """"constraint" (complete), "end_of_generation", "stop" (a stop string), "max_tokens", "context_full",
    "cancelled", or a reason of the decoder's own."""
    text: str
    """The whole output, stop string excluded. Equal to the tokens' texts and `tail` joined."""
    tail: str
    """The end of `text` that no token event carried."""
    tokens: tuple[int, ...]
    """The output tokens, an end-of-generation token included."""
    choice: str | None
    """The choice or leaf that the output is, thoughts before it left out, where there were choices or a token tree
    and it came to its end."""
    stats: Stats


Event = Progress | Token | Finish


@dataclass(frozen=True, slots=True)
class Choice:
    """What `logitree.choose` chose."""

    text: str
    index: int
    """Its place in the list of choices."""
    probability: float | None
    """How sure the model was of the tokens that it chose, among the allowed ones, at temperature 1: the
    product over the sampled tokens. A choice that can be spelled by several token sequences counts the one
    that was
    taken."""
    stats: Stats
