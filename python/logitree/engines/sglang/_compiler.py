"""What SGLang's requests mean, and the compiler of the model that a server has."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from ..._core import Constraint, Grammar
from ..._errors import EngineError
from .._forms import read_form
from .._requests import READERS, Compiler, Reader, Whitespace

_ANNOTATIONS = frozenset(
    ("type", "title", "description", "default", "examples", "deprecated", "$comment", "$defs", "definitions")
)
"""Names in a schema of a text that limit nothing."""

ANY_JSON = "$$ANY$$"
"""The schema by which SGLang's front end asks for any JSON value."""


def compiler_of(
    tokenizer: Any, size: int, ends: Collection[int] | None, serving: Any, control: Collection[int] = ()
) -> Compiler:
    """The compiler of a server's model.

    Args:
        tokenizer: SGLang's.
        size: how many logits the model gives.
        ends: the ends of generation that the model's configuration names; SGLang adds the tokenizer's.
        serving: the server's arguments about serving.
        control: tokens that are no text, whatever the tokenizer calls them.

    Raises:
        EngineError: one of them means nothing here.
        VocabularyError, ConstraintError: as `Compiler`.
    """
    for option in ("constrained_json_whitespace_pattern", "constrained_json_max_whitespace_cnt"):
        if getattr(serving, option) is not None:
            raise EngineError(
                f"--{option.replace('_', '-')} is not supported with the backend logitree",
                help="leave it out: white space is as json.dumps writes it, or none with "
                "--constrained-json-disable-any-whitespace",
            )
    whitespace: Whitespace = "compact" if serving.constrained_json_disable_any_whitespace else "bounded"
    found = {*(ends or ()), *(getattr(tokenizer, "additional_stop_token_ids", None) or ())}
    if tokenizer.eos_token_id is not None:
        found.add(tokenizer.eos_token_id)
    return Compiler(tokenizer, size, found, whitespace, _READERS, control)


def _json(spec: str, whitespace: Whitespace) -> Constraint:
    if spec == ANY_JSON:
        return Grammar.json(whitespace=whitespace, numbers="plain")
    return READERS["json"](spec, whitespace)


def _ebnf(spec: str, _: Whitespace) -> Constraint:
    """A grammar in EBNF, or the JSON form of any constraint."""
    return read_form(spec) if spec.lstrip().startswith("{") else Grammar.ebnf(spec)


def _structural_tag(spec: str, _: Whitespace) -> Constraint:
    """A structural tag of XGrammar's, as SGLang's front end writes it: a schema that is null means any value, and the
    older form may ask for one tag at least.
    """
    try:
        tag = json.loads(spec, object_pairs_hook=_filled)
    except (ValueError, RecursionError):
        return Grammar.structural_tag(spec)  # the core says what is wrong
    if isinstance(tag, dict) and isinstance(tag.get("structures"), list) and "at_least_one" in tag:
        if not tag.pop("at_least_one"):
            return Grammar.structural_tag(tag)
        tags = [_tag(structure) for structure in tag.pop("structures")]
        tag["format"] = {
            "type": "triggered_tags",
            "triggers": tag.pop("triggers", None),
            "tags": tags,
            "at_least_one": True,
        }
    return Grammar.structural_tag(tag)


def _filled(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a structural tag, in which no schema is missing."""
    made = dict(pairs)
    if made.get("type") in ("json_schema", "qwen_xml_parameter") and made.get("json_schema") is None:
        made["json_schema"] = {}
    elif made.get("type") == "json_schema" and made.get("style") == "qwen_xml":
        return _plain_text(made["json_schema"]) or made
    elif {"begin", "end"} <= made.keys() and made.get("schema", {}) is None:
        made["schema"] = {}
    return made


def _plain_text(schema: Any) -> dict[str, Any] | None:
    """The format of a text as it is, which SGLang's tags of Kimi K3 ask for by a style of pairs. None where the schema
    is not one of texts, or says more than a choice, lengths or a pattern.
    """
    if not isinstance(schema, dict) or schema.get("type") != "string":
        return None
    limits = {name: value for name, value in schema.items() if name not in _ANNOTATIONS}
    match limits:
        case {"enum": list(texts)} if len(limits) == 1 and all(isinstance(text, str) for text in texts):
            return {"type": "or", "elements": [{"type": "const_string", "value": text} for text in texts]}
        case {"const": str(text)} if len(limits) == 1:
            return {"type": "const_string", "value": text}
        case {"pattern": str(pattern)} if len(limits) == 1:
            Grammar.regex(pattern)  # by itself: it must not end the group around it
            return {"type": "regex", "pattern": rf"[\s\S]*(?:{pattern})[\s\S]*"}
    lengths = [limits.pop(name, default) for name, default in (("minLength", 0), ("maxLength", ""))]
    if limits or not all(type(length) is int or length == "" for length in lengths):
        return None
    return {"type": "regex", "pattern": rf"[\s\S]{{{lengths[0]},{lengths[1]}}}"}


def _tag(structure: Any) -> Any:
    """A structure of the older form as a tag."""
    if not isinstance(structure, dict):
        return structure
    made = dict(structure)
    content = {"type": "json_schema", "json_schema": made.pop("schema", {})}
    return {**made, "content": content}


_READERS: Mapping[str, Reader] = {**READERS, "json": _json, "ebnf": _ebnf, "structural_tag": _structural_tag}
"""How the text of each kind of SGLang's grammars is read."""
