"""Token bytes to text, as they come: whole characters only, nothing that may become a stop string.

Knows nothing of tokens or models.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class TextStream:
    """Turns byte pieces into text that never has to be taken back.

    Bytes that are no UTF-8 become U+FFFD: at once if nothing could complete them, at the end if something
    could. Equal to `b"".join(pieces).decode("utf-8", "replace")`, cut before the stop string that is
    complete first.
    """

    def __init__(self, stop: Sequence[str] = ()) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._stop = tuple(stop)
        self._longest = max(map(len, self._stop), default=0)
        self._held = ""
        self._out: list[str] = []
        self.stopped: str | None = None
        """The stop string that ended the text, or None."""

    @property
    def text(self) -> str:
        """All that was given out so far."""
        return "".join(self._out)

    def push(self, data: bytes) -> str:
        """Takes bytes, gives the text that is certain now. After a stop string nothing is taken any more."""
        return self._take(self._decoder.decode(data))

    def end(self) -> str:
        """No more bytes will come: gives the rest."""
        rest = self._take(self._decoder.decode(b"", final=True))
        if self.stopped is None:
            rest += self._held
            self._out.append(self._held)
        self._held = ""
        return rest

    def _take(self, text: str) -> str:
        if self.stopped is not None:
            return ""
        text = self._held + text
        found = min(((at + len(s), at, s) for s in self._stop if (at := text.find(s)) >= 0), default=None)
        if found is not None:
            _, at, self.stopped = found
            self._held = ""
        else:
            at = len(text) - self._could_begin_stop(text)
            self._held = text[at:]
        self._out.append(text[:at])
        return text[:at]

    def _could_begin_stop(self, text: str) -> int:
        """Length of the longest end of `text` that a stop string begins with."""
        for n in range(min(self._longest - 1, len(text)), 0, -1):
            if any(s.startswith(text[-n:]) for s in self._stop if len(s) > n):
                return n
        return 0
