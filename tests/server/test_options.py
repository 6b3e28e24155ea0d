"""Options of requests that need an engine or a server of their own: budgets of reasoning, the best of several answers,
catalogues by name, and transformers as the engine of the command."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import logitree as lt
from logitree.engines import Engine
from servers import ServerProcess, free_port
from table_engine import TableEngine

TEMPLATE = """{%- for message in messages -%}
<|im_start|>{{ message.role }}
{% if message.reasoning_content %}<think>
{{ message.reasoning_content }}
</think>

{% endif %}{{ message.content }}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% endif -%}"""
SPECIAL = (b"<|im_start|>", b"<|im_end|>", b"<think>", b"</think>")
THINK, END_THINK = 258, 259


class Thinker(TableEngine):
    """Tokens are bytes and the marks of reasoning; the model likes to think, and never stops by itself."""

    n_ctx = 4000
    chat_template = TEMPLATE
    tokenize = None
    name = "thinker"

    def __init__(self) -> None:
        tokens = [bytes([byte]) for byte in range(256)] + list(SPECIAL)
        kinds = ["normal"] * 256 + ["control"] * len(SPECIAL)
        self.vocabulary = lt.Vocabulary.from_tokens(tokens, end_tokens=[257], kinds=kinds)
        size = len(tokens)
        self.table = np.random.default_rng(3).normal(0, 1, (size, size)).astype(np.float32)
        self.table[:, ord("a") : ord("e")] += 6
        self.table[:, THINK] += 20
        self.table[:, END_THINK] -= 20
        self.table[:, 256:258] -= 20

    def encode(self, prompt: Any, *, chat: bool | None = None) -> list[int]:
        """The bytes of the last message, and where an answer begins."""
        return [*(prompt if isinstance(prompt, str) else prompt[-1]["content"]).encode(), ord("\n")]


def test_reasoning_has_a_budget(serve: Any) -> None:
    client = serve(Thinker(), places=1)

    def asked(**fields: Any) -> dict[str, Any]:
        body = {"messages": [{"role": "user", "content": "x"}], "response_format": DIGIT, "max_tokens": 400, **fields}
        answer = client.post("/v1/chat/completions", json=body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    free = asked()
    assert free["choices"][0]["finish_reason"] == "length"
    assert len(free["choices"][0]["message"]["reasoning_content"]) > 300
    for budget in (1, 7, 40):
        found = asked(reasoning_budget=budget)
        message = found["choices"][0]["message"]
        assert found["choices"][0]["finish_reason"] == "stop"
        assert message["content"].strip() in list("0123456789")
        assert 0 < len(message["reasoning_content"].encode()) <= budget
    for none in ({"reasoning_budget": 0}, {"reasoning_effort": "none"}):
        message = asked(**none)["choices"][0]["message"]
        assert not message.get("reasoning_content")
        assert message["content"].strip() in list("0123456789")
    unconstrained = asked(reasoning_budget=5, response_format=None, max_tokens=30)["choices"][0]
    assert 0 < len(unconstrained["message"]["reasoning_content"].encode()) <= 5
    assert unconstrained["message"]["content"]


SAID = [{"role": "user", "content": "Say something."}]
DIGIT = {"type": "regex", "pattern": "[0-9]"}


@pytest.mark.parametrize("form", [None, {"type": "choices", "texts": ["red", "dark green", "blue or grey"]}])
def test_the_best_of_several_are_the_likeliest(client: httpx.Client, form: Any) -> None:
    ask = {"prompt": ["My favourite colour is", "The sea is"], "response_format": form, "seed": 5, "max_tokens": 8}
    asked = client.post("/v1/completions", json={**ask, "n": 5, "logprobs": 0})
    all_of_them = asked.json()["choices"]
    best = client.post("/v1/completions", json={**ask, "n": 2, "best_of": 5}).json()
    assert [one["index"] for one in best["choices"]] == [0, 1, 2, 3]
    assert all(one["logprobs"] is None for one in best["choices"])
    texts = [one["text"] for one in best["choices"]]
    for at in range(2):
        group = all_of_them[5 * at : 5 * at + 5]
        if form is None:  # forced tokens have no log-probability: only without them are the two the same
            means = {one["text"]: float(np.mean(one["logprobs"]["token_logprobs"])) for one in group}
            ranked = sorted((means[one["text"]] for one in group), reverse=True)
            assert [means[text] for text in texts[2 * at : 2 * at + 2]] == pytest.approx(ranked[:2], abs=1e-6)
        else:
            assert set(texts) <= set(form["texts"])
    if form is None:
        assert best["usage"] == asked.json()["usage"]  # all that were tried
    shown = client.post("/v1/completions", json={**ask, "n": 1, "best_of": 3, "logprobs": 1}).json()["choices"]
    assert all(one["logprobs"]["token_logprobs"] for one in shown)


@pytest.mark.parametrize("form", [None, {"type": "regex", "pattern": "(red|dark green|blue) (house|car)"}])
def test_beams_are_those_of_a_search(client: httpx.Client, engine: Engine, form: Any) -> None:
    prompts = ["My favourite thing is the", "We saw a"]
    ask = {"prompt": prompts, "response_format": form, "max_tokens": 5, "use_beam_search": True, "n": 2, "best_of": 4}
    found = client.post("/v1/completions", json=ask).json()
    pattern = None if form is None else re.compile(form["pattern"])
    searched = lt.beam_search(
        engine, prompts, pattern, width=4, returned=2, max_tokens=5, length_penalty=1.0, chat=False, unfinished=True
    )
    assert [one["text"] for one in found["choices"]] == [one.text for its in searched for one in its]
    assert [one["index"] for one in found["choices"]] == [0, 1, 2, 3]
    for one in found["choices"]:
        assert one["finish_reason"] == ("length" if form is None else "stop")
        assert form is None or re.fullmatch(form["pattern"], one["text"])
    assert found["usage"]["completion_tokens"] == sum(
        len(one.tokens) - (form is not None) for its in searched for one in its
    )


def test_beams_of_a_chat(client: httpx.Client) -> None:
    schema = {"type": "object", "properties": {"n": {"enum": [1, 22, 3]}}, "required": ["n"]}
    schema["additionalProperties"] = False
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    body = {"messages": SAID, "response_format": form, "use_beam_search": True, "n": 3, "temperature": 0}
    found = client.post("/v1/chat/completions", json=body).json()
    texts = [one["message"]["content"] for one in found["choices"]]
    assert len(set(texts)) == 3
    assert all(json.loads(text)["n"] in (1, 22, 3) for text in texts)
    for extra, param in (
        ({"n": 4, "response_format": {"type": "choices", "texts": ["a", "b"]}}, "n"),
        ({"stream": True}, "stream"),
        ({"top_k": 3}, "top_k"),
        ({"logprobs": True}, "logprobs"),
        ({"stop": "x"}, "stop"),
        ({"best_of": 2}, "best_of"),
        ({"length_penalty": "x"}, "length_penalty"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": 1e-40}, "beam 0"),
        ({"use_beam_search": "yes"}, "use_beam_search"),
        ({"n": 17}, "n"),
        ({"use_beam_search": False, "length_penalty": 2}, "length_penalty"),
        ({"use_beam_search": False, "best_of": 3}, "best_of"),
    ):
        refused = client.post("/v1/chat/completions", json={**body, **extra})
        assert refused.status_code == 400, extra
        assert refused.json()["error"]["param"] == param, refused.text


def test_beams_end_with_the_context(serve: Any, smollm2_gguf: Path) -> None:
    pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    from logitree.engines.llama_cpp import LlamaCpp

    engine = LlamaCpp(smollm2_gguf, n_ctx=256, n_threads=1)
    client = serve(engine, places=1)
    said = [{"role": "user", "content": "long " * 190}]
    form = {"type": "regex", "pattern": "(long |short ){200}"}
    ask = {"messages": said, "use_beam_search": True, "n": 2, "response_format": form}
    found = client.post("/v1/chat/completions", json=ask).json()
    assert [one["finish_reason"] for one in found["choices"]] == ["length", "length"]
    assert all(set(one["message"]["content"].split()[:-1]) <= {"long", "short"} for one in found["choices"])
    usage = found["usage"]
    assert usage["prompt_tokens"] > 190
    assert usage["prompt_tokens"] + usage["completion_tokens"] / 2 == engine.n_ctx


@pytest.fixture
def index(engine: Engine, tmp_path: Path) -> Path:
    """A catalogue of three items."""
    path = tmp_path / "items.index"
    lt.Catalogue.from_texts(["a lamp", "a lantern", "two chairs"], engine, path=path)
    return path


def test_catalogues_have_names(engine: Engine, serve: Any, index: Path, tmp_path: Path) -> None:
    client = serve(engine, places=1, catalogues={"items": index})
    form = {"type": "catalogue", "index": "items"}
    for asked in (form, {"type": "sequence", "of": [{"type": "literal", "text": ">"}, form]}, json.dumps(form)):
        body = {"prompt": "In the room is", "response_format": asked, "max_tokens": 12}
        answer = client.post("/v1/completions", json=body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["choices"][0]["text"].lstrip(">") in ("a lamp", "a lantern", "two chairs")
    for wrong in ("others", str(index), "items/../items", "/etc/passwd", ""):
        body = {"prompt": "x", "response_format": {**form, "index": wrong}}
        problem = client.post("/v1/completions", json=body).json()["error"]
        assert "may not open the file" in problem["message"], wrong
    inner = json.dumps({"spans": [{"kind": "literal", "value": "x"}]})
    body = {"prompt": "x", "response_format": {"type": "skeleton", "skeleton": inner}}
    assert client.post("/v1/completions", json=body).json()["choices"][0]["text"] == "x"
    deep = '{"prompt": "x", "response_format": ' + '{"type": "repeat", "of": ' * 900 + json.dumps(form) + "}" * 901
    assert client.post("/v1/completions", content=deep).status_code == 400
    twice = '{"prompt": "x", "response_format": {"type": "catalogue", "index": "/etc/passwd", "index": "items"}}'
    assert client.post("/v1/completions", content=twice).status_code == 200  # JSON's last name counts, here as there
    with pytest.raises(lt.FileError):
        serve(engine, places=1, catalogues={"none": tmp_path / "none.index"})


@pytest.mark.peers
def test_the_command_serves_transformers(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tiny_models import tiny, tokenizer

    port = free_port()
    folder = tmp_path / "model"
    tiny("llama", 320, 400).save_pretrained(folder)
    tokenizer(template=True).save_pretrained(folder)
    command: Sequence[str] = [
        "logitree",
        "serve",
        "--engine",
        "transformers",
        "--model",
        str(folder),
        "--port",
        str(port),
    ]
    server = ServerProcess([*command, "--parallel", "2"], port, "/health", tmp_path / "log", 120)
    try:
        ask = {"prompt": "x", "response_format": {"type": "choices", "texts": ["yes", "no"]}, "n": 2}
        answer = httpx.post(f"{server.url}/v1/completions", json=ask, timeout=60).json()
        assert {one["text"] for one in answer["choices"]} <= {"yes", "no"}
    finally:
        server.close()
