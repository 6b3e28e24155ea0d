"""Dialects beside the engines that they are from: texts that are drawn from our grammars, and mutations of them, are
accepted by both or by neither."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

import logitree as lt
from drawn_texts import drawn, mutated

pytestmark = pytest.mark.peers


def compared(grammar: lt.Grammar, theirs: Callable[[str], bool], seed: str, more: Iterable[str] = ()) -> None:
    """Both accept the same of the drawn texts, their mutations, and `more`."""
    rnd = random.Random(seed)
    texts = [drawn(grammar, rnd) for _ in range(25)]
    assert all(grammar.matches(text) for text in texts)
    texts += [mutated(text, rnd) for text in texts for _ in range(3)]
    for text in [*texts, *more]:
        assert grammar.matches(text) == theirs(text), text


xgrammar = pytest.importorskip("xgrammar")
INFO = xgrammar.TokenizerInfo(
    [*(bytes([byte]) for byte in range(256)), b"</s>"], stop_token_ids=[256], vocab_type=xgrammar.VocabType.RAW
)
COMPILER = xgrammar.GrammarCompiler(INFO, cache_enabled=False)


def by_xgrammar(compiled: Any) -> Callable[[str], bool]:
    def accepts(text: str) -> bool:
        matcher = xgrammar.GrammarMatcher(compiled)
        return bool(matcher.accept_string(text)) and bool(matcher.is_completed())

    return accepts


EBNF = {
    "escapes": r'root ::= "\b\f\a\v\e\/\'\?\x41" [\d1\^\$\.\|\/]* | [^]'.replace(r"\d", ""),
    "lines": 'root ::=\n  a\n  b  # a comment\n  | "c"\na ::= "x"\n  "y"\nb\n::= [0-9]{1,3}',
    "names": 'root ::= a.b+\na.b ::= c-1_ | [xyz]\nc-1_ ::= ("" | "-") [01]',
    "lazy": 'root ::= head rest\nhead[lazy] ::= [a-z]* "<"\nrest ::= [a-z<]*',
    "lazy class": "root ::= head [a-z]+\nhead[lazy] ::= [a-z]+",
    "max_chars": 'root ::= text "!"\ntext[max_chars=5] ::= [^!]*',
    "capture": 'root ::= item ("," item)*\nitem[capture="number", max_chars=3] ::= [0-9]+',
    "look-ahead": 'root ::= a ("c" | "b")\na ::= [a-z] (= "c")',
    "regex": 'root ::= Regex("a.[0-9]{2}") | Regex("x.", flags="i") | Regex("[^a]+b", json_string=true)',
    "substring": 'root ::= "<" Substring("abc", "x", "yz", "x") ">"',
    "dispatch": 'root ::= TagDispatch(("<x>", x), ("<y", y), excludes=("<z",))\nx ::= [01]+ "!"\ny ::= "y>" root',
    "dispatch once": 'root ::= TagDispatch(("<x>", x), loop_after_dispatch=false) ","?\nx ::= [01]+',
    "dispatch overlapping": 'root ::= TagDispatch(("ab", x), ("cab", y))\nx ::= "1"\ny ::= "2"',
    "free text": 'root ::= TagDispatch(excludes=("ab", "-")) "ab"',
}


@pytest.mark.parametrize("name", EBNF)
def test_ebnf_is_xgrammars(name: str) -> None:
    text = EBNF[name]
    theirs = by_xgrammar(COMPILER.compile_grammar(text))
    more = ["", "a", "ab", "abc", "x1", "<x>1!", "<x>1!<z", "<yy>", "cab2", "cab1", "ab1", "xab", "-ab", "xc", "xb"]
    compared(lt.Grammar.ebnf(text), theirs, name, more)


WRONG = [
    'root ::= "a" |',
    'root ::= | "a"',
    "root ::=",
    'root ::= "a" (= "b") "c"',
    'root ::= ("a" (= "b")) "c"',
    'root ::= "\\q"',
    "root ::= [\\w]",
    'root ::= a "x"',
    'root ::= "a"\nroot ::= "b"',
    'root[max_chars=] ::= "a"',
    'root[lazy, lazy] ::= "a"',
    'root[capture=""] ::= "a"',
    "root ::= Token()",
    "root ::= Token(-1)",
    'root ::= Token("a")',
    "root ::= Token",
    "root ::= ExcludeToken()",
    'root ::= Regex("a", "b")',
    'root ::= Regex("a", flags="q")',
    'root ::= Regex("a", other=true)',
    'root ::= Substring("a", other=true)',
    "root ::= Substring(1)",
    'root ::= TagDispatch("a")',
    'root ::= TagDispatch(("", a))\na ::= "x"',
    'root ::= TagDispatch(("t", nothing))',
    'root ::= TagDispatch(("t", a), other=true)\na ::= "x"',
    'root ::= TagDispatch(("text", a), excludes=("te",))\na ::= "x"',
    'root ::= TokenTagDispatch(("t", a))\na ::= "x"',
    'root ::= TokenTagDispatch((1, a), excludes=(1,))\na ::= "x"',
    'root[lazy] ::= "(" root ")" | "x"',
]


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_ebnf_is_an_error_in_both(text: str) -> None:
    with pytest.raises(RuntimeError):
        COMPILER.compile_grammar(text)
    with pytest.raises(lt.ConstraintError):
        lt.Grammar.ebnf(text)


ARGUMENTS = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": ["boolean", "null"]},
        "deep": {"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]},
        "list": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
        "unit": {"enum": ["c", "f"]},
        "maybe": {"type": ["string", "null"]},
        "code": {"type": "string", "pattern": "^[a-c]{1,3}$"},
    },
    "required": ["city"],
}
STYLES = ["qwen_xml", "minimax_xml", "deepseek_xml", "deepseek_v4_1_xml", "glm_xml", "kimi_k3_xml", "cohere_xml"]


def tag(**form: Any) -> dict[str, Any]:
    return {"type": "structural_tag", "format": {"type": "json_schema", **form}}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("key", ARGUMENTS["properties"])
def test_styles_of_arguments_are_xgrammars(style: str, key: str) -> None:
    if (style, key) == ("kimi_k3_xml", "maybe"):
        pytest.skip("ours names the value's own type: test_where_styles_are_more_exact_than_xgrammars")
    required = [key]
    schema = {**ARGUMENTS, "properties": {key: ARGUMENTS["properties"][key]}, "required": required}
    one = tag(json_schema=schema, style=style, max_whitespace_cnt=2)
    compared(lt.Grammar.structural_tag(one), by_xgrammar(COMPILER.compile_structural_tag(one)), style + key)


@pytest.mark.parametrize("style", STYLES)
def test_several_arguments_come_in_the_schemas_order(style: str) -> None:
    kinds = {"a": {"type": "string"}, "b": {"type": "boolean"}, "c": {"type": "null"}}
    for required in ([], ["a"], ["b"], ["a", "c"]):
        one = tag(
            json_schema={"type": "object", "properties": kinds, "required": required}, style=style, max_whitespace_cnt=2
        )
        theirs = by_xgrammar(COMPILER.compile_structural_tag(one))
        compared(lt.Grammar.structural_tag(one), theirs, style + str(required), ["", "\n"])


def test_other_arguments_are_xgrammars() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "boolean"}}
    one = tag(json_schema=schema, style="qwen_xml", max_whitespace_cnt=2)
    more = ["<parameter=b>true</parameter>", "<parameter=b-c>true</parameter>", "<parameter=b>x</parameter>"]
    compared(lt.Grammar.structural_tag(one), by_xgrammar(COMPILER.compile_structural_tag(one)), "other", more)


def test_where_styles_are_more_exact_than_xgrammars() -> None:
    """XGrammar's Kimi style names any type for a value of several; and in any order it neither asks for required keys
    nor refuses a second value of one key."""
    one = tag(
        json_schema={"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]},
        style="kimi_k3_xml",
    )
    ours, theirs = lt.Grammar.structural_tag(one), by_xgrammar(COMPILER.compile_structural_tag(one))
    pair = '<|open|>argument key="a" type="{}"<|sep|>{}<|close|>argument<|sep|>'
    for kind, value, ok in [("string", "x", True), ("null", "null", True), ("array", "x", False), ("null", "x", False)]:
        assert ours.matches(pair.format(kind, value)) is ok
        assert theirs(pair.format(kind, value))
    two = {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"]}
    one = tag(json_schema=two, style="qwen_xml", any_order=True)
    ours, theirs = lt.Grammar.structural_tag(one), by_xgrammar(COMPILER.compile_structural_tag(one))
    a, b = "<parameter=a>1</parameter>", "<parameter=b>1</parameter>"
    assert ours.matches(a + b) and ours.matches(b + a) and theirs(b + a)
    assert not ours.matches(a + a) and theirs(a + a)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_white_space_is_bounded_as_asked(most: int) -> None:
    list_of = {"type": "array", "items": {"type": "null"}}
    schema = {"type": "object", "properties": {"a": {"type": "null"}, "b": list_of}, "required": ["a"]}
    one = tag(json_schema=schema, max_whitespace_cnt=most)
    theirs = by_xgrammar(COMPILER.compile_structural_tag(one))
    blank = [" " * count for count in range(most + 2)]
    more = [f'{{{one}"a"{two}:{two}null{one}}}' for one in blank for two in blank]
    compared(lt.Grammar.structural_tag(one), theirs, str(most), more)


EXCLUDING = {
    "free": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
    "named": {"type": "object", "properties": {"a": {"enum": ["a<b", "b", "xy"]}}, "required": ["a"]},
    "one": {"type": "object", "properties": {"a": {"const": "b>"}}, "required": ["a"]},
    "nested": {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "string"}}},
        "required": ["a"],
    },
    "keys": {"type": "object", "additionalProperties": {"type": "boolean"}},
    "pattern": {"type": "object", "properties": {"a": {"type": "string", "pattern": "^a[<b]*$"}}, "required": ["a"]},
}


@pytest.mark.parametrize("style", ["json", "qwen_xml", "glm_xml", "kimi_k3_xml"])
@pytest.mark.parametrize("name", EXCLUDING)
def test_texts_are_excluded_as_xgrammar_excludes_them(name: str, style: str) -> None:
    one = tag(json_schema=EXCLUDING[name], style=style, max_whitespace_cnt=2, excludes=["<b", "xy"])
    texts = ["a", "<", "<b", "a<ba", "x", "xy", "axya", "b", "a<b", "\\u003cb", "é"]
    pairs = {"qwen_xml": "<parameter=a>{}</parameter>", "json": '{{"a": {}}}'}
    quoted = [f'"{text}"' for text in texts]
    values = [*quoted, *(f"[{text}]" for text in quoted)] if style == "json" else [*texts, *(f"[{q}]" for q in quoted)]
    more = [pairs.get(style, "{}").format(value) for value in values]
    more += [f'{{"{text}": true}}' for text in texts] + [f"<parameter={text}>true</parameter>" for text in texts]
    theirs = by_xgrammar(COMPILER.compile_structural_tag(one))
    compared(lt.Grammar.structural_tag(one), theirs, name + style, more)


def test_lengths_hold_beside_what_is_excluded() -> None:
    """XGrammar ignores the lengths there."""
    one = tag(json_schema={"type": "string", "minLength": 2, "maxLength": 3}, excludes=["<b"])
    ours, theirs = lt.Grammar.structural_tag(one), by_xgrammar(COMPILER.compile_structural_tag(one))
    for text, ok in [('"ab"', True), ('"a<b"', False), ('"abcd"', False), ('"a"', False)]:
        assert ours.matches(text) is ok
        assert theirs(text) is (text != '"a<b"')


STRICT = [
    {"type": "object", "properties": {"a": {"type": "integer"}}},
    {"type": "object"},
    {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {}}}, "c": {"type": "object"}}},
    {"type": "array", "prefixItems": [{"type": "integer"}]},
    {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"a": {}}}}},
    {"type": "object", "patternProperties": {"^a": {"type": "integer"}}},
    {"anyOf": [{"type": "object", "properties": {"a": {}}}, {"type": "object", "properties": {"b": {}}}]},
    {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "integer"}},
]


@pytest.mark.parametrize("schema", STRICT, ids=json.dumps)
def test_objects_and_arrays_are_closed_as_xgrammars(schema: dict[str, Any]) -> None:
    one = tag(json_schema=schema)
    ours, theirs = lt.Grammar.structural_tag(one), by_xgrammar(COMPILER.compile_structural_tag(one))
    values: list[Any] = [{}, {"a": 1}, {"b": 1}, {"a": 1, "b": 2}, {"c": {"d": 1}}, {"a": {"b": 1}}, {"a": {"c": 1}}]
    for value in [*values, [], [1], [1, 2], ["a"]]:
        assert ours.matches(json.dumps(value)) == theirs(json.dumps(value)), value


def test_a_structural_tag_needs_no_type_at_the_top() -> None:
    one = {"format": {"type": "regex", "pattern": "a.b"}}
    ours, theirs = lt.Grammar.structural_tag(one), by_xgrammar(COMPILER.compile_structural_tag(one))
    for text in ["axb", "a\nb", "ab"]:
        assert ours.matches(text) == theirs(text)


torch = pytest.importorskip("torch")

PIECES = ["ab", "abc", "</", "</t>", "a</t", ".<", "é", "12", "1,", ",2", ">a"]
"""Tokens that cross the borders of the texts below."""
TOKENS = [*(bytes([byte]) for byte in range(128)), *(piece.encode() for piece in PIECES), b"</s>"]


def same_masks(grammar: lt.Grammar, compile: Callable[[Any], Any], seed: str) -> int:
    """Random tokens have the same masks in both, and end in both. Returns how many masks were compared."""
    vocabulary = lt.Vocabulary.from_tokens(TOKENS, end_tokens=[len(TOKENS) - 1])
    info = xgrammar.TokenizerInfo(TOKENS, stop_token_ids=[len(TOKENS) - 1], vocab_type=xgrammar.VocabType.RAW)
    compiled = compile(xgrammar.GrammarCompiler(info, cache_enabled=False))
    rnd = random.Random(seed)
    bits = xgrammar.allocate_token_bitmask(1, len(TOKENS))
    compared = 0
    for _ in range(30):
        ours, theirs = grammar.matcher(vocabulary), xgrammar.GrammarMatcher(compiled)
        for _ in range(20):
            theirs.fill_next_token_bitmask(bits)
            words = bits[0].tolist()
            allowed = [token for token in range(len(TOKENS)) if words[token // 32] >> token % 32 & 1]
            assert list(ours.allowed().ids) == allowed
            compared += 1
            plain = [token for token in allowed if len(TOKENS[token]) > 1 or chr(TOKENS[token][0]) in "abt<>/!,.12"]
            token = rnd.choice(plain or allowed)
            ours.accept(token)
            assert theirs.accept_token(token)
            if token == len(TOKENS) - 1:
                break
    return compared


COUNTED = {
    "text": {"type": "any_text", "max_tokens": 3},
    "no text": {"type": "tag", "begin": "<t>", "content": {"type": "any_text", "max_tokens": 0}, "end": "</t>"},
    "tag": {"type": "tag", "begin": "<t>", "content": {"type": "any_text", "max_tokens": 4}, "end": "</t>"},
    "characters": {
        "type": "tag",
        "begin": "<t>",
        "content": {"type": "any_text", "max_tokens": 4, "max_chars": 6, "excludes": ["b"]},
        "end": "</t>",
    },
    "several ends": {
        "type": "tag",
        "begin": "a",
        "content": {"type": "any_text", "max_tokens": 2, "excludes": ["</", "!"]},
        "end": ["</t>", "!"],
    },
    "sequence": {
        "type": "sequence",
        "elements": [{"type": "regex", "pattern": "[ab]{2}"}, {"type": "any_text", "max_tokens": 2}],
    },
}


@pytest.mark.parametrize("name", COUNTED)
def test_tokens_of_free_text_are_counted_as_xgrammar_counts_them(name: str) -> None:
    one = {"type": "structural_tag", "format": COUNTED[name]}
    grammar = lt.Grammar.structural_tag(one)
    assert same_masks(grammar, lambda compiler: compiler.compile_structural_tag(one), name) > 60


COUNTED_RULES = {
    "think": 'root ::= "<t>" text "</t>" [0-9]+\ntext[max_tokens=3] ::= [^<]*',
    "list": 'root ::= item ("," item)* "!"\nitem[max_tokens=2] ::= [a-z]*',
    "cannot end": 'root ::= item "!"\nitem[max_tokens=2] ::= ("ab,"){0,5}',
    "characters too": "root ::= item [0-9]\nitem[max_tokens=5, max_chars=4] ::= [a-z]*",
    "alternatives": 'root ::= (text | word) "!"\ntext[max_tokens=1] ::= [ab]*\nword ::= [1-2]*',
    "nothing after": "root ::= text\ntext[max_tokens=2] ::= [ab]+",
}


@pytest.mark.parametrize("name", COUNTED_RULES)
def test_tokens_of_rules_are_counted_as_xgrammar_counts_them(name: str) -> None:
    text = COUNTED_RULES[name]
    assert same_masks(lt.Grammar.ebnf(text), lambda compiler: compiler.compile_grammar(text), name) > 60


llguidance = pytest.importorskip("llguidance")


def by_llguidance(lark: str) -> Callable[[str], bool]:
    tokenizer = llguidance.LLTokenizer("byte")
    grammar = llguidance.LLMatcher.grammar_from_lark(lark)

    def accepts(text: str) -> bool:
        matcher = llguidance.LLMatcher(tokenizer, grammar)
        assert not matcher.is_error(), matcher.get_error()
        tokens = list(text.encode())
        return int(matcher.try_consume_tokens(tokens)) == len(tokens) and bool(matcher.is_accepting())

    return accepts


LARK = {
    "permutations": """
start: perm::0x0
perm::_ : "" %if is_ones([0:3])
        | "a" perm::set_bit(0) %if bit_clear(0)
        | "b" perm::set_bit(1) %if bit_clear(1)
        | "c" perm::set_bit(2) %if bit_clear(2)
""",
    "all at least once": """
start: perm::0
perm::_ : "" %if is_ones([0:3])
        | "a" perm::set_bit(0)
        | "b" perm::set_bit(1)
        | "c" perm::set_bit(2)
""",
    "counts": """
start: lst::0x0
lst::_ : "a" lst::incr([0:3]) %if lt([0:3], 5)
       | "b" lst::incr([3:6]) %if le([3:6], 2)
       | "c" lst::incr([6:9]) %if not(ge([6:9], 6))
       | ""
""",
    "two rules": """
start: aa::0
aa::_ : "b" aa::incr(_) %if lt(_, 7)
      | bb::_
bb::_ : "a" bb::incr(_) %if lt(_, 7)
      | ""
""",
    "some of them": """
start: perm::0x0
perm::_ : "" %if bit_count_ge(_, 1)
        | "a" perm::set_bit(0) %if and(bit_clear(0), bit_count_lt(_, 3))
        | "b" perm::set_bit(1) %if and(bit_clear(1), bit_count_lt(_, 3))
        | "c" perm::set_bit(2) %if and(bit_clear(2), or(bit_count_lt(_, 3), bit_set(63)))
        | "x" perm::set_bit(3) %if and(eq([3:4], 0), bit_count_ne(_, 3))
""",
    "down": """
start: "<" down::0x1F ">"
down::_ : "1" down::bit_and(0x0F) %if bit_set(4)
        | "0" down::decr([0:4]) %if and(bit_clear(4), gt([0:4], 9))
        | "x" down::clear_bit(0) %if bit_set(0)
        | "y" down::bit_or(1) %if ne([0:1], 1)
        | "" %if is_zeros([4:64])
""",
}


@pytest.mark.parametrize("name", LARK)
def test_parametric_rules_are_llguidances(name: str) -> None:
    theirs = by_llguidance(LARK[name])
    more = ["", "a", "ab", "abc", "cab", "aa", "bbbaa", "aaaaaaab", "ax", "<1>", "<10x>", "<x1y>"]
    compared(lt.Grammar.lark(LARK[name]), theirs, name, more)


GUIDANCE: list[dict[str, Any]] = [
    {"whitespace_flexible": False},
    {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "},
    {"item_separator": ", ", "key_separator": ": "},
    {"whitespace_flexible": False, "item_separator": "-", "key_separator": "_ "},
    {"whitespace_flexible": False, "item_separator": " {0,2}, {0,2}", "key_separator": " {0,2}: {0,2}"},
    {"whitespace_pattern": " {1,2}"},
    {"whitespace_pattern": r"[ \n]{0,3}", "item_separator": ","},
]


ONE_OF: list[dict[str, Any]] = [
    {"oneOf": [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}]},
    {"oneOf": [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}], "anyOf": [{"enum": ["b", "c"]}, {"enum": ["x"]}]},
    {"type": "array", "items": {"oneOf": [{"type": "boolean"}, {"enum": [True, None]}]}, "maxItems": 2},
]


@pytest.mark.parametrize("schema", ONE_OF, ids=json.dumps)
def test_one_of_is_any_of_where_that_is_asked(schema: dict[str, Any]) -> None:
    lark = f"start: %json {json.dumps({**schema, 'x-guidance': {'coerce_one_of': True, 'whitespace_flexible': False}})}"
    more = ['"a"', '"b"', '"c"', '"x"', "[true]", "[null]", "[false]", "[true,false]", "[]"]
    compared(lt.Grammar.lark(lark), by_llguidance(lark), json.dumps(schema), more)


@pytest.mark.parametrize("options", GUIDANCE, ids=json.dumps)
def test_json_is_written_as_x_guidance_says(options: dict[str, Any]) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "boolean"}, "b": {"type": "array", "items": {"type": "boolean"}}},
        "required": ["a", "b"],
        "additionalProperties": False,
        "x-guidance": options,
    }
    lark = f"start: %json {json.dumps(schema)}"
    theirs = by_llguidance(lark)
    more = [
        f'{{"a"{colon}true{comma}"b"{colon}[true{comma}false]}}'
        for colon in (":", ": ", "  :  ", "_ ")
        for comma in (",", ", ", " ,  ", "-", ",   ")
    ]
    compared(lt.Grammar.lark(lark), theirs, json.dumps(options), more)
