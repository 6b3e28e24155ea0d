"""What plain Python values mean as constraints, and how any of them becomes a matcher."""

from __future__ import annotations

import enum
import json
import math
import re
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from . import _core, _outlines, _renamed
from ._core import Constraint
from ._errors import error

if TYPE_CHECKING:
    from ._spelling import Spelling

Tokenize = Callable[[str], Sequence[int]]
"""A model's own tokenisation of a text, without special tokens."""


@dataclass(frozen=True, slots=True)
class Context:
    """Where a constraint is going to run: what `bind` is called with."""

    vocabulary: _core.Vocabulary
    tokenize: Tokenize | None = None
    """The model's own tokenisation; None where no engine is involved."""
    prompt: Sequence[int] = ()
    """The prompt's token ids."""
    spelling: Spelling | None = None
    """The tokenizer's own spelling, for parts of the constraint that are about text; None: any spelling."""


def bind(
    constraint: Any,
    vocabulary: _core.Vocabulary,
    *,
    tokenize: Tokenize | None = None,
    prompt: Sequence[int] = (),
) -> _core.Matcher:
    """The matcher of a constraint, or of a value that means one, at the beginning of the output.

    Args:
        constraint: what `constraint_of` takes.
        vocabulary: the model's vocabulary.
        tokenize: the model's own tokenisation, for canonical spellings.
        prompt: the prompt's token ids, for a reasoning block that the prompt has begun.

    Raises:
        TypeError: the value means no constraint.
        ConstraintError, LimitError: the constraint cannot be honoured with this vocabulary.
    """
    return bind_in(constraint_of(constraint), Context(vocabulary, tokenize, prompt))


def bind_in(constraint: Constraint, context: Context) -> _core.Matcher:
    """As `bind`, for what `constraint_of` gave."""
    if context.spelling is not None:
        spelled = context.spelling.matcher(constraint, context)
        if spelled is not None:
            return spelled
    matcher: object = constraint.bind(context)
    if not isinstance(matcher, _core.Matcher):
        raise TypeError(f"{type(constraint).__name__}.matcher gave a {type(matcher).__name__}, not a Matcher")
    return matcher


def constraint_of(value: Any, *, numbers: Literal["any", "plain"] = "plain") -> Constraint:
    """The constraint that a value means: docs/interface.md has the table.

    Args:
        value: what means a constraint.
        numbers: the spellings of numbers where it is a schema or a type.

    Raises:
        TypeError: the value means no constraint; the message says how to spell what it may have meant.
        ConstraintError: it means one that cannot be honoured.
    """
    if isinstance(value, Constraint):
        return value
    if isinstance(value, str | bytes):
        shown = repr(value[:40])
        raise TypeError(
            f"the text {shown} may mean several constraints: give [text] for a choice, Grammar.regex(text), "
            "Grammar.gbnf(text), Grammar.lark(text), Grammar.json_schema(text) or Grammar.literal(text)"
        )
    if isinstance(value, type):
        return _typed(value, numbers)
    if hasattr(value, "matcher"):
        return _renamed.OldConstraint(value)
    if isinstance(value, re.Pattern):
        return _pattern(value)
    if _outlines.is_term(value):
        return _outlines.grammar_of(value)
    if isinstance(value, Mapping | bool):
        schema = value if isinstance(value, bool) else dict(value)
        return Typed(_core.Grammar.json_schema(schema, numbers=numbers), json.loads, "JSON")
    if isinstance(value, Collection) and not hasattr(value, "__array_interface__"):
        return OneOf(sorted(value, key=repr) if isinstance(value, set | frozenset) else value)
    return _typed(value, numbers)


def _composed(kind: Literal["then", "either", "both"], left: Any, right: Any) -> Any:
    """What an operator makes of two constraints; `NotImplemented` where one means no constraint."""
    from . import compose

    return compose._operator(kind, left, right)


class OneOf(Constraint):
    """One of several texts, in any tokens that spell it.

    ```python
    logitree.OneOf(["YES", "NO"])
    logitree.OneOf([1, 2, 3]) | logitree.OneOf(["none"])
    ```

    Args:
        values: texts or bytes, which are written as they are; integers, floats, booleans (true, false) and None (null),
            which are written as JSON; members of enums, written as their values. `Generation.value` is the element.
        following: text that comes right after the value and is generated too, such as a closing quote. It marks the
            end of a value that is a prefix of another one; without it the end-of-generation tokens do.
        tokenize: spells each value, with what follows it, in one way; None: every way is allowed, and `generate` takes
            the tokenizer's own (`tokenization=`).
        tokenizations: deprecated; `generate(tokenization="canonical")` or `tokenize` replaces "canonical".

    Raises:
        ConstraintError: no values, or two values with the same text.
        TypeError: `values` is one text, or an element has no plain text.
    """

    __slots__ = ("_by_engine", "_native", "following", "texts", "tokenize", "values")

    def __init__(
        self,
        values: Iterable[Any],
        *,
        following: str | bytes | None = None,
        tokenize: Tokenize | None = None,
        tokenizations: Literal["all", "canonical"] | None = None,
    ) -> None:
        if isinstance(values, str | bytes):
            raise TypeError(f"{values[:40]!r} is one text: give a list of texts")
        if not isinstance(values, Iterable):
            raise TypeError(f"values is {values!r:.60}: give a list of texts")
        if tokenizations is not None:
            _check_old(tokenizations, tokenize)
        self.values: tuple[Any, ...] = tuple(values)
        """The values, as they were given."""
        if not self.values:
            raise error(_core.ConstraintError, "there is nothing to choose from", help="give at least one value")
        self.texts: tuple[str | bytes, ...] = tuple(_plain_text(value) for value in self.values)
        """How each value is written."""
        self.following = following
        self.tokenize = tokenize
        self._by_engine = tokenizations == "canonical" and tokenize is None
        seen: dict[bytes, Any] = {}
        for value, text in zip(self.values, self.texts, strict=True):
            key = _bytes(text)
            if key in seen and (type(seen[key]), seen[key]) != (type(value), value):
                message = f"{seen[key]!r} and {value!r} are both written {text!r}"
                raise error(_core.ConstraintError, message, help="give values that are written differently")
            seen[key] = value
        self._native: tuple[Tokenize | None, _core.OneOf] | None = None

    def matcher(self, vocabulary: _core.Vocabulary, *, end_tokens: Sequence[int] | None = None) -> _core.Matcher:
        """A matcher at the beginning of a value.

        Args:
            vocabulary: the model's vocabulary.
            end_tokens: ids that end a value; None: the vocabulary's end-of-generation ids.

        Raises:
            ConstraintError: the vocabulary cannot spell a value, or `tokenize` does not.
        """
        if self._by_engine:
            message = 'tokenizations="canonical" needs tokenize=, a function str -> ids'
            raise error(_core.ConstraintError, message)
        ends = None if end_tokens is None else list(end_tokens)
        return self._choices(self.tokenize).matcher(vocabulary, end_tokens=ends)

    def bind(self, context: Context) -> _core.Matcher:
        """As `matcher`, with the engine's tokenisation."""
        if self._by_engine and context.tokenize is not None:
            return self._choices(context.tokenize).matcher(context.vocabulary)
        return self.matcher(context.vocabulary)

    @property
    def is_spelled(self) -> bool:
        """Whether each value is spelled in one way, whatever `generate` is asked for."""
        return self.tokenize is not None or self._by_engine

    def form(self) -> str:
        """As `Constraint.form`: the texts, without the values that they stand for."""
        if self._by_engine:
            raise error(_core.ConstraintError, "the spelling of an engine has no JSON form", help="give tokenize")
        return self._choices(self.tokenize).form()

    def after(self, lead: bytes) -> OneOf:
        """The same texts, each after another one."""
        return OneOf([lead + _bytes(text) for text in self.texts], following=self.following)

    def value(self, text: str, tokens: Sequence[int]) -> Any:
        """The element that this output is."""
        following = self.following or ""
        end = following if isinstance(following, str) else following.decode("utf-8", "replace")
        for value, spelled in zip(self.values, self.texts, strict=True):
            shown = spelled if isinstance(spelled, str) else spelled.decode("utf-8", "replace")
            if shown + end == text:
                return value
        raise error(_core.ConstraintError, f"{text[:80]!r} is none of the values")

    def _choices(self, tokenize: Tokenize | None) -> _core.OneOf:
        """The core's form, the one last made, in the spelling of a function; None: in every spelling."""
        known = self._native
        if known is not None and known[0] == tokenize:
            return known[1]
        tokens = None
        if tokenize is not None:
            following = _bytes(self.following or "")
            try:
                tokens = [list(tokenize((_bytes(text) + following).decode())) for text in self.texts]
            except UnicodeDecodeError as wrong:
                raise TypeError("spelled choices must be text: one is not UTF-8") from wrong
        made = _core.OneOf(self.texts, following=self.following, tokens=tokens)
        self._native = (tokenize, made)
        return made

    def _key(self) -> tuple[Any, ...]:
        return (self.texts, tuple(map(type, self.values)), self.following, self.tokenize, self._by_engine)

    def _grammar(self) -> _core.Grammar:
        """The same texts as a grammar."""
        chosen = _core.Grammar.choice([decoded(text) for text in self.texts])
        return chosen if self.following is None else chosen + _core.Grammar.literal(decoded(self.following))

    def __or__(self, other: Any) -> Any:
        if isinstance(other, OneOf) and self._key()[2:] == other._key()[2:]:
            kept = [*self.values, *(value for value in other.values if value not in self.values)]
            return self._of(kept)
        if isinstance(other, OneOf | _core.Grammar | str):
            return self._grammar() | (other._grammar() if isinstance(other, OneOf) else other)
        return _composed("either", self, other)

    def __ror__(self, other: Any) -> Any:
        return other | self._grammar() if isinstance(other, str) else _composed("either", other, self)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, OneOf | _core.Grammar | str):
            return self._grammar() + (other._grammar() if isinstance(other, OneOf) else other)
        return _composed("then", self, other)

    def __radd__(self, other: Any) -> Any:
        return other + self._grammar() if isinstance(other, str) else _composed("then", other, self)

    def __and__(self, other: Any) -> Any:
        """The values that the other constraint allows as a whole."""
        if not isinstance(other, OneOf | _core.Grammar):
            return _composed("both", self, other)
        if isinstance(other, OneOf):
            kept = [value for value, text in zip(self.values, self.texts, strict=True) if text in other.texts]
        else:
            kept = [v for v, text in zip(self.values, self.texts, strict=True) if other.matches(text)]
        if not kept:
            raise error(_core.ConstraintError, "the intersection is empty", help="no value is allowed by both sides")
        return self._of(kept)

    def _of(self, values: Iterable[Any]) -> OneOf:
        """Other values with the same options."""
        return _one_of(tuple(values), self.following, self.tokenize, self._by_engine)

    __rand__ = __and__

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __contains__(self, value: object) -> bool:
        return value in self.values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OneOf) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        return _one_of, (self.values, self.following, self.tokenize, self._by_engine)

    def __repr__(self) -> str:
        shown = [f"[{', '.join(map(repr, self.values[:4]))}{', ...' if len(self) > 4 else ''}]"]
        if self.following is not None:
            shown.append(f"following={self.following!r}")
        if self.tokenize is not None:
            shown.append(f"tokenize={self.tokenize!r}")
        return f"OneOf({', '.join(shown)})"


def _one_of(values: tuple[Any, ...], following: Any, tokenize: Any, by_engine: bool) -> OneOf:
    """A `OneOf` of other values, or from a pickle."""
    made = OneOf(values, following=following, tokenize=tokenize)
    made._by_engine = by_engine
    return made


def _check_old(tokenizations: Any, tokenize: Tokenize | None) -> None:
    """`tokenizations` of 0.1, which goes with the next release."""
    if tokenizations not in ("all", "canonical"):
        message = f"tokenizations is {tokenizations!r}"
        raise error(_core.ConstraintError, message, help='leave it out; generate has tokenization="canonical"')
    if tokenizations == "all" and tokenize is not None:
        raise error(_core.ConstraintError, "tokenize spells each value in one way", help='leave out "all"')
    new = "leave it out"
    if tokenizations == "canonical":
        new = 'give tokenize alone, or generate(tokenization="canonical")'
    _renamed.deprecated("OneOf(tokenizations=)", new=new, stacklevel=4)


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")


def decoded(text: str | bytes) -> str:
    """A text of a grammar.

    Raises:
        ConstraintError: bytes that are not UTF-8.
    """
    try:
        return text if isinstance(text, str) else text.decode()
    except UnicodeDecodeError as wrong:
        help = "join values of text only"
        raise error(_core.ConstraintError, f"{text!r} is not UTF-8, and grammars are text", help=help) from wrong


def _plain_text(value: Any) -> str | bytes:
    """How a value is written: texts and bytes as they are, everything else as JSON."""
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, str | bytes):
        return value
    if value is None or isinstance(value, bool | int):
        return json.dumps(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise error(_core.ConstraintError, f"{value!r} has no plain text", help="give finite numbers")
        return json.dumps(value)
    raise TypeError(
        f"{value!r} ({type(value).__name__}) has no plain text: give texts, numbers, booleans, None, "
        "or members of an enum with such values"
    )


class Typed(Constraint):
    """A constraint whose complete output is converted to a Python value."""

    __slots__ = ("_convert", "_name", "inner")

    def __init__(self, inner: _core.Grammar, convert: Callable[[str], Any], name: str) -> None:
        self.inner, self._convert, self._name = inner, convert, name

    def matcher(self, vocabulary: _core.Vocabulary, /) -> _core.Matcher:
        """The grammar's matcher."""
        return self.inner.matcher(vocabulary)

    def value(self, text: str, tokens: Sequence[int]) -> Any:
        """The converted text."""
        return self._convert(text)

    def form(self) -> str:
        """The grammar's form."""
        return self.inner.form()

    def __repr__(self) -> str:
        return f"<constraint {self._name}>"


def _pattern(pattern: re.Pattern[Any]) -> _core.Grammar:
    """A compiled regular expression; flags that change what it matches must be in the pattern itself."""
    if not isinstance(pattern.pattern, str):
        raise TypeError("a pattern of bytes: compile a str pattern")
    known = {re.IGNORECASE: "i", re.DOTALL: "s", re.MULTILINE: "m", re.VERBOSE: "x", re.ASCII: "a"}
    inline = "".join(letter for flag, letter in known.items() if pattern.flags & flag)
    text = pattern.pattern
    if inline and not text.startswith("(?"):
        text = f"(?{inline}){text}"
    return _core.Grammar.regex(text)


def _typed(source: Any, numbers: Literal["any", "plain"]) -> Constraint:
    """The constraint of a Python type or function."""
    from . import _schemas

    if not callable(source) and typing.get_origin(source) is None:
        raise TypeError(
            f"a value of the type {type(source).__name__} means no constraint: give a constraint, a list of texts, "
            "a type, a model class, a JSON Schema or a function"
        )
    if isinstance(source, enum.EnumMeta):
        return OneOf(cast(Iterable[Any], source))
    values = _schemas.literals(source)
    if values is not None:
        return OneOf(values)
    if source is bool:
        return OneOf([True, False])
    plain: dict[Any, tuple[_core.Grammar, Callable[[str], Any]]] = {
        str: (_core.Grammar.text(), str),
        int: (_core.Grammar.json_schema({"type": "integer"}, numbers="plain"), int),
        float: (_core.Grammar.json_schema({"type": "number"}, numbers=numbers), float),
    }
    name = getattr(source, "__name__", None) or repr(source)
    try:
        if source in plain:
            return Typed(*plain[source], name)
    except TypeError:  # unhashable
        pass
    return Typed(_core.Grammar.of(source, numbers=numbers), _schemas.reader_of(source), name)
