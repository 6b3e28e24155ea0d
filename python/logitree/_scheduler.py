"""The decoding of a server's requests in one thread: rows join where there is room, and each pass of the model serves
all."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from . import _core
from ._events import Event, Finish
from ._loop import Loop
from ._row import Row
from .engines import Engine
from .engines._session import InTurns, Session, as_session

T = TypeVar("T")


class QueueFull(Exception):
    """As many rows wait as may."""


class Closing(Exception):
    """The server takes no more requests."""


class Job:
    """The rows of one request. It is made in the event loop that waits for it.

    Args:
        rows: what is decoded.
        streams: whether each event is waited for, and not only the end of a row.
    """

    def __init__(self, rows: Sequence[Row], *, streams: bool = True) -> None:
        self.rows, self.streams = rows, streams
        self.loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()

    async def events(self) -> AsyncIterator[tuple[int, Event]]:
        """The events of all rows as they come, each with the number of its row.

        Raises:
            What ended a row.
        """
        seen = [0] * len(self.rows)
        while True:
            self._changed.clear()
            for at, row in enumerate(self.rows):
                while seen[at] < len(row.events):
                    seen[at] += 1
                    yield at, row.events[seen[at] - 1]
                if row.error is not None:
                    raise row.error
            if all(n and isinstance(row.events[n - 1], Finish) for n, row in zip(seen, self.rows, strict=True)):
                return
            await self._changed.wait()

    def cancel(self) -> None:
        """The rows take no more tokens."""
        for row in self.rows:
            row.cancelled = True

    def wake(self) -> None:
        """There may be new events. To be called in the job's event loop."""
        self._changed.set()


class Scheduler:
    """Decodes the rows of jobs together.

    Args:
        engine: runs the model.
        places: the most rows that are decoded at once.
        waiting: the most rows that wait for a place.

    Raises:
        EngineError: the engine has no memory for so many rows.
    """

    def __init__(self, engine: Engine, *, places: int, waiting: int) -> None:
        self._engine, self._places, self._most = engine, places, waiting
        self._condition = threading.Condition()
        self._queue: deque[tuple[Job, Row]] = deque()
        self._running: list[tuple[Job, Row]] = []
        self._calls: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self.is_closing = False
        """Whether no more jobs are taken."""
        self._session: Session | None = None
        self._loop: Loop | None = None
        self._open()
        self.failures = 0
        """How often the engine failed."""
        self._thread = threading.Thread(target=self._run, name="logitree scheduler", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Rows that wait for a place."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """Rows that are decoded."""
        return len(self._running)

    def submit(self, job: Job) -> None:
        """Queues the rows of a job.

        Raises:
            QueueFull: there is no room for them.
            Closing: the scheduler is closed.
        """
        with self._condition:
            if self.is_closing:
                raise Closing
            free = max(0, self._places - len(self._running) - len(self._queue))
            if len(self._queue) + len(job.rows) > self._most + free:
                raise QueueFull
            self._queue.extend((job, row) for row in job.rows)
            self._condition.notify()

    def call(self, act: Callable[[], T]) -> Future[T]:
        """Does something with the engine between two passes, so that no two threads use it at once.

        Raises:
            QueueFull: as many calls wait as rows may.
            Closing: the scheduler is closed.
        """
        future: Future[T] = Future()
        with self._condition:
            if self.is_closing:
                raise Closing
            if len(self._calls) >= self._most:
                raise QueueFull
            self._calls.append((future, act))
            self._condition.notify()
        return future

    def close(self, seconds: float) -> None:
        """Takes no more jobs, and waits so long for those that there are; cancels the others."""
        with self._condition:
            self.is_closing = True
            self._condition.notify()
        self._thread.join(seconds)
        with self._condition:
            for job, _ in [*self._queue, *self._running]:
                job.cancel()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._condition:
                while not (self._queue or self._running or self._calls or self.is_closing):
                    self._condition.wait()
                if not (self._queue or self._running or self._calls):
                    break
                call = self._calls.popleft() if self._calls else None
            if call is not None:
                _answer(*call)
            if not (self._queue or self._running):
                continue
            try:
                loop = self._open()
                self._join(loop)
                loop.step()
            except Exception as raised:
                self._fail(raised)
            self._deliver()
        if self._session is not None:
            self._session.close()

    def _open(self) -> Loop:
        """The loop, on a session of its own."""
        if self._loop is None:
            session = self._engine.batch_session(self._places)
            if not session.can_restart:
                session.close()
                session = InTurns(lambda: as_session(self._engine.session()), self._places)
            self._session, self._loop = session, Loop(self._engine, session, self._places)
        return self._loop

    def _join(self, loop: Loop) -> None:
        """Rows that wait take the places that are free, in their order. The rows of one job wait until its first has
        read the prompt, which they have in common."""
        room, joining, staying = loop.room, list[tuple[Job, Row]](), deque[tuple[Job, Row]]()
        with self._condition:
            for job, row in self._queue:
                first = job.rows[0]
                is_next = room > 0 and (row is first or first.passes > 0 or first.over)
                (joining if row.cancelled or is_next else staying).append((job, row))
                room -= is_next and not row.cancelled
            self._queue = staying
            self._running += joining
        for _, row in joining:
            if row.cancelled:
                row.end("cancelled")
            else:
                loop.join(row)

    def _fail(self, raised: Exception) -> None:
        """The engine failed: what it was decoding ends, and what comes next begins with a new session."""
        self.failures += 1
        session, self._session, self._loop = self._session, None, None
        for _, row in self._running:
            if not row.over:
                row.error = raised
        if session is not None:
            with contextlib.suppress(_core.LogitreeError):
                session.close()
        if not self._running:  # nothing that could be decoded: those that wait would wait without an end
            with self._condition:
                for _, row in self._queue:
                    row.error = raised
                self._running, self._queue = list(self._queue), deque()

    def _deliver(self) -> None:
        """Wakes those that wait for events."""
        jobs = {id(job): job for job, row in self._running if job.streams or row.over}
        self._running = [(job, row) for job, row in self._running if not row.over]
        loops: dict[asyncio.AbstractEventLoop, list[Job]] = {}
        for job in jobs.values():
            loops.setdefault(job.loop, []).append(job)
        for loop, some in loops.items():
            with contextlib.suppress(RuntimeError):  # the loop is closed: its clients are gone
                loop.call_soon_threadsafe(_wake, some)


def _answer(future: Future[Any], act: Callable[[], Any]) -> None:
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(act())
        except Exception as raised:
            future.set_exception(raised)


def _wake(jobs: Iterable[Job]) -> None:
    for job in jobs:
        job.wake()
