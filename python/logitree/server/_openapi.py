"""The OpenAPI document: what each path takes and gives. `tests/server/test_openapi.py` holds the server to it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from .. import _core
from .._params import SamplingParams
from ._fields import IGNORED, SAMPLING
from ._limits import Limits

Schema = dict[str, Any]


def _texts(most: int) -> Schema:
    """A text, or some."""
    text = {"type": "string", "minLength": 1}
    return {"anyOf": [{"type": "string"}, {"type": "array", "items": text, "maxItems": most}]}


def _whole(low: int, high: int, about: str) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high, "description": about}


def _list(items: Schema, most: int | None = None, about: str = "") -> Schema:
    made: Schema = {"type": "array", "items": items}
    if most is not None:
        made["maxItems"] = most
    return made | ({"description": about} if about else {})


def _object(properties: Mapping[str, Schema], required: tuple[str, ...] = (), *, closed: bool = True) -> Schema:
    made: Schema = {"type": "object", "properties": dict(properties)}
    if required:
        made["required"] = list(required)
    return made | ({"additionalProperties": False} if closed else {})


_ANY: Schema = {"type": "object"}
_BOOLEAN: Schema = {"type": "boolean"}
_STRING: Schema = {"type": "string"}
_TOKENS: Schema = {"type": "array", "items": {"type": "integer", "minimum": 0}}


def _sampling() -> dict[str, Schema]:
    """The parameters of samplers: numbers and texts by llama.cpp's names."""
    kinds = {"int": "integer", "float": "number", "str": "string", "bool": "boolean"}
    made: dict[str, Schema] = {}
    for name in SAMPLING:
        annotation = SamplingParams.__annotations__[name]
        kind = kinds.get(str(getattr(annotation, "__forward_arg__", annotation)))
        made[name] = {"type": kind} if kind else {}
    made["logit_bias"] = {"type": "object", "additionalProperties": {"type": "number"}}
    return made


def _options(limits: Limits) -> dict[str, Schema]:
    """What every generation takes."""
    return {
        "model": _STRING,
        "max_tokens": _whole(1, 1 << 30, "The most tokens of an output."),
        "seed": _whole(-1, 2**32 - 1, "The same seed gives the same tokens; -1: drawn."),
        "stop": _texts(limits.stops),
        "stream": _BOOLEAN,
        "tokenization": {"enum": ["auto", "any", "canonical", "fast_forward"]},
        "on_limit": {"enum": ["keep", "close"], "description": "close: end with the shortest legal ending."},
        "prediction": {
            "type": "object",
            "description": 'A text that the output may repeat: {"type": "content", "content": ...}.',
        },
        "response_format": {"description": "OpenAI's formats, or the JSON form of any constraint (docs/c.md)."},
        "grammar": {"type": "string", "description": "GBNF."},
        "json_schema": {"description": "A JSON Schema."},
        "structured_outputs": {"type": "object", "description": "vLLM's field."},
        **{name: {} for name in sorted(IGNORED)},
        **_sampling(),
    }


def _bodies(limits: Limits) -> dict[str, tuple[str, Schema]]:
    """What each path is, and its request."""
    options = _options(limits)
    message = _object({"role": _STRING, "content": {}}, ("role",), closed=False)
    messages = _list(message, limits.messages)
    several = {
        "n": _whole(1, limits.answers, "Answers to each prompt."),
        "stream_options": _object({"include_usage": _BOOLEAN}, closed=False),
        "best_of": _whole(1, limits.answers, "Of so many answers the n best are given. Of a chat: beams."),
        "use_beam_search": _BOOLEAN,
        "length_penalty": {"type": "number", "description": "Beams: log-probability / tokens ** length_penalty."},
    }
    tools = {
        "tools": _list(_ANY, limits.tools),
        "tool_choice": {"description": '"auto", "required", "none", or a function.'},
        "parallel_tool_calls": _BOOLEAN,
        "reasoning_budget": _whole(0, 1 << 30, "The most tokens of reasoning."),
        "reasoning_effort": {"enum": ["none"]},
    }
    top = _whole(0, limits.logprobs, "Tokens beside each one.")
    traced = {name: schema for name, schema in options.items() if name != "on_limit"}
    traced |= {"messages": messages, "prompt": {}, "tokens": _TOKENS}
    allowed = {name: schema for name, schema in traced.items() if name != "stream"}
    chat = _object(
        {
            **options,
            **several,
            **tools,
            "messages": messages,
            "max_completion_tokens": options["max_tokens"],
            "logprobs": _BOOLEAN,
            "top_logprobs": top,
        },
        ("messages",),
    )
    own = {"n_probs": top, "post_sampling_probs": _BOOLEAN, "return_tokens": _BOOLEAN, "response_fields": _texts(64)}
    llama = _object({**options, **own, "prompt": {}}, ("prompt",), closed=False)
    return {
        "/v1/chat/completions": ("A chat completion", chat),
        "/chat/completions": ("The same", chat),
        "/v1/responses": (
            "A response",
            _object({"input": {}, "max_output_tokens": options["max_tokens"]}, closed=False),
        ),
        "/v1/completions": (
            "Completions of texts or tokens",
            _object(
                {
                    **options,
                    **several,
                    "prompt": {},
                    "best_of": _whole(1, limits.answers, "Answers that are tried."),
                    "echo": _BOOLEAN,
                    "suffix": _STRING,
                    "logprobs": top,
                },
                ("prompt",),
            ),
        ),
        "/completion": ("llama.cpp's completion", llama),
        "/completions": ("The same", llama),
        "/apply-template": ("The prompt that messages are", _object({"messages": messages}, ("messages",))),
        "/v1/classify": (
            "The label of each text",
            _object(
                {
                    "input": _texts(limits.prompts),
                    "labels": _texts(limits.labels),
                    "instructions": _STRING,
                    "model": _STRING,
                },
                ("input", "labels"),
            ),
        ),
        "/v1/trace": ("The trace of one output", _object(traced)),
        "/v1/allowed": (
            "The tokens that may come next, as a node of their tree",
            _object({**allowed, "prefix": {"type": "string", "pattern": "^([0-9a-f]{2})*$"}}),
        ),
        "/v1/lens": (
            "What each layer of the model says comes next",
            _object(
                {
                    "model": _STRING,
                    "messages": messages,
                    "prompt": {},
                    "tokens": _TOKENS,
                    "top": _whole(1, max(1, limits.logprobs), "Tokens of each layer."),
                }
            ),
        ),
        "/tokenize": (
            "The tokens of a text",
            _object(
                {"content": _STRING, "add_special": _BOOLEAN, "with_pieces": _BOOLEAN, "parse_special": _BOOLEAN},
                ("content",),
            ),
        ),
        "/detokenize": ("The text of tokens", _object({"tokens": _TOKENS}, ("tokens",))),
    }


_GETS = {
    "/v1/models": "The model, in a list",
    "/models": "The same",
    "/props": "llama.cpp's properties of the server",
    "/health": "That the server runs",
    "/ready": "That the server takes requests",
}
_STREAMED = (
    "/v1/chat/completions",
    "/chat/completions",
    "/v1/responses",
    "/v1/completions",
    "/completion",
    "/completions",
    "/v1/trace",
)


@cache
def document(limits: Limits) -> Schema:
    """The OpenAPI document of a server with these limits."""
    problem = _object(
        {
            "message": _STRING,
            "type": _STRING,
            "param": {"type": ["string", "null"]},
            "code": {"type": ["string", "null"]},
            "place": _STRING,
            "help": _STRING,
        },
        ("message", "type", "param", "code"),
    )
    refused = {
        "description": "Refused, or it failed",
        "content": {"application/json": {"schema": _object({"error": problem}, ("error",))}},
    }
    whole: dict[str, Schema] = {"application/json": {"schema": _ANY}}
    listed: dict[str, Schema] = {"application/json": {"schema": {"type": ["object", "array"]}}}
    answered = {"description": "The answer", "content": whole}
    paths: dict[str, Any] = {}
    for path, (about, body) in _bodies(limits).items():
        content = (listed if path.startswith("/completion") else whole) | (
            {"text/event-stream": {"schema": _STRING}} if path in _STREAMED else {}
        )
        statuses = {"200": {**answered, "content": content}, **{str(status): refused for status in _REFUSALS}}
        asked = {"required": True, "content": {"application/json": {"schema": body}}}
        paths[path] = {"post": {"summary": about, "requestBody": asked, "responses": statuses}}
    for path, about in _GETS.items():
        paths[path] = {"get": {"summary": about, "responses": {"200": answered, "401": refused, "503": refused}}}
    paths["/v1/models/{name}"] = {
        "get": {
            "summary": "The model",
            "parameters": [{"name": "name", "in": "path", "required": True, "schema": _STRING}],
            "responses": {"200": answered, "401": refused, "404": refused},
        }
    }
    text = {"description": "Prometheus's text", "content": {"text/plain": {"schema": _STRING}}}
    paths["/metrics"] = {"get": {"summary": "Metrics", "responses": {"200": text, "401": refused}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "logitree", "version": _core.__version__},
        "paths": paths,
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"key": []}],
    }


_REFUSALS = (400, 401, 404, 408, 413, 429, 503, 504)
