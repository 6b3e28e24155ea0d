"""Generations under asyncio: cancelling the task that awaits one ends it within a step, and leaves what others read."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import numpy as np
import pytest

import logitree as lt
from table_engine import TableEngine, TableSession

STEP = 0.02
"""Seconds of a forward pass."""
MANY = 400
"""Tokens of an output that no task waits for: eight seconds."""
SOON = 1.5
"""Seconds within which everything ends on a busy machine; far below MANY steps."""

HELD: list[Any] = []
"""Tasks that outlive their function."""

Use = Callable[[lt.Generation[str]], Awaitable[Any]]


class SlowEngine(TableEngine):
    """Sleeps in each forward pass, and counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.table[:, 256] = -1e9
        self.passes = 0

    def session(self) -> TableSession:
        """A slow session."""
        engine = self

        class SlowSession(TableSession):
            """Sleeps in each pass."""

            def evaluate(self, tokens: Sequence[int]) -> np.ndarray:
                """Sleeps first."""
                engine.passes += 1
                time.sleep(STEP)
                return super().evaluate(tokens)

        return SlowSession(self.table)


def slow(engine: SlowEngine, **options: Any) -> lt.Generation[str]:
    return lt.generate(engine, "x", seed=0, **{"max_tokens": MANY, **options})


async def awaited(generation: lt.Generation[str]) -> None:
    await generation


async def iterated(generation: lt.Generation[str]) -> None:
    async for _ in generation:
        pass


async def in_pieces(generation: lt.Generation[str]) -> None:
    async for _ in generation.pieces():
        pass


async def in_a_group(generation: lt.Generation[str]) -> None:
    """Beside a task that fails, which cancels it."""
    if sys.version_info < (3, 11):
        await asyncio.gather(generation, asyncio.sleep(0))
        return
    async with asyncio.TaskGroup() as group:
        group.create_task(awaited(generation))
        group.create_task(iterated(generation))


USES: list[Use] = [awaited, iterated, in_pieces, in_a_group]


async def wait_for(generation: lt.Generation[str], use: Use) -> None:
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(use(generation), 0.2)


async def timed_out(generation: lt.Generation[str], use: Use) -> None:
    if sys.version_info < (3, 11):
        await wait_for(generation, use)
        return
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await use(generation)


async def task_cancelled(generation: lt.Generation[str], use: Use) -> None:
    task = asyncio.ensure_future(use(generation))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def loop_closed(generation: lt.Generation[str], use: Use) -> None:
    """The event loop ends and cancels what is left."""
    task = asyncio.ensure_future(use(generation))
    await asyncio.sleep(0.2)
    HELD.append(task)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("end", [wait_for, timed_out, task_cancelled, loop_closed])
def test_cancelling_the_task_cancels_the_generation(end: Any, use: Use) -> None:
    engine = SlowEngine()
    generation = slow(engine)
    began = time.perf_counter()
    asyncio.run(end(generation, use))
    assert time.perf_counter() - began < SOON
    assert generation.finish_reason == "cancelled"
    passes = engine.passes
    time.sleep(3 * STEP)
    assert engine.passes == passes < MANY / 4
    events = list(generation)
    tokens = [event for event in events if isinstance(event, lt.Token)]
    assert tokens
    assert generation.tokens == tuple(token.token for token in tokens)
    assert generation.text == "".join(generation.pieces())
    assert isinstance(events[-1], lt.Finish)
    assert not generation.complete


def test_the_event_loop_stays_free() -> None:
    async def main() -> tuple[int, lt.Generation[str], list[lt.Event]]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(STEP / 4)
                ticks += 1

        ticker = asyncio.create_task(tick())
        events = [event async for event in slow(SlowEngine(), max_tokens=12)]
        done = await slow(SlowEngine(), max_tokens=12)
        ticker.cancel()
        return ticks, done, events

    ticks, done, events = asyncio.run(main())
    assert ticks > 20
    assert events[-1].text == done.text  # type: ignore[union-attr]


def test_at_most_one_more_step_runs() -> None:
    async def main() -> tuple[int, int]:
        engine = SlowEngine()
        task = asyncio.ensure_future(slow(engine))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        then = engine.passes
        await asyncio.sleep(10 * STEP)
        return then, engine.passes

    then, later = asyncio.run(main())
    assert then <= later <= then + 1


def test_a_generation_goes_on_for_who_else_reads_it() -> None:
    async def main(use: Use, other: Use) -> None:
        generation = slow(SlowEngine(), max_tokens=20)
        first, second = asyncio.ensure_future(use(generation)), asyncio.ensure_future(other(generation))
        await asyncio.sleep(4 * STEP)
        first.cancel()
        await second
        assert first.cancelled()
        assert (generation.finish_reason, len(generation.tokens)) == ("max_tokens", 20)

    async def consuming(generation: lt.Generation[str]) -> None:
        """Is not waiting for an event when the other task is cancelled."""
        async for _ in generation:
            await asyncio.sleep(1.5 * STEP)

    async def in_a_thread(generation: lt.Generation[str]) -> None:
        thread = threading.Thread(target=lambda: generation.text)
        thread.start()
        while thread.is_alive():
            await asyncio.sleep(STEP)

    for use, other in [(awaited, iterated), (in_pieces, awaited), (awaited, consuming), (iterated, in_a_thread)]:
        asyncio.run(main(use, other))


def test_both_awaiting_tasks_cancelled_cancel_it() -> None:
    async def main() -> lt.Generation[str]:
        generation = slow(SlowEngine())
        tasks = [asyncio.ensure_future(use(generation)) for use in (awaited, iterated, in_pieces)]
        await asyncio.sleep(4 * STEP)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return generation

    assert asyncio.run(main()).finish_reason == "cancelled"


def test_a_shielded_generation_goes_on() -> None:
    async def main() -> lt.Generation[str]:
        generation = slow(SlowEngine(), max_tokens=20)
        kept = asyncio.ensure_future(generation)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(kept), 4 * STEP)
        return await kept

    assert asyncio.run(main()).finish_reason == "max_tokens"


def test_leaving_a_loop_keeps_the_generation() -> None:
    async def first(events: AsyncIterator[Any]) -> Any:
        async for event in events:
            return event
        raise AssertionError("no event")

    async def main() -> None:
        engine = SlowEngine()
        generation = slow(engine, max_tokens=12)
        event = await first(aiter(generation))
        piece = await first(aiter(generation.pieces()))
        gc.collect()
        await asyncio.sleep(3 * STEP)
        assert engine.passes <= 3
        events = [event async for event in generation]
        assert (events[0], generation.finish_reason, len(generation.tokens)) == (event, "max_tokens", 12)
        assert generation.text.startswith(piece)
        # What was left does not count as a reader.
        other = slow(engine)
        await first(aiter(other))
        await first(aiter(other.pieces()))
        gc.collect()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(other, 4 * STEP)
        assert other.finish_reason == "cancelled"

    asyncio.run(main())


def test_a_cancelled_row_leaves_its_batch() -> None:
    async def main() -> None:
        engine = SlowEngine()
        several = lt.generate(engine, ["a", "b", "c"], seed=0, max_tokens=MANY)
        task, other = asyncio.ensure_future(several[0]), asyncio.ensure_future(several[1])
        await asyncio.sleep(8 * STEP)
        task.cancel()
        await asyncio.sleep(8 * STEP)
        rest = sum(isinstance(event, lt.Token) for event in several[1]._row.events)
        assert several[0].finish_reason == "cancelled"
        assert rest > len(several[0].tokens)
        other.cancel()
        await asyncio.gather(task, other, return_exceptions=True)

    asyncio.run(main())


def test_cancelling_what_awaits_several_prompts_cancels_all() -> None:
    async def main() -> lt.Generations[Any]:
        several = lt.generate(SlowEngine(), ["a", "b", "c"], seed=0, max_tokens=MANY)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(several, 0.3)
        return several

    began = time.perf_counter()
    several = asyncio.run(main())
    assert time.perf_counter() - began < SOON
    assert [one.finish_reason for one in several] == ["cancelled"] * 3


def test_awaiting_again_gives_what_there_is() -> None:
    async def main() -> None:
        generation = slow(SlowEngine())
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(generation, 0.1)
        again = await generation
        assert again is generation
        assert generation.finish_reason == "cancelled"

    asyncio.run(main())


def test_a_task_that_is_cancelled_again_and_again_ends() -> None:
    """As the scopes of anyio do, which cancel a task at each of its awaits."""

    async def main() -> lt.Generation[str]:
        generation = slow(SlowEngine())

        async def use() -> None:
            try:
                await generation
            finally:
                for _ in range(3):
                    with pytest.raises(asyncio.CancelledError):
                        await asyncio.sleep(1)

        task = asyncio.ensure_future(use())
        await asyncio.sleep(4 * STEP)
        while not task.done():
            task.cancel()
            await asyncio.sleep(0)
        return generation

    assert asyncio.run(main()).finish_reason == "cancelled"


def test_errors_reach_the_task() -> None:
    class Failing(SlowEngine):
        """Fails."""

        def session(self) -> TableSession:
            """Of an engine that fails."""
            raise lt.EngineError("no session")

    async def main(use: Use) -> None:
        with pytest.raises(lt.EngineError, match="no session"):
            await use(slow(Failing()))

    for use in (awaited, iterated, in_pieces):
        asyncio.run(main(use))
