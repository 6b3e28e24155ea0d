"""``python -m logitree.bench``: the bench command without the rest of the command line."""

import argparse
import sys

from logitree.bench import add_arguments, run_command

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m logitree.bench")
    add_arguments(parser)
    sys.exit(run_command(parser.parse_args()))
