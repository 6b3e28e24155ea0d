#!/usr/bin/env python3
"""Installs what SGLang needs without a GPU, for scripts/setup.py: its grammars, requests and sampling run on a CPU.

Run by the environment's own Python, after `pip install --no-deps sglang`, whose metadata have the versions. gguf,
sentencepiece and accelerate read the tests' model.
"""

import importlib.metadata
import re
import subprocess
import sys

ON_DEVICES = re.compile("cuda|flash|kernel|nvidia|nvshmem|sgl-|tilelang|torchaudio|torchcodec")
"""What the names of packages say that are of use on a GPU alone, or need torch for one."""


def requirements():
    """What to install, as pip takes it."""
    lines = [*(importlib.metadata.requires("sglang") or ()), "accelerate"]
    return [line for line in lines if "extra ==" not in line and not ON_DEVICES.search(line.partition("[")[0])]


if __name__ == "__main__":
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile"]
    sys.exit(subprocess.run([*command, *requirements(), *sys.argv[1:]]).returncode)
