"""llama-cpp-python's own server under logitree, asked over HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from servers import ServerProcess, free_port

pytestmark = [pytest.mark.peers]
pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
pytest.importorskip("sse_starlette", reason="llama-cpp-python's server is not installed")

SCHEMA = {
    "type": "object",
    "properties": {"first_name": {"type": "string", "maxLength": 12}, "eye_colour": {"enum": ["brown", "blue"]}},
    "required": ["first_name", "eye_colour"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "describe", "parameters": SCHEMA}}
NAMED = {"type": "function", "function": {"name": "describe"}}
JSON_SCHEMA = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": SCHEMA}}
CHAT = "/v1/chat/completions"


class Server(ServerProcess):
    """The server of `python -m logitree.engines.llama_cpp_python`."""

    def __init__(self, model: Path, log: Path) -> None:
        port = free_port()
        options = ["--model", str(model), "--port", str(port), "--n_ctx", "512", "--n_threads", "1"]
        super().__init__(["logitree.engines.llama_cpp_python", *options], port, "/v1/models", log, 120)

    def post(self, path: str, **body: Any) -> Any:
        """The answer, or the error's with its status."""
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            return json.load(refused) | {"status": refused.code}

    def stream(self, path: str, **body: Any) -> list[Any]:
        """The data of a stream's events."""
        request = urllib.request.Request(
            self.url + path, json.dumps(body | {"stream": True}).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            lines = [line.decode().removeprefix("data: ").strip() for line in answer if line.startswith(b"data: ")]
        assert lines[-1] == "[DONE]"
        return [json.loads(line) for line in lines[:-1]]


@pytest.fixture(scope="module")
def server(smollm2_gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(smollm2_gguf, tmp_path_factory.mktemp("server") / "log")
    yield made
    made.close()


def asked(text: str = "Describe Anna.", **options: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], "temperature": 0.9, "seed": 7, "max_tokens": 80} | options


@pytest.mark.parametrize("format", [JSON_SCHEMA, {"type": "json_object", "schema": SCHEMA}], ids=["openai", "own"])
def test_response_formats(server: Server, format: Any) -> None:
    (choice,) = server.post(CHAT, **asked(response_format=format))["choices"]
    assert json.loads(choice["message"]["content"]).keys() == {"first_name", "eye_colour"}
    chunks = server.stream(CHAT, **asked(response_format=format))
    text = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)
    assert text == choice["message"]["content"]


def test_tools(server: Server) -> None:
    (choice,) = server.post(CHAT, **asked(tools=[TOOL], tool_choice=NAMED))["choices"]
    (call,) = choice["message"]["tool_calls"]
    assert choice["finish_reason"] == "tool_calls"
    assert json.loads(call["function"]["arguments"]).keys() == {"first_name", "eye_colour"}
    chunks = server.stream(CHAT, **asked(tools=[TOOL], tool_choice=NAMED))
    (streamed,) = [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls") or ()]
    assert streamed["function"] == call["function"]


def test_grammars_and_biases(server: Server) -> None:
    body = {"prompt": "The light is", "grammar": 'root ::= " red" | " green"', "temperature": 0, "max_tokens": 8}
    for favoured in (" red", " green"):
        made = server.post("/v1/completions", **body, logit_bias={favoured: 100.0}, logit_bias_type="tokens")
        assert made["choices"][0]["text"] == favoured


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (asked(response_format={"type": "json_schema", "json_schema": {"schema": {"type": "wrong"}}}), "wrong"),
        (asked(response_format={"type": "yaml"}), "response_format"),
        (asked(tools=[TOOL], tool_choice={"type": "function", "function": {"name": "fly"}}), "fly"),
        (asked(grammar='root ::= "a" nothing'), "at 1:14"),
    ],
)
def test_what_cannot_be_honoured_fails_alone(server: Server, body: Any, says: str) -> None:
    refused = server.post(CHAT, **body)
    assert refused["status"] == 400
    assert says in refused["error"]["message"]
    (*_, last) = server.stream(CHAT, **body)
    assert says in last["error"]["message"]
    assert server.post(CHAT, **asked(max_tokens=1))["choices"]
