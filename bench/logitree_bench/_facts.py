"""What a figure was measured on: the machine and the versions."""

from __future__ import annotations

import functools
import importlib.metadata
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
