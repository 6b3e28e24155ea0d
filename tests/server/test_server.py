"""What a server does with requests that are wrong, too large, too many or left alone, and with an engine that fails."""

from __future__ import annotations

import concurrent.futures
import contextlib
import itertools
import json
import re
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logitree as lt
from logitree.engines import Engine
from logitree.server import Limits, application
from logitree.server._service import Service
from servers import ServerProcess, free_port
from table_engine import TableEngine, TableSession

CHAT, TEXT, LLAMA = "/v1/chat/completions", "/v1/completions", "/completion"
SAID = [{"role": "user", "content": "x"}]


class ChatTable(TableEngine):
    """A table engine that takes messages."""

    n_ctx = 400
    chat_template = "{{ messages }}"
    tokenize = None

    def encode(self, prompt: Any, *, chat: bool | None = None) -> list[int]:
        """The bytes of the prompt or of the last message."""
        text = prompt if isinstance(prompt, str) else prompt[-1]["content"]
        return list(text.encode()) or [0]


@pytest.fixture
def slow(serve: Any) -> Iterator[Slow]:
    """An engine that waits. It no longer does when the test ends, so that its server can."""
    engine = Slow()
    yield engine
    engine.gate.set()


class Slow(ChatTable):
    """Each pass waits for `gate`, which the test opens, and breaks where it is asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.breaks = False
        self.passes = 0

    def session(self) -> TableSession:
        """A session that waits."""
        engine = self

        class Waiting(TableSession):
            def evaluate(self, tokens: Sequence[int]) -> np.ndarray:
                engine.gate.wait(30)
                engine.passes += 1
                if engine.breaks:
                    raise lt.EngineError("out of memory in /secret/path")
                return super().evaluate(tokens)

        return Waiting(self.table)


WRONG: list[tuple[str, Any, int, str | None, str]] = [
    (CHAT, {}, 400, "messages", "messages is empty"),
    (CHAT, {"messages": "x"}, 400, "messages", "give a list of objects"),
    (CHAT, {"messages": [{"content": "x"}]}, 400, "messages", 'has no "role"'),
    (CHAT, {"messages": [{"role": "user"}]}, 400, "messages", "is missing"),
    (CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, None, "image_url"),
    (CHAT, {"messages": SAID, "temprature": 1}, 400, "temprature", "temprature is no field"),
    (CHAT, {"messages": SAID, "n": 0}, 400, "n", "give 1 to 16"),
    (CHAT, {"messages": SAID, "n": 1.5}, 400, "n", "whole number"),
    (CHAT, {"messages": SAID, "max_tokens": True}, 400, "max_tokens", "whole number"),
    (CHAT, {"messages": SAID, "max_tokens": 4, "max_completion_tokens": 4}, 400, "max_completion_tokens", "both"),
    (CHAT, {"messages": SAID, "stream": "yes"}, 400, "stream", "true or false"),
    (CHAT, {"messages": SAID, "seed": 2**32}, 400, "seed", "give -1 to"),
    (CHAT, {"messages": SAID, "stop": ["a", ""]}, 400, "stop", "give a text"),
    (CHAT, {"messages": SAID, "logprobs": True, "top_logprobs": 21}, 400, "top_logprobs", "give 0 to 20"),
    (CHAT, {"messages": SAID, "temperature": "hot"}, 400, None, "temperature"),
    (CHAT, {"messages": SAID, "top_p": [1]}, 400, None, "top_p"),
    (CHAT, {"messages": SAID, "logit_bias": {"a": 1}}, 400, "logit_bias", "token ids"),
    (CHAT, {"messages": SAID, "logit_bias": {"9999999": 1}}, 400, None, "9999999"),
    (CHAT, {"messages": SAID, "tools": [1]}, 400, "tools", "list of objects"),
    (CHAT, {"messages": SAID, "tools": [{"type": "function"}]}, 400, None, "function"),
    (CHAT, {"messages": SAID, "tool_choice": {"function": {"name": "f"}}}, 400, None, "no tool is called 'f'"),
    (CHAT, {"messages": SAID, "response_format": {"type": "nonsense"}}, 400, "response_format", "type must be one of"),
    (CHAT, {"messages": SAID, "response_format": 7}, 400, "response_format", "unknown"),
    (CHAT, {"messages": SAID, "grammar": 7}, 400, "grammar", "no grammar"),
    (CHAT, {"messages": SAID, "grammar": "root ::= ("}, 400, "grammar", "1:"),
    (CHAT, {"messages": SAID, "grammar": "root ::= root"}, 400, None, "root"),
    (CHAT, {"messages": SAID, "grammar": "root ::= [a]", "json_schema": {}}, 400, "json_schema", "both"),
    (CHAT, {"messages": SAID, "structured_outputs": {"regex": "("}}, 400, "structured_outputs", "("),
    (CHAT, {"messages": SAID, "structured_outputs": {}}, 400, "structured_outputs", "one is needed"),
    (
        CHAT,
        {"messages": SAID, "response_format": {"type": "catalogue", "index": "/etc/passwd"}},
        400,
        "response_format",
        "may not open the file",
    ),
    (CHAT, {"messages": SAID, "on_limit": "raise"}, 400, "on_limit", "close"),
    (CHAT, {"messages": SAID, "tokenization": "odd"}, 400, None, "odd"),
    (CHAT, {"messages": SAID, "model": "other"}, 404, "model", "'other'"),
    (CHAT, {"messages": [{"role": "user", "content": "long " * 2000}]}, 400, None, "the context holds"),
    (TEXT, {"prompt": ""}, 400, "prompt", "give a text"),
    (TEXT, {"prompt": [1, 10**9]}, 400, "prompt", "give a text or token ids"),
    (TEXT, {"prompt": "x", "n": 3, "best_of": 2}, 400, "best_of", "best_of is 2 and n is 3"),
    (TEXT, {"prompt": "x", "best_of": 2, "stream": True}, 400, "best_of", "is not streamed"),
    (CHAT, {"messages": SAID, "reasoning_budget": 5}, 400, "reasoning_budget", "nothing that it limits"),
    (CHAT, {"messages": SAID, "reasoning_budget": -1}, 400, "reasoning_budget", "give 0 to"),
    (CHAT, {"messages": SAID, "reasoning_effort": "high"}, 400, "reasoning_effort", 'give "none"'),
    (CHAT, {"messages": SAID, "reasoning_effort": "none", "reasoning_budget": 1}, 400, "reasoning_budget", "both"),
    (TEXT, {"prompt": "x", "suffix": "y"}, 400, "suffix", "fills nothing in"),
    (TEXT, {"prompt": ["x"] * 65}, 400, "prompt", "at most 64"),
    (LLAMA, {"prompt": [1, {}]}, 400, "prompt", "token ids and texts in it"),
    (LLAMA, {"prompt": []}, 400, "prompt", "give a text or token ids"),
    (LLAMA, {"prompt": "x", "n_probs": 21}, 400, "n_probs", "give 0 to 20"),
    ("/v1/classify", {"input": "x", "labels": []}, 400, "labels", "is empty"),
    ("/v1/classify", {"input": "x", "labels": ["a", "a"]}, 400, "labels", "comes twice"),
    ("/v1/classify", {"input": [], "labels": ["a"]}, 400, "input", "is empty"),
    ("/detokenize", {"tokens": [-1]}, 400, "tokens", "token ids"),
    ("/tokenize", {"content": 5}, 400, "content", "give a text"),
]


def test_a_client_that_sends_slowly_is_refused(engine: Engine, serve: Any) -> None:
    client = serve(engine, places=1, limits=Limits(receive=0.3))

    def slowly() -> Iterator[bytes]:
        yield b'{"prompt": '
        time.sleep(1)
        yield b'"x"}'

    answer = client.post(TEXT, content=slowly())
    assert answer.status_code == 408
    assert answer.json()["error"]["message"] == "the request took longer than 0.3 s to come"
    assert client.post(TEXT, json={"prompt": "x", "max_tokens": 1}).status_code == 200


@pytest.mark.parametrize("case", range(len(WRONG)))
def test_what_is_wrong_is_named(client: Any, case: int) -> None:
    path, body, status, param, message = WRONG[case]
    answer = client.post(path, json=body)
    problem = answer.json()["error"]
    assert answer.status_code == status, answer.text
    assert message in problem["message"]
    assert problem["type"] == "invalid_request_error"
    if param is not None:
        assert problem["param"] == param


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"[1]", "no JSON object"),
        (b'{"seed": NaN}', "NaN is no number"),
        (b"\xff", "no JSON"),
        (b"[" * 200_000, "nested too deep"),
        (b'{"messages": ' + b'[{"a": ' * 5_000 + b"1" + b"}]" * 5_000 + b"}", ""),
    ],
)
def test_bodies_that_are_no_requests(client: Any, body: bytes, message: str) -> None:
    answer = client.post(CHAT, content=body)
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]


def test_paths_that_are_not_there(client: Any) -> None:
    for answer in (client.get("/nope"), client.get(CHAT)):
        assert answer.status_code in (404, 405)
        assert "there is no GET" in answer.json()["error"]["message"]


def test_llama_cpp_s_own_completions(client: Any) -> None:
    asked = {"prompt": "2, 3, 4, 5,", "n_predict": 8, "temperature": 0, "cache_prompt": True, "return_tokens": True}
    whole = client.post(LLAMA, json=asked).json()
    assert whole["stop"] is True
    assert whole["stop_type"] == "limit"
    assert whole["tokens_predicted"] == len(whole["tokens"]) == 8
    with client.stream("POST", LLAMA, json={**asked, "stream": True}) as answer:
        lines = [json.loads(line[6:]) for line in answer.iter_lines() if line]
    assert "".join(line["content"] for line in lines) == whole["content"]
    assert [line["stop"] for line in lines] == [False] * 8 + [True]
    stopped = client.post(LLAMA, json={**asked, "stop": ["7"]}).json()
    assert (stopped["stop_type"], stopped["stopping_word"]) == ("word", "7")
    yes = client.post(LLAMA, json={"prompt": "Yes or no?", "json_schema": {"enum": ["yes"]}, "n_predict": -1}).json()
    assert (yes["content"], yes["stop_type"]) == ('"yes"', "eos")
    tokens = client.post("/tokenize", json={"content": "Ünï 7", "with_pieces": True}).json()["tokens"]
    assert client.post("/detokenize", json={"tokens": [t["id"] for t in tokens]}).json() == {"content": "Ünï 7"}
    props = client.get("/props").json()
    assert (props["total_slots"], props["model_alias"]) == (4, "m")
    assert "/" not in props["model_alias"]


def test_labels_with_exact_probabilities(client: Any, engine: Any) -> None:
    asked = {"input": ["I love it!", "It is awful."], "labels": ["positive", "negative"], "instructions": "The mood?"}
    found = client.post("/v1/classify", json=asked).json()
    assert [one["index"] for one in found["data"]] == [0, 1]
    for one, text in zip(found["data"], asked["input"], strict=True):
        prompt = [{"role": "system", "content": "The mood?"}, {"role": "user", "content": text}]
        truth = lt.choose(engine, prompt, asked["labels"])
        assert one["label"] == truth.value
        expected = dict(zip(asked["labels"], truth.probabilities, strict=True))
        assert one["probabilities"] == pytest.approx(expected, rel=1e-3)
        assert sum(one["probabilities"].values()) == pytest.approx(1)
    assert client.post("/v1/classify", json={**asked, "input": "x " * 2000}).status_code == 400


def test_what_is_counted(client: Any) -> None:
    client.post(CHAT, json={"messages": SAID, "response_format": {"type": "choices", "texts": ["abc"]}})
    text = client.get("/metrics").text
    counted = ("requests_total", "prompt_tokens_total", "first_token_seconds_count", 'saved_passes_total{source="')
    for name in (*counted, "tokens_per_second_count"):
        assert re.search(rf"^logitree_{re.escape(name)}.* [1-9]", text, re.MULTILINE), name
    assert re.search(r"^logitree_running 0.0$", text, re.MULTILINE)
    (masks,) = re.findall(r"^logitree_mask_seconds_total (.+)$", text, re.MULTILINE)
    assert 0 < float(masks) < 1
    assert client.get("/ready").json()["status"] == "ready"


def test_hostile_constraints_fail_alone_and_do_not_hold_the_others(client: Any) -> None:
    hostile = [
        {"grammar": "root ::= " + "(" * 3_000 + '"a"' + ")" * 3_000},
        {"grammar": 'root ::= ("a"?){1,60000}{1,60000}'},
        {"structured_outputs": {"regex": "(a{0,900}){0,900}"}},
        {"structured_outputs": {"regex": "(?:" * 400 + "a" + ")*" * 400}},
        {"json_schema": {"$ref": "#"}},
        {"json_schema": {"allOf": [{"pattern": f"^.{{{n}}}.*{n}$"} for n in range(60)], "type": "string"}},
    ]
    gaps: list[float] = []

    def stream() -> None:
        with client.stream(
            "POST", CHAT, json={"messages": SAID, "stream": True, "max_tokens": 80, "seed": 1}
        ) as answer:
            last = time.monotonic()
            for line in answer.iter_lines():
                if line:
                    gaps.append(time.monotonic() - last)
                    last = time.monotonic()

    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        watched = pool.submit(stream)
        answers = list(
            pool.map(lambda extra: client.post(CHAT, json={"messages": SAID, "max_tokens": 4, **extra}), hostile)
        )
        watched.result()
    assert len(gaps) > 10
    for answer in answers:
        assert answer.status_code in (200, 400), answer.text
    assert any(answer.status_code == 400 for answer in answers)


def test_a_client_that_leaves_ends_its_rows(serve: Any, slow: Slow) -> None:
    engine = slow
    client = serve(engine, places=2)
    for left, stream in enumerate((True, False), start=1):
        engine.gate.clear()
        asked = {"messages": SAID, "max_tokens": 300, "stream": stream, "temperature": 5.0}
        with pytest.raises(Exception, match="timed out"):
            client.post(CHAT, json=asked, timeout=0.3)
        wait_until(lambda seen=left: f'status="499"}} {seen}.0' in client.get("/metrics").text)
        before = engine.passes
        engine.gate.set()
        wait_until(lambda: client.get("/ready").json()["running"] == 0)
        assert engine.passes <= before + 3
        assert client.post(CHAT, json={"messages": SAID, "max_tokens": 2}).status_code == 200


def test_more_requests_than_the_queue_holds_are_refused(serve: Any, slow: Slow) -> None:
    engine = slow
    client = serve(engine, places=1, limits=Limits(waiting=2))
    asked = {"messages": SAID, "max_tokens": 2, "seed": 1}
    with concurrent.futures.ThreadPoolExecutor(8) as pool, contextlib.ExitStack() as stack:
        stack.callback(engine.gate.set)  # also where something fails: what was sent ends
        sent = []
        for number in range(3):
            sent.append(pool.submit(client.post, CHAT, json=asked))
            wait_until(
                lambda wanted=number + 1: sum(client.get("/ready").json()[k] for k in ("running", "waiting")) == wanted
            )
        refused = client.post(CHAT, json=asked)
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "1"
        assert refused.json()["error"]["type"] == "rate_limit_error"
        assert client.post(CHAT, json={**asked, "n": 4}).status_code == 429
        engine.gate.set()
        assert len({one.result().json()["choices"][0]["message"]["content"] for one in sent}) == 1


def test_an_answer_that_takes_too_long_ends(serve: Any) -> None:
    engine = Slow()
    client = serve(engine, limits=Limits(seconds=0.2))
    threading.Timer(0.6, engine.gate.set).start()
    answer = client.post(CHAT, json={"messages": SAID, "max_tokens": 300})
    assert answer.status_code == 504
    assert "longer than a request may" in answer.json()["error"]["message"]


def test_an_engine_that_fails_ends_what_it_ran_and_serves_the_next(serve: Any) -> None:
    engine = Slow()
    engine.gate.set()
    client = serve(engine)
    engine.breaks = True
    answer = client.post(CHAT, json={"messages": SAID, "max_tokens": 3})
    assert answer.status_code == 500
    assert answer.json()["error"] == {
        "message": "the server failed to answer",
        "type": "server_error",
        "param": None,
        "code": None,
    }
    streamed = client.post(CHAT, json={"messages": SAID, "max_tokens": 3, "stream": True})
    assert streamed.status_code == 500
    assert "secret" not in streamed.text
    engine.breaks = False
    assert client.post(CHAT, json={"messages": SAID, "max_tokens": 3}).status_code == 200
    assert "logitree_engine_failures 2.0" in client.get("/metrics").text


def test_keys_and_origins(serve: Any) -> None:
    engine = ChatTable()
    client = serve(engine, api_keys=["one", "zwei-ü"], origins=["http://page.example"])
    asked = {"messages": SAID, "max_tokens": 1}
    for header in (None, "Bearer two", "Bearer", "one", "Basic one"):
        headers = {} if header is None else {"authorization": header}
        for answer in (client.post(CHAT, json=asked, headers=headers), client.get("/metrics", headers=headers)):
            assert answer.status_code == 401
            assert answer.json()["error"]["type"] == "authentication_error"
    assert client.get("/health").status_code == 200
    origin = {"authorization": "bearer one", "origin": "http://page.example"}
    answer = client.post(CHAT, json=asked, headers=origin)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "http://page.example"
    other = client.post(CHAT, json=asked, headers={**origin, "origin": "http://other.example"})
    assert "access-control-allow-origin" not in other.headers
    with pytest.raises(ValueError, match="empty API key"):
        application(engine, api_keys=[""])
    with pytest.raises(ValueError, match="places is 0"):
        application(engine, places=0)


def test_a_body_that_is_too_large_is_not_read(serve: Any) -> None:
    client = serve(ChatTable(), limits=Limits(body=1000))
    answer = client.post(CHAT, json={"messages": [{"role": "user", "content": "x" * 2000}]})
    assert answer.status_code == 413
    assert "1,000 bytes" in answer.json()["error"]["message"]


def test_the_command_serves_and_finishes_what_runs(tmp_path: Path, smollm2_gguf: Path) -> None:
    httpx = pytest.importorskip("httpx")
    port = free_port()
    options = ["serve", "--ctx", "512", "--parallel", "2", f"--port={port}", "--name=small"]
    server = ServerProcess(["logitree", *options], port, "/health", tmp_path / "log", 60)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = {"model": "small", "messages": SAID, "max_tokens": 60, "seed": 1}
        running = pool.submit(httpx.post, server.url + CHAT, json=asked, timeout=60)
        wait_until(lambda: httpx.get(server.url + "/ready").json()["running"] == 1)
        server.process.send_signal(signal.SIGINT)
        assert running.result().status_code == 200
    assert server.process.wait(60) == 0
    log = server.log.read_text("utf-8")
    assert f"http://127.0.0.1:{port}/v1 serves small" in log
    assert "Traceback" not in log


def wait_until(holds: Any) -> None:
    """Waits for something, 20 seconds at most."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < 20
        time.sleep(0.02)


def test_a_long_text_to_classify_does_not_hold_the_others(engine: Engine) -> None:
    service = Service(engine, "m", Limits(), {})
    asked = {"input": ["so it goes " * 60, "a good day"], "labels": ["good", "bad"]}
    steps, read = service.classification(asked), [engine.counters.tokens_decoded]  # type: ignore[attr-defined]
    while True:
        try:
            next(steps)
        except StopIteration as over:
            found = over.value
            break
        read.append(engine.counters.tokens_decoded)  # type: ignore[attr-defined]
    # The long one has some 190 tokens: a step reads as many as a pass takes.
    assert max(after - before for before, after in itertools.pairwise(read)) <= engine.n_batch
    assert len(read) > 190 // engine.n_batch
    alone = [
        lt.choose(engine, service._question("Which of these is it: good, bad?", text), ["good", "bad"])
        for text in asked["input"]
    ]
    for one, truth in zip(found, alone, strict=True):
        assert one["label"] == truth.value
        assert list(one["probabilities"].values()) == pytest.approx(list(truth.probabilities), rel=1e-3)
