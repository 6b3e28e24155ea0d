"""What vLLM's requests mean as constraints, bound to the vocabulary of its model."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal

from ... import _core
from ..._constraint import OneOf
from ..._core import Constraint, Grammar
from ..._errors import error
from ..._vocabulary import cut, from_transformers
from ._forms import read_form

Whitespace = Literal["bounded", "compact"]

SECONDS = 5.0
"""The longest that one request may take to compile in the front end."""

SLOWER = 4.0
"""How much longer it may take in a busy engine: the front end has compiled it too."""


class Compiler:
    """Compiles constraints for one model. Threads may share it.

    Args:
        tokenizer: vLLM's tokenizer of the model.
        size: how many logits the model gives. Ids that only one of tokenizer and model has are never allowed.
        ends: the ids at which vLLM ends a generation by itself.
        whitespace: of JSON: "bounded" as `json.dumps` writes it with and without indent, or "compact".

    Raises:
        VocabularyError: the tokenizer cannot be read.
        ConstraintError: no token ends a generation.
    """

    def __init__(self, tokenizer: Any, size: int, ends: Collection[int], whitespace: Whitespace = "bounded") -> None:
        read = cut(from_transformers(getattr(tokenizer, "transformers_tokenizer", tokenizer)), size)
        known = sorted(end for end in ends if 0 <= end < len(read))
        if not known:
            raise error(
                _core.ConstraintError,
                f"none of the ids {sorted(ends)} that end a generation is in the vocabulary of {len(read)} tokens",
                help="give the tokenizer an eos token, or the model's generation_config.json an eos_token_id",
            )
        self.size, self.whitespace = size, whitespace
        self.vocabulary = read.replace(end_tokens=known)
        """The model's tokens, which end as vLLM's requests do by default."""
        self.vocabulary.prepare()
        self._ending = functools.lru_cache(maxsize=8)(self._with_ends)

    def matcher(
        self, kind: str, spec: str, ends: Collection[int] | None = None, *, seconds: float = SECONDS
    ) -> _core.Matcher:
        """A matcher at the beginning of the output.

        Args:
            kind: the name of one of vLLM's `StructuredOutputOptions`, in any case.
            spec: its text: a schema, a pattern, a list of texts as JSON, a grammar, a structural tag.
            ends: the ids at which vLLM ends this request; None or none in the vocabulary: the model's.
            seconds: the longest that it may take.

        Raises:
            ConstraintError, PayloadError, FileError: it cannot be honoured.
            LimitError: it takes more time or memory than a request may.
        """
        with _core.Deadline(seconds):
            return self.bind(self._constraint(kind.lower(), spec), ends)

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

    def _with_ends(self, ends: tuple[int, ...]) -> _core.Vocabulary:
        return self.vocabulary.replace(end_tokens=list(ends))

    def _constraint(self, kind: str, spec: str) -> Constraint:
        reader = _READERS.get(kind)
        if reader is None:
            raise error(_core.ConstraintError, f"{kind!r} is no kind of structured output that is known here")
        return reader(spec, self.whitespace)


def _choice(spec: str, _: Whitespace) -> Constraint:
    texts = json.loads(spec)
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise error(_core.ConstraintError, f"a choice is a list of texts, not {spec:.60}")
    return OneOf(texts)


def _grammar(spec: str, _: Whitespace) -> Constraint:
    """A grammar in Lark or EBNF, by vLLM's own rule, or the JSON form of any constraint."""
    if spec.lstrip().startswith("{"):
        return read_form(spec)
    from vllm.v1.structured_output.utils import grammar_is_likely_lark

    return Grammar.lark(spec) if grammar_is_likely_lark(spec) else Grammar.ebnf(spec)


def _structural_tag(spec: str, _: Whitespace) -> Constraint:
    """A structural tag of XGrammar's; vLLM's older form may leave out the type."""
    try:
        tag = json.loads(spec)
    except ValueError:
        tag = None  # the core says what is wrong
    if isinstance(tag, dict) and "type" not in tag:
        return Grammar.structural_tag({"type": "structural_tag", **tag})
    return Grammar.structural_tag(spec)


_READERS: Mapping[str, Callable[[str, Whitespace], Constraint]] = {
    "json": lambda spec, whitespace: Grammar.json_schema(spec, whitespace=whitespace, numbers="plain"),
    "json_object": lambda _, whitespace: Grammar.json_schema(
        {"type": "object"}, whitespace=whitespace, numbers="plain"
    ),
    "regex": lambda spec, _: Grammar.regex(spec),
    "choice": _choice,
    "grammar": _grammar,
    "structural_tag": _structural_tag,
}
"""How the text of each kind of vLLM's structured outputs is read."""


def ends_of(tokenizer: Any, model_config: Any) -> set[int]:
    """The ids at which vLLM ends every generation of a model: the tokenizer's, and those of its generation config."""
    found: set[int] = set()
    named = (tokenizer.eos_token_id, model_config.try_get_generation_config().get("eos_token_id"))
    for ids in named:
        if ids is not None:
            found.update([ids] if isinstance(ids, int) else ids)
    return found


def compiler_of(tokenizer: Any, model_config: Any, structured_outputs_config: Any) -> Compiler:
    """The compiler of a vLLM engine."""
    whitespace: Whitespace = "compact" if structured_outputs_config.disable_any_whitespace else "bounded"
    return Compiler(tokenizer, model_config.get_vocab_size(), ends_of(tokenizer, model_config), whitespace)
