"""Masks and draws on tensors: the CPU's way, and the Triton kernels, which Triton's interpreter runs without a GPU.

With a GPU: `PYTHONPATH=python:tests/support python tests/support/tensor_checks.py cuda 2 300 131072`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import logitree as lt

pytestmark = pytest.mark.peers
torch = pytest.importorskip("torch", reason="torch is not installed")

from logitree import _core, samplers  # noqa: E402
from logitree.tensors import _sampling, apply_masks, sample_batch  # noqa: E402

CHECKS = Path(__file__).parents[1] / "support" / "tensor_checks.py"


def test_kernels_draw_what_chains_draw() -> None:
    """18 chains on 7 rows of logits: a row that has room in one program, and one that has to be searched."""
    pytest.importorskip("triton", reason="triton is not installed")
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    ways = (["60"], ["300", "few"])
    runs = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", CHECKS, "cpu", "1", *way], stdout=subprocess.PIPE, text=True, env=env
        )
        for way in ways
    ]
    for run, (width, *_) in zip(runs, ways, strict=True):
        out = run.communicate(timeout=600)[0]
        assert run.returncode == 0
        found = json.loads(out)
        assert found["masks"] == [True] * 3
        assert found["draws"][width] == {"rows": 126, "different": []}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_masks_reach_rows_and_padding(dtype: Any) -> None:
    given = torch.randn(4, 50).to(dtype)
    words = lt.masks.new(40, 2)
    lt.masks.insert(words[0], 3)
    lt.masks.insert(words[1], 39)
    got = given.clone()
    apply_masks(got, words, [2, 0], 40)
    for row, kept in ((0, [39]), (1, range(50)), (2, [3]), (3, range(50))):
        expected = torch.full((50,), -torch.inf, dtype=dtype)
        expected[list(kept)] = given[row, list(kept)]
        assert torch.equal(got[row], expected)
    every = given[:, :40].clone()
    apply_masks(every, torch.from_numpy(np.repeat(words[:1], 4, axis=0)))
    assert torch.isfinite(every).nonzero()[:, 1].tolist() == [3] * 4


@pytest.mark.parametrize(
    ("masks", "rows", "size"),
    [
        (lt.masks.new(30, 4), None, None),  # too few words
        (lt.masks.new(50, 2), [0], None),  # a mask too many
        (lt.masks.new(50, 1), [4], None),  # no such row
        (lt.masks.new(50, 1), [-1], None),
        (lt.masks.new(60, 1), [0], 60),  # ids without logits
        (lt.masks.new(50, 5), None, None),
    ],
)
def test_masks_that_do_not_fit_are_errors(masks: Any, rows: Any, size: Any) -> None:
    given = torch.randn(4, 50)
    got = given.clone()
    with pytest.raises(lt.MaskError):
        apply_masks(got, masks, rows, size)
    assert torch.equal(got, given)


def test_batches_on_the_cpu_are_the_chains_own() -> None:
    given = torch.randn(3, 100)
    words = np.stack([lt.masks.from_ids(100, range(at, 100, 3)) for at in range(3)])
    chains = lt.Chain.llama_cpp(seed=4, rng="philox", top_k=9).sequences(3)
    expected = [chain.fork().draw(row.numpy(), mask) for chain, row, mask in zip(chains, given, words, strict=True)]
    for masks in (words, torch.from_numpy(words)):
        assert sample_batch(given, masks, chains, accept=False).tolist() == expected
    assert [chain.accepted for chain in chains] == [0, 0, 0]
    assert sample_batch(given, words, chains).tolist() == expected
    assert [chain.accepted for chain in chains] == [1, 1, 1]
    assert sample_batch(given[:0], None, []).shape == (0,)
    with pytest.raises(lt.SamplingError, match="2 chains for 3 rows"):
        sample_batch(given, None, chains[:2])


def test_chains_without_numbers_are_errors_that_name_row_and_sampler() -> None:
    known = lt.Chain.llama_cpp(seed=1, rng="philox")
    assert _core.step_words([known]).shape == (1, 8 + 2 * 4)
    for chain, what in (
        (lt.Chain.llama_cpp(seed=1), r"dist\(seed=1\)"),
        (lt.Chain([samplers.typ_p(0.5), samplers.greedy()]), r"typ_p\(0.5\)"),
        (lt.Chain.greedy().parity(), "parity"),
        (lt.Chain([samplers.top_k(3)]), "no sampler of the chain selects"),
    ):
        with pytest.raises(lt.SamplingError, match=f"{what}.*row 1"):
            _core.step_words([known, chain])
    with pytest.raises(lt.SamplingError, match="states is a"):
        _core.step_words([3])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("logits", "masks", "error"),
    [
        (torch.zeros(2, 8, dtype=torch.float64), None, lt.LogitsError),
        (torch.zeros(2, 2, 8), None, lt.LogitsError),
        (torch.zeros(8, 2).T, None, lt.LogitsError),
        (torch.zeros(2, 8), None, lt.LogitsError),  # not on CUDA
    ],
)
def test_what_no_kernel_reads_is_an_error(logits: Any, masks: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        _sampling._check(logits, masks)


@pytest.mark.parametrize(
    "masks",
    [lt.masks.new(8, 3), lt.masks.new(8, 2).astype(np.int64), lt.masks.new(8), lt.masks.from_ids(64, [3, 40])[None]],
)
def test_masks_that_no_kernel_reads_are_errors(masks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sampling, "has_triton", lambda: True)
    rows = torch.zeros(len(masks) if masks.shape[-1] == 2 else 2, 8)

    class OnCuda:
        """Says that it is on a device."""

        device = SimpleNamespace(type="cuda")

        def __getattr__(self, name: str) -> Any:
            return getattr(rows, name)

    with pytest.raises(lt.MaskError):
        _sampling._check(OnCuda(), masks)
