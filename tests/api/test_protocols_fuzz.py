"""Parsers of protocols on mutated responses: nothing raises, nothing is lost, any pieces give the same."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from logitree.protocols import NAMES, PROTOCOLS, Protocol, ToolCall
from logitree.protocols._reading import Search
from protocol_texts import FRAGMENTS, TOOLS, check_events, in_chunks, rendered, some_arguments, some_text, stops

CASES = int(os.environ.get("LOGITREE_PROTOCOL_CASES", "150"))
"""Mutated responses of each protocol; half of them are read in pieces too."""

ODD = [
    "\\w",
    "\\u12",
    "\\ud800",
    "\\",
    '"',
    "\ud800",
    "\x00",
    "\u2028",
    "NaN",
    "-",
    "1e999",
    "{",
    "}}",
    "[",
    "]",
    "9" * 5_000,
]
"""What JSON and its readers stumble over, beside the pieces of markers."""


def responses(protocol: Protocol, rng: random.Random) -> Iterator[str]:
    """Responses as the protocol writes them."""
    banned = stops(protocol)
    while True:
        reasoning = some_text(rng, banned) if protocol.reasoning and rng.random() < 0.6 else None
        names = ["weather", "stop-now", "other"]
        calls = [(rng.choice(names), some_arguments(rng, protocol)) for _ in range(rng.randrange(3))]
        content = some_text(rng, banned) if rng.random() < 0.7 else ""
        yield "".join(text for text, _ in rendered(protocol, reasoning, content, calls))


def mutated(text: str, other: str, protocol: Protocol, rng: random.Random) -> str:
    """The text with some places cut, doubled, exchanged, or written over."""
    marks = [*protocol.markers, *stops(protocol), *FRAGMENTS, *ODD]
    for _ in range(rng.randrange(1, 5)):
        a, b = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
        kind = rng.randrange(6)
        if kind == 0:
            text = text[:a] + text[b:]
        elif kind == 1:
            text = text[:b] + text[a:]
        elif kind == 2:
            text = text[:a] + rng.choice(marks) + text[a + rng.randrange(3) :]
        elif kind == 3:
            text = text[:a] + chr(rng.choice((rng.randrange(32, 127), rng.randrange(0x110000)))) + text[a + 1 :]
        elif kind == 4:
            text = text[:a] + other[rng.randrange(len(other) + 1) :]
        else:
            text = text[:a]
    return text


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=NAMES)
def test_mutated_responses_are_read_to_their_end(protocol: Protocol) -> None:
    rng = random.Random(f"{protocol} {os.environ.get('LOGITREE_PROTOCOL_SEED', '')}")
    written, called = responses(protocol, rng), 0
    for number in range(CASES):
        text = mutated(next(written), next(written), protocol, rng).encode("utf-8", "replace").decode()
        begun, tools = rng.random() < 0.2 and protocol.reasoning is not None, rng.choice(((), TOOLS))
        parser = protocol.parser(begun=begun, tools=tools)
        events = parser.feed(text) + parser.finish()
        found = parser.response
        check_events(events, found)
        assert found.text == text
        called += any(isinstance(part, ToolCall) for part in found.parts)
        if number % 2:
            continue
        parser = protocol.parser(begun=begun, tools=tools)
        for piece in rng.choice((list(text), in_chunks(text, rng), in_chunks(text.encode(), rng))):
            parser.feed(piece)
        parser.finish()
        assert parser.response == found, text
    assert called > CASES // 50


def test_a_name_with_a_wrong_escape_is_no_call_and_loses_nothing() -> None:
    for name in ("qwen3", "hermes", "granite_3", "granite_4", "exaone_4", "mistral", "llama3"):
        protocol = Protocol.named(name)
        assert protocol.calls is not None
        calls = protocol.calls
        text = f"{calls.begin}{calls.head}\\w{calls.middle}{{}}{calls.tail}{calls.end}"
        parser = protocol.parser()
        parser.feed(text)
        parser.feed("more")
        parser.finish()
        found = parser.response
        assert found.text == text + "more"
        assert found.tool_calls == ()
        assert found.content.endswith("more")
        assert found.notes == ("a tool call is malformed, or has no end",)


def test_what_may_become_a_marker_is_held() -> None:
    """`Search.held` equals the slow search: from the longest end down, whether one of the texts begins with it."""
    rng = random.Random(7)
    for _ in range(3_000):
        texts = {"".join(rng.choices("<|ab]", k=rng.randrange(1, 6))) for _ in range(rng.randrange(4))}
        text, search = "".join(rng.choices("<|ab]x", k=rng.randrange(9))), Search(texts)
        for at in range(len(text) + 1):
            ends = (n for n in range(len(text) - at, 0, -1))
            slow = next((n for n in ends if any(len(one) > n and one.startswith(text[-n:]) for one in texts)), 0)
            assert search.held(text, at) == slow


def test_a_character_is_read_across_pieces_of_any_kind() -> None:
    protocol = Protocol.named("qwen3")
    for pieces, text in (
        ([b"\xc3", b"\xa9", "a"], "éa"),
        ([b"\xc3", "a", b"\xa9"], "\ufffda\ufffd"),
        (["\ud800", "a"], "?a"),
        ([b"\xe2\x82", "", b"\xac", "€"], "€€"),
    ):
        parser = protocol.parser()
        for piece in pieces:
            parser.feed(piece)
        parser.finish()
        assert parser.response.content == text
