"""The names of 0.1 that have other names now. Each warns with the new one, and goes with the release after 0.2.

All texts of these warnings are here but those of arguments that the bindings read. The tables are all there is to an
old name: `install` gives them to the classes, and a test goes through every row.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from . import _core
from ._errors import error

NAMES: dict[str, str] = {
    "logitree.ChainParams": "logitree.samplers.ChainParams",
    "logitree.LogProbs": "logitree.metrics.LogProbs",
    "logitree.Sampler": "logitree.samplers.Sampler",
    "logitree.SamplingParams": "logitree.samplers.SamplingParams",
    "logitree.elizaos.Span": "logitree.elizaos.TokenTreePath",
    "logitree.engines.BatchSession": "logitree.engines.Session",
    "logitree.engines.BeamEngine": "logitree.engines.Engine",
    "logitree.engines.BeamSession": "logitree.engines.Session",
    "logitree.engines.transformers.TransformersSession": "logitree.engines.Session",
}
"""Old name of a module -> where it is now."""

ATTRIBUTES: dict[str, str] = {
    "Vocabulary.eog_ids": "end_tokens",
    "Step.origin": "source",
    "Token.id": "token",
    "OneOf.tokenizations": "is_spelled",
    "RtpTree.paths": "item_walk",
}
"""Class and old name -> new name."""

VALUES: dict[str, Callable[[Any], Any]] = {
    "OneOf.tokenizations": lambda spelled: "canonical" if spelled else "all",
}
"""Class and old name -> what it was, of what the new name is, where the two differ."""

METHODS: dict[str, str] = {
    "Matcher.mask": "allowed().mask()",
    "Matcher.fill_mask": "masks.fill_batch(matcher, out)",
    "Decoder.mask": "allowed().mask()",
    "Batch.masks": "masks.fill_batch(batch, out)",
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

UNBOUND = ("Catalogue.matcher", "CatalogueConstraint.matcher")
"""Classes and methods that took no vocabulary, or its size, where they need a `Vocabulary` now."""

OPERATIONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "and_": ("a & b", np.bitwise_and),
    "or_": ("a | b", np.bitwise_or),
    "xor": ("a ^ b", np.bitwise_xor),
    "and_not": ("a & ~b", lambda a, b, out: np.bitwise_and(a, ~b, out=out)),
    "not_": ("new(size, fill=True) & ~a", lambda a, full, out: np.bitwise_and(full, ~a, out=out)),
}
"""Old function of `logitree.masks` -> NumPy's expression, and what computes it."""

MESSAGES: dict[str, str] = {
    "constraint": "{name} is a constraint of 0.1: derive it from logitree.Constraint",
    "engine": "{name} is an engine of 0.1: derive it from logitree.engines.Engine, and its sessions from "
    "logitree.engines.Session",
    "session": "{name} is a session of 0.1: derive it from logitree.engines.Session",
    "beam_session": "beam_session goes with the next release: use batch_session(rows, forks=True), its evaluate_rows "
    "and reorder",
    "Grammar.tools": "Grammar.tools is Protocol.named(name).constraint(tools=tools) now; 'hermes' is one of the names",
    "OneOf(tokenizations=)": "tokenizations= of OneOf goes with the next release: {new}",
    "tokenizations=": 'tokenizations= is tokenization= now: write tokenization="{new}"',
    "all": 'tokenization="all" is "any" now',
}
"""What else warns, and with which text."""


def deprecated(what: str, *, stacklevel: int = 3, **given: str) -> None:
    """Warns with a message of the table. `stacklevel`: 2 is the function that says so, 3 its caller."""
    warnings.warn(MESSAGES[what].format(**given), DeprecationWarning, stacklevel=stacklevel)


def warn(old: str, new: str, *, stacklevel: int = 3) -> None:
    """Says that a name is deprecated, and which one replaces it."""
    warnings.warn(f"{old} is {new} now", DeprecationWarning, stacklevel=stacklevel)


def of_module(module: str, name: str) -> Any:
    """What a module's old name means: for the module's own `__getattr__`."""
    new = NAMES.get(f"{module}.{name}")
    if new is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    warn(f"{module}.{name}", new, stacklevel=4)
    owner, _, member = new.rpartition(".")
    return getattr(importlib.import_module(owner), member)


class OldConstraint(_core.Constraint):
    """A constraint of 0.1: an object without the base class, whose abilities are looked up."""

    def __init__(self, given: Any) -> None:
        deprecated("constraint", name=type(given).__name__, stacklevel=4)
        self._given = given
        abilities = ("bind", "answer_start", "value", "span_chains", "span_stream")
        vars(self).update({name: getattr(given, name) for name in abilities if hasattr(given, name)})

    def matcher(self, vocabulary: _core.Vocabulary, /) -> _core.Matcher:
        """The object's matcher."""
        made: _core.Matcher = self._given.matcher(vocabulary)
        return made


def install(classes: Mapping[str, type]) -> None:
    """Gives those of the classes that are in the tables their old names."""
    for path, new in ATTRIBUTES.items():
        owner, _, old = path.partition(".")
        if owner in classes:
            setattr(classes[owner], old, _attribute(path, new))
    for path, new in METHODS.items():
        owner, _, old = path.partition(".")
        if owner in classes:
            setattr(classes[owner], old, _warning(getattr(classes[owner], old), path, new))
    for path in UNBOUND:
        owner, _, method = path.partition(".")
        if owner in classes:
            setattr(classes[owner], method, _bound(getattr(classes[owner], method), path))
    for path, renamed in KEYWORDS.items():
        owner, _, method = path.partition(".")
        if owner in classes:
            setattr(classes[owner], method, _method(classes[owner], path, method, renamed))


def operations() -> dict[str, Callable[..., Any]]:
    """The old functions of `logitree.masks` by name."""
    return {name: _operation(name, *how) for name, how in OPERATIONS.items()}


def _operation(name: str, text: str, operation: Callable[..., Any]) -> Callable[..., Any]:
    def combine(a: Any, b: Any, out: Any = None) -> Any:
        warn(f"masks.{name}", f"NumPy's {text}")
        full = _core.mask_new(b, fill=True) if name == "not_" else b
        a, b = np.asarray(a).view(np.int32), np.asarray(full).view(np.int32)
        if a.shape[-1] != b.shape[-1] or (name != "not_" and a.shape != b.shape):
            raise error(_core.MaskError, f"masks of the shapes {a.shape} and {b.shape}")
        made = operation(a, b, out=None if out is None else np.asarray(out).view(np.int32))
        return made if out is None else out

    return combine


def _attribute(path: str, new: str) -> property:
    def read(self: Any) -> Any:
        warn(path, new)
        value = getattr(self, new)
        return VALUES[path](value) if path in VALUES else value

    return property(read, doc=f"Deprecated: `{new}`.")


def _bound(called: Callable[..., Any], path: str) -> Callable[..., Any]:
    """A method that warns where it gets no vocabulary."""
    caller = 4 if path in KEYWORDS else 3  # that method is within one that takes old keywords

    @functools.wraps(called)
    def call(self: Any, vocabulary: Any = None, **given: Any) -> Any:
        if not isinstance(vocabulary, _core.Vocabulary):
            warn(f"{path} without a Vocabulary", "matcher(vocabulary)", stacklevel=caller)
        return called(self, vocabulary, **given)

    return call


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
