"""`logitree demo`."""
import argparse
from ._terminal import Terminal
ABOUT = """Show a real model choosing actions."""
def arguments(parser: argparse.ArgumentParser) -> None: ...
def run(args: argparse.Namespace, out: Terminal, err: Terminal) -> int: return 0
