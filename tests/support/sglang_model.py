"""SGLang for the tests: its own manager of grammars over any tokenizer, without a model."""

from __future__ import annotations

import functools
import importlib.metadata
import warnings
from array import array
from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import data_files


def require() -> None:
    """Skips the module that calls it where SGLang is not installed, or this package is not as SGLang finds it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SGLang's and torch's own
        pytest.importorskip("sglang", reason="SGLang is not installed: make test-sglang")
        pytest.importorskip("gguf", reason="gguf, which reads the tokenizer, is not installed")
        import sglang.srt.managers.schedule_batch
        import sglang.srt.speculative.spec_utils  # noqa: F401
    if "logitree" not in importlib.metadata.entry_points(group="sglang.srt.plugins").names:
        pytest.skip(
            "logitree is not installed as a package: SGLang finds its entry point there", allow_module_level=True
        )


@functools.cache
def smollm2_tokenizer() -> Any:
    """The transformers tokenizer of SmolLM2-135M-Instruct (49,152 tokens)."""
    return _from_gguf(str(data_files.smollm2()))


@functools.cache
def shared_tokenizer(name: str) -> Any:
    """The transformers tokenizer of a vocabulary of the shared data."""
    return _from_gguf(str(data_files.data_file("vocabs", f"ggml-vocab-{name}.gguf")))


def _from_gguf(path: str) -> Any:
    import transformers

    folder, _, file = path.rpartition("/")
    made = transformers.AutoTokenizer.from_pretrained(folder, gguf_file=file)
    made.additional_stop_token_ids = None  # as SGLang's own loader writes it
    return made


@functools.cache
def _publish() -> None:
    """This process as a scheduler on one device: SGLang's plug-ins loaded, its configuration published."""
    from sglang.srt.plugins import load_plugins
    from sglang.srt.runtime_context import get_context, get_parallel

    load_plugins()
    get_context().override_server_args(grammar_backend="logitree").install()
    get_parallel().override_permanently(pp_rank=0, tp_rank=0)


def manager(
    backend: str = "logitree",
    tokenizer: Any = None,
    *,
    size: int | None = None,
    ends: Collection[int] | None = None,
    **server_args: Any,
) -> Any:
    """SGLang's own `GrammarManager` with one of its backends, as a scheduler on one device makes it.

    Args:
        backend: as `--grammar-backend` names it.
        tokenizer: a transformers tokenizer; None: SmolLM2's.
        size: how many logits there are; None: one a token.
        ends: the ends of generation of the model's configuration; None: the tokenizer's.
        server_args: other arguments of the server.
    """
    from sglang.srt.constrained.grammar_manager import GrammarManager
    from sglang.srt.parser.reasoning_parser import ReasoningParser
    from sglang.srt.runtime_context import get_context

    _publish()
    tokenizer = smollm2_tokenizer() if tokenizer is None else tokenizer
    think_ends = None
    if "reasoning_parser" in server_args:
        parser = ReasoningParser(
            model_type=server_args["reasoning_parser"], stream_reasoning=False, tokenizer=tokenizer
        )
        think_ends = parser.detector.get_think_end_token_ids(tokenizer)
    with get_context().override_server_args(grammar_backend=backend, **server_args) as args:
        return GrammarManager(
            SimpleNamespace(
                server_args=args,
                tokenizer=tokenizer,
                model_config=SimpleNamespace(
                    vocab_size=len(tokenizer) if size is None else size,
                    hf_eos_token_id={tokenizer.eos_token_id} if ends is None else set(ends),
                    think_end_ids=think_ends,
                ),
                dp_tp_cpu_group=None,
                dp_tp_group=SimpleNamespace(world_size=1, first_rank=0, is_first_rank=True),
                pp_group=None,
            )
        )


def request(
    name: str, manager: Any, *, prompt: Collection[int] = (1, 2, 3), thinks: bool = False, **params: Any
) -> Any:
    """A request of SGLang's scheduler, as its front end checks it, that no manager has seen."""
    from sglang.srt.managers.schedule_batch import Req
    from sglang.srt.sampling.sampling_params import SamplingParams

    config, tokenizer = manager.scheduler.model_config, manager.scheduler.tokenizer
    sampling = SamplingParams(**{"max_new_tokens": 256, **params})
    sampling.normalize(tokenizer)
    sampling.verify(config.vocab_size)
    made = Req(
        name,
        "",
        array("q", prompt),
        sampling,
        require_reasoning=thinks,
        eos_token_ids=config.hf_eos_token_id,
        vocab_size=config.vocab_size,
    )
    made.tokenizer = tokenizer
    return made


def start(manager: Any, *requests: Any) -> None:
    """Gives requests to the manager, and waits until it has their grammars, or has ended them."""
    waiting = [one for one in requests if manager.process_req_with_grammar(one)]
    while waiting:
        for ready in manager.get_ready_grammar_requests():
            waiting.remove(ready)


class _Batch:
    """What SGLang's sampling information reads of a batch."""

    def __init__(self, requests: Sequence[Any]) -> None:
        self.reqs, self.device = list(requests), "cpu"


def _sampling_info(manager: Any, requests: Sequence[Any]) -> Any:
    from sglang.srt.sampling.sampling_batch_info import SamplingBatchInfo

    info = SamplingBatchInfo.from_schedule_batch(_Batch(requests), manager.scheduler.model_config.vocab_size)
    info.grammars = [one.grammar for one in requests]
    info.update_regex_vocab_mask()
    return info


def masks(manager: Any, requests: Sequence[Any]) -> npt.NDArray[np.int32]:
    """int32 [rows, words]: SGLang's mask of a batch."""
    return np.array(_sampling_info(manager, requests).grammar_mask.vocab_mask)


def masked(manager: Any, requests: Sequence[Any], logits: Any = None) -> npt.NDArray[np.float32]:
    """float32 [rows, V]: logits (0 by default) after SGLang has written -inf to what may not come next in a batch."""
    import torch

    if logits is None:
        logits = torch.zeros((len(requests), manager.scheduler.model_config.vocab_size))
    _sampling_info(manager, requests).apply_logits_bias(logits)
    return logits.numpy()


def take(request: Any, token: int) -> None:
    """Commits a sampled token as SGLang's scheduler does: output, grammar, and whether the request has ended."""
    from sglang.srt.managers.scheduler_components.batch_result_processor import SchedulerBatchResultProcessor

    request.output_ids.append(token)
    SchedulerBatchResultProcessor._accept_grammar_tokens(None, request, token)
    request.update_finish_state()
    request.grammar.finished = request.finished()


def started(manager: Any, name: str = "r", **params: Any) -> Any:
    """A request whose grammar is compiled, or that has ended."""
    made = request(name, manager, **params)
    start(manager, made)
    return made
