"""The decoding loop of one or several sequences: what needs no logits, one forward pass over what the model has not
seen and what is proposed, one sampled token for each proposal that was right and one more, again. `Loop.run` is the
whole of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from . import _core
from ._errors import EngineError, error
from ._events import Progress
from ._row import Options, Row, Taken
from .engines import ContextFull, Engine, Logits, Rows, Session
from .engines._session import as_session


class Loop:
    """Rows that one engine decodes together."""

    def __init__(self, engine: Engine, rows: list[Row], options: Options) -> None:
        self.engine, self.rows, self.options = engine, rows, options
        self._grain = engine.n_batch or 1 << 62

    def run(self) -> Iterator[None]:
        """Decodes all rows to their ends; each `None` is a moment at which rows may have new events."""
        session = self._session()
        began = time.perf_counter()
        for row in self.rows:
            row.began = began
        try:
            for row in self._active():
                self._guarded(row, self._begin)
            while True:
                yield None
                for row in self._active():
                    if row.cancelled:
                        row.end("cancelled")
                if not self._active():
                    return
                if not any(row.passes for row in self.rows):
                    yield from self._prefill(session)
                self._step(session)
        finally:
            session.close()

    def _begin(self, row: Row) -> None:
        """What needs no logits at the beginning."""
        row.check()
        if not row.over:
            self._take(row, row.settled([]))

    def _session(self) -> Session:
        if len(self.rows) == 1:
            return as_session(self.engine.session())
        most = self.engine.n_ctx or 1 << 62
        needed = (len(row.unseen) + len(row.healing) + self.options.max_tokens for row in self.rows)
        return self.engine.batch_session(len(self.rows), sum(min(n, most) for n in needed))

    def _active(self) -> list[Row]:
        return [row for row in self.rows if not row.over]

    def _guarded(self, row: Row, act: Callable[[Row], None]) -> None:
        """Does something with one row; its errors end the row alone where there are others."""
        try:
            act(row)
        except Exception as raised:
            row.fail(raised)

    def _prefill(self, session: Session) -> Iterator[None]:
        """Evaluates all of long prompts but what fits into one pass."""
        for at, row in enumerate(self.rows):
            if not row.over:
                row.reused = session.begin(row.unseen, at)
                del row.unseen[: row.reused]
        whole = sum(len(row.unseen) for row in self._active())
        while any(len(row.unseen) > self._grain for row in self._active()):
            parts = [row.unseen[: self._grain] if len(row.unseen) > self._grain else [] for row in self.rows]
            parts = [
                part if not row.over and not row.cancelled else [] for row, part in zip(self.rows, parts, strict=True)
            ]
            if not any(parts) or self._evaluate(session, parts) is None:
                break
            left = 0
            for row, part in zip(self.rows, parts, strict=True):
                del row.unseen[: len(part)]
                left += 0 if row.over else len(row.unseen)
            for row in self._active():
                row.events.append(Progress("prefill", 1.0 - left / whole))
            yield None
        for row in self._active():
            if row.cancelled:
                row.end("cancelled")

    def _evaluate(self, session: Session, parts: Sequence[Sequence[int]]) -> Rows | None:
        """The logits of the rows that have tokens; rows that do not fit are ended first. None: no row is left."""
        while any(parts):
            try:
                return session.evaluate_rows(parts)
            except ContextFull as full:
                named = full.rows or range(len(self.rows))
                for at in named:
                    self.rows[at].end("context_full")
                parts = [[] if row.over else part for row, part in zip(self.rows, parts, strict=True)]
        return None

    def _step(self, session: Session) -> None:
        """One forward pass, and what it decides."""
        if self._drafted_step(session):
            return
        parts = [[] if row.over else row.unseen for row in self.rows]
        logits = self._evaluate(session, parts)
        if logits is None:
            return
        stepping = [(row, logits[at]) for at, row in enumerate(self.rows) if not row.over]
        for row, _ in stepping:
            self._passed(row)
        if self.options.on_step is not None:
            for row, given in stepping:
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

    def _drafted_step(self, session: Session) -> bool:
        """One forward pass over tokens that are proposed too: while the sampled tokens equal the proposed ones, the
        logits for the next token are there. Equal to one pass for each token. False: there is no proposal, or no room
        for it."""
        active, room = self._active(), session.draft_room()
        if len(active) != 1 or active[0].drafts is None or room <= 0:
            return False
        (row,), drafts = active, active[0].drafts
        most = min(self.options.max_tokens - len(row.out) - 1, self._grain - 1, room - len(row.unseen))
        draft = drafts.propose(row.decoder, [*row.prompt, *row.out], most, len(row.unseen))
        if not draft:
            return False
        try:
            rows = session.evaluate_all([*row.unseen, *draft], len(draft) + 1)
        except ContextFull:
            return False
        self._passed(row)
        row.unseen = []
        right = 0
        try:
            while not row.over and not row.unseen:
                if self.options.on_step is not None:
                    self._ask(row, rows[right])
                taken = row.sampled(rows[right])
                if right and taken[0].source == "sampled":
                    taken[0].source = "drafted"
                same = _common(taken, draft[right:])
                self._take(row, taken)
                right += same
                del row.unseen[:same]
        except Exception as raised:
            row.fail(raised)
        if right < len(draft):
            session.rollback(len(draft) - right)
        return True

    def _passed(self, row: Row) -> None:
        """Counts a forward pass."""
        row.passes += 1
        row.prefill = row.prefill or time.perf_counter() - row.began

    def _ask(self, row: Row, logits: Logits) -> None:
        """Calls `on_step` before a token is sampled. Without forcing, forced tokens arrive here too; they are no
        decision, so `on_step` is not called for them."""
        assert self.options.on_step is not None
        if not self.options.force and row.decoder.forced_tokens():
            return
        shown = logits.view()
        shown.flags.writeable = False
        self.options.on_step(row.decoder, shown)
        if len(row.decoder.tokens) != row.taken:
            raise error(_core.StateError, "on_step accepted tokens", help="steer and set in it only")

    def _take(self, row: Row, taken: Sequence[Taken]) -> None:
        """Tokens that the decoder has taken: their events, what the model has to evaluate, what drafts build on."""
        respelled, before = len(row.prompt), len(row.out)
        row.put(taken)
        row.unseen += [one.token for one in taken]
        if row.drafts is not None:
            row.drafts.accept([*row.prompt[respelled:], *row.out[before:]])


def _common(taken: Sequence[Taken], draft: Sequence[int]) -> int:
    """How many of the first tokens are those that were proposed."""
    pairs = enumerate(zip(taken, draft, strict=False))
    return next((n for n, (one, token) in pairs if one.token != token), min(len(taken), len(draft)))


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
