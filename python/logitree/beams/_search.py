"""The beam search as users call it: prompts and options go in, items come out. The loop is `_loop.Search`."""

from __future__ import annotations

import os
import typing
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from threading import Event as Flag
from typing import Any, Protocol, cast

import numpy as np

from .. import _core
from .._certain import Speller
from .._constraint import OneOf, Tokenize, constraint_of, decoded
from .._core import Constraint
from .._errors import EngineError, error
from .._generate import prepare
from .._healing import healed, is_healed
from .._row import Row
from .._spelling import Tokenization, read_tokenization
from ..catalogue import Catalogue, CatalogueConstraint
from ..engines import Engine, Messages
from ..engines import open as open_engine
from ._loop import OnBeamStep, Search
from ._matcher_walk import MatcherWalk
from ._options import Normalize, Options, Width, checked
from ._survivors import Hypothesis
from ._walk import TokenWalk

Cancel = Callable[[], bool] | Flag
"""Asked between forward passes: a function that returns True, or a `threading.Event` that is set, ends the search."""

_UNKNOWN_LENGTH = 32
"""Tokens of a beam that memory is made for at first where the caller does not say."""

_LIKELY_LENGTH = 64
"""Tokens of a beam that memory is made for at first where the caller says more."""

Prompt = str | Messages | Sequence[int]
"""Text, messages, or tokens."""


def beam_search(
    engine: Engine | str | os.PathLike[str],
    prompts: Prompt | Sequence[Prompt],
    what: Catalogue | CatalogueConstraint | TokenWalk | OneOf | Iterable[str] | Any = None,
    *,
    width: Width = 8,
    returned: int | None = None,
    max_tokens: int | None = None,
    length_penalty: float = 0.0,
    normalize: Normalize = "vocabulary",
    groups: int = 1,
    diversity: float = 0.0,
    temperature: float = 1.0,
    sample: bool = False,
    seed: int | None = None,
    chat: bool | None = None,
    heal: bool | None = None,
    tokenization: Tokenization = "auto",
    unfinished: bool = False,
    on_step: OnBeamStep | None = None,
    cancel: Cancel | None = None,
) -> list[list[Hypothesis]]:
    """Finds the likeliest items of a catalogue, or the likeliest texts under a constraint, several beams at a time.

    A step takes all allowed continuations of all beams of a prompt, best first. One that ends an item is finished and
    kept apart; the others are the next beams, until there are `width`. Where an item ends by itself and is the
    beginning of another, it does both. Only whole items are returned. With as many beams as there are items the result
    is exact. The search ends when no beam can beat the worst that would be returned; where a token may raise a score
    (`normalize="none"`, or weights with "vocabulary"), when no beam is left.

    Args:
        engine: runs the model; or the path of a GGUF file or of a transformers folder, which is loaded by every call.
        prompts: one prompt (text, messages, or token ids) or several, which are searched together.
        what: a catalogue, with options if `Catalogue.constraint` or `Catalogue.walk` made it; a list of texts, a
            `OneOf`, a `Literal` or an enum class, whose texts the engine's tokenizer writes; any other constraint, or
            a value that means one (a type, a JSON Schema, ...); None: any text; or any `TokenWalk`. Items of a
            catalogue end by themselves; where one is the beginning of another, each ends with the vocabulary's first
            end-of-generation token. Texts under another constraint end with the likeliest of its end tokens.
        width: beams of a prompt after each step: one number, one for each step (the last is repeated), or a function
            of the step from 0.
        returned: most items of a prompt to return; None: `width`, the last of it.
        max_tokens: most tokens of an item, the end token included; None: no limit.
        length_penalty: items are compared by log-probability / tokens ** length_penalty, as transformers does.
        normalize: "vocabulary": log-probabilities among all tokens, then the catalogue's weights are added; "allowed":
            among the allowed tokens, weights counted in; "none": logits and weights as they are.
        groups: beams in this many equal groups that look at different places (Vijayakumar et al., "Diverse Beam
            Search", 2016, arXiv 1610.02424). Each group keeps its share of `returned`; an item found twice is
            returned once.
        diversity: what a token's rank loses, in nats, for each beam of an earlier group that took it in this step.
            Scores do not lose it.
        temperature: divides the logits; weights are not divided.
        sample: draws items without replacement instead of taking the best (Kool et al. 2019, arXiv 1903.06059): each
            token by its probability among the allowed ones, which is what scores are then, whatever `normalize` is.
            `width` must be at least `returned`.
        seed: of the samples, 0 or more; None or -1 draws one.
        chat: as of `generate`, for prompts that are not token ids.
        heal: as of `generate`, for texts: each is written as the tokenizer writes it together with the end of the
            prompt, whose tokens are then part of `Hypothesis.tokens`, of its scores and of `max_tokens`.
        tokenization: as of `generate`, for constraints that are no list: "auto", "canonical" or "any".
        unfinished: also return beams that `max_tokens` or `cancel` cuts off, after the whole items.
        on_step: called with a `BeamStep` after each step; its exceptions end the search.
        cancel: ends the search; what was found by then is returned.

    Returns:
        For each prompt its items, the best first (with `sample`: in the order in which they were drawn). There are
            fewer than `returned` where no more are possible.

    Raises:
        SamplingError: options that mean nothing.
        EngineError: a prompt is empty, or the engine failed or has no room.
        LogitsError: NaN or +inf among the logits.
        ConstraintError: sampling without end token where an item is the beginning of another; a text without tokens;
            `heal` for what is searched by its tokens; a constraint that cannot be honoured, or a vocabulary without end
            token for it.
        TypeError: what is searched is one text, or means nothing that can be searched.
    """
    options = checked(
        width,
        returned,
        max_tokens,
        length_penalty,
        normalize,
        groups,
        diversity,
        temperature,
        sample,
        seed,
        unfinished,
    )
    spelled = read_tokenization(tokenization, words=("auto", "canonical", "any"))
    engine = open_engine(engine)
    stopped = cancel.is_set if isinstance(cancel, Flag) else cancel or (lambda: False)
    steps = search_steps(engine, prompts, what, options, chat, heal, spelled, on_step or (lambda _: None), stopped)
    while True:
        try:
            next(steps)
        except StopIteration as over:
            found: list[list[Hypothesis]] = over.value
            return found


def search_steps(
    engine: Engine,
    prompts: Any,
    what: Any,
    options: Options,
    chat: bool | None,
    heal: bool | None,
    tokenization: Tokenization,
    on_step: OnBeamStep,
    stopped: Callable[[], bool],
) -> Generator[None, None, list[list[Hypothesis]]]:
    """The steps of `beam_search`, so that something else may be done between them. Arguments, result and errors are
    those of `beam_search`."""
    if engine.beam_rows == 0:
        help = "give a model of llama.cpp or transformers, or an engine with batch_session(forks=) and beam_rows"
        raise TypeError(f"{engine!r:.60} searches no beams: {help}")
    texts, vocabulary = _texts_of(what), _vocabulary_of(engine)
    given = _several(prompts)
    searched: list[_Searched] = []
    if texts is None and (what is None or not _is_walked(what)):
        constraint = None if what is None else constraint_of(what)
        searched = [_Constrained.of(engine, prompt, constraint, chat, heal, tokenization) for prompt in given]
    else:
        if heal and (texts is None or vocabulary is None):
            message = "the items to search are tokens" if texts is None else "the engine has no vocabulary"
            raise error(_core.ConstraintError, message, help="healing spells texts: give texts, or leave out heal=")
        written = None if texts is None else texts.written(engine)
        encoded = [_Prompt(_tokens(engine, prompt, chat), written) for prompt in given]
        if texts is not None and vocabulary is not None:
            encoded = [
                texts.healed(one.tokens, engine) if is_healed(heal, engine, prompt, chat, one.tokens) else one
                for prompt, one in zip(given, encoded, strict=True)
            ]
        for spelled, alike in groupby(encoded, key=lambda one: one.written):
            walk = _walk_of(what, vocabulary) if texts is None else texts.walk(cast(Any, spelled), vocabulary)
            together = [one.tokens for one in alike]
            searched.append(_Items(together, walk, texts, vocabulary))
    return (yield from _search_all(engine, searched, options, on_step, stopped))


def search_after(engine: Engine, row: Row, options: Options) -> Generator[None, None, list[Hypothesis]]:
    """The steps of a search of what may come after the prompt of a row, whose own state does not change."""
    walk = MatcherWalk(row.decoder.matcher, engine.vocabulary)
    (found,) = yield from _search_all(engine, [_Constrained(row, walk)], options, lambda _: None, lambda: False)
    return found


def _search_all(
    engine: Engine, searched: Sequence[_Searched], options: Options, on_step: OnBeamStep, stopped: Callable[[], bool]
) -> Generator[None, None, list[list[Hypothesis]]]:
    results: list[list[Hypothesis]] = []
    for one in searched:
        for some in _together(one.prompts, options.most_rows, engine.beam_rows):
            rows = options.most_rows * len(some) if options.most_rows else engine.beam_rows
            longer = min(options.max_tokens or _UNKNOWN_LENGTH, _LIKELY_LENGTH)
            expected = None if rows is None else sum(map(len, some)) + rows * longer
            session = engine.batch_session(rows, expected, forks=True)
            try:
                search = Search(session, one.walk, options, len(results), len(some), on_step, stopped)
                found = yield from search.run(some, engine.n_batch)
            finally:
                session.close()
            results += [[one.read(hypothesis) for hypothesis in its] for its in found]
    return results


class _Searched(Protocol):
    """What some prompts are searched for together."""

    @property
    def prompts(self) -> list[list[int]]:
        """Their tokens."""
        ...

    @property
    def walk(self) -> TokenWalk:
        """The continuations."""
        ...

    def read(self, found: Hypothesis) -> Hypothesis:
        """A hypothesis with its text and value."""
        ...


@dataclass(frozen=True)
class _Constrained:
    """What a constraint allows after one prompt."""

    row: Row
    """It has the prompt and the matcher, and decodes nothing."""
    walk: TokenWalk

    @staticmethod
    def of(
        engine: Engine,
        prompt: Any,
        constraint: Constraint | None,
        chat: bool | None,
        heal: bool | None,
        tokenization: Tokenization,
    ) -> _Constrained:
        """The search after one prompt."""
        heal = heal if constraint is not None else False
        plain = prompt if isinstance(prompt, str) or _is_chat(prompt) else [int(token) for token in prompt]
        _, (row,) = prepare(engine, plain, constraint, chat=chat, heal=heal, tokenization=tokenization, force=False)
        return _Constrained(row, MatcherWalk(row.decoder.matcher, engine.vocabulary))

    @property
    def prompts(self) -> list[list[int]]:
        return [self.row.unseen]

    def read(self, found: Hypothesis) -> Hypothesis:
        row, tokens = self.row, found.tokens
        text = b"".join(map(row.bytes, tokens))[len(row.healing) :].decode("utf-8", "replace")
        start = 0 if row.constraint is None else row.constraint.answer_start(tokens, row.context)
        answer = row.shown(tokens[start:]) if start else text
        return replace(found, text=text, value=row.meaning(tokens, answer) if found.complete else None)


@dataclass(frozen=True)
class _Items:
    """Texts, a catalogue or a walk, searched after some prompts."""

    prompts: list[list[int]]
    walk: TokenWalk
    texts: _Texts | None
    vocabulary: _core.Vocabulary | None

    def read(self, found: Hypothesis) -> Hypothesis:
        values = found.items
        if self.texts is not None:
            values = tuple(self.texts.values[cast(str, item)] for item in found.items)
        text = None
        if self.texts is not None and found.items:
            text = str(found.items[0])
        elif self.vocabulary is not None:
            text = self.vocabulary.decode(found.tokens).decode("utf-8", "replace")
        return replace(found, text=text, value=values[0] if len(values) == 1 else values or None)


Written = tuple[tuple[int, ...], ...]
"""The tokens of each text."""


@dataclass(frozen=True)
class _Prompt:
    """A prompt."""

    tokens: list[int]
    written: Written | None
    """How each text is written after it, where texts are searched."""


@dataclass(frozen=True)
class _Texts:
    """Texts that are searched, and what each means."""

    values: dict[str, Any]

    def written(self, engine: Engine) -> Written:
        """The texts as the engine's tokenizer writes them."""
        tokenize = _tokenizer(engine)
        return tuple(tuple(tokenize(text)) for text in self.values)

    def healed(self, prompt: list[int], engine: Engine) -> _Prompt:
        """What is kept of a prompt, and the texts as the tokenizer writes them with its end."""
        kept, end = healed(prompt, engine.vocabulary)
        if not end:
            return _Prompt(kept, self.written(engine))
        speller = Speller(engine.vocabulary, _tokenizer(engine))
        return _Prompt(kept, tuple(tuple(speller.spell(kept, 0, end + text.encode())[1]) for text in self.values))

    def walk(self, written: Written, vocabulary: _core.Vocabulary | None) -> TokenWalk:
        """The walk of the texts."""
        tokens = dict(zip(self.values, written, strict=True))
        return _walk_of(Catalogue.from_texts(list(tokens), tokens.__getitem__, items=list(tokens)), vocabulary)


def _tokenizer(engine: Engine) -> Tokenize:
    if engine.tokenize is None:
        message = f"a {type(engine).__name__} does not tokenise texts"
        raise EngineError(message, help="give a catalogue: Catalogue.from_texts(texts, tokenize)")
    return engine.tokenize


def _is_walked(what: Any) -> bool:
    """Whether it is a catalogue or a walk."""
    return isinstance(what, Catalogue | CatalogueConstraint) or hasattr(what, "gather")


def _texts_of(what: Any) -> _Texts | None:
    """The texts of what is searched; None where it is no list of texts.

    Raises:
        TypeError: it is one text, or a list of something else.
    """
    if isinstance(what, str | bytes):
        raise TypeError("one text leaves nothing to search: give a list of texts, or a catalogue")
    if what is None or _is_walked(what):
        return None
    if isinstance(what, type) or typing.get_origin(what) is not None or isinstance(what, _core.Constraint):
        what = constraint_of(what)
        if not isinstance(what, OneOf):
            return None
        end = what.following or ""
        pairs = [(decoded(text) + decoded(end), value) for text, value in zip(what.texts, what.values, strict=True)]
        return _Texts(dict(pairs))
    if isinstance(what, Mapping) or not isinstance(what, Iterable):
        return None
    texts = list(what)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{text!r} is not a text: give a list of texts, a catalogue, a constraint or a walk")
    return _Texts({text: text for text in texts})


def _vocabulary_of(engine: Engine) -> _core.Vocabulary | None:
    """The engine's vocabulary; None where it has none: items that are tokens need no texts."""
    try:
        known: Any = engine.vocabulary
    except EngineError:
        return None
    return known if isinstance(known, _core.Vocabulary) else None


def _walk_of(what: Any, vocabulary: _core.Vocabulary | None) -> TokenWalk:
    """The walk of a catalogue; a walk itself."""
    if not isinstance(what, Catalogue | CatalogueConstraint):
        return cast(TokenWalk, what)
    constraint = what.constraint() if isinstance(what, Catalogue) else what
    return constraint.walk(vocabulary)


def _is_chat(prompt: Any) -> bool:
    """Whether these are messages."""
    return bool(prompt) and all(isinstance(one, Mapping) for one in prompt)


def _several(prompts: Any) -> list[Prompt]:
    """The prompts as a list, also where it is one."""
    if isinstance(prompts, str):
        return [prompts]
    if not isinstance(prompts, Iterable) or isinstance(prompts, bytes | Mapping):
        help = ": give [message]" if isinstance(prompts, Mapping) else ""
        raise TypeError(f"a prompt is a text, messages or token ids, not {type(prompts).__name__}{help}")
    several = list(prompts)
    if several and all(isinstance(p, int | np.integer | Mapping) for p in several):
        return [several]
    if not several:
        raise EngineError("there is no prompt", help="give at least one")
    return several


def _tokens(engine: Engine, prompt: Any, chat: bool | None) -> list[int]:
    """The prompt's token ids."""
    plain = not isinstance(prompt, str) and all(isinstance(token, int | np.integer) for token in prompt)
    tokens = [int(token) for token in prompt] if plain else engine.encode(prompt, chat=chat)
    if not tokens:
        raise EngineError("the prompt is empty", help="give at least one token of prompt")
    return tokens


def _together(prompts: list[list[int]], rows: int | None, most: int | None) -> Iterator[list[list[int]]]:
    """The prompts in portions whose beams fit into one session."""
    at_once = len(prompts) if most is None else 1 if rows is None else max(1, most // rows)
    for begin in range(0, len(prompts), at_once):
        yield prompts[begin : begin + at_once]
