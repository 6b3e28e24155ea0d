"""Choices through the public API: both tokenisations, ends, following text, errors, long lists.

`crates/logitree/tests/it/constraint/laws.rs` holds every tokenisation of random texts to brute force.
"""

from __future__ import annotations

import pickle
import random
import time

import pytest

import logitree as lt
from logitree._constraint import Context

TOKENS = [b"A", b"B", b"L", b"AL", b"LL", b"ALL", b'"', b'L"', b'L" ', b"\xc3", b"\xa9", b"\xc3\xa9", b"</s>"]
END = 12
VOCABULARY = lt.Vocabulary.from_tokens(TOKENS, end_tokens=[END])


def takes(matcher: lt.Matcher, *ways: list[int]) -> bool:
    """Whether each of these lists of tokens ends the output."""
    forks = [matcher.fork() for _ in ways]
    for fork, tokens in zip(forks, ways, strict=True):
        fork.accept_many(tokens)
    return all(fork.is_finished for fork in forks)


def test_every_tokenisation() -> None:
    choices = lt.OneOf(["ALL", "B"])
    assert takes(choices.matcher(VOCABULARY), [5], [3, 2], [0, 4], [0, 2, 2], [1])
    assert (len(choices), choices.is_spelled) == (2, False)
    assert repr(choices) == "OneOf(['ALL', 'B'])"
    pieces = lt.OneOf([b"\xc3", "é"])
    assert pieces.texts == (b"\xc3", "é")
    assert takes(pieces.matcher(VOCABULARY), [9, END], [9, 10], [11])


def test_the_beginning_of_another_ends_by_end_tokens() -> None:
    assert takes(lt.OneOf(["A", "ALL"]).matcher(VOCABULARY), [0, END], [5])
    assert takes(lt.OneOf(["A", "ALL"]).matcher(VOCABULARY, end_tokens=[6]), [0, 6])
    nothing = lt.Vocabulary.from_tokens([b"A", b"L"])
    with pytest.raises(lt.ConstraintError, match=r'"A" is the beginning of "ALL".*end_tokens') as caught:
        lt.OneOf(["A", "ALL"]).matcher(nothing)
    assert "following" in caught.value.help
    with pytest.raises(lt.ConstraintError, match="end token 4 after choice"):
        lt.OneOf(["A", "ALL"]).matcher(VOCABULARY, end_tokens=[4])
    with pytest.raises(lt.ConstraintError, match="end token 99 is not in the vocabulary"):
        lt.OneOf(["A"]).matcher(VOCABULARY, end_tokens=[99])
    with pytest.raises(lt.ConstraintError, match='no tokens of the vocabulary spell the choice "B"'):
        lt.OneOf(["A", "B"]).matcher(nothing)


def test_following_text_merges_with_the_end_of_a_value() -> None:
    choices = lt.OneOf(["AL", "ALL"], following='"').matcher(VOCABULARY)
    assert takes(choices, [3, 6], [3, 7], [5, 6], [0, 2, 2, 6])
    choices.accept(3)
    assert not choices.is_accepting and not choices.is_allowed(8)


def test_canonical_only() -> None:
    def tokenize(text: str) -> list[int]:
        return {"ALL": [5], "A": [0], 'ALL"': [3, 7], 'A"': [0, 6], "B": [0]}[text]

    choices = lt.OneOf(["ALL", "A", "A"], tokenize=tokenize).matcher(VOCABULARY)
    assert list(choices.allowed()) == [0, 5] and takes(choices, [5], [0])
    choices = lt.OneOf(["ALL", "A"], tokenize=tokenize, following='"').matcher(VOCABULARY)
    assert list(choices.allowed()) == [0, 3] and takes(choices, [3, 7], [0, 6])
    with pytest.raises(lt.ConstraintError, match='tokens given for choice "B" spell "A"'):
        lt.OneOf(["B"], tokenize=tokenize).matcher(VOCABULARY)
    with pytest.raises(KeyError):
        lt.OneOf(["Z"], tokenize=tokenize).matcher(VOCABULARY)


def test_the_option_of_0_1_warns_and_means_what_it_meant() -> None:
    with pytest.warns(DeprecationWarning, match='give tokenize alone, or generate\\(tokenization="canonical"\\)'):
        old = lt.OneOf(["ALL"], tokenizations="canonical", tokenize=lambda text: [5])
    assert takes(old.matcher(VOCABULARY), [5]) and list(old.matcher(VOCABULARY).allowed()) == [5]
    with pytest.warns(DeprecationWarning, match="goes with the next release: leave it out"):
        assert lt.OneOf(["A"], tokenizations="all") == lt.OneOf(["A"])
    with pytest.warns(DeprecationWarning, match="give tokenize alone"):
        engines = lt.OneOf(["ALL"], tokenizations="canonical")
    with pytest.warns(DeprecationWarning, match="is_spelled"):
        assert engines.tokenizations == "canonical"
    assert engines.is_spelled and engines != lt.OneOf(["ALL"]) and pickle.loads(pickle.dumps(engines)) == engines
    context = Context(VOCABULARY, lambda text: [0, 4])
    assert list(engines.bind(context).allowed()) == [0]
    with pytest.raises(lt.ConstraintError, match="needs tokenize"):
        engines.matcher(VOCABULARY)
    with pytest.raises(lt.ConstraintError, match="spells each value in one way"):
        lt.OneOf(["A"], tokenizations="all", tokenize=lambda text: [0])
    with pytest.raises(lt.ConstraintError, match="tokenizations is 'some'"):
        lt.OneOf(["A"], tokenizations="some")  # type: ignore[arg-type]


def test_special_tokens_spell_nothing() -> None:
    with pytest.raises(lt.ConstraintError, match="</s>"):
        lt.OneOf(["</s>"]).matcher(VOCABULARY)


@pytest.mark.parametrize(
    ("texts", "error"),
    [([], "nothing to choose from"), ([""], "only choice is empty"), (["", ""], "only choice is empty")],
)
def test_nothing_to_choose(texts: list[str], error: str) -> None:
    with pytest.raises(lt.ConstraintError, match=error):
        lt.OneOf(texts).matcher(VOCABULARY)


def test_what_is_no_list_of_texts() -> None:
    with pytest.raises(TypeError, match="a list of texts"):
        lt.OneOf("ALL").matcher(VOCABULARY)
    with pytest.raises(TypeError, match="has no plain text"):
        lt.OneOf([object()])
    with pytest.raises(lt.ConstraintError, match="surrogate"):
        lt.OneOf(["\ud800"]).matcher(VOCABULARY)


BYTES = lt.Vocabulary.from_tokens([bytes([b]) for b in range(256)] + [b"aa", b"a" * 8, b"</s>"], end_tokens=[258])


def test_a_hundred_thousand_choices() -> None:
    numbers = random.Random(0)
    texts = [f"item {numbers.randrange(10**9)} of {i}" for i in range(100_000)]
    start = time.perf_counter()
    matcher = lt.OneOf(texts).matcher(BYTES)
    for byte in texts[77_777].encode():
        matcher.accept(byte)
    assert matcher.is_finished
    assert time.perf_counter() - start < 20, "bounded time, on a machine that does other things too"


def test_a_choice_of_a_megabyte() -> None:
    matcher = lt.OneOf(["a" * 1_000_000 + "b", "c"]).matcher(BYTES)
    for _ in range(125_000):
        matcher.accept(257)
    assert matcher.forced_tokens() == [ord("b")]
    with pytest.raises(lt.LimitError, match="16777216"):
        lt.OneOf(["x" * 1000, *map(str, range(20_000))], following="y" * 1000).matcher(BYTES)
