"""The beam search as users call it: prompts and options go in, items come out.

It knows no runtime and no file: engines hand out logits, the tree says what is allowed. The loop is `_run.Run`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Event as Flag
from typing import Any

import numpy as np

from .._errors import EngineError
from ..engines import BeamEngine, Messages
from ._kept import Hypothesis
from ._options import Normalize, Width, checked
from ._paths import Paths
from ._run import OnBeamStep, Run

Cancel = Callable[[], bool] | Flag
"""Asked between forward passes: a function that returns True, or a `threading.Event` that is set, ends the search."""

Prompt = str | Messages | Sequence[int]
"""Text, messages, or tokens."""


def beam_search(
    engine: BeamEngine,
    prompts: Prompt | Sequence[Prompt],
    paths: Paths,
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
    """Finds the likeliest items of a tree of token sequences, several beams at a time.

    A step takes all allowed ways on from all beams of a prompt, best first. One that ends an item is finished and kept
    apart; those that go on are the next beams, until there are `width`. Where an item ends by itself and is the
    beginning of another, it does both. Only whole items are returned. With as many beams as there are items the result
    is exact. The search is over when no beam can beat the worst that would be returned; where a token may raise a
    score (`normalize="none"`, or weights with "vocabulary"), when no beam is left.

    Args:
        engine: runs the model.
        prompts: one prompt (text, messages, or token ids) or several; all are searched together.
        paths: the tree.
        width: beams of a prompt after each step: one number, one a step (the last goes on), or a function of the
            step from 0.
        returned: most items of a prompt to return; None: `width`, the last of it.
        max_tokens: most tokens of an item, the end token included; None: whatever the tree has.
        length_penalty: items are compared by log-probability / tokens ** length_penalty, as transformers does.
        normalize: "vocabulary": log-probabilities among all tokens, then the tree's weights are added; "allowed": among
            the allowed tokens, weights counted in; "none": logits and weights as they are.
        groups: beams in this many equal groups that look at different places (Vijayakumar et al., "Diverse Beam
            Search", 2016, arXiv 1610.02424). Each group keeps its share of `returned`; an item found twice is
            returned once.
        diversity: what a token's rank loses, in nats, for each beam of an earlier group that took it in this step.
            Scores do not lose it.
        temperature: divides the logits; the weights of the tree stay as they are.
        sample: draws items without replacement instead of taking the best (Kool et al. 2019, arXiv 1903.06059): each
            token by its probability among the allowed ones, which is what scores are then, whatever `normalize` says.
            `width` must be at least `returned`.
        seed: of the samples, 0 or more; None draws one.
        chat: as of `generate`, for prompts that are no tokens.
        on_step: called with a `BeamStep` after each step; its exceptions end the search.
        cancel: ends the search; what was found by then is returned.

    Returns:
        For each prompt its items, the best first (with `sample`: the first drawn first). There are fewer than
            `returned` where the tree has no more, or none that is possible.

    Raises:
        SamplingError: options that mean nothing.
        EngineError: a prompt is empty, or the engine failed or has no room.
        LogitsError: NaN or +inf among the logits.
        ConstraintError: sampling in a tree without end token where an item is the beginning of another.
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
    encoded = [_tokens(engine, prompt, chat) for prompt in _several(prompts)]
    stopped = cancel.is_set if isinstance(cancel, Flag) else cancel or (lambda: False)
    results: list[list[Hypothesis]] = []
    for some in _together(encoded, options.most_rows, engine.beam_rows):
        rows = options.most_rows and options.most_rows * len(some)
        session = engine.beam_session(rows, max_tokens)
        try:
            run = Run(session, paths, options, len(results), len(some), on_step or (lambda _: None), stopped)
            results += run.search(some)
        finally:
            session.close()
    return results


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
