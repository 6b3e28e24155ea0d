"""llama-cpp-python's own calls under logitree, with the real package and the real model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logitree as lt
from logitree.engines.llama_cpp_python import hook, hook_all

llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
chat_format = pytest.importorskip("llama_cpp.llama_chat_format")

SCHEMA = {
    "type": "object",
    "properties": {"first_name": {"type": "string", "maxLength": 12}, "eye_colour": {"enum": ["brown", "blue"]}},
    "required": ["first_name", "eye_colour"],
    "additionalProperties": False,
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "maxLength": 12}},
                "required": ["city"],
                "additionalProperties": False,
            },
        },
    }
    for name in ("get_weather", "get_time")
]
ASKED = [{"role": "user", "content": "What is the weather in Paris?"}]
HERMES = """{%- if tools %}{{ '<|im_start|>system\\nTools: ' + (tools | tojson) + '<|im_end|>\\n' }}{% endif %}
{%- for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}
{%- if message.reasoning_content %}{{ '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}{% endif %}
{{- message.content or '' }}
{%- for call in message.tool_calls or [] %}{{ '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- (call.function.arguments | tojson) + '}\\n</tool_call>' }}{% endfor %}{{ '<|im_end|>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""


def loaded(path: Path, **options: Any) -> Any:
    options = {"n_ctx": 512, "n_batch": 64, "n_threads": 1, "seed": 1, "flash_attn": True, "verbose": False} | options
    return llama_cpp.Llama(str(path), **options)


@pytest.fixture(scope="module")
def shared(smollm2_gguf: Path) -> Any:
    return loaded(smollm2_gguf)


@pytest.fixture
def llm(shared: Any) -> Iterator[Any]:
    with hook(shared):
        yield shared


@pytest.fixture
def caller(smollm2_gguf: Path) -> Iterator[Any]:
    """The model with a chat template that writes tool calls."""
    made = loaded(smollm2_gguf)
    formatter = chat_format.Jinja2ChatFormatter(template=HERMES, eos_token="<|im_end|>", bos_token="<|im_start|>")
    made.metadata["tokenizer.chat_template"] = HERMES
    made._chat_handlers["chat_template.default"] = formatter.to_chat_handler()
    with hook(made):
        yield made


def text_of(completion: Any) -> str:
    (choice,) = completion["choices"]
    return str(choice["text"] if "text" in choice else choice["message"]["content"])


def joined(chunks: Any) -> tuple[dict[str, Any], str]:
    """The message of a stream, and why it ended."""
    message: dict[str, Any] = {}
    reason = ""
    for chunk in chunks:
        (choice,) = chunk["choices"]
        for key, value in choice["delta"].items():
            message[key] = value if key not in message else message[key] + value
        reason = choice["finish_reason"] or reason
    return message, reason


@pytest.mark.parametrize(
    "grammar",
    [
        lambda: llama_cpp.LlamaGrammar.from_string('root ::= " red" | " green"'),
        lambda: [" red", " green"],
        lambda: lt.Grammar.regex(" (red|green)"),
    ],
    ids=["LlamaGrammar", "list", "Grammar"],
)
def test_completions_take_grammars_and_constraints(llm: Any, grammar: Callable[[], Any]) -> None:
    given = grammar()
    for seed in range(4):
        made = llm.create_completion("The traffic light is", grammar=given, temperature=1.5, seed=seed)
        assert text_of(made) in (" red", " green")
        assert made["choices"][0]["finish_reason"] == "stop"
    assert text_of(llm("The traffic light is", grammar=given)) in (" red", " green")
    streamed = llm.create_completion("The traffic light is", grammar=given, stream=True)
    assert "".join(text_of(chunk) for chunk in streamed) in (" red", " green")


def test_skipping_forced_tokens_changes_no_token(llm: Any) -> None:
    grammar = lt.Grammar.json_schema(SCHEMA, whitespace="compact")
    prompt = llm.tokenize(b"A person as JSON: ")
    kind = type(llm)
    calls: list[int] = []

    def made(skips: bool, **options: Any) -> list[int]:
        tokens, original = [], kind.__mro__[1].eval

        def eval(tokens: Any) -> None:
            calls[-1] += 1
            original(llm, tokens)

        calls.append(0)
        llm.reset()
        if not skips:
            llm.eval = eval
        try:
            for token in llm.generate(prompt, grammar=grammar, **options):
                if token in (llm.token_eos(), 0):
                    break
                tokens.append(token)
        finally:
            vars(llm).pop("eval", None)
        return tokens

    for options in ({"temp": 0.0}, {"temp": 1.2, "repeat_penalty": 1.3}, {"temp": 0.9, "mirostat_mode": 2}):
        llm.set_seed(5)
        skipping = made(True, **options)
        llm.set_seed(5)
        assert skipping == made(False, **options)
        assert json.loads(llm.detokenize(skipping)).keys() == {"first_name", "eye_colour"}


def test_forced_tokens_are_evaluated_with_the_token_before_them(llm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = 0
    base = type(llm).__mro__[1]
    original = base.eval

    def eval(self: Any, tokens: Any) -> None:
        nonlocal passes
        passes += 1
        original(self, tokens)

    monkeypatch.setattr(base, "eval", eval)
    made = llm.create_completion(
        "A person as JSON: ", grammar=lt.Grammar.json_schema(SCHEMA, whitespace="compact"), max_tokens=60, temperature=0
    )
    assert json.loads(text_of(made))
    assert passes < made["usage"]["completion_tokens"] / 2


@pytest.mark.parametrize(
    "format",
    [
        {"type": "json_object", "schema": SCHEMA},
        {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": SCHEMA}},
    ],
    ids=["json_object", "json_schema"],
)
def test_response_formats(llm: Any, format: Any) -> None:
    messages = [{"role": "user", "content": "Describe Anna in JSON."}]
    options = {"response_format": format, "temperature": 0.9, "seed": 3, "max_tokens": 80}
    whole = llm.create_chat_completion(messages, **options)
    assert json.loads(text_of(whole)).keys() == {"first_name", "eye_colour"}
    message, reason = joined(llm.create_chat_completion(messages, **options, stream=True))
    assert (message["content"], reason) == (text_of(whole), "stop")


def test_any_object_and_plain_text(llm: Any) -> None:
    messages = [{"role": "user", "content": "JSON, please."}]
    made = llm.create_chat_completion(messages, response_format={"type": "json_object"}, max_tokens=40, temperature=0)
    assert text_of(made).startswith("{")
    plain = llm.create_chat_completion(messages, response_format={"type": "text"}, max_tokens=3)
    assert plain["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "get_time"}}])
def test_tool_calls_in_the_form_of_the_template(caller: Any, choice: Any) -> None:
    options = {"tools": TOOLS, "tool_choice": choice, "temperature": 0.8, "seed": 4, "max_tokens": 200}
    whole = caller.create_chat_completion(ASKED, **options)
    (made,) = whole["choices"]
    assert made["finish_reason"] == "tool_calls"
    calls = made["message"]["tool_calls"]
    for call in calls:
        assert call["function"]["name"] in ("get_weather", "get_time")
        assert json.loads(call["function"]["arguments"]).keys() == {"city"}
        assert call["id"]
    if isinstance(choice, dict):
        assert [call["function"]["name"] for call in calls] == ["get_time"]
    message, reason = joined(caller.create_chat_completion(ASKED, **options, stream=True))
    assert reason == "tool_calls"
    assert [call["function"] for call in message["tool_calls"]] == [call["function"] for call in calls]
    assert [call["index"] for call in message["tool_calls"]] == list(range(len(calls)))


def test_a_prompt_for_tools_and_text(caller: Any) -> None:
    made = caller.create_chat_completion(ASKED, tools=TOOLS, temperature=0, max_tokens=20)
    assert made["choices"][0]["message"]["content"]
    assert "tool_calls" not in made["choices"][0]["message"]
    stopped = caller.create_chat_completion(ASKED, tools=TOOLS, temperature=0, max_tokens=60, stop=[" the"])
    assert " the" not in stopped["choices"][0]["message"]["content"]
    message, reason = joined(
        caller.create_chat_completion(ASKED, tools=TOOLS, temperature=0, max_tokens=60, stop=[" the"], stream=True)
    )
    assert (message["content"], reason) == (stopped["choices"][0]["message"]["content"], "stop")


def test_former_functions(caller: Any) -> None:
    functions = [tool["function"] for tool in TOOLS]
    made = caller.create_chat_completion(ASKED, functions=functions, function_call={"name": "get_time"}, max_tokens=90)
    message = made["choices"][0]["message"]
    assert message["function_call"]["name"] == "get_time"
    assert json.loads(message["function_call"]["arguments"]).keys() == {"city"}


def test_a_template_without_calls(llm: Any) -> None:
    named = {"type": "function", "function": {"name": "get_time"}}
    made = llm.create_chat_completion(ASKED, tools=TOOLS, tool_choice=named, max_tokens=90)
    (call,) = made["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "get_time"
    assert json.loads(call["function"]["arguments"]).keys() == {"city"}
    text = llm.create_chat_completion(ASKED, tools=TOOLS, max_tokens=5)
    assert text["choices"][0]["message"]["content"]
    with pytest.raises(lt.ConstraintError, match="no form for tool calls"):
        llm.create_chat_completion(ASKED, tools=TOOLS, tool_choice="required")


def test_a_chat_format_of_llama_cpp_python_writes_its_own_calls(smollm2_gguf: Path) -> None:
    made, named = loaded(smollm2_gguf, chat_format="chatml-function-calling"), TOOLS[1]["function"]["name"]
    choice = {"type": "function", "function": {"name": named}}
    with hook(made):
        answer = made.create_chat_completion(ASKED, tools=TOOLS, tool_choice=choice, max_tokens=60)
        (call,) = answer["choices"][0]["message"]["tool_calls"]
        assert call["function"]["name"] == named
        assert json.loads(call["function"]["arguments"]).keys() == {"city"}
        format = {"type": "json_object", "schema": SCHEMA}
        assert json.loads(text_of(made.create_chat_completion(ASKED, response_format=format, max_tokens=60)))
        with pytest.raises(lt.ConstraintError, match="no response format with tools"):
            made.create_chat_completion(ASKED, tools=TOOLS, response_format=format)


def test_a_bias_and_processors_at_once(llm: Any) -> None:
    seen = []

    def processor(tokens: Any, scores: Any) -> Any:
        seen.append(len(tokens))
        return scores

    (red,), (green,) = llm.tokenize(b" red", add_bos=False), llm.tokenize(b" green", add_bos=False)
    for token, text in ((red, " red"), (green, " green")):
        made = llm.create_completion(
            "The light is",
            grammar=[" red", " green"],
            temperature=0,
            logit_bias={token: 100.0},
            logits_processor=llama_cpp.LogitsProcessorList([processor]),
        )
        assert text_of(made) == text
    assert seen


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_processors_that_leave_nothing_are_an_error(llm: Any, value: float) -> None:
    def processor(tokens: Any, scores: Any) -> Any:
        return np.full_like(scores, value)

    with pytest.raises(lt.LogitsError):
        llm.create_completion(
            "The light is", grammar=[" red", " green"], logits_processor=llama_cpp.LogitsProcessorList([processor])
        )
    assert text_of(llm.create_completion("The light is", grammar=[" red", " green"])) in (" red", " green")


def test_drafts_of_llama_cpp_python_change_no_token(smollm2_gguf: Path) -> None:
    speculative = pytest.importorskip("llama_cpp.llama_speculative")
    texts = []
    for draft in (None, speculative.LlamaPromptLookupDecoding(num_pred_tokens=4)):
        made = loaded(smollm2_gguf, draft_model=draft, logits_all=True)
        with hook(made):
            texts.append(
                text_of(
                    made.create_completion(
                        'JSON: {"first_name": "Bo", "eye_colour": "blue"} ',
                        grammar=SCHEMA,
                        temperature=0,
                        max_tokens=60,
                    )
                )
            )
    assert texts[0] == texts[1]
    assert json.loads(texts[0])


def test_an_abandoned_stream_leaves_the_next_call_alone(llm: Any) -> None:
    stream = llm.create_completion("A person: ", grammar=SCHEMA, stream=True, max_tokens=60)
    next(stream)
    del stream
    plain = llm.create_completion("Once upon a time", temperature=0, max_tokens=8)
    assert "{" not in text_of(plain)
    assert text_of(llm.create_completion("The light is", grammar=[" red"])) == " red"


def test_forced_text_that_fills_the_context(smollm2_gguf: Path) -> None:
    made, text = loaded(smollm2_gguf, n_ctx=64), "one two three " * 120
    with hook(made):
        completion = made.create_completion("Say it: ", grammar=lt.Grammar.literal(text), max_tokens=-1)
        assert completion["choices"][0]["finish_reason"] == "length"
        assert len(text_of(completion)) > 200
        assert text.startswith(text_of(completion))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"response_format": {"type": "yaml"}}, "response_format"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, "JSON Schema"),
        ({"response_format": {"type": "json_object", "schema": {"type": "wrong"}}}, "wrong"),
        ({"tools": TOOLS, "tool_choice": "always"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "fly"}}}, "fly"),
        ({"grammar": {"type": "object", "required": 3}}, "required"),
    ],
)
def test_what_cannot_be_honoured_is_an_error(llm: Any, options: Any, says: str) -> None:
    with pytest.raises(lt.LogitreeError, match=says):
        llm.create_chat_completion(ASKED, **options, max_tokens=3)
    with pytest.raises(lt.LogitreeError, match=says):
        list(llm.create_chat_completion(ASKED, **options, max_tokens=3, stream=True))


def test_a_grammar_that_does_not_parse_names_its_place(llm: Any) -> None:
    with pytest.raises(lt.ConstraintError, match="at 1:14"):
        llm.create_completion("x", grammar=llama_cpp.LlamaGrammar.from_string('root ::= "a" nothing'))
    with pytest.raises(TypeError, match="several constraints"):
        llm.create_completion("x", grammar='root ::= "a"')


def test_what_can_be_hooked(shared: Any) -> None:
    kind = type(shared)
    with pytest.raises(lt.EngineError, match="cannot hook a str"):
        hook("model.gguf")
    with pytest.raises(lt.ConstraintError, match="tokenization"):
        hook(shared, tokenization="best")  # type: ignore[arg-type]
    with hook(shared) as made:
        assert isinstance(shared, kind)
        with pytest.raises(lt.EngineError, match="hooked already"):
            hook(shared)
    assert type(shared) is kind
    made.unhook()
    assert type(shared) is kind
    assert "_logitree" not in vars(shared)


def test_all_models_that_are_loaded_later(smollm2_gguf: Path) -> None:
    before = llama_cpp.Llama
    with hook_all():
        made = loaded(smollm2_gguf)
        assert isinstance(made, before)
        assert text_of(made.create_completion("The light is", grammar=[" red"])) == " red"
        with pytest.raises(lt.EngineError, match="hooked already"):
            hook_all()
    assert llama_cpp.Llama is before
