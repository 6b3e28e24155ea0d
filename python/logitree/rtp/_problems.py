"""What is wrong with a configuration, collected so that one error lists all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .._core import PayloadError

MAX_PROBLEMS = 100
"""Problems that are kept; more are only counted."""
MAX_EVIDENCE = 60
"""Characters of a value that a message shows."""


@dataclass(frozen=True)
class Problem:
    """Something in a configuration that cannot be honoured."""

    place: str
    """A variable, or a JSON pointer and the file that it is in: `/combo_token_size in rtp.json`."""
    message: str
    """What is wrong."""
    help: str = ""
    """The way out."""

    def __str__(self) -> str:
        said = f"{self.place}: {self.message}"
        return f"{said}; {self.help}" if self.help else said


class ConfigError(PayloadError):
    """A configuration with problems. The message lists them all, one a line.

    Attributes:
        problems: what is wrong, in the order of the sources.
        place: the place of the first problem.
        help: the way out of the first problem.
    """

    def __init__(self, problems: Sequence[Problem], more: int = 0) -> None:
        count = len(problems) + more
        lines = [str(problem) for problem in problems]
        if more:
            lines.append(f"and {more} more")
        head = "a problem" if count == 1 else f"{count} problems"
        super().__init__(f"{head} in the configuration:\n  " + "\n  ".join(lines))
        self.problems = tuple(problems)
        self.place = problems[0].place
        self.help = problems[0].help


class Problems:
    """Problems as they are found."""

    def __init__(self) -> None:
        self._found: list[Problem] = []
        self._more = 0
        self.notes: list[str] = []
        """What was passed over, and is no problem."""

    def add(self, place: str, message: str, help: str = "") -> None:
        """One more."""
        if len(self._found) < MAX_PROBLEMS:
            self._found.append(Problem(place, message, help))
        else:
            self._more += 1

    def note(self, place: str, message: str) -> None:
        """Something that was passed over."""
        if len(self.notes) < MAX_PROBLEMS:
            self.notes.append(f"{place}: {message}")

    def check(self) -> None:
        """Raises ConfigError if there were any."""
        if self._found:
            raise ConfigError(self._found, self._more)


def shown(value: object) -> str:
    """A value as a message shows it, cut where it is long."""
    if type(value) is int and value.bit_length() > 200:
        return "a number of more than 60 digits"  # Its digits are never written: that takes quadratic time.
    text = repr(value[:MAX_EVIDENCE] if isinstance(value, (str, list, tuple)) else value)
    return text if len(text) <= MAX_EVIDENCE else f"{text[:MAX_EVIDENCE]}..."
