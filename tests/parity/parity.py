"""Holds ``Chain.parity()`` to llama.cpp: `python tests/parity/parity.py --cases 1000000`.

A comparison is one (chain, logits, step): llama.cpp's ``llama_sampler_apply`` and our ``apply`` must leave the same ids
in the same order, the same logits bit for bit, and the same selected token. A chain lives for some steps and accepts
a token after each, so that generators, histories and running means are compared too; in between it may be cloned,
reset, saved and restored, or rolled back (llama.cpp cannot roll back: it gets a fresh chain that repeats the steps).

Where llama.cpp computes NaN (see :func:`nan_in`), its result means nothing: such steps are counted apart, and the case
ends there.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

import logitree as lt
from parity_cases import Case, Logits, make
from parity_llama import TOKEN_DATA, Array, Candidates, LlamaChain
from parity_samplers import KINDS


@dataclass
class Tally:
    """What was compared."""

    equal: int = 0
    undefined: Counter[str] = field(default_factory=Counter)
    """Steps at which llama.cpp computed NaN and ours gave something else, by reason and by what ours did."""
    samplers: Counter[str] = field(default_factory=Counter)
    sizes: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Takes another tally in."""
        self.equal += other.equal
        self.undefined += other.undefined
        self.samplers += other.samplers
        self.sizes += other.sizes
        self.events += other.events
        self.differences += other.differences

    @property
    def compared(self) -> int:
        """Comparisons: all but those where llama.cpp's own result means nothing."""
        return self.equal + len(self.differences)

    def __str__(self) -> str:
        lines = [f"{self.compared} comparisons, {len(self.differences)} differences"]
        lines += [f"  {self.undefined.total()} steps apart, where llama.cpp computes NaN or leaves what is not allowed"]
        lines += [f"    {count:8} {what}" for what, count in sorted(self.undefined.items())]
        for title, counter in (("with", self.samplers), ("candidates", self.sizes), ("after a", self.events)):
            lines += [f"  {title} {what}: {count}" for what, count in sorted(counter.items())]
        return "\n".join(lines + self.differences[:20])


class Pair:
    """llama.cpp's chain and ours, step by step through one case."""

    array = Array()

    def __init__(self, case: Case) -> None:
        self.case = case
        self.theirs = self.llama_chain()
        self.ours = self.our_chain()
        self.history = case.history
        self.taken: list[tuple[Logits, int]] = []
        """Logits and accepted token of each step since the beginning, or since the last reset."""
        for token in self.history:
            self.theirs.accept(token)
            self.ours.accept(token)
        self.template = np.zeros(len(case.world.ids), TOKEN_DATA)
        self.template["id"] = case.world.ids
        self.is_masked = len(case.world.ids) < case.world.size
        self.full = np.full(case.world.size, np.nan, np.float32)
        self.allowed = self.mask = None
        if self.is_masked and case.as_words:
            self.mask = lt.masks.from_ids(case.world.size, case.world.ids.tolist())
        elif self.is_masked:
            self.allowed = case.world.ids.tolist()

    def llama_chain(self) -> LlamaChain:
        return LlamaChain([kind.theirs(arguments, self.case.world) for kind, arguments in self.case.spec])

    def our_chain(self) -> lt.Chain:
        return lt.Chain([kind.ours(arguments) for kind, arguments in self.case.spec]).parity()

    def fill(self, row: Logits) -> None:
        """Puts the candidates into llama.cpp's array."""
        self.template["logit"] = row
        self.array.fill(self.template)

    def logits(self, row: Logits) -> Logits:
        """The logits as we are given them: of the whole vocabulary, NaN for what is no candidate."""
        if self.is_masked:
            self.full[self.case.world.ids] = row
            return self.full
        return row

    def replayed(self) -> LlamaChain:
        """A fresh llama.cpp chain that has gone through all that was taken."""
        chain = self.llama_chain()
        for token in self.history:
            chain.accept(token)
        for row, token in self.taken:
            self.fill(row)
            chain.apply(self.array)
            chain.accept(token)
        return chain

    def befall(self, event: str, back: int) -> None:
        """Lets something happen to both chains."""
        if event == "clone":
            original, self.ours = self.ours, self.ours.fork()
            if all(kind.clones for kind, _ in self.case.spec):
                self.theirs = self.theirs.clone()
            # What the original does afterwards is nothing to the copy.
            original.accept(0)
        elif event == "reset":
            self.theirs.reset()
            self.ours.reset()
            self.history, self.taken = (), []
        elif event == "snapshot":
            saved, self.ours = self.ours.snapshot(), self.our_chain()
            self.ours.restore(saved)
        elif event == "rollback":
            back = min(back, len(self.taken))
            self.ours.rollback(back)
            del self.taken[len(self.taken) - back :]
            self.theirs = self.replayed()

    def step(self, row: Logits) -> tuple[str, int]:
        """One step of both: what differs (nothing, it is to be hoped), and the token that was selected (or -1)."""
        self.fill(row)
        self.theirs.apply(self.array)
        left, token = self.array.left, self.array.selected
        try:
            ids, values, _ = self.ours.apply(self.logits(row), self.mask, allowed=self.allowed)
        except (lt.LogitsError, lt.MaskError) as error:
            return f"ours is an error: {error}", token
        if ids.tobytes() != left["id"].tobytes():
            return f"ids {shown(ids)}, llama.cpp {shown(left['id'])}", token
        if values.tobytes() != left["logit"].tobytes():
            return f"logits {shown(values)}, llama.cpp {shown(left['logit'])}", token
        if self.case.selects and self.ours.pick() != token:
            return f"token {self.ours.pick()}, llama.cpp {token}", token
        return "", token

    def accept(self, row: Logits, token: int) -> None:
        """Both accept the token that follows this step."""
        self.theirs.accept(token)
        self.ours.accept(token)
        self.taken.append((row, token))

    def nan(self, row: Logits) -> str:
        """Why llama.cpp's result for this step means nothing; empty if it does mean something."""
        chain = self.replayed()
        self.fill(row)
        for at, (kind, _) in enumerate(self.case.spec):
            before = self.array.left.copy()
            was_sorted = bool(self.array.struct.sorted)
            chain.apply_one(at, self.array)
            with np.errstate(invalid="ignore"):
                found = nan_in(kind.name, kind.softmax, before, was_sorted, self.array.left)
            if found:
                return found
        return ""


def nan_in(name: str, softmax: bool, before: Candidates, was_sorted: bool, after: Candidates) -> str:
    """Why llama.cpp computed NaN in this sampler; empty if it did not."""
    logits = before["logit"]
    if np.isnan(after["logit"]).any():
        return f"{name}: NaN among the logits"
    if name == "infill" and not np.isin(after["id"], before["id"]).all():
        return "infill: adds a token that is no candidate"
    if after["logit"].max() == -np.inf:
        return f"{name}: leaves no candidate above -inf"
    if softmax and len(before) > 1:
        best = logits[0] if was_sorted else logits.max()
        if best == -np.inf:
            return f"{name}: holds -inf to be the best logit"
        if np.isnan(after["p"]).any():
            return f"{name}: NaN among the probabilities"
        if name == "typ_p":
            e = np.exp(logits - logits.max())
            if (e / e.sum() == 0).any():
                return f"{name}: a candidate without probability, hence NaN for the entropy"
    return ""


def shown(values: np.ndarray) -> str:
    """The beginning of a list, and its length."""
    return f"[{', '.join(str(v) for v in values[:8])}{', ...' if len(values) > 8 else ''}] ({len(values)})"


def compare(case: Case, tally: Tally) -> None:
    """Runs one case to its end, or to its first step that is not equal."""
    pair = Pair(case)
    for step, row in enumerate(case.rows):
        if event := case.events[step]:
            pair.befall(event, case.back[step])
            tally.events[event] += 1
        difference, token = pair.step(row)
        if difference:
            if reason := pair.nan(row):
                did = "an error" if difference.startswith("ours is an error") else "another result"
                tally.undefined[f"{reason}; ours: {did}"] += 1
            else:
                tally.differences.append(f"{case}, step {step} after {case.events[: step + 1]}: {difference}")
            return
        tally.equal += 1
        tally.samplers.update({kind.name for kind, _ in case.spec})
        tally.sizes[size_class(len(case.world.ids))] += 1
        other = case.others[step]
        pair.accept(row, token if other < 0 <= token else max(other, int(case.world.ids[0])))


def size_class(n: int) -> str:
    """The sizes between which llama.cpp goes another way."""
    for name, least in (
        ("32,000 to 262,144", 32_000),
        ("1,025 to 5,000", 1025),
        ("129 to 1,024", 129),
        ("2 to 128", 2),
    ):
        if n >= least:
            return name
    return "1"


def run(cases: int, seed: int = 1, first: int = 0, progress: bool = False) -> Tally:
    """Compares, from the case ``first`` on, until there are so many comparisons, or 20 differences."""
    tally, number, started = Tally(), first, time.monotonic()
    while tally.compared < cases and len(tally.differences) < 20:
        compare(make(seed, number), tally)
        number += 1
        if progress and number % 10_000 == 0:
            rate = tally.compared / (time.monotonic() - started)
            print(f"{tally.compared} comparisons, {rate:.0f} a second", file=sys.stderr, flush=True)
    return tally


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--cases", type=int, default=100_000, help="comparisons (chain, logits, step)")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other cases")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", type=int, help="the number of one case to run alone")
    options = parser.parse_args()
    tally, started = Tally(), time.monotonic()
    if options.only is not None:
        case = make(options.seed, options.only)
        print(case)
        compare(case, tally)
    elif options.jobs == 1:
        tally = run(options.cases, options.seed, progress=True)
    else:
        share = -(-options.cases // options.jobs)
        with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
            parts = [(share, options.seed, job * 10**8, job == 0) for job in range(options.jobs)]
            for part in pool.starmap(run, parts):
                tally.add(part)
    print(tally)
    seconds = time.monotonic() - started
    print(f"{seconds:.0f} s, {tally.compared / seconds:.0f} comparisons a second; {len(KINDS)} samplers")
    sys.exit(bool(tally.differences))


if __name__ == "__main__":
    main()
