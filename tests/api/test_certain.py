"""Text that is certain: `Matcher.certain_bytes` and `count_closed`, for constraints of every kind."""

from __future__ import annotations

from typing import Any

import pytest

import logitree as lt
from logitree._constraint import bind

TOKENS = [bytes([b]) for b in range(256)] + [b'":', b' "', b'""', b"rue", b"al", b"</s>"]
VOCABULARY = lt.Vocabulary.from_tokens(TOKENS, end_tokens=[len(TOKENS) - 1])
OBJECT = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "ok": {"type": "boolean"}},
    "required": ["name", "ok"],
    "additionalProperties": False,
}
COMPACT = lt.Grammar.json_schema(OBJECT, whitespace="compact")

CERTAIN = [
    (COMPACT, "", b'{"name":"', False),
    (COMPACT, '{"na', b'me":"', False),
    (COMPACT, '{"name":"x', b"", False),
    (COMPACT, '{"name":"x"', b',"ok":', False),
    (COMPACT, '{"name":"x","ok":t', b"rue}", True),
    (COMPACT, '{"name":"x","ok":true}', b"", True),
    (["REPLY", "REPLY_THREAD", "REPEAT"], "", b"REP", False),
    (["REPLY", "REPLY_THREAD", "REPEAT"], "REPL", b"Y", True),
    (["REPLY", "REPLY_THREAD", "REPEAT"], "REPLY_", b"THREAD", True),
    (lt.OneOf(["ä", "ö"]), "", b"\xc3", False),
    (lt.Grammar.regex("(ab){3}c?"), "a", b"babab", True),
    (lt.Grammar.regex("x") + lt.Grammar.regex("yz*"), "", b"xy", True),
]


@pytest.mark.parametrize(("constraint", "begun", "certain", "complete"), CERTAIN, ids=lambda one: repr(one)[:24])
def test_certain_bytes(constraint: Any, begun: str, certain: bytes, complete: bool) -> None:
    matcher = bind(constraint, VOCABULARY)
    matcher.accept_many(begun.encode())
    for _ in range(2):
        assert matcher.certain_bytes() == (certain, complete)
    for most in range(len(certain)):
        assert matcher.certain_bytes(max_bytes=most) == (certain[:most], False)


def test_a_matcher_without_a_vocabulary_asks_for_it_and_checks_it() -> None:
    matcher = lt.Catalogue.from_codes([[97, 98]]).walk(len(VOCABULARY)).matcher()
    with pytest.raises(lt.ConstraintError, match="does not know its vocabulary"):
        matcher.certain_bytes()
    with pytest.raises(lt.ConstraintError, match="does not know its vocabulary"):
        matcher.count_closed([97])
    small = lt.Vocabulary.from_tokens([b"a", b"b"])
    with pytest.warns(DeprecationWarning, match="vocabulary="), pytest.raises(lt.ConstraintError, match="has 2"):
        matcher.certain_bytes(small)
    with pytest.warns(DeprecationWarning, match="vocabulary="):
        assert matcher.certain_bytes(VOCABULARY) == (b"ab", True)
    own = lt.Decoder(VOCABULARY, lt.Chain.greedy(), ["ab"]).matcher
    assert own is not None and own.certain_bytes() == (b"ab", True)


def test_tokens_that_a_longer_one_could_replace_are_open() -> None:
    matcher = COMPACT.matcher(VOCABULARY)
    begun = [*b'{"name', TOKENS.index(b'":'), ord('"')]
    assert matcher.count_closed(begun) == len(begun) - 1, 'the token `""` begins with the last one'
    assert matcher.count_closed(begun[:-1]) == len(begun) - 1
    assert matcher.count_closed(b'{"name"') == 6, 'so does `":` with this one'
    assert matcher.count_closed([*b"{x", 9, 9]) == 1, "what is refused is not counted"
    assert (matcher.count_closed([]), matcher.accepted) == (0, 0)


def test_a_decoder_says_what_is_vetoed() -> None:
    decoder = lt.Decoder(VOCABULARY, lt.Chain.greedy(), ["ab"])
    assert not decoder.vetoes(97)
    decoder.steer([(97, float("-inf"))])
    assert (decoder.vetoes(97), decoder.vetoes(98), decoder.take_forced()) == (True, False, [])
