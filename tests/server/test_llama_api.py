"""What llama.cpp's own tests of its server say that a client may expect (tools/server/tests/unit: test_completion,
test_chat_completion, test_tokenize), asked of this server."""

from __future__ import annotations

import json
import math
from typing import Any

import httpx
import pytest

from logitree.engines import Engine

LIFE = "I believe the meaning of life is"


def streamed(client: httpx.Client, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of a streamed completion."""
    with client.stream("POST", "/completion", json={**body, "stream": True}) as answer:
        assert answer.status_code == 200, answer.read()
        return [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: {")]


@pytest.mark.parametrize("return_tokens", [False, True])
def test_a_completion_has_their_fields(client: httpx.Client, engine: Engine, return_tokens: bool) -> None:
    body = {"prompt": LIFE, "n_predict": 8, "seed": 42, "return_tokens": return_tokens}
    found = client.post("/completion", json=body).json()
    assert found["timings"]["predicted_n"] == found["tokens_predicted"] == 8
    assert found["timings"]["prompt_n"] + found["tokens_cached"] == found["tokens_evaluated"]
    assert (found["truncated"], found["stop"], found["stop_type"]) == (False, True, "limit")
    assert found["has_new_line"] == ("\n" in found["content"])
    assert found["generation_settings"]["n_predict"] == 8
    assert found["generation_settings"]["seed"] == 42
    assert found["prompt"].endswith(LIFE)
    assert len(found["tokens"]) == (8 if return_tokens else 0)
    parts = streamed(client, body)
    assert "".join(part["content"] for part in parts) == found["content"]
    assert [part["stop"] for part in parts] == [False] * (len(parts) - 1) + [True]
    assert all(part["tokens"] for part in parts[:-1])
    assert parts[-1]["stop_type"] == "limit"


def test_prompts_are_texts_tokens_and_both(client: httpx.Client) -> None:
    tokens = client.post("/tokenize", json={"content": LIFE, "add_special": True}).json()["tokens"]
    ask = {"temperature": 0.0, "n_predict": 5}
    one = client.post("/completion", json={**ask, "prompt": tokens}).json()
    assert isinstance(one["content"], str)
    for prompts in ([tokens, tokens], [tokens, LIFE], [LIFE]):
        many = client.post("/completion", json={**ask, "prompt": prompts}).json()
        assert [each["content"] for each in many] == [one["content"]] * len(prompts)
        assert [each["index"] for each in many] == list(range(len(prompts)))
    mixed = client.post("/completion", json={**ask, "prompt": [1, 2, 3, LIFE, 7, 8, LIFE]}).json()
    assert mixed["tokens_evaluated"] == 5 + 2 * len(client.post("/tokenize", json={"content": LIFE}).json()["tokens"])
    assert client.post("/completion", json={"prompt": LIFE * 600}).status_code == 400


def test_some_fields_alone(client: httpx.Client) -> None:
    fields = ["content", "generation_settings/n_predict", "prompt", "nothing/there"]
    found = client.post("/completion", json={"prompt": LIFE, "n_predict": 3, "response_fields": fields}).json()
    assert list(found) == fields
    assert found["generation_settings/n_predict"] == 3
    assert found["nothing/there"] is None


@pytest.mark.parametrize("final", [False, True])
def test_probabilities(client: httpx.Client, engine: Engine, final: bool) -> None:
    body = {"prompt": LIFE, "n_probs": 10, "temperature": 0.0, "n_predict": 5, "post_sampling_probs": final}
    whole = client.post("/completion", json=body).json()["completion_probabilities"]
    parts = [part["completion_probabilities"] for part in streamed(client, body)[:-1]]
    assert [one for part in parts for one in part] == whole
    assert len(whole) == 5
    top, value = ("top_probs", "prob") if final else ("top_logprobs", "logprob")
    for one in whole:
        assert bytes(one["bytes"]) == engine.vocabulary[one["id"]]
        assert 0 < (one[value] if final else math.exp(one[value])) <= 1
        assert final or len(one[top]) == 10
        values = [each[value] for each in one[top]]
        assert values == sorted(values, reverse=True)
        assert one[top][0]["id"] == one["id"]  # the likeliest was taken
    assert "completion_probabilities" not in client.post("/completion", json={**body, "n_probs": 0}).json()


def test_tokens_and_pieces(client: httpx.Client) -> None:
    text = "This is a test string with unicode 媽 and emoji 🤗"
    tokens = client.post("/tokenize", json={"content": text}).json()["tokens"]
    assert client.post("/detokenize", json={"tokens": tokens}).json()["content"] == text
    pieces = client.post("/tokenize", json={"content": text, "with_pieces": True}).json()["tokens"]
    assert [one["id"] for one in pieces] == tokens
    data = b"".join(p.encode() if isinstance(p := one["piece"], str) else bytes(p) for one in pieces)
    assert data.decode() == text
    assert any(isinstance(one["piece"], list) for one in pieces)


def test_other_names_of_paths(client: httpx.Client) -> None:
    said = {"messages": [{"role": "user", "content": "Hey"}], "max_tokens": 3, "seed": 1}
    first = client.post("/chat/completions", json=said).json()
    assert first["choices"] == client.post("/v1/chat/completions", json=said).json()["choices"]
    asked = {"prompt": LIFE, "n_predict": 3, "seed": 1}
    contents = [client.post(path, json=asked).json()["content"] for path in ("/completion", "/completions")]
    assert contents[0] == contents[1]
    assert client.get("/models").json() == client.get("/v1/models").json()
    prompt = client.post("/apply-template", json={"messages": said["messages"]}).json()["prompt"]
    assert "<|im_start|>user\nHey<|im_end|>\n<|im_start|>assistant" in prompt


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ({"type": "json_object", "schema": {"const": "42"}}, '"42"'),
        ({"type": "json_schema", "json_schema": {"schema": {"const": "foooooo"}}}, '"foooooo"'),
        ({"type": "sound"}, None),
        ({"type": "json_object", "schema": 123}, None),
        ({"type": "json_object", "schema": {"type": 123}}, None),
        ({"type": "json_object", "schema": {"type": "hiccup"}}, None),
    ],
)
def test_formats_of_chats(client: httpx.Client, form: Any, text: str | None) -> None:
    said = [{"role": "user", "content": "Write an example"}]
    answer = client.post("/chat/completions", json={"messages": said, "max_tokens": 10, "response_format": form})
    if text is None:
        assert answer.status_code == 400
        assert answer.json()["error"]["message"]
    else:
        assert answer.json()["choices"][0]["message"]["content"] == text


@pytest.mark.parametrize(
    "messages", [None, "string", [123], [{}], [{"role": 123}], [{"role": "system", "content": 123}]]
)
def test_messages_that_are_none(client: httpx.Client, messages: Any) -> None:
    answer = client.post("/chat/completions", json={"messages": messages})
    assert answer.status_code == 400
    assert "error" in answer.json()
