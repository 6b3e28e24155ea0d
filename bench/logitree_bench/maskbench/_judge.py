"""Asks the jsonschema package about an instance whose flag and verdict differ: a flag in the data may be wrong.

It knows no engine and no tokens.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from logitree_bench._harness import Skip, optional

Opinion = tuple[bool | None, str]
"""Whether the instance is valid (None: it cannot say) and why."""


class Judge:
    """The jsonschema package with every format that it knows of any draft, the newest draft's reading first.

    MaskBench's own flags assert formats in schemas of drafts that do not have them yet.
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._checker = module.FormatChecker()
        newest = module.Draft202012Validator.FORMAT_CHECKER.checkers
        self._checker.checkers = {**module.FormatChecker.checkers, **newest}

    def opinion(self, schema: Any, data: Any) -> Opinion:
        """What it says of an instance; formats count."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return self._opinion(schema, data)
            except Exception as problem:  # it has no common base for what goes wrong with schemas and references
                return None, f"{type(problem).__name__}: {problem}"[:200]

    def _opinion(self, schema: Any, data: Any) -> Opinion:
        find = self._module.validators.validator_for
        validator = find(schema, default=self._module.Draft202012Validator)(schema, format_checker=self._checker)
        problem = self._module.exceptions.best_match(validator.iter_errors(data))
        if problem is not None:
            return False, f"{problem.json_path}: {problem.validator}: {problem.message}"[:200]
        unknown = sorted(set(formats(schema)) - set(self._checker.checkers))
        if unknown:
            return None, f"jsonschema cannot check the format {', '.join(unknown)} here"
        return True, "jsonschema finds nothing wrong"


def formats(schema: Any) -> Iterator[str]:
    """Every string under a key ``format``."""
    todo = [schema]
    while todo:
        at = todo.pop()
        if isinstance(at, dict):
            if isinstance(at.get("format"), str):
                yield at["format"]
            todo += at.values()
        elif isinstance(at, list):
            todo += at


def judge() -> Judge | Skip:
    """The judge, or why there is none."""
    module = optional("jsonschema")
    return module if isinstance(module, Skip) else Judge(module)
