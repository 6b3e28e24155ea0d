"""Many clients at once: each gets its own answers. LOGITREE_LOAD_SECONDS says for how long; more than 60 with 64
clients."""

from __future__ import annotations

import concurrent.futures
import json
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

httpx = pytest.importorskip("httpx", reason="httpx is not installed")

SECONDS = float(os.environ.get("LOGITREE_LOAD_SECONDS", "4"))
CLIENTS = 64 if SECONDS > 60 else 16
"""Each client's last answer waits for those of all others."""
CHAT = "/v1/chat/completions"


def resident() -> float:
    """Megabytes of memory that this process, with the server in it, has."""
    pages = int(Path("/proc/self/statm").read_text("utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def ask(client: Any, number: int, end: float) -> Counter[str]:
    """One client until the end: streams and whole answers under a schema that is its own. It leaves some."""
    rng, seen = random.Random(number), Counter[str]()
    while time.monotonic() < end:
        wanted = f"{number}-{rng.randrange(1000)}"
        items = {"type": "array", "items": {"const": wanted}, "minItems": 1, "maxItems": 2}
        asked = {
            "messages": [{"role": "user", "content": f"List {wanted}."}],
            "response_format": {"type": "json_schema", "json_schema": {"name": "list", "schema": items}},
            "max_tokens": 60,
        }
        how = rng.choice(["whole", "whole", "stream", "left"])
        if how == "left":
            try:
                client.post(CHAT, json=asked, timeout=0.05)
            except httpx.TimeoutException:
                seen["left"] += 1
            continue
        if how == "whole":
            answer = client.post(CHAT, json=asked)
            assert answer.status_code == 200, answer.text
            text = answer.json()["choices"][0]["message"]["content"]
        else:
            text = ""
            with client.stream("POST", CHAT, json={**asked, "stream": True}) as answer:
                lines = [line[6:] for line in answer.iter_lines() if line]
            assert lines[-1] == "[DONE]"
            for line in lines[:-1]:
                text += json.loads(line)["choices"][0]["delta"].get("content") or ""
        assert set(json.loads(text)) == {wanted}
        seen[how] += 1
    return seen


def test_many_clients_get_their_own_answers(client: Any) -> None:
    limits = httpx.Limits(max_connections=2 * CLIENTS)
    with httpx.Client(base_url=client.base_url, timeout=300, limits=limits) as many:

        def run(seconds: float) -> Counter[str]:
            end = time.monotonic() + seconds
            with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
                return sum(pool.map(lambda number: ask(many, number, end), range(CLIENTS)), Counter[str]())

        run(2)
        before = resident() if Path("/proc/self/statm").exists() else 0.0
        seen = run(SECONDS)
        assert seen["whole"] + seen["stream"] >= CLIENTS
        if before:
            assert resident() - before < 100
    state = client.get("/ready").json()
    assert (state["waiting"], state["running"]) == (0, 0)
