"""Finished rows in a folder, so that a job that is begun again continues.

Each batch is one Arrow file, which appears whole or not at all. A row is found again by its key, and by a digest of
what was asked: a row that asks something else is generated again.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import _core
from .._errors import error

KEPT = 8
"""Files that are kept in memory: a job that is begun again reads them in about the order in which they were written."""


class Checkpoint:
    """The rows that earlier workers have finished.

    Args:
        folder: that all nodes see; it is made if need be.
        request: what all rows are asked, as JSON.

    Raises:
        StateError: the folder has rows of another request.
    """

    def __init__(self, folder: str | os.PathLike[str], request: Mapping[str, Any]) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._check(json.dumps(request, sort_keys=True, indent=1, default=repr) + "\n")
        self._where: dict[str, tuple[Path, int]] = {}
        self._kept: OrderedDict[Path, Any] = OrderedDict()
        for path in sorted(self._folder.glob("*.arrow")):
            keys = self._read(path).column("key").to_pylist()
            self._where.update((key, (path, at)) for at, key in enumerate(keys))

    def find(self, keys: Sequence[str]) -> dict[int, Any]:
        """What is finished of the rows with these keys: tables of one row, by the row's number."""
        found = {}
        for at, key in enumerate(keys):
            if key in self._where:
                path, row = self._where[key]
                found[at] = self._read(path).drop_columns(["key"]).slice(row, 1)
        return found

    def add(self, keys: Sequence[str], table: Any) -> None:
        """Writes finished rows."""
        arrow = importlib.import_module("pyarrow")
        table = table.append_column("key", arrow.array(keys, arrow.string()))
        name = uuid.uuid4().hex
        hidden = self._folder / f".{name}"
        with arrow.OSFile(str(hidden), "wb") as out, arrow.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
        os.replace(hidden, self._folder / f"{name}.arrow")

    def _read(self, path: Path) -> Any:
        if path not in self._kept:
            arrow = importlib.import_module("pyarrow")
            with arrow.OSFile(str(path), "rb") as file:
                self._kept[path] = arrow.ipc.open_file(file).read_all()
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(path)
        return self._kept[path]

    def _check(self, request: str) -> None:
        path = self._folder / "request.json"
        if not path.exists():
            hidden = self._folder / f".{uuid.uuid4().hex}"
            hidden.write_text(request, encoding="utf-8")
            os.replace(hidden, path)
        elif path.read_text(encoding="utf-8") != request:
            raise error(
                _core.StateError,
                "the checkpoint is of another request: its model, constraint or options differ",
                place=str(path),
                help="give each request a folder of its own, or delete this one",
            )


def key_of(key: Any, asked: Any) -> str:
    """The name of a row in a checkpoint: its key, and a digest of what it asks."""
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True, default=repr).encode()).hexdigest()[:16]
    return f"{key}/{digest}"
