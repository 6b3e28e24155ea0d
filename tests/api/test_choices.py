"""Choices through the public API: all tokenisations, the canonical one, ends, following text, long lists."""

from __future__ import annotations

import itertools
import random
import time

import pytest

import logitree as lt

TOKENS = [b"A", b"B", b"L", b"AL", b"LL", b"ALL", b'"', b'L"', b'L" ', b"\xc3", b"\xa9", b"\xc3\xa9", b"</s>"]
END = 12
VOCABULARY = lt.Vocabulary.from_tokens(TOKENS, eog_ids=[END])


def spellings(matcher: lt.Matcher) -> set[tuple[int, ...]]:
    """Every way through a matcher, by trying them all; end tokens included."""
    found: set[tuple[int, ...]] = set()
    todo: list[tuple[lt.Matcher, tuple[int, ...]]] = [(matcher, ())]
    while todo:
        at, tokens = todo.pop()
        if at.is_finished:
            found.add(tokens)
            continue
        allowed = at.allowed()
        assert allowed, "a dead end"
        for token in allowed:
            on = at.fork()
            on.accept(token)
            todo.append((on, (*tokens, token)))
    return found


def every_split(text: bytes) -> set[tuple[int, ...]]:
    """Every sequence of text tokens whose bytes are ``text``, by trying all sequences."""
    texts = [(i, t) for i, t in enumerate(TOKENS) if i != END]
    found: set[tuple[int, ...]] = set()
    for n in range(1, len(text) + 1):
        for sequence in itertools.product(texts, repeat=n):
            if b"".join(t for _, t in sequence) == text:
                found.add(tuple(i for i, _ in sequence))
    return found


def test_every_tokenisation() -> None:
    choices = lt.OneOf(["ALL", "B"])
    assert spellings(choices.matcher(VOCABULARY)) == every_split(b"ALL") | {(1,)}
    assert (len(choices), choices.tokenizations) == (2, "all")
    assert repr(choices) == "OneOf(['ALL', 'B'])"


def test_bytes_and_characters_of_several_tokens() -> None:
    assert spellings(lt.OneOf(["é"]).matcher(VOCABULARY)) == {(9, 10), (11,)}
    choices = lt.OneOf([b"\xc3", "é"])
    assert choices.texts == (b"\xc3", "é")
    assert spellings(choices.matcher(VOCABULARY)) == {(9, END), (9, 10), (11,)}


def test_the_beginning_of_another_ends_by_end_tokens() -> None:
    choices = lt.OneOf(["A", "ALL"]).matcher(VOCABULARY)
    assert spellings(choices.fork()) == {(0, END)} | every_split(b"ALL")
    chosen = lt.OneOf(["A", "ALL"]).matcher(VOCABULARY, end_tokens=[6])
    assert (0, 6) in spellings(chosen.fork())
    nothing = lt.Vocabulary.from_tokens([b"A", b"L"])
    with pytest.raises(lt.ConstraintError, match=r'"A" is the beginning of "ALL".*end_tokens') as caught:
        lt.OneOf(["A", "ALL"]).matcher(nothing)
    assert "following" in caught.value.help
    with pytest.raises(lt.ConstraintError, match="end token 4 after choice"):
        lt.OneOf(["A", "ALL"]).matcher(VOCABULARY, end_tokens=[4])
    with pytest.raises(lt.ConstraintError, match="end token 99 is not in the vocabulary"):
        lt.OneOf(["A"]).matcher(VOCABULARY, end_tokens=[99])


def test_following_text_merges_with_the_end_of_a_value() -> None:
    choices = lt.OneOf(["AL", "ALL"], following='"').matcher(VOCABULARY)
    expected = every_split(b'AL"') | every_split(b'ALL"')
    assert spellings(choices.fork()) == expected
    assert any(7 in tokens for tokens in expected), "a token that holds a value's end and the quote"
    assert not any(8 in tokens for tokens in expected), "one that goes past the end of what follows"
    assert choices.fork().is_accepting is False


def test_canonical_only() -> None:
    def tokenize(text: str) -> list[int]:
        return {"ALL": [5], "A": [0], 'ALL"': [3, 7], 'A"': [0, 6], "B": [0]}[text]

    choices = lt.OneOf(["ALL", "A", "A"], tokenizations="canonical", tokenize=tokenize).matcher(VOCABULARY)
    assert spellings(choices.fork()) == {(5,), (0,)}, "no token list is the beginning of another"
    choices = lt.OneOf(["ALL", "A"], tokenizations="canonical", tokenize=tokenize, following='"').matcher(VOCABULARY)
    assert spellings(choices.fork()) == {(3, 7), (0, 6)}
    with pytest.raises(lt.ConstraintError, match='tokens given for choice "B" spell "A"'):
        lt.OneOf(["B"], tokenizations="canonical", tokenize=tokenize).matcher(VOCABULARY)
    with pytest.raises(lt.ConstraintError, match="needs tokenize"):
        lt.OneOf(["A"], tokenizations="canonical").matcher(VOCABULARY)
    with pytest.raises(lt.ConstraintError, match="tokenize is for canonical"):
        lt.OneOf(["A"], tokenize=tokenize).matcher(VOCABULARY)
    with pytest.raises(lt.ConstraintError, match='"all" or "canonical"'):
        lt.OneOf(["A"], tokenizations="some")  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        lt.OneOf(["Z"], tokenizations="canonical", tokenize=tokenize).matcher(VOCABULARY)


def test_dead_ends_are_never_entered() -> None:
    vocabulary = lt.Vocabulary.from_tokens([b"a", b"ab", b"b", b"bc", b"d"])
    # "abc" is a+bc only: after "ab" no token gives "c".
    assert spellings(lt.OneOf(["abc", "d"]).matcher(vocabulary)) == {(0, 3), (4,)}
    with pytest.raises(lt.ConstraintError, match='no tokens of the vocabulary spell the choice "ac"'):
        lt.OneOf(["ac", "d"]).matcher(vocabulary)


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


def test_the_empty_choice_is_one_like_any_other() -> None:
    assert spellings(lt.OneOf(["", "B"]).matcher(VOCABULARY)) == {(END,), (1,)}
    assert spellings(lt.OneOf(["", "B"], following='"').matcher(VOCABULARY)) == {(6,), (1, 6)}


def test_what_is_no_list_of_texts() -> None:
    with pytest.raises(TypeError, match="a list of texts"):
        lt.OneOf("ALL").matcher(VOCABULARY)
    with pytest.raises(TypeError, match="has no plain text"):
        lt.OneOf([object()])
    with pytest.raises(lt.ConstraintError, match="surrogate"):
        lt.OneOf(["\ud800"]).matcher(VOCABULARY)


BYTES = lt.Vocabulary.from_tokens([bytes([b]) for b in range(256)] + [b"aa", b"a" * 8, b"</s>"], eog_ids=[258])


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
