"""The command `logitree`: one file a command, over the public API. Exit codes: 0 done, 1 error, 2 usage, 130
Ctrl-C."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from .. import LogitreeError, SamplingError, __version__
from . import _common, choose, demo, explain, generate, index, mask, rtp, serve, trie, vocab
from ._common import UsageError
from ._terminal import Terminal

COMMANDS = (choose, generate, serve, mask, explain, vocab, trie, index, rtp, demo)


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    top = argparse.ArgumentParser(
        prog="logitree", description="Decides an LLM's next token: always legal, reproducible, explained."
    )
    top.add_argument("--version", action="version", version=f"logitree {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    for command in COMMANDS:
        name = command.__name__.rpartition(".")[2]
        about, _, rest = (command.ABOUT).partition("\n")
        sub = commands.add_parser(
            name,
            help=about,
            description=about,
            epilog=rest.strip() or None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.arguments(sub)
        sub.set_defaults(run=command.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and gives its exit code. Usage errors of argparse leave by SystemExit(2)."""
    args = parser().parse_args(_spelled(sys.argv[1:] if argv is None else argv))
    color = getattr(args, "color", "auto")
    out, err = Terminal(sys.stdout, color), Terminal(sys.stderr, color)
    try:
        code = int(args.run(args, out, err))
        sys.stdout.flush()
        return code
    except (UsageError, SamplingError) as error:
        _complain(err, str(error))
        return 2
    except BrokenPipeError:
        # The reader of a pipe went away: end as quietly as other tools do, also in the flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except LogitreeError as error:
        _complain(err, str(error))
        return 1
    except OSError as error:
        place = "" if error.filename is None else f"{error.filename}: "
        _complain(err, f"{place}{error.strerror or error}")
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        out.restore()
        err.restore()


def _spelled(argv: Sequence[str]) -> list[str]:
    """The arguments with `--trace FILE`, where FILE ends in .html or .jsonl, as `--trace-to=FILE`. `--trace` itself
    takes no argument, so that a prompt may follow it."""
    made = list(argv)
    for at in reversed(range(len(made))):
        if "--" in made[:at]:
            continue
        option, equals, file = made[at].partition("=")
        if option != "--trace":
            continue
        if equals:
            made[at] = f"--trace-to={file}"
        elif at + 1 < len(made) and made[at + 1].endswith(_common.TRACE_FILES):
            made[at : at + 2] = [f"--trace-to={made[at + 1]}"]
    return made


def _complain(terminal: Terminal, message: str) -> None:
    terminal.line(f"{terminal.paint('logitree: error:', 'red', 'bold')} {' '.join(message.split())}")
