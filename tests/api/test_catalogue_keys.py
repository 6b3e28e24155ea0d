"""Catalogues as constraints, and items with texts as keys: through files, changes, searches and intersections."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import logitree as lt
from logitree.engines import Engine, Session

LETTERS = [bytes([letter]) for letter in b"abcdefghijklmnopqrstuvwxyz "]
VOCABULARY = lt.Vocabulary.from_tokens([*LETTERS, b"<e>"], end_tokens=[27])
TEXTS = ["red fox", "red", "old sea", "new moon"]
KEYS = ["sku-1", "sku-2", "é 3", "sku-4"]


def spell(text: str) -> list[int]:
    return [LETTERS.index(bytes([letter])) for letter in text.encode()]


def spelled(matcher: lt.Matcher) -> bytes:
    """The lowest allowed tokens until the matcher is finished."""
    tokens = []
    while not matcher.is_finished:
        tokens.append(next(iter(matcher.allowed())))
        matcher.accept(tokens[-1])
    return VOCABULARY.decode(tokens)


def test_texts_have_keys_in_files_and_after_changes(tmp_path: Path) -> None:
    path = tmp_path / "index"
    made = lt.Catalogue.from_texts(TEXTS, spell, items=KEYS, path=path)
    for catalogue in (made, lt.Catalogue.open(path), lt.Catalogue.from_bytes(made.to_bytes())):
        catalogue.check()
        assert catalogue.info()["keyed"]
        assert [catalogue.items(spell(text)) for text in TEXTS] == [[key] for key in KEYS]
        assert len(catalogue.walk(allowed=["sku-1", "é 3", "unknown"])) == 2
        before = catalogue.walk()
        assert catalogue.add([spell("cat"), spell("red")], items=["sku-5", "sku-1"]) == 2
        assert (catalogue.items(spell("cat")), catalogue.items(spell("red"))) == (["sku-5"], ["sku-1", "sku-2"])
        assert before.find(spell("cat")) is None
        assert catalogue.remove(items=["sku-2", "nothing"]) == 1
        assert catalogue.remove([spell("red"), spell("cat")], items=["sku-1", "sku-1"]) == 1
    catalogue.merge(path)
    again = lt.Catalogue.open(path)
    assert [again.items(spell(text)) for text in ("cat", "red", "red fox")] == [["sku-5"], [], ["sku-1"]]


def test_keys_and_numbers_do_not_mix(tmp_path: Path) -> None:
    keyed = lt.Catalogue.from_codes([[1], [2]], items=["a", "b"])
    numbered = lt.Catalogue.from_codes([[1], [2]])
    for call in (
        lambda: keyed.add([[3]]),
        lambda: keyed.add([[3]], items=[7]),
        lambda: keyed.walk(allowed=[0]),
        lambda: keyed.remove(items=[0]),
        lambda: numbered.add([[3]], items=["c"]),
        lambda: numbered.remove([[1]], items=["a"]),
    ):
        with pytest.raises(lt.ConstraintError, match="keys"):
            call()
    assert (keyed.items([1]), numbered.items([1]).tolist()) == (["a"], [0])  # type: ignore[union-attr]
    builder = lt.catalogue.CatalogueBuilder(tmp_path / "index", keyed=True, memory=1 << 10)
    for first in range(0, 3000, 500):
        rows = np.array([[n % 7, n] for n in range(first, first + 500)])
        builder.add(rows, items=[f"key {n}" for n in range(first, first + 500)])
    with pytest.raises(lt.ConstraintError, match='the key "key 7" is given twice.*item 3000'):
        builder.add([[1, 2]], items=["key 7"])
    made = builder.finish()
    assert made.items([2000 % 7, 2000]) == ["key 2000"]


def test_a_list_of_keys_may_be_an_iterator() -> None:
    made = lt.Catalogue.from_texts(iter(TEXTS), spell, items=iter(KEYS))
    assert made.items(spell("red")) == ["sku-2"]
    with pytest.raises(lt.ConstraintError, match=r"3 .* for 4"):
        lt.Catalogue.from_texts(TEXTS, spell, items=KEYS[:3])
    with pytest.raises(lt.ConstraintError, match=r"5 .* for 4"):
        lt.Catalogue.from_texts(TEXTS, spell, items=[*KEYS, "more"])


def test_a_catalogue_is_a_constraint() -> None:
    catalogue = lt.Catalogue.from_texts(TEXTS, spell, items=KEYS)
    # "red" is the beginning of "red fox", so an end token tells them apart.
    assert spelled(catalogue.matcher(VOCABULARY)) == b"new moon"
    plain = lt.Catalogue.from_texts(TEXTS[1:], spell)
    assert spelled(plain.matcher(VOCABULARY)) == b"new moon"
    assert catalogue.value("red", [*spell("red"), 27]) == "sku-2"
    assert plain.value("old sea", spell("old sea")) == 1
    narrowed = catalogue.constraint(allowed=["sku-1", "sku-2"]) & lt.Grammar.regex(".*x")
    assert spelled(narrowed.matcher(VOCABULARY)) == b"red fox"
    assert spelled(
        (lt.Grammar.regex("o.*").matcher(VOCABULARY) and catalogue & lt.Grammar.regex("o.*")).matcher(VOCABULARY)
    )
    assert len((catalogue & lt.Grammar.regex("r.*")).walk(VOCABULARY)) == 2


class Letters(Engine, Session):
    """A model of letters whose logits depend on nothing: an engine for beams."""

    vocabulary = VOCABULARY
    beam_rows = None

    def encode(self, prompt: Any, *, chat: bool | None = None) -> list[int]:
        return spell(prompt)

    def tokenize(self, text: str) -> list[int]:
        return spell(text)

    def session(self) -> Letters:
        return self

    def batch_session(self, rows: int | None, tokens: int | None = None, *, forks: bool = False) -> Letters:
        return self

    def evaluate_rows(self, tokens: Sequence[Sequence[int]]) -> Any:
        return np.tile(np.linspace(0, 1, 28, dtype=np.float32), (len(tokens), 1))

    def reorder(self, parents: Any) -> None:
        return None


def test_beams_search_texts_and_catalogues() -> None:
    (found,) = lt.beam_search(Letters(), "a", TEXTS, width=4)
    assert {hypothesis.items for hypothesis in found} == {(text,) for text in TEXTS}
    catalogue = lt.Catalogue.from_texts(TEXTS, spell, items=KEYS)
    (same,) = lt.beam_search(Letters(), "a", catalogue, width=4)
    assert [h.tokens for h in same] == [h.tokens for h in found]
    assert {item for h in same for item in h.items} == set(KEYS)
    (some,) = lt.beam_search(Letters(), "a", catalogue.constraint(allowed=["sku-4"]), width=4)
    assert [h.items for h in some] == [("sku-4",)]
    assert [(h.text, h.value) for h in found] == [(h.items[0], h.items[0]) for h in found]
    assert [(h.text, h.value) for h in same] == [(h.text, catalogue.value("", h.tokens)) for h in found]
    with pytest.raises(TypeError, match="one text"):
        lt.beam_search(Letters(), "a", "red")
    with pytest.raises(lt.ConstraintError, match="no token of the vocabulary"):
        lt.beam_search(Letters(), "a", int)
    (found,) = lt.beam_search(Letters(), "a", lt.Grammar.regex("ab?"))
    assert {one.text for one in found} == {"a", "ab"}
    with pytest.raises(TypeError, match="not a text"):
        lt.beam_search(Letters(), "a", [1, 2])  # type: ignore[list-item]


def test_beams_search_the_values_of_types() -> None:
    class Colour(enum.Enum):
        """Colours."""

        RED = "red"
        GREEN = "green"

    literal = Literal["red", "blue"]
    for what, values in (
        (Colour, {Colour.RED: "red", Colour.GREEN: "green"}),
        (literal, {"red": "red", "blue": "blue"}),
        (lt.OneOf(["red", Colour.GREEN], following="s"), {"red": "reds", Colour.GREEN: "greens"}),
        (["red", "red"], {"red": "red"}),
        (iter(["red"]), {"red": "red"}),
    ):
        (found,) = lt.beam_search(Letters(), "a", what, width=4)
        assert {h.value: h.text for h in found} == values
        assert all(list(h.tokens) == spell(h.text or "") for h in found)
    with pytest.raises(lt.ConstraintError, match="not UTF-8"):
        lt.beam_search(Letters(), "a", lt.OneOf([b"\xff"]))
