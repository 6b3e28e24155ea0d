"""Holds fast mode, the default, to llama.cpp: `python tests/parity/parity_fast.py --cases 100000`.

The cases are those of parity mode. The candidates left above -inf must be the same ones but where equal logits or
llama.cpp's own rounding decide (:mod:`parity_rounding`; the sampler that is to blame is found by running the chain's
beginnings), the probabilities within 1e-6 of the exact softmax of what llama.cpp leaves, and the token the same but for
equal logits, and for draws that fall within rounding of a boundary: at most one in 100,000.

One more thing leads elsewhere: llama.cpp's logit_bias leaves the flag standing that says the candidates are sorted, so
that what comes after holds the first to be the best. Fast mode keeps to the flag where it decides what is cut, and
looks at the logits as they are where probabilities are computed; what differs then is counted apart.

llama.cpp adds temp_ext's entropy in f32, ours of more than 1,024 candidates in f64: a probability may be off by
that sum's bound, and what depends on it may differ. The Rust tests hold ours to exact arithmetic.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import logitree as lt
from parity import Pair
from parity_cases import Case, Logits, make
from parity_llama import Candidates
from parity_rounding import order_reason, reason, softmax, sum_bound
from parity_samplers import KINDS, Arguments

WITHIN = 1e-6
"""How far a probability may be off."""

INT_RANGE = 2.0**31 / 6.4 - 11
"""llama.cpp converts 6.4 * logit + 64 to an int; what is out of range is in the lowest bucket on x86-64."""


@dataclass
class Tally:
    """What was compared, for each sampler of the chain."""

    steps: Counter[str] = field(default_factory=Counter)
    sets: Counter[str] = field(default_factory=Counter)
    """Other survivors, by the sampler that left them and the reason."""
    off: dict[str, float] = field(default_factory=dict)
    """The largest difference of a probability, by the samplers of the chain."""
    tokens: Counter[str] = field(default_factory=Counter)
    """Other tokens, by sampler and reason; each counts for all samplers of its chain."""
    drawn: int = 0
    """Other tokens for which there is no reason but that the draw fell within rounding of a boundary."""
    stale: int = 0
    """Probabilities that are off because llama.cpp holds a logit to be the highest that is not."""
    undefined: int = 0
    faults: list[str] = field(default_factory=list)
    compared: int = 0

    def add(self, other: Tally) -> None:
        """Takes the counts of a step in."""
        self.steps += other.steps
        self.sets += other.sets
        self.tokens += other.tokens
        self.drawn += other.drawn
        self.stale += other.stale
        for name, off in other.off.items():
            self.off[name] = max(self.off.get(name, 0.0), off)

    def __str__(self) -> str:
        lines = [f"{self.compared} comparisons, {self.undefined} apart where llama.cpp's result means nothing"]
        lines += [f"{'sampler':13} {'steps':>8} {'other survivors':>16} {'probability off':>16} {'other token':>12}"]
        for name in [kind.name for kind in KINDS]:
            sets = sum(count for what, count in self.sets.items() if what.startswith(f"{name}:"))
            tokens = sum(count for what, count in self.tokens.items() if what.startswith(f"{name}:"))
            lines += [f"{name:13} {self.steps[name]:8} {sets:16} {self.off.get(name, 0):16.1e} {tokens:12}"]
        lines += [f"survivors by {what}: {count}" for what, count in sorted(self.sets.items())]
        lines += [f"tokens by {what}: {count}" for what, count in sorted(self.tokens.items())]
        lines += [f"{self.drawn} other tokens by the draw's rounding"]
        lines += [f"{self.stale} probabilities off after an order that no longer holds"]
        return "\n".join([*lines, f"{len(self.faults)} faults", *self.faults[:20]])


class FastPair(Pair):
    """llama.cpp's chain, and ours in fast mode."""

    def our_chain(self) -> lt.Chain:
        return lt.Chain([kind.ours(arguments) for kind, arguments in self.case.spec])

    def beginning(self, length: int) -> lt.Chain:
        """A fresh chain of the first samplers, which has gone through all that was taken."""
        chain = lt.Chain([kind.ours(arguments) for kind, arguments in self.case.spec[:length]])
        for token in self.history:
            chain.accept(token)
        for row, token in self.taken:
            chain.apply(self.logits(row), self.mask, allowed=self.allowed)
            chain.accept(token)
        return chain

    def mu(self, arguments: Arguments) -> float:
        """What llama.cpp's mirostat has learned of all that was taken."""
        tau, eta = arguments[-4:-2] if len(arguments) == 5 else arguments[:2]
        mu, chain, array = 2 * tau, self.llama_chain(), self.array
        for token in self.history:
            chain.accept(token)
        for row, token in self.taken:
            self.fill(row)
            chain.apply(array)
            mu -= eta * (-np.log2(array.left["p"][array.struct.selected]) - tau)
            chain.accept(token)
        return float(mu)

    def is_stale(self, row: Logits) -> bool:
        """Whether a sampler of llama.cpp's chain is given an order that no longer holds."""
        chain, array = self.replayed(), self.array
        self.fill(row)
        for at in range(len(self.case.spec)):
            if is_stale(array.left, bool(array.struct.sorted)):
                return True
            chain.apply_one(at, array)
        return False

    def blame(self, row: Logits, in_order: bool) -> str:
        """The first sampler that leaves other candidates, or logits in another order, and the reason.

        Ends in ": " if there is no reason, and is ": " if there is no such sampler.
        """
        chain, array = self.replayed(), self.array
        self.fill(row)
        order: Any = self.case.world.ids
        for at, (kind, arguments) in enumerate(self.case.spec):
            before, was_sorted = array.left.copy(), bool(array.struct.sorted)
            chain.apply_one(at, array)
            saved = array.saved()
            ids, logits, _ = self.beginning(at + 1).apply(self.logits(row), self.mask, allowed=self.allowed)
            left, ours = alive(saved[0]), ids[logits > -np.inf].astype(np.int32)
            x, found = alive(before), None
            if set_of(left["id"]) != set_of(ours):
                sets = (np.isin(x["id"], ours), np.isin(x["id"], left["id"]))
                if kind.name.startswith("mirostat"):
                    arguments = (*arguments, self.mu(arguments))
                    array.restore(saved)
                found = reason(kind.name, arguments, x["logit"].astype(np.float64), *sets)
            elif in_order and not np.array_equal(values_of(ours, left), left["logit"]):
                orders = (positions(ours, x), positions(left["id"], x))
                found = order_reason(kind.name, x["logit"].astype(np.float64), *orders)
            if found is not None:
                return f"{kind.name}: {found or reason_before(before, was_sorted, order)}"
            order = ids
            array.restore(saved)
        return ": "


def positions(ids: Any, candidates: Candidates) -> Any:
    """The position of each id."""
    order = np.argsort(candidates["id"])
    return order[np.searchsorted(candidates["id"][order], ids)]


def values_of(ids: Any, candidates: Candidates) -> Any:
    """The logit of each of the ids."""
    return candidates["logit"][positions(ids, candidates)]


def reason_before(before: Candidates, was_sorted: bool, order: Any) -> str:
    """What llama.cpp's candidates had about them that can lead anywhere; ``order``: ours, at the same place."""
    if is_stale(before, was_sorted):
        return "llama.cpp's flag for an order that no longer holds"
    if np.abs(alive(before)["logit"]).max() > INT_RANGE:
        return "logits past the range that llama.cpp's buckets convert"
    return "" if np.array_equal(order, before["id"]) else "another order of equals before it"


def is_stale(candidates: Candidates, is_sorted: bool) -> bool:
    """Whether llama.cpp holds these to be in descending order, and they are not."""
    return is_sorted and bool((candidates["logit"][1:] > candidates["logit"][:-1]).any())


def alive(candidates: Candidates) -> Candidates:
    """Those above -inf."""
    return candidates[candidates["logit"] > -np.inf]


@dataclass
class Outcome:
    """What both left of one step, candidates at -inf left out; ``ours`` is None for an error."""

    theirs: Candidates
    token: int
    ours: tuple[Any, Any] | None
    """Ids and probabilities."""

    @property
    def is_same_set(self) -> bool:
        return self.ours is not None and set_of(self.ours[0]) == set_of(self.theirs["id"])


def step(pair: FastPair, row: Logits) -> Outcome:
    """One step of both chains."""
    pair.fill(row)
    pair.theirs.apply(pair.array)
    theirs, token = alive(pair.array.left), pair.array.selected
    try:
        ids, logits, p = pair.ours.apply(pair.logits(row), pair.mask, allowed=pair.allowed)
    except (lt.LogitsError, lt.MaskError):
        return Outcome(theirs, token, None)
    return Outcome(theirs, token, (ids[logits > -np.inf], p[logits > -np.inf]))


def entropy_bound(case: Case) -> float:
    """How far llama.cpp's sum of an entropy may put a probability off; 0 where ours is the same sum."""
    n = len(case.world.ids)
    is_bent = n > 1024 and any(kind.name == "temp_ext" and arguments[1] > 0 for kind, arguments in case.spec)
    return sum_bound(n) if is_bent else 0.0


def difference(pair: FastPair, row: Logits, got: Outcome, tally: Tally) -> str:
    """Compares one step: what differs in kind ("survivors", "probability", "token"), after counting it."""
    names = {kind.name for kind, _ in pair.case.spec}
    bound = entropy_bound(pair.case)
    if not got.is_same_set or got.ours is None or np.isnan(got.theirs["logit"]).any():
        found = "error: " if got.ours is None else pair.blame(row, in_order=False)
        if bound > 0 and got.ours is not None and found.endswith(": "):
            found += "the entropy's rounding"
        tally.sets[found] += 1
        return f"survivors by {found}"
    tally.steps.update(names)
    off = distance(got.theirs, *got.ours)
    within = WITHIN + bound
    if off > within and pair.is_stale(row):
        tally.stale += 1
        return "probability, after an order that no longer holds"
    for name in names:
        tally.off[name] = max(tally.off.get(name, 0.0), off)
    if off > within:
        return f"a probability is off by {off:.1e}: "
    ours = pair.ours.pick() if pair.case.selects else got.token
    if ours == got.token:
        return ""
    logit = dict(zip(got.theirs["id"].tolist(), got.theirs["logit"].tolist(), strict=True))
    is_tie = logit.get(ours) == logit.get(got.token)
    found = "equal logits" if is_tie else pair.blame(row, in_order=True)
    if bound > 0 and found == ": ":
        found += "the entropy's rounding"
    tally.tokens.update([f"{name}: {found}" for name in names])
    tally.drawn += found == ": "
    return f"token by {found if found != ': ' else 'the draw'}"


def compare(case: Case, tally: Tally) -> None:
    """Runs one case; where something differs the case ends, for the chains' states do too."""
    pair = FastPair(case)
    for at, row in enumerate(case.rows):
        if event := case.events[at]:
            pair.befall(event, case.back[at])
        got, part = step(pair, row), Tally()
        found = difference(pair, row, got, part)
        if found and pair.nan(row):
            tally.undefined += 1
            return
        tally.compared += 1
        tally.add(part)
        if found.endswith(": "):
            tally.faults.append(f"{case}, step {at}: {found}")
        if found:
            return
        other = case.others[at]
        pair.accept(row, got.token if other < 0 <= got.token else max(other, int(case.world.ids[0])))


def set_of(ids: Any) -> bytes:
    """Ids as something that compares quickly."""
    found: bytes = np.sort(ids.astype(np.int32)).tobytes()
    return found


def distance(theirs: Candidates, ids: Any, p: Any) -> float:
    """The largest difference of our probabilities (of the same candidates) from the exact ones of llama.cpp's logits.

    Where its own p, the f32 sums of which are off by more than that, are nearer, they count.
    """
    if len(theirs) == 0:
        return 0.0
    theirs, mine = theirs[np.argsort(theirs["id"])], p[np.argsort(ids)]
    exact = float(np.abs(mine - softmax(theirs["logit"].astype(np.float64))).max())
    return exact if exact <= WITHIN else min(exact, float(np.abs(mine - theirs["p"]).max()))


def run(cases: int, seed: int = 1) -> Tally:
    """Compares until there are so many comparisons, or 20 faults."""
    tally, number = Tally(), 0
    while tally.compared < cases and len(tally.faults) < 20:
        compare(make(seed, number), tally)
        number += 1
    return tally


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--cases", type=int, default=100_000, help="comparisons (chain, logits, step)")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other cases")
    parser.add_argument("--only", type=int, help="the number of one case to run alone")
    options = parser.parse_args()
    started = time.monotonic()
    tally = Tally()
    if options.only is not None:
        compare(make(options.seed, options.only), tally)
    else:
        tally = run(options.cases, options.seed)
    print(tally)
    print(f"{time.monotonic() - started:.0f} s")
    sys.exit(bool(tally.faults))


if __name__ == "__main__":
    main()
