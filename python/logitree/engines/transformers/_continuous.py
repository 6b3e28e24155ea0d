"""Constraints in transformers' continuous batching: `generate_batch` and its manager."""

from __future__ import annotations

import contextlib
import importlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ... import _core
from ..._constraint import constraint_of
from ..._core import Constraint
from ..._errors import EngineError, error
from ._forward import import_torch
from ._states import State, States, masked


@contextlib.contextmanager
def continuous_batching(
    model: Any, constraint: Any, vocabulary: Any, *, eos_token_id: int | Sequence[int] | None = None
) -> Iterator[None]:
    """Constrains every request of `model.generate_batch`, and of managers that are made in this `with` statement.

    `generate_batch` itself passes over `logits_processor=` without a word. A request that cannot be constrained, or
    whose logits are NaN, ends alone: its output has the error as text in `error`, and what it has generated.

    `manager.add_request(tokens, constraint=...)` gives a request a constraint of its own, None for no constraint.

    Args:
        model: a model of transformers 5.24 or newer. Its manager must not be asynchronous or use CUDA graphs:
            `ContinuousBatchingConfig(use_async_batching=False, use_cuda_graph=False)`, which is usual on a CPU.
        constraint: of all requests that have none of their own, or a list with one for each input of `generate_batch`,
            as of `ConstraintLogitsProcessor`.
        vocabulary, eos_token_id: likewise.

    Raises:
        ConstraintError: there is no end token; from `generate_batch` and `add_request`, a list of constraints that are
            not as many as the inputs.
        EngineError: the model has no continuous batching, or keeps a manager that was made before.
        TypeError: it is not a constraint.
        VocabularyError: the tokenizer cannot be read.
    """
    try:
        base = importlib.import_module("transformers.generation.continuous_batching.cb_logits_processors")
        kind = base.ContinuousBatchingLogitsProcessor
        original = model.init_continuous_batching
    except (ImportError, AttributeError) as missing:
        raise EngineError(
            f"no continuous batching that takes logits processors: {missing}", help="use transformers 5.24 or newer"
        ) from missing
    if getattr(model, "_cached_continuous_batching_manager", None) is not None:
        raise EngineError(
            "the model keeps a manager that was made without the constraint",
            help="call model.destroy_cached_continuous_batching_manager() first",
        )
    of = States(constraint, vocabulary, eos_token_id, None)
    follows = _requests(kind)

    def init_continuous_batching(*args: Any, **named: Any) -> Any:
        manager = original(*args, **named)
        config = manager.continuous_batching_config
        if config.use_async_batching or any(np.atleast_1d(config.use_cuda_graph)):
            raise EngineError(
                "the manager is asynchronous or uses CUDA graphs: masks need the last token of each request",
                help="give ContinuousBatchingConfig(use_async_batching=False, use_cuda_graph=False)",
            )
        processors = manager.logit_processor
        processors.logits_processor.insert(0, follows(of))  # before what cuts candidates
        processors.tensors_required += 1
        processors.supported_keys["constraint"] = _Own
        processors.do_processing = True
        _take_constraints(manager, of)
        return manager

    generate = model.generate_batch

    def generate_batch(inputs: Any, *args: Any, **named: Any) -> Any:
        if len(inputs):
            _check_count(of, len(inputs))  # its own handling of errors would return nothing
        return generate(inputs, *args, **named)

    with _replaced(model, init_continuous_batching), _replaced(model, generate_batch):
        yield


@dataclass(frozen=True)
class _Own:
    """The constraint of a request. Copies of the request share it."""

    constraint: Constraint | None

    def __deepcopy__(self, _: dict[int, Any]) -> _Own:
        return self


def _take_constraints(manager: Any, of: States) -> None:
    """Lets a manager's `add_request` and `add_requests` take constraints; what is wrong with one is raised there."""
    add_one, add_several = manager.add_request, manager.add_requests
    numbers: dict[int, int] = {}
    """The list of a prompt's tokens, by its id -> the number of its constraint."""

    def add_request(input_ids: Any, *args: Any, **named: Any) -> Any:
        if "constraint" in named:
            given = named.pop("constraint")
            own = None if given is None else constraint_of(given)
        else:
            number = numbers.get(id(input_ids))
            if number is None:
                _check_count(of, 1)
            own = of.constraints[number or 0]
        return add_one(input_ids, *args, constraint=_Own(own), **named)

    def add_requests(inputs: Any, *args: Any, **named: Any) -> Any:
        if "constraint" in named:
            return add_several(inputs, *args, **named)
        copies = [list(tokens) for tokens in inputs]  # the same list may come twice
        _check_count(of, len(copies))
        own = {id(tokens): at if of.count > 1 else 0 for at, tokens in enumerate(copies)}
        numbers.update(own)
        try:
            return add_several(copies, *args, **named)
        finally:
            for tokens in own:
                del numbers[tokens]

    manager.add_request, manager.add_requests = add_request, add_requests


def _check_count(of: States, inputs: int) -> None:
    """Raises where there is neither one constraint for all inputs nor one for each."""
    if of.count not in (1, inputs):
        help = "give one for all, one for each input of generate_batch, or add_request(..., constraint=...)"
        raise error(_core.ConstraintError, f"{of.count} constraints for {inputs} inputs", help=help)


@contextlib.contextmanager
def _replaced(model: Any, method: Any) -> Iterator[None]:
    """Replaces the model's method of that name for a time."""
    name = method.__name__
    had = vars(model).get(name)
    setattr(model, name, method)
    try:
        yield
    finally:
        if had is None:
            delattr(model, name)
        else:
            setattr(model, name, had)


def _requests(kind: Any) -> Any:
    """The class of a processor that follows requests by their names, on transformers' own base class."""

    class Requests(kind):  # type: ignore[misc]
        supported_kwargs: ClassVar[dict[str, type]] = {}
        ignored_kwargs: tuple[str, ...] = ()

        def __init__(self, of: States) -> None:
            self._of = of
            self._known: dict[str, tuple[int, State]] = {}
            """Request -> how many tokens it has generated, and its state there."""
            self._rows: list[tuple[Any, State | None]] = []

        def fill_defaults(self, int32_tensor: Any) -> None:
            int32_tensor.zero_()

        def prepare_tensor_args(self, requests_with_new_token: Sequence[Any]) -> Any:
            self._rows = [(one.state, self._state(one.state)) for one in requests_with_new_token]
            live = {state.request_id for state, _ in self._rows}
            if len(self._known) > 4 * len(live) + 64:  # requests that ended, or wait
                self._known = {name: known for name, known in self._known.items() if name in live}
            torch = import_torch()
            return torch.zeros(len(self._rows), dtype=torch.int32)

        def __call__(self, scores: Any, tensor_arg: Any) -> Any:
            bound = {at: state for at, (_, state) in enumerate(self._rows) if state is not None and not state.is_free}
            out, unusable = masked(scores, list(bound), self._of.masks(list(bound.values())), self._of.size)
            for at, found in unusable.items():
                _fail(self._rows[at][0], f"{found} among the allowed tokens: look at the model's logits")
            for at, (request, _) in enumerate(self._rows):
                if request.error is not None:
                    out[at] = -math.inf
                    out[at, self._of.ends[0]] = 0.0
            return out

        def _state(self, request: Any) -> State | None:
            """The state of a request; None: it fails."""
            initial, generated = request.initial_tokens, request.generated_tokens
            first = request._true_initial_tokens or len(initial)  # what an evicted request had generated is in them too
            count = len(initial) - first + len(generated)
            before, state = self._known.get(request.request_id, (-1, None))
            try:
                if request.position_offset != first + count:
                    raise EngineError(
                        "the last token of the request is not known",
                        help="set use_async_batching=False in the ContinuousBatchingConfig",
                    )
                if state is not None and before == count - 1 and generated:
                    new = generated[-1:]
                else:
                    own = request.logit_processor_kwargs["constraint"].constraint
                    state = self._of.begin(own, initial[:first])
                    new = [*initial[first:], *generated]
                state = self._of.after(state, new, request.request_id)
            except (_core.LogitreeError, TypeError) as wrong:
                _fail(request, str(wrong))
                return None
            self._known[request.request_id] = (count, state)
            return state

    return Requests


def _fail(request: Any, message: str) -> None:
    request.error = request.error or message
