"""vLLM itself with our plug-in: its server over HTTP, drafts in its engine, and the program of the documents.

Each of the three starts vLLM once, which takes most of a minute.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import logitree as lt
import vllm_model
from servers import ServerProcess, free_port

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]
vllm_model.require()

import httpx  # noqa: E402

REPOSITORY = Path(__file__).resolve().parents[2]
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 3},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
COLOURS = {"red", "green", "blue"}


def is_person(text: str) -> bool:
    value = json.loads(text)
    return (
        list(value) == ["name", "age", "tags"]
        and isinstance(value["name"], str)
        and len(value["name"]) <= 12
        and 0 <= value["age"] <= 120
        and set(value["tags"]) <= COLOURS
    )


# -- the server


class Server(ServerProcess):
    """vLLM's server with our backend; made when it answers.

    `vllm serve` is the same, but the CPU wheel's command looks for a package of another name.
    """

    def __init__(self, log: Path) -> None:
        port = free_port()
        options = ["--dtype=bfloat16", "--max-model-len=1024", "--enforce-eager", "--max-num-seqs=8"]
        options += ["--structured-outputs-config.backend=logitree", "--served-model-name=m", f"--port={port}"]
        options += ["--host=127.0.0.1", "--enable-auto-tool-choice", "--tool-call-parser=hermes"]
        options += [f"--model={vllm_model.folder()}"]
        super().__init__(["vllm.entrypoints.openai.api_server", *options], port, "/health", log, 240)
        self.client = httpx.Client(base_url=self.url, timeout=120)

    def chat(self, **given: Any) -> httpx.Response:
        message = {"role": "user", "content": given.pop("prompt", "Describe a person.")}
        body = {"model": "m", "messages": [message], "max_tokens": 200, "temperature": 0, **given}
        return self.client.post("/v1/chat/completions", json=body)

    def answer(self, **given: Any) -> dict[str, Any]:
        response = self.chat(**given)
        assert response.status_code == 200, response.text
        choice: dict[str, Any] = response.json()["choices"][0]
        return choice

    def close(self) -> None:
        self.client.close()
        super().close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("server") / "log")
    yield made
    made.close()


def schema_format(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "person", "schema": schema, "strict": True}}


def test_a_response_format_is_obeyed_and_ends(server: Server) -> None:
    for temperature in (0, 1.5):
        choice = server.answer(response_format=schema_format(SCHEMA), temperature=temperature)
        assert choice["finish_reason"] == "stop"
        assert is_person(choice["message"]["content"])
    choice = server.answer(
        response_format={"type": "json_object"}, max_tokens=300, prompt="Give me a short JSON object."
    )
    if choice["finish_reason"] == "stop":  # a small model may write a long one
        assert isinstance(json.loads(choice["message"]["content"]), dict)
    assert choice["message"]["content"].startswith("{")


def test_structured_outputs_are_obeyed(server: Server) -> None:
    both = {
        "type": "both",
        "of": [{"type": "regex", "pattern": "[a-z]+"}, {"type": "choices", "texts": ["sun", "MOON"]}],
    }
    cases: list[tuple[dict[str, Any], str]] = [
        ({"regex": "[A-Z]{3}-[0-9]{4}"}, "[A-Z]{3}-[0-9]{4}"),
        ({"choice": ["oak", "elm", "ash tree"]}, "oak|elm|ash tree"),
        ({"grammar": 'root ::= "n" ("1" | "2" | "3")+ "."'}, r"n[123]+\."),
        ({"grammar": 'start: "<" /[xyz]{2}/ ">"'}, "<[xyz]{2}>"),
        ({"grammar": json.dumps(both)}, "sun"),
    ]
    for outputs, pattern in cases:
        choice = server.answer(structured_outputs=outputs, temperature=1, seed=3)
        text = choice["message"]["content"]
        if choice["finish_reason"] == "length":  # n[123]+ may be long
            assert outputs["grammar"].startswith("root") and re.fullmatch("n[123]+", text)
        else:
            assert re.fullmatch(pattern, text), text


def test_a_required_tool_is_called_as_its_schema_says(server: Server) -> None:
    tools = [
        {"type": "function", "function": {"name": name, "description": "d", "strict": True, "parameters": SCHEMA}}
        for name in ("add_person", "find_person")
    ]
    for choice in ("required", {"type": "function", "function": {"name": "find_person"}}):
        message = server.answer(tools=tools, tool_choice=choice, temperature=1, seed=5)["message"]
        called = [call["function"] for call in message["tool_calls"]]
        assert called
        for function in called:
            assert function["name"] in ("add_person", "find_person")
            assert is_person(function["arguments"])
        if choice != "required":
            assert {function["name"] for function in called} == {"find_person"}


def test_streaming_gives_the_same_text(server: Server) -> None:
    whole = server.answer(response_format=schema_format(SCHEMA))["message"]["content"]
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "Describe a person."}],
        "max_tokens": 200,
        "temperature": 0,
        "response_format": schema_format(SCHEMA),
        "stream": True,
    }
    with server.client.stream("POST", "/v1/chat/completions", json=body) as stream:
        chunks = [json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: {")]
    parts = [chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks]
    assert len(parts) > 5
    assert "".join(parts) == whole


def test_the_processor_takes_what_comes_in_vllm_xargs(server: Server) -> None:
    form = {
        "type": "sequence",
        "of": [{"type": "choices", "texts": ["yes", "no"]}, {"type": "regex", "pattern": "!{1,3}"}],
    }
    for temperature in (0, 1.5):
        choice = server.answer(vllm_xargs={"logitree": json.dumps(form)}, temperature=temperature)
        assert re.fullmatch("(yes|no)!{1,3}", choice["message"]["content"])
        assert choice["finish_reason"] == "stop"
    chain = {"constraint": form, "chain": "temperature;dist", "params": {"temperature": 3.0, "seed": 11}}
    texts = {server.answer(vllm_xargs={"logitree": json.dumps(chain)})["message"]["content"] for _ in range(2)}
    assert len(texts) == 1  # the chain's own seed decides, not vLLM's
    assert re.fullmatch("(yes|no)!{1,3}", texts.pop())


def test_what_is_wrong_is_status_400_with_our_message_and_its_place(server: Server) -> None:
    broken = {"type": "object", "properties": {"a": {"type": "integr"}}}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"response_format": schema_format(broken)}, r"integr.*#/properties/a/type"),
        ({"structured_outputs": {"regex": "a("}}, r"not closed.*1:2"),
        ({"structured_outputs": {"grammar": "root ::= x"}}, r'rule "x".*1:10'),
        ({"structured_outputs": {"choice": []}}, r"nothing to choose"),
        ({"vllm_xargs": {"logitree": '{"type": "regex", "pattern": "a("}'}}, r"not closed.*1:2"),
        ({"vllm_xargs": {"logitree": '{"type": "token", "token": "<|none|>"}'}}, r"none"),
    ]
    for given, message in cases:
        response = server.chat(**given)
        assert response.status_code == 400, response.text
        assert re.search(message, response.json()["error"]["message"]), response.text
    assert is_person(server.answer(response_format=schema_format(SCHEMA))["message"]["content"])


def test_wrong_and_right_requests_at_once(server: Server) -> None:
    """Sixteen requests of all kinds together: the wrong ones are refused, the others are right."""
    form = json.dumps({"type": "regex", "pattern": "[0-9]{6}"})
    given: list[dict[str, Any]] = [
        {"response_format": schema_format(SCHEMA)},
        {"structured_outputs": {"regex": "a("}},
        {"vllm_xargs": {"logitree": form}},
        {"max_tokens": 20},
    ]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda at: server.chat(temperature=1, seed=at, **given[at % 4]), range(16)))
    for at, answer in enumerate(answers):
        assert answer.status_code == (400 if at % 4 == 1 else 200), answer.text
        if at % 4 in (0, 2):
            text = answer.json()["choices"][0]["message"]["content"]
            assert is_person(text) if at % 4 == 0 else re.fullmatch("[0-9]{6}", text)


# -- drafts


def test_drafts_are_checked_and_rolled_back_in_vllms_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "0")  # the engine in this process, so that it can be watched
    from vllm import LLM, SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    from logitree.engines.vllm import LogitreeGrammar, register

    seen = {"proposed": 0, "valid": 0, "rolled back": 0}
    validate, rollback = LogitreeGrammar.validate_tokens, LogitreeGrammar.rollback

    def validated(self: Any, tokens: list[int]) -> list[int]:
        found = validate(self, tokens)
        seen["proposed"] += len(tokens)
        seen["valid"] += len(found)
        return found

    def rolled(self: Any, count: int) -> None:
        seen["rolled back"] += count
        rollback(self, count)

    monkeypatch.setattr(LogitreeGrammar, "validate_tokens", validated)
    monkeypatch.setattr(LogitreeGrammar, "rollback", rolled)
    register()
    llm = LLM(
        str(vllm_model.folder()),
        structured_outputs_config={"backend": "logitree"},
        speculative_config=dict(vllm_model.NGRAM),
        disable_log_stats=False,
        **vllm_model.OPTIONS,
    )
    example = json.dumps({"name": "Ada", "age": 36, "tags": ["red", "green"]})
    prompt = f"People: {example} {example} {example} The next one, of the same kind: "
    pattern = '[{]"name": "(Ada|Bob)", "age": [0-9]{2}[}]'
    # Each temperature alone: with both in a batch, vLLM's own rejection sampler for CPUs gives some rows token 0.
    for heat in (0.0, 1.0):
        shared: dict[str, Any] = {"max_tokens": 120, "temperature": heat, "seed": 1}
        params = [
            SamplingParams(structured_outputs=StructuredOutputsParams(**outputs), **shared)
            for outputs in ({"json": SCHEMA}, {"regex": pattern})
        ]
        results = llm.generate([prompt] * 3, [*params, SamplingParams(**shared)])
        assert [result.outputs[0].finish_reason for result in results[:2]] == ["stop", "stop"]
        assert is_person(results[0].outputs[0].text), results[0].outputs[0].text
        assert re.fullmatch(pattern, results[1].outputs[0].text), results[1].outputs[0].text
    assert seen["proposed"] > seen["valid"] > 0, seen  # some drafts are refused before the model sees them
    assert seen["rolled back"] > 0, seen
    counts = {metric.name: getattr(metric, "value", None) for metric in llm.get_metrics()}
    assert 0 < counts["vllm:spec_decode_num_accepted_tokens"] <= counts["vllm:spec_decode_num_draft_tokens"]
    with pytest.raises(Exception, match="structured_outputs="):
        llm.generate("x", SamplingParams(extra_args={"logitree": {"type": "regex", "pattern": "a"}}))
    llm.llm_engine.engine_core.shutdown()


# -- the documents


def test_two_workers_of_one_model_take_the_same_tokens(tmp_path: Path) -> None:
    """Each worker has its own constraints and chains: were they to differ, the workers would wait for each other."""
    support = str(REPOSITORY / "tests" / "support")
    done = subprocess.run(
        [sys.executable, "-m", "vllm_parallel", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=400,
        env={**os.environ, "VLLM_LOGGING_LEVEL": "ERROR", "PYTHONPATH": support},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    outputs = json.loads(done.stdout.splitlines()[-1])
    patterns = [r"20[0-9]{2}-0[1-9]-1[0-9]", r'{"x":-?[0-9]+}', r"(yes|no)!!", r"[1-6]{3}"] * 2
    assert all(map(re.fullmatch, patterns, [text for text, _ in outputs])), outputs
    assert {reason for _, reason in outputs} == {"stop"}
    assert outputs[:4] == outputs[4:]


def test_the_program_of_the_documents_prints_what_it_says(tmp_path: Path) -> None:
    page = REPOSITORY.joinpath("docs", "engines", "vllm.md").read_text("utf-8")
    found = re.search(r"^```py\n(from vllm.*?)^```\n\nPrints.*?^```text\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert found is not None
    (tmp_path / "model").symlink_to(vllm_model.folder())
    (tmp_path / "program.py").write_text(found[1], "utf-8")
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "VLLM_LOGGING_LEVEL": "ERROR"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    patterns = [
        r"> Is the sky blue\? '(yes|no)!!' \(stop\)",
        r"> A date: '20[0-9]{2}-0[1-9]-1[0-9]' \(stop\)",
        r"""> A point: '{[\\n ]*"x": ?3[\\n ]*}' \(stop\)""",
        r"> Dice: '[1-6]' \(stop\)",
    ]
    # Other processors may round to other tokens, so it is the form of the lines that counts.
    for lines in (done.stdout, found[2]):
        said = [line for line in lines.splitlines() if line.startswith("> ")]
        assert len(said) == len(patterns)
        assert all(map(re.fullmatch, patterns, said)), said


def test_the_version_that_the_page_names_is_one_that_was_tried() -> None:
    import vllm

    from logitree.engines.vllm import _plugin

    page = REPOSITORY.joinpath("docs", "engines", "vllm.md").read_text("utf-8")
    assert vllm.__version__.rpartition(".")[0] in _plugin.TRIED
    assert all(version in page for version in _plugin.TRIED)
    assert lt.__version__
