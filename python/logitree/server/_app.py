"""The HTTP side: routes, keys, limits, errors in OpenAI's form, and streams that end where their clients leave."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import os
import sys
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from types import MappingProxyType
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from .. import _core
from .._errors import EngineError
from .._events import Finish
from .._scheduler import Closing, Job, QueueFull, Scheduler
from ..catalogue import Catalogue
from ..engines import Engine
from ._answers import Answer, Chunk
from ._fields import RequestError, read_object
from ._limits import Limits
from ._metrics import Metrics
from ._openapi import document
from ._pages import page
from ._service import Prepared, Service

_LOG = logging.getLogger("logitree.server")

_RETRY_AFTER = {"Retry-After": "1"}
T = TypeVar("T")
_NICE = 10
_NONE: Mapping[str, str] = MappingProxyType({})
_OPEN = ("/health", "/ready", "/openapi.json", "/", "/playground/{name}")
"""Paths that need no key."""


def application(
    engine: Engine,
    *,
    name: str | None = None,
    places: int = 8,
    limits: Limits | None = None,
    api_keys: Sequence[str] = (),
    origins: Sequence[str] = (),
    drain: float = 30.0,
    catalogues: Mapping[str, str | PathLike[str]] = _NONE,
) -> Starlette:
    """An ASGI application that serves an engine's model in OpenAI's and llama.cpp's APIs.

    ```python
    app = logitree.server.application(LlamaCpp("model.gguf"))  # uvicorn program:app
    ```

    Args:
        engine: runs the model. It is the application's alone.
        name: what the API calls the model; None: the engine's name.
        places: the most answers that are decoded at once, in one pass of the model each time.
        limits: what one request may take.
        api_keys: keys of clients; each request must have one of them. Without keys every request is answered.
        origins: origins of web pages whose scripts may read answers (CORS).
        drain: seconds that running requests have when the application is shut down.
        catalogues: indexes of catalogues by the names that requests give in their place.

    Raises:
        ValueError: places below 1, or an empty key.
        FileError, PayloadError: an index cannot be read.
        EngineError: the engine has no memory for so many rows.
    """
    if places < 1:
        raise ValueError(f"places is {places}, expected 1 or more")
    if not all(api_keys):
        raise ValueError("an empty API key")
    files = {named: os.path.realpath(path) for named, path in catalogues.items()}
    for path in files.values():
        Catalogue.open(path)
    service = Service(engine, name or engine.name or "model", limits or Limits(), files)
    return _Server(service, places, api_keys, drain).asgi(origins)


class _Server:
    """One application."""

    def __init__(self, service: Service, places: int, api_keys: Sequence[str], drain: float) -> None:
        self._service, self._limits, self._drain = service, service.limits, drain
        self._keys = [key.encode() for key in api_keys]
        self._places = places
        self._scheduler = Scheduler(service.engine, places=places, waiting=service.limits.waiting)
        self._metrics = Metrics(self._scheduler)
        self._readers = ThreadPoolExecutor(2, "logitree reader", initializer=_yield_to_decoding)
        self._created = int(time.time())
        self._stepping = asyncio.Lock()
        self._steppers = 0

    def asgi(self, origins: Sequence[str]) -> Starlette:
        """The routes."""
        service = self._service

        def post(path: str, answer: Callable[[Request], Awaitable[Response]]) -> Route:
            return Route(path, self._guarded(path, answer), methods=["POST"])

        def get(path: str, answer: Callable[[Request], Awaitable[Response]]) -> Route:
            return Route(path, self._guarded(path, answer), methods=["GET"])

        def generate(read: Callable[[Mapping[str, Any]], Prepared]) -> Callable[[Request], Awaitable[Response]]:
            return lambda request: self._generate(request, read)

        def convert(read: Callable[[Mapping[str, Any]], Any]) -> Callable[[Request], Awaitable[Response]]:
            return lambda request: self._convert(request, read)

        routes = [
            post("/v1/chat/completions", generate(service.chat)),
            post("/v1/responses", generate(service.response)),
            post("/v1/completions", generate(service.completion)),
            post("/chat/completions", generate(service.chat)),
            post("/completion", generate(service.llama_completion)),
            post("/completions", generate(service.llama_completion)),
            post("/apply-template", convert(service.template)),
            post("/v1/classify", self._classify),
            post("/v1/lens", self._lens),
            post("/v1/trace", generate(service.trace)),
            post("/v1/allowed", convert(service.allowed)),
            post("/tokenize", convert(service.tokenize)),
            post("/detokenize", convert(service.detokenize)),
            get("/v1/models", self._models),
            get("/models", self._models),
            get("/v1/models/{name}", self._model),
            get("/props", self._props),
            get("/health", self._health),
            get("/ready", self._ready),
            get("/metrics", self._measured),
            get("/openapi.json", self._document),
            get("/", self._page),
            get("/playground/{name}", self._page),
        ]
        middleware = []
        if origins:
            middleware.append(
                Middleware(
                    CORSMiddleware, allow_origins=list(origins), allow_methods=["GET", "POST"], allow_headers=["*"]
                )
            )
        handlers: Any = {404: _no_route, 405: _no_route}
        return Starlette(routes=routes, middleware=middleware, exception_handlers=handlers, lifespan=self._lifespan)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(self._scheduler.close, self._drain)
        self._readers.shutdown(wait=False, cancel_futures=True)

    # -- what every request has

    def _guarded(
        self, path: str, answer: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint with keys, errors as answers, and a count."""

        async def endpoint(request: Request) -> Response:
            began = time.monotonic()
            try:
                if path not in _OPEN:
                    self._check_key(request)
                response = await answer(request)
            except ClientDisconnect:
                response = Response(status_code=499)
            except Exception as wrong:
                response = self._refused(wrong)
            self._metrics.requests.labels(path, str(response.status_code)).inc()
            _LOG.info("%s %s %d %.1f ms", request.method, path, response.status_code, 1e3 * (time.monotonic() - began))
            return response

        return endpoint

    def _check_key(self, request: Request) -> None:
        if not self._keys:
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        key = given.strip().encode("utf-8", "replace") if scheme.lower() == "bearer" else b""
        # All are compared, whatever the first says: the time tells nothing about the keys.
        if sum(hmac.compare_digest(key, known) for known in self._keys) == 0:
            message = "no valid API key: send the header Authorization: Bearer KEY"
            raise RequestError(message, status=401, kind="authentication_error")

    def _refused(self, wrong: BaseException) -> Response:
        status, body = _problem(wrong)
        if status >= 500:
            _LOG.error("a request failed", exc_info=wrong)
        return JSONResponse(body, status, headers=_RETRY_AFTER if status in (429, 503) else None)

    async def _body(self, request: Request) -> dict[str, Any]:
        """The object of a request."""
        try:
            body = await asyncio.wait_for(self._received(request), self._limits.receive)
        except asyncio.TimeoutError:
            message = f"the request took longer than {self._limits.receive:g} s to come"
            raise RequestError(message, status=408) from None
        found: dict[str, Any] = await self._off_loop(lambda: read_object(body))
        return found

    async def _received(self, request: Request) -> bytes:
        """The bytes of a request, read as they come."""
        parts, size = [], 0
        async for part in request.stream():
            size += len(part)
            if size > self._limits.body:
                raise RequestError(f"the body has more than {self._limits.body:,} bytes", status=413)
            parts.append(part)
        return b"".join(parts)

    async def _off_loop(self, act: Callable[[], Any]) -> Any:
        """Reads a request in another thread, with the time that a constraint may take."""

        def limited() -> Any:
            try:
                with _core.Deadline(self._limits.compile):
                    return act()
            except EngineError as wrong:  # asked for what it cannot do: a prompt too long, messages without a template
                raise RequestError(str(wrong)) from wrong

        return await asyncio.get_running_loop().run_in_executor(self._readers, limited)

    # -- endpoints

    async def _generate(self, request: Request, read: Callable[[Mapping[str, Any]], Prepared]) -> Response:
        began = time.perf_counter()
        body = await self._body(request)
        prepared: Prepared = await self._off_loop(lambda: read(body))
        self._metrics.reading.observe(time.perf_counter() - began)
        job = Job(prepared.answer.rows, streams=prepared.stream)
        if prepared.search is None:
            self._scheduler.submit(job)
        else:
            await self._in_steps(request, prepared.search)
        chunks = self._chunks(job, prepared.answer, began)
        if not prepared.stream:
            await self._unless_gone(request, _exhausted(chunks))
            return JSONResponse(prepared.answer.whole())
        # What is wrong with the first step is an answer of its own.
        first: Chunk = await self._unless_gone(request, anext(chunks))
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        lines = self._lines(first, chunks, prepared.answer)
        return StreamingResponse(lines, media_type="text/event-stream", headers=headers)

    async def _in_steps(self, request: Request, steps: Generator[None, None, T]) -> T:
        """What comes of steps that need the engine: each is taken between two passes. One request takes its steps at a
        time, since they share memory.

        Raises:
            ClientDisconnect: the client has left.
            QueueFull: as many requests wait for that as answers may.
            TimeoutError: it takes longer than a request may.
        """

        async def taken() -> T:
            async with self._stepping:
                while True:
                    is_over, found = await asyncio.wrap_future(self._scheduler.call(lambda: _step(steps)))
                    if is_over:
                        made: T = found
                        return made

        if self._steppers >= self._limits.waiting:
            raise QueueFull
        self._steppers += 1
        try:
            return await self._unless_gone(request, asyncio.wait_for(taken(), self._limits.seconds))
        except asyncio.TimeoutError:
            raise TimeoutError from None
        finally:
            self._steppers -= 1
            with contextlib.suppress(QueueFull, Closing):
                self._scheduler.call(steps.close)

    async def _chunks(self, job: Job, answer: Answer, began: float) -> AsyncGenerator[Chunk, None]:
        """The parts of a stream. Where its consumer stops, the rows end.

        Raises:
            TimeoutError: it takes longer than a request may.
        """
        expiry = job.loop.call_later(self._limits.seconds, job.cancel)
        is_first = True
        try:
            async for at, event in job.events():
                if is_first:
                    is_first = False
                    for chunk in answer.begin():
                        yield chunk
                if isinstance(event, Finish):
                    row = job.rows[at]
                    self._metrics.finished(event, row.began + row.prefill - began)
                    if event.reason == "cancelled":
                        raise TimeoutError
                for chunk in answer.take(at, event):
                    yield chunk
            for chunk in answer.end():
                yield chunk
        finally:
            expiry.cancel()
            job.cancel()

    async def _lines(
        self, first: Any, chunks: AsyncGenerator[dict[str, Any], None], answer: Answer
    ) -> AsyncIterator[str]:
        """A stream of server-sent events. What goes wrong in it is its last event."""
        yield answer.line(first)
        try:
            async for chunk in chunks:
                yield answer.line(chunk)
        except Exception as wrong:
            status, body = _problem(wrong)
            if status >= 500:
                _LOG.error("a stream failed", exc_info=wrong)
            yield answer.line(body)
            return
        finally:
            await chunks.aclose()
        if answer.ends_with_done:
            yield "data: [DONE]\n\n"

    async def _unless_gone(self, request: Request, awaited: Awaitable[T]) -> T:
        """What comes of `awaited`, which is cancelled where the client leaves.

        Raises:
            ClientDisconnect: it has.
            What `awaited` raises.
        """

        async def gone() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass

        wanted, left = asyncio.ensure_future(awaited), asyncio.ensure_future(gone())
        try:
            await asyncio.wait((wanted, left), return_when=asyncio.FIRST_COMPLETED)
            if not wanted.done():
                raise ClientDisconnect
            return wanted.result()
        finally:
            for task in (wanted, left):
                task.cancel()
            await asyncio.gather(wanted, left, return_exceptions=True)

    async def _classify(self, request: Request) -> Response:
        found = await self._between_passes(request, self._service.classification)
        return JSONResponse({"object": "list", "model": self._service.name, "data": found})

    async def _lens(self, request: Request) -> Response:
        return JSONResponse(await self._between_passes(request, self._service.lens))

    async def _between_passes(
        self, request: Request, read: Callable[[Mapping[str, Any]], Generator[None, None, T]]
    ) -> T:
        """What the steps of a request find."""
        body = await self._body(request)
        steps: Generator[None, None, T] = await self._off_loop(lambda: read(body))
        return await self._in_steps(request, steps)

    async def _convert(self, request: Request, read: Callable[[Mapping[str, Any]], Any]) -> Response:
        body = await self._body(request)
        return JSONResponse(await self._off_loop(lambda: read(body)))

    async def _models(self, _request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [self._described()]})

    async def _model(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name != self._service.name:
            raise RequestError(f"there is no model {name!r}", "model", 404)
        return JSONResponse(self._described())

    def _described(self) -> dict[str, Any]:
        return {"id": self._service.name, "object": "model", "created": self._created, "owned_by": "logitree"}

    async def _props(self, _request: Request) -> Response:
        engine = self._service.engine
        template = engine.chat_template
        return JSONResponse(
            {
                "default_generation_settings": {"n_ctx": engine.n_ctx},
                "total_slots": self._places,
                "model_alias": self._service.name,
                "chat_template": template if isinstance(template, str) else None,
                "vocabulary_size": len(engine.vocabulary),
                "has_lens": engine.has_lens,
            }
        )

    async def _document(self, _request: Request) -> Response:
        return JSONResponse(document(self._limits))

    async def _page(self, request: Request) -> Response:
        found = page(request.path_params.get("name", ""))
        if found is None:
            raise RequestError(f"there is no {request.url.path}", status=404)
        return found

    async def _health(self, _request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _ready(self, _request: Request) -> Response:
        if self._scheduler.is_closing:
            raise Closing
        return JSONResponse({"status": "ready", "waiting": self._scheduler.waiting, "running": self._scheduler.running})

    async def _measured(self, _request: Request) -> Response:
        return Response(self._metrics.text(), media_type=self._metrics.content_type)


def _problem(wrong: BaseException) -> tuple[int, dict[str, Any]]:
    """The status and the body of an error, in OpenAI's form. Nothing but what the request itself can cause is
    described."""
    kind, param, code = "invalid_request_error", None, None
    if isinstance(wrong, RequestError):
        status, message, kind, param = wrong.status, str(wrong), wrong.kind, wrong.param
    elif isinstance(wrong, QueueFull):
        status, message, kind = 429, "the server has as many requests as it takes: try again", "rate_limit_error"
    elif isinstance(wrong, Closing):
        status, message, kind = 503, "the server is shutting down", "server_error"
    elif isinstance(wrong, TimeoutError):
        status, message, kind = 504, "the answer took longer than a request may", "server_error"
    elif isinstance(wrong, _core.LogitreeError) and not isinstance(wrong, EngineError):
        status, message, param = 400, str(wrong), getattr(wrong, "place", "") or None
        code = type(wrong).__name__
    else:
        status, message, kind = 500, "the server failed to answer", "server_error"
    found: dict[str, Any] = {"message": message, "type": kind, "param": param, "code": code}
    cause = wrong.__cause__ if isinstance(wrong, RequestError) else wrong
    if status == 400 and isinstance(cause, _core.LogitreeError):
        found |= {"place": cause.place, "help": cause.help}
    return status, {"error": found}


def _yield_to_decoding() -> None:
    """Where threads have priorities of their own, on Linux, the calling one gets a lower one: what it compiles must
    not hold up the threads that decode."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)


def _step(steps: Generator[None, None, T]) -> tuple[bool, Any]:
    """Takes a step. Whether it was the last, and what they all find."""
    try:
        next(steps)
    except StopIteration as over:
        return True, over.value
    return False, None


async def _exhausted(chunks: AsyncGenerator[Chunk, None]) -> None:
    async for _ in chunks:
        pass


async def _no_route(request: Request, wrong: Exception) -> Response:
    status = getattr(wrong, "status_code", 404)
    message = f"there is no {request.method} {request.url.path}"
    return JSONResponse(
        {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}, status
    )
