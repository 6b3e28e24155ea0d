"""Masks and draws where the logits are: the Triton kernels of ``logitree.tensors`` beside torch, on a CUDA device.

Times are medians: "on the device" of a CUDA graph of the kernels over four tensors, "a call" of what a caller waits
for. The peer draws as is usual in torch: sort, top-k, top-p, softmax and exponential noise.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from logitree import Chain, _core, masks
from logitree_bench import Bench, optional, required

ROWS, WIDTH, TENSORS = 64, 131_072, 4
SETTINGS: dict[str, dict[str, Any]] = {
    "top_k 40, top_p 0.95": {"top_k": 40, "top_p": 0.95, "temp": 0.8},
    "top_p 0.95": {"top_k": 0, "top_p": 0.95, "temp": 1.0},
    "min_p 0.05": {"top_k": 0, "top_p": 1.0, "min_p": 0.05, "temp": 1.0},
    "temp 1": {"top_k": 0, "top_p": 1.0, "temp": 1.0},
}
KINDS = ("float32", "bfloat16", "flat")
"""Of logits: a few likely tokens over a long tail, as models have; the same, rounded; the tail alone."""

Run = Callable[[int], Any]
"""Works on the tensor of that number."""


def run(bench: Bench) -> None:
    """Measures masks, draws, and how many tokens are the CPU's."""
    torch = required(optional("torch"))
    required(optional("triton"))
    if not torch.cuda.is_available():
        bench.skip("masks and draws on a device", "there is no CUDA device")
        return
    more: dict[str, Any] = {"device": torch.cuda.get_device_name()}
    _masks(bench, torch, more)
    _draws(bench, torch, more)
    _equality(bench, torch, 10 if bench.quick else 130, more)


def _masks(bench: Bench, torch: Any, more: dict[str, Any]) -> None:
    from logitree.tensors import apply_masks
    from logitree.tensors._masks import ban

    rng = np.random.default_rng(0)
    rows, bits = torch.arange(ROWS, device="cuda"), torch.arange(32, dtype=torch.int32, device="cuda")
    for kind, share in itertools.product(("float32", "bfloat16"), (0.001, 0.5, 0.95)):
        given = [_logits(torch, seed, kind) for seed in range(TENSORS)]
        host = np.stack([masks.from_ids(WIDTH, np.flatnonzero(rng.random(WIDTH) < share)) for _ in range(ROWS)])
        words = torch.from_numpy(host).cuda()

        def ours(at: int, given: Any = given, words: Any = words) -> None:
            ban(given[at], words, rows, WIDTH)

        def peer(at: int, given: Any = given, words: Any = words) -> None:
            given[at].masked_fill_(((words[:, :, None] >> bits) & 1).flatten(1) == 0, -torch.inf)

        def call(at: int, given: Any = given, host: Any = host) -> None:
            apply_masks(given[at], host)

        name = f"64 masks, {kind}, {share:.1%} allowed"
        peers = {"torch": _on_device(torch, peer)}
        bench.record(f"{name}: on the device", _on_device(torch, ours), unit="us", peers=peers, target=20, **more)
        bench.record(f"{name}: a call with masks of this machine", _waited(torch, call), unit="us", **more)


def _draws(bench: Bench, torch: Any, more: dict[str, Any]) -> None:
    from logitree.tensors import _sampling, sample_batch

    for (name, setting), kind in itertools.product(SETTINGS.items(), KINDS):
        given = [_logits(torch, seed, kind) for seed in range(TENSORS)]
        host = [x.float().cpu().numpy() for x in given]
        states = _chains(1, setting)
        plan = _sampling.Plan(_core.step_words(states), given[0].device)

        def ours(at: int, given: Any = given, plan: Any = plan) -> None:
            _sampling.draw(given[at], None, plan)

        def peer(at: int, given: Any = given, setting: Any = setting) -> None:
            _torch_draw(torch, given[at], setting)

        def call(at: int, given: Any = given, states: Any = states) -> None:
            sample_batch(given[at], None, states, accept=False)

        def on_cpu(at: int, host: Any = host, states: Any = states) -> None:
            states[0].sample_batch(host[at], None, states, accept=False)

        # min_p is no part of the peer's.
        peers = {} if "min_p" in setting else {"torch": _on_device(torch, peer)}
        case = f"64 draws, {name}, {kind}"
        bench.record(f"{case}: on the device", _on_device(torch, ours), unit="us", peers=peers, **more)
        peers = {"the CPU's chains, without the copy": _waited(torch, on_cpu)}
        bench.record(f"{case}: a call", _waited(torch, call), unit="us", peers=peers, **more)


def _equality(bench: Bench, torch: Any, batches: int, more: dict[str, Any]) -> None:
    from logitree.tensors import sample_batch

    equal = rows = 0
    for setting, kind in itertools.product(SETTINGS.values(), KINDS):
        states = _chains(7, setting)
        for batch in range(batches):
            given = _logits(torch, 100 + batch, kind)
            expected = states[0].sample_batch(given.float().cpu().numpy(), None, states, accept=False)
            equal += int((expected == sample_batch(given, None, states)).sum())
            rows += ROWS
    bench.higher("rows whose token is the CPU's", equal / rows, "of 1", 0.9999, rows=rows, equal=equal, **more)


def _chains(seed: int, setting: dict[str, Any]) -> list[Chain]:
    """Chains of llama.cpp's order, as consecutive sequences of one seed."""
    return Chain.llama_cpp(seed=seed, rng="philox", **{"min_p": 0.0, **setting}).sequences(ROWS)


def _logits(torch: Any, seed: int, kind: str) -> Any:
    """[ROWS, WIDTH] of a kind."""
    made = torch.Generator("cuda").manual_seed(seed)
    x = torch.randn((ROWS, WIDTH), generator=made, device="cuda") * 2.0
    if kind != "flat":
        likely = torch.randint(WIDTH, (ROWS, 200), generator=made, device="cuda")
        x.scatter_(1, likely, 6.0 + 3.0 * torch.randn((ROWS, 200), generator=made, device="cuda"))
    return x.bfloat16() if kind == "bfloat16" else x


def _torch_draw(torch: Any, x: Any, setting: dict[str, Any]) -> Any:
    """A draw by a sort, as is usual."""
    k, p = setting["top_k"], setting["top_p"]
    x = x.float() / setting["temp"]
    if k or p < 1:
        values, index = x.sort(dim=-1)
        if k:
            values = values.masked_fill(values < values[:, WIDTH - k, None], -torch.inf)
        if p < 1:
            removed = values.softmax(-1).cumsum(-1) <= 1 - p
            removed[:, -1] = False
            values = values.masked_fill(removed, -torch.inf)
        x = torch.empty_like(values).scatter_(1, index, values)
    return (x.softmax(-1) / torch.empty_like(x).exponential_()).argmax(-1)


def _on_device(torch: Any, run: Run) -> float:
    """Median microseconds of one run in a CUDA graph over all tensors, more than the device's cache holds."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for at in range(TENSORS):
            run(at)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for at in range(TENSORS):
            run(at)
    times: list[float] = []
    for _ in range(30):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1000 / TENSORS)
    return statistics.median(times)


def _waited(torch: Any, run: Run) -> float:
    """Median microseconds of a call whose result is awaited."""
    times: list[float] = []
    for at in range(60):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        run(at % TENSORS)
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e6)
    return statistics.median(times[10:])
