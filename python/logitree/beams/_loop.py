"""One beam search from its prompts' logits to its hypotheses: what continues, what ends, when it is over."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np

from .. import _core
from .._errors import EngineError, error
from ..engines import ContextFull, Session
from ..engines._rows import reindex
from ._gumbel import perturb
from ._options import Options
from ._scores import Continuations, bases, by_rank, every, portions, possible, scored
from ._survivors import Ended, Hypothesis, Penalty, Survivors
from ._walk import FINISHED, Floats, Ints, TokenWalk, Truths


@dataclass(frozen=True, slots=True)
class BeamStep:
    """What one step of a beam search left: arrays with an entry a beam, ordered by prompt and group, best first."""

    step: int
    """From 0."""
    prompts: Ints
    """int64 [R]: the prompt's number."""
    parents: Ints
    """int64 [R]: the row of the step before that it continues; in the first step the prompt's group."""
    tokens: Ints
    """int64 [R]: the token."""
    scores: Floats
    """float64 [R]: the log-probability of the tokens so far, in nats."""
    states: Ints
    """int64 [R]: the walk's states."""
    finished: int
    """How many finished sequences are kept so far, over all prompts."""


OnBeamStep = Callable[[BeamStep], None]
"""Called after each step."""


class _Beams(NamedTuple):
    """The beams after a step, ordered by group, best first. A group of beams belongs to one prompt."""

    groups: Ints
    states: Ints
    scores: Floats
    noisy: Floats
    """With sampling the perturbed scores, else the scores."""


class _Past(NamedTuple):
    """How the beams of a step came about."""

    parents: Ints
    tokens: Ints
    gains: Floats


class Search:
    """One search over the prompts that fit into one session."""

    def __init__(
        self,
        session: Session,
        walk: TokenWalk,
        options: Options,
        first: int,
        prompts: int,
        on_step: OnBeamStep,
        stopped: Callable[[], bool],
    ) -> None:
        self.session, self.walk, self.options = session, walk, options
        self.first = first
        """The number of the first prompt."""
        self.on_step, self.stopped = on_step, stopped
        self.groups = prompts * options.groups
        self.kept = [Survivors(-(-options.returned // options.groups)) for _ in range(self.groups)]
        self.past: list[_Past] = []
        sampling = options.seed is not None
        self.penalty = Penalty(
            0.0 if sampling else options.length_penalty,
            options.max_tokens or math.inf,
            sampling or options.normalize == "allowed" or (options.normalize == "vocabulary" and not walk.weighted),
        )
        self.generators = [np.random.default_rng((options.seed or 0, first + i)) for i in range(prompts)]

    def run(self, prompts: list[list[int]], grain: int | None) -> Generator[None, None, list[list[Hypothesis]]]:
        """Steps until no beam is left, one at a time, and returns each prompt's hypotheses. Of longer prompts a step
        evaluates `grain` tokens."""
        beams = self._begin()
        rows = beams.groups // self.options.groups
        rest = [list(prompt) for prompt in prompts]
        while grain is not None and any(len(tokens) > grain for tokens in rest):
            self._fed([tokens[:grain] if len(tokens) > grain else [] for tokens in rest])
            rest = [tokens[grain:] if len(tokens) > grain else tokens for tokens in rest]
            yield
        logits = self._evaluated(rest)
        if self.options.groups > 1:
            logits = logits[rows]
        last = math.inf if self.options.max_tokens is None else self.options.max_tokens
        step = 0
        while len(beams.states) and step < last and not self.stopped():
            if self.options.temperature != 1.0:
                with np.errstate(over="ignore"):  # what is too large is an error where it counts
                    logits = np.divide(logits, np.float32(self.options.temperature))
            chosen = self._step(step, beams, logits)
            parents = reindex(chosen.rows, len(beams.states))
            self.past.append(_Past(parents, chosen.tokens, chosen.scores - beams.scores[parents]))
            before, beams = beams, _Beams(beams.groups[parents], chosen.states, chosen.scores, chosen.ranks)
            self._tell(step, parents, chosen, beams)
            step += 1
            yield
            if len(beams.states) and step < last:
                source = parents if step > 1 else before.groups[parents] // self.options.groups
                self.session.reorder(source)
                logits = self._evaluated([[token] for token in chosen.tokens.tolist()])
        return [self._found(i, beams) for i in range(len(prompts))]

    def _begin(self) -> _Beams:
        """One beam for each prompt and group, at the start."""
        groups = np.arange(self.groups, dtype=np.int64)
        states = np.full(self.groups, self.walk.start, np.int64)
        return _Beams(groups, states, np.zeros(self.groups), np.zeros(self.groups))

    def _evaluated(self, tokens: list[list[int]]) -> Any:
        """The logits after these tokens of each row: [R, V]."""
        return np.asarray(self._fed(tokens))

    def _fed(self, tokens: list[list[int]]) -> Any:
        """The logits after these tokens of each row that has some."""
        try:
            return self.session.evaluate_rows(tokens)
        except ContextFull:
            message = "the context has no room for the beams"
            raise EngineError(message, help="shorten the prompt, or load the model with a larger n_ctx") from None

    def _tell(self, step: int, parents: Ints, chosen: Continuations, beams: _Beams) -> None:
        finished = sum(len(kept.best) for kept in self.kept)
        prompts = self.first + beams.groups // self.options.groups
        self.on_step(BeamStep(step, prompts, parents, chosen.tokens, chosen.scores, chosen.states, finished))

    # -- one step

    def _step(self, step: int, beams: _Beams, logits: Any) -> Continuations:
        """Keeps what ends and returns what continues, ordered by group, best first."""
        width = self.options.width_at(step)
        if self.options.seed is not None:
            found = self._sampled(beams, logits)
        elif self.options.groups > 1:
            return self._diverse(step, width, beams, logits)
        else:
            found = self._best(step, width, beams, logits)
        ends, goes = self._kinds(beams, found)
        parts = [np.zeros(0, np.int64)]
        for group, mine in portions(beams.groups[found.rows]):
            going, _ = self._take(step, width, group, beams, found, ends, goes, np.arange(mine.start, mine.stop))
            parts.append(going[self._hopeful(step, group, found.ranks[going])])
        return found.only(np.concatenate(parts))

    def _take(
        self,
        step: int,
        width: int,
        group: int,
        beams: _Beams,
        found: Continuations,
        ends: Truths,
        goes: Truths,
        order: Ints,
    ) -> tuple[Ints, list[int]]:
        """Takes a group's continuations until `width` go to the next step: those, and which ended ones are kept."""
        on = np.flatnonzero(goes[order])
        if len(on) >= width:
            order = order[: on[width - 1] + 1]
        kept, length, offered = self.kept[group], step + 1, []
        if self.options.seed is not None and np.any(ends[order] & goes[order]):
            raise error(
                _core.ConstraintError,
                "an item is the beginning of another, and no end token distinguishes them",
                help="sampling needs a probability for the end: walk the catalogue with an end token",
            )
        for at in map(int, order[ends[order]]):
            rank = self.penalty.rank(float(found.ranks[at]), length)
            parent, token, score = int(found.rows[at]), int(found.tokens[at]), float(found.scores[at])
            state = int(beams.states[parent]) if self.walk.end is not None else int(found.states[at])
            ended = Ended(rank, score, step, parent, token, score - float(beams.scores[parent]), state)
            if not kept.offer(ended):
                break
            offered.append(at)
        return order[goes[order]], offered

    def _hopeful(self, step: int, group: int, values: Floats) -> Truths:
        """Whether beams with these scores after this step can still beat the worst that the group has kept."""
        kept = self.kept[group]
        if len(kept.best) < kept.room:
            return np.ones(len(values), np.bool_)
        return np.array([self.penalty.bound(float(value), step + 2) > kept.worst for value in values], np.bool_)

    def _best(self, step: int, width: int, beams: _Beams, logits: Any) -> Continuations:
        """As many of the best continuations of each group as are needed: `width` to continue, or all that matter.

        Equal to all of them, ordered: what is left out comes after `width` for the next step, or cannot be returned.
        """
        base = bases(self.walk, self.options.normalize, beams.states, logits, beams.scores)
        # The end of an item does not take the place of a beam.
        many = width
        if self.walk.end is not None:
            may_end = self.walk.is_item(beams.states)
            many += max((int(np.sum(may_end[mine])) for _, mine in portions(beams.groups)), default=0)
        found = scored(self.walk.top(beams.states, logits, base, many, groups=beams.groups))
        ends, goes = self._kinds(beams, found)
        lacking = [
            (group, np.count_nonzero(goes[mine]), np.count_nonzero(ends[mine]))
            for group, mine in portions(beams.groups[found.rows])
            if self._lacks(step, width, many, group, found.only(mine), ends[mine], goes[mine])
        ]
        if not lacking:
            return found
        # Where items are equally long, nothing continues after the last token: testing that is cheaper than sorting. Of
        # what ends only the best are kept.
        whole = possible(self.walk, beams.states, logits, base)
        _, on = self._kinds(beams, whole)
        going = np.bincount(beams.groups[whole.rows[on]], minlength=self.groups)
        if all(going[group] == seen and ended >= self.kept[group].room for group, seen, ended in lacking):
            return found
        return by_rank(whole, beams.groups)

    def _lacks(
        self, step: int, width: int, many: int, group: int, found: Continuations, ends: Truths, goes: Truths
    ) -> bool:
        """Whether ways of this group may have been left out that matter; `found`: its own."""
        if len(found.rows) < many or np.count_nonzero(goes) >= width:
            return False
        length = step + 1
        ranks = np.array([self.penalty.rank(score, length) for score in found.scores[ends]])
        worst = self.kept[group].worst_with(ranks)
        return self.penalty.bound(float(found.scores[-1]), length) > worst

    def _sampled(self, beams: _Beams, logits: Any) -> Continuations:
        """All continuations with their noise, ordered by it."""
        allowed = every(self.walk, "allowed", beams.states, logits, beams.scores)
        begins = np.searchsorted(beams.groups[allowed.rows], np.arange(self.groups + 1))
        noisy = np.concatenate(
            [
                perturb(generator, allowed.rows[begin:end], allowed.scores[begin:end], beams.noisy)
                for generator, begin, end in zip(self.generators, begins[:-1], begins[1:], strict=True)
            ]
        )
        return by_rank(allowed._replace(ranks=noisy), beams.groups)

    def _diverse(self, step: int, width: int, beams: _Beams, logits: Any) -> Continuations:
        """Group after group: what earlier groups of the prompt took in this step ranks lower.

        A prompt continues while any of its beams can beat something.
        """
        found = every(self.walk, self.options.normalize, beams.states, logits, beams.scores)
        ends, goes = self._kinds(beams, found)
        parts: list[list[Ints]] = [[] for _ in self.generators]
        hope = np.zeros(len(parts), np.bool_)
        counts: dict[int, Floats] = {}
        ranked = found._replace(ranks=found.ranks.copy())
        for group, mine in portions(beams.groups[found.rows]):
            prompt = group // self.options.groups
            count = counts.setdefault(prompt, np.zeros(self.walk.vocabulary_size))
            ranked.ranks[mine] -= self.options.diversity * count[found.tokens[mine]]
            order = mine.start + np.lexsort((found.tokens[mine], found.rows[mine], -ranked.ranks[mine]))
            going, offered = self._take(step, width, group, beams, ranked, ends, goes, order)
            np.add.at(count, found.tokens[np.union1d(going, np.array(offered, np.int64))], 1.0)
            parts[prompt].append(going)
            hope[prompt] |= bool(np.any(self._hopeful(step, group, found.scores[going])))
        # What a hopeless beam takes still counts for the other groups, so a prompt's beams continue or end together.
        some = [going for prompt, its in enumerate(parts) if hope[prompt] for going in its]
        return found.only(np.concatenate([np.zeros(0, np.int64), *some]))

    def _kinds(self, beams: _Beams, found: Continuations) -> tuple[Truths, Truths]:
        """Which continuations end an item, and which can be continued."""
        alive = found.states >= 0
        ends = np.zeros(len(alive), np.bool_)
        if self.walk.end is not None:
            finished = found.states == FINISHED
            ends[finished] = self.walk.is_item(beams.states[found.rows[finished]])
            return ends, alive
        goes = np.zeros(len(alive), np.bool_)
        ends[alive] = self.walk.is_item(found.states[alive])
        goes[alive] = self.walk.may_continue(found.states[alive])
        return ends, goes

    # -- the result

    def _found(self, prompt: int, beams: _Beams) -> list[Hypothesis]:
        """The hypotheses of a prompt, all its groups together, the best first. `beams`: those that were left."""
        groups = self.options.groups
        ended = [e for kept in self.kept[prompt * groups : (prompt + 1) * groups] for e in kept.best]
        found = self._ordered(map(self._hypothesis, ended))
        if self.options.unfinished and len(found) < self.options.returned and self.past:
            left = self._ordered(
                replace(self._hypothesis(self._cut(row, beams)), complete=False)
                for row in map(int, np.flatnonzero(beams.groups // groups == prompt))
            )
            found += left
        return found[: self.options.returned]

    def _ordered(self, some: Iterable[Hypothesis]) -> list[Hypothesis]:
        """Hypotheses, each once, the best first."""
        different = {made.tokens: made for made in some}.values()
        sampling = self.options.seed is not None
        return sorted(different, key=lambda h: -(h.perturbed or 0.0) if sampling else -h.score)

    def _cut(self, row: int, beams: _Beams) -> Ended:
        """A beam as if it had ended where it is."""
        past, step = self.past[-1], len(self.past) - 1
        rank = self.penalty.rank(float(beams.noisy[row]), step + 1)
        score, state = float(beams.scores[row]), int(beams.states[row])
        return Ended(rank, score, step, int(past.parents[row]), int(past.tokens[row]), float(past.gains[row]), state)

    def _hypothesis(self, ended: Ended) -> Hypothesis:
        """Walks back from an ended sequence to the prompt."""
        tokens, gains, row = [ended.token], [ended.gain], ended.parent
        for past in reversed(self.past[: ended.step]):
            tokens.append(int(past.tokens[row]))
            gains.append(float(past.gains[row]))
            row = int(past.parents[row])
        return Hypothesis(
            tuple(reversed(tokens)),
            cast(Any, tuple(item if isinstance(item, str) else int(item) for item in self.walk.items(ended.state))),
            ended.score / math.pow(len(tokens), self.options.length_penalty),
            ended.score,
            tuple(reversed(gains)),
            ended.rank if self.options.seed is not None else None,
        )
