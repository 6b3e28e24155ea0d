"""``python -m logitree_bench SUITE``, with ``bench`` in PYTHONPATH."""

import argparse
import sys

from logitree_bench import add_arguments, run_command

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m logitree_bench")
    add_arguments(parser)
    sys.exit(run_command(parser.parse_args()))
