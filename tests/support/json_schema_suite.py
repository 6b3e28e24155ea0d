"""Runs the JSON-Schema-Test-Suite through grammars and keeps the ratchet.

`python tests/support/json_schema_suite.py --write` raises it.

A case is right when the grammar of its schema (properties in any order, any whitespace) accepts its text exactly if the
case is valid. A schema that is refused with an error is not right, but not wrong either: nothing is ever accepted under
it. An error that says that no value is valid is a verdict: all cases are refused by it. The ratchet
(testdata/json_schema/ratchet.toml) says how many groups and cases were right when it was last written;
the test lets no count fall. Texts are fed byte by byte, so that no tokenizer has a say.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import logitree as lt
from data_files import corpus
from logitree_bench import Skip
from logitree_bench._data import TEST_SUITE, Group, Suite, data_file, read_test_suite

RATCHET = Path(__file__).parents[2] / "testdata" / "json_schema" / "ratchet.toml"
DRAFTS = ("4", "6", "7", "2019-09", "2020-12")
KINDS = ("required", "optional", "format")
END = 256
EMPTY = "no value is valid under the schema"
"""How the error begins that says so."""
COUNTS = ("groups", "cases", "refused")
HEAD = """\
# How much of the JSON-Schema-Test-Suite is right by draft and kind. `tests/support/json_schema_suite.py --write` writes
# the counts; they may only rise (refused: only fall). groups: schemas all of whose cases are right. cases: instances
# whose verdict is right. refused: schemas refused with a named error. No verdict may be wrong but those of [[known]]:
# valid instances that are refused on purpose, with the reason. Names there may have the wildcards of fnmatch.
"""


@dataclass(frozen=True)
class Wrong:
    """A case whose verdict is wrong."""

    group: Group
    case: str
    valid: bool
    text: str
    at: int
    """How many bytes were accepted."""

    @property
    def how(self) -> str:
        return "valid refused" if self.valid else "invalid accepted"

    def __str__(self) -> str:
        g = self.group
        where = "" if not self.valid else f" after {self.text.encode()[: self.at].decode(errors='replace')!r}"
        name = f"draft {g.draft}, {g.file}: {g.description}: {self.case}"
        return f"{self.how}: {name}\n    {self.text[:200]}{where}\n    {json.dumps(g.schema, ensure_ascii=False)[:300]}"


@dataclass
class Outcome:
    """What came of one draft and kind."""

    groups: int = 0
    cases: int = 0
    refused: int = 0
    all_groups: int = 0
    all_cases: int = 0
    wrong: list[Wrong] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    """Messages of refused schemas."""


def vocabulary() -> lt.Vocabulary:
    """Every byte is a token, and one more token ends the text."""
    tokens = [bytes([b]) for b in range(256)] + [b"</s>"]
    return lt.Vocabulary.from_tokens(tokens, kinds=["normal"] * 256 + ["control"], end_tokens=[END])


def walk(matcher: lt.Matcher, text: bytes) -> tuple[bool, int]:
    """Whether the text is accepted as a whole, and how many of its bytes are."""
    for at, byte in enumerate(text):
        if not matcher.is_allowed(byte):
            return False, at
        matcher.accept(byte)
    return matcher.is_allowed(END), len(text)


def compile_group(group: Group, documents: dict[str, Any]) -> lt.Grammar:
    """The group's grammar; schemas that do not name their draft are of their folder's."""
    named = isinstance(group.schema, dict) and "$schema" in group.schema
    draft = None if named else group.draft
    return lt.Grammar.json_schema(group.schema, order="any", whitespace="free", documents=documents, draft=draft)


def run(suite: Suite, draft: str, kind: str) -> Outcome:
    """Try every case of one draft and kind."""
    out, tokens = Outcome(), vocabulary()
    for group in suite.groups:
        if (group.draft, group.kind) != (draft, kind):
            continue
        out.all_groups += 1
        out.all_cases += len(group.tests)
        try:
            fresh = compile_group(group, suite.documents).matcher(tokens)
        except (lt.ConstraintError, lt.LimitError) as problem:
            if not str(problem).startswith(EMPTY):
                out.refused += 1
                out.errors[str(problem)] += 1
                continue
            fresh = None
        right = 0
        for test in group.tests:
            text = json.dumps(test.data, ensure_ascii=False)
            accepted, at = walk(fresh.fork(), text.encode()) if fresh else (False, 0)
            if accepted == test.valid:
                right += 1
            else:
                out.wrong.append(Wrong(group, test.description, test.valid, text, at))
        out.cases += right
        out.groups += right == len(group.tests)
    return out


def read_ratchet() -> dict[str, Any]:
    """The current ratchet."""
    return {"known": [], **corpus("json_schema", RATCHET.name)}


def known(wrong: Wrong, entry: dict[str, Any]) -> bool:
    """Whether an entry of [[known]] names this case. An invalid instance that is accepted is never known."""
    group = wrong.group
    return (
        wrong.valid
        and group.draft in entry["drafts"]
        and group.file == entry["file"]
        and fnmatch.fnmatchcase(group.description, entry["group"])
        and fnmatch.fnmatchcase(wrong.case, entry["case"])
    )


def ratchet_text(outcomes: dict[tuple[str, str], Outcome], entries: list[dict[str, Any]]) -> str:
    """The ratchet's file."""
    parts = [HEAD]
    for (draft, kind), o in outcomes.items():
        parts.append(
            f'[count."{draft}".{kind}]\ngroups = {o.groups}  # of {o.all_groups}\n'
            f"cases = {o.cases}  # of {o.all_cases}\nrefused = {o.refused}\n"
        )
    for entry in entries:
        lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items()]
        parts.append("\n".join(["[[known]]", *lines]) + "\n")
    return "\n".join(parts)


def fallen(outcome: Outcome, floor: dict[str, int]) -> Iterator[str]:
    """Counts that are worse than the ratchet's."""
    for name in COUNTS:
        now, then = getattr(outcome, name), floor[name]
        if now > then if name == "refused" else now < then:
            yield f"{name}: {now}, and it was {then}"


def main() -> int:
    """Print what is right, what is wrong and what is refused; write the ratchet if asked and no count falls."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the ratchet")
    parser.add_argument("--wrong", action="store_true", help="print every wrong case")
    parser.add_argument("--errors", type=int, default=0, metavar="N", help="print the N commonest errors of each kind")
    arguments = parser.parse_args()
    archive = data_file(TEST_SUITE)
    if isinstance(archive, Skip):
        print(archive.reason, file=sys.stderr)
        return 1
    suite = read_test_suite(archive, DRAFTS)
    before = read_ratchet() if RATCHET.exists() else {"known": []}
    entries = before["known"]
    outcomes = {(draft, kind): run(suite, draft, kind) for draft in DRAFTS for kind in KINDS}
    worse = []
    for (draft, kind), o in outcomes.items():
        left = [w for w in o.wrong if not any(known(w, entry) for entry in entries)]
        print(
            f"draft {draft:<8} {kind:<9} groups {o.groups:>4} of {o.all_groups:>4}   cases {o.cases:>5} of "
            f"{o.all_cases:>5}   refused {o.refused:>4}   wrong {len(left):>4}, known {len(o.wrong) - len(left)}"
        )
        for message, count in o.errors.most_common(arguments.errors):
            print(f"    {count:>4} {' '.join(message.split())[:200]}")
        for w in left if arguments.wrong else ():
            print(f"  {w}")
        floor = before.get("count", {}).get(draft, {}).get(kind)
        worse += [f"draft {draft}, {kind}: {text}" for text in (fallen(o, floor) if floor else ())]
    if worse:
        print("fallen below the ratchet:", *worse, sep="\n  ")
        return 1
    if arguments.write:
        RATCHET.write_text(ratchet_text(outcomes, entries), encoding="utf-8")
        print(f"wrote {RATCHET.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
