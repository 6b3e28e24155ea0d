"""The table of RTP-LLM's settings: default, reader, variable, and whether a request may set it.

It knows no processor and no source: a setting is a value that was checked on its own.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple

from .. import _core
from ._problems import shown

LARGEST = 2**31 - 1
MAX_ROWS = 65_536
"""Beams or sequences of one request."""
MAX_COMBO = 4096
"""Tokens of an item."""
MAX_WRONG = 8
"""Wrong elements of one list that are reported one by one."""
PREFIX = "LOGITREE_RTP_"
"""Of the variables of settings for which RTP-LLM has no variable."""

Found = tuple[str, str, str]
"""Where in a value (a JSON pointer, empty for all of it), what is wrong, the way out."""


class Wrong(Exception):
    """A value that a setting does not take."""

    def __init__(self, *found: Found) -> None:
        super().__init__(*found)
        self.found = found


class Kind(NamedTuple):
    """How a setting's value is read."""

    read: Callable[[Any], Any]
    """Checks a value of JSON; raises Wrong."""
    said: Callable[[str], Any] = str
    """The value of JSON that a variable's text means; a text that means none is left to be found wrong."""


def checked(value: Any, is_right: bool, help: str) -> Any:
    """The value, or Wrong with the way out."""
    if not is_right:
        raise Wrong(("", f"the value is {shown(value)}", help))
    return value


_WHOLE = re.compile(r"-?[0-9]{1,20}")
_FLAGS = {"1": True, "true": True, "on": True, "yes": True, "0": False, "false": False, "off": False, "no": False}
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}


def _said_whole(written: str) -> Any:
    return int(written) if _WHOLE.fullmatch(written.strip()) else written


def _said_list(written: str) -> Any:
    """JSON, or whole numbers with commas between them."""
    parts = [part.strip() for part in written.split(",")]
    if all(_WHOLE.fullmatch(part) for part in parts):
        return [int(part) for part in parts]
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        return written


def _whole(least: int, most: int) -> Kind:
    """A whole number within bounds; a boolean is rejected."""
    help = f"give a whole number from {least} to {most}"
    return Kind(lambda value: checked(value, type(value) is int and least <= value <= most, help), _said_whole)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _elements(value: Any, read: Callable[[Any], Any], help: str) -> tuple[Any, ...]:
    """A list whose elements are each read; the first few that are wrong are reported one by one."""
    checked(value, isinstance(value, (list, tuple)), help)
    made, found = [], list[Found]()
    for at, element in enumerate(value):
        try:
            made.append(read(element))
        except Wrong as reason:
            found += [(f"/{at}{inner}", message, way_out) for inner, message, way_out in reason.found]
            if len(found) >= MAX_WRONG:
                found.append(("", f"elements after {at} were not read", "mend those first"))
                break
    if found:
        raise Wrong(*found)
    return tuple(made)


def _list(read: Callable[[Any], Any], help: str) -> Kind:
    return Kind(lambda value: _elements(value, read, help), _said_list)


MODES = ("disabled", "adaptive", "enabled")


def _mode(value: Any) -> str:
    """RTP-LLM's think mode, or its older numbers."""
    if type(value) in (int, bool) and value in (0, 1):
        return MODES[2 * value]
    written = value.strip().lower() if isinstance(value, str) else ""
    named = {"0": "disabled", "1": "enabled"}.get(written, written)
    checked(value, named in MODES, "give disabled, adaptive or enabled, or 0 or 1")
    return named


FLAG = Kind(
    lambda value: checked(value, type(value) is bool, "give true or false"),
    lambda written: _FLAGS.get(written.strip().lower(), written),
)
THINKS = Kind(lambda value: "enabled" if FLAG.read(value) else "disabled")
TAG = Kind(  # In a variable, \n, \r, \t and \\ are written as two characters.
    lambda value: checked(value, _is_text(value), "give a text that is not empty"),
    lambda written: re.sub(r"\\([nrt\\])", lambda found: _ESCAPES[found[1]], written),
)
PATH = Kind(lambda value: checked(value, _is_text(value) and "\0" not in value, "give the path of a tree-decode file"))
WHOLE, ROWS = _whole(0, LARGEST), _whole(1, MAX_ROWS)
_ID_LIST = _list(WHOLE.read, "give token ids, such as [128822, 271]")
IDS = Kind(lambda value: (WHOLE.read(value),) if type(value) is int else _ID_LIST.read(value), _said_list)
END_ID = Kind(lambda value: () if type(value) is int and value == -1 else (WHOLE.read(value),), _said_whole)
_COMBO_HELP = "give a list of token ids for each item, such as [[10, 20, 30]]"
COMBOS = _list(_list(WHOLE.read, _COMBO_HELP).read, _COMBO_HELP)
BEAMS = _list(ROWS.read, "give a number of beams for each step, such as [4, 8]")


class Syntax(NamedTuple):
    """A kind of grammar."""

    types: tuple[type, ...]
    """Of its values."""
    make: Callable[[str], _core.Grammar]
    member: str
    """Of a `response_format` of this type: it has the value."""


GRAMMARS = {
    "json_schema": Syntax((dict, bool, str), _core.Grammar.json_schema, "schema"),
    "regex": Syntax((str,), _core.Grammar.regex, "pattern"),
    "ebnf": Syntax((str,), _core.Grammar.ebnf, "grammar"),
    "structural_tag": Syntax((dict, str), _core.Grammar.structural_tag, "structural_tag"),
}
"""Settings; at most one of them has a value."""


@functools.lru_cache(maxsize=64)
def compiled(name: str, written: str, compact: bool = False) -> _core.Grammar:
    """The grammar of a setting's text. `compact`: JSON without other white space than XGrammar's own separators."""
    if compact and name == "json_schema":
        return _core.Grammar.json_schema(written, whitespace="compact", separators=(", ", ": "))
    return GRAMMARS[name].make(written)


def _grammar(name: str, value: Any) -> str:
    """The text of a grammar that compiles."""
    types = GRAMMARS[name].types
    called = {dict: "an object", bool: "true or false", str: "a text that is not empty"}
    help = f"give {' or '.join(called[one] for one in types)}"
    checked(value, type(value) in types and value != "", help)
    try:
        written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, allow_nan=False)
        compiled(name, written)
    except _core.LogitreeError as reason:
        raise Wrong(("", " ".join(str(reason).split()), "")) from reason
    except (RecursionError, ValueError, TypeError) as reason:
        help = "give JSON of less depth, with finite numbers"
        raise Wrong(("", "the value cannot be written as JSON", help)) from reason
    return written


def _of(default: Any, kind: Kind, variable: str = "", request: bool = True) -> Any:
    """A field of the table. `variable`: RTP-LLM's; `request`: whether a request may set it."""
    return field(default=default, metadata={"kind": kind, "variable": variable, "request": request})


def _grammar_of(name: str) -> Any:
    return _of(None, Kind(functools.partial(_grammar, name)))


@dataclass(frozen=True)
class _Settings:
    """The settings. A name is that of RTP-LLM's server argument or field of `generate_config`."""

    tree_decode_config: str | None = _of(None, PATH, "TREE_DECODE_CONFIG", request=False)
    """Path of a tree-decode file."""
    think_mode: Literal["disabled", "adaptive", "enabled"] = _of("disabled", Kind(_mode), "THINK_MODE", request=False)
    """`enabled`: the output begins inside a thought. `adaptive`: inside one if the prompt has begun it, and the model
    may begin one itself."""
    think_start_tag: str = _of("<think>\n", TAG, "THINK_START_TAG", request=False)
    """The text that begins a thought."""
    think_end_tag: str = _of("</think>\n\n", TAG, "THINK_END_TAG", request=False)
    """The text that ends a thought."""
    begin_think_token_ids: tuple[int, ...] = _of((), IDS)
    """The begin as token ids, instead of the tag."""
    end_think_token_ids: tuple[int, ...] = _of((), IDS)
    """The end as token ids, instead of the tag."""
    max_thinking_tokens: int = _of(32_000, WHOLE)
    """The budget of a thought in tokens; 0: thoughts are not constrained."""
    json_schema: str | None = _grammar_of("json_schema")
    """The grammar as a JSON Schema."""
    regex: str | None = _grammar_of("regex")
    """The grammar as a regular expression."""
    ebnf: str | None = _grammar_of("ebnf")
    """The grammar in XGrammar's EBNF."""
    structural_tag: str | None = _grammar_of("structural_tag")
    """The grammar as a structural tag."""
    constrained_json_disable_any_whitespace: bool = _of(
        False, FLAG, "CONSTRAINED_JSON_DISABLE_ANY_WHITESPACE", request=False
    )
    """JSON has no white space but one space after its commas and colons."""
    grammar_terminate_without_stop_token: bool = _of(False, FLAG, "GRAMMAR_TERMINATE_WITHOUT_STOP_TOKEN", request=False)
    """A row is finished as soon as its grammar is complete (`GrammarProcessor.finished`)."""
    check_tree_root: bool = _of(False, FLAG)
    """Whether `processors` refuses a prompt that does not end with the tree's root."""
    combo_token_size: int = _of(0, _whole(0, MAX_COMBO))
    """Tokens of a recommended item; 0: no recommendation."""
    banned_combo_token_ids: tuple[tuple[int, ...], ...] = _of((), COMBOS)
    """Items that may not come, as their tokens."""
    enable_cross_sequence_ban: bool = _of(False, FLAG)
    """Whether rows keep away from each other's items."""
    cross_seq_diverge_start_combo: int = _of(0, WHOLE)
    """From how many completed items on the later rows mask their largest logits where an item begins."""
    num_beams: int = _of(1, ROWS)
    """Beams of a request; 1: it is sampled."""
    variable_num_beams: tuple[int, ...] = _of((), BEAMS)
    """Beams after each step, instead of `num_beams`."""
    num_return_sequences: int = _of(0, _whole(0, MAX_ROWS))
    """Sequences of a request; 0: one."""
    eos_token_id: tuple[int, ...] = _of((), IDS)
    """What ends a sequence; empty: the vocabulary's ends of generation."""


class Setting(NamedTuple):
    """A name by which sources give a setting."""

    target: str
    """The field of `Config` that it sets."""
    kind: Kind
    variable: str
    """Empty: none."""
    request: bool


def _variants() -> Iterator[tuple[str, Setting]]:
    for one in fields(_Settings):
        kind, variable, request = one.metadata.values()
        yield one.name, Setting(one.name, kind, variable or PREFIX + one.name.upper(), request)
    yield "in_think_mode", Setting("think_mode", THINKS, "", True)
    yield "think_end_token_id", Setting("end_think_token_ids", END_ID, "THINK_END_TOKEN_ID", False)


SETTINGS = dict(_variants())
"""By their names in JSON."""
VARIABLES = {setting.variable: name for name, setting in SETTINGS.items() if setting.variable}
"""The names in JSON of variables."""
DEFAULTS = {one.name: one.default for one in fields(_Settings)}
RESERVED = (PREFIX, "THINK_", "TREE_DECODE_")
"""Beginnings of variables that must be known."""
ELSEWHERE = {
    "think_terminate_token_id": "the frontend stops a thought with it",
    "thinking_mode": "in_think_mode says whether a request thinks",
}
"""Settings of RTP-LLM that are no processor's, and why nothing here reads them."""
ELSEWHERE_VARIABLES = {"THINK_TERMINATE_TOKEN_ID": ELSEWHERE["think_terminate_token_id"]}
"""The same of variables with a beginning that is reserved."""
INSTEAD = {
    "think_start_tag": ("begin_think_token_ids",),
    "think_end_tag": ("end_think_token_ids",),
    "begin_think_token_ids": ("think_start_tag",),
    "end_think_token_ids": ("think_end_tag",),
    **{name: tuple(other for other in GRAMMARS if other != name) for name in GRAMMARS},
}
"""What a setting of a stronger source takes the place of in a weaker one."""
