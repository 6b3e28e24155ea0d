"""Servers of other packages as processes of their own, for tests that ask them over HTTP."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path


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
