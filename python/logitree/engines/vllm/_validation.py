"""Requests that are checked when they are submitted: what is wrong with one is an answer with status 400."""

from __future__ import annotations

import json
from collections import OrderedDict
from threading import Lock
from typing import Any

from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import check_json_nesting
from vllm.v1.structured_output.request import get_structured_output_key

from ... import _core
from .._requests import SECONDS, Compiler
from ._arguments import Arguments
from ._compiler import compiler_of

NAME = "logitree"
"""The backend's name, and the field of `extra_args`."""

_MODELS = 4
"""Compilers that are kept: one a model, of whatever a process serves."""

_compilers: OrderedDict[int, tuple[Any, Compiler]] = OrderedDict()
"""The id of a tokenizer -> the tokenizer, which keeps the id its own, and the compiler."""
_lock = Lock()


def front_compiler(model_config: Any, structured_outputs_config: Any, tokenizer: Any) -> Compiler:
    """The compiler of this process for a model, made at its first request."""
    with _lock:
        kept = _compilers.get(id(tokenizer))
        if kept is None:
            kept = _compilers[id(tokenizer)] = (
                tokenizer,
                compiler_of(tokenizer, model_config, structured_outputs_config),
            )
            while len(_compilers) > _MODELS:
                _compilers.popitem(last=False)
        return kept[1]


def validate_structured_outputs(params: Any, model_config: Any, structured_outputs_config: Any, tokenizer: Any) -> None:
    """Compiles the structured output of a request as the engine will, and names our backend in it.

    Args:
        params: the request's `SamplingParams`, with structured outputs.
        model_config, structured_outputs_config, tokenizer: vLLM's.

    Raises:
        VLLMValidationError: the request cannot be honoured; with our message, and its place.
    """
    if model_config.is_diffusion:
        raise VLLMValidationError("structured outputs need a model that writes token by token, not a diffusion model")
    if tokenizer is None:
        raise VLLMValidationError("structured outputs need a tokenizer: serve without --skip-tokenizer-init")
    outputs = params.structured_outputs
    if outputs._backend not in (None, NAME):
        raise VLLMValidationError(f"the request names the backend {outputs._backend!r}, and the server's is {NAME!r}")
    _check_options(outputs)
    check_json_nesting(outputs.json)
    check_json_nesting(outputs.structural_tag, structural_tag=True)
    if outputs.disable_any_whitespace:
        _compact(outputs)
    kind, spec = get_structured_output_key(outputs)
    compiler = front_compiler(model_config, structured_outputs_config, tokenizer)
    ends = {*compiler.vocabulary.end_tokens, *params.all_stop_token_ids}
    try:
        compiler.matcher(kind.name.lower(), spec, ends)
    except (_core.LogitreeError, ValueError) as wrong:
        raise VLLMValidationError(f"structured_outputs.{kind.name.lower()}: {wrong}") from wrong
    outputs._backend = NAME


def validate_extra_args(params: Any, vllm_config: Any, tokenizer: Any) -> None:
    """Makes what a request gives the logits processor, as a worker will.

    Args:
        params: the request's `SamplingParams`, with our field in `extra_args`.
        vllm_config, tokenizer: vLLM's.

    Raises:
        VLLMValidationError: the request cannot be honoured; with our message, and its place.
    """
    if tokenizer is None:
        raise VLLMValidationError(f"extra_args.{NAME} needs a tokenizer: serve without --skip-tokenizer-init")
    if params.structured_outputs is not None:
        raise VLLMValidationError(f"extra_args.{NAME} and structured_outputs are two constraints: give one")
    if vllm_config.speculative_config is not None and not vllm_config.use_v2_model_runner:
        raise VLLMValidationError(
            f"extra_args.{NAME}: vLLM's V1 runner has no logits processors with speculative decoding; give the "
            'constraint as structured_outputs={"grammar": form}, with --structured-outputs-config.backend logitree'
        )
    compiler = front_compiler(vllm_config.model_config, vllm_config.structured_outputs_config, tokenizer)
    try:
        Arguments.read(params.extra_args[NAME]).bind(compiler, (), SECONDS)
    except (_core.LogitreeError, ValueError) as wrong:
        raise VLLMValidationError(f"extra_args.{NAME}: {wrong}") from wrong


def _check_options(outputs: Any) -> None:
    """Refuses options that mean nothing here."""
    if outputs.json_object is False:
        raise VLLMValidationError("structured_outputs.json_object is false: leave it out, or give true")
    if outputs.whitespace_pattern is not None:
        raise VLLMValidationError(
            "structured_outputs.whitespace_pattern is not supported: white space is that of json.dumps, or none with "
            "disable_any_whitespace"
        )
    if outputs.disable_additional_properties:
        raise VLLMValidationError(
            "structured_outputs.disable_additional_properties is not supported: write additionalProperties: false "
            "into the schema"
        )


def _compact(outputs: Any) -> None:
    """Writes a request's own `disable_any_whitespace` into its constraint: the engine is given nothing else of it."""
    if outputs.json is not None or outputs.json_object:
        schema = {"type": "object"} if outputs.json is None else outputs.json
        if isinstance(schema, str):
            try:
                schema = json.loads(schema)
            except ValueError:
                return  # the compiler says what is wrong
        form = {"type": "json_schema", "schema": schema, "whitespace": "compact", "numbers": "plain"}
        outputs.grammar = json.dumps(form)
        outputs.json = outputs.json_object = None
    elif outputs.structural_tag is not None:
        raise VLLMValidationError(
            "structured_outputs.disable_any_whitespace is not supported with a structural tag, whose white space is "
            "that of its schemas"
        )
