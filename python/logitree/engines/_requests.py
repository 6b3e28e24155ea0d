"""What the requests of servers mean as constraints, bound to the vocabulary of their model."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .. import _core
from .._constraint import OneOf
from .._core import Constraint, Grammar
from .._errors import error
from .._vocabulary import cut, from_transformers

Whitespace = Literal["bounded", "compact"]

Reader = Callable[[str, Whitespace], Constraint]
"""What the text of a request means."""

SECONDS = 5.0
"""The longest that one request may take to compile."""


def read_json(spec: str, whitespace: Whitespace) -> Constraint:
    """JSON that is valid under a schema."""
    return Grammar.json_schema(spec, whitespace=whitespace, numbers="plain")


def read_regex(spec: str, _: Whitespace) -> Constraint:
    """A text that a regular expression matches as a whole."""
    return Grammar.regex(spec)


READERS: Mapping[str, Reader] = MappingProxyType({"json": read_json, "regex": read_regex})
"""How the text of each kind of request is read, for the kinds that mean the same in every engine."""


class Compiler:
    """Compiles constraints for one model. Threads may share it.

    Args:
        tokenizer: a transformers tokenizer of the model.
        size: how many logits the model gives. Ids that only one of tokenizer and model has are never allowed.
        ends: the ids at which the engine ends a generation by itself.
        whitespace: of JSON: "bounded" as `json.dumps` writes it with and without indent, or "compact".
        readers: the kinds of requests that the engine has.
        control: tokens that are no text, whatever the tokenizer calls them.

    Raises:
        VocabularyError: the tokenizer cannot be read.
        ConstraintError: no token ends a generation.
    """

    def __init__(
        self,
        tokenizer: Any,
        size: int,
        ends: Collection[int],
        whitespace: Whitespace = "bounded",
        readers: Mapping[str, Reader] = READERS,
        control: Collection[int] = (),
    ) -> None:
        read = cut(from_transformers(tokenizer), size, frozenset(control))
        known = sorted(end for end in ends if 0 <= end < len(read))
        if not known:
            raise error(
                _core.ConstraintError,
                f"none of the ids {sorted(ends)} that end a generation is in the vocabulary of {len(read)} tokens",
                help="give the tokenizer an eos token, or the model's generation_config.json an eos_token_id",
            )
        self.size, self.whitespace, self._readers = size, whitespace, readers
        self.vocabulary = read.replace(end_tokens=known)
        """The model's tokens, which end as the engine's requests do by default."""
        self.vocabulary.prepare()
        self._ending = functools.lru_cache(maxsize=8)(self._with_ends)
        self._padded: tuple[int, npt.NDArray[np.int32]] | None = None
        """Where there are more logits than tokens: a word of a mask, and the tokens in it and in those after it."""
        if len(self.vocabulary) < size:
            word = len(self.vocabulary) // 32
            self._padded = word, _core.mask_from_ids(size, range(len(self.vocabulary)))[word:]

    def matcher(
        self, kind: str, spec: str, ends: Collection[int] | None = None, *, seconds: float = SECONDS
    ) -> _core.Matcher:
        """A matcher at the beginning of the output.

        Args:
            kind: one of the engine's kinds of requests.
            spec: its text: a schema, a pattern, a list of texts as JSON, a grammar, a structural tag.
            ends: the ids at which the engine ends this request; None or none in the vocabulary: the model's.
            seconds: the longest that it may take.

        Raises:
            ConstraintError, PayloadError, FileError: it cannot be honoured.
            LimitError: it takes more time or memory than a request may.
        """
        with _core.Deadline(seconds):
            return self.bind(self.constraint(kind, spec), ends)

    def bind(self, constraint: Constraint, ends: Collection[int] | None = None) -> _core.Matcher:
        """A matcher of a constraint, with its first mask made, which would take its time in the engine's loop.

        Raises:
            ConstraintError, LimitError: it cannot be honoured with this vocabulary.
        """
        known = tuple(sorted(end for end in ends or () if 0 <= end < len(self.vocabulary)))
        if not known or list(known) == self.vocabulary.end_tokens:
            matcher = constraint.matcher(self.vocabulary)
        elif isinstance(constraint, Grammar | OneOf):
            matcher = constraint.matcher(self.vocabulary, end_tokens=list(known))
        else:
            matcher = constraint.matcher(self._ending(known))
        matcher.allowed()
        return matcher

    def constraint(self, kind: str, spec: str) -> Constraint:
        """What a request means. Raises as `matcher`."""
        reader = self._readers.get(kind)
        if reader is None:
            raise error(_core.ConstraintError, f"{kind!r} is no kind of structured output that is known here")
        return reader(spec, self.whitespace)

    def fill(self, matchers: list[_core.Matcher], out: npt.NDArray[np.int32]) -> None:
        """Writes what each matcher allows over its row of `out`, int32 [len(matchers), words of `size`]; ids that are
        no tokens are left out. Raises as `masks.fill_batch`.

        One thread fills them: servers share their cores, and a step waits for the last of several threads.
        """
        _core.fill_masks(matchers, out, 1)
        if self._padded is not None:
            word, known = self._padded
            out[:, word:] &= known

    def _with_ends(self, ends: tuple[int, ...]) -> _core.Vocabulary:
        return self.vocabulary.replace(end_tokens=list(ends))
