"""Long work tells how far it is: a callback, or a terminal that has waited."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import logitree as lt
from logitree import _progress, rtp

NAMES = [f"name {n}" for n in range(20_000)]
TREE = '{"prefix_dict": {"225": [5], "225_5": [2]}}'


def spell(text: str) -> list[int]:
    return list(text.encode())


Work = Callable[..., Any]
WORK: dict[str, Work] = {
    "texts": lambda path, **options: lt.Catalogue.from_texts(NAMES, spell, **options),
    "codes": lambda path, **options: lt.Catalogue.from_codes([spell(name) for name in NAMES], **options),
    "merge": lambda path, **options: lt.Catalogue.from_texts(NAMES, spell, on_progress=lambda _: None).merge(**options),
    "names": lambda path, **options: lt.elizaos.descriptor("p", NAMES, spell, **options),
    "tree": lambda path, **options: rtp.load_tree(path, **options),
}


class Screen(io.StringIO):
    """Standard error that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    path = tmp_path / "tree.json"
    path.write_text(TREE, encoding="utf-8")
    return path


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_a_callback_is_told_from_0_to_1(work: Work, tree: Path) -> None:
    fractions: list[float] = []
    work(tree, on_progress=fractions.append)
    assert fractions == sorted(fractions) and fractions[0] >= 0 and fractions[-1] == 1

    def stop(_: float) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        work(tree, on_progress=stop)


def test_texts_are_told_while_they_are_tokenised() -> None:
    fractions: list[float] = []
    lt.Catalogue.from_texts(NAMES, spell, on_progress=fractions.append)
    assert len([part for part in fractions if 0 < part < 0.5]) >= 2


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_a_terminal_is_told_what_takes_long(work: Work, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick, slow, file = Screen(), Screen(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", quick)
    monkeypatch.setattr(_progress, "PATIENCE", 60.0)
    work(tree)
    assert quick.getvalue() == ""
    monkeypatch.setattr(_progress, "PATIENCE", 0.0)
    monkeypatch.setattr(sys, "stderr", slow)
    work(tree)
    assert "%" in slow.getvalue() and slow.getvalue().endswith("\r\x1b[K")
    monkeypatch.setattr(sys, "stderr", file)
    work(tree)
    assert file.getvalue() == ""


def test_the_line_goes_when_the_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(_progress, "PATIENCE", 0.0)
    with pytest.raises(lt.ConstraintError):
        lt.Catalogue.from_texts([*NAMES, ""], spell)
    assert screen.getvalue().endswith("\r\x1b[K")
    monkeypatch.setattr(sys, "stderr", None)
    assert len(lt.Catalogue.from_texts(["a"], spell)) == 1
