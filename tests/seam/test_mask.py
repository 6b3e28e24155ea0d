"""Masks through Python: arrays of any layout, batches, errors. `crates/logitree/tests/it/mask.rs` proves the sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import logitree as lt
from logitree import _core

INFINITY = {np.float32: 0xFF800000, np.float16: 0xFC00, np.uint16: 0xFF80}


def bits(mask: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """The mask as booleans, by NumPy."""
    return np.unpackbits(np.atleast_1d(mask).view(np.uint8), bitorder="little").astype(bool)


def test_masks_are_sets() -> None:
    size, a = 100, {0, 31, 32, 99}
    x = lt.masks.from_ids(size, a)
    assert (x.dtype, x.shape) == (np.int32, (lt.masks.words(size),))
    assert set(np.flatnonzero(bits(x)).tolist()) == a
    assert (lt.masks.to_ids(x).tolist(), lt.masks.count(x), lt.masks.first(x)) == (sorted(a), 4, 0)
    assert [i for i in range(-1, size + 40) if lt.masks.contains(x, i)] == sorted(a)
    assert lt.masks.first(lt.masks.new(size)) is None
    lt.masks.fill(x, size)
    assert x.tolist() == lt.masks.new(size, fill=True).tolist()
    lt.masks.fill(x, size, False)
    assert not x.any()


@pytest.mark.filterwarnings("ignore:masks:DeprecationWarning")
@pytest.mark.parametrize("size", [33, 64, 100])
def test_the_former_set_operations_are_numpys(size: int) -> None:
    a, b = {0, 31, 32, size - 1}, {2, 31, size - 2}
    x, y = lt.masks.from_ids(size, a), lt.masks.from_ids(size, b)
    former: Any = lt.masks
    for operation, want in ((former.and_, a & b), (former.or_, a | b), (former.xor, a ^ b), (former.and_not, a - b)):
        expected = lt.masks.from_ids(size, want).tolist()
        assert operation(x, y).tolist() == expected
        mine, theirs = x.copy(), y.copy()
        assert operation(mine, y.view(np.uint32), mine) is mine
        assert mine.tolist() == expected
        assert operation(x, theirs, out=theirs) is theirs
        assert theirs.tolist() == expected
    rest = lt.masks.from_ids(size, set(range(size)) - a).tolist()
    assert former.not_(x, size).tolist() == rest
    x[-1] |= ~lt.masks.new(size, fill=True)[-1]  # Bits past the size count for nothing.
    assert former.not_(np.stack([x, x]), size).tolist() == [rest, rest]
    with pytest.raises(lt.MaskError, match="of the shapes"):
        former.not_(x, size + 32)
    with pytest.raises(lt.MaskError, match="of the shapes"):
        former.and_(np.stack([x, x]), x)
    with pytest.deprecated_call(match="a & ~b"):
        former.and_not(y, y)
    with pytest.raises(AttributeError, match="no attribute 'nand'"):
        _ = former.nand


def test_insert_and_remove() -> None:
    mask = lt.masks.new(70)
    assert lt.masks.insert(mask, 69)
    assert not lt.masks.insert(mask, 69)
    assert lt.masks.to_ids(mask).tolist() == [69]
    assert lt.masks.remove(mask, 69)
    assert not lt.masks.remove(mask, 69)
    assert not mask.any()
    for id in (-1, 96, 1 << 40):
        with pytest.raises(lt.MaskError, match=rf"id {id} in a mask of 96 ids"):
            lt.masks.insert(mask, id)
    for id in (-1, 70):
        with pytest.raises(lt.MaskError, match="in a mask of 70 ids"):
            lt.masks.from_ids(70, [id])


def test_batches_are_rows() -> None:
    batch = lt.masks.new(100, rows=3)
    assert batch.shape == (3, 4)
    assert not batch.any()
    lt.masks.insert(batch[1], 99)
    assert lt.masks.count(batch).tolist() == [0, 1, 0]
    assert lt.masks.count(lt.masks.new(100, 2, fill=True)).tolist() == [100, 100]
    for call in (lt.masks.to_ids, lt.masks.first, lambda m: lt.masks.contains(m, 1)):
        with pytest.raises(lt.MaskError, match=r"mask of 3 rows.*mask\[i\]"):
            call(batch)


def random_logits(dtype: Any, shape: Any) -> npt.NDArray[Any]:
    """Any bits at all: NaNs with payloads, infinities, negative zeros among them."""
    size = np.dtype(dtype).itemsize
    draw = np.random.default_rng(1).integers(0, 2 ** (8 * size), shape, dtype=f"u{size}")
    return draw.view(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint16])
def test_apply_bans_and_writes_nothing_else(dtype: Any) -> None:
    size, allowed = 1000, list(range(3, 1000, 7))
    for padding, offset in ((0, 0), (1, 1), (40, 3)):
        memory = random_logits(dtype, offset + size + padding)
        want = memory.view(f"u{memory.itemsize}").copy()
        lt.masks.apply(memory[offset:], lt.masks.from_ids(size, allowed))
        want[offset:][~np.isin(np.arange(size + padding), allowed)] = INFINITY[dtype]
        assert memory.view(want.dtype).tolist() == want.tolist()


def test_apply_to_batches() -> None:
    masks = np.stack([lt.masks.from_ids(40, ids) for ids in ([], range(40), [1, 33])])
    wide = np.ones((3, 64), np.float32)
    lt.masks.apply(wide[:, :40], masks)
    for row in range(3):
        assert np.isinf(wide[row, :40]).tolist() == (~bits(masks[row])[:40]).tolist()
    assert (wide[:, 40:] == 1).all(), "beyond the slice nothing is written"
    one_for_all = np.ones((3, 40), np.float16)
    lt.masks.apply(one_for_all, masks[0])
    assert (one_for_all == one_for_all[0]).all()
    assert np.isinf(one_for_all[0]).sum() == 40 - lt.masks.count(masks[0])
    lt.masks.apply(np.ones((0, 40), np.float32), masks[0])
    big = np.zeros((3, 5), np.int32)
    big[:, 1:3] = masks
    logits = np.ones((3, 40), np.float32)
    lt.masks.apply(logits, big[:, 1:3])
    assert np.isfinite(logits).sum(axis=1).tolist() == lt.masks.count(masks).tolist()


def test_ids_past_the_mask_are_banned_and_past_the_logits_an_error() -> None:
    logits = np.ones(100, np.float32)
    lt.masks.apply(logits, lt.masks.new(64, fill=True))
    assert np.flatnonzero(np.isfinite(logits)).tolist() == list(range(64))
    logits = np.ones((2, 40), np.float32)
    mask = lt.masks.from_ids(100, [3, 70])
    with pytest.raises(lt.LogitsError, match="allows id 70, and there are 40 logits") as raised:
        lt.masks.apply(logits, mask)
    assert raised.value.place == "row 0"
    assert (logits == 1).all()
    lt.masks.apply(logits, lt.masks.from_ids(100, [3]))
    lt.masks.apply(np.ones(40, np.float32), np.full(2, -1, np.int32))


@pytest.mark.parametrize(
    ("logits", "names"),
    [
        (np.ones(32), "float64"),
        (np.ones(32, np.int32), "int32"),
        (np.ones(32, ">f4"), ">f4"),
        (np.ones((1, 1, 32), np.float32), r"\[1, 1, 32\]"),
        (np.float32(1), "float32"),
        (np.array(1, np.float32), r"\[\]"),
        (np.ones(64, np.float32)[::2], r"\[8\]"),
        (np.ones(32, np.float32)[::-1], r"\[-4\]"),
        (np.ones((32, 2), np.float32).T, "strides"),
        (np.broadcast_to(np.ones(32, np.float32), (2, 32)), "strides"),
        (np.frombuffer(bytes(128), np.float32), "read-only"),
        (np.frombuffer(bytearray(129), np.float32, 32, 1), "not aligned"),
        ([1.0] * 32, "list"),
        (None, "NoneType"),
    ],
)
def test_strange_logits_are_refused(logits: Any, names: str) -> None:
    with pytest.raises(lt.LogitsError, match=names):
        lt.masks.apply(logits, lt.masks.new(32))


@pytest.mark.parametrize(
    ("mask", "names"),
    [
        (np.ones(1, np.int64), "int64"),
        (np.ones(1, np.float32), "float32"),
        (np.ones(32, np.bool_), "bool"),
        (np.ones((3, 1), np.int32), "3 rows for 2 rows"),
        (np.ones((1, 1, 1), np.int32), r"\[1, 1, 1\]"),
        (np.ones(4, np.int32)[::2], "strides"),
        ([1], "list"),
    ],
)
def test_strange_masks_are_refused(mask: Any, names: str) -> None:
    with pytest.raises(lt.MaskError, match=names):
        lt.masks.apply(np.ones((2, 32), np.float32), mask)


def test_shared_memory_is_refused() -> None:
    memory = np.zeros(64, np.int32)
    with pytest.raises(lt.MaskError, match="shares memory"):
        lt.masks.apply(memory[:32].view(np.float32), memory[31:32])


def test_impossible_sizes() -> None:
    with pytest.raises(lt.MaskError):
        lt.masks.new(1 << 40)
    with pytest.raises(lt.MaskError):
        lt.masks.new(1 << 30, rows=1 << 30)
    with pytest.raises(OverflowError):
        lt.masks.new(-1)
    with pytest.raises(lt.MaskError, match="1 words for 33 ids"):
        lt.masks.fill(lt.masks.new(32), 33)


@pytest.mark.parametrize("rows", [2**33, 2**63])
def test_too_many_empty_rows_are_refused(rows: int) -> None:
    with pytest.raises(lt.MaskError, match="rows of 0 ids"):
        lt.masks.new(0, rows, fill=True)


def test_bfloat16_arrays() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    logits = np.ones(40, ml_dtypes.bfloat16)
    lt.masks.apply(logits, lt.masks.from_ids(40, [3, 39]))
    assert np.flatnonzero(np.isfinite(logits.astype(np.float32))).tolist() == [3, 39]


@pytest.mark.peers
def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    mask = lt.masks.from_ids(40, [3, 39])
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for logits in (torch.ones(40, dtype=dtype), torch.ones(3, 64, dtype=dtype)[:, :40]):
            lt.masks.apply(logits, torch.from_numpy(mask))
            assert torch.isfinite(torch.atleast_2d(logits)).nonzero()[:, 1].unique().tolist() == [3, 39]
    with pytest.raises(lt.LogitsError, match="64 bits"):
        lt.masks.apply(torch.ones(40, dtype=torch.float64), mask)
    with pytest.raises(lt.LogitsError, match="strides"):
        lt.masks.apply(torch.ones(40, 2).T, mask)
    with pytest.raises(lt.LogitsError, match="not handed out.*gradient"):
        lt.masks.apply(torch.ones(40, requires_grad=True), mask)


def test_any_dlpack_producer() -> None:
    class Tensor:
        """Hands out NumPy's memory by DLPack and nothing else."""

        def __init__(self, array: npt.NDArray[Any]) -> None:
            self.array = array

        def __dlpack__(self) -> Any:
            return self.array.__dlpack__()

    logits = np.ones((2, 40), np.float32)
    lt.masks.apply(Tensor(logits), Tensor(lt.masks.from_ids(40, [3])))  # type: ignore[arg-type]
    assert np.flatnonzero(np.isfinite(logits)).tolist() == [3, 43]
    for array in (np.ones(40), np.ones((1, 1, 40), np.float32), np.ones(40, np.int64)):
        with pytest.raises(lt.LogitsError):
            lt.masks.apply(Tensor(array), lt.masks.new(40))


def test_copies_are_masked_in_one_pass() -> None:
    rng = np.random.default_rng(3)
    for width, size in ((100, 100), (130, 100), (4096, 4090), (32, 0)):
        logits = rng.normal(size=(5, width)).astype(np.float32)
        logits[2, 5], logits[0] = np.nan, -np.inf
        masks = rng.integers(-(1 << 31), 1 << 31, (3, lt.masks.words(size)), np.int64).astype(np.int32)
        masks &= lt.masks.new(size, fill=True)
        masks[1, :1] &= ~(1 << 5) if width != 4096 else -1
        want, out = logits.copy(), np.zeros_like(logits)
        for row, mask in zip((0, 2, 4), masks, strict=True):
            lt.masks.apply(want[row], mask)
        found = _core._mask_copy(logits, masks, [0, 2, 4], out)
        assert out.tobytes() == want.tobytes()
        highest = {row: want[row].max() for row in (0, 2, 4)}
        assert found == [(row, bool(np.isnan(x))) for row, x in highest.items() if not x > -np.inf]
    logits, masks = np.zeros((2, 40), np.float32), lt.masks.new(40, 1)
    for rows, out in (
        ([0, 1], logits.copy()),
        ([2], logits.copy()),
        ([0], logits),
        ([0], logits[:, :30].copy()),
        ([0], logits.astype(np.float16)),
    ):
        with pytest.raises((lt.LogitsError, lt.MaskError)):
            _core._mask_copy(logits, masks, rows, out)
    with pytest.raises(lt.LogitsError, match="no row 0 after that; give rows in their order"):
        _core._mask_copy(logits, lt.masks.new(40, 2), [1, 0], logits.copy())
