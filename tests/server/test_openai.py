"""OpenAI's client against a server of SmolLM2: every answer is what the request says, streamed or whole."""

from __future__ import annotations

import concurrent.futures
import json
import re
from typing import Any

import pytest
from pydantic import BaseModel

openai = pytest.importorskip("openai", reason="openai is not installed")

COLOUR = {"enum": ["red", "green", "blue"]}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"enum": ["Paris", "Rome"]},
                "days": {"type": "integer", "minimum": 1, "maximum": 9},
            },
            "required": ["city", "days"],
            "additionalProperties": False,
        },
    },
}
CLOCK = {"type": "function", "function": {"name": "clock", "parameters": {"type": "object", "maxProperties": 0}}}


@pytest.fixture(scope="module")
def api(client: Any) -> Any:
    return openai.OpenAI(base_url=f"{client.base_url}/v1", api_key="none", max_retries=0)


def said(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def schema(of: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": of}}


def is_person(text: str) -> bool:
    value = json.loads(text)
    return set(value) == {"name", "age"} and len(value["name"]) <= 8 and 0 <= value["age"] <= 99


def test_a_schema_is_obeyed_whole_and_streamed(api: Any) -> None:
    asked = {"model": "m", "messages": said("A person?"), "response_format": schema(PERSON), "seed": 3}
    whole = api.chat.completions.create(**asked)
    (choice,) = whole.choices
    assert is_person(choice.message.content)
    assert choice.finish_reason == "stop"
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    chunks = list(api.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == choice.message.content
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert len({chunk.id for chunk in chunks}) == 1


def test_the_client_s_own_parsing_gives_typed_objects(api: Any) -> None:
    class Point(BaseModel):
        x: int
        colour: str

    made = api.chat.completions.parse(
        model="m",
        messages=said("A point?"),
        response_format=Point,
        max_tokens=400,
        seed=1,
        extra_body={"on_limit": "close"},
    )
    assert isinstance(made.choices[0].message.parsed, Point)


def test_any_constraint_is_a_response_format(api: Any) -> None:
    forms = [
        ({"type": "regex", "pattern": "20[0-9]{2}-1[0-2]"}, "20[0-9]{2}-1[0-2]"),
        ({"type": "choices", "texts": ["red", "blue"]}, "red|blue"),
        ({"type": "json_schema", "schema": COLOUR}, '"(red|green|blue)"'),
        ({"type": "gbnf", "text": 'root ::= "a" [0-9] "b"'}, "a[0-9]b"),
    ]
    for form, pattern in forms:
        made = api.chat.completions.create(model="m", messages=said("Go."), response_format=form, seed=1)
        assert re.fullmatch(pattern, made.choices[0].message.content), form
    for extra, pattern in (
        ({"grammar": 'root ::= "yes" | "no"'}, "yes|no"),
        ({"json_schema": COLOUR}, '"(red|green|blue)"'),
        ({"structured_outputs": {"regex": "[ab]{3}"}}, "[ab]{3}"),
        ({"structured_outputs": {"choice": ["x", "y"]}}, "x|y"),
        ({"structured_outputs": {"json": COLOUR}}, '"(red|green|blue)"'),
    ):
        made = api.chat.completions.create(model="m", messages=said("Go."), extra_body=extra, seed=1)
        assert re.fullmatch(pattern, made.choices[0].message.content), extra


@pytest.mark.parametrize("stream", [False, True])
def test_tools_are_called_though_the_template_knows_none(api: Any, stream: bool) -> None:
    named = {"type": "function", "function": {"name": "clock"}}
    for choice, names in (("required", {"weather", "clock"}), (named, {"clock"})):
        asked = {"messages": said("How is Paris?"), "tools": [WEATHER, CLOCK], "tool_choice": choice}
        made = api.chat.completions.create(
            model="m", **asked, parallel_tool_calls=False, seed=2, max_tokens=120, stream=stream
        )
        if stream:
            parts = list(made)
            calls = [call for part in parts for call in part.choices[0].delta.tool_calls or ()]
            reason = parts[-1].choices[0].finish_reason
        else:
            calls, reason = made.choices[0].message.tool_calls, made.choices[0].finish_reason
        assert reason == "tool_calls"
        (call,) = calls
        assert call.id
        assert call.function.name in names
        arguments = json.loads(call.function.arguments)
        if call.function.name == "weather":
            assert arguments["city"] in ("Paris", "Rome")
            assert 1 <= arguments["days"] <= 9
        else:
            assert arguments == {}


def test_a_conversation_with_calls_and_results_continues(api: Any) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
    messages = [
        {"role": "system", "content": "Be short."},
        *said("What time is it?"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "It is noon."},
    ]
    for choice in ("auto", "none"):
        made = api.chat.completions.create(
            model="m", messages=messages, tools=[CLOCK], tool_choice=choice, max_tokens=12, seed=1
        )
        assert made.choices[0].message.content or made.choices[0].message.tool_calls


def test_log_probabilities_before_and_after_the_filters(api: Any) -> None:
    made = api.chat.completions.create(
        model="m",
        messages=said("A colour?"),
        response_format=schema(COLOUR),
        logprobs=True,
        top_logprobs=3,
        temperature=0.7,
        seed=1,
    )
    entries = made.choices[0].logprobs.content
    assert "".join(entry.token for entry in entries).startswith('"')
    for entry in entries:
        assert bytes(entry.bytes).decode() == entry.token
        assert entry.logprob <= 0
        assert len(entry.top_logprobs) == 3
        assert entry.final_logprob >= entry.logprob - 1e-6  # what is forbidden leaves more to the others


def test_completions_of_texts_and_tokens(api: Any, client: Any) -> None:
    tokens = client.post("/tokenize", json={"content": "A digit: "}).json()["tokens"]
    made = api.completions.create(
        model="m",
        prompt=["A digit: ", "B digit: "],
        n=2,
        seed=5,
        logprobs=2,
        extra_body={"structured_outputs": {"regex": "[0-9]"}},
    )
    assert [choice.index for choice in made.choices] == [0, 1, 2, 3]
    assert all(re.fullmatch("[0-9]", choice.text) for choice in made.choices)
    assert len(made.choices[0].logprobs.top_logprobs[0]) == 2
    again = api.completions.create(
        model="m", prompt=tokens, seed=5, echo=True, extra_body={"structured_outputs": {"regex": "[0-9]"}}
    )
    assert again.choices[0].text == "A digit: " + made.choices[0].text
    stopped = api.completions.create(model="m", prompt="1, 2, 3, 4,", stop=["6"], max_tokens=30, temperature=0)
    assert stopped.choices[0].text == " 5, "
    assert stopped.choices[0].finish_reason == "stop"
    assert len(api.completions.create(model="m", prompt="Once").choices[0].text.split()) <= 16


def test_a_seed_gives_the_same_tokens_whatever_else_runs(api: Any) -> None:
    def ask(number: int) -> str:
        made = api.chat.completions.create(
            model="m", messages=said(f"Tell me of {number}."), seed=number, max_tokens=10 + number, temperature=1.2
        )
        return str(made.choices[0].message.content)

    alone = [ask(number) for number in range(6)]
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        together = list(pool.map(ask, [*range(6), *range(6)]))
    assert together == alone * 2


def test_every_stream_obeys_its_own_schema(api: Any) -> None:
    def ask(number: int) -> tuple[int, str]:
        of = {"type": "array", "items": {"const": number}, "minItems": 1, "maxItems": 6}
        stream = api.chat.completions.create(
            model="m", messages=said("List it."), response_format=schema(of), seed=number, stream=True, max_tokens=60
        )
        return number, "".join(chunk.choices[0].delta.content or "" for chunk in stream)

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        for number, text in pool.map(ask, range(100, 124)):
            assert set(json.loads(text)) == {number}


def test_prompts_that_begin_alike_are_read_once(api: Any) -> None:
    long = "Here is a list of many words: " + " ".join(f"word{n}" for n in range(40))
    used = [
        api.chat.completions.create(model="m", messages=said(f"{long}. {end}"), max_tokens=2).usage
        for end in ("First?", "Second?")
    ]
    assert used[1].prompt_tokens_details.cached_tokens > 100
    several = api.chat.completions.create(model="m", messages=said(f"{long} once more"), n=3, max_tokens=4, seed=1)
    assert len(several.choices) == 3
    assert several.usage.prompt_tokens < 400


def test_responses_whole_and_streamed(api: Any) -> None:
    asked = {
        "model": "m",
        "input": "Invent a person.",
        "instructions": "Be short.",
        "text": {"format": {"type": "json_schema", "name": "person", "schema": PERSON, "strict": True}},
        "extra_body": {"seed": 3},
    }
    whole = api.responses.create(**asked)
    assert is_person(whole.output_text)
    assert whole.status == "completed"
    assert whole.usage.total_tokens == whole.usage.input_tokens + whole.usage.output_tokens
    events = list(api.responses.create(**asked, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type for event in events]
    assert kinds[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert kinds[-4:] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == whole.output_text
    assert events[-1].response.output_text == whole.output_text
    cut = api.responses.create(model="m", input="Tell me a story.", max_output_tokens=5)
    assert (cut.status, cut.incomplete_details.reason) == ("incomplete", "max_output_tokens")


def test_responses_with_tools_and_their_results(api: Any) -> None:
    tool = {"type": "function", "strict": True, **WEATHER["function"]}
    asked = {"model": "m", "tools": [tool], "parallel_tool_calls": False, "extra_body": {"seed": 2}}
    made = api.responses.create(**asked, input="How is Paris?", tool_choice="required")
    (call,) = made.output
    assert call.type == "function_call"
    assert json.loads(call.arguments)["city"] in ("Paris", "Rome")
    events = list(
        api.responses.create(
            **asked, input="How is Rome?", tool_choice={"type": "function", "name": "weather"}, stream=True
        )
    )
    done = [event for event in events if event.type == "response.function_call_arguments.done"]
    assert [event.name for event in done] == ["weather"]
    history = [
        {"role": "user", "content": [{"type": "input_text", "text": "How is Paris?"}]},
        {"type": "reasoning", "id": "r", "summary": []},
        call.model_dump(),
        {"type": "function_call_output", "call_id": call.call_id, "output": "Sunny."},
    ]
    again = api.responses.create(**asked, input=history, tool_choice="none", max_output_tokens=8)
    assert again.output_text
    for wrong, param in (
        ({"previous_response_id": "x"}, "previous_response_id"),
        ({"input": 5}, "input"),
        ({"input": [{"type": "image"}]}, "input"),
        ({"tools": [{"type": "web_search"}]}, "tools"),
    ):
        with pytest.raises(openai.BadRequestError) as caught:
            api.responses.create(**{"model": "m", "input": "x", **wrong})
        assert caught.value.param == param


def test_models_are_listed(api: Any) -> None:
    assert [model.id for model in api.models.list()] == ["m"]
    assert api.models.retrieve("m").id == "m"
    with pytest.raises(openai.NotFoundError):
        api.models.retrieve("x")


def test_errors_are_the_client_s_own(api: Any) -> None:
    with pytest.raises(openai.BadRequestError) as wrong:
        api.chat.completions.create(model="m", messages=said("x"), response_format=schema({"type": "integr"}))
    assert "integr" in wrong.value.message
    assert wrong.value.param == "response_format"
    with pytest.raises(openai.NotFoundError, match="there is no model 'other'"):
        api.chat.completions.create(model="other", messages=said("x"))


def test_a_prediction_saves_passes_and_changes_nothing(
    client: Any, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As OpenAI's predicted outputs; what passes cost here is left out, so that every proposal is tried."""
    monkeypatch.setattr(engine, "pass_costs", None)
    asked = {"messages": [{"role": "user", "content": "Count from 1 to 20."}], "max_tokens": 60, "temperature": 0}
    plain = client.post("/v1/chat/completions", json=asked).json()
    text = plain["choices"][0]["message"]["content"]
    assert plain["usage"]["completion_tokens_details"]["accepted_prediction_tokens"] == 0
    for content in (text, [{"type": "text", "text": text}], f"Something else. {text[10:]}"):
        for sampled in ({}, {"temperature": 0.8, "seed": 3}):
            before = client.post("/v1/chat/completions", json={**asked, **sampled}).json()
            given = {**asked, **sampled, "prediction": {"type": "content", "content": content}}
            made = client.post("/v1/chat/completions", json=given).json()
            assert made["choices"][0]["message"] == before["choices"][0]["message"]
            details = made["usage"]["completion_tokens_details"]
            assert details["passes_saved"] >= details["accepted_prediction_tokens"]
            if not sampled:
                assert details["accepted_prediction_tokens"] > 20
    both = client.post(
        "/v1/chat/completions", json={**asked, "n": 2, "prediction": {"type": "content", "content": text}}
    ).json()
    assert [choice["message"]["content"] for choice in both["choices"]] == [text, text]
    for wrong in ("text", {"type": "image"}, {"content": 3}, {"type": "content"}):
        answer = client.post("/v1/chat/completions", json={**asked, "prediction": wrong})
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == "prediction"
    image = {"type": "content", "content": [{"type": "image_url", "image_url": {}}]}
    assert client.post("/v1/chat/completions", json={**asked, "prediction": image}).status_code == 400
