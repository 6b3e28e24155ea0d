"""Ray Data: a dataset of prompts becomes a dataset of outputs."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import _core
from .._constraint import constraint_of
from .._core import Constraint
from .._errors import error
from .._generate import generate as generate_here
from ._checkpoint import Checkpoint, key_of
from ._columns import plain, value_type
from ._models import Model, check_model, check_options, load

if TYPE_CHECKING:
    from ray.data import Dataset

OURS = ("text", "value", "finish_reason", "seed", "error")
"""The columns that are added."""

FORMS = 256
"""Constraints of rows that a worker keeps: rows often have one of a few."""


def generate(
    dataset: Dataset,
    model: Model,
    constraint: Any = None,
    *,
    prompt: str = "prompt",
    constraints: str | None = None,
    seed: int | str | None = None,
    key: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    rows: int = 16,
    workers: int | tuple[int, int] = 1,
    cores: float = 1,
    gpus: float = 0,
    **options: Any,
) -> Dataset:
    """Generates one output for each row, in workers that load the model once.

    ```python
    answers = logitree.ray.generate(questions, "model.gguf", ["YES", "NO"], prompt="question", workers=4, seed=1)
    ```

    The columns of the dataset stay, and these are added:

    - `text`: string; null where there is none.
    - `value`: of the Arrow type that the constraint has: integers, numbers, booleans, texts, lists and closed objects
      of these. There is no such column where the values have no one type.
    - `finish_reason`: string, as `Generation.finish_reason`.
    - `seed`: uint64, the one that the row was sampled with.
    - `error`: string; what went wrong with this row, null where nothing did. The other rows are not affected.

    Args:
        dataset: of Ray Data.
        model: a path that every node has (a GGUF file, a folder of transformers), or a function without arguments that
            makes an engine in the worker.
        constraint: of all rows, as in `logitree.generate`.
        prompt: the column of prompts: texts, lists of messages, or lists of token ids.
        constraints: the column of constraints in their JSON form (`Constraint.form()`); null: none. Instead of
            `constraint`.
        seed: one for all rows, or the column of seeds. Rows of one seed are sampled as if each ran alone. None draws
            one for each row.
        key: the column that names a row, for `checkpoint`: integers or texts, all different.
        checkpoint: a folder that every node sees, where finished rows are kept. A job that is begun again with the same
            folder takes them from there; a row that has the same key and asks something else is generated.
        rows: rows that a worker decodes together.
        workers: how many; or the least and the most, between which Ray chooses.
        cores: of each worker. A GGUF file is evaluated by as many threads.
        gpus: of each worker.
        **options: as in `logitree.generate`: `max_tokens`, `stop`, `chat`, `temp`, ... What it takes at once for all
            rows of a call (`on_step`, `trace`, `chain`) is not among them.

    Returns:
        A dataset, which runs when it is read. A worker that dies is replaced, and its batch begins again.

    Raises:
        TypeError: for an unknown option, a constraint that means none, a model that is loaded here.
        ConstraintError: for both `constraint` and `constraints`; with a checkpoint, for one without a JSON form.
        StateError: for a checkpoint without a key, and when the dataset is read for one of another request.
        ImportError: without Ray Data.
    """
    importlib.import_module("ray.data")
    check_model(model)
    check_options(options, ("on_step", "trace", "chain", "drafter", "n"), "batches of workers")
    if constraint is not None and constraints is not None:
        raise error(_core.ConstraintError, "both constraint= and constraints=", help="give one of them")
    if checkpoint is not None and key is None:
        raise error(_core.StateError, "a checkpoint needs a key", help="name the column that tells rows apart: key=")
    if constraint is not None:
        constraint_of(constraint)
    columns = {
        "prompt": prompt,
        "constraints": constraints,
        "key": key,
        "seed": seed if isinstance(seed, str) else None,
    }
    if not isinstance(seed, str):
        options["seed"] = seed
    kept = None
    if checkpoint is not None:
        # A constraint without a JSON form cannot be compared with that of an earlier run.
        form = None if constraint is None else constraint_of(constraint).form()
        name = getattr(model, "__qualname__", None) or os.fspath(model)  # type: ignore[arg-type]
        kept = os.fspath(checkpoint), {"model": name, "constraint": form, "options": options}
    given = (model, constraint, columns, options, kept, cores)
    return dataset.map_batches(
        Worker,
        fn_constructor_args=given,
        batch_size=rows,
        batch_format="pyarrow",
        compute=importlib.import_module("ray.data").ActorPoolStrategy(
            **({"size": workers} if isinstance(workers, int) else {"min_size": workers[0], "max_size": workers[1]})
        ),
        num_cpus=cores,
        num_gpus=gpus,
        max_restarts=-1,
        max_task_retries=-1,
    )


class Worker:
    """What an actor of Ray Data calls with each batch. Arguments: those of `generate`, checked."""

    def __init__(
        self,
        model: Model,
        constraint: Any,
        columns: Mapping[str, str | None],
        options: Mapping[str, Any],
        checkpoint: tuple[str, Mapping[str, Any]] | None,
        cores: float,
    ) -> None:
        self._constraint, self._columns, self._options = constraint, columns, dict(options)
        self._type = None if constraint is None else value_type(constraint)
        self._shared = None if constraint is None else constraint_of(constraint)
        self._checkpoint = None if checkpoint is None else Checkpoint(*checkpoint)
        self._engine = load(model, cores)
        self._of_form = functools.lru_cache(FORMS)(Constraint.from_form)

    def __call__(self, table: Any) -> Any:
        """A pyarrow table with the columns of `generate` added."""
        arrow = importlib.import_module("pyarrow")
        clash = sorted(set(OURS) & set(table.column_names))
        if clash:
            raise ValueError(f"the dataset has a column {clash[0]!r}, which is one that is added: rename it")
        asked = self._asked(table)
        names = self._names(table, asked)
        done = self._checkpoint.find(names) if self._checkpoint is not None else {}
        missing = [at for at in range(len(asked)) if at not in done]
        made = self._made([asked[at] for at in missing])
        if self._checkpoint is not None and missing:
            self._checkpoint.add([names[at] for at in missing], made)
        done.update((at, made.slice(row, 1)) for row, at in enumerate(missing))
        found = arrow.concat_tables([done[at] for at in range(len(asked))]) if asked else made
        for name in found.column_names:
            table = table.append_column(name, found.column(name))
        return table

    def _asked(self, table: Any) -> list[tuple[Any, Any, Any]]:
        """Prompt, form of a constraint and seed of each row."""
        columns = []
        for kind in ("prompt", "constraints", "seed"):
            name = self._columns[kind]
            if name is not None and name not in table.column_names:
                raise KeyError(f"the dataset has no column {name!r} ({kind}=); it has {table.column_names}")
            columns.append([None] * len(table) if name is None else table.column(name).to_pylist())
        return list(zip(*columns, strict=True))

    def _names(self, table: Any, asked: Sequence[Any]) -> list[str]:
        name = self._columns["key"]
        if name is None or self._checkpoint is None:
            return [""] * len(asked)
        return [key_of(key, row) for key, row in zip(table.column(name).to_pylist(), asked, strict=True)]

    def _made(self, asked: Sequence[tuple[Any, Any, Any]]) -> Any:
        """A table of what is generated for these rows."""
        arrow = importlib.import_module("pyarrow")
        results: list[dict[str, Any]] = [{} for _ in asked]
        constraints: dict[int, Constraint | None] = {}
        for at, (_, form, _) in enumerate(asked):
            try:
                read = self._of_form if isinstance(form, str) else Constraint.from_form  # which refuses it
                constraints[at] = self._shared if form is None else read(form)
            except (_core.LogitreeError, TypeError) as wrong:
                results[at] = {"error": str(wrong)}
        self._generate(asked, constraints, results)
        if self._type is not None:
            for row in results:
                self._fit(row)
        text = arrow.string()
        kinds = {"text": text, "value": self._type, "finish_reason": text, "seed": arrow.uint64(), "error": text}
        columns = {name: [row.get(name) for row in results] for name in OURS}
        return arrow.table({name: arrow.array(columns[name], kind) for name, kind in kinds.items() if kind is not None})

    def _generate(
        self, asked: Sequence[Any], constraints: Mapping[int, Constraint | None], results: list[dict[str, Any]]
    ) -> None:
        """Decodes rows together; where that fails, each alone, to find the one that it fails for."""
        rows = list(constraints)
        if not rows:
            return
        try:
            given = {**self._options, "seed": [asked[at][2] for at in rows]} if self._columns["seed"] else self._options
            made = generate_here(self._engine, [asked[at][0] for at in rows], [constraints[at] for at in rows], **given)
            read = [self._result(one) for one in made]
        except (_core.LogitreeError, TypeError, ValueError) as wrong:
            if len(rows) == 1:
                results[rows[0]] = {"error": f"{type(wrong).__name__}: {wrong}"}
                return
            for at in rows:
                self._generate(asked, {at: constraints[at]}, results)
            return
        for at, result in zip(rows, read, strict=True):
            results[at] = result

    def _result(self, generation: Any) -> dict[str, Any]:
        found = {
            "text": generation.text,
            "finish_reason": generation.finish_reason,
            "seed": generation.stats.seed,
        }
        try:
            found["value"] = plain(generation.value, generation.text)
        except (_core.LogitreeError, ValueError) as wrong:
            found["error"] = f"{type(wrong).__name__}: {wrong}"
        return found

    def _fit(self, row: dict[str, Any]) -> None:
        """Makes a row's value an error where its column does not hold it."""
        arrow = importlib.import_module("pyarrow")
        try:
            arrow.array([row.get("value")], self._type)
        except (arrow.ArrowException, OverflowError, TypeError, ValueError) as wrong:
            row.update(value=None, error=f"the value is no {self._type}: {wrong}")
