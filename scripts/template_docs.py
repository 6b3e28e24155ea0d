"""Shows in docs/protocols.md which forms llama.cpp's chat templates write: `.venv-engines/bin/python
scripts/template_docs.py` rewrites the table (`make test-engines` makes the environment and compares)."""

import sys
from pathlib import Path

from logitree import ConstraintError
from logitree.protocols import Protocol
from logitree.protocols._derive import random_turns
from logitree.protocols._turns import probe_tools, written_by

DOCS = Path(__file__).resolve().parent.parent / "docs" / "protocols.md"
BEGIN, END = "<!-- templates -->\n", "<!-- end of templates -->\n"
TURNS = 100


def form(source):
    """The protocol of a template, or why there is none."""
    try:
        return Protocol.recognise(template=source)
    except ConstraintError:
        try:
            return Protocol.from_template(source)
        except ConstraintError as wrong:
            return str(wrong)


def turns(source, protocol, count=TURNS):
    """Random turns of a template, with texts that have no marker of a protocol in them."""
    return random_turns(written_by(source), count, protocol.markers, seed=7)


def row(path):
    """A template's line: its form, whether it writes reasoning and calls, and how many turns are read and allowed."""
    source = path.read_text(encoding="utf-8")
    protocol = form(source)
    if isinstance(protocol, str):
        reason = protocol.partition("chat template: ")[2].partition("; ")[0]
        if not reason.startswith("TypeError"):
            reason = reason.partition(": ")[0]
        return f"| {path.stem} | - | | | | {reason.replace('|', chr(92) + '|')} |"
    read = allowed = 0
    reason = ""
    for turn in turns(source, protocol):
        misread = turn.mismatch(protocol, probe_tools())
        refused = turn.refusal(protocol, probe_tools())
        read += not misread
        allowed += not refused
        reason = reason or misread.partition(": ")[0]
    written = written_by(source)
    parts = [turn for _, turn in written.turns()]
    has = [
        name
        for name, there in (("reasoning", any(t.reasoning for t in parts)), ("calls", written.writes_calls))
        if there
    ]
    reason += " " if reason else ""
    return f"| {path.stem} | `{protocol}` | {', '.join(has) or 'content'} | {read} | {allowed} | {reason}|"


def table(paths):
    """The table of these templates."""
    head = f"| template | form | writes | read of {TURNS} | allowed | why not |\n|---|---|---|--:|--:|---|\n"
    return head + "".join(row(path) + "\n" for path in paths)


def main():
    """Rewrite the table."""
    paths = sorted(Path(sys.prefix, "templates").glob("*.jinja"))
    if not paths:
        sys.exit(f"{sys.prefix} has no templates: run this in .venv-engines after make test-engines")
    text = DOCS.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    DOCS.write_text(before + BEGIN + table(paths) + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
