"""Constraints that a request gives as JSON: the core's form, with files only from folders that the server names."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from .. import _core
from .._core import Constraint
from .._errors import error

FOLDERS = "LOGITREE_FILES"
"""The environment variable with the folders whose files requests to a server may name, separated as in PATH."""

_PATHS = {"catalogue": "index", "canonical": "tokenizer"}
"""Types of a form that open a file, and the field with its path."""
_NONE: Mapping[str, str] = MappingProxyType({})


def form_text(form: Any, files: Mapping[str, str] = _NONE) -> str:
    """The text of a form that came as JSON text or parsed.

    Args:
        form: docs/c.md describes it.
        files: paths by the names that requests may give in their place.

    Raises:
        ConstraintError: it is neither, or it names a file outside of the server's folders.
    """
    if isinstance(form, str):
        text = form
    elif isinstance(form, Mapping):
        try:
            text = json.dumps(form)
        except (TypeError, ValueError, RecursionError) as wrong:
            raise error(_core.ConstraintError, f"the constraint is no JSON: {wrong}") from None
    else:
        help = 'give {"type": ...}, the JSON form of a constraint, as an object or as text'
        raise error(_core.ConstraintError, f"{form!r:.60} is no constraint", help=help)
    for path in _paths(text):
        if path not in files:
            _check_path(path)
    return _named(text, files) if files else text


def _named(text: str, files: Mapping[str, str]) -> str:
    """A form with the paths of the files that it names. What is no JSON stays: the core says what is wrong with it."""
    try:
        return json.dumps(_with_paths(json.loads(text), files))
    except ValueError:
        return text
    except RecursionError:
        raise error(_core.LimitError, "the constraint is nested too deep") from None


def _with_paths(value: Any, files: Mapping[str, str]) -> Any:
    """A part of a form with the paths of the files that it names."""
    if isinstance(value, list):
        return [_with_paths(one, files) for one in value]
    if not isinstance(value, dict):
        return value
    made = {name: _with_paths(one, files) for name, one in value.items()}
    if isinstance(made.get("skeleton"), str):  # a form in a form, as text
        made["skeleton"] = _named(made["skeleton"], files)
    kind = value.get("type")
    field = _PATHS.get(kind) if isinstance(kind, str) else None
    if field is not None and isinstance(made.get(field), str):
        made[field] = files.get(made[field], made[field])
    return made


def read_form(form: Any, vocabulary: _core.Vocabulary | None = None, files: Mapping[str, str] = _NONE) -> Constraint:
    """The constraint of a form, as text or parsed.

    Args:
        form: docs/c.md describes it.
        vocabulary: what the ids and names of token trees must fit; None: they are not checked.
        files: paths by the names that requests may give in their place.

    Raises:
        ConstraintError, PayloadError, LimitError: it cannot be honoured, or names a file that the server does not
            give out.
        FileError: a file cannot be read.
    """
    return Constraint.from_form(form_text(form, files), vocabulary=vocabulary)


def _paths(text: str) -> Iterator[str]:
    """All paths in a form. What is no JSON has none: the core says what is wrong with it.

    Every pair of an object counts, so a name that comes twice hides nothing.
    """
    found: list[str] = []

    def seen(pairs: list[tuple[str, Any]]) -> None:
        texts = [(name, value) for name, value in pairs if isinstance(value, str)]
        fields = {_PATHS[value] for name, value in texts if name == "type" and value in _PATHS}
        for name, value in texts:
            if name in fields:
                found.append(value)
            elif name == "skeleton":  # a form in a form, as text
                found.extend(_paths(value))

    try:
        json.loads(text, object_pairs_hook=seen)
    except RecursionError:
        raise error(_core.LimitError, "the constraint is nested too deep") from None
    except ValueError:
        return
    yield from found


def _check_path(path: str) -> None:
    """A ConstraintError unless the file lies in one of the server's folders."""
    named = os.environ.get(FOLDERS, "")
    folders = [os.path.realpath(folder) for folder in named.split(os.pathsep) if folder]
    if not _is_inside(os.path.realpath(path), folders):
        help = f"start the server with {FOLDERS}=FOLDER, and name a file in it"
        raise error(_core.ConstraintError, f"requests may not open the file {path!r}", help=help)


def _is_inside(path: str, folders: Iterable[str]) -> bool:
    return any(path.startswith(os.path.join(folder, "")) for folder in folders)
