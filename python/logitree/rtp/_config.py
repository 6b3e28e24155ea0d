"""What RTP-LLM's settings make: the processors of a request."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal

from .. import _core
from .._constraint import Tokenize
from .._errors import file_error
from .._reasoning import ReasoningBudget
from ._matchers import GrammarProcessor, ThinkProcessor
from ._problems import MAX_EVIDENCE, Problems, shown
from ._processor import Processor, checked_rows
from ._processors import Processors
from ._recommendation import RecommendationProcessor
from ._sequences import MultiSequenceProcessor
from ._settings import DEFAULTS, GRAMMARS, MAX_WRONG, _Settings, compiled
from ._sources import Reading
from ._tree import RtpTree, load_tree
from ._tree_processor import TreeProcessor


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
                raise file_error(reason, "the file cannot be opened", place=path[:200]) from reason
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
class Config(_Settings):
    """Which of RTP-LLM's processors run, and how. The names are RTP-LLM's; docs/rtp.md has their table.

    Of the sources of a setting the strongest counts: file < environment < request.

    Raises:
        ConfigError: settings that cannot be honoured; `problems` has all of them, each with its place.
    """

    sources: Mapping[str, str] = field(init=False, compare=False, repr=False)
    """Setting -> the place that set it; settings that have their default are missing."""
    notes: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """What was passed over because no processor reads it, each with its place."""
    _trees: _Trees = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._set(Reading().fields({name: getattr(self, name) for name in DEFAULTS}))

    @classmethod
    def from_json(cls, source: str | os.PathLike[str] | Mapping[str, Any]) -> Config:
        """The settings of a JSON object: a file, or a mapping that was parsed already.

        Args:
            source: a path, or the object. `tree_decode_config` may be relative to the file's folder.

        Raises:
            ConfigError: the settings' problems, malformed JSON and unknown names included.
            FileError: the file cannot be read.
        """
        return object.__new__(cls)._set(Reading().json(source))

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Config:
        """The settings of environment variables; None: those of the process. An empty variable sets nothing.

        `TREE_DECODE_CONFIG` may be relative to `CHECKPOINT_PATH`.

        Raises:
            ConfigError: the settings' problems; variables that begin like these and are unknown are problems too.
        """
        return object.__new__(cls)._set(Reading().environment(environ))

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
        reading = Reading() if source is None else Reading().json(source)
        return object.__new__(cls)._set(reading.environment(environ), deep=(vocabulary, tokenize))

    def merged(self, stronger: Config) -> Config:
        """These settings, and over them those that the other configuration sets.

        Raises:
            ConfigError: the settings do not agree with each other.
        """
        other = stronger._reading()
        reading = self._reading().over(other.values, other.sources)
        return object.__new__(type(self))._set(reading, self._trees, (*self.notes, *stronger.notes))

    def with_request(self, overrides: Mapping[str, Any]) -> Config:
        """These settings with those of one request: its `generate_config` as it is.

        Fields that concern no processor are passed over, and `notes` names them. `response_format` is the grammar that
        it names; `chat_template_kwargs` says with `enable_thinking` whether the request thinks. A request sets no files
        and no tags. Trees that were read are shared.

        Raises:
            ConfigError: values that cannot be honoured, and names that are nearly those of settings.
        """
        return object.__new__(type(self))._set(self._reading().request(overrides), self._trees, self.notes)

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
        for name in (name for name in DEFAULTS if name in self.sources):
            value = getattr(self, name)
            text = shown(value) if not isinstance(value, tuple) else json.dumps(value[:MAX_EVIDENCE])
            text = text if len(text) <= MAX_EVIDENCE else f"{text[:MAX_EVIDENCE]}..."
            lines.append(f"{name} = {text} ({self.sources[name]})")
        return "\n".join([*lines, *(f"passed over: {note}" for note in self.notes)])

    # -- how it is made

    def _reading(self) -> Reading:
        """These settings, to put others over them."""
        return Reading({name: getattr(self, name) for name in self.sources}, self.sources)

    def _set(
        self,
        reading: Reading,
        trees: _Trees | None = None,
        notes: Sequence[str] = (),
        *,
        deep: tuple[_core.Vocabulary | None, Tokenize | None] | None = None,
    ) -> Config:
        """Sets all fields, or raises a ConfigError with all problems. `deep`: as the arguments of `check`."""
        reading.agree()
        vars(self).update(
            {**DEFAULTS, **reading.values},
            sources=reading.sources,
            notes=(*notes, *reading.problems.notes),
            _trees=trees or _Trees(),
        )
        if deep is not None:
            self._check(*deep, reading.problems)
        reading.problems.check()
        return self

    def _place(self, *names: str) -> str:
        """Where the first of these settings that is set was set."""
        return next((self.sources[name] for name in names if name in self.sources), f"{names[0]} (the default)")

    # -- processors

    def _check(self, vocabulary: _core.Vocabulary | None, tokenize: Tokenize | None, problems: Problems) -> None:
        if vocabulary is None:
            self._read_tree(None, problems)
        else:
            self._processors(vocabulary, self.rows, None, tokenize, problems)

    def _read_tree(self, size: int | None, problems: Problems) -> RtpTree | None:
        place = f"{self._place('tree_decode_config')} ({(self.tree_decode_config or '')[:200]})"
        tree: RtpTree | None = self._tried(problems, place, lambda: self.tree(size))
        return tree

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

            def follow() -> GrammarProcessor:
                matcher = grammar.matcher(vocabulary)
                matcher.allowed()  # A token may begin its text, or this is an error.
                ends_early = self.grammar_terminate_without_stop_token
                return GrammarProcessor(matcher, rows, terminate_without_stop_token=ends_early)

            made.append(self._tried(problems, self._place(*used), follow))
        if self.tree_decode_config is not None:
            tree = self._read_tree(len(vocabulary), problems)
            if tree is not None and self.check_tree_root and prompt is not None:
                self._tried(problems, self._place("check_tree_root"), lambda: tree.check_prompt(prompt))
            made.append(None if tree is None else TreeProcessor(tree, rows))
        if self.combo_token_size:
            self._fit("banned_combo_token_ids", self.banned_combo_token_ids, len(vocabulary), problems)

            def recommend() -> RecommendationProcessor:
                return RecommendationProcessor(
                    self.combo_token_size,
                    rows,
                    banned_combo_token_ids=self.banned_combo_token_ids,
                    enable_cross_sequence_ban=self.enable_cross_sequence_ban,
                    diverge_from=self.cross_seq_diverge_start_combo,
                )

            made.append(self._tried(problems, self._place("combo_token_size"), recommend))
        if self.beams > 1 or max(rows, self.num_return_sequences) > 1:
            ends = self.eos_token_id or vocabulary.end_tokens
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

    def _fit(self, name: str, lists: Iterable[Sequence[int]], size: int, problems: Problems) -> None:
        """Every id is in the vocabulary."""
        beyond = [token for tokens in lists for token in tokens if token >= size]
        if beyond:
            listed = ", ".join(map(str, beyond[:MAX_WRONG])) + (", ..." if len(beyond) > MAX_WRONG else "")
            problems.add(self._place(name), f"not in the vocabulary: {listed}", f"its ids run from 0 to {size - 1}")

    def _tried(self, problems: Problems, place: str, make: Callable[[], Any]) -> Any:
        """What is made, or None and a problem."""
        try:
            return make()
        except _core.LogitreeError as reason:
            inner = f", {reason.place}" if reason.place else ""
            problems.add(f"{place}{inner}", _message(reason), reason.help)
            return None


def _message(reason: _core.LogitreeError) -> str:
    """What an error says, on one line, without its place and help where those are at its end."""
    text = str(reason)
    for part in (f"; {reason.help}", f" (at {reason.place})"):
        text = text.removesuffix(part)
    return " ".join(text.split())
