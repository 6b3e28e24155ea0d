"""Deeply nested texts on threads whose stack is small: an error or a grammar, never a crash."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import threading
from functools import reduce

import logitree as lt

bytes_ = [bytes([byte]) for byte in range(256)]
vocabulary = lt.Vocabulary.from_tokens([*bytes_, b"aa", b"</s>"], end_tokens=[257])
texts = {
    "groups": lambda: lt.Grammar.regex("(?:" * 240 + "a" + "|^)*" * 240),
    "boundaries": lambda: lt.Grammar.regex("(?:\\\\b" * 240 + "a" + "|$)*" * 240),
    "lookaheads": lambda: lt.Grammar.regex("(?=" * 249 + "a" + ")" * 249),
    "counts": lambda: lt.Grammar.regex("(?:(?!a)" * 240 + "a" + "){2}" * 240),
    "pattern": lambda: lt.Grammar.json_schema({"type": "string", "pattern": "(?:" * 200 + "a" + "|^)*" * 200}),
    "not": lambda: lt.Grammar.json_schema('{"not":' * 400 + "{}" + "}" * 400),
    "all of": lambda: lt.Grammar.json_schema('{"allOf":[' * 400 + "{}" + "]}" * 400),
    "properties": lambda: lt.Grammar.json_schema('{"properties":{"a":' * 400 + "{}" + "}}" * 400),
    "gbnf": lambda: lt.Grammar.gbnf("root ::= " + "(" * 2000 + '"a"' + ")*" * 2000),
    "lark": lambda: lt.Grammar.lark("start: " + "(" * 2000 + '"a"' + ")*" * 2000),
    "required": lambda: lt.Grammar.json_schema(
        '{"type":"object","properties":{"a":' * 290 + "{}" + '},"required":["a"]}' * 290
    ),
    "items": lambda: lt.Grammar.json_schema('{"type":"array","minItems":1,"items":' * 140 + "{}" + "}" * 140),
    "unique": lambda: lt.Grammar.json_schema(
        '{"type":"array","uniqueItems":true,"minItems":2,"items":' * 190 + '{"type":"boolean"}' + "}" * 190
    ),
    "const": lambda: lt.Grammar.json_schema('{"const":' + "[" * 120 + "]" * 120 + "}"),
    "dependent": lambda: lt.Grammar.json_schema(
        {"type": "object", "dependentRequired": {f"k{n}": [f"k{n + 1}"] for n in range(400)}, "required": ["k0"]}
    ),
    "unevaluated": lambda: lt.Grammar.json_schema(
        '{"unevaluatedProperties":false,"allOf":[' * 190 + '{"properties":{"a":{}}}' + "]}" * 190
    ),
    "loops": lambda: lt.Grammar.regex("(?:b" * 249 + "a" + ")*" * 249),
    "options": lambda: lt.Grammar.regex("(?:ab" * 249 + "a" + ")?" * 249),
    "refused": lambda: lt.Grammar.regex("(?!b" * 200 + "a" + ")c" * 200),
    "heads": lambda: lt.Grammar.regex("(?:a?b?)?" * 8000),
    "both": lambda: reduce(lambda a, b: a & b, [lt.Grammar.regex("(?:b|a" * 100 + "a" + ")*" * 100)] * 40),
    "compose": lambda: reduce(
        lambda inner, _: lt.compose.optional(lt.compose.then(inner, ["x"])), range(49), lt.Grammar.literal("a")
    ),
    "terminals": lambda: lt.Grammar.lark(
        "start: T0\\n" + "\\n".join(f'T{n}: "a" T{n + 1} | T{n + 1}' for n in range(3000)) + '\\nT3000: "b"'
    ),
}


def run(make):
    try:
        make().matcher(vocabulary).allowed().mask()
        answers.append("grammar")
    except lt.LogitreeError as wrong:
        answers.append(type(wrong).__name__)


threading.stack_size(128 << 10)
for name, make in texts.items():
    answers = []
    thread = threading.Thread(target=run, args=[make])
    thread.start()
    thread.join()
    print(name, *answers, flush=True)
"""


def test_nested_texts_need_no_large_stack() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (done.stdout, done.stderr[-1000:])
    answers = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    assert len(answers) == 23
    assert answers["gbnf"] == answers["all of"] == answers["properties"] == "grammar"
    assert answers["groups"] == answers["not"] == "LimitError"
    assert answers["required"] == answers["dependent"] == "grammar"
    assert answers["unique"] == "ConstraintError", "too deep to decide whether there are enough items"
    assert answers["const"] == answers["loops"] == answers["options"] == answers["unevaluated"] == "grammar"
    assert answers["lark"] == answers["lookaheads"] == "ConstraintError", "too deep, and no text matches"
