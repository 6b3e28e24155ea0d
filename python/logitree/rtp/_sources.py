"""Reads settings from their sources: JSON files, environment variables, and the fields of a request.

It collects every problem with its place, and makes nothing of the values.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from .._errors import file_error
from ._problems import Problems, shown
from ._settings import (
    DEFAULTS,
    ELSEWHERE,
    ELSEWHERE_VARIABLES,
    GRAMMARS,
    INSTEAD,
    LARGEST,
    MAX_WRONG,
    PREFIX,
    RESERVED,
    SETTINGS,
    VARIABLES,
    Wrong,
    checked,
)

MAX_BYTES = 64 << 20
"""Of a configuration file. Trees are in files of their own."""

Given = tuple[str, str, Any]
"""A name in JSON, its place, and the value that is not read yet."""


class Reading:
    """The settings of several sources, each stronger than those before it."""

    def __init__(self, values: Mapping[str, Any] | None = None, sources: Mapping[str, str] | None = None) -> None:
        self.values = dict(values or {})
        """By the fields of `Config`."""
        self.sources = dict(sources or {})
        """The place of each value."""
        self.problems = Problems()

    def fields(self, given: Mapping[str, Any]) -> Reading:
        """Reads fields of `Config`; those that have their default are not set."""
        return self.over(*self._read((name, name, value) for name, value in given.items() if value != DEFAULTS[name]))

    def json(self, source: str | os.PathLike[str] | Mapping[str, Any]) -> Reading:
        """Reads a file, or an object that was parsed.

        Raises:
            FileError: the file cannot be read.
        """
        if isinstance(source, Mapping):
            return self.over(*self._read(self._members(source)))
        name = os.fspath(source)
        try:
            with open(name, "rb") as opened:
                data = opened.read(MAX_BYTES + 1)
        except (OSError, ValueError) as reason:
            raise file_error(reason, "the file cannot be opened", place=name[:200]) from reason
        return self.over(*self._read(self._members(self._parsed(data, name), name)))

    def environment(self, environ: Mapping[str, str] | None) -> Reading:
        """Reads variables; None: those of the process."""
        return self.over(*self._read(self._variables(os.environ if environ is None else environ)))

    def request(self, given: Mapping[str, Any]) -> Reading:
        """Reads a request's `generate_config`."""
        values, sources = self._read(self._members(given, "the request", request=True))
        size = {**self.values, **values}.get("combo_token_size")
        banned = values.get("banned_combo_token_ids", ())
        fitting = tuple(combo for combo in banned if len(combo) == size)
        if size and len(fitting) < len(banned):
            values["banned_combo_token_ids"] = fitting
            message = f"{len(banned) - len(fitting)} items have not {size} tokens, left out"
            self.problems.note(sources["banned_combo_token_ids"], message)
        return self.over(values, sources)

    def over(self, values: Mapping[str, Any], sources: Mapping[str, str]) -> Reading:
        """Puts the values of a stronger source over these, and away what they take the place of."""
        for name, value in values.items():
            for other in INSTEAD.get(name, ()) if value not in (None, ()) else ():
                if other not in values:
                    self.values.pop(other, None)
                    self.sources.pop(other, None)
        self.values.update(values)
        self.sources.update(sources)
        return self

    def agree(self) -> None:
        """Settings that are right one by one may contradict each other."""
        places, problems = self.sources, self.problems
        value = {**DEFAULTS, **self.values}
        grammars = [name for name in GRAMMARS if value[name] is not None]
        for name in grammars[1:]:
            problems.add(places[name], f"a second grammar beside {places[grammars[0]]}", "give one of them")
        size, banned = value["combo_token_size"], value["banned_combo_token_ids"]
        if banned and not size:
            help = "say how many tokens an item has"
            problems.add(places["banned_combo_token_ids"], "there is no combo_token_size", help)
        for at in [at for at, combo in enumerate(banned) if size and len(combo) != size][:MAX_WRONG]:
            message = f"an item of {len(banned[at])} tokens, and combo_token_size is {size}"
            problems.add(_inside(places["banned_combo_token_ids"], f"/{at}"), message, f"give {size} ids")
        if value["enable_cross_sequence_ban"]:
            place = places["enable_cross_sequence_ban"]
            beams = max(value["variable_num_beams"], default=value["num_beams"])
            if size < 2:
                problems.add(place, f"combo_token_size is {size}", "items of 2 tokens at least can be kept apart")
            if beams > 1:
                problems.add(place, f"there are {beams} beams", "search beams without enable_cross_sequence_ban")
        if value["think_mode"] != "disabled" and value["max_thinking_tokens"] > 0:
            for name in ("tree_decode_config", "combo_token_size"):
                if value[name]:
                    message = f"{name} constrains the first token on, and a thought comes before it"
                    problems.add(places[name], message, "switch thinking off, or set max_thinking_tokens to 0")

    def _read(self, given: Iterable[Given]) -> tuple[dict[str, Any], dict[str, str]]:
        """The values of one source by the fields of `Config`, and their places. None means the default."""
        values: dict[str, Any] = {}
        places: dict[str, str] = {}
        for name, place, value in given:
            field = SETTINGS[name].target
            try:
                read = DEFAULTS[field] if value is None else SETTINGS[name].kind.read(value)
            except Wrong as reason:
                for inner, message, help in reason.found:
                    self.problems.add(_inside(place, inner), message, help)
                continue
            if name == "think_end_token_id" and read == ():
                continue
            if field in values:
                message = f"the setting is there twice: {places[field]} has it too"
                self.problems.add(place, message, "keep one of them")
                continue
            values[field], places[field] = read, place
        return values, places

    def _variables(self, environ: Mapping[str, str]) -> Iterator[Given]:
        for variable in sorted(environ):
            if variable in VARIABLES:
                name, text = VARIABLES[variable], environ[variable]
                if name == "tree_decode_config" and text:
                    text = os.path.join(environ.get("CHECKPOINT_PATH", ""), text)
                if text:
                    yield name, variable, SETTINGS[name].kind.said(text)
            elif variable in ELSEWHERE_VARIABLES:
                self.problems.note(variable, ELSEWHERE_VARIABLES[variable])
            elif variable.startswith(PREFIX) or (variable.startswith(RESERVED) and _is_near(variable, VARIABLES)):
                self.problems.add(variable[:200], "an unknown variable", _near(variable, VARIABLES))
            elif variable.startswith(RESERVED):
                self.problems.note(variable[:200], "no variable of these processors")

    def _members(self, given: Mapping[str, Any], origin: str = "", *, request: bool = False) -> Iterator[Given]:
        """The members of an object that are settings and, in a request, those that mean one."""
        for name, value in given.items():
            place = _place(name, origin)
            setting = SETTINGS.get(name) if isinstance(name, str) else None
            if setting is not None and request and not setting.request:
                self.problems.add(place, "a request cannot set this", "set it in the file or in the environment")
            elif setting is not None:
                if name == "tree_decode_config" and isinstance(value, str) and value:
                    value = os.path.join(os.path.dirname(origin), value)
                if request and name == "cross_seq_diverge_start_combo" and type(value) is int:
                    nearest = min(max(value, 0), LARGEST)
                    if nearest != value:
                        self.problems.note(place, "taken as the nearest number that is possible")
                    value = nearest
                yield name, place, value
            elif request and name in _MEANT:
                try:
                    meant = _MEANT[name](value, given)
                except Wrong as reason:
                    self.problems.add(place, *reason.found[0][1:])
                    continue
                if meant is not None:
                    yield meant[0], place, meant[1]
            elif name in ELSEWHERE:
                self.problems.note(place, ELSEWHERE[name])
            elif not request or (_is_near(str(name), SETTINGS) and name not in ("bos_token_id", "pad_token_id")):
                self.problems.add(place, "an unknown setting", _near(str(name), SETTINGS))
            else:
                self.problems.note(place, "no setting of these processors")

    def _parsed(self, data: bytes, file: str) -> Mapping[str, Any]:
        """The object of a file; empty, with a problem, if there is none."""
        repeated: list[str] = []

        def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            made: dict[str, Any] = {}
            for key, value in pairs:
                if key in made:
                    repeated.append(key)
                made[key] = value
            return made

        if len(data) > MAX_BYTES:
            self.problems.add(file, f"the file has more than {MAX_BYTES} bytes", "give the tree a file of its own")
            return {}
        try:
            found = json.loads(data.decode("utf-8-sig"), object_pairs_hook=members)
        except UnicodeDecodeError as reason:
            problem = f"byte {reason.start} of {file}", "the text is no UTF-8", "write the file as UTF-8"
        except RecursionError:
            problem = file, "arrays and objects are nested too deeply", "a configuration is one flat object"
        except json.JSONDecodeError as reason:
            place = f"line {reason.lineno}, column {reason.colno} of {file}"
            problem = place, f"malformed JSON: {reason.msg}", "give one JSON object"
        except ValueError:
            problem = file, "a number has too many digits", "give numbers of a few digits"
        else:
            for key in repeated[:MAX_WRONG]:
                self.problems.add(file, f"the name {shown(key)} is there twice in one object", "keep one of them")
            if isinstance(found, dict):
                return found
            problem = file, f"the root is {shown(found)}", "give one JSON object"
        self.problems.add(*problem)
        return {}


def _response_format(value: Any, _: Mapping[str, Any]) -> tuple[str, Any] | None:
    """The grammar that a request's `response_format` names; None: any text."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            checked(value, False, 'give an object, such as {"type": "json_object"}')
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return "json_schema", {"type": "object"}
    known = ", ".join(["text", "json_object", *GRAMMARS])
    checked(value, isinstance(kind, str) and kind in GRAMMARS, f"give an object whose type is one of {known}")
    member = GRAMMARS[str(kind)].member
    inner = value.get("json_schema") if kind == "json_schema" else value
    found = inner.get(member) if isinstance(inner, dict) else None
    if found is None and kind == "structural_tag":
        found = value
    if found is None:
        raise Wrong(("", f"a response_format of the type {kind} without {member}", f"give its {member}"))
    return str(kind), found


def _kwargs(value: Any, given: Mapping[str, Any]) -> tuple[str, Any] | None:
    """What `chat_template_kwargs` says of thoughts; `in_think_mode` counts before it."""
    thinks = value.get("enable_thinking") if isinstance(value, Mapping) else None
    return None if thinks is None or "in_think_mode" in given else ("in_think_mode", thinks)


def _combos_of_prompt(value: Any, _: Mapping[str, Any]) -> None:
    """Items that RTP-LLM's frontend finds in the prompt's text or in texts: it is to do so before."""
    if value:
        raise Wrong(("", "items are not read from texts here", "give their ids in banned_combo_token_ids"))


_MEANT: dict[str, Callable[[Any, Mapping[str, Any]], tuple[str, Any] | None]] = {
    "response_format": _response_format,
    "json_format": lambda value, _: ("json_schema", {"type": "object"}) if value else None,
    "chat_template_kwargs": _kwargs,
    "auto_parse_banned_combo": _combos_of_prompt,
    "banned_combo_semantic_ids": _combos_of_prompt,
}
"""Fields of a request that mean a setting of another name: the setting and its value."""


def _place(name: object, origin: str) -> str:
    """The place of a member: a JSON pointer and what it is in."""
    pointer = "/" + str(name)[:200].replace("~", "~0").replace("/", "~1")
    return f"{pointer} in {origin}" if origin else pointer


def _inside(place: str, inner: str) -> str:
    """The place of a value in the value at a place."""
    pointer, found, origin = place.partition(" in ")
    return f"{pointer}{inner}{found}{origin}"


def _is_near(name: str, known: Iterable[str]) -> bool:
    """Whether this is a misspelt name rather than another one."""
    return bool(get_close_matches(name[:64], known, 1, 0.9))


def _near(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name[:64], known, 1)
    return f"did you mean {near[0]}?" if near else "take it out; docs/rtp.md lists the settings"
