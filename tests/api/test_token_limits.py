"""Parts of a grammar with a limit of tokens: counted token by token, over as soon as they may end."""

from __future__ import annotations

import random

import pytest

import logitree as lt

PIECES = ["ab", "abc", "</", "</t>", "a</t", ".<", "12", ">a"]
TOKENS = [*(bytes([byte]) for byte in range(256)), *(piece.encode() for piece in PIECES), b"</s>"]
END = len(TOKENS) - 1
VOCABULARY = lt.Vocabulary.from_tokens(TOKENS, end_tokens=[END])
TAG = lt.Grammar.structural_tag(
    {
        "type": "structural_tag",
        "format": {"type": "tag", "begin": "<t>", "content": {"type": "any_text", "max_tokens": 3}, "end": "</t>"},
    }
)


def ids(matcher: lt.Matcher) -> list[int]:
    return list(matcher.allowed().ids)


def spelled(matcher: lt.Matcher) -> list[bytes]:
    return sorted(TOKENS[token] for token in ids(matcher))


def accept(matcher: lt.Matcher, *tokens: str) -> None:
    matcher.accept_many([TOKENS.index(token.encode()) for token in tokens])


def test_the_part_ends_after_its_tokens() -> None:
    matcher = TAG.matcher(VOCABULARY)
    accept(matcher, "<", "t", ">")
    assert len(ids(matcher)) > 180
    accept(matcher, "abc", "<", "x")
    assert spelled(matcher) == [b"<", b"</", b"</t>"]
    matcher.rollback(1)
    assert len(ids(matcher)) > 180
    # An end that has begun in the part continues.
    accept(matcher, "<")
    assert spelled(matcher) == [b"/", b"<", b"</", b"</t>"]


def test_a_token_that_crosses_the_border_counts() -> None:
    matcher = TAG.matcher(VOCABULARY)
    accept(matcher, "<", "t", ">a", "b", "b")
    assert len(ids(matcher)) > 180  # the token in which it began does not count
    accept(matcher, "a</t")
    assert spelled(matcher) == [b"<", b"</", b"</t>", b">"]


def test_what_cannot_end_yet_goes_on_until_it_can() -> None:
    grammar = lt.Grammar.ebnf('root ::= five "!"\nfive[max_tokens=2] ::= [0-9]{5} [0-9]*')
    matcher = grammar.matcher(VOCABULARY)
    for count in range(5):
        assert b"!" not in spelled(matcher), count
        accept(matcher, "1")
    assert spelled(matcher) == [b"!"]


@pytest.mark.parametrize("seed", range(4))
def test_masks_after_a_rollback_are_those_of_a_new_matcher(seed: int) -> None:
    rnd = random.Random(seed)
    grammar = lt.Grammar.lark('start: (word ",")* "!"\nword[max_tokens=2]: /[ab12]*/')
    matcher, written = grammar.matcher(VOCABULARY), list[int]()
    for _ in range(200):
        if matcher.is_finished or (written and rnd.random() < 0.4):
            back = rnd.randrange(1, len(written) + 1)
            matcher.rollback(back)
            del written[-back:]
        written.append(rnd.choice(ids(matcher)))
        matcher.accept(written[-1])
        fresh = grammar.matcher(VOCABULARY)
        fresh.accept_many(written)
        assert fresh.is_finished == matcher.is_finished
        assert matcher.is_finished or ids(fresh) == ids(matcher.fork()) == ids(matcher)
        # No more than two tokens begin in a word.
        word = 0
        for token in written:
            word = 0 if b"," in TOKENS[token] else word + 1
            assert word <= 2 or b"!" in TOKENS[token]


def test_texts_have_no_tokens_to_count() -> None:
    assert TAG.matches("<t>a long text</t>")
    assert not TAG.matches("<t>a long text")


def test_a_composition_counts_too() -> None:
    word = lt.Grammar.lark("start: word\nword[max_tokens=2]: /[ab]*/")
    digits = lt.Grammar.regex("[12]+")
    for composed in (word + digits, lt.compose.both(word + digits, lt.Grammar.regex("[ab12]*"))):
        matcher = composed.matcher(VOCABULARY)
        accept(matcher, "a", "b")
        assert spelled(matcher) == [b"1", b"12", b"2"]


def test_no_tokens_are_no_text() -> None:
    none = lt.Grammar.lark('start: none "!"\nnone[max_tokens=0]: /[ab]+/')
    assert none.matches("!") and not none.matches("a!")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lt.Grammar.ebnf('root[max_tokens=3] ::= "(" root ")" | "x"'), "is no regular expression"),
        (lambda: lt.Grammar.ebnf("root[max_tokens=0] ::= [a-z]"), "`max_tokens` is 0"),
        (lambda: lt.Grammar.lark('start[max_tokens=3]: %json {"type": "string"}'), "which is no terminal"),
        (lambda: lt.Grammar.lark('start[max_tokens=x]: "a"'), "`max_tokens` is no number"),
        (
            lambda: lt.Grammar.lazy(lt.Grammar.ebnf('root ::= "<" name\nname[max_tokens=3] ::= [a-z]+'), words=["<ab"]),
            "counts tokens before the trigger",
        ),
    ],
)
def test_what_cannot_count_tokens_is_an_error(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(lt.ConstraintError, match=message):
        make()
