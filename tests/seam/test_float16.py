"""Logits of 16 bits: read in place, with the results of the same values in float32."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import logitree as lt

ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")

Row = npt.NDArray[Any]
SIZE = 3000


def rows() -> list[Row]:
    """A row of each kind, with -inf."""
    rng = np.random.default_rng(5)
    row = np.where(rng.random(SIZE) < 0.3, -np.inf, rng.normal(scale=4, size=SIZE))
    return [row.astype(np.float16), row.astype(ml_dtypes.bfloat16)]


def same(a: Any, b: Any) -> None:
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)


def test_metrics_decoders_and_batches_read_them_too() -> None:
    vocabulary = lt.Vocabulary.from_tokens([b"%d" % i for i in range(SIZE)], end_tokens=[0])
    for row in rows():
        wide = row.astype(np.float32)
        assert lt.metrics.entropy(row) == lt.metrics.entropy(wide)
        assert lt.metrics.log_sum_exp(row) == lt.metrics.log_sum_exp(wide)
        best = int(wide.argmax())
        assert lt.metrics.surprisal(row, best, "bits") == lt.metrics.surprisal(wide, best, "bits")
        same(lt.metrics.log_softmax(row, [0, best]), lt.metrics.log_softmax(wide, [0, best]))
        assert lt.samplers.top_candidates(row, 30) == lt.samplers.top_candidates(wide, 30)
        decoders = [lt.Decoder(vocabulary, lt.Chain.llama_cpp(seed=2), trace=True) for _ in range(2)]
        assert decoders[0].step(row) == decoders[1].step(wide)
        a, b = decoders[0].last, decoders[1].last
        assert a is not None and b is not None and (a.p_model, a.entropy, a.p) == (b.p_model, b.entropy, b.p)
        same(lt.beams.beam_top(row[None], [-1.0], 9), lt.beams.beam_top(wide[None], [-1.0], 9))
        chains = [lt.Chain.llama_cpp(seed=4) for _ in range(2)]
        same(
            chains[0].sample_batch(np.stack([row, row]), log_probabilities=True, accept=False),
            chains[1].sample_batch(np.stack([wide, wide]), log_probabilities=True, accept=False),
        )


def test_bits_of_bfloat16_are_logits_as_uint16() -> None:
    row = rows()[1]
    assert lt.Chain.greedy().draw(row.view(np.uint16)) == int(row.astype(np.float32).argmax())


class Tensor(ctypes.Structure):
    """DLPack's managed tensor, version 0."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("dimensions", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class Producer:
    """Hands out bfloat16 by DLPack alone, which NumPy does not take."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.shape = (ctypes.c_int64 * 1)(len(row))
        self.tensor = Tensor(row.ctypes.data, 1, 0, 1, 4, 16, 1, self.shape)

    def __dlpack__(self, **_: Any) -> Any:
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


def test_bfloat16_by_dlpack() -> None:
    row = rows()[1]
    producer = Producer(row)
    best = int(row.astype(np.float32).argmax())
    assert lt.Chain.greedy().draw(producer) == best
    assert lt.Chain.greedy().sample_batch([producer, row[:100]], accept=False)[0] == best
    row[0] = 99
    assert lt.Chain.greedy().draw(producer) == 0


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
def test_rows_are_read_in_place_or_refused(kind: Any) -> None:
    row = np.arange(20).astype(kind)
    greedy = lt.Chain.greedy()
    assert greedy.draw(np.stack([row[::-1], row])[1]) == 19
    frozen = row.copy()
    frozen.flags.writeable = False
    before = frozen.tobytes()
    lt.Chain(
        [lt.samplers.logit_bias({1: 100.0}), lt.samplers.temp(0.5), lt.samplers.top_p(0.9), lt.samplers.greedy()]
    ).apply(frozen)
    assert frozen.tobytes() == before
    with pytest.raises(lt.LogitsError, match="strides"):
        greedy.draw(row[::2])
    with pytest.raises(lt.LogitsError, match=r"shape \[1, 20\]"):
        greedy.draw(row[None])
    with pytest.raises(lt.LogitsError, match=r"NaN .*\(at id 7\)"):
        greedy.draw(np.where(np.arange(20) == 7, np.nan, 0).astype(kind))
    odd = np.zeros(41, np.uint8)[1:].view(np.uint16).view(kind)
    with pytest.raises(lt.LogitsError, match="aligned"):
        greedy.draw(odd)


def test_the_other_byte_order_is_refused() -> None:
    with pytest.raises(lt.LogitsError, match="float16"):
        lt.Chain.greedy().draw(np.zeros(3, ">f2"))
