"""What vLLM's requests mean, and the compiler of one of its models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ... import _core
from ..._constraint import OneOf
from ..._core import Constraint, Grammar
from ..._errors import error
from .._forms import read_form
from .._requests import READERS, Compiler, Reader, Whitespace

SLOWER = 4.0
"""How much longer than `SECONDS` a request may take in a busy engine: the front end has compiled it too."""


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


_READERS: Mapping[str, Reader] = {
    **READERS,
    "json_object": lambda _, whitespace: READERS["json"]('{"type": "object"}', whitespace),
    "choice": _choice,
    "grammar": _grammar,
    "structural_tag": _structural_tag,
}
"""How the text of each of vLLM's `StructuredOutputOptions` is read, by its name in lower case."""


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
    ends, size = ends_of(tokenizer, model_config), model_config.get_vocab_size()
    read = getattr(tokenizer, "transformers_tokenizer", tokenizer)
    return Compiler(read, size, ends, whitespace, _READERS)
