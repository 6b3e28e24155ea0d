"""Ray Serve: replicas that each run an engine, asked over HTTP."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from .. import _core
from .._constraint import constraint_of
from .._core import Constraint
from .._errors import EngineError
from .._events import Finish, Token
from .._generate import prepare
from .._row import Row
from .._scheduler import Job, Scheduler
from ._models import Model, check_model, check_options, load

SECONDS = 5.0
"""The longest that the constraint of a request may take to compile."""
NOT_OVER_HTTP = ("chain", "drafter", "n", "on_step", "trace", "force", "tokenization", "heal", "logprobs")
WHERE = "requests over HTTP"


def application(
    model: Model,
    constraint: Any = None,
    *,
    replicas: int | tuple[int, int] = 1,
    cores: float = 1,
    gpus: float = 0,
    running: int = 8,
    waiting: int = 64,
    drain: float = 60.0,
    autoscaling: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """An application of Ray Serve whose replicas load a model each and generate.

    ```python
    ray.serve.run(logitree.ray.application("model.gguf", replicas=(1, 4), cores=2))
    ```

    `POST` takes a JSON object: `prompt` (text, messages or token ids); `constraint`, in the JSON form of
    `Constraint.form()`; `stream`; and options of `logitree.generate` as far as they are numbers and texts (`seed`,
    `max_tokens`, `stop`, `chat`, `on_limit`, `temp`, ...), over those given here. The answer has `text`,
    `finish_reason`, `seed` and `tokens`, how many there are. With `"stream": true` it is lines of JSON, each with a
    piece of `text`, and a last one with the others; a stream without that line was broken off.

    What a request gets wrong is status 400 with `error`, and `place` where there is one. A replica that has `running`
    requests takes no more, and where `waiting` wait for one, Ray answers 503. A replica that dies ends its requests
    with status 500, or their streams; the others continue, and Ray starts another. `GET` says that a replica is there.

    Args:
        model: a path that every node has, or a function without arguments that makes an engine in the replica.
        constraint: of requests that have none, as in `logitree.generate`.
        replicas: how many; or the least and the most, between which Ray chooses by load.
        cores: of each replica. A GGUF file is evaluated by as many threads.
        gpus: of each replica.
        running: requests that a replica has at once. Each pass of its model is over the next token of all,
            and the engine holds as many contexts.
        waiting: requests that may wait for a replica at each entrance.
        drain: seconds that a replica that is stopped has for its requests.
        autoscaling: more of Ray's `autoscaling_config`, such as `target_ongoing_requests`.
        **options: defaults for `logitree.generate`.

    Returns:
        What `ray.serve.run` takes.

    Raises:
        TypeError: for an unknown option, a constraint that means none, a model that is loaded here.
        ImportError: without Ray Serve.
    """
    serve = importlib.import_module("ray.serve")
    check_model(model)
    check_options(options, NOT_OVER_HTTP, WHERE)
    if constraint is not None:
        constraint_of(constraint)
    number: dict[str, Any] = {"num_replicas": replicas}
    if not isinstance(replicas, int):
        number = {
            "autoscaling_config": {"min_replicas": replicas[0], "max_replicas": replicas[1], **(autoscaling or {})}
        }
    made = serve.deployment(
        name="logitree",
        max_ongoing_requests=running,
        max_queued_requests=waiting,
        graceful_shutdown_timeout_s=drain,
        ray_actor_options={"num_cpus": cores, "num_gpus": gpus},
        **number,
    )(Replica)
    return made.bind(model, constraint, options, cores, running)


class Replica:
    """One engine. Arguments: those of `application`, checked."""

    def __init__(self, model: Model, constraint: Any, options: Mapping[str, Any], cores: float, running: int) -> None:
        self._engine = load(model, cores)
        self._scheduler = Scheduler(self._engine, places=running, waiting=running)
        self._constraint = None if constraint is None else constraint_of(constraint)
        self._options = dict(options)
        self._broken: BaseException | None = None

    def check_health(self) -> None:
        """Raises what broke the engine; Ray then starts another replica."""
        if self._broken is not None:
            raise self._broken

    async def __call__(self, request: Any) -> Any:
        """An answer to an HTTP request of Starlette's."""
        responses = importlib.import_module("starlette.responses")
        if request.method == "GET":
            return responses.JSONResponse({"status": "ready"})
        try:
            asked = await asyncio.to_thread(self._read, await request.body())
        except RecursionError:
            return responses.JSONResponse({"error": "the request is nested too deep"}, 400)
        except (_core.LogitreeError, TypeError, ValueError) as wrong:
            return responses.JSONResponse(_problem(wrong), 400)
        stream = asked.pop("stream")
        lines = self._lines(asked, streams=stream)
        try:  # what is wrong with the request shows before the first piece
            first = await anext(lines)
        except (_core.LogitreeError, TypeError, ValueError) as wrong:
            return responses.JSONResponse(_problem(wrong), 400)
        if not stream:
            await lines.aclose()
            return responses.JSONResponse(first)
        return responses.StreamingResponse(_written(first, lines), media_type="application/x-ndjson")

    def _read(self, body: bytes) -> dict[str, Any]:
        asked = json.loads(body)
        if not isinstance(asked, dict) or "prompt" not in asked:
            raise TypeError('a request is a JSON object with "prompt"')
        constraint = asked.pop("constraint", None)
        made = self._constraint
        if constraint is not None:
            with _core.Deadline(SECONDS):
                made = Constraint.from_form(json.dumps(constraint))
        stream = asked.pop("stream", False)
        if not isinstance(stream, bool):
            raise TypeError('"stream" is true or false')
        prompt = asked.pop("prompt")
        check_options(asked, NOT_OVER_HTTP, WHERE)
        return {"prompt": prompt, "constraint": made, "stream": stream, **self._options, **asked}

    async def _lines(self, asked: dict[str, Any], *, streams: bool) -> AsyncGenerator[dict[str, Any], None]:
        """The pieces of an answer and its end, or only the whole answer."""
        job = Job([await asyncio.to_thread(self._begin, asked)], streams=streams)
        self._scheduler.submit(job)
        try:
            async for _, event in job.events():
                if isinstance(event, Token) and event.text and streams:
                    yield {"text": event.text}
                elif isinstance(event, Finish):
                    if event.tail and streams:
                        yield {"text": event.tail}
                    yield _end(event) if streams else {"text": event.text, **_end(event)}
        except EngineError as broken:
            self._broken = broken
            raise RuntimeError("the engine failed") from broken
        finally:
            job.cancel()

    def _begin(self, asked: dict[str, Any]) -> Row:
        with _core.Deadline(SECONDS):
            _, (row,) = prepare(self._engine, asked.pop("prompt"), asked.pop("constraint"), **asked)
            return row


async def _written(first: dict[str, Any], rest: AsyncGenerator[dict[str, Any], None]) -> AsyncGenerator[str, None]:
    try:
        yield json.dumps(first) + "\n"
        async for piece in rest:
            yield json.dumps(piece) + "\n"
    finally:
        await rest.aclose()


def _end(end: Finish) -> dict[str, Any]:
    return {"finish_reason": end.reason, "seed": end.stats.seed, "tokens": len(end.tokens)}


def _problem(wrong: BaseException) -> dict[str, str]:
    place = getattr(wrong, "place", "")
    return {"error": str(wrong), **({"place": place} if place else {})}
