"""What one request may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What one request may take of a server; what takes more is refused with a message that says so."""

    body: int = 8 << 20
    """Bytes of a request."""
    receive: float = 60.0
    """Seconds until a request has come."""
    answers: int = 16
    """Answers to one prompt."""
    prompts: int = 64
    """Prompts of one request for completions."""
    messages: int = 4096
    """Messages of a chat."""
    tools: int = 512
    """Tools of a chat."""
    labels: int = 1024
    """Labels that a text may have."""
    stops: int = 16
    """Texts that end an output."""
    logprobs: int = 20
    """Tokens beside each one that log-probabilities are given of."""
    compile: float = 5.0
    """Seconds that a constraint may take before the first token."""
    seconds: float = 600.0
    """Seconds until the last token."""
    waiting: int = 256
    """Answers that wait for a place; more are refused with status 429."""
