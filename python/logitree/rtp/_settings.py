"""The settings of RTP-LLM's processors: names, variables, defaults, and how each is read from JSON or a variable.

It knows no processor: a setting is a value that was checked on its own.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .. import _core
from ._problems import shown

LARGEST = 2**31 - 1
MAX_ROWS = 65_536
"""Beams or sequences of one request."""
MAX_COMBO = 4096
"""Tokens of an item."""
MAX_WRONG = 8
"""Wrong elements of one list that are told apart."""
PREFIX = "LOGITREE_RTP_"
"""Of the variables of settings for which RTP-LLM has no variable."""

Found = tuple[str, str, str]
"""Where in a value (a JSON pointer, empty for all of it), what is wrong, the way out."""


class Wrong(Exception):
    """A value that a setting does not take."""

    def __init__(self, message: str, help: str, *, found: list[Found] | None = None) -> None:
        super().__init__(message)
        self.found = [("", message, help)] if found is None else found


def whole(least: int, most: int) -> Callable[[Any], int]:
    """A whole number within bounds; true is no number."""

    def read(value: Any) -> int:
        if type(value) is not int or not least <= value <= most:
            # The digits of a huge number are never written: that takes quadratic time.
            huge = type(value) is int and value.bit_length() > 200
            told = "a number of more than 60 digits" if huge else shown(value)
            raise Wrong(f"the value is {told}", f"give a whole number from {least} to {most}")
        return value

    return read


def flag(value: Any) -> bool:
    """A boolean."""
    if type(value) is not bool:
        raise Wrong(f"the value is {shown(value)}", "give true or false")
    return value


def text(value: Any) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise Wrong(f"the value is {shown(value)}", "give a text that is not empty")
    return value


def path(value: Any) -> str:
    """The name of a file."""
    if not isinstance(value, str) or not value or "\0" in value:
        raise Wrong(f"the value is {shown(value)}", "give the path of a tree-decode file")
    return value


MODES = ("disabled", "adaptive", "enabled")


def mode(value: Any) -> str:
    """RTP-LLM's think mode, or its older numbers."""
    if type(value) in (int, bool) and value in (0, 1):
        return MODES[2 * value]
    if isinstance(value, str):
        written = value.strip().lower()
        if (named := {"0": "disabled", "1": "enabled"}.get(written, written)) in MODES:
            return named
    raise Wrong(f"the value is {shown(value)}", "give disabled, adaptive or enabled, or 0 or 1")


def thinks(value: Any) -> str:
    """Whether a request thinks, as a think mode."""
    return "enabled" if flag(value) else "disabled"


_token = whole(0, LARGEST)


def elements(value: Any, read: Callable[[Any], Any], help: str) -> tuple[Any, ...]:
    """A list whose elements are each read; the first few that are wrong are told apart."""
    if not isinstance(value, (list, tuple)):
        raise Wrong(f"the value is {shown(value)}", help)
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
        raise Wrong("", "", found=found)
    return tuple(made)


def ids(value: Any) -> tuple[int, ...]:
    """Token ids; one stands for a list of it."""
    if type(value) is int:
        return (_token(value),)
    return elements(value, _token, "give token ids, such as [128822, 271]")


def end_id(value: Any) -> tuple[int, ...]:
    """RTP-LLM's single end token; -1 is no token."""
    return () if type(value) is int and value == -1 else (_token(value),)


def combos(value: Any) -> tuple[tuple[int, ...], ...]:
    """Items as token ids."""
    help = "give a list of token ids for each item, such as [[10, 20, 30]]"
    return elements(value, lambda combo: elements(combo, _token, help), help)


def beams(value: Any) -> tuple[int, ...]:
    """A number of beams for each step."""
    return elements(value, whole(1, MAX_ROWS), "give a number of beams for each step, such as [4, 8]")


def schema(value: Any) -> str:
    """A JSON Schema, or its text."""
    return _grammar("json_schema", value, (dict, bool, str))


def tag(value: Any) -> str:
    """A structural tag, or its text."""
    return _grammar("structural_tag", value, (dict, str))


def regex(value: Any) -> str:
    """A regular expression."""
    return _grammar("regex", value, (str,))


def ebnf(value: Any) -> str:
    """A grammar in GBNF, which is XGrammar's EBNF."""
    return _grammar("ebnf", value, (str,))


def _grammar(name: str, value: Any, kinds: tuple[type, ...]) -> str:
    """The text of a grammar that compiles."""
    if type(value) not in kinds or value == "":
        called = {dict: "an object", bool: "true or false", str: "a text that is not empty"}
        raise Wrong(f"the value is {shown(value)}", f"give {' or '.join(called[kind] for kind in kinds)}")
    try:
        written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, allow_nan=False)
        compiled(name, written)
    except (RecursionError, ValueError, TypeError) as reason:
        if isinstance(reason, _core.LogitreeError):
            raise Wrong(" ".join(str(reason).split()), "") from reason
        raise Wrong("the value cannot be written as JSON", "give JSON of less depth, with finite numbers") from reason
    except _core.LogitreeError as reason:
        raise Wrong(" ".join(str(reason).split()), "") from reason
    return written


RESPONSE_FORMATS = {
    "json_schema": ("json_schema", "schema"),
    "regex": ("regex", "pattern"),
    "ebnf": ("ebnf", "grammar"),
    "structural_tag": ("structural_tag", "structural_tag"),
}
"""The type of a `response_format` -> the setting that it is, and its member that has the value."""


def response_format(value: Any) -> tuple[str, Any] | None:
    """The setting and the value that a request's `response_format` means; None: any text.

    Raises:
        Wrong: it is of no known type, or its value is missing.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise Wrong(f"the value is {shown(value)}", 'give an object, such as {"type": "json_object"}') from None
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return "json_schema", {"type": "object"}
    if kind not in RESPONSE_FORMATS:
        known = ", ".join(["text", "json_object", *RESPONSE_FORMATS])
        raise Wrong(f"the value is {shown(value)}", f"give an object whose type is one of {known}")
    name, member = RESPONSE_FORMATS[kind]
    inner = value.get("json_schema") if kind == "json_schema" else value
    found = inner.get(member) if isinstance(inner, dict) else None
    if found is None and kind == "structural_tag":
        found = value
    if found is None:
        raise Wrong(f"a response_format of the type {kind} without {member}", f"give its {member}")
    return name, found


@functools.lru_cache(maxsize=64)
def compiled(name: str, written: str, compact: bool = False) -> _core.Grammar:
    """The grammar of a setting's text. `compact`: JSON without other white space than XGrammar's own separators."""
    if compact and name == "json_schema":
        return _core.Grammar.json_schema(written, whitespace="compact", separators=(", ", ": "))
    make: dict[str, Callable[[str], _core.Grammar]] = {
        "json_schema": _core.Grammar.json_schema,
        "structural_tag": _core.Grammar.structural_tag,
        "regex": _core.Grammar.regex,
        "ebnf": _core.Grammar.gbnf,
    }
    return make[name](written)


# -- variables

_WHOLE = re.compile(r"-?[0-9]{1,20}")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}
_FLAGS = {"1": True, "true": True, "on": True, "yes": True, "0": False, "false": False, "off": False, "no": False}


def said_plainly(written: str) -> Any:
    """The text itself."""
    return written


def said_whole(written: str) -> Any:
    """A whole number; anything else is left to be found wrong."""
    return int(written) if _WHOLE.fullmatch(written.strip()) else written


def said_flag(written: str) -> Any:
    """A boolean, in one of the words for it."""
    return _FLAGS.get(written.strip().lower(), written)


def said_tag(written: str) -> Any:
    r"""A text in which \n, \r, \t and \\ are written as two characters."""
    return re.sub(r"\\([nrt\\])", lambda found: _ESCAPES[found[1]], written)


def said_list(written: str) -> Any:
    """JSON, or whole numbers with commas between them."""
    parts = [part.strip() for part in written.split(",")]
    if all(_WHOLE.fullmatch(part) for part in parts):
        return [int(part) for part in parts]
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        return written


@dataclass(frozen=True)
class Setting:
    """One row of the table."""

    name: str
    """In JSON: that of RTP-LLM's server argument or field of `generate_config`."""
    read: Callable[[Any], Any]
    """Checks a value; raises Wrong."""
    default: Any = None
    variable: str = ""
    said: Callable[[str], Any] = said_plainly
    """The value that a variable's text means."""
    request: bool = True
    """Whether a request may set it."""
    field: str = ""
    """The field of `Config` that it sets, where that has another name."""

    @property
    def target(self) -> str:
        """The field of `Config` that it sets."""
        return self.field or self.name


def _rows() -> Iterator[Setting]:
    yield Setting("tree_decode_config", path, None, "TREE_DECODE_CONFIG", request=False)
    yield Setting("think_mode", mode, "disabled", "THINK_MODE", request=False)
    yield Setting("in_think_mode", thinks, field="think_mode")
    yield Setting("think_start_tag", text, "<think>\n", "THINK_START_TAG", said_tag, request=False)
    yield Setting("think_end_tag", text, "</think>\n\n", "THINK_END_TAG", said_tag, request=False)
    yield Setting("think_end_token_id", end_id, (), "THINK_END_TOKEN_ID", said_whole, False, "end_think_token_ids")
    yield Setting("begin_think_token_ids", ids, (), said=said_list)
    yield Setting("end_think_token_ids", ids, (), said=said_list)
    yield Setting("max_thinking_tokens", whole(0, LARGEST), 32_000, said=said_whole)
    yield Setting("json_schema", schema)
    yield Setting("regex", regex)
    yield Setting("ebnf", ebnf)
    yield Setting("structural_tag", tag)
    yield Setting(
        "constrained_json_disable_any_whitespace",
        flag,
        False,
        "CONSTRAINED_JSON_DISABLE_ANY_WHITESPACE",
        said_flag,
        request=False,
    )
    yield Setting(
        "grammar_terminate_without_stop_token",
        flag,
        False,
        "GRAMMAR_TERMINATE_WITHOUT_STOP_TOKEN",
        said_flag,
        request=False,
    )
    yield Setting("check_tree_root", flag, False, said=said_flag)
    yield Setting("combo_token_size", whole(0, MAX_COMBO), 0, said=said_whole)
    yield Setting("banned_combo_token_ids", combos, (), said=said_list)
    yield Setting("enable_cross_sequence_ban", flag, False, said=said_flag)
    yield Setting("cross_seq_diverge_start_combo", whole(0, LARGEST), 0, said=said_whole)
    yield Setting("num_beams", whole(1, MAX_ROWS), 1, said=said_whole)
    yield Setting("variable_num_beams", beams, (), said=said_list)
    yield Setting("num_return_sequences", whole(0, MAX_ROWS), 0, said=said_whole)
    yield Setting("eos_token_id", ids, (), said=said_list)


SETTINGS = {setting.name: setting for setting in _rows()}
"""By their names in JSON."""
VARIABLES = {
    setting.variable or PREFIX + name.upper(): setting
    for name, setting in SETTINGS.items()
    if setting.variable or name != "in_think_mode"
}
"""By their names in the environment."""
RESERVED = (PREFIX, "THINK_", "TREE_DECODE_")
"""Beginnings of variables that must be known."""
ELSEWHERE = {
    "think_terminate_token_id": "the frontend stops a thought with it",
    "thinking_mode": "in_think_mode says whether a request thinks",
}
"""Settings of RTP-LLM that are no processor's, and why nothing here reads them."""
ELSEWHERE_VARIABLES = {"THINK_TERMINATE_TOKEN_ID": ELSEWHERE["think_terminate_token_id"]}
"""The same of variables with a beginning that is reserved."""
GRAMMARS = ("json_schema", "regex", "ebnf", "structural_tag")
"""Settings of which one at most has a value."""
INSTEAD = {
    "think_start_tag": ("begin_think_token_ids",),
    "think_end_tag": ("end_think_token_ids",),
    "begin_think_token_ids": ("think_start_tag",),
    "end_think_token_ids": ("think_end_tag",),
    **{name: tuple(other for other in GRAMMARS if other != name) for name in GRAMMARS},
}
"""What a setting of a stronger source takes the place of in a weaker one."""
