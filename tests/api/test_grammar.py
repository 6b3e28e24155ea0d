"""Grammars as values: what they say, how they are joined, compared and pickled, and how they refuse."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import random
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

import logitree as lt
from grammars import small, tokens_of

G = lt.Grammar
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 5}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}

SAYS = [
    (G.regex(r"[a-z]+\d{2,3}"), ["ab12", "z123"], ["", "ab1", "ab1234", "xab12 "]),
    (G.gbnf('root ::= "a" root "b" | "x"'), ["x", "aaxbb"], ["ab", "axbb"]),
    (G.gbnf('top ::= "y"', "top"), ["y"], ["top", ""]),
    (G.ebnf('root ::= Regex("[a-z]") tail\ntail[max_chars=2] ::= [0-9]*'), ["a", "a12"], ["", "a123"]),
    (G.ebnf('top ::= TagDispatch(("<", top), excludes=("!",))', "top"), ["", "x", "x<<"], ["!"]),
    (G.lark('start: a::0\na::_: "x" a::incr(_) %if lt(_, 2)\n | "y" %if eq(_, 2)'), ["xxy"], ["y", "xy", "xxxy"]),
    (G.lark('start: a "!"\na[stop=/[!?]/]: /[a-z!?]*/'), ["ab!", "!"], ["a?!", "a!!"]),
    (G.lark('start: "a" B+\nB: /[bc]/'), ["abc", "ab"], ["a", "bc"]),
    (G.lark("start: @x @y", grammars={"x": G.regex("[0-9]"), "y": "!"}), ["7!"], ["!7"]),
    (G.json_schema(PERSON), ['{"name": "é", "age": 3}', '{"name":"","age":0}'], ["{}", '{"age":0,"name":""}']),
    (G.json_schema(json.dumps(PERSON), order="any"), ['{"age":0,"name":""}'], ['{"age":-1,"name":""}']),
    (G.json_schema(True), ["1", '{"a": [null, -2.5e3]}'], ["", "[1,]"]),
    (G.json(), ['"x"', "[true]"], ["tru", "'x'"]),
    (G.json(whitespace="compact"), ["[1,2]"], ["[1, 2]"]),
    (G.json(ascii=True), ['"\\u00e9"'], ['"é"']),
    (G.json(whitespace="free"), [' {"a" :[ 1]}\n', "\t1 "], [" ", "1 1"]),
    (G.json(), ['{"\\u00e9": 1}', '{"a\\/b": 1}'], ['{"\\x": 1}']),
    (G.of(dict[str, int]), ['{"\\u00e9": 1, "é": 2}'], ['{"\\u00e9": "1"}']),
    (G.json_schema({"enum": ["é", "a"]}), ['"é"', '"\\u00e9"', '"a"'], ['"\\u0061"', '"e"']),
    (
        G.json_schema({"properties": {"é": {"const": 1}}, "required": ["é"], "additionalProperties": {"const": 2}}),
        ['{"é": 1}', '{"\\u00e9": 1, "\\u0065": 2}'],
        ['{"\\u00E9": 2}', '{"\\u00e9": 1, "\\u00E9": 2}', '{"\\u0065": 2}'],
    ),
    (
        G.lark('start: %json {"x-guidance": {"whitespace_flexible": false}, "type": "object"}'),
        ['{"a":1}'],
        ['{"a": 1}', '{ "a":1}'],
    ),
    (G.literal("é\n"), ["é\n"], ["é", ""]),
    (G.literal(""), [""], ["x"]),
    (G.choice(["cat", "cattle"]), ["cat", "cattle"], ["catt", ""]),
    (G.text(), ["", "anything\n"], []),
    ("<" + G.regex("[a-c]*") + ">", ["<>", "<abc>"], ["<d>", "<"]),
    (G.literal("a") | "b" | "c", ["a", "b", "c"], ["", "ab"]),
    ("x" | G.literal("y"), ["x", "y"], ["xy"]),
    (G.literal("ab").repeat(2, 3), ["abab", "ababab"], ["ab", "abababab"]),
    (G.literal("ab").repeat(), ["", "ab", "ab" * 50], ["aba"]),
    (G.literal("ab").optional() + "!", ["!", "ab!"], ["abab!"]),
    (G.recursive(lambda me: "(" + me + ")" | G.literal("x")), ["x", "((x))"], ["((x)", "()"]),
    (G.recursive(lambda me: G.literal("[") + (me + G.literal(",")).repeat() + "]"), ["[]", "[[],[[],],]"], ["[[]]"]),
]


@pytest.mark.parametrize(("grammar", "yes", "no"), SAYS, ids=[repr(grammar)[:40] for grammar, _, _ in SAYS])
def test_a_grammar_takes_its_texts_and_no_others(grammar: lt.Grammar, yes: list[str], no: list[str]) -> None:
    for text in yes:
        assert grammar.matches(text), text
        assert grammar.matches(text.encode()), text
    for text in no:
        assert not grammar.matches(text), text
    vocabulary = small()
    for text in yes:
        matcher = grammar.matcher(vocabulary)
        matcher.accept_many(tokens_of(vocabulary, text))
        assert matcher.is_accepting, text


@pytest.mark.parametrize("grammar", [grammar for grammar, _, _ in SAYS], ids=repr)
def test_a_grammar_pickles_by_its_source(grammar: lt.Grammar) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(grammar, protocol))
        assert again == grammar
        assert hash(again) == hash(grammar)
    assert copy.deepcopy(grammar) == grammar
    assert repr(again) == repr(grammar)


def test_grammars_are_equal_by_what_they_were_made_from() -> None:
    assert G.regex("a+") == G.regex("a+") != G.regex("aa*")
    assert G.literal("a") + "b" != G.literal("ab")
    assert G.json_schema({"a": 1}) != G.json_schema({"a": 1}, order="any")
    nested = [G.recursive(lambda me: "(" + me + ")" | G.literal("x")) for _ in range(2)]
    assert nested[0] == nested[1]
    assert nested[0] + nested[0] == nested[1] + nested[1]
    assert len({G.regex("a"), G.regex("a"), G.literal("a")}) == 2
    assert G.literal("a") != "a"


def test_what_is_no_grammar_is_not_joined() -> None:
    assert repr(["x"] | G.literal("a")) == "either(OneOf(['x']), Grammar.literal('a'))"
    for wrong in (1, None, b"x"):
        with pytest.raises(TypeError):
            G.literal("a") + wrong
        with pytest.raises(TypeError):
            wrong | G.literal("a")
    with pytest.raises(TypeError, match="not one text"):
        G.choice("abc")
    with pytest.raises(TypeError, match="not a grammar"):
        G.recursive(lambda me: 3)
    with pytest.raises(ZeroDivisionError):
        G.recursive(lambda me: 1 / 0)
    for make in (G.regex, G.gbnf, G.literal):
        with pytest.raises(TypeError):
            make(b"x")
    with pytest.raises(lt.ConstraintError, match="surrogate"):
        G.literal("\ud800")


def test_errors_say_where_and_what_to_do() -> None:
    with pytest.raises(lt.ConstraintError) as refused:
        G.gbnf('root ::= item\nitems ::= "x" [z-a]')
    assert refused.value.place == "1:10"
    assert 'did you mean "items"?' in str(refused.value)
    assert "2 problems" in str(refused.value)
    with pytest.raises(lt.ConstraintError) as refused:
        G.json_schema({"properties": {"a": {"type": "text", "minimum": "3"}}})
    assert refused.value.place == "#/properties/a/type"
    assert "#/properties/a/minimum" in str(refused.value)
    with pytest.raises(lt.ConstraintError) as refused:
        G.regex("a(b")
    assert refused.value.place
    with pytest.raises(lt.ConstraintError):
        G.json_schema("{")
    with pytest.raises(lt.ConstraintError):
        G.json_schema(b"\xff")


def test_options_are_named_in_full() -> None:
    for wrong in ({"order": "Any"}, {"whitespace": ""}, {"draft": "5"}):
        with pytest.raises(lt.ConstraintError, match="expected one of"):
            G.json_schema(True, **wrong)
    with pytest.raises(lt.ConstraintError, match="give a max that is at least min"):
        G.literal("a").repeat(3, 2)
    with pytest.raises(OverflowError):
        G.literal("a").repeat(-1)


def test_documents_are_what_references_lead_to() -> None:
    documents = {
        "https://example.test/age": {"type": "integer", "maximum": 9},
        "https://example.test/no": '{"not": {}}',
    }
    grammar = G.json_schema({"$ref": "https://example.test/age"}, documents=documents)
    assert grammar.matches("9")
    assert not grammar.matches("10")
    assert pickle.loads(pickle.dumps(grammar)) == grammar
    with pytest.raises(lt.ConstraintError, match=r"example\.test/age"):
        G.json_schema({"$ref": "https://example.test/age"})


def test_separators_are_as_given() -> None:
    grammar = G.json_schema({"type": "array", "items": {"type": "integer"}}, separators=(" ,", ":"))
    assert grammar.matches("[1 ,2 ,3]")
    assert not grammar.matches("[1,2]")


def test_lenient_drops_with_a_warning_each() -> None:
    schema = {"properties": {"a": {"$ref": "#/nowhere"}, "b": {"$ref": "#/there"}}}
    with pytest.raises(lt.ConstraintError):
        G.json_schema(schema)
    with pytest.warns(lt.SchemaWarning) as caught:
        grammar = G.json_schema(schema, lenient=True)
    assert [str(w.message) for w in caught] == grammar.warnings
    assert len(grammar.warnings) == 2
    assert caught[0].filename == __file__
    assert ("x" + grammar).warnings == grammar.warnings
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(lt.SchemaWarning):
            G.json_schema(schema, lenient=True)
        pickle.loads(pickle.dumps(grammar))  # a warning that was shown is not repeated
    assert G.json_schema(True).warnings == []


def test_a_grammar_without_a_text_is_refused_when_it_is_bound() -> None:
    vocabulary = small()
    for grammar in (G.choice([]), G.recursive(lambda me: "(" + me), G.regex("[]")):
        with pytest.raises(lt.ConstraintError, match="no finite text"):
            grammar.matcher(vocabulary)


@pytest.mark.parametrize(
    "grammar",
    [
        G.regex(r"[^\s\S]"),
        G.regex(r"a(?!.*)."),
        G.choice([]),
        G.literal("a") + G.regex(r"[^\s\S]"),
        G.regex(r"[^\s\S]").repeat(2, 3),
        G.recursive(lambda me: "(" + me),
        G.gbnf('root ::= "x" root'),
        G.lark('start: "a" B\nB: "x" & "y"'),
        G.lark('%ignore " "\nstart: %lark { start: "a" start }'),
        G.lark('%llguidance {"allow_initial_skip": true}\n%ignore " "\nstart: a\na[lazy]: /[^\\s\\S]/'),
        G.tags([("<a>", G.regex(r"[^\s\S]"), "</a>")], at_least_one=True),
        G.structural_tag({"type": "regex", "pattern": r"[^\s\S]"}),
    ],
    ids=repr,
)
def test_what_matches_nothing_is_told_without_inner_names(grammar: lt.Grammar) -> None:
    with pytest.raises(lt.ConstraintError, match="no finite text matches") as caught:
        grammar.matcher(small())
    said = str(caught.value)
    assert "~" not in said, said
    if repr(grammar).startswith("Grammar.regex") and "repeat" not in repr(grammar):
        assert "rule" not in said, said
        assert "the pattern" in said, said


def test_quotations_of_long_texts_stay_within_the_fuel() -> None:
    generator = random.Random(3)
    words = ["".join(generator.choices("etaoinshrdlu", k=generator.randrange(2, 9))) for _ in range(2_500)]
    text = " ".join(words)
    for of, inside, outside in (
        ({"substring_chars": text[:6_000]}, text[2_001:2_020], text[2_001:2_020] + "#"),
        ({"substring_words": text}, " ".join(words[70:75]), text[1:40]),
        ({"substring_chars": "ab" * 500}, "baba", "aa"),
    ):
        grammar = G.lark(f"start: %regex {json.dumps(of)}")
        grammar.matcher(small())
        assert grammar.matches(inside)
        assert not grammar.matches(outside)


def test_a_name_outside_of_its_grammar_is_refused() -> None:
    names: list[lt.Grammar] = []
    G.recursive(lambda me: names.append(me) or G.literal("x"))
    with pytest.raises(lt.ConstraintError, match="outside"):
        names[0].matches("x")


def test_deep_and_wide_grammars() -> None:
    chain = G.literal("a")
    for _ in range(5_000):
        chain += "a"
    assert chain.matches("a" * 5_001)
    doubled = G.literal("a") | "b"
    for _ in range(12):
        doubled += doubled
    assert doubled.matches("ab" * 2_048)
    assert len(pickle.dumps(doubled)) < 100_000

    def nest() -> lt.Grammar:
        deep = chain
        for _ in range(500):
            deep = deep.repeat(0, 1) + "b"
        return deep

    with pytest.raises(lt.LimitError, match="deep"):
        nest()


def test_token_terminals() -> None:
    vocabulary = small()
    think = vocabulary.find(b"<think>")[0]
    named = G.token("<think>") + G.literal("ab") + G.token(65)
    matcher = named.matcher(vocabulary)
    assert list(matcher.allowed()) == [think]
    matcher.accept_many([think, *tokens_of(vocabulary, "ab"), 65])
    assert matcher.is_finished
    for wrong in (G.token("<nothing>"), G.token(10_000)):
        with pytest.raises(lt.ConstraintError):
            wrong.matcher(vocabulary)
    with pytest.raises(lt.TokenError):
        G.token(-1)
    with pytest.raises(lt.ConstraintError):
        named.matches("<think>ab")


def test_limits_are_errors_of_their_own() -> None:
    vocabulary = small()
    grammar = G.json_schema(PERSON)
    with pytest.raises(lt.LimitError):
        grammar.matcher(vocabulary, fuel=1).allowed().mask()
    assert grammar.matcher(vocabulary).allowed().mask().any()
    assert grammar.memory(vocabulary) > 0


def test_matchers_share_what_they_find_out_and_bindings_die() -> None:
    vocabulary = small()
    grammar = G.json_schema(PERSON)
    first = grammar.matcher(vocabulary)
    first.allowed().mask()
    held = grammar.memory(vocabulary)
    for _ in range(50):
        grammar.matcher(vocabulary).allowed().mask()
    assert grammar.memory(vocabulary) == held
    # Other vocabularies take the place of old ones; a matcher lives on without its binding.
    for n in range(8):
        grammar.matcher(lt.Vocabulary.from_tokens([bytes([b]) for b in range(256)] + [b"x" * (n + 2)]))
    del grammar
    gc.collect()
    first.accept(ord("{"))
    assert first.is_allowed(ord('"'))


def test_many_threads_use_one_grammar() -> None:
    vocabulary = small()
    grammar = G.json_schema(PERSON)
    text = tokens_of(vocabulary, '{"name": "abcde", "age": 123}')
    start = threading.Barrier(8)

    def one(_: int) -> None:
        start.wait()
        for _ in range(20):
            matcher = grammar.matcher(vocabulary)
            for token in text:
                assert matcher.is_allowed(token)
                matcher.accept(token)
            assert matcher.is_accepting

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(one, range(8)))


def test_repr_is_short_python() -> None:
    assert repr("a" + G.regex("b").optional()) == "Grammar.literal('a') + Grammar.regex('b').optional()"
    assert repr((G.literal("a") | "b").repeat(1)) == "(Grammar.literal('a') | Grammar.literal('b')).repeat(1)"
    assert len(repr(G.choice([f"text {n}" * 100 for n in range(100)]))) < 500
    long = G.literal("a")
    for _ in range(60):
        long = long.repeat(0, 2) + "b"
    assert len(repr(long)) < 2_000
    assert repr(G.literal("it's\n")) == r"Grammar.literal('it\'s\n')"


@pytest.mark.parametrize("kind", ["substring_words", "substring_chars"])
@pytest.mark.parametrize("repeats", [False, True])
def test_long_texts_are_quoted_within_the_default_fuel(kind: str, repeats: bool) -> None:
    rnd = random.Random(7)
    known = ["".join(rnd.choices("abcdefghijklmnopqrstuvwxyz", k=rnd.randrange(2, 9))) for _ in range(3_000)]
    words = ["ab", "ab", "ba"] * 13_400 if repeats else rnd.choices(known, k=40_200)
    text = " ".join(words)
    text = text if kind == "substring_words" else text[:100_000]
    quote = G.lark(f'start: "<" QUOTE ">"\nQUOTE: %regex {json.dumps({kind: text})}')
    vocabulary = lt.Vocabulary.from_tokens(
        [*(bytes([byte]) for byte in range(256)), *(f" {word}".encode() for word in known[:500])]
    )
    matcher = quote.matcher(vocabulary)
    at = text.index(" ", 50_000)
    part = text[at : text.index(" ", at + 200)]
    matcher.accept_many(f"<{part}".encode())
    assert matcher.is_allowed(ord(">")) and matcher.is_allowed(ord(" "))
    assert not matcher.is_allowed(ord("!"))
    assert quote.matches(f"<{part}>")
    assert not quote.matches(f"<{part}  ab>")
    if not repeats:
        assert quote.matches(f"<{part[:-1]}>") == (kind == "substring_chars")
