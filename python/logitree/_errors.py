"""Errors that only the Python side can raise. The tree of all of them is drawn in the core's `errors.rs`.

```text
LogitreeError(Exception)
├── ...                           the core's, one class per kind
└── EngineError(RuntimeError)     the thing that runs the model is missing, refused, or cannot hold the prompt
```
"""

from __future__ import annotations

from ._core import LogitreeError


class EngineError(LogitreeError, RuntimeError):
    """The engine is missing, cannot load the model, or cannot do what was asked.

    Attributes:
        place: what it concerns (a path, a text); empty if nothing in particular.
        help: the way out; empty if there is none.
    """

    place: str
    help: str

    def __init__(self, message: str, *, place: str = "", help: str = "") -> None:
        text = message if not place else f"{place}: {message}"
        super().__init__(text if not help else f"{text} (help: {help})")
        self.place = place
        self.help = help
