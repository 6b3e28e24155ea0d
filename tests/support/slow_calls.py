"""The costly grammars of testdata/time, and the longest native call while a text is written under a grammar."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import logitree as lt
from data_files import corpus

CASES: list[dict[str, Any]] = corpus("time", "grammars.toml")["case"]


def text_of(case: dict[str, Any], most: int | None = None) -> str:
    """The grammar's text, as the corpus describes it, nested at most ``most`` deep."""
    times: int = case.get("times", 0)
    times = times if most is None else min(times, most)
    nested: str = case.get("open", "") * times + case.get("middle", "") + case.get("close", "") * times
    text: str = case["text"].replace("@", nested) if "times" in case else case["text"]
    for n in range(case.get("lines", 0)):
        line = case["line"].replace("#0", str((7 * n + 1) % case["lines"])).replace("#1", str(n + 1))
        text += "\n" + line.replace("#", str(n))
    return text


def longest_call(
    make: Callable[[], lt.Grammar],
    vocabulary: lt.Vocabulary,
    tokens: int,
    choose: Callable[[list[int]], int],
) -> tuple[float, str, lt.LogitreeError | None]:
    """Writes ``tokens`` tokens under a grammar: the longest call in seconds of its thread, its name, and the error that
    ended it. ``choose`` picks one of the allowed tokens that do not end the text."""
    longest = (0.0, "")

    def timed(name: str, call: Callable[[], Any]) -> Any:
        nonlocal longest
        began = time.thread_time()
        try:
            return call()
        finally:
            longest = max(longest, (time.thread_time() - began, name))

    ends = set(vocabulary.end_tokens)
    try:
        grammar = timed("read", make)
        matcher = timed("bind", lambda: grammar.matcher(vocabulary))
        for at in range(tokens):
            timed(f"mask {at}", lambda: matcher.allowed().mask())
            timed(f"forced {at}", matcher.forced_tokens)
            allowed = [] if matcher.is_finished else [token for token in matcher.allowed() if token not in ends]
            if not allowed:
                break
            timed(f"explain {at}", lambda: matcher.explain(text=b"zz"))
            token = choose(allowed)
            timed(f"accept {at}", lambda token=token: matcher.accept(token))
    except lt.LogitreeError as error:
        return (*longest, error)
    return (*longest, None)
