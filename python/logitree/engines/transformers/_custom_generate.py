"""logitree's own loop as the `custom_generate` of transformers: forced tokens need no forward passes there."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ... import _core, samplers
from ..._errors import error
from ..._events import Token
from ..._generate import generate
from ..._generation import Generation
from ..._spelling import Tokenization
from ._engine import Transformers
from ._forward import import_torch

_ALL = 2**31 - 1
"""Tokens that a penalty looks at: all, the prompt's too."""

_SAMPLERS: Mapping[str, Callable[[Any], _core.Sampler]] = {
    "RepetitionPenaltyLogitsProcessor": lambda one: samplers.penalties(_ALL, one.penalty),
    "NoRepeatNGramLogitsProcessor": lambda one: samplers.no_repeat_ngram(one.ngram_size),
    "TemperatureLogitsWarper": lambda one: samplers.temp(one.temperature),
    "TopHLogitsWarper": lambda one: samplers.hf_top_h(one.top_h),
    "TopKLogitsWarper": lambda one: samplers.hf_top_k(one.top_k),
    "TopPLogitsWarper": lambda one: samplers.hf_top_p(one.top_p, one.min_tokens_to_keep),
    "MinPLogitsWarper": lambda one: samplers.min_p(one.min_p, one.min_tokens_to_keep),
    "TypicalLogitsWarper": lambda one: samplers.hf_typ_p(one.mass, one.min_tokens_to_keep),
    "EpsilonLogitsWarper": lambda one: samplers.epsilon_cutoff(one.epsilon, one.min_tokens_to_keep),
    "EtaLogitsWarper": lambda one: samplers.eta_cutoff(float(one.epsilon), one.min_tokens_to_keep),
}
"""Samplers that do what a processor of transformers does, by its class."""

_IDLE = ("LogitNormalization",)
"""Processors that change no token's chance."""
_OUTPUTS = ("output_scores", "output_logits", "output_attentions", "output_hidden_states")


def custom_generate(
    constraint: Any,
    tokenizer: Any,
    *,
    tokenization: Tokenization = "auto",
    streamer: Any = None,
) -> Callable[..., Any]:
    """What `model.generate` takes as `custom_generate`: its loop is logitree's, so that forced tokens need no passes.

    ```python
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    output = model.generate(**inputs, max_new_tokens=60, custom_generate=custom_generate(schema, tokenizer))
    ```

    The samplers are those of the generation's settings, in transformers' order. They draw with a seed that torch draws:
    `torch.manual_seed` reproduces an output, but not the tokens that transformers' own loop would draw. A row ends
    where its constraint is complete, without an end token; the vocabulary's end tokens end it too.

    Args:
        constraint: anything that `logitree.generate` takes; a list of constraints has one for each row.
        tokenizer: the model's.
        tokenization: which tokens spell constrained text, as of `logitree.generate`.
        streamer: takes the tokens of a single row as they come. `generate` hands its own `streamer=` to no such loop.

    Raises:
        ConstraintError: from `generate`: the constraint cannot be honoured; or settings, processors or stopping
            criteria that only transformers' own loops have.
        EngineError: from `generate`: no such model, a full context.
        LogitsError: from `generate`: NaN among the logits.
        TokenError: from `generate`: a token of a prompt is outside the vocabulary.
    """
    made_for: list[tuple[Transformers, _core.Vocabulary]] = []

    def loop(
        model: Any,
        input_ids: Any,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        **model_kwargs: Any,
    ) -> Any:
        mask = model_kwargs.pop("attention_mask", None)
        held = import_torch().ones_like(input_ids) if mask is None else (mask != 0).int()
        _check(generation_config, model_kwargs, held)
        if not made_for or made_for[0][0].model is not model:
            engine = Transformers(model, tokenizer)
            made_for[:] = [(engine, engine.vocabulary)]
        ((engine, vocabulary),) = made_for
        engine.vocabulary = _ending(vocabulary, generation_config._eos_token_tensor)
        rows = [row[places != 0].tolist() for row, places in zip(input_ids, held, strict=True)]
        limits = _limits(stopping_criteria, input_ids.shape[1])
        chains = _chains(logits_processor, generation_config.do_sample, held.argmax(dim=1).tolist())
        made = generate(engine, rows, constraint, chain=chains, tokenization=tokenization, **limits)
        if streamer is not None:
            _stream(made, input_ids, streamer)
        return _output([one.tokens for one in made], input_ids, generation_config)

    return loop


def _refused(what: str) -> Exception:
    help = "leave it out, or use transformers' own loop with a ConstraintLogitsProcessor"
    return error(_core.ConstraintError, what, help=help)


def _check(settings: Any, inputs: Mapping[str, Any], held: Any) -> None:
    """A ConstraintError for settings and inputs that this loop does not know. `held`: int [R, T], 0 for padding."""
    if (settings.num_beams or 1) > 1:
        raise error(_core.ConstraintError, f"num_beams is {settings.num_beams}", help="use logitree.beam_search")
    for name in _OUTPUTS:
        if getattr(settings, name, False):
            raise _refused(f"{name}=True")
    torch = import_torch()
    for name, value in inputs.items():
        if isinstance(value, torch.Tensor) and not _follows(name, value, held):
            raise _refused(f"the model's input {name}")
        if callable(held := getattr(value, "get_seq_length", None)) and held():
            raise _refused(f"{name} with {held()} tokens")


def _follows(name: str, value: Any, held: Any) -> bool:
    """Whether an input of the model is what follows from the tokens."""
    if name == "token_type_ids":
        return not value.any()
    if name == "position_ids":
        return value.shape == held.shape and bool((value == held.cumsum(-1) - 1)[held != 0].all())
    return False


def _ending(vocabulary: _core.Vocabulary, ends: Any) -> _core.Vocabulary:
    """The vocabulary, with the end tokens of `generate` where it does not know them."""
    wanted = [] if ends is None else ends.flatten().tolist()
    return vocabulary if set(wanted) <= set(vocabulary.end_tokens) else vocabulary.replace(end_tokens=sorted(wanted))


def _chains(processors: Any, is_sampled: bool, padding: list[int]) -> _core.Chain | list[_core.Chain]:
    """The samplers that the processors are, with seeds that torch draws. `padding`: tokens before each prompt."""
    made = []
    for one in processors:
        name = type(one).__name__
        ignored = getattr(one, "prompt_ignore_length", None)
        if ignored is not None and (ignored if isinstance(ignored, int) else ignored.tolist()) not in (0, padding):
            raise _refused("a repetition penalty that ignores a part of the prompt")
        if name in _SAMPLERS:
            made.append(_SAMPLERS[name](one))
        elif name not in _IDLE:
            raise _refused(f"the logits processor {name}")
    if not is_sampled:
        return _core.Chain([*made, samplers.greedy()])
    seeds = import_torch().randint(2**32, (len(padding),)).tolist()
    return [_core.Chain([*made, samplers.dist(seed)]) for seed in seeds]


def _limits(criteria: Any, length: int) -> dict[str, Any]:
    """What of `generate` the stopping criteria are, for prompts padded to so many tokens."""
    limits: dict[str, Any] = {"max_tokens": None}
    for one in criteria:
        name = type(one).__name__
        if name == "MaxLengthCriteria":
            limits["max_tokens"] = max(0, one.max_length - length)
        elif name == "StopStringCriteria":
            limits["stop"] = list(one.stop_strings)
        elif name != "EosTokenCriteria":
            raise _refused(f"the stopping criterion {name}")
    return limits


def _stream(made: Sequence[Generation[Any]], input_ids: Any, streamer: Any) -> None:
    """Gives a streamer of transformers the only row: the prompt first, as `generate` does, then each token."""
    if len(made) != 1:
        raise error(_core.ConstraintError, f"a streamer for {len(made)} rows", help="give one prompt")
    torch = import_torch()
    streamer.put(input_ids.cpu())
    for event in made[0]:
        if isinstance(event, Token):
            streamer.put(torch.tensor([event.token]))
    streamer.end()


def _output(outputs: Sequence[Sequence[int]], input_ids: Any, settings: Any) -> Any:
    """The rows with their outputs, padded on the right, in the form that is asked for."""
    torch = import_torch()
    pad = settings._pad_token_tensor
    filling = 0 if pad is None else int(pad)
    new = input_ids.new_full((len(outputs), max(map(len, outputs), default=0)), filling)
    for row, output in enumerate(outputs):
        new[row, : len(output)] = torch.tensor(output, dtype=new.dtype)
    sequences = torch.cat((input_ids, new), dim=1)
    if not settings.return_dict_in_generate:
        return sequences
    return importlib.import_module("transformers.generation").GenerateDecoderOnlyOutput(sequences=sequences)
