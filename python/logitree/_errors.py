"""Errors that only the Python side can raise. The tree of all of them is drawn in the core's `errors.rs`.

```text
LogitreeError(Exception)
├── ...                           the core's, one class per kind
├── ConstraintError
│   ├── IncompleteError           the output ended before its constraint was complete
│   └── ValueMismatchError        a complete output is no value of the type that was asked for
└── EngineError(RuntimeError)     the thing that runs the model is missing, refused, or cannot hold the prompt
    └── MissingModelError         there is no file of this name: a FileNotFoundError too

UserWarning
└── SchemaWarning                 a part of a schema was dropped (lenient=True)
```
"""

from __future__ import annotations

from typing import TypeVar

from ._core import ConstraintError, FileError, LogitreeError, MissingFileError

_Error = TypeVar("_Error", bound=LogitreeError)


class SchemaWarning(UserWarning):
    """A part of a JSON Schema that cannot be honoured was dropped under ``lenient=True``."""


class EngineError(LogitreeError, RuntimeError):
    """The engine is missing, cannot load the model, or cannot do what was asked.

    Attributes:
        place: what it concerns (a path, a text); empty if nothing in particular.
        help: the way out; empty if there is none.
    """

    def __init__(self, message: str, *, place: str = "", help: str = "") -> None:
        super().__init__(_text(message, place, help))
        self.place = place
        self.help = help


class MissingModelError(EngineError, MissingFileError):
    """There is no file or folder at the path of a model."""


class IncompleteError(ConstraintError):
    """The output ended before its constraint was complete.

    Attributes:
        place: the end of the output.
        help: the way out.
    """

    def __init__(self, message: str, *, place: str = "", help: str = "") -> None:
        super().__init__(_text(message, place, help))
        self.place = place
        self.help = help


class ValueMismatchError(ConstraintError):
    """A complete output is no value of the type that was asked for: the type refuses more than its schema says.

    Attributes:
        text: the output.
        type: the type's name.
        reason: what the type says about the text.
        place: the JSON pointer of the value that is refused; empty for the whole text.
        help: the way out.
    """

    def __init__(
        self, message: str, *, text: str = "", type: str = "", reason: str = "", place: str = "", help: str = ""
    ) -> None:
        super().__init__(_text(message, place, help))
        self.text = text
        self.type = type
        self.reason = reason
        self.place = place
        self.help = help


def error(kind: type[_Error], message: str, *, place: str = "", help: str = "") -> _Error:
    """An error of the core's tree that Python code found, worded as the core words its own."""
    made = kind(_text(message, place, help))
    made.place = place
    made.help = help
    return made


def again(raised: _Error) -> _Error:
    """A new error that says what an earlier one said, without its traceback."""
    made = type(raised)(*raised.args)
    made.place, made.help = raised.place, raised.help
    return made


def file_error(problem: Exception, message: str, *, place: str = "") -> FileError:
    """The error of a file that Python could not open or read."""
    kind = MissingFileError if isinstance(problem, FileNotFoundError) else FileError
    return error(kind, f"{message}: {getattr(problem, 'strerror', None) or problem}", place=place)


def _text(message: str, place: str, help: str) -> str:
    """What went wrong, where, and the way out; the core's `error.rs` has the same form."""
    where = f" (at {place})" if place else ""
    out = f"; {help}" if help else ""
    return f"{message}{where}{out}"
