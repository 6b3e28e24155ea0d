"""What the layers of a model say, each for itself."""

from __future__ import annotations

Layers = list[tuple[tuple[int, float], ...]]
"""For each layer, the embedding first and the model's own output last: its likeliest tokens as (id, log-probability in
nats), descending."""
