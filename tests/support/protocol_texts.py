"""Responses of protocols made of parts, and parsers' events held to their parts: what the tests of protocols share."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence
from typing import Any

import logitree as lt
from logitree.protocols import PartEnd, PartStart, PartText, Protocol, Response, ToolCall
from logitree.protocols._protocol import Pairs

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 0, "maximum": 99},
        "tags": {"type": "array", "items": {"type": "string"}},
        "unit": {"enum": ["C", "F"]},
    },
    "required": ["city"],
}
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "weather", "parameters": WEATHER}},
    {"name": "stop-now", "input_schema": {"type": "object", "properties": {}}},
]
KINDS = ("control", "user_defined", "text")
"""What the markers are in a vocabulary: control tokens, added tokens, or text of other tokens."""


def vocabulary(protocol: Protocol, kind: str, more: Sequence[str] = ()) -> lt.Vocabulary:
    """All bytes, some longer tokens, the protocol's markers, and an end."""
    words = ['{"', '": "', '", "', "}}", "</", "<tool", "think", "arguments", "\n\n", "analysis", "assistant", *more]
    markers = [] if kind == "text" else list(dict.fromkeys((*protocol.markers, *protocol.turn_end)))
    tokens = [*(bytes([b]) for b in range(256)), *(w.encode() for w in words), *(m.encode() for m in markers), b"</s>"]
    kinds = ["normal"] * (256 + len(words)) + [kind] * len(markers) + ["control"]
    return lt.Vocabulary.from_tokens(tokens, kinds=kinds, end_tokens=[len(tokens) - 1])


def spelled(text: str, vocabulary: lt.Vocabulary, rng: random.Random, *, markers: bool) -> list[int]:
    """Tokens of a text: with `markers` those of markers first, otherwise plain tokens and added ones."""
    data, found, at = text.encode(), list[int](), 0
    longest = max(map(len, vocabulary))
    while at < len(data):
        ways = []
        for n in range(min(longest, len(data) - at), 0, -1):
            for id in vocabulary.find(data[at : at + n]):
                kind = vocabulary.kind(id)
                if kind != "normal" and markers:
                    ways = [id]
                    break
                if kind in ("normal", "user_defined") and not (kind == "user_defined" and markers):
                    ways.append(id)
            else:
                continue
            break
        id = rng.choice(ways)
        found.append(id)
        at += len(vocabulary[id])
    return found


PIECES = """a é 🦊 " \\ { }} [ ] < </ <| |> <｜ > 0 null ``` <tool tool_call> </tool_cal <think /think> ; , 1e5
    function <|channel| [TOOL_CALL [ARG {"nam to=functions </parameter </arg_valu <｜tool▁call▁en
    ｜DSML｜ </｜DSML｜param"""
FRAGMENTS = [*PIECES.split(), "\n", " ", ": "]
"""Pieces of markers and of JSON."""


def some_text(rng: random.Random, banned: Sequence[str], n: int = 12) -> str:
    """A text of pieces of markers and of JSON, without any whole marker."""
    made = ""
    for _ in range(rng.randrange(n)):
        piece = rng.choice(FRAGMENTS)
        if not any(text in made + piece for text in banned):
            made += piece
    return made


def stops(protocol: Protocol) -> list[str]:
    """The texts that free text does not have."""
    found = [protocol.joint, *protocol.turn_end, '{"name": "', '{"name":"']
    for block in (*(protocol.reasoning.ways if protocol.reasoning else ()), *protocol.content):
        found += [block.begin, block.end]
    if protocol.calls:
        found += [protocol.calls.trigger, protocol.calls.prefix, *(head for head, _ in protocol.calls.also)]
    return [text for text in found if text]


def some_arguments(rng: random.Random, protocol: Protocol) -> dict[str, Any]:
    """Arguments of the tool weather, with any markers inside of JSON's texts."""
    calls = protocol.calls
    assert calls is not None
    inner = [*protocol.markers, *FRAGMENTS, '"}}', calls.tail, calls.end, *protocol.turn_end]
    pairs = calls.pairs
    end: list[str] = []
    if pairs is not None:
        end = [pairs.tag if pairs.nested else pairs.quotes[1] or pairs.end.strip(), *protocol.turn_end]
    elif calls.quote:
        end = [calls.quote, calls.trigger, calls.tail.removeprefix("}"), *protocol.turn_end]
    # Texts inside of JSON may have any marker.
    in_json = not calls.quote and (pairs is None or not pairs.nested)

    def text() -> str:
        return "".join(rng.choice(inner) for _ in range(rng.randrange(5))) if in_json else some_text(rng, end)

    city = text() if calls.pairs is None else some_text(rng, end)
    made: dict[str, Any] = {"city": city}
    if rng.random() < 0.5:
        made["days"] = rng.randrange(100)
    if rng.random() < 0.5:
        made["tags"] = [text() for _ in range(rng.randrange(3))]
    if rng.random() < 0.3:
        made["unit"] = rng.choice("CF")
    return made


Pieces = list[tuple[str, bool]]
"""Texts, and whether markers in them are markers."""


def kind_of(value: Any) -> str:
    """The type of a value of JSON."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    return {str: "string", list: "array", dict: "object"}.get(type(value), "number")


def _filled(text: str, number: int) -> str:
    """A text with its blanks filled in."""
    return text.replace("{number}", str(number * 7)).replace("{id}", f"call_{number}")


def unquoted(value: Any, quote: str) -> Pieces:
    """A value as forms with keys without quotes write it."""
    if isinstance(value, str):
        return [(quote, True), (value, False), (quote, True)]
    if isinstance(value, list):
        parts = [unquoted(item, quote) for item in value]
    elif isinstance(value, dict):
        parts = [[(key + ":", False), *unquoted(item, quote)] for key, item in value.items()]
    else:
        return [(json.dumps(value), False)]
    begin, end = "[]" if isinstance(value, list) else "{}"
    inner = [piece for at, part in enumerate(parts) for piece in ([(",", False)] if at else []) + part]
    return [(begin, False), *inner, (end, False)]


def paired(pairs: Pairs, key: str, value: Any) -> Pieces:
    """A key and its value as a form of pairs writes them."""
    kind, end = kind_of(value), pairs.end.replace("{key}", key)
    begin = pairs.begin + key + next(middle for kinds, middle in pairs.ways if kind in kinds)
    if pairs.nested and isinstance(value, list | dict):
        inner = value.items() if isinstance(value, dict) else [("item", one) for one in value]
        return [(begin, True), *(piece for name, one in inner for piece in paired(pairs, name, one)), (end, True)]
    written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    is_quoted = isinstance(value, str) and any(text in value for text in pairs.quoted)
    opening, closing = pairs.quotes if is_quoted else ("", "")
    return [(begin + opening, True), (written, False), (closing + end, True)]


def rendered(
    protocol: Protocol, reasoning: str | None, content: str, calls: Sequence[tuple[str, dict[str, Any]]]
) -> Pieces:
    """A response as the protocol writes it."""
    made: Pieces = []
    if reasoning is not None:
        assert protocol.reasoning is not None
        block = random.Random(reasoning).choice(protocol.reasoning.ways)
        made += [(block.begin, True), (reasoning, False), (block.end + block.after, True)]
    if protocol.content and (content or not calls):
        frame = protocol.content[1 if calls else 0]
        made += [(frame.begin, True), (content, False), (frame.end + frame.after, True)]
    elif content:
        made.append((content, False))
    form = protocol.calls
    for number, (name, arguments) in enumerate(calls):
        assert form is not None
        head = (protocol.joint or form.separator) + form.head if number else form.before + form.begin + form.head
        made.append((_filled(head + name + form.middle.replace("{name}", name), number), True))
        if form.quote:
            made += unquoted(arguments, form.quote)[1:-1]
        elif form.keywords:
            made.append((", ".join(f"{key}={value!r}" for key, value in arguments.items()), False))
        elif form.pairs is None:
            made.append((json.dumps(arguments, ensure_ascii=False), False))
        else:
            for key, value in arguments.items():
                made += paired(form.pairs, key, value)
        made.append((form.tail, True))
    if calls:
        assert form is not None
        made.append((form.end, True))
    return made


def read(protocol: Protocol, vocabulary: lt.Vocabulary | None, chunks: Sequence[Any], **options: Any) -> Response:
    """A response that came in chunks; the events are checked against the parts."""
    parser = protocol.parser(vocabulary, **options)
    events = list(itertools.chain.from_iterable(parser.feed(chunk) for chunk in chunks)) + parser.finish()
    check_events(events, parser.response)
    return parser.response


def check_events(events: Sequence[Any], response: Response) -> None:
    """Every part begins, has its text, and ends, in order, once."""
    at = 0
    for number, part in enumerate(response.parts):
        start = events[at]
        assert isinstance(start, PartStart)
        assert start.index == number
        text, at = "", at + 1
        while isinstance(events[at], PartText):
            assert events[at].index == number
            assert events[at].text
            text, at = text + events[at].text, at + 1
        assert events[at] == PartEnd(number, part)
        at += 1
        if isinstance(part, ToolCall):
            assert (start.kind, start.name) == ("tool_call", part.name)
        elif start.kind != "tool_call":
            assert text == part.text
    assert at == len(events)


def in_chunks(items: Sequence[Any], rng: random.Random) -> list[Any]:
    """The same in random pieces."""
    cuts = sorted(rng.sample(range(len(items) + 1), min(len(items), rng.randrange(1, 9))))
    return [items[a:b] for a, b in itertools.pairwise([0, *cuts, len(items)])]
