"""The names of 0.1 that have other names now. Each warns with the new one, and goes with the release after 0.2.

The tables are all there is to an old name: `install` gives them to the classes, and a test goes through every row.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from . import _core

NAMES: dict[str, str] = {
    "logitree.elizaos.Span": "logitree.elizaos.TokenTreePath",
}
"""Old name of a module -> where it is now."""

ATTRIBUTES: dict[str, str] = {
    "Vocabulary.eog_ids": "end_tokens",
    "Step.origin": "source",
    "Token.id": "token",
}
"""Class and old name -> new name."""

METHODS: dict[str, str] = {
    "Matcher.mask": "allowed().mask()",
    "Matcher.fill_mask": "masks.fill_batch(matcher, out)",
    "Decoder.mask": "allowed().mask()",
}
"""Class and old method -> what does the same."""

KEYWORDS: dict[str, dict[str, str]] = {
    "Vocabulary.from_tokens": {"eog_ids": "end_tokens"},
    "Vocabulary.replace": {"eog_ids": "end_tokens"},
    "Batch.__init__": {"end": "end_tokens"},
    "Catalogue.matcher": {"end": "end_token"},
    "Catalogue.constraint": {"end": "end_token"},
    "Catalogue.walk": {"end": "end_token"},
}
"""Class and method -> {old keyword: new keyword}."""


def warn(old: str, new: str, *, stacklevel: int = 3) -> None:
    """Says that a name is deprecated, and which one replaces it."""
    warnings.warn(f"{old} is {new} now", DeprecationWarning, stacklevel=stacklevel)


def of_module(module: str, name: str) -> Any:
    """What a module's old name means: for the module's own `__getattr__`."""
    new = NAMES.get(f"{module}.{name}")
    if new is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    warn(f"{module}.{name}", new)
    owner, _, member = new.rpartition(".")
    return getattr(importlib.import_module(owner), member)


class OldConstraint(_core.Constraint):
    """A constraint of 0.1: an object without the base class, whose abilities are looked up."""

    def __init__(self, given: Any) -> None:
        name = type(given).__name__
        help = "derive it from logitree.Constraint"
        warnings.warn(f"{name} is a constraint of 0.1: {help}", DeprecationWarning, stacklevel=4)
        self._given = given
        abilities = ("bind", "answer_start", "value", "span_chains", "span_stream")
        vars(self).update({name: getattr(given, name) for name in abilities if hasattr(given, name)})

    def matcher(self, vocabulary: _core.Vocabulary, /) -> _core.Matcher:
        """The object's matcher."""
        made: _core.Matcher = self._given.matcher(vocabulary)
        return made


def install(classes: Mapping[str, type]) -> None:
    """Gives the classes their old names."""
    for path, new in ATTRIBUTES.items():
        owner, _, old = path.partition(".")
        setattr(classes[owner], old, _attribute(path, new))
    for path, new in METHODS.items():
        owner, _, old = path.partition(".")
        setattr(classes[owner], old, _warning(getattr(classes[owner], old), path, new))
    for path, renamed in KEYWORDS.items():
        owner, _, method = path.partition(".")
        setattr(classes[owner], method, _method(classes[owner], path, method, renamed))


def _attribute(path: str, new: str) -> property:
    def read(self: Any) -> Any:
        warn(path, new)
        return getattr(self, new)

    return property(read, doc=f"Deprecated: `{new}`.")


def _warning(called: Callable[..., Any], path: str, new: str) -> Callable[..., Any]:
    """A method that warns first."""

    @functools.wraps(called)
    def call(*args: Any, **given: Any) -> Any:
        warn(path, new)
        return called(*args, **given)

    return call


def _method(owner: type, path: str, name: str, renamed: Mapping[str, str]) -> Any:
    """A method that takes the old keywords too."""
    own = vars(owner)[name]
    called: Callable[..., Any] = own.__func__ if isinstance(own, staticmethod) else own
    shown = path.removesuffix(".__init__")

    @functools.wraps(called)
    def call(*args: Any, **given: Any) -> Any:
        for old in renamed.keys() & given.keys():
            new = renamed[old]
            if new in given:
                raise TypeError(f"{shown}: {old}= is {new}=: give one of them")
            warn(f"{shown}({old}=)", f"{new}=")
            given[new] = given.pop(old)
        return called(*args, **given)

    return staticmethod(call) if isinstance(own, staticmethod) else call
