"""Old names: each row of the tables warns with the new name, and does what that does."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

import numpy as np
import pytest

import logitree as lt
from logitree import _renamed, masks, rtp
from logitree._constraint import Context, constraint_of

VOCABULARY = lt.Vocabulary.from_tokens([b"a", b"b", b"</s>"], end_tokens=[2])


def decoder(**options: Any) -> lt.Decoder:
    matcher = lt.OneOf(["ab", "b"]).matcher(VOCABULARY)
    return lt.Decoder(VOCABULARY, lt.Chain.greedy(), matcher, trace=True, **options)


def owners() -> dict[str, Any]:
    """An object of each class that has an old name."""
    step = decoder()
    step.step(np.zeros(3, np.float32))
    return {
        "Vocabulary": VOCABULARY,
        "Step": step.last,
        "Token": lt.Token(1, b"b", "b", None),
        "Matcher": lt.OneOf(["ab", "b"]).matcher(VOCABULARY),
        "Decoder": decoder(),
        "Batch": lt.Batch(VOCABULARY, [decoder()]),
        "Catalogue": lt.Catalogue.from_codes([[0, 1]]),
        "CatalogueConstraint": lt.Catalogue.from_codes([[0, 1]]).constraint(),
        "OneOf": lt.OneOf(["a"], tokenize=lambda text: [0]),
        "RtpTree": rtp.load_tree('{"prefix_dict": {"1": [2]}}', vocabulary_size=3),
    }


@pytest.mark.parametrize("path", _renamed.NAMES)
def test_an_old_name_of_a_module_warns_and_is_the_new_one(path: str) -> None:
    module, _, old = path.rpartition(".")
    new_module, _, new = _renamed.NAMES[path].rpartition(".")
    with pytest.warns(DeprecationWarning, match=f"{path} is {_renamed.NAMES[path]} now") as caught:
        found = getattr(importlib.import_module(module), old)
    assert caught[0].filename == __file__
    assert found is getattr(importlib.import_module(new_module), new)
    with pytest.raises(AttributeError, match="no_such"):
        importlib.import_module(module).no_such  # noqa: B018


@pytest.mark.parametrize("path", _renamed.ATTRIBUTES)
def test_an_old_attribute_warns_and_is_the_new_one(path: str) -> None:
    owner, _, old = path.partition(".")
    thing, new = owners()[owner], _renamed.ATTRIBUTES[path]
    with pytest.warns(DeprecationWarning, match=f"{path} is {new} now") as caught:
        found = getattr(thing, old)
    assert found == _renamed.VALUES.get(path, lambda value: value)(getattr(thing, new))
    assert caught[0].filename == __file__


@pytest.mark.parametrize("path", _renamed.METHODS)
def test_an_old_method_warns_and_does_the_same(path: str) -> None:
    owner, _, old = path.partition(".")
    thing = owners()[owner]
    out, one = masks.new(3), thing[0] if owner == "Batch" else thing
    with pytest.warns(DeprecationWarning, match=path) as caught:
        made = getattr(thing, old)(out) if old == "fill_mask" else getattr(thing, old)()
    assert np.ravel(out if made is None else made).tolist() == one.allowed().mask().tolist() == [3]
    assert str(caught[0].message) == f"{path} is {_renamed.METHODS[path]} now"


@pytest.mark.parametrize("path", _renamed.KEYWORDS)
def test_an_old_keyword_warns_and_becomes_the_new_one(path: str) -> None:
    owner, _, method = path.partition(".")
    called = getattr(owners()[owner], method)
    for old, new in _renamed.KEYWORDS[path].items():
        with pytest.warns(DeprecationWarning, match=rf"\({old}=\) is {new}= now"), contextlib.suppress(TypeError):
            called(*[VOCABULARY] * (path == "Catalogue.matcher"), **{old: [2] if new == "end_tokens" else 2})


@pytest.mark.parametrize("given", [[], [None], [4]])
@pytest.mark.parametrize("path", _renamed.UNBOUND)
def test_a_matcher_without_a_vocabulary_warns_and_does_the_same(path: str, given: list[Any]) -> None:
    constraint: Any = owners()[path.partition(".")[0]]
    with pytest.warns(DeprecationWarning, match="without a Vocabulary") as caught:
        made = constraint.matcher(*given)
    assert [str(warning.message) for warning in caught] == [f"{path} without a Vocabulary is matcher(vocabulary) now"]
    assert caught[0].filename == __file__
    assert (made.vocabulary, made.allowed().ids.tolist()) == (None, [0])
    bound = constraint.matcher(VOCABULARY)
    assert (bound.vocabulary, bound.allowed().ids.tolist()) == (VOCABULARY, [0])


def test_an_old_tokenization_has_its_old_values() -> None:
    with pytest.deprecated_call():
        assert lt.OneOf(["a"]).tokenizations == "all"  # type: ignore[attr-defined]
    with pytest.deprecated_call():
        assert lt.OneOf(["a"], tokenize=lambda text: [0]).tokenizations == "canonical"  # type: ignore[attr-defined]


def test_old_keywords_reach_their_place() -> None:
    with pytest.deprecated_call():
        assert lt.Vocabulary.from_tokens([b"a"], eog_ids=[0]).end_tokens == [0]  # type: ignore[call-arg]
    with pytest.deprecated_call():
        assert VOCABULARY.replace(eog_ids=[1]).end_tokens == [1]  # type: ignore[call-arg]
    with pytest.deprecated_call():
        assert lt.Catalogue.from_codes([[0]]).walk(end=1).end == 1  # type: ignore[call-arg]
    with pytest.deprecated_call():
        lt.Batch(VOCABULARY, end=1)  # type: ignore[call-arg]
    with pytest.warns(DeprecationWarning, match="stop_at_end_tokens= now"):
        free = lt.Decoder(VOCABULARY, lt.Chain.greedy(), stop_at_eog=False)
    free.accept(2)
    assert not free.is_finished


def test_both_an_old_and_a_new_keyword_are_refused() -> None:
    with pytest.raises(TypeError, match="eog_ids= is end_tokens=: give one"):
        VOCABULARY.replace(eog_ids=[1], end_tokens=[1])  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ["shortest_ending", "certain_bytes", "explain", "count_closed"])
def test_a_matcher_needs_no_vocabulary(name: str) -> None:
    matcher = lt.OneOf(["ab"]).matcher(VOCABULARY)
    arguments: list[Any] = [[0]] if name == "count_closed" else []
    with pytest.warns(DeprecationWarning, match="vocabulary= is not needed"):
        told = getattr(matcher, name)(*arguments, vocabulary=VOCABULARY)
    assert str(told) == str(getattr(matcher, name)(*arguments))
    assert matcher.vocabulary == VOCABULARY
    assert decoder().matcher is not None and decoder().matcher.vocabulary == VOCABULARY  # type: ignore[union-attr]


class Bare:
    """A constraint of 0.1: it has no base class, and says what it can do by having it."""

    def matcher(self, vocabulary: lt.Vocabulary) -> lt.Matcher:
        """Of one text."""
        return lt.OneOf(["ab"]).matcher(vocabulary)

    def value(self, text: str, tokens: Any) -> str:
        """In capitals."""
        return text.upper()


def test_a_constraint_without_the_base_class_works_and_warns() -> None:
    with pytest.warns(DeprecationWarning, match="Bare is a constraint of 0.1: derive it from logitree.Constraint"):
        made = constraint_of(Bare())
    assert isinstance(made, lt.Constraint)
    assert made.value("ab", [0, 1]) == "AB" and made.answer_start([0], Context(VOCABULARY)) == 0
    assert made.bind(Context(VOCABULARY)).allowed().ids.tolist() == [0]
