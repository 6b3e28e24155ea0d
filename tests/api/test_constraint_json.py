"""The JSON form of constraints: what Python writes the core reads, and it allows the same."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import logitree as lt
from logitree import compose
from logitree import skeleton as sk
from logitree._constraint import constraint_of
from table_engine import TableEngine

VOCABULARY = TableEngine().vocabulary
REPOSITORY = Path(__file__).resolve().parents[2]
PAYLOAD = (
    '{"descriptors": [{"path": "p", "leaves": [{"name": "a", "tokens": [97]}, {"name": "ab", "tokens": [97, 98]}]}]}'
)

WRITTEN: dict[str, Callable[[], Any]] = {
    "choices": lambda: lt.OneOf(["yes", "no", "yesterday"], following="."),
    "values": lambda: [1, True, None, "x"],
    "spelled": lambda: lt.OneOf(["ab", "b"], tokenize=lambda text: list(text.encode())),
    "grammar": lambda: lt.Grammar.regex("[a-c]{2,3}") + "!",
    "type": lambda: int,
    "schema": lambda: {"type": "object", "properties": {"a": {"type": "boolean"}}},
    "sequence": lambda: lt.OneOf(["a", "b"], tokenize=lambda text: list(text.encode())) + lt.Grammar.regex("[0-9]"),
    "either": lambda: compose.either(lt.Grammar.literal("xy"), sk.Skeleton("a: ", sk.string(max_length=3))),
    "both": lambda: lt.Grammar.regex("[a-z]+") & lt.Grammar.regex("[a-f]{2}"),
    "repeat": lambda: compose.repeat(lt.Grammar.regex("a|bc") & lt.Grammar.regex("[abc]+"), 1, 3),
    "until": lambda: compose.until(lt.Grammar.literal("."), lt.Grammar.regex("[a-z ]*")),
    "ban": lambda: compose.ban(lt.Grammar.regex("[a-d]+"), words=["bad"], tokens=[[97, 98]]),
    "at_least": lambda: compose.at_least(3, lt.Grammar.regex("[a-d]+")),
    "at_most": lambda: compose.at_most(3, lt.Grammar.regex("[a-d]+")),
    "reasoning": lambda: lt.ReasoningBudget([1], [[2, 3], [4]], budget=5, message=[7]) + lt.OneOf(["A"]),
    "one block": lambda: lt.ReasoningBudget([1], 2, inside=True, budget=6, soft_budget=2),
    "token tree": lambda: lt.elizaos.token_tree(PAYLOAD),
    "path": lambda: lt.elizaos.token_tree(PAYLOAD).at("p", following="!"),
    "skeleton": lambda: lt.Skeleton.object({"a": ["SEND", "STOP"], "b": bool}),
}


def same(one: lt.Constraint, other: lt.Constraint, seed: int) -> None:
    """Both allow the same tokens along a text of the first."""
    rng, left, right = random.Random(seed), one.matcher(VOCABULARY), other.matcher(VOCABULARY)
    for _ in range(24):
        assert left.is_accepting == right.is_accepting and left.is_finished == right.is_finished
        assert left.allowed().mask().tolist() == right.allowed().mask().tolist()
        if left.is_finished:
            return
        token = rng.choice(list(left.allowed()))
        left.accept(token)
        right.accept(token)


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_is_read_again(name: str) -> None:
    constraint = constraint_of(WRITTEN[name]())
    text = constraint.form()
    read = lt.Constraint.from_form(text)
    for seed in range(4):
        same(constraint, read, seed)
    assert json.loads(read.form()) == json.loads(lt.Constraint.from_form(read.form()).form())


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_read_is_a_value(name: str) -> None:
    text = constraint_of(WRITTEN[name]()).form()
    read, again = lt.Constraint.from_form(text), lt.Constraint.from_form(text.encode())
    assert isinstance(read, lt.Constraint) and read == again and hash(read) == hash(again)
    assert read != lt.Constraint.from_form('{"type": "regex", "pattern": "other"}')
    assert pickle.loads(pickle.dumps(read)) == read
    assert (read | ["x"]).matcher(VOCABULARY).is_allowed(ord("x")), "it has the operators"


def test_a_grammar_comes_back_as_a_grammar() -> None:
    read = lt.Constraint.from_form('{"type": "regex", "pattern": "[0-9]{2}"}')
    assert isinstance(read, lt.Grammar) and read.matches("42") and read == lt.Grammar.regex("[0-9]{2}")


def test_the_documents_examples_are_read() -> None:
    text = (REPOSITORY / "docs" / "c.md").read_text(encoding="utf-8").partition("## Constraints as JSON")[2]
    lines = text.partition("```json\n")[2].partition("```")[0].splitlines()
    lines = [line for line in lines if json.loads(line)["type"] not in ("catalogue", "canonical")]
    assert len(lines) > 15
    for line in lines:
        lt.Constraint.from_form(line)


def test_a_catalogue_is_named_by_its_path(tmp_path: Path) -> None:
    catalogue = lt.Catalogue.from_codes([[97, 98], [97, 99], [100]], path=tmp_path / "items.index")
    for constraint in (catalogue, catalogue & lt.Grammar.regex("a.")):
        read = lt.Constraint.from_form(constraint.form())
        for seed in range(3):
            same(constraint, read, seed)
    with pytest.raises(lt.ConstraintError, match="in memory has no JSON form"):
        lt.Catalogue.from_codes([[1]]).form()
    with pytest.raises(lt.ConstraintError, match="have no JSON form"):
        catalogue.constraint(allowed=[0]).form()
    form = json.loads(catalogue.form()) | {"index": str(tmp_path / "no such file")}
    with pytest.raises(FileNotFoundError):
        lt.Constraint.from_form(json.dumps(form))


@pytest.mark.parametrize(
    "constraint",
    [
        lt.Recogniser(list),
        lt.OneOf([b"\xff"]),
        lt.OneOf(["a"]).matcher(VOCABULARY),
        lt.ReasoningBudget(tokenize=lambda text: [1]),
        lt.Skeleton("a").prefill(),
        lt.Recogniser(list) + lt.Grammar.literal("a"),
        lt.ReasoningBudget() + lt.Recogniser(list),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_has_no_form_says_so(constraint: lt.Constraint) -> None:
    with pytest.raises(lt.ConstraintError, match="no JSON form"):
        constraint.form()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"type": "nothing"}', "one of choices"),
        ('{"type": "either", "of": [{"type": "regex", "pattern": "["}]}', "/of/0"),
        ('{"type": "regex", "pattern": "a", "flags": 1}', "flags"),
        ("[", "JSON"),
        ("[" * 100_000, "JSON"),
    ],
)
def test_a_wrong_form_is_an_error_with_its_place(text: str, message: str) -> None:
    with pytest.raises(lt.LogitreeError, match=message):
        lt.Constraint.from_form(text)
    with pytest.raises(TypeError):
        lt.Constraint.from_form({})  # type: ignore[arg-type]


def test_ids_are_checked_against_a_vocabulary() -> None:
    text = (
        '{"type": "token_tree", "payload": {"descriptors": [{"path": "p", "leaves": [{"name": "a", "tokens": [98]}]}]}}'
    )
    lt.Constraint.from_form(text)
    with pytest.raises(lt.PayloadError):
        lt.Constraint.from_form(text, vocabulary=VOCABULARY)
