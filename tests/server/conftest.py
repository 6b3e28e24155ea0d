"""A server of the tests' model, in a thread of this process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("starlette", reason="Starlette is not installed")
pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

from logitree.engines import Engine
from servers import serving

Serve = Callable[..., Any]
"""Serves an engine with options of `application`; an httpx client of it."""


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
