#!/usr/bin/env python3
"""Runs maturin for a release build, profile-guided where rustup's component llvm-tools is installed.

`python scripts/profile_guided.py PYTHON -m maturin build --release ...`. A profile-guided build compiles twice: maturin
builds the core with counters, runs `scripts/training` on it, and compiles again with what was counted.
"""

import os
import subprocess
import sys

FLAGS = "-Cllvm-args=-pgso=false"
"""Loops that the training does not run are vectorised all the same: they must not become slower."""
ADVICE = """Without llvm-tools the release build has no profile, and is about a tenth slower. To get it:
  rustup component add llvm-tools"""


def is_possible():
    """Whether the compiler in use has its own llvm-profdata: another's may not read its counters."""
    name = "llvm-profdata" + (".exe" if os.name == "nt" else "")
    try:
        done = subprocess.run(["rustc", "--print=target-libdir"], capture_output=True, text=True)
    except OSError:
        return False
    return done.returncode == 0 and os.path.exists(os.path.join(done.stdout.strip(), os.pardir, "bin", name))


def environment():
    """What maturin needs in its environment for a profile-guided build. Cargo takes RUSTFLAGS in place of a user's
    configuration."""
    return {"MATURIN_PGO": "true", "RUSTFLAGS": f"{os.environ.get('RUSTFLAGS', '')} {FLAGS}".strip()}


def main():
    """Run the command line, profile-guided if that is possible."""
    env = dict(os.environ)
    if is_possible():
        env.update(environment())
    else:
        print(ADVICE, file=sys.stderr)
    return subprocess.run(sys.argv[1:], env=env).returncode


if __name__ == "__main__":
    sys.exit(main())
