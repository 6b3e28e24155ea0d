"""Constraints composed of others: sequences, choices, intersections, repetitions, bans and counts of tokens."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

from . import _core
from ._constraint import Context, OneOf, Typed, bind_in, constraint_of
from ._core import Constraint
from ._errors import error
from ._reasoning import ReasoningBudget
from .catalogue import Catalogue, CatalogueConstraint

__all__ = ["Composed", "at_least", "at_most", "ban", "both", "either", "optional", "repeat", "then", "until"]

Kind = Literal["then", "either", "both", "repeat", "until", "ban", "at_least", "at_most"]

_MAX_COUNT = 2**32 - 1
_SAME_VALUE = ("both", "ban", "at_least", "at_most")
"""Compositions whose outputs are outputs of their first part."""


class Composed(Constraint):
    """A constraint that the functions of this module make: a value like all constraints.

    Compared and hashed by its parts, pickled where they can be.
    """

    __slots__ = ("_fixed", "kind", "options", "parts")

    def __init__(self, kind: Kind, parts: Iterable[Constraint], options: tuple[Any, ...] = ()) -> None:
        self.kind: Kind = kind
        """What the parts are composed to."""
        self.parts: tuple[Constraint, ...] = tuple(parts)
        """The constraints inside."""
        self.options = options
        """What else was given: counts, words, tokens."""
        self._fixed: _core.Composition | None = None
        if _depth(self) > _core.Composition.MAX_NESTED:
            message = f"compositions are nested more than {_core.Composition.MAX_NESTED} deep"
            raise error(_core.LimitError, message, help="write long chains as one sequence or choice")

    def matcher(self, vocabulary: _core.Vocabulary) -> _core.Matcher:
        """A matcher at the beginning of the output.

        Raises:
            ConstraintError: nothing can be written, or a part cannot be honoured with this vocabulary.
            LimitError: whether an output exists is not decided within the limits.
        """
        return self.bind(Context(vocabulary))

    def bind(self, context: Context) -> _core.Matcher:
        """As `matcher`, with the engine's tokenisation and the prompt."""
        return self._plan(replace(context, spelling=None)).matcher(context.vocabulary)

    def value(self, text: str, tokens: Sequence[int]) -> Any:
        """What the output means to the first part where that is an output of it, and else the text."""
        return self.parts[0].value(text, tokens) if self.kind in _SAME_VALUE else text

    def form(self) -> str:
        """As `Constraint.form`, if all parts have a form."""
        parts = [json.loads(part.form()) for part in self.parts]
        if self.kind in ("then", "either", "both"):
            return json.dumps({"type": "sequence" if self.kind == "then" else self.kind, "of": parts})
        form: dict[str, Any] = {"type": self.kind, "of": parts[0]}
        if self.kind == "until":
            form["stop"] = parts[1]
        elif self.kind == "repeat":
            form["min"], form["max"] = self.options
        elif self.kind == "ban":
            form["words"], form["tokens"] = self.options
        else:
            (form["n"],) = self.options
        return json.dumps(form)

    def _plan(self, context: Context) -> _core.Composition:
        """The core's composition, kept where it means the same in every context."""
        if self._fixed is not None:
            return self._fixed
        made = self._made(context)
        if is_fixed(self):
            self._fixed = made
        return made

    def _made(self, context: Context) -> _core.Composition:
        inside = [_part(part, context) for part in self.parts]
        plan = _core.Composition
        if self.kind == "then":
            return plan.then(inside)
        if self.kind == "either":
            return plan.either(inside)
        if self.kind == "both":
            return plan.both(inside[0], inside[1])
        if self.kind == "until":
            return plan.until(inside[0], inside[1])
        if self.kind == "repeat":
            return plan.repeat(inside[0], *self.options)
        if self.kind == "ban":
            words, sequences = self.options
            return plan.without(inside[0], list(words), [list(tokens) for tokens in sequences])
        if self.kind == "at_least":
            return plan.at_least(inside[0], *self.options)
        return plan.at_most(inside[0], *self.options)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Composed):
            return NotImplemented
        return (self.kind, self.options, self.parts) == (other.kind, other.options, other.parts)

    def __hash__(self) -> int:
        return hash((self.kind, self.options, self.parts))

    def __reduce__(self) -> tuple[Any, ...]:
        return Composed, (self.kind, self.parts, self.options)

    def __repr__(self) -> str:
        shown = [repr(part) for part in self.parts[:4]]
        shown += ["..."] if len(self.parts) > 4 else []
        shown += [repr(option) for option in self.options]
        return f"{self.kind}({', '.join(shown)})"


def then(*parts: Any) -> Constraint:
    """One part after the other.

    Where neighbours are both grammars, texts or recognisers, a token may hold the end of one and the beginning of the
    next; every other border is a token boundary. A `ReasoningBudget` without an answer takes the rest as its answer.

    Args:
        parts: what takes a constraint takes each of them; a plain `str` is refused, as everywhere.

    Raises:
        TypeError: a part means no constraint.
        ConstraintError: there is no part.
        LimitError: compositions are nested more than 100 deep.
    """
    given = _flat("then", parts)
    if len(given) > 1 and isinstance(given[0], ReasoningBudget) and given[0].then is None:
        return replace(given[0], then=given[1] if len(given) == 2 else Composed("then", given[1:]))
    return Composed("then", given)


def either(*parts: Any) -> Composed:
    """Any of the parts.

    Raises:
        TypeError, ConstraintError, LimitError: as `then`.
    """
    return Composed("either", _flat("either", parts))


def both(first: Any, second: Any, *more: Any) -> Composed:
    """What all of them allow, without dead ends.

    Exact wherever it is decided: always between regular languages, and between any two constraints whose common states
    are few enough to search. Where it is not decided the answer is a `LimitError`, never a mask with a dead end.

    Raises:
        TypeError: a part means no constraint.
        ConstraintError: at `matcher`: the intersection is empty.
        LimitError: compositions are nested more than 100 deep; at `matcher` and in the matcher's calls: not decided.
    """
    made = Composed("both", [constraint_of(first), constraint_of(second)])
    for other in more:
        made = Composed("both", [made, constraint_of(other)])
    return made


def optional(part: Any) -> Composed:
    """The part or nothing.

    Raises:
        TypeError, LimitError: as `then`.
    """
    return repeat(part, 0, 1)


def repeat(part: Any, min: int = 0, max: int | None = None) -> Composed:
    """At least `min` and at most `max` times; None: any number. Counted, never unrolled.

    Raises:
        TypeError: the part means no constraint.
        ConstraintError: `max` is less than `min`, or one is negative.
        LimitError: a count above 2**32 - 1; nesting as `then`.
    """
    _check_count("min", min)
    if max is not None:
        _check_count("max", max)
        if max < min:
            message = f"repeated at least {min} times and at most {max} times"
            raise error(_core.ConstraintError, message, help="give a max that is at least min")
    return Composed("repeat", [constraint_of(part)], (min, max))


def until(stop: Any, text: Any = str) -> Composed:
    """A text, and then `stop`, which occurs at the end and nowhere before.

    Args:
        stop: a text or several, or a grammar without recursion, tokens and schemas.
        text: what comes before; any text by default.

    Raises:
        TypeError: `text` or `stop` means no constraint.
        ConstraintError: at `matcher`: `stop` is not regular, or no text can end so.
        LimitError: nesting as `then`.
    """
    stops = constraint_of([stop] if isinstance(stop, str) else stop)
    return Composed("until", [constraint_of(text), stops])


def ban(part: Any, *, words: Iterable[str] = (), tokens: Iterable[Iterable[int]] = ()) -> Composed:
    """The part without outputs in which a word or a sequence of tokens occurs.

    Args:
        part: what is allowed otherwise.
        words: texts that must not occur in the output's text, however it is cut into tokens.
        tokens: sequences of token ids that must not occur among the output's tokens. Other tokens may spell their text.

    Raises:
        TypeError: the part means no constraint; `words` is one text.
        ConstraintError: a word or sequence is empty; at `matcher`: nothing is left, or an id is not in the vocabulary.
        LimitError: nesting as `then`; at `matcher` and in the matcher's calls: not decided.
    """
    if isinstance(words, str | bytes):
        raise TypeError(f"{words[:40]!r} is one text: give a list of words")
    given = tuple(words)
    for word in given:
        if not isinstance(word, str):
            raise TypeError(f"a word must be str, not {type(word).__name__}")
    sequences = tuple(tuple(int(token) for token in sequence) for sequence in tokens)
    if not all(given) or not all(sequences):
        help = "it is in every output: leave it out"
        raise error(_core.ConstraintError, "an empty word or sequence is banned", help=help)
    if any(not 0 <= token <= _MAX_COUNT for sequence in sequences for token in sequence):
        raise error(_core.ConstraintError, "a banned token id is not in any vocabulary", help="give ids of 0 or more")
    return Composed("ban", [constraint_of(part)], (given, sequences))


def at_least(n: int, part: Any) -> Composed:
    """The outputs of at least `n` tokens. The token that ends the generation is not counted.

    Raises:
        TypeError: the part means no constraint.
        ConstraintError: `n` is negative; at `matcher`: no output is as long.
        LimitError: nesting as `then`; at `matcher` and in the matcher's calls: not decided.
    """
    _check_count("n", n)
    return Composed("at_least", [constraint_of(part)], (n,))


def at_most(n: int, part: Any) -> Composed:
    """The outputs of at most `n` tokens, each of them complete. The token that ends the generation is not counted.

    Raises:
        TypeError: the part means no constraint.
        ConstraintError: `n` is negative; at `matcher`: no output is as short.
        LimitError: nesting as `then`; at `matcher` and in the matcher's calls: not decided.
    """
    _check_count("n", n)
    return Composed("at_most", [constraint_of(part)], (n,))


def _operator(kind: Literal["then", "either", "both"], left: Any, right: Any) -> Any:
    """`left + right`, `left | right` or `left & right`; `NotImplemented` where one means no constraint.

    A `str` beside a constraint is that text.
    """
    values = isinstance(left, _core.Grammar) and isinstance(right, OneOf)
    if kind == "both" and (values or isinstance(right, Catalogue | CatalogueConstraint)):
        return right & left
    if kind != "both" and isinstance(left, OneOf | _core.Grammar) and isinstance(right, OneOf | _core.Grammar):
        first, second = (side._grammar() if isinstance(side, OneOf) else side for side in (left, right))
        return first + second if kind == "then" else first | second
    make: Callable[..., Any] = {"then": then, "either": either, "both": both}[kind]
    try:
        sides = [
            _core.Grammar.literal(side) if isinstance(side, str) else constraint_of(side) for side in (left, right)
        ]
    except TypeError:
        return NotImplemented
    return make(*sides)


def _flat(kind: Kind, parts: Iterable[Any]) -> list[Constraint]:
    """The constraints that the parts mean, compositions of the same kind flattened."""
    flat: list[Constraint] = []
    for part in parts:
        made = constraint_of(part)
        flat.extend(made.parts if isinstance(made, Composed) and made.kind == kind else [made])
    if not flat:
        raise error(_core.ConstraintError, "a composition of nothing", help="give at least one part")
    return flat


def _check_count(name: str, n: int) -> None:
    if isinstance(n, bool) or not isinstance(n, int):
        raise TypeError(f"{name} must be int, not {type(n).__name__}")
    if n < 0:
        raise error(_core.ConstraintError, f"{name} is {n}", help="give 0 or more")
    if n > _MAX_COUNT:
        raise error(_core.LimitError, f"{name} is {n}, more than {_MAX_COUNT}", help="give a smaller number")


def _depth(part: Any) -> int:
    """How deep compositions are nested. Each knows that of its parts, so that this does not recurse."""
    return 1 + max((part_depth(one) for one in part.parts), default=0)


def part_depth(part: Any) -> int:
    """The depth of one part."""
    return _depth(part) if isinstance(part, Composed) else 1


def _grammar(part: Constraint) -> _core.Grammar | None:
    """The part as a grammar, where it is one."""
    if isinstance(part, Typed):
        return part.inner
    if isinstance(part, OneOf) and not part.is_spelled:
        try:
            return part._grammar()
        except _core.ConstraintError:  # bytes that are no text
            return None
    return part if isinstance(part, _core.Grammar) else None


def _part(part: Constraint, context: Context) -> _core.Composition:
    """A part as the core's composition."""
    if isinstance(part, Composed):
        return part._plan(context)
    grammar = _grammar(part)
    if grammar is not None:
        return _core.Composition.grammar(grammar)
    return _core.Composition.of(bind_in(part, context))


def is_fixed(part: Constraint) -> bool:
    """Whether it means the same wherever it is bound to a vocabulary."""
    return all(map(is_fixed, part.parts)) if isinstance(part, Composed) else _grammar(part) is not None
