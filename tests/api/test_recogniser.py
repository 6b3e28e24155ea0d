"""A recogniser written in Python as a constraint."""

from __future__ import annotations

import copy
import random

import pytest

import logitree as lt
from logitree import _core

TEXTS = [bytes([byte]) for byte in b"()."] + [b"()", b"))", b"((", b").", b"x"]
VOCABULARY = lt.Vocabulary.from_tokens([*TEXTS, b"</s>"], eog_ids=[len(TEXTS)])
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


def naive(text: bytes) -> list[int]:
    found = []
    for token, piece in enumerate(TEXTS):
        recogniser = Brackets()
        if all(recogniser.push(byte) for byte in text + piece):
            found.append(token)
    recogniser = Brackets()
    assert all(recogniser.push(byte) for byte in text)
    return [*found, END] if recogniser.is_end() else found


@pytest.mark.parametrize("seed", range(10))
def test_masks_equal_feeding_every_token(seed: int) -> None:
    draw = random.Random(seed)
    constraint = _core.Recogniser(Brackets)
    matcher = constraint.matcher(VOCABULARY)
    text, states = b"", []
    for _ in range(20):
        if matcher.is_finished:
            break
        allowed = list(matcher.allowed())
        assert allowed == naive(text)
        assert matcher.is_accepting == (END in allowed)
        fork = copy.copy(matcher)
        assert fork.allowed() == matcher.allowed()
        refused = draw.choice([i for i in range(END + 1) if i not in allowed])
        with pytest.raises(lt.TokenError):
            matcher.accept(refused)
        states.append(text)
        token = draw.choice(allowed)
        matcher.accept(token)
        fork.accept(token)
        assert fork.allowed() == matcher.allowed()
        text += TEXTS[token] if token != END else b""
    steps = draw.randrange(len(states) + 1)
    matcher.rollback(steps)
    if steps:
        assert list(matcher.allowed()) == naive(states[-steps])


def test_exceptions_come_through_and_change_nothing() -> None:
    class Moody(Brackets):
        fails = False

        def push(self, byte: int) -> bool:
            if Moody.fails:
                raise ZeroDivisionError("on purpose")
            return super().push(byte)

    matcher = _core.Recogniser(Moody).matcher(VOCABULARY)
    matcher.accept(0)
    before = list(naive(b"("))
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
