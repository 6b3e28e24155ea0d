"""Times callables side by side and turns what it finds into records. It writes no file.

How a case is timed: every contender is called once to warm up, then in batches long enough for the clock; a round times
one batch of each contender, in an order that rotates, so that a noisy neighbour hits all of them alike. The figure is
the lower quartile over the rounds, because noise only adds; the median and the minimum of ours are recorded too. A
contender that changes its input is :class:`Prepared`: restoring the input before each call is not timed.
"""

from __future__ import annotations

import gc
import importlib
import statistics
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, TypeVar

from logitree_bench._facts import machine, versions

Record = dict[str, Any]
Found = TypeVar("Found")

EMPTY = ("ours", "peer", "peer_name", "unit", "ratio", "target", "target_ratio", "meets")
"""What a skipped case does not have."""

SCALE = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}
"""How many of a unit are one second."""


@dataclass(frozen=True)
class Skip:
    """Stands for a contender that cannot be measured here, and says why."""

    reason: str


class Missing(Exception):
    """What a suite needs is not here; the message says why."""


def required(found: Found | Skip) -> Found:
    """What was found.

    Raises:
        Missing: it is not here: the command records that the suite is skipped.
    """
    if isinstance(found, Skip):
        raise Missing(found.reason)
    return found


@dataclass(frozen=True)
class Prepared:
    """A contender that spoils its input: ``prepare`` runs before every call of ``call`` and is not timed."""

    prepare: Callable[[], object]
    call: Callable[[], object]

    def timeit(self, number: int) -> float:
        """Seconds that ``number`` calls took, like :meth:`timeit.Timer.timeit`; reading the clock counts as theirs."""
        clock, prepare, call = time.perf_counter, self.prepare, self.call
        collecting = gc.isenabled()
        gc.disable()
        try:
            seconds = 0.0
            for _ in range(number):
                prepare()
                start = clock()
                call()
                seconds += clock() - start
        finally:
            if collecting:
                gc.enable()
        return seconds


Contender = Callable[[], object] | Prepared
Timer = timeit.Timer | Prepared


def optional(name: str) -> ModuleType | Skip:
    """The module of a peer library, or the reason why it is skipped."""
    try:
        return importlib.import_module(name)
    except ImportError as problem:
        return Skip(f"{name} is not installed ({problem})" if problem.name != name else f"{name} is not installed")


class Bench:
    """What a suite is handed: it times cases and collects their records.

    ``quick`` asks for a tenth of the time and less certain figures; a suite may read it to take smaller
    inputs.
    ``on_record`` is called with each record as soon as it is known.
    """

    def __init__(self, suite: str, *, quick: bool = False, on_record: Callable[[Record], object] | None = None) -> None:
        self.suite = suite
        self.quick = quick
        self.records: list[Record] = []
        self._on_record = on_record
        self._rounds = 5 if quick else 21
        self._batch_s = 0.001 if quick else 0.005

    def case(
        self,
        name: str,
        ours: Contender,
        *,
        peers: Mapping[str, Contender | Skip] | None = None,
        minus: Contender | None = None,
        unit: Literal["ns", "us", "ms", "s"] = "us",
        target: float | None = None,
        target_ratio: float | None = None,
        against: str | None = None,
        read: Contender | None = None,
        per: float = 1,
        **more: Any,
    ) -> Record:
        """Time ``ours`` and each peer in the same rounds and record the case.

        ``per``: units of work in one call; figures are per unit of work. ``minus``: a callable whose time is
        taken off ours (never off a peer's), such as the bare call. ``target``: what ours should not
        exceed, in ``unit``. ``target_ratio`` and ``against``: see :meth:`record`. ``read``: a callable that
        only reads the input once; the record says under ``reads`` how many times as long ours takes. ``more``
        goes into the record as it is.
        """
        peers = dict(peers or {})
        contenders = {"": ours, **{f"peer {k}": v for k, v in peers.items() if not isinstance(v, Skip)}}
        if minus is not None:
            contenders["minus"] = minus
        if read is not None:
            contenders["read"] = read
        times = self._rounds_of(contenders)
        scale = SCALE[unit] / per
        own = times.pop("")
        spared = times.pop("minus") if minus is not None else [0.0, 0.0]
        ours_s = lower_quartile(own) - lower_quartile(spared)
        if read is not None:
            read_s = lower_quartile(times.pop("read"))
            more = {"read": _round(read_s * scale), "reads": _round(ours_s / read_s), **more}
        measured = {k.removeprefix("peer "): lower_quartile(v) * scale for k, v in times.items()}
        skipped = {k: v.reason for k, v in peers.items() if isinstance(v, Skip)}
        return self.record(
            name,
            ours_s * scale,
            unit=unit,
            peers=measured,
            skipped=skipped,
            target=target,
            target_ratio=target_ratio,
            against=against,
            ours_median=_round((statistics.median(own) - statistics.median(spared)) * scale),
            ours_min=_round((min(own) - min(spared)) * scale),
            **more,
        )

    def record(
        self,
        name: str,
        ours: float,
        *,
        unit: str,
        peers: Mapping[str, float] | None = None,
        skipped: Mapping[str, str] | None = None,
        target: float | None = None,
        target_ratio: float | None = None,
        against: str | None = None,
        better: Literal["lower", "higher"] = "lower",
        **more: Any,
    ) -> Record:
        """Record a case that the suite measured itself; ``better`` says which way is good.

        It compares with the peer called ``against``, or else with the best; all of them are recorded under
        ``peers``. ``target_ratio``: how many times better than that peer ours should be; without the peer
        ``meets`` is None.
        """
        peers = dict(peers or {})
        best = (min if better == "lower" else max)(peers, key=peers.__getitem__) if peers else None
        if against is not None:
            best = against if against in peers else None
        peer = peers[best] if best is not None else None
        ratio = _times_better(ours, peer, better)
        met = [
            None if target is None else (ours <= target if better == "lower" else ours >= target),
            None if target_ratio is None or ratio is None else ratio >= target_ratio,
        ]
        unknown = target_ratio is not None and ratio is None
        return self._keep(
            {
                "suite": self.suite,
                "case": name,
                "ours": _round(ours),
                "peer": _round(peer),
                "peer_name": best,
                "unit": unit,
                "ratio": _round(ratio),
                "target": target,
                "target_ratio": target_ratio,
                "meets": None if unknown or met == [None, None] else False not in met,
                "better": better,
                "peers": {k: _round(v) for k, v in peers.items()},
                "skipped": dict(skipped or {}),
                **more,
            }
        )

    def higher(self, name: str, ours: float, unit: str, target: float | None = None, **more: Any) -> Record:
        """:meth:`record` of a rate or share: more is better."""
        return self.record(name, ours, unit=unit, target=target, better="higher", **more)

    def skip(self, name: str, reason: str, **more: Any) -> Record:
        """Record a case that cannot be measured here."""
        return self._keep({"suite": self.suite, "case": name, **dict.fromkeys(EMPTY), "skipped": {"": reason}, **more})

    def fact(self, name: str, **values: Any) -> Record:
        """Record named values that are not a comparison, such as one row of the benchmark mode."""
        return self._keep({"suite": self.suite, "case": name, **values})

    def _keep(self, record: Record) -> Record:
        record = {**record, "quick": self.quick, "versions": versions(), "machine": machine()}
        self.records.append(record)
        if self._on_record:
            self._on_record(record)
        return record

    def _rounds_of(self, contenders: Mapping[str, Contender]) -> dict[str, list[float]]:
        """Seconds a call, one entry a round, of every contender."""
        timers: dict[str, Timer] = {
            name: f if isinstance(f, Prepared) else timeit.Timer(f) for name, f in contenders.items()
        }
        counts = {name: self._count(timer) for name, timer in timers.items()}
        times: dict[str, list[float]] = {name: [] for name in timers}
        order = list(timers)
        longest = max(timers[name].timeit(counts[name]) for name in order)
        rounds = self._rounds if longest < 0.2 else max(5, self._rounds // 4)
        for _ in range(rounds):
            for name in order:
                times[name].append(timers[name].timeit(counts[name]) / counts[name])
            order.append(order.pop(0))
        return times

    def _count(self, timer: Timer) -> int:
        """Calls in a batch, so that a batch lasts long enough; the first call warms up."""
        timer.timeit(1)
        count = 1
        while True:
            seconds = timer.timeit(count)
            if seconds >= self._batch_s:
                return count
            count = max(count + 1, min(count * 10, int(1.2 * count * self._batch_s / max(seconds, 1e-9))))


def lower_quartile(seconds: Sequence[float]) -> float:
    """The figure that stands for several measured times."""
    return statistics.quantiles(seconds, n=4, method="inclusive")[0]


def _times_better(ours: float, peer: float | None, better: str) -> float | None:
    """How many times better than the peer we are; above 1 is ours."""
    above, below = (peer, ours) if better == "lower" else (ours, peer)
    return above / below if above is not None and below else None


def _round(value: float | None) -> float | None:
    """Four significant digits: more would be noise."""
    return None if value is None else float(f"{value:.4g}")
