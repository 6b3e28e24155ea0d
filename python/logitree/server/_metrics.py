"""What a server counts, in Prometheus's text format."""

from __future__ import annotations

from collections.abc import Callable

import prometheus_client as prometheus

from .._events import Finish
from .._scheduler import Scheduler

_SPEEDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """Counters and histograms of one server."""

    content_type = prometheus.CONTENT_TYPE_LATEST

    def __init__(self, scheduler: Scheduler) -> None:
        self._registry = registry = prometheus.CollectorRegistry()

        def counter(name: str, about: str, labels: tuple[str, ...] = ()) -> prometheus.Counter:
            return prometheus.Counter(f"logitree_{name}", about, labels, registry=registry)

        def gauge(name: str, about: str, read: Callable[[], float]) -> None:
            prometheus.Gauge(f"logitree_{name}", about, registry=registry).set_function(read)

        self.requests = counter("requests", "Requests by path and status.", ("path", "status"))
        self.prompt_tokens = counter("prompt_tokens", "Tokens of prompts.")
        self.reused_tokens = counter("reused_tokens", "Tokens of prompts that memory held already.")
        self.tokens = counter("tokens", "Tokens of outputs.")
        self.saved = counter("saved_passes", "Forward passes that were not needed, by what saved them.", ("source",))
        self.mask_seconds = counter("mask_seconds", "Seconds spent on finding which tokens are allowed.")

        def histogram(name: str, about: str, buckets: tuple[float, ...] = _SECONDS) -> prometheus.Histogram:
            return prometheus.Histogram(f"logitree_{name}", about, buckets=buckets, registry=registry)

        self.first_token = histogram("first_token_seconds", "From the request to its first token.")
        self.reading = histogram("reading_seconds", "From the request to its constraint and prompt.")
        self.speed = histogram("tokens_per_second", "Tokens of an answer a second, its prompt left out.", _SPEEDS)
        gauge("waiting", "Answers that wait for a place.", lambda: scheduler.waiting)
        gauge("running", "Answers that are decoded.", lambda: scheduler.running)
        gauge("engine_failures", "How often the engine failed.", lambda: scheduler.failures)

    def finished(self, finish: Finish, first_token: float) -> None:
        """Counts what a row cost. `first_token`: seconds from the request to the row's first token."""
        self.first_token.observe(first_token)
        stats = finish.stats
        self.prompt_tokens.inc(stats.prompt_tokens)
        self.reused_tokens.inc(stats.reused_tokens)
        self.tokens.inc(stats.output_tokens)
        self.mask_seconds.inc(stats.mask_seconds)
        decoding = stats.seconds - stats.prefill_seconds
        if stats.output_tokens > 1 and decoding > 0:
            self.speed.observe((stats.output_tokens - 1) / decoding)
        for source, passes in stats.passes_saved.items():
            self.saved.labels(source).inc(passes)

    def text(self) -> bytes:
        """All of them as Prometheus reads them."""
        return prometheus.generate_latest(self._registry)
