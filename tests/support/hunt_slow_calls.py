"""Looks for grammars whose calls take long: `python tests/support/hunt_slow_calls.py --seconds 3600`.

Random grammars, and the costly ones of testdata/time with random changes, run over real vocabularies. A call that takes
more of its thread's time than the bound is printed as a case for testdata/time; an exception that is not one of
logitree's ends the hunt. The seed and the number of grammars are printed at the end.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import logitree as lt
from data_files import DATA
from slow_calls import CASES, longest_call, text_of

REPOSITORY = Path(__file__).resolve().parents[2]
ATOMS = ["a", "b", "ab", "[ab]", "[a-z]", ".", "\\w", "\\d", "[^a]", "\\p{L}", "x", "é", "aaaa"]


def regex(rnd: random.Random, depth: int) -> str:
    """A random pattern that nests counts, alternatives and looks."""
    if depth == 0 or rnd.random() < 0.15:
        return rnd.choice(ATOMS)
    kind = rnd.randrange(8)
    inner = regex(rnd, depth - 1)
    if kind < 3:
        low = rnd.choice([0, 0, 1, 2, 3, 7])
        high = rnd.choice([str(low + rnd.choice([1, 3, 9, 99, 999])), ""])
        return f"({inner}){{{low},{high}}}"
    if kind == 3:
        return f"({inner}|{regex(rnd, depth - 1)})" + rnd.choice(["", "*", "?", "+"])
    if kind == 4:
        look = rnd.choice(["(?=", "(?!"])
        return f"{look}.*{inner})" + regex(rnd, depth - 1)
    return f"({inner}{regex(rnd, depth - 1)}{rnd.choice(['', '?', 'c?', '*'])})"


def gbnf(rnd: random.Random) -> str:
    """Random rules that refer to each other."""
    count = rnd.randrange(1, 7)

    def body(depth: int) -> str:
        kind = rnd.randrange(7) if depth else 0
        if kind == 0:
            return rnd.choice(['"a"', '"b"', '"ab"', "[a-z]", '"("', '""', *(f"r{n}" for n in range(count))])
        if kind < 3:
            return f"({body(depth - 1)} {body(depth - 1)})"
        if kind == 3:
            return f"({body(depth - 1)} | {body(depth - 1)})"
        if kind == 4:
            return f"({body(depth - 1)}){rnd.choice(['*', '+', '?'])}"
        return f"({body(depth - 1)}){{{rnd.choice([0, 1, 2])},{rnd.choice([3, 9, 99])}}}"

    rules = [f'r{n} ::= {body(rnd.randrange(1, 6))} | "{n}"' for n in range(count)]
    return "root ::= r0\n" + "\n".join(rules)


def schema(rnd: random.Random, depth: int) -> dict[str, Any]:
    """A random schema that combines, counts and nests."""
    kind = rnd.randrange(10) if depth else rnd.randrange(3)
    if kind == 0:
        return {"type": "string", "pattern": regex(rnd, 3), "maxLength": rnd.choice([5, 500, 100000])}
    if kind == 1:
        return {"type": rnd.choice(["integer", "number"]), "multipleOf": rnd.choice([3, 0.01, 7, 1.25, 1009])}
    if kind == 2:
        return {"enum": [rnd.randrange(9) for _ in range(rnd.randrange(1, 9))]}
    some = [schema(rnd, depth - 1) for _ in range(rnd.randrange(1, 5))]
    if kind == 3:
        return {rnd.choice(["anyOf", "oneOf", "allOf"]): some}
    if kind == 4:
        return {"not": some[0]}
    if kind == 5:
        return {"type": "array", "items": some[0], "contains": some[-1], "maxItems": rnd.choice([3, 50, 5000])}
    if kind == 6:
        return {"type": "array", "items": some[0], "uniqueItems": True, "minItems": rnd.choice([0, 2, 9])}
    keys = {f"k{n}": sub for n, sub in enumerate(some)}
    made: dict[str, Any] = {
        "type": "object",
        "properties": keys,
        "required": rnd.sample(sorted(keys), rnd.randrange(len(keys) + 1)),
    }
    if kind == 7:
        made["patternProperties"] = {regex(rnd, 2): some[0]}
    if kind == 8:
        made |= {"if": {"required": ["k0"]}, "then": some[-1], "minProperties": rnd.choice([1, 3])}
    return made


def changed(rnd: random.Random, text: str) -> str:
    """A text with a piece doubled, dropped or moved."""
    if len(text) < 4:
        return text
    a, b = sorted(rnd.sample(range(len(text)), 2))
    c = rnd.randrange(len(text))
    return rnd.choice([text[:b] + text[a:b] * 3 + text[b:], text[:a] + text[b:], text[:c] + text[a:b] + text[c:]])


def grammar(rnd: random.Random) -> tuple[str, str, Callable[[], lt.Grammar]]:
    """Syntax, text, and the call that makes it."""
    kind = rnd.randrange(5)
    if kind == 0:
        text = regex(rnd, rnd.randrange(2, 9))
        return "regex", text, lambda: lt.Grammar.regex(text)
    if kind == 1:
        text = gbnf(rnd)
        return "gbnf", text, lambda: lt.Grammar.gbnf(text)
    if kind == 2:
        text = json.dumps(schema(rnd, rnd.randrange(1, 5)))
        order: Any = rnd.choice(["schema", "any"])
        return "json_schema", text, lambda: lt.Grammar.json_schema(text, order=order)
    case = rnd.choice([case for case in CASES if case["syntax"] in ("regex", "gbnf")])
    text = changed(rnd, text_of(case, 60))
    make = lt.Grammar.regex if case["syntax"] == "regex" else lt.Grammar.gbnf
    return case["syntax"], text, lambda: make(text)


def main() -> int:
    """Hunt for the given time; 1 if something was found."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--bound", type=float, default=0.25, help="seconds that one call may take")
    options.add_argument("--seed", type=int, default=int(time.time()))
    asked = options.parse_args()
    names = ("llama-bpe", "gemma-4", "qwen2") if DATA else ()
    files = [path for name in names for path in (DATA / "vocabs").glob(f"*{name}*.gguf")]
    vocabularies = [lt.Vocabulary.from_gguf(path) for path in files]
    tokens = [*(bytes([b]) for b in range(256)), b"a" * 16, b"ab" * 8, b"[" * 32, b"</s>"]
    vocabularies.append(lt.Vocabulary.from_tokens(tokens, end_tokens=[len(tokens) - 1]))
    for vocabulary in vocabularies:
        lt.Grammar.regex(".*").matcher(vocabulary).allowed().mask()
    rnd = random.Random(asked.seed)
    ends = time.monotonic() + asked.seconds
    tried, found, slowest = 0, 0, (0.0, "", "")
    while time.monotonic() < ends:
        syntax, text, make = grammar(rnd)
        vocabulary = rnd.choice(vocabularies)

        def choose(tokens: list[int], vocabulary: lt.Vocabulary = vocabulary) -> int:
            some = rnd.sample(tokens, min(len(tokens), 40))
            return max(some, key=lambda token: len(vocabulary.token_bytes(token)))

        seconds, call, _ = longest_call(make, vocabulary, 8, choose)
        tried += 1
        slowest = max(slowest, (seconds, call, text[:200]))
        if seconds > asked.bound:
            found += 1
            print(f"# {call} took {1000 * seconds:.0f} ms over {len(vocabulary)} tokens\n[[case]]\nsyntax = {syntax!r}")
            print(f"text = {json.dumps(text)}\n", flush=True)
    print(
        f"seed {asked.seed}: {tried} grammars, {found} slow, the longest call {1000 * slowest[0]:.0f} ms: {slowest[1:]}"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
