"""The types that a user's program sees: every public name has one, and `typing_program.py` passes mypy --strict."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import logitree as lt
from logitree import _renamed

PROGRAM = Path(__file__).resolve().parents[1] / "support" / "typing_program.py"
MODULES = ["logitree"] + [f"logitree.{one.name}" for one in pkgutil.iter_modules(lt.__path__) if one.name[0] != "_"]
ANY = "ReasoningBudget.then SpanEnd.value TraceSpan.value beams.Hypothesis.value protocols.Response.answer "
ANY += "protocols.Tool.source skeleton.SpanValue.value"
"""What holds a value of the caller's own type."""


def members(name: str, thing: object) -> list[str]:
    """A public name, and those of a class's public members but old ones."""
    own = vars(thing) if inspect.isclass(thing) and thing.__module__.startswith("logitree") else {}
    short = name.rpartition(".")[2]
    shown = [member for member in own if member[0] != "_" and f"{short}.{member}" not in _renamed.ATTRIBUTES]
    return [name, *(f"{name}.{member}" for member in shown)]


def test_every_name_has_a_type_and_mistakes_are_marked(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    names: list[str] = []
    for module in map(importlib.import_module, MODULES):
        for name in getattr(module, "__all__", ()):
            names += members(f"{module.__name__}.{name}", getattr(module, name))
    asking = tmp_path / "asking.py"
    lines = [f"import {name}" for name in MODULES] + [f"reveal_type({name})" for name in names]
    asking.write_text("\n".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-pretty", "--cache-dir", str(tmp_path)]
    command += [str(asking), str(PROGRAM)]
    done = subprocess.run(command, cwd=PROGRAM.parents[2], capture_output=True, text=True, check=False)
    # A field is asked of its class, which has no value for it.
    fields = re.compile(r"asking\.py:\d+: error: .*(__slots__|instance-only).*\[misc\]|^Found")
    wrong = [line for line in done.stdout.splitlines() if "note:" not in line and not fields.search(line)]
    assert not wrong and not done.stderr, "\n".join(wrong) + done.stderr
    shown = dict(re.findall(r'asking\.py:(\d+): note: Revealed type is "(.*)"', done.stdout))
    numbered = enumerate(names, len(MODULES) + 1)
    unknown = [name.removeprefix("logitree.") for at, name in numbered if shown.get(str(at), "Any") == "Any"]
    assert len(names) > 500
    assert sorted(unknown) == ANY.split()
