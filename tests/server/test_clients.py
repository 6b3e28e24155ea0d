"""Clients of OpenAI's API as their users use them: typed objects, tools, streams. Each is tested where it is installed
(`make test-server` installs them).

A client that works sends only what the server honours, since a field that means nothing to it is refused.
"""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from logitree import _arguments
from logitree.engines import Engine
from servers import serving

pytestmark = pytest.mark.filterwarnings("ignore")  # clients warn of their own affairs
PROMPT = "Invent a person."


class Person(BaseModel):
    """A person."""

    name: str = Field(max_length=12)
    age: int = Field(ge=0, le=120)
    drink: Literal["tea", "coffee"]


@pytest.fixture(scope="module")
def address(engine: Engine) -> Iterator[str]:
    """The base URL of a server of SmolLM2, which draws seeds 0, 1, ... for requests that have none."""
    with pytest.MonkeyPatch.context() as patch, serving(engine, places=4) as client:
        numbers = itertools.count()
        patch.setattr(_arguments, "secrets", SimpleNamespace(randbelow=lambda _: next(numbers)))
        yield f"{str(client.base_url).rstrip('/')}/v1"


def is_person(found: Any) -> bool:
    """Whether it is a person by the class, checked again."""
    return Person.model_validate(found.model_dump() if isinstance(found, BaseModel) else dict(found)) is not None


def test_langchain(address: str) -> None:
    openai = pytest.importorskip("langchain_openai")
    from langchain_core.tools import tool

    model = openai.ChatOpenAI(base_url=address, api_key="none", model="m", temperature=0.7, seed=3, max_tokens=80)
    assert is_person(model.with_structured_output(Person).invoke(PROMPT))
    assert is_person(model.with_structured_output(Person, method="function_calling").invoke(PROMPT))
    closing = openai.ChatOpenAI(
        base_url=address, api_key="none", model="m", max_tokens=40, extra_body={"on_limit": "close"}
    )
    found = closing.with_structured_output(Person, method="json_mode", include_raw=True).invoke(PROMPT)
    assert isinstance(json.loads(found["raw"].content), dict)  # the form is sure, the fields are not

    @tool
    def weather(city: Literal["Rome", "Paris"]) -> str:
        """The weather of a city."""
        return city

    said = model.bind_tools([weather], tool_choice="any").invoke("Is it raining in Paris?")
    assert said.tool_calls
    assert all(call["args"]["city"] in ("Rome", "Paris") for call in said.tool_calls)
    parts = list(model.stream("Say hello."))
    assert len(parts) > 1
    assert "".join(part.content for part in parts)
    whole = model.bind(logprobs=True).invoke("Say hello.")
    assert whole.response_metadata["logprobs"]["content"]


def test_instructor(address: str) -> None:
    instructor = pytest.importorskip("instructor")
    openai = pytest.importorskip("openai")
    plain = openai.OpenAI(base_url=address, api_key="none")
    ask = {"model": "m", "messages": [{"role": "user", "content": PROMPT}], "max_tokens": 120}
    for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA):
        client = instructor.from_openai(plain, mode=mode)
        assert is_person(client.chat.completions.create(response_model=Person, **ask))
    client = instructor.from_openai(plain, mode=instructor.Mode.JSON_SCHEMA)
    partial = list(client.chat.completions.create_partial(response_model=Person, **ask))
    assert is_person(partial[-1])


def test_pydantic_ai(address: str) -> None:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent, NativeOutput
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=address, api_key="none")
    for model in (OpenAIChatModel("m", provider=provider), OpenAIResponsesModel("m", provider=provider)):
        for output in (Person, NativeOutput(Person)):
            agent: Any = Agent(model, output_type=output, retries=3)
            assert is_person(agent.run_sync(PROMPT, model_settings={"max_tokens": 120}).output)
        said = Agent(model).run_sync("Say hello.", model_settings={"max_tokens": 10})
        assert said.output
        assert said.usage.output_tokens <= 10


def test_litellm(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it would ask the network for prices
    litellm = pytest.importorskip("litellm")
    ask = {"model": "openai/m", "api_base": address, "api_key": "none", "max_tokens": 120}
    messages = [{"role": "user", "content": PROMPT}]
    said = litellm.completion(messages=messages, response_format=Person, **ask)
    assert is_person(Person.model_validate_json(said.choices[0].message.content))
    parts = [
        part.choices[0].delta.content or ""
        for part in litellm.completion(messages=messages, stream=True, response_format=Person, seed=4, **ask)
    ]
    assert is_person(Person.model_validate_json("".join(parts)))
    tool = {"type": "function", "function": {"name": "make", "parameters": Person.model_json_schema()}}
    said = litellm.completion(messages=messages, tools=[tool], tool_choice="required", **ask)
    assert is_person(Person.model_validate_json(said.choices[0].message.tool_calls[0].function.arguments))


def test_dspy(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    dspy = pytest.importorskip("dspy")
    schema = {
        "type": "object",
        "properties": {"label": {"enum": ["good", "bad"]}},
        "required": ["label"],
        "additionalProperties": False,
    }
    # It sends the schema of a signature to models that it knows alone: a user gives it for others.
    form = {"type": "json_schema", "json_schema": {"name": "label", "schema": schema}}
    model = dspy.LM("openai/m", api_base=address, api_key="none", max_tokens=50, cache=False, response_format=form)

    class Label(dspy.Signature):  # type: ignore[name-defined,misc]
        """Label a sentence."""

        sentence: str = dspy.InputField()
        label: Literal["good", "bad"] = dspy.OutputField()

    with dspy.context(lm=model, adapter=dspy.JSONAdapter()):
        assert dspy.Predict(Label)(sentence="I like it.").label in ("good", "bad")


def test_llama_index(address: str) -> None:
    like = pytest.importorskip("llama_index.llms.openai_like")
    from llama_index.core.llms import ChatMessage

    model = like.OpenAILike(
        model="m", api_base=address, api_key="none", is_chat_model=True, max_tokens=12, context_window=512
    )
    assert model.chat([ChatMessage(role="user", content="Say hello.")]).message.content
    assert list(model.stream_chat([ChatMessage(role="user", content="Say hello.")]))[-1].message.content
    assert model.complete("Once upon a time").text


NODE = """
import OpenAI from "openai";
const client = new OpenAI({ baseURL: process.argv[2], apiKey: "none" });
const messages = [{ role: "user", content: "Invent a person." }];
const schema = JSON.parse(process.argv[3]);
const format = { type: "json_schema", json_schema: { name: "person", strict: true, schema } };
const whole = await client.chat.completions.create({ model: "m", messages, response_format: format, max_tokens: 120 });
const stream = client.chat.completions.stream({ model: "m", messages, response_format: format, max_tokens: 120 });
const streamed = await stream.finalChatCompletion();
const tools = [{ type: "function", function: { name: "make", parameters: schema } }];
const asked = { model: "m", messages, tools, tool_choice: "required", max_tokens: 200 };
const called = await client.chat.completions.create(asked);
const text = { format: { type: "json_schema", name: "person", schema } };
const response = await client.responses.create({ model: "m", input: "Invent a person.", text, max_output_tokens: 120 });
let wrong = "";
try {
  await client.chat.completions.create({ model: "m", messages: [] });
} catch (error) {
  wrong = `${error.status} ${error.param}`;
}
console.log(JSON.stringify([whole.choices[0].message.content, streamed.choices[0].message.content,
  called.choices[0].message.tool_calls[0].function.arguments, response.output_text, wrong]));
"""


def test_openai_for_node(address: str, tmp_path: Path) -> None:
    pytest.importorskip("instructor", reason="make test-server has it, and installs the package for Node")
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("Node is not installed")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    made = subprocess.run([npm, "install", "--silent", "openai@^6"], cwd=tmp_path, capture_output=True, timeout=240)
    if made.returncode:
        pytest.skip("the openai package for Node cannot be installed")
    (tmp_path / "ask.js").write_text(NODE)
    schema = {**Person.model_json_schema(), "additionalProperties": False}
    out = subprocess.run(
        [node, "ask.js", address, json.dumps(schema)], cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert out.returncode == 0, out.stderr
    *people, wrong = json.loads(out.stdout)
    assert len(people) == 4
    assert all(is_person(Person.model_validate_json(one)) for one in people)
    assert wrong == "400 messages"
