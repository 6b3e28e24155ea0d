"""A generation: a loop's row seen as events, as text, as a value, and as something to await."""

from __future__ import annotations

import asyncio
import dataclasses
from bisect import bisect_left, bisect_right
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, aclosing, contextmanager
from functools import partial
from itertools import accumulate
from threading import Lock, RLock
from typing import Any, Generic, TypeVar, cast, overload

from . import _core
from ._errors import IncompleteError, error
from ._events import Event, Finish, Stats, Token
from ._loop import run
from ._row import Row
from ._spans import SpanValue
from ._trace import Trace, TraceSpan
from .engines import Engine

T = TypeVar("T")
R = TypeVar("R")


class _Shared:
    """Rows that are decoded together, whose events several generations draw, one thread at a time."""

    def __init__(self, engine: Engine, rows: list[Row]) -> None:
        self.engine, self._rows = engine, rows
        self._moments = run(engine, rows)
        self._lock = RLock()

    def event(self, row: Row, at: int) -> Event | None:
        """Event number `at` of a row, decoding until there is one; None: the row has ended before it.

        Raises:
            What ended the row.
        """
        with self._lock:
            while len(row.events) <= at:
                if row.finish is not None:
                    return None
                if row.error is not None:
                    raise row.error
                try:
                    next(self._moments)
                except StopIteration:
                    if not row.over:
                        row.error = _core.StateError("the generation was interrupted")
                except BaseException as raised:
                    for other in self._rows:
                        if not other.over:
                            other.error = raised
                    raise
            return row.events[at]


class Generation(Generic[T]):
    """One output of a model, decoded when it is used.

    ```python
    generation = logitree.generate("model.gguf", "How old is Anna?", int)
    print(generation.value + 1)
    ```

    Iterate it for events, `async for` it without blocking the event loop, or read a property, which runs it to its end.
    Iterating again gives the same events. What ends it early is raised by each of these: errors of the engine and of
    `on_step`, `IncompleteError` with `on_limit="raise"`.

    Where a task that awaits it is cancelled (`task.cancel()`, `asyncio.wait_for`, `asyncio.timeout`), the generation is
    cancelled too, unless another task or thread awaits it or has an iterator of it open; `asyncio.shield(generation)`
    keeps it going. Leaving an `async for` cancels nothing: iterating again gives the same events and continues.
    """

    def __init__(self, shared: _Shared, row: Row, trace: bool) -> None:
        self._shared, self._row, self._trace = shared, row, trace
        self._readers, self._counting = 0, Lock()

    def __iter__(self) -> Iterator[Event]:
        """The events: `Progress` while a long prompt is evaluated, `Token` for every token, one `Finish`.

        With a skeleton, `SpanStart`, `SpanText` and `SpanEnd` follow the token with which they became certain.
        """
        at = 0
        with self._reading():
            while (event := self._shared.event(self._row, at)) is not None:
                yield event
                at += 1

    def __aiter__(self) -> AsyncIterator[Event]:
        """The events; the model runs in a worker thread."""
        return self._events()

    async def _events(self) -> AsyncGenerator[Event, None]:
        at = 0
        with self._reading():
            while (event := await _in_thread([self], partial(self._shared.event, self._row, at))) is not None:
                yield event
                at += 1

    def __await__(self) -> Generator[Any, None, Generation[T]]:
        """Runs it to its end in a worker thread."""

        async def run() -> Generation[T]:
            with self._reading():
                await _in_thread([self], self._end)
            return self

        return run().__await__()

    def pieces(self) -> Pieces:
        """The pieces of the text as they become certain, for `for` and `async for`; joined they are `text`."""
        return Pieces(self)

    def cancel(self) -> None:
        """Ends the generation before its next forward pass, with the reason "cancelled". From any thread."""
        self._row.cancelled = True

    @property
    def text(self) -> str:
        """The whole output as text, stop string excluded."""
        return self._finished().text

    @property
    def answer(self) -> str:
        """The output without the reasoning that it begins with."""
        finish = self._finished()
        start = finish.stats.reasoning_tokens
        return self._row.shown(finish.tokens[start:]) if start else finish.text

    @property
    def value(self) -> T:
        """What the answer means under its constraint: the choice, the parsed JSON, an instance of the model or type.
        Without a constraint, and for grammars of plain text: the answer itself.

        Raises:
            IncompleteError: the output ended before its constraint was complete.
        """
        finish = self._finished()
        if self._row.constraint is not None and not finish.complete:
            raise IncompleteError(
                f"the output is not complete: {finish.reason}",
                place=repr(finish.text[-40:]),
                help='give a larger max_tokens, or on_limit="close"; .text has what there is',
            )
        return cast(T, self._row.meaning(finish.tokens, self.answer))

    @property
    def captures(self) -> dict[str, str | list[str]]:
        """What a grammar's rules captured of the answer, by name; `Grammar.captures` has the details.

        Empty with another constraint, and where the output ended before its constraint was complete.
        """
        constraint = self._row.constraint
        return (constraint.captures(self.answer) or {}) if isinstance(constraint, _core.Grammar) else {}

    @property
    def spans(self) -> tuple[SpanValue, ...]:
        """The spans of a skeleton that have ended, in the order of their ends; none with another constraint."""
        self._finished()
        return () if self._row.spans is None else tuple(self._row.spans.ended)

    @property
    def tokens(self) -> tuple[int, ...]:
        """The output's token ids, an end-of-generation token included."""
        return self._finished().tokens

    @property
    def prompt(self) -> tuple[int, ...]:
        """The token ids before the output, as the model read them: what the prompt became under its chat template, and
        with `heal=True` with the spelling of its end that the model chose."""
        self._finished()
        return tuple(self._row.prompt)

    @property
    def finish_reason(self) -> str:
        """Why it ended: `Finish.reason` lists the reasons."""
        return self._finished().reason

    @property
    def complete(self) -> bool:
        """Whether the output is complete under its constraint."""
        return self._finished().complete

    @property
    def stats(self) -> Stats:
        """What it cost."""
        return self._finished().stats

    @property
    def trace(self) -> Trace:
        """How each token was decided, with `trace=True`: a sequence of `Step` that can be looked at
        (`Trace.to_html`, notebooks) and written as JSON lines.

        Raises:
            StateError: the generation was made without a trace.
        """
        finish, row = self._finished(), self._row
        if not self._trace:
            raise error(_core.StateError, "no trace was recorded", help="generate(..., trace=True)")
        # Where a stop string or a limit cuts a run of forced tokens, the decoder is ahead of the output.
        steps = row.decoder.trace[row.taken - len(row.out) : row.taken]
        stats = {f.name: getattr(finish.stats, f.name) for f in dataclasses.fields(finish.stats)}
        model = row.context.vocabulary.name or self._shared.engine.name
        about = {"model": model, "finish": finish.reason, "complete": finish.complete, **stats}
        about["chain"] = str(row.decoder.chain)
        if row.constraint is not None:
            about["constraint"] = repr(row.constraint)[:_MAX_SHOWN]
        spans = _token_spans(row, getattr(self, "spans", ()))
        return Trace(steps, row.context.vocabulary, sources=_sources(row.events), spans=spans, about=about)

    @property
    def probability(self) -> float:
        """The product of the probabilities of the answer's sampled tokens, among the allowed ones, after the chain;
        `trace=True` only.

        Raises:
            StateError: the generation was made without a trace.
        """
        made = 1.0
        for step in self.trace[self.stats.reasoning_tokens :]:
            made *= 1.0 if step.forced or step.p is None else step.p
        return made

    def _finished(self) -> Finish:
        with self._reading():
            return self._end()

    def _end(self) -> Finish:
        """Decodes it to its end."""
        row, at = self._row, len(self._row.events)
        while row.finish is None:
            if self._shared.event(row, at) is None:
                break
            at = len(row.events)
        assert row.finish is not None
        return row.finish

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Counts one more that reads it."""
        with self._counting:
            self._readers += 1
        try:
            yield
        finally:
            with self._counting:
                self._readers -= 1

    def _abandon(self) -> None:
        """Cancels it where only one reads it: the task that has been cancelled."""
        with self._counting:
            if self._readers == 1:
                self.cancel()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        row = self._row
        if row.finish is None:
            state = "not run" if not row.out else f"{len(row.out)} tokens so far"
            return f"<Generation: {state}>"
        return f"<Generation: {row.finish.text[:60]!r}, {row.finish.reason}, {row.finish.stats}>"


async def _in_thread(generations: Sequence[Generation[Any]], read: Callable[[], R]) -> R:
    """What is read of these generations, in a worker thread.

    Where the task that waits for it is cancelled, or its event loop ends, it does not wait on: the thread ends after
    its forward pass.
    """
    try:
        return await asyncio.to_thread(read)
    except (asyncio.CancelledError, GeneratorExit):
        for one in generations:
            one._abandon()
        raise


class Pieces:
    """The pieces of a generation's text as they become certain, none of them empty.

    Iterate it, or `async for` it without blocking the event loop.
    """

    def __init__(self, generation: Generation[Any]) -> None:
        self._generation = generation

    def __iter__(self) -> Iterator[str]:
        """The pieces."""
        return (piece for event in self._generation if (piece := _piece(event)))

    async def __aiter__(self) -> AsyncIterator[str]:
        """The pieces; the model runs in a worker thread."""
        async with aclosing(self._generation._events()) as events:
            async for event in events:
                if piece := _piece(event):
                    yield piece


_MAX_SHOWN = 2000
"""Characters of a constraint that a trace shows."""


def _sources(events: Sequence[Event]) -> list[str]:
    """Where each token of the output came from."""
    tokens = [event for event in events if isinstance(event, Token)]
    return [token.source for token in tokens]


def _token_spans(row: Row, spans: Iterable[Any]) -> list[TraceSpan]:
    """The tokens of spans, which have a `path`, `kind`, `value`, and offsets in bytes of the output: `start`, `end`."""
    ends = list(accumulate(len(event.bytes) for event in row.events if isinstance(event, Token)))
    made = []
    for span in spans:
        first = bisect_right(ends, span.start)
        last = first if span.start == span.end else bisect_left(ends, span.end) + 1
        made.append(TraceSpan(first, last, span.path or span.kind, span.value))
    return made


def _piece(event: Event) -> str:
    """What an event adds to the text."""
    return event.text if isinstance(event, Token) else event.tail if isinstance(event, Finish) else ""


class Generations(Sequence[Generation[T]]):
    """The outputs of several prompts, decoded together: a sequence of `Generation`.

    Reading one runs the loop of all until that one has what is asked for. `texts`, `values` run all to their ends. An
    error that concerns one prompt is raised where that one is read. Where a task that awaits all of them is cancelled,
    those that nothing else reads are cancelled, as a `Generation` is.
    """

    def __init__(self, made: Sequence[Generation[T]]) -> None:
        self._made = list(made)

    @overload
    def __getitem__(self, at: int) -> Generation[T]: ...
    @overload
    def __getitem__(self, at: slice) -> list[Generation[T]]: ...
    def __getitem__(self, at: int | slice) -> Generation[T] | list[Generation[T]]:
        return self._made[at]

    def __len__(self) -> int:
        return len(self._made)

    @property
    def texts(self) -> list[str]:
        """The text of each."""
        return [one.text for one in self._made]

    @property
    def values(self) -> list[T]:
        """The value of each."""
        return [one.value for one in self._made]

    def events(self) -> Iterator[tuple[int, Event]]:
        """The events of all, each with the number of its prompt, as they come."""
        at = [0] * len(self._made)
        going = set(range(len(self._made)))
        with self._reading():
            while going:
                for i in sorted(going):
                    event = self._made[i]._shared.event(self._made[i]._row, at[i])
                    if event is None:
                        going.discard(i)
                        continue
                    at[i] += 1
                    yield i, event

    def cancel(self) -> None:
        """Ends all of them before the next forward pass."""
        for one in self._made:
            one.cancel()

    def __await__(self) -> Generator[Any, None, Generations[T]]:
        """Runs all to their ends in a worker thread."""

        async def run() -> Generations[T]:
            with self._reading():
                for one in self._made:
                    await _in_thread(self._made, one._end)
            return self

        return run().__await__()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Counts one more that reads each of them."""
        with ExitStack() as stack:
            for one in self._made:
                stack.enter_context(one._reading())
            yield

    def __repr__(self) -> str:
        return f"<Generations: {len(self)} prompts>"
