"""The decoding loop of one or several sequences: forced tokens, one forward pass over what the model has not seen, one
sampled token each, again. `Loop.run` is the whole of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _core
from ._constraint import Constraint, Context
from ._errors import EngineError, IncompleteError, error
from ._events import Event, Finish, Progress, Stats, Token
from ._text import TextStream
from .engines import BatchSession, ContextFull, Engine, Logits, Session

_TEXT = ("normal", "byte", "user_defined")
"""Kinds of tokens whose bytes are part of the text."""

OnStep = Callable[[_core.Decoder, Logits], None]
"""Called before each token that is sampled, with the decoder, which it may steer, set and adapt, and the model's
logits: float32 [V], read-only, valid during the call."""


@dataclass(frozen=True, slots=True)
class Options:
    """What all rows of a loop have in common."""

    max_tokens: int
    on_limit: str
    """"keep", "raise" or "close"."""
    force: bool
    trace: bool
    on_step: OnStep | None


@dataclass
class Row:
    """One sequence: what it was given, and what it has done so far."""

    decoder: _core.Decoder
    context: Context
    text: TextStream
    constraint: Constraint | _core.Matcher | None
    seed: int | None
    unseen: list[int]
    """Tokens that the model has not evaluated yet, the prompt at first."""
    cancelled: bool = False
    events: list[Event] = field(default_factory=list)
    out: list[int] = field(default_factory=list)
    forced: int = 0
    passes: int = 0
    reused: int = 0
    began: float = 0.0
    prefill: float = 0.0
    finish: Finish | None = None
    error: BaseException | None = None
    """What ended the row instead of a `Finish`."""

    @property
    def over(self) -> bool:
        """Whether the row takes no more tokens."""
        return self.finish is not None or self.error is not None

    def bytes(self, token: int) -> bytes:
        """What is shown of a token."""
        vocabulary = self.context.vocabulary
        return vocabulary[token] if vocabulary.kind(token) in _TEXT else b""

    def shown(self, tokens: Sequence[int]) -> str:
        """What is shown of these tokens."""
        return b"".join(map(self.bytes, tokens)).decode("utf-8", "replace")

    def answer_start(self) -> int:
        """How many of the output's first tokens are not part of the answer."""
        start = getattr(self.constraint, "answer_start", None)
        return 0 if start is None else int(start(self.out, self.context))


class Sessions:
    """A batch session made of sessions of one sequence each, for engines that have no other."""

    def __init__(self, sessions: Sequence[Session]) -> None:
        self._sessions = sessions

    def begin(self, row: int, tokens: Sequence[int]) -> int:
        """How many of the prompt's tokens the engine holds already."""
        begin = getattr(self._sessions[row], "begin", None)
        return 0 if begin is None else int(begin(tokens))

    def evaluate(self, tokens: Sequence[Sequence[int]]) -> Sequence[Logits]:
        """Evaluates each row that has tokens; with several rows the logits are copied, since engines reuse them."""
        alone, made = len(self._sessions) == 1, []
        for row, (session, new) in enumerate(zip(self._sessions, tokens, strict=True)):
            try:
                logits = session.evaluate(new) if new else np.empty(0, np.float32)
            except ContextFull:
                raise ContextFull((row,)) from None
            made.append(logits if alone else logits.copy())
        return made

    def close(self) -> None:
        """The sessions release their memory when they are collected."""


class Loop:
    """Rows that one engine decodes together."""

    def __init__(self, engine: Engine, rows: list[Row], options: Options) -> None:
        self.engine, self.rows, self.options = engine, rows, options
        self._grain = getattr(engine, "n_batch", None) or 1 << 62

    def run(self) -> Iterator[None]:
        """Decodes all rows to their ends; each `None` is a moment at which rows may have new events."""
        session = self._session()
        began = time.perf_counter()
        for row in self.rows:
            row.began = began
        try:
            while True:
                for row in self._active():
                    self._guarded(row, self._take_forced)
                yield None
                for row in self._active():
                    if row.cancelled:
                        self._end(row, "cancelled")
                if not self._active():
                    return
                if not any(row.passes for row in self.rows):
                    yield from self._prefill(session)
                self._step(session)
                yield None
        finally:
            session.close()

    def _session(self) -> Sessions | BatchSession:
        batch = getattr(self.engine, "batch_session", None)
        if len(self.rows) == 1 or batch is None:
            return Sessions([self.engine.session() for _ in self.rows])
        most = getattr(self.engine, "n_ctx", None) or 1 << 62
        made: BatchSession = batch(
            len(self.rows), sum(min(len(row.unseen) + self.options.max_tokens, most) for row in self.rows)
        )
        return made

    def _active(self) -> list[Row]:
        return [row for row in self.rows if not row.over]

    def _guarded(self, row: Row, act: Callable[[Row], None]) -> None:
        """Does something with one row; its errors end the row alone where there are others."""
        try:
            act(row)
        except Exception as raised:
            row.error = raised

    def _prefill(self, session: Sessions | BatchSession) -> Iterator[None]:
        """Evaluates all of long prompts but what fits into one pass."""
        for at, row in enumerate(self.rows):
            if isinstance(session, Sessions) and not row.over:
                row.reused = session.begin(at, row.unseen)
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
                self._end(row, "cancelled")

    def _evaluate(self, session: Sessions | BatchSession, parts: Sequence[Sequence[int]]) -> Sequence[Logits] | None:
        """The logits of the rows that have tokens; rows that do not fit are ended first. None: no row is left."""
        while any(parts):
            try:
                return session.evaluate(parts)
            except ContextFull as full:
                named = full.rows or range(len(self.rows))
                for at in named:
                    self._end(self.rows[at], "context_full")
                parts = [[] if row.over else part for row, part in zip(self.rows, parts, strict=True)]
        return None

    def _step(self, session: Sessions | BatchSession) -> None:
        """One forward pass, and one sampled token for each active row."""
        parts = [[] if row.over else row.unseen for row in self.rows]
        logits = self._evaluate(session, parts)
        if logits is None:
            return
        now = time.perf_counter()
        stepping = [(row, logits[at]) for at, row in enumerate(self.rows) if not row.over]
        for row, _ in stepping:
            row.passes += 1
            row.prefill = row.prefill or now - row.began
        if self.options.on_step is not None:
            for row, given in stepping:
                self._guarded(row, lambda row, given=given: self._ask(row, given))  # type: ignore[misc]
            stepping = [(row, given) for row, given in stepping if not row.over]
        if len(stepping) == 1:
            (row, given), *_ = stepping
            self._guarded(row, lambda row: self._sampled(row, row.decoder.step(given)))
            return
        tokens, failed = _core.step_batch(
            [row.decoder for row, _ in stepping], [given for _, given in stepping], 0, each=True
        )
        errors = dict(failed)
        for at, (row, _) in enumerate(stepping):
            if at in errors:
                row.error = errors[at]
            else:
                self._sampled(row, int(tokens[at]))

    def _ask(self, row: Row, logits: Logits) -> None:
        """Calls `on_step` before a token is sampled. Without forcing, forced tokens arrive here too; they are no
        decision, so `on_step` is not called for them."""
        assert self.options.on_step is not None
        if not self.options.force and row.decoder.forced_tokens():
            return
        shown = logits.view()
        shown.flags.writeable = False
        self.options.on_step(row.decoder, shown)
        if len(row.decoder.tokens) != len(row.out):
            raise error(_core.StateError, "on_step accepted tokens", help="steer and set in it only")

    def _sampled(self, row: Row, token: int) -> None:
        row.unseen = [token]
        self._put(row, token, False, row.decoder.last if self.options.trace else None)
        self._check(row)

    def _take_forced(self, row: Row) -> None:
        """Takes the forced tokens of a row, as many as `max_tokens` and stop strings allow."""
        self._check(row)
        if row.over or not self.options.force:
            return
        tokens = row.decoder.take_forced()
        steps = row.decoder.trace[-len(tokens) :] if self.options.trace and tokens else [None] * len(tokens)
        for token, step in zip(tokens, steps, strict=True):
            row.unseen.append(token)
            self._put(row, token, True, step)
            self._check(row)
            if row.finish is not None or row.error is not None:
                return

    def _put(self, row: Row, token: int, forced: bool, step: _core.Step | None) -> None:
        row.out.append(token)
        row.forced += forced
        data = row.bytes(token)
        row.events.append(Token(token, data, row.text.push(data), forced, step))

    def _check(self, row: Row) -> None:
        """Ends the row if it is over as far as its events go; the decoder may be some forced tokens ahead."""
        if row.text.stopped is not None:
            self._end(row, "stop")
        elif row.decoder.is_finished and len(row.out) == len(row.decoder.tokens):
            self._end(row, row.decoder.finish_reason or "constraint")
        elif len(row.out) >= self.options.max_tokens:
            self._limit(row)

    def _limit(self, row: Row) -> None:
        """`max_tokens` is reached: keeps the output, raises, or closes it."""
        row.decoder.rollback(len(row.decoder.tokens) - len(row.out))
        matcher = row.decoder.matcher
        if matcher is None or self.options.on_limit == "keep" or matcher.is_accepting:
            self._end(row, "max_tokens", complete=matcher is not None and matcher.is_accepting)
            return
        if self.options.on_limit == "raise":
            row.error = IncompleteError(
                f"max_tokens is {self.options.max_tokens}, and the output is not complete",
                place=repr(row.text.text[-40:]),
                help='give more, or on_limit="close"',
            )
            return
        for token in matcher.shortest_ending(row.context.vocabulary):
            row.decoder.accept(token)
            self._put(row, token, True, None)
        self._end(row, "closed")

    def _end(self, row: Row, reason: str, *, complete: bool = False) -> None:
        """Makes the last event of a row."""
        seconds, n = time.perf_counter() - row.began, len(row.out)
        tail = row.text.end()
        stats = Stats(
            prompt_tokens=len(row.context.prompt),
            reused_tokens=row.reused,
            output_tokens=n,
            sampled_tokens=n - row.forced,
            forced_tokens=row.forced,
            forward_passes=row.passes,
            seconds=seconds,
            prefill_seconds=row.prefill,
            tokens_per_second=n / seconds if n else 0.0,
            seed=row.seed,
            reasoning_tokens=row.answer_start(),
        )
        ended = ("constraint", "end_of_generation", "closed")
        complete = complete or reason in ended or (reason == "stop" and row.constraint is None)
        row.finish = Finish(reason, row.text.text, tail, tuple(row.out), complete, stats)
        row.events.append(row.finish)


def checked_prompt(tokens: list[int], engine: Engine) -> list[int]:
    """A prompt that the engine can hold.

    Raises:
        EngineError: it is empty, or longer than the context.
    """
    if not tokens:
        raise EngineError("the prompt is empty", help="give at least one token of prompt")
    n_ctx: Any = getattr(engine, "n_ctx", None)
    if n_ctx is not None and len(tokens) > n_ctx:
        raise EngineError(
            f"the prompt is {len(tokens)} tokens long, the context holds {n_ctx}",
            help="shorten it, or load the model with a larger n_ctx",
        )
    return tokens
