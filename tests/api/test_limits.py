"""What a native call may cost: fuel that bounds time, deadlines, cancelling, Ctrl-C, and waiting in threads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import logitree as lt
from logitree import _core
from slow_calls import CASES, longest_call, text_of

SECONDS = 0.25
"""What one call may take on two cores of a server, measured in the time of its thread."""
SLACK = 8 if _core.__profile__ == "dev" else 4
"""Shared machines and unoptimised builds are slower than that."""

LONG = [b"a" * 16, b"ab" * 8, b"[" * 32, b"(" * 16, b" " * 64, b"x, " * 5]
BYTES = [bytes([b]) for b in range(256)]
VOCABULARY = lt.Vocabulary.from_tokens([*BYTES, *LONG, b"</s>"], end_tokens=[256 + len(LONG)])

HOSTILE = "x[0-9]{3}|y" + "(" * 20 + "a" + "b?){0,3}" * 20
"""After `y` and a few times `a` there are more states than any fuel allows."""
ENDLESS = 10**15
"""Fuel for hours."""


def grammar_of(case: dict[str, Any]) -> lt.Grammar:
    """The case's grammar."""
    make = {
        "regex": lt.Grammar.regex,
        "gbnf": lt.Grammar.gbnf,
        "lark": lt.Grammar.lark,
        "json_schema": lambda text: lt.Grammar.json_schema(json.loads(text)),
    }
    return make[case["syntax"]](text_of(case))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_no_call_takes_long(case: dict[str, Any]) -> None:
    def longest(tokens: list[int]) -> int:
        return max(tokens, key=lambda token: (len(VOCABULARY.token_bytes(token)), token * 7 % 64))

    seconds, call, error = longest_call(lambda: grammar_of(case), VOCABULARY, 12, longest)
    assert error is None or isinstance(error, lt.LimitError), error
    assert case["ends"] != ("ok" if error else "limit")
    assert seconds < SECONDS * SLACK, call


LONGEST: dict[str, Callable[[], lt.Grammar]] = {
    "GBNF": lambda: lt.Grammar.gbnf('a ::= "b"\nroot ::= ' + "a*" * 1_570_000),
    "Lark": lambda: lt.Grammar.lark('start: "a"' + ' "a"' * 786_000),
    "EBNF": lambda: lt.Grammar.ebnf('a ::= "b"\nroot ::= ' + "a*" * 1_570_000),
    "parameters": lambda: lt.Grammar.lark('start: p::0\np::_: "" | "a" p::incr([0:17])'),
    "regex": lambda: lt.Grammar.regex("[ab]" * 200_000),
    "numbers": lambda: lt.Grammar.json_schema(json.dumps({"enum": list(range(999_990))})),
    "a list": lambda: lt.Grammar.json_schema('{"const":[' + "1," * 999_990 + "1]}"),
    "texts": lambda: lt.Grammar.choice([f"text {n}" for n in range(1 << 20)]),
    "structural tag": lambda: lt.Grammar.structural_tag(
        '{"type":"structural_tag","format":{"type":"sequence","elements":['
        + ",".join(['{"type":"const_string","value":"x"}'] * 220_000)
        + "]}}"
    ),
}
TOO_LONG: dict[str, tuple[str, Callable[[], lt.Grammar]]] = {
    "GBNF": ("3145728", lambda: lt.Grammar.gbnf("root ::= " + "a*" * (1 << 23))),
    "GBNF, rules twice": (
        "110000 problems",
        lambda: lt.Grammar.gbnf("".join(f"r{n}::=.\n" for n in range(110_000)) * 2),
    ),
    "Lark": ("3145728", lambda: lt.Grammar.lark("start: " + '"a" ' * (1 << 22))),
    "parameters": ("262144", lambda: lt.Grammar.lark('start: p::0\np::_: "" | "a" p::incr(_)')),
    "regex": ("4194304", lambda: lt.Grammar.regex("a" * 50_000_000)),
    "regex in UTF-8": ("1000000 characters", lambda: lt.Grammar.regex("é" * 1_000_001)),
    "list": ("1000000", lambda: lt.Grammar.json_schema('{"const":[' + "1," * 8_000_000 + "1]}")),
    "object": ("1000000", lambda: lt.Grammar.json_schema("{" + ",".join(f'"{n}":1' for n in range(500_001)) + "}")),
    "text": ("16777216", lambda: lt.Grammar.literal("a" * 50_000_000)),
    "texts": ("16777216", lambda: lt.Grammar.choice(["a" * 1000] * 20_000)),
    "structural tag": ("8388608", lambda: lt.Grammar.structural_tag(" " * 50_000_000)),
}


@pytest.mark.parametrize("name", LONGEST)
def test_reading_the_longest_grammars_is_bounded(name: str) -> None:
    began = time.thread_time()
    LONGEST[name]()
    assert time.thread_time() - began < SECONDS * SLACK


@pytest.mark.parametrize("name", TOO_LONG)
def test_longer_grammars_are_refused_in_the_same_time(name: str) -> None:
    says, make = TOO_LONG[name]
    began = time.thread_time()
    with pytest.raises(lt.LogitreeError, match=says):
        make()
    assert time.thread_time() - began < SECONDS * SLACK


def test_a_limit_names_the_part_of_the_grammar() -> None:
    grammar = lt.Grammar.gbnf('root ::= "(" list ")"\nlist ::= ' + "(" * 20 + '"a"' + '"b"?){0,3}' * 20 + " root?")
    matcher = grammar.matcher(VOCABULARY)
    matcher.accept(ord("("))
    with pytest.raises(lt.LimitError, match="list") as raised:
        matcher.allowed().mask()
    assert "fuel" in raised.value.help
    matcher.rollback(1)
    assert ord("(") in matcher.allowed(), "it stays usable"


def test_what_cannot_be_masked_at_the_start_is_refused_when_it_is_bound() -> None:
    with pytest.raises(lt.LimitError):
        lt.Grammar.regex("(" * 20 + "a" + "b?){0,3}" * 20).matcher(VOCABULARY)


def hostile() -> lt.Matcher:
    """A matcher whose next mask takes hours."""
    matcher = lt.Grammar.regex(HOSTILE).matcher(VOCABULARY, fuel=ENDLESS)
    matcher.accept(ord("y"))
    return matcher


def test_a_deadline_ends_a_call() -> None:
    matcher = hostile()
    began = time.monotonic()
    with lt.Deadline(0.1) as deadline, pytest.raises(lt.LimitError, match="deadline"):
        matcher.allowed().mask()
    assert 0.1 <= time.monotonic() - began < 2
    assert deadline.expired and deadline.left == 0 and not deadline.cancelled
    matcher.rollback(1)
    assert len(matcher.allowed()) == 2, "it stays usable"
    with lt.Deadline(0), pytest.raises(lt.LimitError):
        lt.Grammar.regex("[a-z]+").matcher(VOCABULARY)
    with lt.Deadline() as open_end:
        assert open_end.left is None and "no time limit" in repr(open_end)
        assert lt.Grammar.regex("[a-z]+").matcher(VOCABULARY).allowed().mask().any()


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_a_deadline_needs_a_time(seconds: float) -> None:
    with pytest.raises(lt.LimitError, match="deadline"):
        lt.Deadline(seconds)


def test_another_thread_cancels_a_call() -> None:
    matcher = hostile()
    deadline = lt.Deadline(60)
    timer = threading.Timer(0.1, deadline.cancel)
    timer.start()
    began = time.monotonic()
    with deadline, pytest.raises(lt.LimitError, match="cancelled"):
        matcher.allowed().mask()
    assert time.monotonic() - began < 5
    timer.join()
    assert deadline.cancelled and "cancelled" in repr(deadline)


def test_a_block_ends_where_it_began() -> None:
    deadline = lt.Deadline(60)
    with pytest.raises(RuntimeError, match="thread"):
        deadline.__exit__(None, None, None)


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
def test_control_c_ends_a_call() -> None:
    # A program that a shell runs in the background ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    matcher = hostile()
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    began = time.monotonic()
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            matcher.allowed().mask()
        assert time.monotonic() - began < 2
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert matcher.accepted == 1, "it stays usable"


def test_a_known_mask_does_not_wait_for_one_that_is_found() -> None:
    slow = hostile()
    quick = slow.fork()
    quick.rollback(1)
    expected = quick.allowed().mask().copy()
    quick.accept(ord("x"))
    quick.allowed().mask()
    quick.rollback(1)
    deadline = lt.Deadline(60)
    started = threading.Event()

    def find() -> None:
        with deadline:
            started.set()
            with pytest.raises(lt.LimitError):
                slow.allowed().mask()

    longest = [0.0] * 16

    def read(at: int, matcher: lt.Matcher) -> None:
        for _ in range(20):
            began = time.monotonic()
            assert (matcher.allowed().mask() == expected).all()
            matcher.accept(ord("x"))
            matcher.allowed().mask()
            matcher.rollback(1)
            longest[at] = max(longest[at], time.monotonic() - began)

    finder = threading.Thread(target=find)
    finder.start()
    started.wait()
    time.sleep(0.05)
    readers = [threading.Thread(target=read, args=(at, quick.fork())) for at in range(16)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(timeout=30)
    assert finder.is_alive(), "the slow mask is still being found"
    deadline.cancel()
    finder.join()
    assert all(longest) and max(longest) < 5, longest


WAITS = f"""
import threading, time
import logitree as lt

tokens = [*(bytes([b]) for b in range(256)), *{LONG}, b"</s>"]
vocabulary = lt.Vocabulary.from_tokens(tokens, end_tokens=[len(tokens) - 1])
slow = lt.Grammar.regex({HOSTILE!r}).matcher(vocabulary, fuel={ENDLESS})
quick = slow.fork()
quick.allowed()
slow.accept(ord("y"))
deadline, began = lt.Deadline(60), threading.Event()

def find():
    with deadline:
        began.set()
        try:
            slow.allowed()
        except lt.LimitError:
            print("cancelled")

finder = threading.Thread(target=find)
finder.start()
began.wait()
threading.Timer(0.5, deadline.cancel).start()
time.sleep(0.1)
quick.accept(ord("x"))
finder.join()
print(quick.accepted)
"""
"""Two sequences of a grammar: one finds a mask for hours, the other knows its mask and takes a token."""


def test_who_waits_for_a_mask_lets_the_others_run() -> None:
    done = subprocess.run([sys.executable, "-c", WAITS], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["cancelled", "1"]


def test_tables_of_numbers_are_charged() -> None:
    far = 10**30
    wide = [{"multipleOf": 37, "not": {"multipleOf": 31}, "minimum": -far - n, "maximum": far + n} for n in range(40)]
    began = time.thread_time()
    with pytest.raises(lt.LimitError):
        lt.Grammar.json_schema({"type": "array", "prefixItems": wide, "minItems": 40}).matcher(VOCABULARY)
    assert time.thread_time() - began < SECONDS * SLACK
