"""Samplers written in Python: what they see, what they may return, what goes wrong, and the state they keep."""

from __future__ import annotations

import gc
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import logitree as lt

Ids = npt.NDArray[np.uint32]
Logits = npt.NDArray[np.float32]
LOGITS = np.array([0.5, 2.0, -1.0, 1.5, 0.0], np.float32)


def chain(fn: object, *before: lt.samplers.Sampler, **options: Any) -> lt.Chain:
    return lt.Chain(
        [
            *before,
            lt.samplers.custom(fn, "mine", **options),
            *([] if options.get("selects") else [lt.samplers.greedy()]),
        ]
    )


def test_it_sees_the_candidates_in_order_and_writes_in_place() -> None:
    seen: list[tuple[list[int], list[float]]] = []

    def fn(ids: Ids, logits: Logits) -> None:
        assert (ids.dtype, logits.dtype, ids.flags.writeable, logits.flags.writeable) == (
            np.uint32,
            np.float32,
            False,
            True,
        )
        with pytest.raises(ValueError, match="WRITEABLE"):
            ids.flags.writeable = True
        seen.append((ids.tolist(), logits.tolist()))
        logits[ids == 3] += 9

    before = LOGITS.copy()
    assert chain(fn).draw(LOGITS) == 3
    assert chain(fn, lt.samplers.logit_bias({2: 4.0}), lt.samplers.top_k(3)).draw(LOGITS) == 3
    assert chain(fn).draw(LOGITS, allowed=[0, 3, 4]) == 3
    assert seen == [
        ([0, 1, 2, 3, 4], LOGITS.tolist()),
        ([2, 1, 3], [3.0, 2.0, 1.5]),
        ([0, 3, 4], [0.5, 1.5, 0.0]),
    ]
    assert (before == LOGITS).all()


@pytest.mark.parametrize(
    ("answer", "ids"),
    [
        (lambda ids, logits: None, [0, 1, 2, 3, 4]),
        (lambda ids, logits: logits > 0, [0, 1, 3]),
        (lambda ids, logits: np.array([4, 0]), [4, 0]),
        (lambda ids, logits: np.array([4, 0], np.uint8), [4, 0]),
        (lambda ids, logits: np.array([3, 1, 2], ">i8"), [3, 1, 2]),
        (lambda ids, logits: np.arange(5)[::-2], [4, 2, 0]),
        (lambda ids, logits: (logits > -9)[::-1], [0, 1, 2, 3, 4]),
        (lambda ids, logits: np.array([2, 0, 0, 0, 255], np.uint8).view(np.bool_), [0, 4]),
        (lambda ids, logits: ids[:2], [0, 1]),
    ],
)
def test_what_it_may_return(answer: Callable[[Ids, Logits], Any], ids: list[int]) -> None:
    got, logits, p = lt.Chain([lt.samplers.custom(answer)]).apply(LOGITS)
    assert got.tolist() == ids
    assert logits.tolist() == LOGITS[ids].tolist()
    assert p.sum() == pytest.approx(1.0)


def test_samplers_after_it_see_what_it_left() -> None:
    def reverse(ids: Ids, logits: Logits) -> npt.NDArray[np.int64]:
        return np.arange(len(ids))[::-1]

    ids, _, _ = lt.Chain([lt.samplers.custom(reverse), lt.samplers.min_p(0.5)]).apply(LOGITS)
    assert ids.tolist() == [3, 1]
    ids, _, _ = lt.Chain([lt.samplers.top_k(4), lt.samplers.custom(reverse), lt.samplers.top_k(2)]).apply(LOGITS)
    assert ids.tolist() == [1, 3]
    ties = np.zeros(4, np.float32)
    assert lt.Chain([lt.samplers.custom(reverse), lt.samplers.greedy()]).draw(ties) == 3
    effects = chain(lambda ids, logits: logits > 0).explain(LOGITS)
    assert [(e.sampler, e.before, e.after) for e in effects] == [("mine", 5, 3), ("greedy", 3, 3)]


def test_it_may_select() -> None:
    last = chain(lambda ids, logits: len(ids) - 1, lt.samplers.top_k(3), selects=True)
    assert last.draw(LOGITS) == 0
    assert last.sample_batch(np.stack([LOGITS, LOGITS[::-1]]), accept=False).tolist() == [0, 4]
    assert chain(lambda ids, logits: np.int32(1), selects=True).draw(LOGITS) == 1
    with pytest.raises(lt.SamplingError, match="follows mine"):
        lt.Chain([lt.samplers.custom(len, "mine", selects=True), lt.samplers.greedy()])
    for wrong in (None, -1, 5, 2**70, 1.0, "1"):
        with pytest.raises(lt.SamplingError, match="mine returned"):
            chain(lambda ids, logits, wrong=wrong: wrong, selects=True).draw(LOGITS)


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (lambda ids, logits: logits.fill(np.nan), lt.LogitsError, "NaN.*mine"),
        (lambda ids, logits: logits.fill(np.inf), lt.LogitsError, r"\+inf.*mine"),
        (lambda ids, logits: logits.fill(-np.inf), lt.LogitsError, "no candidate is left.*mine"),
        (lambda ids, logits: logits > 99, lt.SamplingError, "mine kept no candidate"),
        (lambda ids, logits: np.zeros(0, np.int64), lt.SamplingError, "mine kept no candidate"),
        (lambda ids, logits: np.array([1, 1]), lt.SamplingError, "position 1 twice"),
        (lambda ids, logits: np.array([5]), lt.SamplingError, "position 5 of 5"),
        (lambda ids, logits: np.array([-1]), lt.SamplingError, "position -1 of 5"),
        (lambda ids, logits: np.array([2**64 - 1], np.uint64), lt.SamplingError, "position -1"),
        (lambda ids, logits: np.ones(4, np.bool_), lt.SamplingError, r"bool and shape \[4\]"),
        (lambda ids, logits: np.ones((5, 1), np.bool_), lt.SamplingError, r"shape \[5, 1\]"),
        (lambda ids, logits: np.arange(10**6), lt.SamplingError, r"shape \[1000000\]"),
        (lambda ids, logits: logits, lt.SamplingError, "float32"),
        (lambda ids, logits: np.array(["a"]), lt.SamplingError, "<U1"),
        (lambda ids, logits: np.array([1], object), lt.SamplingError, "object"),
        (lambda ids, logits: np.array(1), lt.SamplingError, r"shape \[\]"),
        (lambda ids, logits: [0], lt.SamplingError, "list"),
        (lambda ids, logits: True, lt.SamplingError, "bool"),
    ],
)
def test_wrong_answers_name_the_sampler(answer: Any, error: type[Exception], says: str) -> None:
    running = chain(answer)
    for _ in range(2):
        with pytest.raises(error, match=says) as caught:
            running.draw(LOGITS)
        assert caught.value.help  # type: ignore[attr-defined]


def test_exceptions_come_out_unchanged() -> None:
    class Mine(Exception):
        pass

    raised = Mine("no")

    def fn(ids: Ids, logits: Logits) -> None:
        raise raised

    running = chain(fn)
    for call in (running.sample, running.apply, running.explain):
        with pytest.raises(Mine) as caught:
            call(LOGITS)
        assert caught.value is raised
    with pytest.raises(Mine) as caught:
        chain(lambda ids, logits: fn(ids, logits) if logits[0] < 0 else None).sample_batch(
            np.stack([LOGITS, -LOGITS]), accept=False
        )
    if sys.version_info >= (3, 11):
        assert raised.__notes__ == ["at row 1"]
    with pytest.raises(TypeError):
        chain(lambda: None).draw(LOGITS)


def test_arrays_that_outlive_the_call_stay_valid() -> None:
    held: list[Any] = []

    def fn(ids: Ids, logits: Logits) -> None:
        held.append((ids[1:], logits.view(np.int32), logits))

    running = chain(fn)
    for scale in range(1, 50):
        running.draw(LOGITS * scale)
    gc.collect()
    for scale, (ids, bits, logits) in enumerate(held, start=1):
        assert ids.tolist() == [1, 2, 3, 4]
        assert logits.tolist() == (LOGITS * scale).tolist() == bits.view(np.float32).tolist()
    held[0][2][:] = 7
    assert held[1][2].tolist() == (LOGITS * 2).tolist()
    assert running.draw(LOGITS) == 1


def test_the_views_are_of_the_chains_own_memory() -> None:
    addresses = set()

    def fn(ids: Ids, logits: Logits) -> None:
        addresses.add(logits.ctypes.data)

    big = np.zeros(100_000, np.float32)
    running = chain(fn)
    for _ in range(10):
        running.draw(big)
    assert len(addresses) == 1


def test_using_the_chain_that_calls_is_an_error() -> None:
    running: list[Any] = []
    uses: list[Callable[[], object]] = [
        lambda: running[0].draw(LOGITS),
        lambda: running[0].accept(1),
        lambda: running[0].fork(),
        lambda: running[0].sample_batch(LOGITS[None], accept=False),
        lambda: pickle.dumps(running[0]),
    ]
    for use in uses:

        def fn(ids: Ids, logits: Logits, use: Callable[[], object] = use) -> None:
            use()

        running[:] = [chain(fn)]
        with pytest.raises(lt.StateError, match="used the chain or decoder that is calling it"):
            running[0].draw(LOGITS)
        with pytest.raises(lt.StateError, match="used the chain or decoder that is calling it"):
            running[0].sample_batch(LOGITS[None], accept=False)
    other = lt.Chain.greedy()
    assert chain(lambda ids, logits: np.array([other.draw(logits)])).draw(LOGITS) == 1


class Ban:
    """Bans the tokens accepted so far."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.skipped = 0

    def apply(self, ids: Ids, logits: Logits) -> None:
        logits[np.isin(ids, self.tokens)] = -np.inf

    def accept(self, token: int) -> None:
        self.tokens.append(token)

    def rollback(self, n: int) -> None:
        del self.tokens[len(self.tokens) - n :]

    def reset(self) -> None:
        self.tokens = []

    def forced(self) -> None:
        self.skipped += 1


class SavedBan(Ban):
    """Bans, and can be saved."""

    def save(self) -> bytes:
        return bytes(self.tokens)

    def load(self, saved: bytes) -> None:
        self.tokens = list(saved)


def steps(running: lt.Chain, n: int) -> list[int]:
    tokens = []
    for _ in range(n):
        tokens.append(running.draw(LOGITS))
        running.accept(tokens[-1])
    return tokens


def test_state_goes_with_the_chain() -> None:
    ban = Ban()
    running = chain(ban)
    assert steps(running, 3) == [1, 3, 0]
    assert ban.tokens == []
    running.rollback(2)
    fork = running.fork()
    assert steps(running, 2) == steps(fork, 2) == [3, 0]
    again = pickle.loads(pickle.dumps(running))
    assert steps(again, 1) == [4]
    assert steps(running, 1) == [4]
    running.reset()
    assert steps(running, 1) == [1]
    rows = np.stack([LOGITS, LOGITS])
    assert [running.sample_batch(rows, accept=True).tolist() for _ in range(2)] == [[1, 1], [3, 3]]
    with pytest.raises(lt.StateError, match="snapshot holds no state of the custom sampler mine"):
        running.restore(running.snapshot())


def test_state_is_saved() -> None:
    running = chain(SavedBan())
    steps(running, 2)
    snapshot = running.snapshot()
    fresh = chain(SavedBan())
    fresh.restore(snapshot)
    assert steps(fresh, 3) == steps(running, 3) == [0, 4, 2]
    damaged = bytearray(snapshot)
    damaged[24] ^= 1
    with pytest.raises(lt.StateError):
        fresh.restore(bytes(damaged))


def test_what_hooks_raise_comes_out_of_the_next_step() -> None:
    class Broken(Ban):
        def accept(self, token: int) -> None:
            raise KeyError(token)

        def fork(self) -> Broken:
            return Broken()

    running = chain(Broken())
    running.accept(3)
    with pytest.raises(KeyError, match="3"):
        running.draw(LOGITS)
    assert running.draw(LOGITS) == 1

    class Unforked(Ban):
        def fork(self) -> Ban:
            raise KeyError("fork")

    with pytest.raises(KeyError, match="fork"):
        chain(Unforked()).draw(LOGITS)

    def note(ids: Ids, logits: Logits) -> None:
        return None

    note.accept = lambda token: None  # type: ignore[attr-defined]
    running = chain(note)
    running.accept(1)
    running.rollback()
    with pytest.raises(lt.StateError, match=r"accept\(token\) but no rollback"):
        running.draw(LOGITS)
    running.reset()
    with pytest.raises(lt.StateError, match=r"but no reset"):
        running.draw(LOGITS)


def test_what_cannot_be_built() -> None:
    for fn in (None, 3, object()):
        with pytest.raises(lt.SamplingError, match="not callable"):
            lt.samplers.custom(fn)
    for name in ("", "n" * 65):
        with pytest.raises(lt.SamplingError, match="bytes"):
            lt.samplers.custom(len, name)
    with pytest.raises(lt.SamplingError, match="no sampler like mine"):
        chain(len).parity()
    assert repr(chain(steps)) == "Chain([custom(steps, name='mine'), greedy()])"


def test_a_decoder_runs_it() -> None:
    vocabulary = lt.Vocabulary.from_tokens([b"a", b"b", b"c", b"d", b"e"], end_tokens=[4])
    decoder = lt.Decoder(vocabulary, chain(Ban()), trace=True)
    assert [decoder.step(LOGITS) for _ in range(2)] == [1, 3]
    decoder.rollback(1)
    assert decoder.step(LOGITS) == 3
    assert [e[0] for e in decoder.trace[0].effects] == ["mine", "greedy"]
