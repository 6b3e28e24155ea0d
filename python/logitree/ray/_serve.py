"""Ray Serve: replicas that each run an engine, asked over HTTP."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from .. import _core
from .._constraint import constraint_of
from .._core import Constraint
from .._errors import EngineError
from .._generate import generate
from .._generation import Generation
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
        running: requests that a replica has at once. They are decoded one after the other.
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
    return made.bind(model, constraint, options, cores)


class Replica:
    """One engine, which answers one request after the other. Arguments: those of `application`, checked."""

    def __init__(self, model: Model, constraint: Any, options: Mapping[str, Any], cores: float) -> None:
        self._engine = load(model, cores)
        self._constraint = None if constraint is None else constraint_of(constraint)
        self._options = dict(options)
        self._turn = asyncio.Lock()
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
        except (_core.LogitreeError, TypeError, ValueError) as wrong:
            return responses.JSONResponse(_problem(wrong), 400)
        if asked.pop("stream"):
            lines = self._lines(asked)
            try:  # what is wrong with the request shows before the first piece
                first = await anext(lines)
            except (_core.LogitreeError, TypeError, ValueError) as wrong:
                return responses.JSONResponse(_problem(wrong), 400)
            return responses.StreamingResponse(_with(first, lines), media_type="application/x-ndjson")
        try:
            async with self._turn:
                generation = await asyncio.to_thread(self._begin, asked)
                return responses.JSONResponse(_end(await generation))
        except (_core.LogitreeError, TypeError, ValueError) as wrong:
            return responses.JSONResponse(_problem(wrong), 400)
        except EngineError as broken:
            self._broken = broken
            raise

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

    def _begin(self, asked: dict[str, Any]) -> Generation[Any]:
        with _core.Deadline(SECONDS):
            made: Generation[Any] = generate(self._engine, asked.pop("prompt"), asked.pop("constraint"), **asked)
            return made

    async def _lines(self, asked: dict[str, Any]) -> AsyncIterator[str]:
        async with self._turn:
            generation = await asyncio.to_thread(self._begin, asked)
            try:
                async for piece in generation.pieces():
                    yield json.dumps({"text": piece}) + "\n"
                yield json.dumps(_end(generation, with_text=False)) + "\n"
            except EngineError as broken:
                self._broken = broken
                raise
            finally:
                generation.cancel()


async def _with(first: str, lines: AsyncIterator[str]) -> AsyncIterator[str]:
    yield first
    async for line in lines:
        yield line


def _end(generation: Generation[Any], with_text: bool = True) -> dict[str, Any]:
    found = {
        "finish_reason": generation.finish_reason,
        "seed": generation.stats.seed,
        "tokens": len(generation.tokens),
    }
    return {"text": generation.text, **found} if with_text else found


def _problem(wrong: BaseException) -> dict[str, str]:
    place = getattr(wrong, "place", "")
    return {"error": str(wrong), **({"place": place} if place else {})}
