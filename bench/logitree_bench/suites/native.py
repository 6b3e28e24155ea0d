"""What the C interface and the sampler in llama.cpp's own chain cost, timed by a native program.

The program is `crates/logitree-c/examples/native.rs`; cargo builds it as `make c` builds the library, or with the
dev profile where the extension has that. No Python runs between the clock's readings.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import logitree as lt
from logitree_bench import Bench, large_vocabulary, required
from logitree_bench.suites._actions import ACTIONS
from logitree_bench.suites.decoder import payload, spell

ROOT = Path(__file__).resolve().parents[3]

TARGETS: dict[str, dict[str, Any]] = {
    "call through C": {"unit": "ns", "target": 50.0},
    "step in llama.cpp's chain": {"unit": "us", "target": 1.0},
    "default chain as one sampler": {"unit": "us", "target_ratio": 15.0, "against": "llama.cpp"},
}
"""What a case should not exceed, by the beginning of its name."""


def run(bench: Bench) -> None:
    """Build the program, run it, and record what it prints."""
    path = required(large_vocabulary())
    if shutil.which("cargo") is None or not (ROOT / "crates").is_dir():
        bench.skip("native", "cargo or the sources are not here")
        return
    vocabulary = lt.Vocabulary.from_gguf(path)
    leaves = {name: spell(vocabulary, name.encode()) for name in ACTIONS}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "payload.json"
        file.write_text(payload(leaves, "bench"), encoding="utf-8")
        for found in measured([str(path), str(file), *libllama()]):
            record(bench, found)


def measured(arguments: list[str]) -> list[dict[str, Any]]:
    """What the program prints."""
    profile = "dev" if lt._core.__profile__ == "dev" else "release"
    # With the bindings, whose build has compiled what the two have in common.
    command = ["cargo", "build", "-q", "--profile", profile, "-p", "logitree-c", "-p", "logitree-python"]
    command += ["--example", "native", "--message-format", "json"]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    (program,) = {message["executable"] for message in messages if message.get("executable")}
    done = subprocess.run([program, *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def libllama() -> list[str]:
    """The path of llama-cpp-python's library, if there is one."""
    spec = importlib.util.find_spec("llama_cpp")
    if spec is None or spec.origin is None:
        return []
    return [str(path) for path in sorted((Path(spec.origin).parent / "lib").glob("libllama.so"))]


def record(bench: Bench, found: dict[str, Any]) -> None:
    """Record a case; the program's figures are nanoseconds."""
    name = found.pop("case")
    aims = next((dict(aims) for start, aims in TARGETS.items() if name.startswith(start)), {"unit": "ns"})
    scale = 1e-3 if aims["unit"] == "us" else 1.0
    ours = (found.pop("ours") - found.pop("minus", 0.0)) * scale
    peers = {"llama.cpp": found.pop("peer") * scale} if "peer" in found else {}
    more = {key: value * scale for key, value in found.items()}
    bench.record(name, ours, peers=peers, **aims, **more)
