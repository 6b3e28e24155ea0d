"""The other constraints: patterns, GBNF, Lark, choices, token trees, reasoning, skeletons, canonical spelling."""

import json

import _schemas
import _texts
import numpy as np

import logitree as lt
from logitree import skeleton as sk

PATTERNS = {
    r"[a-z]+@[a-z]+\.(com|org)": "someone@example.org",
    r"(\d{1,3}\.){3}\d{1,3}": "192.168.0.255",
    r"\d{4}-(0[1-9]|1[0-2])-\d\d": "2026-11-05",
    r"(yes|no|perhaps)( (yes|no|perhaps))*": "yes no perhaps yes",
    r"[\w ]{1,80}\.": "A sentence of ordinary words and letters.",
    r"(?i)select [a-z, ]+ from [a-z]+( where .*)?": "SELECT name, value FROM items where count > 3",
    r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?": "-12.5e+30",
    r"(a|b)*c(a|b){3}": "abbacaba",
}
GBNF = r"""
root   ::= ws value
value  ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (string ":" ws value ("," ws string ":" ws value)*)? "}" ws
array  ::= "[" ws (value ("," ws value)*)? "]" ws
string ::= "\"" ([^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\"" ws
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)? ws
ws     ::= [ \t\n]*
"""
CHESS = r"""
root   ::= "1. " move " " move "\n" ([1-9] [0-9]? ". " move " " move "\n")+
move   ::= (pawn | nonpawn | castle) [+#]?
pawn   ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
nonpawn ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
castle ::= "O-O" "-O"?
"""
LARK = r"""
start: statement (";" statement)*
statement: NAME "=" sum
sum: product (("+" | "-") product)*
product: atom (("*" | "/") atom)*
atom: NUMBER | NAME | "(" sum ")"
NAME: /[a-z_][a-z0-9_]*/
NUMBER: /[0-9]+(\.[0-9]+)?/
%ignore / +/
"""
REPEATS = 6


def run(model: _texts.Model, *, quick: bool) -> str:
    """Walk texts of each kind of constraint, and decode with some of them."""
    walked = sum(_texts_of_grammars(model) for _ in range(1 if quick else REPEATS))
    walked += _canonical(model, 2 if quick else 30)
    decoded = _decoded(model, 4 if quick else 60)
    return f"{walked:,} masks of grammars, {decoded:,} decoded tokens"


def _texts_of_grammars(model: _texts.Model) -> int:
    words = np.zeros(lt.masks.words(len(model.vocabulary)), np.int32)
    document = _schemas.written(7)[1][0]
    texts = [(lt.Grammar.regex(pattern), text) for pattern, text in PATTERNS.items()]
    texts += [
        (lt.Grammar.gbnf(GBNF), json.dumps(document)),
        (lt.Grammar.json, json.dumps(document, indent=2)),
        (lt.Grammar.gbnf(CHESS), "1. e4 e5\n2. Nf3 Nc6\n3. Bb5 a6\n4. O-O Nf6\n"),
        (lt.Grammar.lark(LARK), "total = (a_1 + 2.5) * 3; rest = total / 2 - x"),
        (lt.Grammar.tags([("<f>", lt.Grammar.json(), "</f>")]), "Free text before anything is called."),
        (lt.Grammar.regex("[a-z ]+") & lt.Grammar.regex(".{3,20}"), "a few small words"),
    ]
    walked = 0
    for grammar, text in texts:
        grammar = grammar() if callable(grammar) else grammar
        matcher = grammar.matcher(model.vocabulary)
        matcher.explain(text=text)
        matcher.certain_bytes()
        for tokens in (model.tokenizer.encode(text), list(text.encode()) if text.isascii() else []):
            fork = matcher.fork()
            for token in tokens:
                lt.masks.fill_batch(fork, words)
                fork.forced_tokens()
                fork.accept(token)
            walked += len(tokens)
    return walked


def _canonical(model: _texts.Model, schemas: int) -> int:
    words = np.zeros(lt.masks.words(len(model.vocabulary)), np.int32)
    walked = 0
    for seed in range(1000, 1000 + schemas):
        schema, documents = _schemas.written(seed)
        matcher = model.tokenizer.canonical(lt.Grammar.json_schema(schema, order="any").matcher(model.vocabulary))
        for document in documents:
            fork = matcher.fork()
            for token in model.tokenizer.encode(json.dumps(document)):
                lt.masks.fill_batch(fork, words)
                fork.accept(token)
                walked += 1
    return walked


def _decoded(model: _texts.Model, steps: int) -> int:
    """Decoders over small and large sets of allowed tokens, with logits that change from step to step."""
    vocabulary, tokenizer = model.vocabulary, model.tokenizer
    names = [f"{a}_{b}".upper() for a in _schemas.WORDS for b in _schemas.WORDS[:12]]
    leaves = [{"name": name, "tokens": tokenizer.encode(name)} for name in names]
    payload = json.dumps({"modelId": "training", "descriptors": [{"path": "action", "leaves": leaves}]})
    plan = lt.Skeleton.object({"action": ["SEND", "IGNORE"], "reason": sk.string(max_length=40), "score": float})
    schema = _schemas.written(3)[0]
    constraints = [
        lt.OneOf(names),
        lt.elizaos.token_tree(payload, vocabulary).at("action"),
        lt.Grammar.json_schema(schema),
        lt.Grammar.regex("[a-z ,.]{0,60}"),
        plan,
        None,
    ]
    chains = [lt.Chain.greedy(), lt.Chain.llama_cpp(seed=1), lt.Chain.parse("temperature", temp=0.8, seed=2)]
    rng = np.random.default_rng(5)
    rows = rng.normal(0, 3, (8, len(vocabulary))).astype(np.float32)
    decoded = 0
    for constraint in constraints:
        for chain in chains:
            for trace in (False, True):
                decoder = lt.Decoder(vocabulary, chain.fork(), constraint, max_tokens=steps, trace=trace)
                for step in range(steps if trace else 4 * steps):
                    if decoder.is_finished:
                        decoder.reset()
                    decoder.take_forced()
                    if not decoder.is_finished:
                        decoder.step(rows[step % 8])
                        decoded += 1
    return decoded
