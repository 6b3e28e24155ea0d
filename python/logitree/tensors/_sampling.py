"""Chains on a device: what `Chain.sample_batch` does, without a copy of the logits to this machine's memory."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from .. import _core
from .._errors import error
from ._masks import has_triton, on_device

CHUNK = 2048
GROUPS = 2048
"""About as many groups has a row: the k-th highest of them bounds the k-th highest logit well up to a quarter of it."""

RANKS = ((128, 512), (512, 2048), (1024, 4096))
"""The best k that are gathered at first, and the room for the ties and neighbours that come with them."""

MORE = 1024
"""The room of a search."""

EVERYTHING, TOP_K, TOP_P = 0xFFFF_FFFF, 1, 2
"""In the words of steps: no top_k, and two kinds."""


def sample_batch(
    logits: Any, masks: Any = None, states: Sequence[_core.Chain] = (), *, accept: bool = True
) -> npt.NDArray[np.uint32]:
    """Samples each row with a chain of its own, where the logits are.

    Args:
        logits: a torch tensor, float32, float16 or bfloat16 [B, V], rows without gaps. On the CPU this is
            `Chain.sample_batch`; on CUDA Triton kernels read it, and it is not copied.
        masks: int32 [B, ceil(V / 32)], an array or a tensor on any device; None: all tokens may come.
        states: one chain for each row, of `temp`, `top_k`, `top_p`, `min_p`, then `greedy`, or `dist` with
            `rng="philox"`; samplers that are switched off do not matter.
        accept: whether each chain accepts its token.

    Returns:
        The tokens, uint32 [B]. They are those of `Chain.sample_batch`, except where the last bit of an exponential
        decides (docs/engines/own-loop.md has the share). Rows do not depend on each other, nor on B.

    Raises:
        SamplingError: for a chain that the kernels do not know, with the row and the sampler; or not one for each row.
        LogitsError, MaskError: as `Chain.sample_batch`; LogitsError for a device that is not CUDA. No chain has
            accepted a token then. Masks on the device are not searched for ids without a logit: these never come.
    """
    states = list(states)
    if len(states) != len(logits):
        raise error(
            _core.SamplingError, f"{len(states)} chains for {len(logits)} rows", help="give one chain for each row"
        )
    if logits.device.type == "cpu" or not states:
        given = None if masks is None else _on_host(masks)
        return states[0].sample_batch(logits, given, states, accept=accept) if states else np.zeros(0, np.uint32)
    _check(logits, masks)
    plan = Plan(_core.step_words(states), logits.device)
    words = None if masks is None else on_device(masks, logits)
    tokens: npt.NDArray[np.int64] = draw(logits, words, plan).cpu().numpy()
    if (tokens < 0).any():
        bad = int(np.flatnonzero(tokens < 0)[0])
        _fail(bad, logits[bad], None if masks is None else _on_host(masks[bad]), states[bad])
    if accept:
        for chain, token in zip(states, tokens.tolist(), strict=True):
            chain.accept(token)
    return tokens.astype(np.uint32)


class Plan:
    """The steps of chains beside the logits, and which kernels a batch of them needs.

    Args:
        steps: int32 [B, words], of `_core.step_words`.
        device: the logits'.
    """

    def __init__(self, steps: npt.NDArray[np.int32], device: Any) -> None:
        torch = importlib.import_module("torch")
        ranks = steps[:, 7].view(np.uint32)
        wanted = int(ranks.max(initial=0))
        self.steps = torch.from_numpy(steps).to(device, non_blocking=True)
        self.sorts, self.finds = bool((ranks != 0).any()), bool((ranks == 0).any())
        self.weighs = self.finds or _has_early_top_p(steps)
        default = RANKS[1] if wanted == EVERYTHING else RANKS[-1]
        self.rank, self.room = next((pair for pair in RANKS if wanted <= pair[0]), default)


def draw(logits: Any, masks: Any, plan: Plan) -> Any:
    """A token for each row, int64 [B] where the logits are; -1: the row has NaN, +inf, or nothing to choose from.

    It does not wait for the device.

    Args:
        logits: a tensor [B, V].
        masks: int32 [B, words] beside the logits, or None.
        plan: of B chains.
    """
    torch = importlib.import_module("torch")
    kernels = importlib.import_module("._kernels", __package__)
    rows, width = logits.shape
    chunk = min(_power(width), CHUNK)
    chunks = -(-width // chunk)
    group = min(max(_power(width) // GROUPS, 16), 256, chunk)
    groups = chunks * chunk // group
    room = min(plan.room, _power(width))

    def empty(kind: Any, *shape: int) -> Any:
        return torch.empty(shape, dtype=kind, device=logits.device)

    tokens, sums = empty(torch.int64, rows), empty(torch.float64, rows, chunks)
    of_groups, of_chunks = empty(torch.float32, rows, groups), empty(torch.float32, rows, chunks)
    thresholds, counts, unfinished = empty(torch.float32, rows), empty(torch.int32, rows), empty(torch.int32, rows)
    words = 0 if masks is None else masks.shape[1]
    size = width if masks is None else min(width, words * 32)
    row = (logits, logits.stride(0), plan.steps if masks is None else masks, words, size)
    steps = (plan.steps, plan.steps.shape[1])
    shape = {"CHUNK": chunk, "HAS_MASK": masks is not None}
    most = {"MAX_CHUNKS": _power(chunks)}
    by_chunk, by_row = (rows, chunks), (rows,)
    kernels.survey[by_chunk](*row, of_groups, of_chunks, chunks, GROUP=group, **shape)
    if plan.weighs:
        kernels.weigh[by_chunk](*row, of_chunks, sums, chunks, *steps, **shape, **most)
    if plan.sorts:
        kernels.threshold[by_row](
            of_groups, groups, thresholds, counts, *steps, RANK=plan.rank, MAX_GROUPS=_power(groups), num_warps=1
        )
        keys = empty(torch.int64, rows, room)
        kernels.gather[by_chunk](*row, of_chunks, thresholds, keys, counts, chunks, *steps, ROOM=room, **shape)
        found = (keys, counts, thresholds, of_chunks, sums, chunks, *steps)
        kernels.pick[by_row](*found, tokens, unfinished, ROOM=room, num_warps=8, **most)
        more = min(MORE, _power(width))
        keys = empty(torch.int64, rows, more)
        room_of_search = (keys, counts, chunks, *steps)
        kernels.search[by_row](
            *row, of_chunks, *room_of_search, tokens, unfinished, ROOM=more, num_warps=16, **shape, **most
        )
    if plan.finds:
        kernels.find[by_row](*row, of_chunks, sums, chunks, *steps, tokens, **shape, **most)
    return tokens


def _check(logits: Any, masks: Any) -> None:
    """LogitsError, MaskError: for what no kernel reads."""
    torch = importlib.import_module("torch")
    known = (torch.float32, torch.float16, torch.bfloat16)
    if logits.dim() != 2 or logits.dtype not in known or logits.stride(1) != 1 or not logits.shape[1]:
        raise error(
            _core.LogitsError,
            f"logits are {logits.dtype} {list(logits.shape)} with strides {logits.stride()}",
            help="float32, float16 or bfloat16 [B, V], rows without gaps",
        )
    if logits.device.type != "cuda" or not has_triton():
        raise error(
            _core.LogitsError,
            f"logits are on {logits.device}" + ("" if has_triton() else ", and Triton is not installed"),
            help="kernels are for CUDA, by Triton; copy the logits to this machine's memory: logits.cpu()",
        )
    if masks is None:
        return
    rows, width = logits.shape
    if len(masks.shape) != 2 or len(masks) != rows or not str(masks.dtype).endswith("int32"):
        raise error(
            _core.MaskError,
            f"masks are {masks.dtype} {list(masks.shape)} for {rows} rows",
            help="int32, one row of words for each row of logits: logitree.masks.new(size, rows)",
        )
    if isinstance(masks, np.ndarray) and masks.shape[1] * 32 > width:
        past = masks[:, width // 32 :].view(np.uint32).copy()
        past[:, 0] >>= np.uint32(width % 32)
        for row in np.flatnonzero(past.any(axis=1)).tolist():
            raise error(_core.MaskError, f"an allowed id has none of the {width} logits", place=f"row {row}")


def _has_early_top_p(steps: npt.NDArray[np.int32]) -> bool:
    """Whether a top_p of some row comes before any top_k: it needs the sum of a whole row."""
    kinds = steps[:, 8::2]
    cuts = ((kinds == TOP_K) | (kinds == TOP_P)) & (np.arange(kinds.shape[1]) < steps[:, :1])
    first = cuts & (np.cumsum(cuts, axis=1) == 1)
    return bool((first & (kinds == TOP_P)).any())


def _fail(row: int, logits: Any, mask: Any, chain: _core.Chain) -> NoReturn:
    """Raises what `Chain.sample_batch` raises for this row of a batch."""
    before = [_core.Chain.greedy() for _ in range(row)]
    given = [np.zeros(1, np.float32)] * row + [logits.float().cpu().numpy()]
    chain.sample_batch(given, [None] * row + [mask], [*before, chain.fork()], accept=False)
    raise RuntimeError(f"row {row} has a token on the CPU, and none on {logits.device}")


def _on_host(mask: Any) -> Any:
    return mask.cpu().numpy() if hasattr(mask, "cpu") else mask


def _power(n: int) -> int:
    """The power of two from n on."""
    return 1 << max(n - 1, 0).bit_length()
