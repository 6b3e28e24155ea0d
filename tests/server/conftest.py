"""A server of the tests' model, in a thread of this process."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("starlette", reason="Starlette is not installed")
pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
uvicorn = pytest.importorskip("uvicorn", reason="uvicorn is not installed")
httpx = pytest.importorskip("httpx", reason="httpx is not installed")

from logitree.engines import Engine  # noqa: E402
from logitree.server import application  # noqa: E402

Serve = Callable[..., Any]
"""Serves an engine with options of `application`; an httpx client of it."""


@contextlib.contextmanager
def serving(engine: Engine, **options: Any) -> Iterator[Any]:
    """A client of a server that runs until the end of the block."""
    options.setdefault("name", "m")
    server = uvicorn.Server(uvicorn.Config(application(engine, **options), log_config=None, lifespan="on"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        began = time.monotonic()
        while not server.started:
            assert thread.is_alive()
            assert time.monotonic() - began < 30
            time.sleep(0.01)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            with httpx.Client(base_url=address, timeout=120) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive()


@pytest.fixture(scope="module")
def client(engine: Engine) -> Iterator[Any]:
    """A client of a server of SmolLM2."""
    with serving(engine, places=4) as made:
        yield made


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Servers of other engines and with other options, until the end of the test."""
    with contextlib.ExitStack() as stack:
        yield lambda engine, **options: stack.enter_context(serving(engine, **options))
