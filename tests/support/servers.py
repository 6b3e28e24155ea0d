"""Servers for tests that ask them over HTTP: other packages' as processes of their own, and ours in a thread."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from logitree.engines import Engine


def free_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class ServerProcess:
    """A module of Python's that serves, from when it answers.

    Args:
        arguments: of `python -m`, the module first.
        port: where it listens.
        answers: the path of what it answers when it is ready.
        log: a file for what it prints.
        seconds: how long it may take to begin.
    """

    def __init__(self, arguments: Sequence[str], port: int, answers: str, log: Path, seconds: float) -> None:
        self.url, self.log = f"http://127.0.0.1:{port}", log
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                stdout=out,
                stderr=subprocess.STDOUT,
                env=os.environ | {"PYTHONWARNINGS": "ignore"},
            )
        began = time.monotonic()
        while True:
            assert self.process.poll() is None, log.read_text("utf-8")[-4000:]
            assert time.monotonic() - began < seconds, "the server does not start"
            try:
                with urllib.request.urlopen(self.url + answers, timeout=10):
                    return
            except (OSError, urllib.error.URLError):
                time.sleep(0.2)

    def close(self) -> None:
        """Ends it."""
        self.process.terminate()
        self.process.wait(60)


@contextlib.contextmanager
def serving(engine: Engine, **options: Any) -> Iterator[Any]:
    """A client of a server in a thread of this process, until the end of the block.

    It needs Starlette, uvicorn and httpx.
    """
    import httpx
    import uvicorn

    from logitree.server import application

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
