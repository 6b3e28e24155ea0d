"""The decoding loop of one or several sequences: what needs no logits, one forward pass over what the model has not
seen and what is proposed, one sampled token for each proposal that was right and one more, again. `Loop.step` is the
whole of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from . import _core
from ._errors import EngineError, error
from ._events import Progress
from ._row import Row, Taken
from .engines import ContextFull, Engine, Logits, Rows, Session
from .engines._rows import common_prefix
from .engines._session import as_session


class Loop:
    """Rows that one engine decodes together. Rows may join at any time, and leave when they are over.

    Args:
        engine: what the session is of.
        session: the engine's memory of the rows.
        places: how many rows there may be at once. More than have joined at first need a session that `can_restart`.
    """

    def __init__(self, engine: Engine, session: Session, places: int) -> None:
        self._session = session
        self._grain = engine.n_batch or 1 << 62
        self._places: list[Row | None] = [None] * places

    @property
    def room(self) -> int:
        """How many rows may join."""
        return self._places.count(None)

    @property
    def rows(self) -> list[Row]:
        """The rows that have joined and are not over."""
        return [row for _, row in self._active()]

    def join(self, row: Row) -> None:
        """Begins a row, with what needs no logits. There must be room."""
        at = self._places.index(None)
        row.began = time.perf_counter()
        self._guarded(row, self._begin)
        if not row.over:
            self._places[at] = row
            row.reused = self._session.begin(row.unseen, at)
            del row.unseen[: row.reused]
            row.to_prefill = len(row.unseen)

    def step(self) -> bool:
        """One forward pass, and what it decides; and before it one over a part of each prompt that is longer than a
        pass, so that the other rows wait for no more than that. False: there are no rows.

        Raises:
            EngineError: the engine failed; the rows are not over.
        """
        for row in self.rows:
            if row.cancelled:
                row.end("cancelled")
        self._leave()
        if not self._active():
            return False
        self._prefill()
        if not self._drafted_step():
            self._step()
        self._leave()
        return True

    def _begin(self, row: Row) -> None:
        row.check()
        if not row.over:
            self._take(row, row.settled([]))

    def _active(self) -> list[tuple[int, Row]]:
        return [(at, row) for at, row in enumerate(self._places) if row is not None and not row.over]

    def _leave(self) -> None:
        """The places of rows that are over are free."""
        for at, row in enumerate(self._places):
            if row is not None and row.over:
                self._places[at] = None
                self._session.end(at)

    def _guarded(self, row: Row, act: Callable[[Row], None]) -> None:
        """Does something with one row; its errors end the row alone."""
        try:
            act(row)
        except Exception as raised:
            row.fail(raised)

    def _prefill(self) -> None:
        """Evaluates a part of what rows have that does not fit into one pass."""
        long = [(at, row) for at, row in self._active() if len(row.unseen) > self._grain]
        if not long or self._evaluate({at: row.unseen[: self._grain] for at, row in long}) is None:
            return
        for _, row in long:
            del row.unseen[: self._grain]
            if not row.passes and not row.over:
                row.events.append(Progress("prefill", 1.0 - len(row.unseen) / row.to_prefill))

    def _evaluate(self, parts: dict[int, list[int]]) -> Rows | None:
        """The logits of these places, which get tokens; rows that do not fit are ended first. None: no row is left."""
        while parts:
            try:
                return self._session.evaluate_rows([parts.get(at, []) for at in range(len(self._places))])
            except ContextFull as full:
                for at in full.rows or list(parts):
                    row = self._places[at]
                    if row is not None and not row.over:
                        row.end("context_full")
                parts = {at: part for at, part in parts.items() if at not in (full.rows or parts)}
        return None

    def _step(self) -> None:
        """One forward pass over the rows whose tokens fit into it, and what it decides."""
        ready = {at: row for at, row in self._active() if len(row.unseen) <= self._grain}
        logits = self._evaluate({at: row.unseen for at, row in ready.items()})
        if logits is None:
            return
        stepping = [(row, logits[at]) for at, row in ready.items() if not row.over]
        for row, given in stepping:
            self._passed(row)
            if row.options.on_step is not None:
                self._guarded(row, lambda row, given=given: self._ask(row, given))  # type: ignore[misc]
        stepping = [(row, given) for row, given in stepping if not row.over]
        for row, _ in stepping:
            row.unseen = []
        if len(stepping) == 1:
            (row, given), *_ = stepping
            self._guarded(row, lambda row: self._take(row, row.sampled(given)))
            return
        tokens, failed = _core.step_batch(
            [row.decoder for row, _ in stepping], [given for _, given in stepping], 0, each=True
        )
        errors = dict(failed)
        for at, (row, _) in enumerate(stepping):
            if at in errors:
                row.fail(errors[at])
            else:
                self._guarded(row, lambda row, token=int(tokens[at]): self._take(row, row.picked(token)))  # type: ignore[misc]

    def _drafted_step(self) -> bool:
        """One forward pass over tokens that are proposed too: while the sampled tokens equal the proposed ones, the
        logits for the next token are there. Equal to one pass for each token. False: there is no proposal, or no room
        for it."""
        active = self._active()
        if len(active) != 1 or active[0][1].drafts is None:
            return False
        ((at, row),), drafts = active, active[0][1].drafts
        place = {"row": at} if len(self._places) > 1 else {}
        room = self._session.draft_room(**place)
        if room <= 0 or len(row.unseen) > self._grain:
            return False
        most = min(row.options.max_tokens - len(row.out) - 1, self._grain - 1, room - len(row.unseen))
        draft = drafts.propose(row.decoder, [*row.prompt, *row.out], most, len(row.unseen))
        if not draft:
            return False
        try:
            rows = self._session.evaluate_all([*row.unseen, *draft], len(draft) + 1, **place)
        except ContextFull:
            return False
        self._passed(row)
        row.unseen = []
        right = 0
        try:
            while not row.over and not row.unseen:
                if row.options.on_step is not None:
                    self._ask(row, rows[right])
                taken = row.sampled(rows[right])
                if right and taken[0].source == "sampled":
                    taken[0].source = "drafted"
                same = common_prefix([one.token for one in taken], draft[right:])
                self._take(row, taken)
                right += same
                del row.unseen[:same]
        except Exception as raised:
            row.fail(raised)
        if right < len(draft):
            self._session.rollback(len(draft) - right, **place)
        return True

    def _passed(self, row: Row) -> None:
        """Counts a forward pass."""
        row.passes += 1
        row.prefill = row.prefill or time.perf_counter() - row.began

    def _ask(self, row: Row, logits: Logits) -> None:
        """Calls `on_step` before a token is sampled. Without forcing, forced tokens arrive here too; they are no
        decision, so `on_step` is not called for them."""
        assert row.options.on_step is not None
        if not row.options.force and row.decoder.forced_tokens():
            return
        shown = logits.view()
        shown.flags.writeable = False
        row.options.on_step(row.decoder, shown)
        if len(row.decoder.tokens) != row.taken:
            raise error(_core.StateError, "on_step accepted tokens", help="steer and set in it only")

    def _take(self, row: Row, taken: Sequence[Taken]) -> None:
        """Tokens that the decoder has taken: their events, what the model has to evaluate, what drafts build on."""
        respelled, before = len(row.prompt), len(row.out)
        row.put(taken)
        row.unseen += [one.token for one in taken]
        if row.drafts is not None:
            row.drafts.accept([*row.prompt[respelled:], *row.out[before:]])


def run(engine: Engine, rows: Sequence[Row]) -> Iterator[None]:
    """Decodes rows to their ends; each `None` is a moment at which rows may have new events."""
    session = _session(engine, rows)
    try:
        loop = Loop(engine, session, len(rows))
        for row in rows:
            loop.join(row)
        yield None
        while loop.step():
            yield None
    finally:
        session.close()


def _session(engine: Engine, rows: Sequence[Row]) -> Session:
    if len(rows) == 1:
        return as_session(engine.session())
    most = engine.n_ctx or 1 << 62
    longest = max(len(row.unseen) + len(row.healing) + row.options.max_tokens for row in rows)
    return engine.batch_session(len(rows), len(rows) * min(longest, most))


def checked_prompt(tokens: list[int], engine: Engine) -> list[int]:
    """A prompt that the engine can hold.

    Raises:
        EngineError: it is empty, or longer than the context.
    """
    if not tokens:
        raise EngineError("the prompt is empty", help="give at least one token of prompt")
    if engine.n_ctx is not None and len(tokens) > engine.n_ctx:
        raise EngineError(
            f"the prompt is {len(tokens)} tokens long, the context holds {engine.n_ctx}",
            help="shorten it, or load the model with a larger n_ctx",
        )
    return tokens
