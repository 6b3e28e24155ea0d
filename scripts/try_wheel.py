#!/usr/bin/env python3
"""Installs wheels or sdists of logitree in empty virtual environments, with NumPy only, and uses them.

`python scripts/try_wheel.py dist/*.whl dist/*.tar.gz`
"""

import os
import struct
import subprocess
import sys
import tempfile
import zipfile

PROGRAM = '''
import importlib.resources

import numpy as np
import logitree

class Table(logitree.engines.Engine, logitree.engines.Session):
    """An engine in which each token has the same logits at every position."""

    vocabulary = logitree.Vocabulary.from_tokens([b"a", b"b", b"c", b"yes", b"no", b""], end_tokens=[5])

    def encode(self, prompt, *, chat=None):
        return [3]

    def session(self):
        return self

    def evaluate(self, tokens):
        return np.arange(6, dtype=np.float32)

generation = logitree.generate(Table(), "Do you agree?", ["yes", "no"], seed=1, temperature=0, trace=True)
assert generation.text == "no", generation.text
assert "traceView" in generation.trace.html()
playground = importlib.resources.files("logitree") / "server" / "_playground"
assert {file.name for file in playground.iterdir()} >= {"index.html", "playground.js", "playground.css"}
'''


def sections(library):
    """The names of the sections of a 64-bit ELF file; none of any other."""
    if library[:6] != b"\x7fELF\2\1":
        return set()
    (start,) = struct.unpack_from("<Q", library, 40)
    size, count, names = struct.unpack_from("<HHH", library, 58)
    (text,) = struct.unpack_from("<Q", library, start + names * size + 24)
    at = [text + struct.unpack_from("<I", library, start + n * size)[0] for n in range(count)]
    return {library[place : library.index(b"\0", place)].decode() for place in at}


def check_stripped(file):
    """Fail if a compiled library in the wheel has debug information: it is four fifths of an unstripped one."""
    with zipfile.ZipFile(file) as wheel:
        for name in wheel.namelist():
            if name.endswith(".so") and ".debug_line" in sections(wheel.read(name)):
                raise SystemExit(f"{os.path.basename(file)}: {name} has debug information; build it with --release")


def main():
    """Try each file named on the command line."""
    for file in sys.argv[1:]:
        if file.endswith(".whl"):
            check_stripped(file)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            scripts = os.path.join(folder, "Scripts" if os.name == "nt" else "bin")
            env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
            for command in (
                ["python", "-m", "pip", "install", "-q", "--disable-pip-version-check", os.path.abspath(file)],
                ["python", "-W", "error", "-c", PROGRAM],
                ["logitree", "--help"],
            ):
                command[0] = os.path.join(scripts, command[0])
                subprocess.run(command, check=True, cwd=folder, env=env, stdout=subprocess.DEVNULL)
        print(f"{os.path.basename(file)}: installs and works")
    return 0 if sys.argv[1:] else "usage: try_wheel.py WHEEL_OR_SDIST..."


if __name__ == "__main__":
    sys.exit(main())
