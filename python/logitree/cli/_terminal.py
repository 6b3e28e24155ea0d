"""What a terminal can show: colour, width, one line that changes in place. Knows nothing of tokens or
models."""

from __future__ import annotations

import os
import unicodedata
from typing import TextIO

_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}
_EIGHTHS = " ▏▎▍▌▋▊▉█"


class Terminal:
    """One output stream and what may be sent to it.

    Args:
        stream: where to write.
        color: "always", "never", or "auto": on a terminal, unless NO_COLOR is set or TERM is "dumb".
    """

    def __init__(self, stream: TextIO, color: str = "auto") -> None:
        self.stream = stream
        self.is_tty = stream.isatty()
        plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
        self.color = color == "always" or (color == "auto" and self.is_tty and not plain)
        self.unicode = (stream.encoding or "").lower().replace("-", "").startswith("utf")
        self._on_line = False

    @property
    def width(self) -> int:
        """Columns of this stream, which need not be standard output; 80 where there is no telling."""
        try:
            return os.get_terminal_size(self.stream.fileno()).columns or 80
        except (OSError, ValueError):
            return 80

    def paint(self, text: str, *styles: str) -> str:
        """The text in these styles, or as it is where there is no colour."""
        if not self.color or not styles or not text:
            return text
        return f"\x1b[{';'.join(_CODES[s] for s in styles)}m{text}\x1b[0m"

    def line(self, text: str = "") -> None:
        """Writes one line, in place of a progress line if there is one."""
        self.clear()
        self.write(text + "\n")

    def write(self, text: str) -> None:
        """Writes text as it is, and at once. What the stream's encoding lacks becomes '?'."""
        encoding = self.stream.encoding or "utf-8"
        self.stream.write(text.encode(encoding, "replace").decode(encoding, "replace"))
        self.stream.flush()

    def progress(self, label: str, fraction: float) -> None:
        """A bar on a line that changes in place; only on a terminal. It never wraps, for a wrapped one would stay."""
        if not self.is_tty:
            return
        hide = "" if self._on_line else "\x1b[?25l"
        bar = self.paint(self.bar(fraction, max(0, min(24, self.width - 29))), "cyan")
        self._on_line = True
        self.write(f"{hide}\r\x1b[K  {label:<20} {bar} {fraction:4.0%}")

    def clear(self) -> None:
        """Takes the progress line away and shows the cursor again."""
        if self._on_line:
            self._on_line = False
            self.write("\r\x1b[K\x1b[?25h")

    def restore(self) -> None:
        """Leaves the terminal as it was found, in any situation: no progress line, cursor shown, no
        colour."""
        try:
            self.clear()
            if self.color and self.is_tty:
                self.write("\x1b[0m")
        except (BrokenPipeError, ValueError):
            self._on_line = False

    def bar(self, fraction: float, cells: int) -> str:
        """A bar of this many cells, filled by the fraction."""
        fraction = min(max(fraction, 0.0), 1.0)
        if not self.unicode:
            return ("#" * round(fraction * cells)).ljust(cells, ".")
        eighths = round(fraction * cells * 8)
        full, part = divmod(eighths, 8)
        return ("█" * full + (_EIGHTHS[part] if part else "")).ljust(cells)


def cells(text: str) -> int:
    """Columns that a text takes on a terminal."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def fit(text: str, width: int) -> str:
    """The text cut or padded to exactly this many columns."""
    if cells(text) > width:
        while text and cells(text) > width - 1:
            text = text[:-1]
        text += "…"
    return text + " " * (width - cells(text))


def safe(text: str) -> str:
    """Text that cannot steer a terminal: control characters other than newline and tab are written out."""
    return "".join(c if c.isprintable() or c in "\n\t" else _written_out(c) for c in text)


def visible(data: bytes) -> str:
    """Bytes on one line, with whitespace to be seen: a space in front as '·', a newline as '\\n'."""
    text = data.decode("utf-8", "backslashreplace")
    shown = "".join(c if c.isprintable() else _written_out(c) for c in text)
    spaces = len(shown) - len(shown.lstrip(" "))
    return "·" * spaces + shown[spaces:]


def _written_out(c: str) -> str:
    return c.encode("unicode_escape").decode("ascii") if not 0xD800 <= ord(c) < 0xE000 else "\ufffd"
