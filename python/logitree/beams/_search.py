"""The beam search as users call it: prompts and options go in, items come out. The loop is `_loop.Search`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Event as Flag
from typing import Any, cast

import numpy as np

from .._errors import EngineError
from ..catalogue import Catalogue, CatalogueConstraint
from ..engines import BeamEngine, Messages
from ._loop import OnBeamStep, Search
from ._options import Normalize, Width, checked
from ._survivors import Hypothesis
from ._walk import TokenWalk

Cancel = Callable[[], bool] | Flag
"""Asked between forward passes: a function that returns True, or a `threading.Event` that is set, ends the search."""

Prompt = str | Messages | Sequence[int]
"""Text, messages, or tokens."""


def beam_search(
    engine: BeamEngine,
    prompts: Prompt | Sequence[Prompt],
    what: Catalogue | CatalogueConstraint | TokenWalk | Iterable[str],
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
    on_step: OnBeamStep | None = None,
    cancel: Cancel | None = None,
) -> list[list[Hypothesis]]:
    """Finds the likeliest items of a catalogue, several beams at a time.

    A step takes all allowed continuations of all beams of a prompt, best first. One that ends an item is finished and
    kept apart; the others are the next beams, until there are `width`. Where an item ends by itself and is the
    beginning of another, it does both. Only whole items are returned. With as many beams as there are items the result
    is exact. The search ends when no beam can beat the worst that would be returned; where a token may raise a score
    (`normalize="none"`, or weights with "vocabulary"), when no beam is left.

    Args:
        engine: runs the model.
        prompts: one prompt (text, messages, or token ids) or several, which are searched together.
        what: a catalogue, with options if `Catalogue.constraint` or `Catalogue.walk` made it; a list of texts, which
            the engine's tokenizer writes; or any `TokenWalk`. Items of a catalogue end by themselves; where one is the
            beginning of another, each ends with the vocabulary's first end-of-generation token.
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
        seed: of the samples, 0 or more; None draws one.
        chat: as of `generate`, for prompts that are not token ids.
        on_step: called with a `BeamStep` after each step; its exceptions end the search.
        cancel: ends the search; what was found by then is returned.

    Returns:
        For each prompt its items, the best first (with `sample`: in the order in which they were drawn). There are
            fewer than `returned` where no more are possible.

    Raises:
        SamplingError: options that mean nothing.
        EngineError: a prompt is empty, or the engine failed or has no room.
        LogitsError: NaN or +inf among the logits.
        ConstraintError: sampling without end token where an item is the beginning of another; a text without tokens.
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
    )
    walk = _walk_of(what, engine)
    encoded = [_tokens(engine, prompt, chat) for prompt in _several(prompts)]
    stopped = cancel.is_set if isinstance(cancel, Flag) else cancel or (lambda: False)
    results: list[list[Hypothesis]] = []
    for some in _together(encoded, options.most_rows, engine.beam_rows):
        rows = options.most_rows and options.most_rows * len(some)
        session = engine.beam_session(rows, max_tokens)
        try:
            search = Search(session, walk, options, len(results), len(some), on_step or (lambda _: None), stopped)
            results += search.run(some)
        finally:
            session.close()
    return results


def _walk_of(what: Any, engine: BeamEngine) -> TokenWalk:
    """The walk of what is searched."""
    if isinstance(what, str | bytes):
        raise TypeError("one text leaves nothing to search: give a list of texts, or a catalogue")
    if not isinstance(what, Catalogue | CatalogueConstraint):
        if hasattr(what, "gather"):
            return cast(TokenWalk, what)
        tokenize = getattr(engine, "tokenize", None)
        if tokenize is None:
            message = f"a {type(engine).__name__} does not tokenise texts"
            raise EngineError(message, help="give a catalogue: Catalogue.from_texts(texts, tokenize)")
        texts = list(dict.fromkeys(what))
        for text in texts:
            if not isinstance(text, str):
                raise TypeError(f"{text!r} is not a text: give a list of texts, a catalogue or a walk")
        what = Catalogue.from_texts(texts, tokenize, items=texts)
    constraint = what.constraint() if isinstance(what, Catalogue) else what
    return constraint.walk(getattr(engine, "vocabulary", None))


def _several(prompts: Any) -> list[Prompt]:
    """The prompts as a list, also where it is one."""
    if isinstance(prompts, str):
        return [prompts]
    several = list(prompts)
    if several and all(isinstance(p, int | np.integer | Mapping) for p in several):
        return [several]
    if not several:
        raise EngineError("there is no prompt", help="give at least one")
    return several


def _tokens(engine: BeamEngine, prompt: Any, chat: bool | None) -> list[int]:
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
