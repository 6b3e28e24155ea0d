"""A recogniser written in Python as a constraint."""

from __future__ import annotations

import copy

import pytest

import logitree as lt
from logitree import _core

TEXTS = [bytes([byte]) for byte in b"()."] + [b"()", b"))", b"((", b").", b"x"]
VOCABULARY = lt.Vocabulary.from_tokens([*TEXTS, b"</s>"], end_tokens=[len(TEXTS)])
END = len(TEXTS)


class Brackets:
    """Nested brackets, at most three deep, then a full stop or nothing."""

    def __init__(self) -> None:
        self.read = bytearray()

    def depth(self) -> int | None:
        depth = 0
        for at, byte in enumerate(self.read):
            if byte == ord("."):
                return 99 if depth == 0 and at == len(self.read) - 1 else None
            depth += 1 if byte == ord("(") else -1 if byte == ord(")") else 99
            if not 0 <= depth <= 3:
                return None
        return depth

    def push(self, byte: int) -> bool:
        self.read.append(byte)
        if self.depth() is None:
            self.read.pop()
            return False
        return True

    def pop(self, n: int) -> None:
        del self.read[len(self.read) - n :]

    def is_end(self) -> bool:
        return self.depth() in (0, 99)


def test_every_method_is_called() -> None:
    matcher = _core.Recogniser(Brackets).matcher(VOCABULARY)
    assert list(matcher.allowed()) == [0, 2, 3, 5, END]
    matcher.accept_many([5, 1])
    fork = copy.copy(matcher)
    assert list(matcher.allowed()) == [0, 1, 3, 5, 6] and not matcher.is_accepting
    with pytest.raises(lt.TokenError):
        matcher.accept(END)
    matcher.accept_many([1, 2])
    assert matcher.is_accepting and fork.accepted == 2
    matcher.rollback(3)
    assert list(matcher.allowed()) == [0, 1, 3, 4]


def test_exceptions_come_through_and_change_nothing() -> None:
    class Moody(Brackets):
        fails = False

        def push(self, byte: int) -> bool:
            if Moody.fails:
                raise ZeroDivisionError("on purpose")
            return super().push(byte)

    matcher = _core.Recogniser(Moody).matcher(VOCABULARY)
    matcher.accept(0)
    before = list(matcher.fork().allowed())
    Moody.fails = True
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        matcher.accept(0)
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        matcher.allowed()
    Moody.fails = False
    assert matcher.accepted == 1
    assert list(matcher.allowed()) == before


def test_interrupts_come_through() -> None:
    class Slow(Brackets):
        def push(self, byte: int) -> bool:
            if len(self.read) > 1:
                raise KeyboardInterrupt
            return super().push(byte)

    matcher = _core.Recogniser(Slow).matcher
    with pytest.raises(KeyboardInterrupt):
        matcher(VOCABULARY).accept_many([0, 0, 0])


def test_what_is_no_recogniser_is_refused() -> None:
    class Silent(Brackets):
        def push(self, byte: int) -> bool:
            super().push(byte)
            return None  # type: ignore[return-value]

    with pytest.raises(TypeError, match="callable"):
        _core.Recogniser(Brackets())  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="push"):
        _core.Recogniser(object).matcher(VOCABULARY)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="push must return bool, not NoneType"):
        _core.Recogniser(Silent).matcher(VOCABULARY)
    assert repr(_core.Recogniser(Brackets)) == "Recogniser(Brackets)"
