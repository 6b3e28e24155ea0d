"""RTP-LLM's ways to configure processors: a JSON file, environment variables, and the fields of a request."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from threading import Lock
from typing import Any, Literal

from .. import _core
from .._constraint import Tokenize
from .._errors import error
from .._reasoning import ReasoningBudget
from ._matchers import GrammarProcessor, ThinkProcessor
from ._problems import MAX_EVIDENCE, Problems, shown
from ._processor import Processor, checked_rows
from ._processors import Processors
from ._recommendation import RecommendationProcessor
from ._sequences import MultiSequenceProcessor
from ._settings import (
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
    Setting,
    Wrong,
    compiled,
    response_format,
)
from ._tree import RtpTree, load_tree
from ._tree_processor import TreeProcessor

MAX_BYTES = 64 << 20
"""Of a configuration file. Trees are in files of their own."""

Given = tuple[str, str, Setting, Any]
"""A name, its place, its setting, and the value that is not read yet."""


class _Trees:
    """The trees that configurations have in common: one for each file, read again when the file has changed."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: dict[tuple[str, int | None], tuple[tuple[int, int, int], RtpTree]] = {}

    def get(self, path: str, vocabulary_size: int | None) -> RtpTree:
        """The tree of a file; errors as of `load_tree`."""
        with self._lock:
            try:
                found = os.stat(path)
            except (OSError, ValueError) as reason:
                raise error(_core.FileError, f"the file cannot be opened: {reason}", place=path[:200]) from reason
            seen = (found.st_mtime_ns, found.st_size, found.st_ino)
            key = (path, vocabulary_size)
            held = self._held.get(key)
            if held is None or held[0] != seen:
                held = self._held[key] = (seen, load_tree(os.fspath(path), vocabulary_size=vocabulary_size))
            return held[1]

    def __reduce__(self) -> tuple[type[_Trees], tuple[()]]:
        """A pickled configuration reads its trees again."""
        return _Trees, ()


@dataclass(frozen=True)
class Config:
    """Which of RTP-LLM's processors run, and how. The names are RTP-LLM's; docs/rtp.md has their table.

    Of the sources of a setting the strongest counts: file < environment < request.

    Raises:
        ConfigError: settings that cannot be honoured; `problems` has all of them, each with its place.
    """

    tree_decode_config: str | None = None
    """Path of a tree-decode file."""
    think_mode: Literal["disabled", "adaptive", "enabled"] = "disabled"
    """`enabled`: the output begins inside a thought. `adaptive`: inside one if the prompt has begun it, and the model
    may begin one itself."""
    think_start_tag: str = "<think>\n"
    think_end_tag: str = "</think>\n\n"
    begin_think_token_ids: tuple[int, ...] = ()
    """The begin as token ids, instead of the tag."""
    end_think_token_ids: tuple[int, ...] = ()
    """The end as token ids, instead of the tag."""
    max_thinking_tokens: int = 32_000
    """The budget of a thought in tokens; 0: thoughts are not constrained."""
    json_schema: str | None = None
    regex: str | None = None
    ebnf: str | None = None
    structural_tag: str | None = None
    constrained_json_disable_any_whitespace: bool = False
    """JSON has no white space but one space after its commas and colons."""
    grammar_terminate_without_stop_token: bool = False
    """A row is finished as soon as its grammar is complete (`GrammarProcessor.finished`)."""
    check_tree_root: bool = False
    """Whether `processors` refuses a prompt that does not end with the tree's root."""
    combo_token_size: int = 0
    """Tokens of a recommended item; 0: no recommendation."""
    banned_combo_token_ids: tuple[tuple[int, ...], ...] = ()
    enable_cross_sequence_ban: bool = False
    cross_seq_diverge_start_combo: int = 0
    """From how many completed items on the later rows mask their largest logits where an item begins."""
    num_beams: int = 1
    variable_num_beams: tuple[int, ...] = ()
    num_return_sequences: int = 0
    eos_token_id: tuple[int, ...] = ()
    """What ends a sequence; empty: the vocabulary's ends of generation."""
    sources: Mapping[str, str] = field(init=False, compare=False, repr=False)
    """Setting -> the place that set it; settings that have their default are missing."""
    notes: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """What was passed over because no processor reads it, each with its place."""
    _trees: _Trees = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        problems = Problems()
        given = ((one.name, one.name, SETTINGS[one.name], getattr(self, one.name)) for one in _FIELDS)
        changed = (row for row in given if row[3] != SETTINGS[row[0]].default)
        values, sources = _read(changed, problems)
        _agree(values, sources, problems)
        problems.check()
        self._fill(values, sources, _Trees(), problems.notes)

    @classmethod
    def from_json(cls, source: str | os.PathLike[str] | Mapping[str, Any]) -> Config:
        """The settings of a JSON object: a file, or a mapping that was parsed already.

        Args:
            source: a path, or the object. `tree_decode_config` may be relative to the file's folder.

        Raises:
            ConfigError: the settings' problems, malformed JSON and unknown names included.
            FileError: the file cannot be read.
        """
        return cls._of(_from_json(source))

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Config:
        """The settings of environment variables; None: those of the process. An empty variable sets nothing.

        `TREE_DECODE_CONFIG` may be relative to `CHECKPOINT_PATH`.

        Raises:
            ConfigError: the settings' problems; variables that begin like these and are unknown are problems too.
        """
        return cls._of(_from_env(os.environ if environ is None else environ))

    @classmethod
    def load(
        cls,
        source: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
        *,
        vocabulary: _core.Vocabulary | None = None,
        tokenize: Tokenize | None = None,
    ) -> Config:
        """What a server does at its start: a file's settings, those of the environment over them, and all checks.

        Args:
            source: as of `from_json`; None: no file.
            environ: as of `from_env`; None: those of the process.
            vocabulary: what the ids, tags and grammars must fit; None: that is checked by `processors`.
            tokenize: tokenisation of tags.

        Raises:
            ConfigError: the problems of both sources, of the tree-decode file and of the vocabulary together.
            FileError: the configuration file cannot be read.
        """
        layers = [] if source is None else [_from_json(source)]
        return cls._of(*layers, _from_env(os.environ if environ is None else environ), deep=(vocabulary, tokenize))

    def merged(self, stronger: Config) -> Config:
        """These settings, and over them those that the other configuration sets.

        Raises:
            ConfigError: the settings do not agree with each other.
        """
        values = {name: getattr(stronger, name) for name in stronger.sources}
        problems = Problems()
        problems.notes += stronger.notes
        return self._over(values, stronger.sources, problems)

    def with_request(self, overrides: Mapping[str, Any]) -> Config:
        """These settings with those of one request: its `generate_config` as it is.

        Fields that concern no processor are passed over, and `notes` names them. `response_format` is the grammar that
        it names; `chat_template_kwargs` says with `enable_thinking` whether the request thinks. A request sets no files
        and no tags. Trees that were read are shared.

        Raises:
            ConfigError: values that cannot be honoured, and names that are nearly those of settings.
        """
        problems = Problems()
        values, places = _read(_request(overrides, problems), problems)
        size = values.get("combo_token_size", self.combo_token_size)
        banned = values.get("banned_combo_token_ids", ())
        if size and any(len(combo) != size for combo in banned):
            values["banned_combo_token_ids"] = tuple(combo for combo in banned if len(combo) == size)
            left_out = len(banned) - len(values["banned_combo_token_ids"])
            problems.note(places["banned_combo_token_ids"], f"{left_out} items have not {size} tokens, left out")
        return self._over(values, places, problems)

    @property
    def rows(self) -> int:
        """Rows at the beginning: beams begin as one row, which `update_multi_seq_status` expands."""
        return 1 if self.beams > 1 else max(1, self.num_return_sequences)

    @property
    def beams(self) -> int:
        """The most beams of a step."""
        return max(self.variable_num_beams, default=self.num_beams)

    @property
    def thinks(self) -> bool:
        """Whether thoughts are constrained."""
        return self.think_mode != "disabled" and self.max_thinking_tokens > 0

    def tree(self, vocabulary_size: int | None = None) -> RtpTree | None:
        """The tree of `tree_decode_config`, read again if the file has changed; None without one.

        Raises:
            PayloadError, FileError: as of `load_tree`.
        """
        if self.tree_decode_config is None:
            return None
        return self._trees.get(self.tree_decode_config, vocabulary_size)

    def check(self, vocabulary: _core.Vocabulary | None = None, *, tokenize: Tokenize | None = None) -> None:
        """Reads the tree-decode file and, with a vocabulary, builds every processor once.

        Raises:
            ConfigError: what would be a problem in `processors`.
        """
        problems = Problems()
        self._check(vocabulary, tokenize, problems)
        problems.check()

    def processors(
        self,
        vocabulary: _core.Vocabulary,
        rows: int | None = None,
        *,
        prompt: Sequence[int] = (),
        tokenize: Tokenize | None = None,
    ) -> Processors | None:
        """The processors of one request, in RTP-LLM's order; None if the settings ask for no processor.

        A grammar applies to what follows the thought. `MultiSequenceProcessor` is there for several rows or beams.

        Args:
            vocabulary: the model's vocabulary.
            rows: how many rows there are; None: `rows`.
            prompt: token ids of the prompt, which in `adaptive` mode may have begun a thought, and which
                `check_tree_root` looks at.
            tokenize: tokenisation of tags that are no single tokens, without special tokens.

        Raises:
            ConfigError: ids, tags or grammars do not fit the vocabulary, or the tree-decode file is wrong.
            StateError: a negative number of rows.
        """
        problems = Problems()
        count = self.rows if rows is None else checked_rows(rows)
        made = self._processors(vocabulary, count, prompt, tokenize, problems)
        problems.check()
        return Processors(made) if made else None

    def describe(self) -> str:
        """The settings that are set and where, and what was passed over, one a line."""
        lines = list[str]()
        for name in (one.name for one in _FIELDS if one.name in self.sources):
            value = getattr(self, name)
            text = shown(value) if not isinstance(value, tuple) else json.dumps(value[:MAX_EVIDENCE])
            text = text if len(text) <= MAX_EVIDENCE else f"{text[:MAX_EVIDENCE]}..."
            lines.append(f"{name} = {text} ({self.sources[name]})")
        return "\n".join([*lines, *(f"passed over: {note}" for note in self.notes)])

    # -- how it is made

    @classmethod
    def _of(cls, *layers: _Layer, deep: tuple[_core.Vocabulary | None, Tokenize | None] | None = None) -> Config:
        """The configuration of sources, the strongest last; with all their problems, or a ConfigError."""
        problems = Problems()
        values: dict[str, Any] = {}
        sources: dict[str, str] = {}
        for layer in layers:
            read, places = _read(layer(problems), problems)
            _join(values, sources, read, places)
        _agree(values, sources, problems)
        made = object.__new__(cls)
        made._fill(values, sources, _Trees(), problems.notes)
        if deep is not None:
            made._check(*deep, problems)
        problems.check()
        return made

    def _over(self, values: Mapping[str, Any], places: Mapping[str, str], problems: Problems) -> Config:
        """This configuration with these values over its own."""
        own = {name: getattr(self, name) for name in self.sources}
        sources = dict(self.sources)
        _join(own, sources, values, places)
        _agree(own, sources, problems)
        problems.check()
        made = object.__new__(type(self))
        made._fill(own, sources, self._trees, [*self.notes, *problems.notes])
        return made

    def _fill(self, values: Mapping[str, Any], sources: Mapping[str, str], trees: _Trees, notes: Sequence[str]) -> None:
        for one in _FIELDS:
            object.__setattr__(self, one.name, values.get(one.name, one.default))
        object.__setattr__(self, "sources", dict(sources))
        object.__setattr__(self, "notes", tuple(notes))
        object.__setattr__(self, "_trees", trees)

    def _place(self, *names: str) -> str:
        """Where the first of these settings that is set was set."""
        return next((self.sources[name] for name in names if name in self.sources), f"{names[0]} (the default)")

    # -- processors

    def _check(self, vocabulary: _core.Vocabulary | None, tokenize: Tokenize | None, problems: Problems) -> None:
        if vocabulary is not None:
            self._processors(vocabulary, self.rows, None, tokenize, problems)
        elif self.tree_decode_config is not None:
            place = f"{self._place('tree_decode_config')} ({self.tree_decode_config[:200]})"
            self._tried(problems, place, self.tree)

    def _processors(
        self,
        vocabulary: _core.Vocabulary,
        rows: int,
        prompt: Sequence[int] | None,
        tokenize: Tokenize | None,
        problems: Problems,
    ) -> list[Processor]:
        """Every processor that can be made; why another cannot is a problem. Without a prompt: there is none yet."""
        for name in ("begin_think_token_ids", "end_think_token_ids", "eos_token_id"):
            self._fit(name, [getattr(self, name)], len(vocabulary), problems)
        used = [name for name in GRAMMARS if getattr(self, name) is not None]
        compact = self.constrained_json_disable_any_whitespace
        grammar = compiled(used[0], getattr(self, used[0]), compact) if used else None
        made: list[Processor | None] = []
        if self.thinks:
            made.append(self._thought(vocabulary, rows, prompt or (), tokenize, grammar, problems))
        elif grammar is not None:
            bound = self._tried(problems, self._place(*used), lambda: _begun(grammar.matcher(vocabulary)))
            ends_early = self.grammar_terminate_without_stop_token
            processor = GrammarProcessor(bound, rows, terminate_without_stop_token=ends_early) if bound else None
            made.append(processor)
        if self.tree_decode_config is not None:
            place = f"{self._place('tree_decode_config')} ({self.tree_decode_config[:200]})"
            tree = self._tried(problems, place, lambda: self.tree(len(vocabulary)))
            if tree is not None and self.check_tree_root and prompt is not None:
                self._tried(problems, self._place("check_tree_root"), lambda: tree.check_prompt(prompt))
            made.append(None if tree is None else TreeProcessor(tree, rows))
        if self.combo_token_size:
            self._fit("banned_combo_token_ids", self.banned_combo_token_ids, len(vocabulary), problems)
            place = self._place("combo_token_size")
            made.append(self._tried(problems, place, lambda: self._recommendation(rows)))
        if self.beams > 1 or max(rows, self.num_return_sequences) > 1:
            ends = self.eos_token_id or vocabulary.eog_ids
            if ends:
                made.append(MultiSequenceProcessor(ends, rows))
            else:
                place = self._place("eos_token_id", "num_return_sequences", "num_beams", "variable_num_beams")
                problems.add(place, "the vocabulary has no end of generation", "set eos_token_id")
        return [processor for processor in made if processor is not None]

    def _thought(
        self,
        vocabulary: _core.Vocabulary,
        rows: int,
        prompt: Sequence[int],
        tokenize: Tokenize | None,
        grammar: _core.Grammar | None,
        problems: Problems,
    ) -> ThinkProcessor | None:
        budget = ReasoningBudget(
            self.begin_think_token_ids or self.think_start_tag,
            self.end_think_token_ids or self.think_end_tag,
            budget=self.max_thinking_tokens,
            tokenize=tokenize,
            then=grammar,
        )
        inside: Literal["inside"] | None = "inside" if self.think_mode == "enabled" else None
        try:
            ends_early = self.grammar_terminate_without_stop_token
            return ThinkProcessor(
                budget, vocabulary, rows, at=inside, prompt=prompt, terminate_without_stop_token=ends_early
            )
        except _core.LogitreeError as reason:
            tags = {
                "begin": ("begin_think_token_ids", "think_start_tag"),
                "end": ("end_think_token_ids", "think_end_tag"),
            }
            names = tags.get(reason.place, ("think_mode", "max_thinking_tokens"))
            used = names[0] if getattr(self, names[0]) else names[1]
            help = reason.help
            if reason.place in tags and tokenize is None and used == names[1]:
                help = f"give {names[0]}, or tokenize="
            problems.add(self._place(used), _message(reason), help)
            return None

    def _recommendation(self, rows: int) -> RecommendationProcessor:
        return RecommendationProcessor(
            self.combo_token_size,
            rows,
            banned_combo_token_ids=self.banned_combo_token_ids,
            enable_cross_sequence_ban=self.enable_cross_sequence_ban,
            diverge_from=self.cross_seq_diverge_start_combo,
        )

    def _fit(self, name: str, lists: Iterable[Sequence[int]], size: int, problems: Problems) -> None:
        """Every id is in the vocabulary."""
        beyond = [token for tokens in lists for token in tokens if token >= size]
        if beyond:
            told = ", ".join(map(str, beyond[:MAX_WRONG])) + (", ..." if len(beyond) > MAX_WRONG else "")
            problems.add(self._place(name), f"not in the vocabulary: {told}", f"its ids run from 0 to {size - 1}")

    def _tried(self, problems: Problems, place: str, make: Callable[[], Any]) -> Any:
        """What is made, or None and a problem."""
        try:
            return make()
        except _core.LogitreeError as reason:
            inner = f", {reason.place}" if reason.place else ""
            problems.add(f"{place}{inner}", _message(reason), reason.help)
            return None


_FIELDS = tuple(one for one in dataclasses.fields(Config) if one.init)


def _begun(matcher: _core.Matcher) -> _core.Matcher:
    """The matcher, if a token may begin its text."""
    matcher.allowed()
    return matcher


def _message(reason: _core.LogitreeError) -> str:
    """What an error says, on one line, without its place and help where those are at its end."""
    text = str(reason)
    for part in (f"; {reason.help}", f" (at {reason.place})"):
        text = text.removesuffix(part)
    return " ".join(text.split())


# -- sources

_Layer = Callable[[Problems], Iterable[Given]]
"""What a source gives, once its problems can be collected."""


def _from_env(environ: Mapping[str, str]) -> _Layer:
    def layer(problems: Problems) -> Iterator[Given]:
        for variable in sorted(environ):
            if variable in VARIABLES:
                setting, text = VARIABLES[variable], environ[variable]
                if setting.name == "tree_decode_config" and text:
                    text = os.path.join(environ.get("CHECKPOINT_PATH", ""), text)
                if text:
                    yield setting.name, variable, setting, setting.said(text)
            elif variable in ELSEWHERE_VARIABLES:
                problems.note(variable, ELSEWHERE_VARIABLES[variable])
            elif variable.startswith(PREFIX) or (variable.startswith(RESERVED) and _is_near(variable, VARIABLES)):
                problems.add(variable[:200], "an unknown variable", _near(variable, VARIABLES))
            elif variable.startswith(RESERVED):
                problems.note(variable[:200], "no variable of these processors")

    return layer


def _from_json(source: str | os.PathLike[str] | Mapping[str, Any]) -> _Layer:
    if isinstance(source, Mapping):
        return lambda problems: _members(source, "", problems)
    name = os.fspath(source)
    try:
        with open(name, "rb") as opened:
            data = opened.read(MAX_BYTES + 1)
    except (OSError, ValueError) as reason:
        raise error(_core.FileError, f"the file cannot be opened: {reason}", place=name[:200]) from reason

    def layer(problems: Problems) -> Iterator[Given]:
        for given in _members(_parsed(data, name, problems), name, problems):
            known, place, setting, value = given
            if known == "tree_decode_config" and isinstance(value, str) and value:
                value = os.path.join(os.path.dirname(name), value)
            yield known, place, setting, value

    return layer


def _parsed(data: bytes, name: str, problems: Problems) -> Mapping[str, Any]:
    """The object of a file; empty, with a problem, if there is none."""
    doubled: list[str] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            seen: set[str] = set()
            doubled.extend(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        return made

    if len(data) > MAX_BYTES:
        problems.add(name, f"the file has more than {MAX_BYTES} bytes", "give the tree a file of its own")
        return {}
    try:
        found = json.loads(data.decode("utf-8-sig"), object_pairs_hook=members)
    except UnicodeDecodeError as reason:
        problems.add(f"byte {reason.start} of {name}", "the text is no UTF-8", "write the file as UTF-8")
        return {}
    except RecursionError:
        problems.add(name, "arrays and objects are nested too deeply", "a configuration is one flat object")
        return {}
    except json.JSONDecodeError as reason:
        place = f"line {reason.lineno}, column {reason.colno} of {name}"
        problems.add(place, f"malformed JSON: {reason.msg}", "give one JSON object")
        return {}
    except ValueError:
        problems.add(name, "a number has too many digits", "give numbers of a few digits")
        return {}
    for key in doubled[:MAX_WRONG]:
        problems.add(name, f"the name {shown(key)} is there twice in one object", "keep one of them")
    if not isinstance(found, dict):
        problems.add(name, f"the root is {shown(found)}", "give one JSON object")
        return {}
    return found


def _members(given: Mapping[str, Any], origin: str, problems: Problems) -> Iterator[Given]:
    """The members of an object that are settings."""
    for name, value in given.items():
        place = _pointer(name, origin)
        setting = SETTINGS.get(name) if isinstance(name, str) else None
        if setting is not None:
            yield name, place, setting, value
        elif name in ELSEWHERE:
            problems.note(place, ELSEWHERE[name])
        else:
            problems.add(place, "an unknown setting", _near(str(name), SETTINGS))


def _request(given: Mapping[str, Any], problems: Problems) -> Iterator[Given]:
    """The members of a request's `generate_config` that are settings, or mean one."""
    for name, value in given.items():
        place = _pointer(name, "the request")
        setting = SETTINGS.get(name) if isinstance(name, str) else None
        if setting is not None and setting.request:
            if name == "cross_seq_diverge_start_combo" and type(value) is int and not 0 <= value <= LARGEST:
                problems.note(place, "taken as the nearest number that is possible")
                value = 0 if value < 0 else LARGEST
            yield name, place, setting, value
        elif setting is not None:
            problems.add(place, "a request cannot set this", "set it in the file or in the environment")
        elif name in _MEANT:
            try:
                meant = _MEANT[name](value, given)
            except Wrong as reason:
                problems.add(place, *reason.found[0][1:])
                continue
            if meant is not None:
                yield meant[0], place, SETTINGS[meant[0]], meant[1]
        elif name in ELSEWHERE:
            problems.note(place, ELSEWHERE[name])
        elif _is_near(str(name), SETTINGS) and name not in ("bos_token_id", "pad_token_id"):
            problems.add(place, "an unknown setting", _near(str(name), SETTINGS))
        else:
            problems.note(place, "no setting of these processors")


def _kwargs(value: Any, given: Mapping[str, Any]) -> tuple[str, Any] | None:
    """What `chat_template_kwargs` says of thoughts; `in_think_mode` counts before it."""
    thinks = value.get("enable_thinking") if isinstance(value, Mapping) else None
    return None if thinks is None or "in_think_mode" in given else ("in_think_mode", thinks)


def _combos_of_prompt(value: Any, _: Mapping[str, Any]) -> None:
    """Items that RTP-LLM's frontend finds in the prompt's text or in texts: it is to do so before."""
    if value:
        raise Wrong("items are not read from texts here", "give their ids in banned_combo_token_ids")


_MEANT: dict[str, Callable[[Any, Mapping[str, Any]], tuple[str, Any] | None]] = {
    "response_format": lambda value, _: None if value is None else response_format(value),
    "json_format": lambda value, _: ("json_schema", {"type": "object"}) if value else None,
    "chat_template_kwargs": _kwargs,
    "auto_parse_banned_combo": _combos_of_prompt,
    "banned_combo_semantic_ids": _combos_of_prompt,
}
"""Fields of a request that mean a setting of another name: the setting and its value."""


def _pointer(name: object, origin: str) -> str:
    """The place of a member."""
    pointer = "/" + str(name)[:200].replace("~", "~0").replace("/", "~1")
    return f"{pointer} in {origin}" if origin else pointer


def _is_near(name: str, known: Iterable[str]) -> bool:
    """Whether this is a misspelt name rather than another one."""
    return bool(get_close_matches(name[:64], known, 1, 0.9))


def _near(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name[:64], known, 1)
    return f"did you mean {near[0]}?" if near else "take it out; docs/rtp.md lists the settings"


# -- values


def _read(given: Iterable[Given], problems: Problems) -> tuple[dict[str, Any], dict[str, str]]:
    """The values of one source by the fields of `Config`, and their places. None means the default."""
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    for name, place, setting, value in given:
        try:
            read = SETTINGS[setting.target].default if value is None else setting.read(value)
        except Wrong as reason:
            pointer, _, origin = place.partition(" in ")
            for inner, message, help in reason.found:
                problems.add(f"{pointer}{inner}" + (f" in {origin}" if origin else ""), message, help)
            continue
        if name == "think_end_token_id" and read == ():
            continue
        if setting.target in values:
            problems.add(place, f"the setting is there twice: {places[setting.target]} has it too", "keep one of them")
            continue
        values[setting.target], places[setting.target] = read, place
    return values, places


def _join(
    values: dict[str, Any], places: dict[str, str], stronger: Mapping[str, Any], theirs: Mapping[str, str]
) -> None:
    """Puts stronger values over weaker ones, and away what they take the place of."""
    for name, value in stronger.items():
        for other in INSTEAD.get(name, ()) if value not in (None, ()) else ():
            if other not in stronger:
                values.pop(other, None)
                places.pop(other, None)
    values.update(stronger)
    places.update(theirs)


def _agree(values: Mapping[str, Any], places: Mapping[str, str], problems: Problems) -> None:
    """Settings that are right one by one may contradict each other."""

    def value(name: str) -> Any:
        return values.get(name, SETTINGS[name].default)

    grammars = [name for name in GRAMMARS if value(name) is not None]
    for name in grammars[1:]:
        problems.add(places[name], f"a second grammar beside {places[grammars[0]]}", "give one of them")
    size, banned = value("combo_token_size"), value("banned_combo_token_ids")
    wrong = [at for at, combo in enumerate(banned) if len(combo) != size]
    if banned and not size:
        problems.add(
            places["banned_combo_token_ids"], "there is no combo_token_size", "say how many tokens an item has"
        )
    for at in wrong[:MAX_WRONG] if size else ():
        pointer, _, origin = places["banned_combo_token_ids"].partition(" in ")
        place = f"{pointer}/{at}" + (f" in {origin}" if origin else "")
        problems.add(place, f"an item of {len(banned[at])} tokens, and combo_token_size is {size}", f"give {size} ids")
    beams = max(value("variable_num_beams"), default=value("num_beams"))
    if value("enable_cross_sequence_ban"):
        place = places["enable_cross_sequence_ban"]
        if size < 2:
            problems.add(place, f"combo_token_size is {size}", "items of 2 tokens at least can be kept apart")
        if beams > 1:
            problems.add(place, f"there are {beams} beams", "search beams without enable_cross_sequence_ban")
    if value("think_mode") != "disabled" and value("max_thinking_tokens") > 0:
        for name, on in (("tree_decode_config", value("tree_decode_config")), ("combo_token_size", size)):
            if on:
                help = "switch thinking off, or set max_thinking_tokens to 0"
                problems.add(places[name], f"{name} constrains the first token on, and a thought comes before it", help)
