"""One beam search from its prompts' logits to its hypotheses: which ways go on, what ends, when it is over.

It knows the options, a session and a tree by their interfaces; no runtime, no file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._errors import error
from ..engines import BeamSession
from ..engines._rows import reindex
from ._gumbel import perturb
from ._kept import Ended, Hypothesis, Kept, Penalty
from ._options import Options
from ._paths import FINISHED, Floats, Ints, Paths, Truths
from ._ways import Ways, bases, by_rank, every, possible, ways


@dataclass(frozen=True, slots=True)
class BeamStep:
    """What one step of a beam search left: arrays with an entry a beam, ordered by prompt and group, best first."""

    step: int
    """From 0."""
    prompts: Ints
    """int64 [R]: the prompt's number."""
    parents: Ints
    """int64 [R]: the row of the step before that it goes on from; in the first step the prompt's group."""
    tokens: Ints
    """int64 [R]: what was read."""
    scores: Floats
    """float64 [R]: the log-probability of the path, in nats."""
    states: Ints
    """int64 [R]: the tree's states."""
    finished: int
    """How many finished sequences are kept so far, over all prompts."""


OnBeamStep = Callable[[BeamStep], None]
"""Called after each step."""


class _Beams(NamedTuple):
    """The beams after a step, ordered by owner, best first. An owner is a prompt's group."""

    owners: Ints
    states: Ints
    scores: Floats
    noisy: Floats
    """With sampling the perturbed scores, else the scores."""


class _Past(NamedTuple):
    """How the beams of a step came about."""

    parents: Ints
    tokens: Ints
    gains: Floats


class Run:
    """One search over the prompts that fit into one session."""

    def __init__(
        self,
        session: BeamSession,
        paths: Paths,
        options: Options,
        first: int,
        prompts: int,
        on_step: OnBeamStep,
        stopped: Callable[[], bool],
    ) -> None:
        self.session, self.paths, self.options = session, paths, options
        self.first = first
        """The number of the first prompt."""
        self.on_step, self.stopped = on_step, stopped
        self.owners = prompts * options.groups
        self.kept = [Kept(-(-options.returned // options.groups)) for _ in range(self.owners)]
        self.past: list[_Past] = []
        sampling = options.seed is not None
        weighted = bool(getattr(paths, "weighted", True))
        self.penalty = Penalty(
            0.0 if sampling else options.length_penalty,
            options.max_tokens or math.inf,
            sampling or options.normalize == "allowed" or (options.normalize == "vocabulary" and not weighted),
        )
        self.generators = [np.random.default_rng((options.seed or 0, first + i)) for i in range(prompts)]

    def search(self, prompts: list[list[int]]) -> list[list[Hypothesis]]:
        """Steps until no beam goes on; gives each prompt's hypotheses."""
        beams = self._begin()
        rows = beams.owners // self.options.groups
        logits: Any = self.session.begin(prompts)
        if self.options.groups > 1:
            logits = logits[rows]
        last = math.inf if self.options.max_tokens is None else self.options.max_tokens
        step = 0
        while len(beams.states) and step < last and not self.stopped():
            if self.options.temperature != 1.0:
                logits = np.divide(logits, np.float32(self.options.temperature))
            chosen = self._step(step, beams, logits)
            parents = reindex(chosen.rows, len(beams.states))
            self.past.append(_Past(parents, chosen.tokens, chosen.scores - beams.scores[parents]))
            before, beams = beams, _Beams(beams.owners[parents], chosen.states, chosen.scores, chosen.ranks)
            self._tell(step, parents, chosen, beams)
            step += 1
            if len(beams.states) and step < last:
                source = parents if step > 1 else before.owners[parents] // self.options.groups
                logits = self.session.step(source, chosen.tokens)
        return [self._found(i) for i in range(len(prompts))]

    def _begin(self) -> _Beams:
        """One beam for each prompt and group, at the start."""
        owners = np.arange(self.owners, dtype=np.int64)
        states = np.full(self.owners, self.paths.start, np.int64)
        return _Beams(owners, states, np.zeros(self.owners), np.zeros(self.owners))

    def _tell(self, step: int, parents: Ints, chosen: Ways, beams: _Beams) -> None:
        finished = sum(len(kept.best) for kept in self.kept)
        prompts = self.first + beams.owners // self.options.groups
        self.on_step(BeamStep(step, prompts, parents, chosen.tokens, chosen.scores, chosen.states, finished))

    # -- one step

    def _step(self, step: int, beams: _Beams, logits: Any) -> Ways:
        """Keeps what ends and gives what goes on, ordered by owner, best first."""
        width = self.options.width_at(step)
        if self.options.seed is not None:
            found = self._sampled(beams, logits)
        elif self.options.groups > 1:
            return self._diverse(step, width, beams, logits)
        else:
            found = self._best(step, width, beams, logits)
        ends, goes = self._kinds(beams, found)
        parts = [np.zeros(0, np.int64)]
        for owner, mine in _portions(beams.owners[found.rows]):
            going, _ = self._take(step, width, owner, beams, found, ends, goes, np.arange(mine.start, mine.stop))
            parts.append(going[self._hopeful(step, owner, found.ranks[going])])
        return found.only(np.concatenate(parts))

    def _take(
        self, step: int, width: int, owner: int, beams: _Beams, found: Ways, ends: Truths, goes: Truths, order: Ints
    ) -> tuple[Ints, list[int]]:
        """Walks down an owner's ways until `width` go on: those, and which of the ended ones are kept."""
        on = np.flatnonzero(goes[order])
        if len(on) >= width:
            order = order[: on[width - 1] + 1]
        kept, length, offered = self.kept[owner], step + 1, []
        if self.options.seed is not None and np.any(ends[order] & goes[order]):
            raise error(
                _core.ConstraintError,
                "an item is the beginning of another, and no end token tells them apart",
                help="sampling needs a probability for the end: build the tree with an end token",
            )
        for at in map(int, order[ends[order]]):
            rank = self.penalty.rank(float(found.ranks[at]), length)
            parent, token, score = int(found.rows[at]), int(found.tokens[at]), float(found.scores[at])
            state = int(beams.states[parent]) if self.paths.end is not None else int(found.states[at])
            ended = Ended(rank, score, step, parent, token, score - float(beams.scores[parent]), state)
            if not kept.offer(ended):
                break
            offered.append(at)
        return order[goes[order]], offered

    def _hopeful(self, step: int, owner: int, values: Floats) -> Truths:
        """Whether beams with these scores after this step can still beat the worst that the owner has kept."""
        kept = self.kept[owner]
        if len(kept.best) < kept.room:
            return np.ones(len(values), np.bool_)
        return np.array([self.penalty.bound(float(value), step + 2) > kept.worst for value in values], np.bool_)

    def _best(self, step: int, width: int, beams: _Beams, logits: Any) -> Ways:
        """As many of the best ways of each owner as are needed: `width` that go on, or all that may matter.

        Equal to all of them, ordered: what is left out comes after `width` that go on, or cannot be returned.
        """
        base = bases(self.paths, self.options.normalize, beams.states, logits, beams.scores)
        # A beam whose item may end here has one way on that takes none of the places of those that go on.
        many = width
        if self.paths.end is not None:
            may_end = self.paths.complete(beams.states)
            many += max((int(np.sum(may_end[mine])) for _, mine in _portions(beams.owners)), default=0)
        found = ways(self.paths.top(beams.states, logits, base, many, owners=beams.owners))
        ends, goes = self._kinds(beams, found)
        lacking = [
            (owner, np.count_nonzero(goes[mine]), np.count_nonzero(ends[mine]))
            for owner, mine in _portions(beams.owners[found.rows])
            if self._lacks(step, width, many, owner, found.only(mine), ends[mine], goes[mine])
        ]
        if not lacking:
            return found
        # Where items are equally long, nothing goes on at the last token: to know it is cheaper than to sort it all. Of
        # what ends only the best are kept.
        whole = possible(self.paths, beams.states, logits, base)
        _, on = self._kinds(beams, whole)
        going = np.bincount(beams.owners[whole.rows[on]], minlength=self.owners)
        if all(going[owner] == seen and ended >= self.kept[owner].room for owner, seen, ended in lacking):
            return found
        return by_rank(whole, beams.owners)

    def _lacks(self, step: int, width: int, many: int, owner: int, found: Ways, ends: Truths, goes: Truths) -> bool:
        """Whether ways of this owner may have been left out that matter; `found`: its own."""
        if len(found.rows) < many or np.count_nonzero(goes) >= width:
            return False
        length = step + 1
        ranks = np.array([self.penalty.rank(score, length) for score in found.scores[ends]])
        worst = self.kept[owner].worst_with(ranks)
        return self.penalty.bound(float(found.scores[-1]), length) > worst

    def _sampled(self, beams: _Beams, logits: Any) -> Ways:
        """All ways on with their noise, ordered by it."""
        allowed = every(self.paths, "allowed", beams.states, logits, beams.scores)
        begins = np.searchsorted(beams.owners[allowed.rows], np.arange(self.owners + 1))
        noisy = np.concatenate(
            [
                perturb(generator, allowed.rows[begin:end], allowed.scores[begin:end], beams.noisy)
                for generator, begin, end in zip(self.generators, begins[:-1], begins[1:], strict=True)
            ]
        )
        return by_rank(allowed._replace(ranks=noisy), beams.owners)

    def _diverse(self, step: int, width: int, beams: _Beams, logits: Any) -> Ways:
        """Group after group: what earlier groups of the prompt took in this step ranks lower.

        A prompt goes on while any of its beams can beat something.
        """
        found = every(self.paths, self.options.normalize, beams.states, logits, beams.scores)
        ends, goes = self._kinds(beams, found)
        parts: list[list[Ints]] = [[] for _ in self.generators]
        hope = np.zeros(len(parts), np.bool_)
        counts: dict[int, Floats] = {}
        ranked = found._replace(ranks=found.ranks.copy())
        for owner, mine in _portions(beams.owners[found.rows]):
            prompt = owner // self.options.groups
            count = counts.setdefault(prompt, np.zeros(self.paths.vocabulary_size))
            ranked.ranks[mine] -= self.options.diversity * count[found.tokens[mine]]
            order = mine.start + np.lexsort((found.tokens[mine], found.rows[mine], -ranked.ranks[mine]))
            going, offered = self._take(step, width, owner, beams, ranked, ends, goes, order)
            np.add.at(count, found.tokens[np.union1d(going, np.array(offered, np.int64))], 1.0)
            parts[prompt].append(going)
            hope[prompt] |= bool(np.any(self._hopeful(step, owner, found.scores[going])))
        # What a hopeless beam takes still counts for the other groups, so a prompt's beams go on or end together.
        some = [going for prompt, its in enumerate(parts) if hope[prompt] for going in its]
        return found.only(np.concatenate([np.zeros(0, np.int64), *some]))

    def _kinds(self, beams: _Beams, found: Ways) -> tuple[Truths, Truths]:
        """Which ways end an item, and which go on."""
        alive = found.states >= 0
        ends = np.zeros(len(alive), np.bool_)
        if self.paths.end is not None:
            finished = found.states == FINISHED
            ends[finished] = self.paths.complete(beams.states[found.rows[finished]])
            return ends, alive
        goes = np.zeros(len(alive), np.bool_)
        ends[alive] = self.paths.complete(found.states[alive])
        goes[alive] = self.paths.open(found.states[alive])
        return ends, goes

    # -- the result

    def _found(self, prompt: int) -> list[Hypothesis]:
        """The hypotheses of a prompt, all its groups together, the best first."""
        groups = self.options.groups
        ended = [e for kept in self.kept[prompt * groups : (prompt + 1) * groups] for e in kept.best]
        hypotheses = {made.tokens: made for made in map(self._hypothesis, ended)}
        sampling = self.options.seed is not None
        order = sorted(hypotheses.values(), key=lambda h: -(h.perturbed or 0.0) if sampling else -h.score)
        return order[: self.options.returned]

    def _hypothesis(self, ended: Ended) -> Hypothesis:
        """Walks back from an ended sequence to the prompt."""
        tokens, gains, row = [ended.token], [ended.gain], ended.parent
        for past in reversed(self.past[: ended.step]):
            tokens.append(int(past.tokens[row]))
            gains.append(float(past.gains[row]))
            row = int(past.parents[row])
        return Hypothesis(
            tuple(reversed(tokens)),
            tuple(int(item) for item in self.paths.items(ended.state)),
            ended.score / math.pow(len(tokens), self.options.length_penalty),
            ended.score,
            tuple(reversed(gains)),
            ended.rank if self.options.seed is not None else None,
        )


def _portions(owners: Ints) -> Iterator[tuple[int, slice]]:
    """Each owner with the slice that is its own; owners do not decrease."""
    begins = np.flatnonzero(np.diff(owners, prepend=-1))
    for begin, size in zip(begins, np.diff(begins, append=len(owners)), strict=True):
        yield int(owners[begin]), slice(int(begin), int(begin + size))
