"""Arguments as keys and values without quotes: the grammar of a tool's schema in such a form, and reading it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from .._core import Grammar, LogitreeError
from ._protocol import Pairs
from ._python import read_literal
from ._tools import Tool, is_text, resolved

_NO_TEXT = ["null", "boolean", "number", "array", "object"]
_MAX_SPACE = 2
"""White space that a model may write between two pairs, where the form has any."""


def keyed_arguments(
    tools: Sequence[Tool],
    pairs: Pairs,
    parts: Callable[[str], list[Any]],
    ends: Sequence[str],
    options: Mapping[str, Any],
) -> list[Grammar]:
    """The pairs of each tool's arguments, in the order of its properties: what the core's `PairForm` describes.

    Args:
        parts: texts and tokens of a marker.
        ends: what no text contains, beside the end of a pair.

    Raises:
        ConstraintError: a schema that cannot be honoured, an argument that has no name in it, or a key that this form
            cannot write, with the place.
    """
    end = pairs.end.rstrip()
    ways = [([*_NO_TEXT, "string"], pairs.middle)]
    if pairs.text_middle:
        ways = [(["string"], pairs.text_middle), (_NO_TEXT, pairs.middle)]
    form = {
        "begin": parts(pairs.begin),
        "middles": [{"types": types, "parts": parts(middle)} for types, middle in ways],
        "end": parts(end) + ([] if end == pairs.end else [{"spaces": _MAX_SPACE}]),
        "excludes": [pairs.end.strip(), *ends],
        "named_only": True,
        "python": pairs.python or "nothing",
    }
    return Grammar._arguments([(tool.name, tool.schema) for tool in tools], json.dumps(form), **options)


class Reader:
    """What a value without quotes means under its schema: what is valid as something other than a text is that,
    everything else is the text."""

    def __init__(self, schema: Any, root: Mapping[str, Any]) -> None:
        self._schema, self._root = schema, root
        found = resolved(schema, root)
        kinds = found.get("type", "string") if isinstance(found, Mapping) else "string"
        text = is_text(schema, root)
        self.may_be_text = text or ("string" in kinds and self._of(["string"]) is not None)
        """Whether it may be a text."""
        self.is_text = text or (self.may_be_text and self._others is None)
        """Whether it is a text, whatever it looks like."""

    def _of(self, kinds: Sequence[str]) -> Grammar | None:
        """The values of some types, as JSON; None without any, or if the schema says what cannot be honoured."""
        definitions = {name: self._root[name] for name in ("$schema", "$defs", "definitions") if name in self._root}
        try:
            return Grammar.json_schema({**definitions, "type": kinds, "allOf": [self._schema]})
        except LogitreeError:
            return None

    @cached_property
    def _others(self) -> Grammar | None:
        """What is no text."""
        return self._of(_NO_TEXT)

    def __call__(self, written: str, loaded: Any, is_json: bool) -> Any:
        """The value of a text that JSON reads as `loaded`, where it reads it."""
        if self.is_text:
            return written
        was_json = is_json
        if not is_json:
            loaded, is_json = read_literal(written)
            is_json = is_json and not isinstance(loaded, str)
        if not is_json or (was_json and not self.may_be_text):
            return loaded if is_json else written
        if self._others is None:
            return loaded
        return loaded if self._others.matches(json.dumps(loaded, ensure_ascii=False)) else written
