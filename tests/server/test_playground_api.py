"""What the playground asks the server for: traces, the tree of what may come next, places of errors, and its files."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from typing import Any

import httpx
import numpy as np
import pytest

import logitree as lt
from logitree.engines import ContextFull, Engine
from logitree.server._pages import FILES
from logitree.server._traced import children
from table_engine import TableEngine

DATE = {"type": "regex", "pattern": "(19|20)[0-9]{2}-[01][0-9]"}
ASK: dict[str, Any] = {"prompt": "The first of", "response_format": DATE, "seed": 3, "max_tokens": 30}


def records(client: httpx.Client, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The records of an answer that is streamed."""
    with client.stream("POST", "/v1/trace", json={**body, "stream": True}) as answer:
        assert answer.status_code == 200, answer.read()
        return [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: {")]


def told(client: httpx.Client, path: str, body: Any) -> dict[str, Any]:
    """The error of a wrong request."""
    answer = client.post(path, json=body)
    assert answer.status_code == 400, answer.text
    found: dict[str, Any] = answer.json()["error"]
    return found


def timeless(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if "micros" not in name}


def test_a_trace_has_the_records_of_generate(client: httpx.Client, engine: Engine) -> None:
    made = lt.generate(
        engine, "The first of", lt.Grammar.regex(DATE["pattern"]), seed=3, trace=True, chat=False, heal=False
    )
    streamed = records(client, ASK)
    whole = client.post("/v1/trace", json=ASK).json()["records"]
    head, *tokens, end = streamed
    assert head["record"] == "trace"
    assert head["vocabulary"]["size"] == len(engine.vocabulary)
    assert [timeless(one) for one in tokens] == [timeless(one) for one in list(made.trace.records())[1:]]
    assert (end["record"], end["reason"], end["complete"], end["text"]) == ("end", "constraint", True, made.text)
    assert [timeless(one) for one in whole[1:-1]] == [timeless(one) for one in tokens]
    assert "".join(one["text"] for one in tokens) + end["tail"] == made.text


def test_an_output_goes_on_from_given_tokens(client: httpx.Client) -> None:
    greedy = {**ASK, "temperature": 0.0, "response_format": None}
    whole = [one for one in records(client, greedy) if one["record"] == "token"]
    assert len(whole) == 30
    for cut in (1, 7, 29, 30):
        given = [one["id"] for one in whole[:cut]]
        head, *rest, end = records(client, {**greedy, "tokens": given, "max_tokens": max(1, 30 - cut)})
        assert head["given"] == cut
        assert [one["id"] for one in rest][: 30 - cut] == [one["id"] for one in whole[cut:]]
        assert [one["at"] for one in rest] == list(range(cut, cut + len(rest)))
        assert end["stats"]["passes_saved"] == {}
        assert end["text"].startswith("".join(one["text"] for one in whole))


def test_a_character_may_be_cut_by_given_tokens(client: httpx.Client, engine: Engine) -> None:
    assert engine.tokenize is not None
    text = "漢字 é 🦜"
    tokens = list(engine.tokenize(text))
    body = {"prompt": "x", "response_format": {"type": "choices", "texts": [text]}, "tokenization": "any"}
    for cut in range(len(tokens)):
        _, *rest, end = records(client, {**body, "tokens": tokens[:cut]})
        shown = b"".join(engine.vocabulary[token] for token in tokens[:cut])
        assert end["text"] == text
        whole = shown + b"".join(bytes.fromhex(one["bytes"]) for one in rest)
        assert whole.decode() == text
        assert text.endswith("".join(one["text"] for one in rest))


def test_given_tokens_must_be_allowed(client: httpx.Client, engine: Engine) -> None:
    assert engine.tokenize is not None
    date, more = list(engine.tokenize("1969-07")), list(engine.tokenize("x"))
    assert records(client, {**ASK, "tokens": date})[-1]["reason"] == "constraint"
    found = told(client, "/v1/trace", {**ASK, "tokens": date + more})
    assert (found["param"], "over before token" in found["message"]) == ("tokens", True)
    for path in ("/v1/trace", "/v1/allowed"):
        found = told(client, path, {**ASK, "tokens": more})
        assert (found["param"], "not allowed" in found["message"]) == ("tokens", True)
        for wrong in ([-1], [len(engine.vocabulary)], [1.5], [True], "1", [None]):
            assert told(client, path, {**ASK, "tokens": wrong})["param"] == "tokens"
        assert told(client, path, {**ASK, "prompt": None})["param"] == "messages"
        both = {**ASK, "messages": [{"role": "user", "content": "x"}]}
        assert told(client, path, both)["param"] == "messages"
        assert told(client, path, {**ASK, "n": 2})["param"] == "n"


def tree(vocabulary: lt.Vocabulary, tokens: list[int], prefix: bytes) -> dict[bytes, tuple[int, int | None]]:
    """The slow way to `children`: for each next byte, the longest bytes that all have, how many, and their token."""
    texts = {vocabulary[token]: token for token in tokens if vocabulary[token].startswith(prefix)}
    found = {}
    for byte in range(256):
        group = [text for text in texts if text.startswith(prefix + bytes([byte]))]
        if group:
            path = group[0]
            while not all(text.startswith(path) for text in group):
                path = path[:-1]
            found[path] = (len(group), texts.get(path))
    return found


def test_children_are_those_of_the_tree(engine: Engine) -> None:
    draw = random.Random(5)
    kinds = ("normal", "byte", "user_defined")
    vocabulary = engine.vocabulary
    texts = [token for token in range(len(vocabulary)) if vocabulary.kind(token) in kinds and vocabulary[token]]
    unique = list({vocabulary[token]: token for token in texts}.values())
    for _ in range(60):
        tokens = sorted(draw.sample(unique, draw.choice((0, 1, 5, 300))))
        some = vocabulary[draw.choice(tokens)] if tokens else b"a"
        prefix = some[: draw.randrange(len(some) + 1)]
        node = children(vocabulary, tokens, prefix)
        shown = {bytes.fromhex(one["bytes"]): (one["count"], one["token"]) for one in node["children"]}
        assert shown == tree(vocabulary, tokens, prefix)
        assert node["token"] == next((token for token in tokens if vocabulary[token] == prefix), None)
        counts = [one["count"] for one in node["children"]]
        assert counts == sorted(counts, reverse=True)
        assert node["count"] == sum(counts) + (node["token"] is not None)


def test_what_may_come_next_is_a_tree(client: httpx.Client, engine: Engine) -> None:
    first = client.post("/v1/allowed", json=ASK).json()
    assert {bytes.fromhex(one["bytes"])[:1] for one in first["children"]} == {b"1", b"2"}
    assert first["finished"] is False
    assert engine.tokenize is not None
    begun = list(engine.tokenize("1969-"))
    after = client.post("/v1/allowed", json={**ASK, "tokens": begun}).json()
    assert {one["text"][0] for one in after["children"]} == {"0", "1"}
    over = client.post("/v1/allowed", json={**ASK, "tokens": list(engine.tokenize("1969-07"))}).json()
    assert (over["finished"], over["count"], over["children"]) == (True, 0, [])
    free = client.post("/v1/allowed", json={"prompt": "x", "prefix": b" the".hex()}).json()
    assert free["token"] == engine.tokenize(" the")[0]
    assert all(bytes.fromhex(one["bytes"]).startswith(b" the") for one in free["children"])
    everything = client.post("/v1/allowed", json={"prompt": "x"}).json()
    assert everything["count"] == len(engine.vocabulary)
    assert any(one["text"] == "<|im_end|>" for one in everything["special"])
    assert told(client, "/v1/allowed", {**ASK, "prefix": "zz"})["param"] == "prefix"


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"structured_outputs": {"json": '{"type": "x",}'}}, "1:14"),
        ({"structured_outputs": {"json": '{"type": "text"}'}}, "#/type"),
        ({"structured_outputs": {"json": "{\n[}"}}, "2:1"),
        ({"structured_outputs": {"json": ""}}, "1:1"),
        ({"grammar": "root ::= a\n"}, "1:10"),
        ({"response_format": {"type": "regex", "pattern": "ab(c"}}, "1:3"),
    ],
)
def test_an_error_says_where_it_is(client: httpx.Client, fields: dict[str, Any], place: str) -> None:
    for path in ("/v1/completions", "/v1/trace", "/v1/allowed"):
        found = told(client, path, {"prompt": "x", **fields})
        assert (found["place"], found["param"]) == (place, next(iter(fields)))
        assert found["help"] in found["message"]


def test_the_files_need_no_key_and_load_nothing_from_elsewhere(engine: Engine, serve: Any) -> None:
    client = serve(engine, places=1, api_keys=["secret"])
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for name, kind in (("view.js", "text/javascript"), ("view.css", "text/css"), ("playground.js", "text/javascript")):
        file = client.get(f"/playground/{name}")
        assert (file.status_code, file.headers["content-type"].split(";")[0]) == (200, kind)
    for name in FILES:
        named = set(re.findall(r"https?://[^\s\"'<]+", client.get(f"/playground/{name}" if name else "/").text))
        assert named <= {"http://www.w3.org/2000/svg"}, name
    assert "@@data@@" in client.get("/playground/empty-trace").text
    for name in ("nothing.js", "..%2f_pages.py", "index.html", "../_pages.py", "page.py", ""):
        assert client.get(f"/playground/{name}").status_code == 404, name
    assert client.post("/v1/trace", json=ASK).status_code == 401
    assert client.post("/v1/allowed", json=ASK).status_code == 401


def test_what_each_layer_says(client: httpx.Client, serve: Any) -> None:
    class Layered(TableEngine):
        """Three layers, whose likeliest tokens are the number of tokens so far and those after it."""

        has_lens = True

        def lens(self, tokens: Sequence[int], top: int = 5) -> list[tuple[tuple[int, float], ...]]:
            if len(tokens) > 20:
                raise ContextFull
            if tokens[-1] == ord("!"):
                raise lt.EngineError("a Layered has no lens: it was asked to have none")
            return [tuple((65 + len(tokens) + n, -n - 0.5) for n in range(top)), ((256, -np.inf),) * top]

    layered = serve(Layered(), places=1)
    assert layered.get("/props").json()["has_lens"] is True
    found = layered.post("/v1/lens", json={"prompt": "abc", "tokens": [1], "top": 2}).json()
    named = [
        {"id": 69, "text": "E", "bytes": "45", "logprob": -0.5},
        {"id": 70, "text": "F", "bytes": "46", "logprob": -1.5},
    ]
    assert found["layers"][0] == named
    assert found["layers"][1][0]["logprob"] < -1e3
    assert told(layered, "/v1/lens", {"prompt": "a" * 30})["param"] == "tokens"
    assert "asked to have none" in told(layered, "/v1/lens", {"prompt": "a!"})["message"]
    for wrong, param in (
        ({"tokens": [-1]}, "tokens"),
        ({"top": 0}, "top"),
        ({"prompt": None}, "messages"),
        ({"x": 1}, "x"),
    ):
        assert told(layered, "/v1/lens", {"prompt": "a", **wrong})["param"] == param
    assert client.get("/props").json()["has_lens"] is False
    assert "--engine transformers" in told(client, "/v1/lens", {"prompt": "a"})["message"]
