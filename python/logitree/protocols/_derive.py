"""Derives a protocol from what a chat template writes: markers, separators and styles are read off rendered turns."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal

from .._core import ConstraintError, Vocabulary
from .._errors import error
from ._protocol import OBJECT, Block, Calls, Pairs, Protocol
from ._template import TemplateFailed
from ._turns import (
    ARGUMENTS,
    CITY,
    CONTENT,
    DAYS,
    ID,
    REASONING,
    STOP,
    TRIP,
    WEATHER,
    Shape,
    Turn,
    Writer,
    atoms,
    common,
    end_of_text,
    markers_in,
    probe_tools,
    written_by,
)

NAME = "from_template"
"""The name of a derived protocol."""
TURNS = 100
"""Turns that a derived protocol must read and allow."""

_MARKER = re.compile(r"<[^<>\s][^<>\n]{0,63}>|\[/?[A-Z][A-Z_]*\]")
_ID = re.compile(rf"{ID[:-1]}\d")


class Underivable(Exception):
    """What of a template is no form of the table's language."""


def from_template(source: str, vocabulary: Vocabulary | None) -> Protocol:
    """The form that a template writes; `Protocol.from_template` has the details."""
    try:
        return derived(source, end_of_text(vocabulary))
    except (TemplateFailed, Underivable) as wrong:
        help = "name the form: Protocol.named(...), or write it as a Protocol"
        message = f"no form can be derived from the chat template: {wrong}"
        raise error(ConstraintError, message, help=help) from wrong


@lru_cache(maxsize=32)
def derived(source: str, eos: str) -> Protocol:
    writer = written_by(source, eos)
    protocol = _form(writer)
    wrong = proved(writer, protocol, TURNS)
    if wrong:
        raise Underivable(wrong)
    return protocol


def _form(writer: Writer) -> Protocol:
    """The form of these turns, not proved yet."""
    turns = dict(_shapes(writer))
    said = turns[Shape(content=True)]
    reasoning, frame = _reasoning(writer, turns, said)
    content: tuple[Block, ...] = (frame,) if frame else ()
    calls = None
    if writer.writes_calls:
        calls = _calls(writer, turns, reasoning)
        before = turns.get(Shape(content=True, calls=(WEATHER,)))
        if frame and before is not None and before.content:
            at = before.text.find(CONTENT)
            if not before.text[:at].endswith(frame.begin):
                raise Underivable(f"text before calls has a frame of its own: {before.text[:at]!r}")
            if before.text.startswith(frame.end, at + len(CONTENT)):
                content = (frame, frame)
    ends = () if writer.has_end_inside else writer.ends
    if calls is not None and not calls.begin and markers_in(calls.end) == (calls.end.strip(),):
        ends, calls = (*ends, calls.end.strip()), replace(calls, end="")  # nothing began what would end there
    texts = [text for block in (reasoning, *content) if block for text in (block.begin, block.end, block.after)]
    if calls is not None:
        pairs = calls.pairs
        texts += [calls.begin, calls.head, calls.middle, calls.tail, calls.end]
        texts += [pairs.begin, pairs.middle, pairs.end, pairs.text_middle] if pairs else []
    return Protocol(
        name=NAME,
        models=(),
        markers=markers_in(*texts),
        reasoning=reasoning,
        content=content,
        calls=calls,
        turn_end=ends,
    )


def _shapes(writer: Writer) -> Iterator[tuple[Shape, Turn]]:
    yield from writer.turns()
    if writer.writes_calls:
        yield from writer.turns([Shape(calls=(STOP,))])


def _reasoning(writer: Writer, turns: Mapping[Shape, Turn], said: Turn) -> tuple[Block | None, Block | None]:
    """The block of reasoning, and the frame of content."""
    at = said.text.find(CONTENT)
    before, after = said.text[:at], said.text[at + len(CONTENT) :]
    whole = turns.get(Shape(reasoning=True, content=True))
    if whole is None or whole.reasoning is None:
        whole = next((turn for turn in turns.values() if turn.reasoning is not None), None)
    block = None if whole is None else _block(writer, whole, before, said)
    if block is not None:
        before = before.rpartition(block.end + block.after.rstrip())[2]
    before = before.strip()
    if not before:
        return block, None
    end = after.strip() or next(iter(writer.ends), "")
    if not end:
        raise Underivable(f"content begins with {before!r}, and its end is not written")
    return block, Block(before, end)


def _block(writer: Writer, whole: Turn, before_content: str, said: Turn) -> Block:
    at = whole.text.find(REASONING)
    before, rest = whole.text[:at], whole.text[at + len(REASONING) :]
    if whole.content:
        between = rest[: rest.find(CONTENT)]
    else:
        called = _second_marker(rest)
        between = rest[:called]
    core = between.strip()
    pieces = atoms(before_content)
    for n in range(len(pieces)):  # the content's own frame comes after the end
        frame = "".join(pieces[n:]).strip()
        if frame and frame != core and core.endswith(frame):
            core = core.removesuffix(frame).strip()
            break
    if not core:
        raise Underivable("nothing comes between reasoning and what follows it")
    begin = before.strip()
    if not begin and writer.prompts[0].startswith(whole.prompt):
        begin = writer.prompts[0].removeprefix(whole.prompt).strip()
        begin = "" if begin == core else begin
    if not begin and whole.prompt.startswith(said.prompt):
        begin = whole.prompt.removeprefix(said.prompt).strip()
    if not begin:
        begin = atoms(whole.prompt.rstrip())[-1]
    if begin == core or not re.search(r"[^a-z]", begin):
        raise Underivable("reasoning has no beginning of its own")
    after = between[between.find(core) + len(core) :]
    after = after if not after.strip() else ""
    found = _MARKER.match(core)
    if found is not None and found[0] != core:  # several tokens: the first is the end
        core, after = found[0], core[found.end() :] + after
    return Block(begin, core, after, before[: len(before) - len(before.lstrip())])


def _second_marker(rest: str) -> int:
    """Where the second marker is; without one, the end."""
    marks = [found.start() for found in _MARKER.finditer(rest)]
    return marks[1] if len(marks) > 1 else len(rest)


def _calls(writer: Writer, turns: Mapping[Shape, Turn], reasoning: Block | None) -> Calls:
    one = turns.get(Shape(calls=(WEATHER,)))
    several = turns.get(Shape(calls=(WEATHER, STOP, WEATHER)))
    if one is None or not one.calls:
        raise Underivable("calls are not in the turn")
    if several is not None and len(several.calls) < 3:
        several = None
    names = one.text.count(WEATHER)
    if names != 1:
        raise Underivable(f"a call has its name {names} times: {one.text!r}")
    text = one.text
    if reasoning is not None and reasoning.end in text[: text.find(WEATHER)]:
        cut = text.rindex(reasoning.end, 0, text.find(WEATHER)) + len(reasoning.end)
        text = text[cut:].removeprefix(reasoning.after)
    at = text.find(WEATHER)
    before, rest = text[:at], text[at + len(WEATHER) :]
    json_at = _object_at(rest, ARGUMENTS[WEATHER])
    if json_at is not None:
        return _json_calls(before, rest, json_at, several)
    return _paired_calls(before, rest, several, turns.get(Shape(calls=(STOP,))))


def _object_at(text: str, wanted: Mapping[str, Any]) -> tuple[int, int] | None:
    """Where a JSON object with these values is."""
    decoder = json.JSONDecoder()
    for found in re.finditer(r"\{", text):
        try:
            value, end = decoder.raw_decode(text, found.start())
        except ValueError:
            continue
        if value == wanted:
            return found.start(), end
    return None


def _json_calls(before: str, rest: str, at: tuple[int, int], several: Turn | None) -> Calls:
    middle, after = rest[: at[0]], rest[at[1] :]
    between, second = "", middle
    if several is not None:
        text = several.text[several.text.find(WEATHER) + len(WEATHER) : several.text.rfind(WEATHER)]
        first = _object_at(text, ARGUMENTS[WEATHER])
        stop = text.find(STOP)
        assert first is not None
        between = text[first[1] : stop]
        text = text[stop + len(STOP) :]
        none = _object_at(text, ARGUMENTS[STOP])
        if none is None:
            raise Underivable(f"a call without arguments has another form: {text!r}")
        second = text[: none[0]]
    return _assembled(before, _variable(middle, second), between, after, None, several is not None)


def _variable(one: str, other: str) -> str:
    """A text in which ids and numbers that count are blanks."""
    one, other = _ID.sub("{id}", one), _ID.sub("{id}", other)
    if one == other:
        return one
    parts = re.split(r"(\d+)", one), re.split(r"(\d+)", other)
    if len(parts[0]) != len(parts[1]):
        raise Underivable(f"two calls are written differently: {one!r} and {other!r}")
    made = [x if x == y else "{number}" if x.isdigit() and y.isdigit() else None for x, y in zip(*parts, strict=True)]
    if None in made:
        raise Underivable(f"two calls are written differently: {one!r} and {other!r}")
    return "".join(filter(None, made))


def _assembled(before: str, middle: str, between: str, after: str, pairs: Pairs | None, several: bool) -> Calls:
    """Calls of what comes before the name, between two calls, and after the arguments."""
    space = before[: len(before) - len(before.lstrip())]
    opening, between, after = (_ID.sub("{id}", text) for text in (before.lstrip(), between, after))
    if several:
        opening, between = _counted(opening, between)
        head = common(opening, between, backwards=True)
        rest = between.removesuffix(head)
        tail = common(rest, after)
        begin, separator, end = opening.removesuffix(head), rest.removeprefix(tail), after.removeprefix(tail)
        blank = head[: len(head) - len(head.lstrip())]
        begin, separator, head = begin + blank, separator + blank, head.lstrip()
    else:
        begin, head, separator, tail, end = "", opening, "", after, ""
    if not head and not begin:
        raise Underivable("calls have no beginning of their own")
    fixed = re.split(r"\{(?:id|number)\}", begin or head)[0]
    found = _MARKER.match(fixed)
    trigger = found[0] if found else fixed.strip() if begin else fixed
    made = Calls(
        trigger=trigger,
        head=head,
        middle=middle,
        tail=tail,
        before=space,
        begin=begin,
        end=end,
        separator=separator,
        pairs=pairs,
        unmarked=trigger == OBJECT or (trigger == "[" and head.endswith(OBJECT)),
    )
    if made.in_object and tail.startswith(", "):  # further keys of the object
        made = replace(made, tail="}" + tail.rpartition('"}')[2], tails=(tail,))
    return made


def _counted(one: str, other: str) -> tuple[str, str]:
    """Two texts in which numbers that count are blanks, as far as their ends are the same otherwise."""
    a, b = (re.findall(r"\d+|\D", text) for text in (one, other))
    for i in range(1, min(len(a), len(b)) + 1):
        if a[-i].isdigit() and b[-i].isdigit() and a[-i] != b[-i]:
            a[-i] = b[-i] = "{number}"
        elif a[-i] != b[-i]:
            break
    return "".join(a), "".join(b)


def _paired_calls(before: str, rest: str, several: Turn | None, stop: Turn | None) -> Calls:
    first_key, second_key, third_key = ARGUMENTS[WEATHER]
    known = (first_key, CITY, second_key, str(DAYS), third_key, "(?:true|True)")
    pattern = "(.*?)".join([*map(re.escape, known[:-1]), known[-1]])
    found = re.search(f"^(.*?){pattern}(.*)$", rest, re.DOTALL)
    if found is None:
        raise Underivable(f"arguments are neither JSON nor keys and values in order: {rest!r}")
    first, text_middle, joint, middle, second_joint, second_middle, after = found.groups()
    if first.startswith("("):
        raise Underivable(f"arguments are written as in Python: {rest!r}")
    if first.strip() == "{":
        raise Underivable(f"arguments are an object that is not JSON: {rest!r}")
    if first_key in joint:
        raise Underivable(f"keys come after values too: {rest!r}")
    if (joint, middle) != (second_joint, second_middle):
        raise Underivable(f"numbers and booleans are written differently: {rest!r}")
    between, empty = "", ""
    if several is not None:
        tail = re.split(f"{third_key}{re.escape(middle)}(?:true|True)", several.text, maxsplit=1)[1]
        between, _, empty = tail.partition(STOP)
        empty = common(empty, between) if between else empty
    elif stop is not None:
        empty = stop.text.partition(STOP)[2]
    python: Literal["", "words"] = "words" if "True" in rest else ""
    best: tuple[tuple[bool, ...], Calls] | None = None
    pieces = atoms(joint)
    for n in range(1, len(pieces)):
        end, begin = "".join(pieces[:n]), "".join(pieces[n:])
        if not begin or not first.endswith(begin) or not after.startswith(end) or not end.strip():
            continue
        pairs = Pairs(begin, middle, end, text_middle if text_middle != middle else "", python)
        try:
            made = _assembled(
                before,
                first.removesuffix(begin),
                between.removeprefix(end),
                after.removeprefix(end),
                pairs,
                several is not None,
            )
        except Underivable:
            continue
        whole = made.middle + made.tail + made.end
        score = (whole == empty, "".join(whole.split()) == "".join(empty.split()), begin.lstrip() == begin)
        if best is None or score > best[0]:
            best = score, made
    if best is None:
        raise Underivable(f"arguments are not pairs of one form: {rest!r}")
    return best[1]


# -- the proof

_PIECES = """a é 🦊 " \\ { }} [ ] < </ <| |> > 0 12 null True none ``` <tool tool_call </thin think ; , 1e5 = ' ( )
    "a": function <|channel [TOOL_CALL [ARG {"nam to=functions </parameter </arg_valu Oslo"""


def random_turns(writer: Writer, n: int, markers: Sequence[str], seed: int = 0) -> Iterator[Turn]:
    """Turns of the shapes that the template takes, with texts that have no whole marker."""
    rng = random.Random(seed)
    known = [(shape, turn) for shape, turn in writer.turns() if turn.content or turn.calls]
    for _ in range(n):
        shape, written = rng.choice(known)
        calls = [_random_call(rng, call == STOP, markers) for call in shape.calls]
        reasoning = _random_text(rng, markers) if shape.reasoning else None
        content = _random_text(rng, markers) if shape.content else None
        yield writer.turn(reasoning, content, calls, written)


def _random_call(rng: random.Random, stop: bool, markers: Sequence[str]) -> tuple[str, dict[str, Any]]:
    if stop:
        return STOP, {}
    some: dict[str, Any] = {
        "days": rng.choice([0, -7, 12345678901]),
        "rate": rng.choice([0.5, -1.25, 3]),
        "fast": rng.random() < 0.5,
        "note": rng.choice([None, _random_text(rng, markers), "123", "true"]),
        "tags": [_random_text(rng, markers) for _ in range(rng.randrange(3))],
        "place": {"lat": 1.5, "name": _random_text(rng, markers)},
    }
    kept = {key: value for key, value in some.items() if rng.random() < 0.4}
    return TRIP, {"city": _random_text(rng, markers), **kept}


def _random_text(rng: random.Random, markers: Sequence[str]) -> str:
    made = rng.choice(["Oslo", "x", "é"])
    for _ in range(rng.randrange(8)):
        more = made + rng.choice(["", " ", " ", "\n"]) + rng.choice(_PIECES.split())
        if not any(marker in more for marker in markers):
            made = more
    return made


def proved(writer: Writer, protocol: Protocol, n: int) -> str:
    """What of n random turns the protocol does not read or allow; empty if it does all."""
    texts = [*protocol.markers, *protocol.turn_end]
    if protocol.calls is not None:
        texts += [protocol.calls.trigger, protocol.calls.head]
    try:
        for turn in random_turns(writer, n, [text.strip() for text in texts if text.strip()]):
            wrong = turn.mismatch(protocol, probe_tools()) or turn.refusal(protocol, probe_tools())
            if wrong:
                return f"{wrong}; in the turn {turn.text[:400]!r}"
    except TemplateFailed as wrong:
        return f"the template refuses a turn: {wrong}"
    except ConstraintError as wrong:
        return str(wrong)
    return ""
