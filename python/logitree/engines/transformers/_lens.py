"""The logit lens (nostalgebraist, "interpreting GPT: the logit lens", 2020): what each layer would say comes next.

The state of a token after each layer goes through the model's last normalisation and its output matrix, as the state
after the last layer does. The slow version that it must equal applies the two by their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..._errors import EngineError
from .._lens import Layers
from ._forward import ModelCache, Runner, import_torch

_TOLERANCE = 1e-2
"""How far the lens of the last layer may be from the model's own logits, as a share of the largest: half precision adds
up in another order."""


def layers(runner: Runner, cache: ModelCache, tokens: Sequence[int], top: int) -> Layers:
    """What each layer would say comes after these tokens; see `Engine.lens`. `cache`: an empty one."""
    torch = import_torch()
    if len(tokens) > 1:
        cache.append(tokens[:-1])
    with torch.inference_mode():
        with _norms(runner.model) as seen:
            logits, states = runner.states(torch.tensor([tokens[-1:]], device=runner.device), cache.cache)
        norm = next(
            (
                module
                for module, made in reversed(seen)
                if made.shape == states[-1].shape and (made == states[-1]).all()
            ),
            None,
        )
        head = runner.model.get_output_embeddings()
        if norm is None or head is None:
            raise _unknown(runner, "its last normalisation or its output matrix is not found")
        rows = torch.stack([head(norm(state[:, -1])) for state in states[:-1]] + [head(states[-1][:, -1])])[
            :, 0
        ].float()
        rows = _as_logits(runner, rows, logits[0, -1].float())
        found = rows[:, : runner.vocabulary_size].log_softmax(-1).topk(min(top, runner.vocabulary_size))
    return [
        tuple(zip(ids, values, strict=True))
        for ids, values in zip(found.indices.tolist(), found.values.tolist(), strict=True)
    ]


@contextmanager
def _norms(model: Any) -> Iterator[list[tuple[Any, Any]]]:
    """Normalisations as they run, each with what it gave."""
    seen: list[tuple[Any, Any]] = []
    hooks = [
        module.register_forward_hook(lambda module, _, made: seen.append((module, made)))
        for module in model.modules()
        if "norm" in type(module).__name__.lower()
    ]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def _as_logits(runner: Runner, rows: Any, own: Any) -> Any:
    """Outputs of the matrix, scaled and capped as the model's own logits are; the last row is that of these."""
    torch = import_torch()
    largest = int(rows[-1].abs().argmax())
    cap = getattr(runner.config, "final_logit_softcapping", None)
    made = cap * torch.tanh(rows / cap) if cap else rows * (own[largest] / rows[-1, largest])
    if not torch.allclose(made[-1], own, rtol=0, atol=_TOLERANCE * float(own.abs().max())):
        raise _unknown(runner, "its logits are more than its last state, normalised, by its output matrix")
    return made


def _unknown(runner: Runner, why: str) -> EngineError:
    return EngineError(f"a {type(runner.model).__name__} has no lens: {why}")
