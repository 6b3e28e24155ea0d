"""Repair against slow oracles: languages written out, and every byte tried at every place."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pytest

import logitree as lt
from logitree.repair import Repaired, Repairer, repair, resume
from table_engine import TableEngine

SPACE = b" \t\n\r"
BYTES = lt.Vocabulary.from_tokens([bytes([b]) for b in range(256)] + [b"</s>"], end_tokens=[256])


# -- a language written out


def determined(language: list[bytes], text: bytes) -> tuple[bytes, str]:
    """What is determined after a text, of a language that is listed: as long as all that begins so continues alike."""
    rest = [one for one in language if one.startswith(text)]
    if not rest:
        return text, "invalid"
    made = text
    while made not in rest:
        if len({one[len(made)] for one in rest}) > 1:
            return made, "ambiguous"
        made = rest[0][: len(made) + 1]
    return made, "unchanged" if made == text else "repaired"


@pytest.mark.parametrize("seed", range(40))
def test_every_beginning_of_a_listed_language(seed: int) -> None:
    rng = random.Random(seed)
    parts = ["a", "b", "aa", "ä", "世", "-", " "]
    language = sorted({"".join(rng.choices(parts, k=rng.randint(1, 6))) for _ in range(rng.randint(1, 6))})
    texts = [one.encode() for one in language]
    constraint = lt.OneOf(language) if seed % 2 else lt.Grammar.choice(language)
    for text in {one[:n] for one in texts for n in range(len(one) + 1)}:
        made = repair(text, constraint)
        assert (made.data, made.status) == determined(texts, text), text
        if made.complete:
            assert made.value == made.text
        added = [place for place in made.places if place.kind == "added"]
        assert b"".join(place.text.encode() for place in added) == made.data[
            len(text) :
        ] or b"\xef\xbf\xbd" in b"".join(place.text.encode() for place in added)
        assert all(place.byte_start == place.byte_end == len(text) for place in made.places)


# -- JSON: every byte at every place


SCHEMAS: list[tuple[Any, Callable[[random.Random], Any]]] = [
    (
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 12},
                "kind": {"enum": ["cat", "car", 'q"\\', "ä b", None, 10, 100]},
                "ok": {"type": "boolean"},
            },
            "required": ["name", "kind", "ok"],
            "additionalProperties": False,
        },
        lambda rng: {
            "name": rng.choice(["", "A", 'x"y', "{,]", "zoë 🐈", "back\\slash"]),
            "kind": rng.choice(["cat", "car", 'q"\\', "ä b", None, 10, 100]),
            "ok": rng.random() < 0.5,
        },
    ),
    (
        {"type": "array", "items": {"type": "array", "items": {"type": "integer"}, "maxItems": 2}, "maxItems": 2},
        lambda rng: [[rng.randint(-20, 20) for _ in range(rng.randint(0, 2))] for _ in range(rng.randint(0, 2))],
    ),
    (
        {
            "type": "object",
            "properties": {"a": {"const": {"deep": [True, "x"]}}, "b": {"type": "null"}},
            "required": ["a"],
            "additionalProperties": False,
        },
        lambda rng: {"a": {"deep": [True, "x"]}} | ({"b": None} if rng.random() < 0.5 else {}),
    ),
    (True, lambda rng: rng.choice([[], {}, [1, "a"], {"k": [None, {"z": 1.5e3}]}, "text", False])),
]


def in_string(text: bytes) -> bool:
    """Whether JSON text ends within a string."""
    return re.sub(rb'"(?:[^"\\]|\\.)*"', b"", text, flags=re.DOTALL).count(b'"') % 2 == 1


def next_bytes(constraint: lt.Grammar, text: bytes) -> tuple[bool, set[int]]:
    """Whether a text is complete, and which bytes may follow it: a new matcher, each byte tried."""
    matcher = constraint.matcher(BYTES)
    for byte in text:
        matcher.accept(byte)
    if matcher.is_finished:
        return True, set()
    found = set()
    for byte in range(256):
        other = matcher.fork()
        try:
            other.accept(byte)
        except lt.TokenError:
            continue
        found.add(byte)
    return matcher.is_accepting, found


def slowly(constraint: lt.Grammar, text: bytes) -> tuple[bytes, str]:
    """What is determined after JSON text, whitespace outside of strings apart."""
    made = text
    while True:
        accepting, found = next_bytes(constraint, made)
        if accepting:
            return made, "unchanged" if made == text else "repaired"
        if len(found) > 1 and not in_string(made):
            spaces = [byte for byte in found if byte in SPACE]
            after = set().union(*(next_bytes(constraint, made + bytes([byte]))[1] for byte in spaces), found)
            found = {byte for byte in found if byte not in SPACE}
            if {byte for byte in after if byte not in SPACE} != found:
                found = set()
        if len(found) != 1:
            return made, "ambiguous"
        made += bytes(found)


@pytest.mark.parametrize("which", range(len(SCHEMAS)))
@pytest.mark.parametrize("seed", range(4))
def test_every_beginning_of_json(which: int, seed: int) -> None:
    schema, draw = SCHEMAS[which]
    rng = random.Random(seed)
    value = draw(rng)
    style = rng.choice([{}, {"indent": 2}, {"separators": (",", ":")}])
    data = json.dumps(value, ensure_ascii=False, **style).encode()  # type: ignore[arg-type]
    grammar = lt.Grammar.json_schema(schema)
    repairer = Repairer(schema)
    for n in range(len(data) + 1):
        made = repair(data[:n], schema)
        assert made.data.startswith(data[:n])
        assert (made.data, made.status) == slowly(grammar, data[:n]), data[:n]
        assert [place.kind for place in made.places] == [
            kind
            for kind, there in (
                ("added", len(made.data) > n),
                ("ambiguous", made.status == "ambiguous"),
            )
            if there
        ]
        assert repairer.state == made
        if made.complete:
            assert json.loads(made.data) == made.value
        else:
            with pytest.raises(lt.IncompleteError, match=f"the text is ambiguous.*byte {n}"):
                made.value  # noqa: B018
        repairer.feed(data[n : n + 1])
    assert (made.status, made.value) == ("unchanged", value)
    assert repairer.text == data.decode()


# -- foreign texts


def spaced(rng: random.Random, value: Any, comma: bool) -> str:
    """JSON with whitespace wherever it may be, and with `comma` sometimes a comma before a closing bracket."""

    def gap() -> str:
        return "".join(rng.choices(" \t\n\r", k=rng.choice([0, 0, 1, 3, 40])))

    def extra() -> str:
        return gap() + "," if comma and rng.random() < 0.5 else ""

    if isinstance(value, dict):
        parts = [
            f"{gap()}{json.dumps(k, ensure_ascii=False)}{gap()}:{gap()}{spaced(rng, v, comma)}{gap()}"
            for k, v in value.items()
        ]
        return "{" + ",".join(parts) + (extra() if parts else "") + gap() + "}"
    if isinstance(value, list):
        parts = [f"{gap()}{spaced(rng, v, comma)}{gap()}" for v in value]
        return "[" + ",".join(parts) + (extra() if parts else "") + gap() + "]"
    return json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("which", range(len(SCHEMAS)))
@pytest.mark.parametrize("seed", range(25))
def test_whitespace_and_trailing_commas_mean_nothing(which: int, seed: int) -> None:
    schema, draw = SCHEMAS[which]
    rng = random.Random(seed)
    value = draw(rng)
    text = spaced(rng, value, comma=seed % 2 == 1)
    made = repair(text, schema)
    assert made.complete
    assert made.value == value
    # What was removed, put back, is the text; and nothing else was removed.
    data, whole, at = text.encode(), bytearray(made.data), 0
    for place in made.places:
        assert place.kind == "removed"
        assert set(place.text) <= set(" \t\n\r,")
        assert data[place.byte_start : place.byte_end] == place.text.encode() == text[place.start : place.end].encode()
        whole[place.byte_start : place.byte_start] = place.text.encode()
        assert place.byte_start >= at
        at = place.byte_end
    assert bytes(whole) == data
    assert repair(made.data, schema).status == "unchanged"


WRAPPED = [
    "{}",
    " \n{}\n\n",
    "```json\n{}\n```",
    "~~~~\n{}\n~~~~\n",
    "Sure! Here it is:\n\n```json\n{}\n```\nHope it helps [smile].",
    "The answer (for now) is {}.",
    "First ```inline``` code, then\n   ```\n{}\n   ```",
    "```python\nprint('no')\n```\nand\n```\n{}\n```",
    "{}\n```",
    "é€😀 {} é€😀",
    "{} and again {}",
]


@pytest.mark.parametrize("wrap", WRAPPED)
def test_one_value_is_found_in_fences_and_prose(wrap: str) -> None:
    schema = SCHEMAS[0][0]
    value = {"name": "zoë 🐈", "kind": "car", "ok": True}
    inner = json.dumps(value, ensure_ascii=False)
    text = wrap.replace("{}", inner)
    made = repair(text, schema)
    assert made.status == ("unchanged" if text == inner else "repaired")
    assert (made.text, made.value) == (inner, value)
    assert all(text[place.start : place.end] == place.text for place in made.places)
    assert all(text.encode()[place.byte_start : place.byte_end].decode() == place.text for place in made.places)
    other = json.dumps(value | {"ok": False})
    both = repair(f"{text}\n\nor {other}", schema)
    assert (both.status, both.text) == ("ambiguous", f"{text}\n\nor {other}")
    assert {place.kind for place in both.places} == {"candidate"}
    assert {place.text for place in both.places} == {inner, other}


@pytest.mark.parametrize("wrap", ["Look: {}", "```json\n{}", "Text\n```\n{}\n``", "```\n{}\n```"])
def test_a_value_that_was_cut_is_found_and_completed(wrap: str) -> None:
    schema = SCHEMAS[0][0]
    made = repair(wrap.replace("{}", '{"name": "A", "kind": "cat", "ok": f'), schema)
    assert (made.status, made.value) == ("repaired", {"name": "A", "kind": "cat", "ok": False})
    open_ = repair(wrap.replace("{}", '{"name": "A", "kind": "ca'), schema)
    assert (open_.status, open_.text) == ("ambiguous", '{"name": "A", "kind": "ca')
    assert [place.kind for place in open_.places if place.kind != "removed"] == ["ambiguous"]


@pytest.mark.parametrize(
    ("text", "constraint", "status", "result"),
    [
        ("The answer is yes.", ["yes", "no"], "repaired", "yes"),
        ("obviously I know", ["yes", "no"], "invalid", None),
        ("yes, not no", ["yes", "no"], "ambiguous", None),
        ("y", ["yes", "no"], "repaired", "yes"),
        ("They say y", ["yes", "no"], "invalid", None),
        ("It is 42 cm", int, "repaired", 42),
        ("42 or 17", int, "ambiguous", None),
        ("42 or 42", int, "repaired", 42),
        ("since 2024-05-01T10", re.compile(r"\d{4}-\d\d-\d\d"), "invalid", None),
        ("on 2024-05-01, or", re.compile(r"\d{4}-\d\d-\d\d"), "repaired", "2024-05-01"),
        ("2024-0", re.compile(r"2024-0[5]-01"), "repaired", "2024-05-01"),
        ("any text", str, "unchanged", "any text"),
        ("true", bool, "unchanged", True),
        ("```\nSELECT 1\n```", lt.Grammar.regex("SELECT [0-9]"), "repaired", "SELECT 1"),
        ("null", Literal["null", "void"], "unchanged", "null"),
    ],
)
def test_texts_that_are_no_json(text: str, constraint: Any, status: str, result: Any) -> None:
    made = repair(text, constraint)
    assert made.status == status
    if made.complete:
        assert made.value == result
    else:
        assert made.text == text
        with pytest.raises(lt.IncompleteError, match=f"the text is {status}"):
            made.value  # noqa: B018


def test_what_is_invalid_says_where_and_what_was_expected() -> None:
    made = repair('{"name": "é", "kind": "cow"}', SCHEMAS[0][0])
    (place,) = made.places
    assert (made.status, place.kind, place.start, place.byte_start) == ("invalid", "invalid", 24, 25)
    assert any('"kind"' in words for words in place.expected)
    cut = repair('{"name": "é'.encode()[:-1], SCHEMAS[0][0])
    assert (cut.status, cut.text[-1], cut.data[-1]) == ("repaired" if cut.complete else "ambiguous", "\ufffd", 0xC3)
    assert repair('{"name": "a"} x', {"type": "object", "maxProperties": 0}).status == "invalid"
    inside = repair('Well: {"name": "a", "kind": 7}', SCHEMAS[0][0])
    assert inside.places[0].start == 28, "the place is that of the reading that came furthest"


def test_a_skeleton_of_json_takes_json_with_spaces() -> None:
    plan = lt.Skeleton.object({"action": ["SEND", "IGNORE"], "why": lt.skeleton.string(max_length=40)})
    value = {"action": "SEND", "why": "a ,] b"}
    for text in (json.dumps(value), json.dumps(value, indent=3), f"```\n{json.dumps(value)[:-1]} , }}\n```"):
        assert repair(text, plan).value == value
    assert repair('{ "action": "I', plan).text == '{"action":"IGNORE","why":"'
    spoken = lt.Skeleton("He said ", lt.skeleton.enum(["yes", "no"]).named("word"), " to it")
    assert repair('He said "y', spoken).text == 'He said "yes" to it'
    assert repair('He said  "yes" to it', spoken).status == "invalid", "spaces of other texts mean something"


def test_values_are_those_of_the_constraint() -> None:
    @dataclass
    class Cat:
        name: str
        age: Literal[1, 12]

    made = repair('Cat: {"name": "Tom", "age": 12, }', Cat)
    assert made.value == Cat("Tom", 12)
    assert repair("17", [17, 18]).value == 17


def test_what_has_no_bytes_is_refused() -> None:
    matcher = lt.OneOf(["a"]).matcher(BYTES)
    with pytest.raises(lt.ConstraintError, match="a matcher is bound to the tokens"):
        repair("a", matcher)
    with pytest.raises(lt.ConstraintError):
        repair("a", lt.Grammar.token("<|im_end|>"))
    with pytest.raises(TypeError, match="may mean several constraints"):
        repair("a", "a")
    with pytest.raises(lt.LimitError, match="the limit is"):
        repair("a" * (1 << 22) + "a", str)
    with pytest.raises(lt.LimitError, match="bytes are determined"):
        repair("a", ["a" * 1_100_000])


@pytest.mark.parametrize("seed", range(20))
def test_a_stream_gives_what_the_whole_text_gives(seed: int) -> None:
    rng = random.Random(seed)
    schema, draw = SCHEMAS[seed % len(SCHEMAS)]
    wrap = rng.choice(WRAPPED)
    text = wrap.replace("{}", spaced(rng, draw(rng), comma=True)).encode()
    repairer, at = Repairer(schema), 0
    while at < len(text):
        n = rng.choice([1, 2, 7, 30])
        repairer.feed(text[at : at + n])
        at += n
        assert repairer.state == repair(text[:at], schema)


HOSTILE: list[tuple[str, Any]] = [
    ("{" * 5000, SCHEMAS[0][0]),
    ("[" * 5000 + "x", True),
    ('{"name":"a"},' * 500, SCHEMAS[0][0]),
    ("{" + " " * 100_000 + "x", SCHEMAS[0][0]),
    ("{ " * 5000, SCHEMAS[0][0]),
    ("```\n" * 5000, SCHEMAS[0][0]),
    ("~~~a\n```b\n{\n" * 1000, SCHEMAS[0][0]),
    ("[" + "[,]," * 2000 + "]", True),
    ("a " * 5000, ["aa", "b"]),
    ("1" * 20_000 + "x", int),
    (("1" * 50 + "x ") * 500, int),
    ('{"name":"' * 2000, SCHEMAS[0][0]),
    ("\ufeff\u202e\x00" * 1000, SCHEMAS[0][0]),
]


@pytest.mark.parametrize("at", range(len(HOSTILE)))
def test_hostile_texts_end_soon(at: int) -> None:
    text, constraint = HOSTILE[at]
    began = time.monotonic()
    try:
        made: Repaired | None = repair(text, constraint)
    except lt.LimitError:
        made = None
    assert time.monotonic() - began < 20
    assert made is None or made.status in ("unchanged", "repaired", "ambiguous", "invalid")


# -- with a model


def test_a_model_continues_what_was_cut() -> None:
    engine = TableEngine()
    schema = {"type": "array", "items": {"enum": ["red", "green"]}, "minItems": 2, "maxItems": 3}
    generation = resume(engine, "x", '["gre', schema, seed=3, max_tokens=200)
    begun = repair('["gre', schema).text
    assert begun == '["green","'
    assert json.loads(begun + generation.text) == generation.value
    assert generation.value[0] == "green"
    # The model reads the prompt and the beginning, and the constraint has accepted it: as if it had written it itself.
    decoder = lt.Decoder(engine.vocabulary, lt.Chain.llama_cpp(seed=3), lt.Grammar.json_schema(schema))
    for token in begun.encode():
        decoder.accept(token)
    assert generation.finish_reason == "constraint"
    assert generation.stats.prompt_tokens == 1 + len(begun)
    for token in generation.tokens:
        decoder.accept(token)
    assert decoder.is_finished
    assert resume(engine, [120], b'["gre', schema, seed=3, max_tokens=200).text == generation.text
    done = resume(engine, "x", '["red", "red", "green"]', schema)
    assert (done.text, done.value) == ("", ["red", "red", "green"])


def test_what_cannot_be_continued_is_an_error() -> None:
    with pytest.raises(lt.ConstraintError, match="the text cannot be continued: expected.*byte 0"):
        resume(TableEngine(), "x", "blue", ["red", "green"])
    with pytest.raises(lt.ConstraintError, match="several candidates"):
        resume(TableEngine(), "x", "red or green", ["red", "green"])


ANIMAL = {
    "type": "object",
    "properties": {"kind": {"enum": ["cat", "dog"]}, "name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["kind", "name", "age"],
    "additionalProperties": False,
}


def test_a_text_is_closed_the_shortest_way() -> None:
    whole = '{"kind": "cat", "name": "Tom \\u00e9", "age": 4}'
    for cut in range(len(whole) + 1):
        made = lt.repair.repair(whole[:cut], ANIMAL, close="shortest")
        assert made.complete and set(made.value) == {"kind", "name", "age"}, whole[:cut]
        determined = lt.repair.repair(whole[:cut], ANIMAL)
        assert made.data.startswith(determined.data)
        closed = [place for place in made.places if place.kind == "closed"]
        assert len(closed) == (determined.status == "ambiguous")
        assert made.data == determined.data + b"".join(place.text.encode() for place in closed)
        assert made.places[: len(determined.places) - len(closed)] == determined.places[: -1 if closed else None]


def test_the_shortest_ending_is_the_shortest() -> None:
    for text, constraint, closed in (
        ("", ["abc", "ab", "b"], "b"),
        ("a", ["abc", "ab", "b"], "ab"),
        ("[1", list[int], "[1]"),
        ("x", lt.Grammar.regex("x(aaa|bb|cccc)"), "xbb"),
        ("tr", bool, "true"),
    ):
        assert lt.repair.repair(text, constraint, close="shortest").text == closed


def test_what_the_shortest_ending_leaves() -> None:
    refused = lt.repair.repair('{"kind": "cow"', ANIMAL, close="shortest")
    assert refused == lt.repair.repair('{"kind": "cow"', ANIMAL)
    several = lt.repair.repair("Either 42 or 17.", int, close="shortest")
    assert [place.kind for place in several.places] == ["candidate", "candidate"]
    repairer = lt.repair.Repairer(ANIMAL, close="shortest")
    for piece in ('{"kind": "d', 'og", "na', 'me": "R'):
        repairer.feed(piece)
        assert repairer.state == lt.repair.repair(repairer.text, ANIMAL, close="shortest")
        assert repairer.state.complete
    with pytest.raises(ValueError, match="close is 'longest', expected one of 'determined', 'shortest'"):
        lt.repair.repair("", ANIMAL, close="longest")  # type: ignore[arg-type]
