"""llama-cpp-python's server under logitree: its arguments and routes, with our errors as answers to the request."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any

from ..._core import LogitreeError
from ..._errors import EngineError
from .._llama_cpp_threads import library
from ._hook import hook_all


def main() -> None:
    """Runs `python -m llama_cpp.server` with every model hooked.

    It takes OpenAI's response format "json_schema" too, and answers with "reasoning_content" where a message has it;
    llama-cpp-python's own types of requests and answers have neither. A request that cannot be honoured is answered
    with status 400 and the error; in a stream, where the status is sent already, with a chunk that has "error".

    Raises:
        EngineError: llama-cpp-python or what its server needs is missing.
    """
    hook_all()
    llama_cpp = library()
    llama_cpp.ChatCompletionRequestResponseFormat = llama_cpp.ChatCompletion = dict[str, Any]
    try:
        server: Any = importlib.import_module("llama_cpp.server.__main__")
        app: Any = importlib.import_module("llama_cpp.server.app")
        errors: Any = importlib.import_module("llama_cpp.server.errors")
    except ImportError as missing:
        help = "pip install 'llama-cpp-python[server]'"
        raise EngineError(f"llama-cpp-python's server is not usable: {missing}", help=help) from missing
    app.get_event_publisher = telling(app.get_event_publisher)
    errors.RouteErrorHandler.error_message_wrapper = answering(errors.RouteErrorHandler.error_message_wrapper)
    server.main()


def telling(publisher: Callable[..., Any]) -> Callable[..., Any]:
    """`get_event_publisher` with an error as the last chunk in place of a stream that breaks off."""

    async def get_event_publisher(*args: Any, llama_call: Any, **named: Any) -> None:
        await publisher(*args, llama_call=functools.partial(_told, llama_call), **named)

    return get_event_publisher


def _told(llama_call: Callable[..., Any], llm: Any, **named: Any) -> Iterator[Any]:
    try:
        yield from llama_call(llm, **named)
    except (LogitreeError, TypeError, ValueError) as wrong:
        yield {"error": _answer(wrong)}


def answering(wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """`RouteErrorHandler.error_message_wrapper` with status 400 for what is wrong with a request."""

    def error_message_wrapper(self: Any, error: Exception, body: Any = None) -> tuple[int, Any]:
        if isinstance(error, LogitreeError):
            return 400, _answer(error)
        answer: tuple[int, Any] = wrapper(self, error, body)
        return answer

    return error_message_wrapper


def _answer(wrong: Exception) -> dict[str, Any]:
    return {"message": str(wrong), "type": "invalid_request_error", "param": None, "code": None}
