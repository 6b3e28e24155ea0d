"""Which tokens spell the text of a constraint: any that do, or those that the model's own tokenizer gives."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from . import _core, _renamed
from ._certain import Speller
from ._constraint import Context, OneOf, Typed, bind_in
from ._core import Constraint
from ._errors import EngineError, again, error
from ._healing import bind_after, matcher_after
from .compose import Composed
from .skeleton import Skeleton

if TYPE_CHECKING:
    from .engines import Engine

Tokenization = Literal["auto", "any", "canonical", "fast_forward"]
"""Which tokens spell constrained text: docs/tokenizer.md has the table."""

TOKENIZATIONS = ("auto", "any", "canonical", "fast_forward")

_OF_TEXT = ("then", "either", "both", "repeat", "until", "ban")
"""Compositions that say nothing of tokens, as long as their parts do not; `ban` where it bans words alone."""

_MAX_COPIES = 64
"""After so many copies a matcher is made again: its automata may be near their limits, and copies share them."""

_MAX_KEPT = 8
"""Constraints that are kept in the tokenizer's spelling, and as many that have none."""

_ANY = 'give tokenization="any"'


def read_tokenization(
    value: Any, old: Any = None, *, words: Sequence[str] = TOKENIZATIONS, stacklevel: int = 3
) -> Tokenization:
    """The option of that name. `old`: what was given for `tokenizations=`, its name in 0.1.

    Raises:
        ConstraintError: it is none of the words.
        TypeError: both are given.
    """
    if old is not None:
        if value != "auto":
            raise TypeError("both tokenization= and tokenizations=, its old name: give the first")
        value = "any" if old == "all" else old
        _renamed.deprecated("tokenizations=", new=value, stacklevel=stacklevel + 1)
    if isinstance(value, str) and value == "all":
        _renamed.deprecated("all", stacklevel=stacklevel + 1)
        value = "any"
    if not isinstance(value, str) or value not in words:
        shown = ", ".join(f'"{word}"' for word in words)
        raise error(_core.ConstraintError, f"tokenization is {value!r}", help=f"give one of {shown}")
    made: Tokenization = value  # type: ignore[assignment]
    return made


def bind_spelled(
    constraint: Constraint, context: Context, engine: Engine, how: Tokenization, lead: bytes
) -> tuple[_core.Matcher, bool]:
    """The matcher of a constraint in the spelling that is asked for, and whether that is the tokenizer's own.

    Args:
        how: "auto": the tokenizer's own where there is one and the constraint is about text.
        lead: text of the prompt that the output spells again first.

    Raises:
        EngineError: the tokenizer's own is asked for, and there is none.
        What the constraint raises; those of its spelling say how to allow any.
    """
    spelling = Spelling(engine)
    if how == "auto":
        made = spelling.matcher(constraint, context, lead)
        if made is None:
            within = replace(context, spelling=spelling)
            made = bind_after(lead, constraint, within) if lead else bind_in(constraint, within)
        return made, spelling.is_used
    if how == "canonical":
        spelled = spelling.spelled(constraint, context, lead)
        return (spelled if spelled is not None else spelling.of_any(constraint, context, lead)), True
    return (bind_after(lead, constraint, context) if lead else bind_in(constraint, context)), False


class Spelling:
    """The spelling of one engine's tokenizer, for the constraints of one output."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.is_used = False
        """Whether it spells some of the output."""

    def matcher(self, constraint: Any, context: Context, lead: bytes = b"") -> _core.Matcher | None:
        """The matcher of a text of the prompt and then of a constraint that is about text. None: it is about tokens,
        there is no tokenizer, or none of the texts has such a spelling."""
        try:
            made = self.spelled(constraint, context, lead)
        except (_core.ConstraintError, _core.VocabularyError, _core.FileError, EngineError):
            # Not a LimitError: whether a call runs into a limit depends on what was found out before.
            return None
        self.is_used = self.is_used or made is not None
        return made

    def spelled(self, constraint: Any, context: Context, lead: bytes = b"") -> _core.Matcher | None:
        """As `matcher`, with the reason why there is none.

        Raises:
            EngineError, VocabularyError, FileError: there is no tokenizer.
            ConstraintError: a text has no such spelling.
            LimitError: finding out takes too long.
        """
        about = constraint if isinstance(constraint, OneOf) and not constraint.is_spelled else _text_of(constraint)
        if about is None or (not isinstance(about, OneOf) and _names_text(about, context.vocabulary)):
            return None
        asked = (weakref.ref(self._engine), context.vocabulary, lead, about)
        failed = _failures.get(asked) if _failures else None
        if failed is not None:
            raise again(failed)
        # The engine remembers what its own tokenizer is.
        tokenizer = None if isinstance(about, OneOf) else self.tokenizer
        try:
            if isinstance(about, OneOf):
                return self._chosen(about, context, lead)
            return canonical_matcher(cast(_core.Tokenizer, tokenizer), context.vocabulary, lead, about)
        except _core.LimitError as raised:
            raise explained(raised) from raised
        except _core.ConstraintError as raised:
            while len(_failures) >= _MAX_KEPT:
                _failures.pop(next(iter(_failures)), None)
            _failures[asked] = again(raised)
            raise

    def of_any(self, constraint: Constraint, context: Context, lead: bytes) -> _core.Matcher:
        """The matcher of any constraint, of whose tokens only those of the tokenizer are allowed."""
        tokenizer = self.tokenizer
        matcher = bind_after(lead, constraint, context) if lead else bind_in(constraint, context)
        return tokenizer.canonical(matcher)

    @property
    def tokenizer(self) -> _core.Tokenizer:
        """The engine's own tokenizer.

        Raises:
            EngineError, VocabularyError, FileError: there is none.
        """
        own = self._engine.own_tokenizer
        if own is None:
            raise EngineError("the engine does not give its tokenizer", help=_ANY)
        return own

    def _chosen(self, one_of: OneOf, context: Context, lead: bytes) -> _core.Matcher:
        """One of several texts, each in the tokens of the tokenizer."""
        chosen = one_of.after(lead) if lead else one_of
        try:
            return chosen._choices(_Pieces(self._engine)).matcher(context.vocabulary)
        except TypeError as wrong:
            if not isinstance(wrong.__cause__, UnicodeDecodeError):  # of the engine's own function
                raise
            raise error(_core.ConstraintError, "a value is no text, and has no such spelling", help=_ANY) from wrong


class _Pieces:
    """Cuts a text into the tokens of an engine's tokenizer. Equal for the same engine, which it does not keep alive:
    constraints remember it."""

    __slots__ = ("_engine",)

    def __init__(self, engine: Engine) -> None:
        self._engine = weakref.ref(engine)

    def __call__(self, text: str) -> Sequence[int]:
        engine = self._engine()
        assert engine is not None, "an engine is alive while it generates"
        # What cuts a text that is given as a whole: no more is needed of an engine.
        tokenize = engine.tokenize or Spelling(engine).tokenizer.encode
        made = Speller(engine.vocabulary, tokenize).tokens(text.encode())
        if made is None:
            message = f"the tokenizer's tokens do not spell {text[:60]!r}"
            raise error(_core.ConstraintError, message, help=_ANY)
        return made

    def __eq__(self, other: object) -> bool:
        engine = self._engine()
        return isinstance(other, _Pieces) and engine is not None and engine is other._engine()

    __hash__ = None  # type: ignore[assignment]


@dataclass(slots=True)
class _Born:
    """A matcher at the beginning of the output, which is copied for every output."""

    make: Callable[[], _core.Matcher]
    matcher: _core.Matcher
    copies: int = 0


def canonical_matcher(
    tokenizer: _core.Tokenizer, vocabulary: _core.Vocabulary, lead: bytes, text: _core.Grammar | Skeleton | Composed
) -> _core.Matcher:
    """A matcher in the tokenizer's spelling, at the beginning.

    Copies share the masks that they find: the first text of a constraint takes a fraction of a millisecond a token,
    later ones microseconds.
    """
    born = _born(tokenizer, vocabulary, lead, text)
    if born.copies >= _MAX_COPIES:
        born.matcher, born.copies = born.make(), 0
    born.copies += 1
    return born.matcher.fork()


@functools.lru_cache(maxsize=_MAX_KEPT)
def _born(tokenizer: _core.Tokenizer, vocabulary: _core.Vocabulary, lead: bytes, text: Any) -> _Born:
    after = Composed("then", [_core.Grammar.literal(lead.decode()), text]) if lead else text

    def make() -> _core.Matcher:
        return tokenizer.canonical(after.matcher(vocabulary))

    return _Born(make, make())


_failures: dict[tuple[Any, ...], _core.ConstraintError] = {}
"""Why constraints have no such spelling, of each engine: finding out takes as long as a spelling does."""


def cache_info() -> dict[str, dict[str, int]]:
    """What `logitree.engines.cache_info` gives."""
    failed = {"entries": len(_failures), "capacity": _MAX_KEPT}
    return {"canonical": _counts(_born), "healed": _counts(matcher_after), "not_canonical": failed}


def _counts(cached: functools._lru_cache_wrapper[Any]) -> dict[str, int]:
    hits, misses, capacity, entries = cached.cache_info()
    return {"entries": entries, "capacity": capacity or 0, "hits": hits, "misses": misses}


def clear_caches() -> None:
    """Forgets the matchers that are kept to be copied, and which constraints have no spelling."""
    _born.cache_clear()
    matcher_after.cache_clear()
    _failures.clear()


def explained(raised: Exception) -> Exception:
    """An error of a matcher in the tokenizer's spelling, with the way out where the spelling is its cause."""
    if isinstance(raised, _core.LimitError):
        # Copies share their automata, which may have become too large.
        _born.cache_clear()
    message = str(raised)
    if not isinstance(raised, _core.LogitreeError) or not any(part in message for part in _OF_SPELLING):
        return raised
    place = getattr(raised, "place", "")
    return error(type(raised), message.partition(";")[0], place=place or "", help=_ANY)


_OF_SPELLING = ("in canonical spelling", "spelling that the tokenizer would give")
"""What the core's errors of the tokenizer's spelling say."""


def _text_of(constraint: Any) -> _core.Grammar | Skeleton | Composed | None:
    """The constraint without what reads its value, where it is about text; None where it counts or names tokens."""
    if isinstance(constraint, Typed):
        return constraint.inner
    if isinstance(constraint, OneOf):
        try:
            return None if constraint.is_spelled else constraint._grammar()
        except _core.ConstraintError:  # bytes that are no text
            return None
    if isinstance(constraint, Skeleton):
        return constraint if constraint.is_text else None
    if not isinstance(constraint, Composed):
        return constraint if isinstance(constraint, _core.Grammar) else None
    if constraint.kind not in _OF_TEXT or (constraint.kind == "ban" and constraint.options[1]):
        return None
    parts: list[_core.Grammar | Composed] = []
    for one in constraint.parts:
        part = _text_of(one)
        if part is None or isinstance(part, Skeleton):  # its borders are those of tokens
            return None
        parts.append(part)
    return Composed(constraint.kind, parts, constraint.options)


def _names_text(text: Any, vocabulary: _core.Vocabulary) -> bool:
    """Whether a grammar in it names a token that is text."""
    if isinstance(text, Composed):
        return any(_names_text(part, vocabulary) for part in text.parts)
    return isinstance(text, _core.Grammar) and text._names_text(vocabulary)
