"""The output types of outlines as grammars. Its classes are known by their names: outlines itself is not imported."""

from __future__ import annotations

import json
from typing import Any

from . import _core
from ._errors import error

_HOME = "outlines.types.dsl"
_BLANK = "[ ]?"
"""What outlines has between the parts of JSON, where the type says nothing else."""


def is_term(value: Any) -> bool:
    """Whether the value is a term of outlines: a `Regex`, `CFG`, `JsonSchema`, `Choice`, or made of them."""
    return any(kind.__module__ == _HOME and kind.__name__ == "Term" for kind in type(value).__mro__)


def grammar_of(term: Any) -> _core.Grammar:
    """The grammar of the texts that a term of outlines means.

    Raises:
        ConstraintError: a pattern, grammar or schema in it cannot be honoured.
        TypeError: a kind of term that is not known.
    """
    if isinstance(term, str):
        return _core.Grammar.literal(term)
    if not is_term(term):  # an item of a choice: a number, a boolean
        return _core.Grammar.literal(str(term))
    kind = type(term).__name__
    if kind == "String":
        return _core.Grammar.literal(term.value)
    if kind == "Regex":
        return _core.Grammar.regex(term.pattern)
    if kind == "CFG":
        return _core.Grammar.lark(term.definition)
    if kind == "JsonSchema":
        return _json(term.schema, term.whitespace_pattern or _BLANK)
    if kind in ("Choice", "Alternatives"):
        ways = [grammar_of(item) for item in (term.items if kind == "Choice" else term.terms)]
        made = ways[0]
        for way in ways[1:]:
            made = made | way
        return made
    if kind == "Sequence":
        made = _core.Grammar.literal("")
        for part in term.terms:
            made = made + grammar_of(part)
        return made
    if kind in _COUNTS:
        least, most = _COUNTS[kind](term)
        return grammar_of(term.term).repeat(least, most)
    raise TypeError(f"outlines' {kind} is not known: give its texts as a Grammar")


def _json(text: str, blank: str) -> _core.Grammar:
    """JSON with this white space between its parts, which outlines writes as a pattern."""
    from ._schemas import _closed

    if not _core.Grammar.regex(blank).matches(""):
        help = f"make it optional: ({blank})?"
        raise error(_core.ConstraintError, "white space between the parts of JSON must be optional", help=help)
    schema = _closed(json.loads(text))
    if not isinstance(schema, dict):  # true or false
        schema = {"allOf": [schema]}
    schema["x-guidance"] = {"whitespace_pattern": blank}
    return _core.Grammar.lark(f"start: %json {json.dumps(schema)}")


_COUNTS: dict[str, Any] = {
    "KleeneStar": lambda term: (0, None),
    "KleenePlus": lambda term: (1, None),
    "Optional": lambda term: (0, 1),
    "QuantifyExact": lambda term: (term.count, term.count),
    "QuantifyMinimum": lambda term: (term.min_count, None),
    "QuantifyMaximum": lambda term: (0, term.max_count),
    "QuantifyBetween": lambda term: (term.min_count, term.max_count),
}
"""How often the term inside comes."""
