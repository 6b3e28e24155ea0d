"""What a figure was measured on: the machine and the versions."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import platform
from pathlib import Path
from typing import Any

from logitree import _core

PACKAGES = ("logitree", "numpy", "llama-cpp-python", "llguidance", "torch", "transformers", "xgrammar")


@functools.cache
def versions() -> dict[str, str]:
    """Versions of Python and of the packages that may take part."""
    found = {"python": platform.python_version(), "profile": _core.__profile__}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@functools.cache
def machine() -> dict[str, Any]:
    """The processor, the cores this process may use, and the system."""
    return {"cpu": _cpu(), "cores": _cores(), "system": f"{platform.system()} {platform.machine()}"}


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def shared(suite: str, quick: bool) -> dict[str, Any]:
    """What all records of a suite have in common."""
    return {"suite": suite, "quick": quick, "versions": versions(), "machine": machine()}


def results_file(suite: str, quick: bool, found: dict[str, Any]) -> str:
    """A results file: readable, a record or another plain row a line."""
    return _json({**shared(suite, quick), **found}, 0) + "\n"


def _json(value: Any, depth: int) -> str:
    """JSON with a line for each entry, down to where an entry is a plain row."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if depth >= 5 or not any(isinstance(v, dict | list) and v for v in inner) or "case" in value:
        return json.dumps(value, ensure_ascii=False)
    keys = (
        [f"{json.dumps(key, ensure_ascii=False)}: " for key in value] if isinstance(value, dict) else [""] * len(value)
    )
    pad = " " * (depth + 1)
    entries = ",\n".join(f"{pad}{key}{_json(v, depth + 1)}" for key, v in zip(keys, inner, strict=True))
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return f"{begin}\n{entries}\n{pad[1:]}{end}"
