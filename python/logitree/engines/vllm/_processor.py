"""The logits processor for both of vLLM's runners, which have different interfaces for it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from vllm.exceptions import VLLMValidationError
from vllm.logger import init_logger
from vllm.v1.sample.logits_processor.interface import BatchUpdate, MoveDirectionality
from vllm.v1.sample.logits_processor.interface import LogitsProcessor as ProcessorV1
from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsContext, LogitsProcRequestState
from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsProcessor as ProcessorV2

from ... import _core
from ..._errors import error
from ...tensors import apply_masks
from .._requests import SECONDS, Compiler
from ._arguments import Arguments
from ._compiler import SLOWER, compiler_of
from ._rows import Deciding, Row

logger = init_logger("vllm.logitree")

FIELD = "logitree"
"""The field of a request's `extra_args`, and of `vllm_xargs` over HTTP."""


class LogitsProcessor(ProcessorV1, ProcessorV2):  # type: ignore[misc]
    """Allows each request the tokens that its constraint allows, or the one that its chain picks.

    A constraint is made in a thread while the model evaluates the prompt.

    Args:
        vllm_config: vLLM's.
        device: the device of the logits (runner V1), or the requests' state (runner V2).
        is_pin_memory: of runner V1; not used.
    """

    def __init__(self, vllm_config: Any, device: Any, is_pin_memory: bool = False) -> None:
        self._states = device if isinstance(device, LogitsProcRequestState) else None
        self._rows: dict[int, Row] = {}
        """By the row of the batch (V1) or the slot of the request (V2)."""
        self._outputs: dict[int, list[int]] = {}
        """V1: vLLM's own lists of the tokens that requests have, by row."""
        self._added: list[tuple[int, Arguments]] = []
        """V2: requests whose prompts are not in the slots yet."""
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="logitree")
        self._compiler: Future[Compiler] = self._threads.submit(_compiler, vllm_config)
        if self._states is None:
            _read_outputs_early()

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Refuses a request whose arguments mean nothing, whatever the model.

        Raises:
            VLLMValidationError: with our message, and its place.
        """
        try:
            arguments = arguments_of(sampling_params)
            if arguments is not None:
                with _core.Deadline(SECONDS):
                    arguments.constraint()
        except _core.LogitreeError as wrong:
            raise VLLMValidationError(f"extra_args.{FIELD}: {wrong}") from wrong

    def is_argmax_invariant(self) -> bool:
        """False: a mask changes which token is the likeliest."""
        return False

    # -- runner V1: a request is a row, and rows move

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """Follows the batch: rows that were removed, added and moved, in this order."""
        if batch_update is None:
            return
        for index in batch_update.removed:
            self._rows.pop(index, None)
            self._outputs.pop(index, None)
        for index, params, prompt, output in batch_update.added:
            self._rows.pop(index, None)
            self._outputs.pop(index, None)
            arguments = arguments_of(params)
            if arguments is not None:
                self._rows[index] = self._row(arguments, prompt or [])
                self._outputs[index] = output
        for held in (self._rows, self._outputs):
            _move(held, batch_update.moved)

    # -- runner V2: a request has a slot, and rows are in any order

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        """Forgets what was in the slot. Returns whether the request has a constraint or a chain."""
        self._rows.pop(req_idx, None)
        self._added = [added for added in self._added if added[0] != req_idx]
        arguments = arguments_of(sampling_params)
        if arguments is not None:
            self._added.append((req_idx, arguments))
        return arguments is not None

    def apply_staged_writes(self) -> None:
        """Begins to make the constraints of new requests, whose prompts are in their slots now."""
        states = self._states
        assert states is not None
        for slot, arguments in self._added:
            length = int(states.prompt_len.np[slot])
            self._rows[slot] = self._row(arguments, states.all_token_ids.gpu[slot, :length].tolist())
        self._added = []

    # -- both

    def apply(self, logits: Any, ctx: LogitsContext | None = None) -> Any:
        """Writes -inf to what is not allowed.

        Args:
            logits: float32 [rows, V]; written in place.
            ctx: the rows' requests and drafts (runner V2).
        """
        if not self._rows:
            return logits
        size = len(self._compiler.result().vocabulary)
        rows: list[int] = []
        masks = []
        for row, at, drafts in self._of_batch() if ctx is None else self._of_context(ctx):
            found = row.mask(logits[at : at + 1 + len(drafts)], drafts, size)
            if found is not None:
                masks.append(found)
                rows.extend(range(at, at + len(found)))
        if rows:
            apply_masks(logits, np.concatenate(masks), rows, size)
        return logits

    def _of_batch(self) -> list[tuple[Row, int, Sequence[int]]]:
        """The requests of a V1 batch with the tokens that vLLM has appended, and their rows, ascending."""
        for index, row in self._rows.items():
            new = self._outputs[index][row.read :]
            if -1 in new:
                raise error(_core.StateError, "vLLM's asynchronous scheduling hides the tokens of the last step")
            if new:
                row.take(new)
        return [(self._rows[index], index, ()) for index in sorted(self._rows)]

    def _of_context(self, ctx: LogitsContext) -> list[tuple[Row, int, Sequence[int]]]:
        """The requests of a V2 batch, the first of their rows, and the drafts that the rows after it belong to."""
        states = self._states
        assert states is not None
        slots, inputs = ctx.expanded_idx_mapping.tolist(), ctx.input_ids.tolist()
        positions, offsets = ctx.pos.tolist(), ctx.expanded_local_pos.tolist()
        found: list[tuple[Row, int, Sequence[int]]] = []
        for at, (slot, offset) in enumerate(zip(slots, offsets, strict=True)):
            row = self._rows.get(slot)
            length = positions[at] + 1
            if row is None or offset or length < int(states.prefill_len.np[slot]):
                continue  # a draft's own row, or a prompt that is not complete
            end = at + 1
            while end < len(slots) and slots[end] == slot and offsets[end] == end - at:
                end += 1
            prompt = int(states.prompt_len.np[slot])
            missing = length - prompt - row.read
            if missing == 1:
                row.take(inputs[at : at + 1])
            elif missing > 1:
                row.take(states.all_token_ids.gpu[slot, prompt + row.read : length].tolist())
            found.append((row, at, inputs[at + 1 : end]))
        return found

    def _row(self, arguments: Arguments, prompt: Sequence[int]) -> Row:
        tokens = list(prompt)
        made: Future[Deciding] = self._threads.submit(
            lambda: arguments.bind(self._compiler.result(), tokens, SLOWER * SECONDS)
        )
        ends = self._compiler.result().vocabulary.end_tokens
        return Row(made, ends, lambda wrong: logger.error("a constraint failed: %s", wrong))


def arguments_of(params: Any) -> Arguments | None:
    """What a request gives the processor; None: nothing. Raises ConstraintError, SamplingError."""
    given = (params.extra_args or {}).get(FIELD)
    if given is None:
        return None
    if params.min_tokens:
        raise error(
            _core.ConstraintError,
            f"min_tokens is {params.min_tokens}, and a constraint may have to end before",
            help='leave it out, and give {"type": "at_least", "n": ..., "of": ...}',
        )
    return Arguments.read(given)


def _compiler(vllm_config: Any) -> Compiler:
    from vllm.tokenizers import cached_tokenizer_from_config

    model_config = vllm_config.model_config
    tokenizer = cached_tokenizer_from_config(model_config=model_config)
    return compiler_of(tokenizer, model_config, vllm_config.structured_outputs_config)


def _move(held: dict[int, Any], moved: Sequence[tuple[int, int, MoveDirectionality]]) -> None:
    for source, target, direction in moved:
        first, second = held.pop(source, None), held.pop(target, None)
        if first is not None:
            held[target] = first
        if second is not None and direction is MoveDirectionality.SWAP:
            held[source] = second


def _read_outputs_early() -> None:
    """Lets vLLM's batch fill in the tokens of the last step before processors run, under asynchronous scheduling.

    It does so for processors that are named on its command line, and not for those of entry points.
    """
    from vllm.v1.worker.gpu_input_batch import InputBatch

    original = InputBatch.__init__
    if getattr(original, "_logitree", False):
        return

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if any(isinstance(one, LogitsProcessor) for one in self.logitsprocs.all):
            self.logitsprocs_need_output_token_ids = True

    init._logitree = True  # type: ignore[attr-defined]
    InputBatch.__init__ = init
