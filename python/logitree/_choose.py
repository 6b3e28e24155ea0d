"""`choose`: the likeliest of several values, by exact probabilities or token by token."""

from __future__ import annotations

import time
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _core
from ._arguments import GenerateOptions, check_kinds, read_max_tokens
from ._constraint import OneOf, constraint_of
from ._errors import IncompleteError, error
from ._events import Choice, Event, Stats
from ._exact import normalised, scores, whole
from ._generate import Prompt, encoded, generate, is_several
from ._generation import Generation
from ._healing import healed, is_healed
from ._loop import checked_prompt
from ._reasoning import ReasoningBudget
from ._spelling import Tokenization, read_tokenization
from .engines import Engine, Messages
from .engines import open as open_engine

if TYPE_CHECKING:
    from typing_extensions import Unpack

Method = Literal["exact", "greedy"]
"""How a value is chosen."""

_METHODS = (None, "exact", "greedy")
_SPELLINGS = ("auto", "any", "canonical")
_NOT_SAMPLING = {"max_tokens", "stop", "chat", "on_limit", "force", "trace", "on_step", "drafter", "logprobs", "heal"}
"""Options of `generate` that are no sampling."""
_OF_EXACT = ("chat", "heal", "max_tokens")
"""Options of `generate` that mean something for exact probabilities."""


@overload
def choose(
    model: Any,
    prompt: str | Sequence[int] | Messages,
    values: Iterable[Any] | OneOf | ReasoningBudget,
    *,
    method: Method | None = None,
    calibrate: bool | Prompt = False,
    on_event: Callable[[Event], None] | None = None,
    **options: Unpack[GenerateOptions],
) -> Choice: ...
@overload
def choose(
    model: Any,
    prompt: Sequence[Prompt],
    values: Iterable[Any] | OneOf | ReasoningBudget,
    *,
    method: Method | None = None,
    calibrate: bool | Prompt = False,
    on_event: Callable[[Event], None] | None = None,
    **options: Unpack[GenerateOptions],
) -> list[Choice]: ...
def choose(
    model: Any,
    prompt: Any,
    values: Iterable[Any] | OneOf | ReasoningBudget,
    *,
    method: Method | None = None,
    calibrate: bool | Prompt = False,
    on_event: Callable[[Event], None] | None = None,
    **options: Unpack[GenerateOptions],
) -> Choice | list[Choice]:
    """Lets the model choose one of several values: the likeliest, unless sampling parameters are given.

    ```python
    chosen = logitree.choose("model.gguf", "Is fire hot?", ["YES", "NO"])
    print(chosen.value, chosen.probability, chosen.probabilities)
    ```

    The probability of a value is the product of the model's own probabilities of its tokens, each among all tokens of
    the vocabulary at temperature 1, divided by the sum of these products over all values. `following` of a `OneOf`
    counts as part of each value. A value that is the beginning of another (its tokens of the other's tokens; with
    `tokenization="any"` its text of the other's text) counts with an end-of-generation token after it. What would come
    after any other value does not count.

    Args:
        model: as of `generate`.
        prompt: as of `generate`; a list of prompts gives a list of choices.
        values: a `OneOf`, or what it takes: texts, numbers, members of an enum; `ReasoningBudget(...) + values` lets
            the model reason first, as `generate` does, and chooses after what it wrote.
        method: "exact": computes the probability of each value, all values as one tree of tokens, in as few passes as
            the engine can; "greedy": takes token by token what `generate` takes, by default the likeliest of the
            allowed ones, which costs fewer tokens and may miss the likeliest value. None: "exact", and "greedy" where
            a chain, a seed or sampling parameters are given.
        calibrate: divides each probability by the one that the value has without the prompt, before they are made to
            sum to 1, so that values that are likely anywhere gain nothing from that. True: without means an empty text
            in the prompt's place, or in that of the last message; a prompt: after this one instead.
        on_event: called with every event where tokens are decoded.
        options: `chat`, `heal` and `max_tokens` (the most tokens of a value) as of `generate`; and `tokenization`,
            which tokens spell a value: "canonical", those of the model's own tokenizer, or "any", which sums all
            spellings but for a millionth at most. By default "auto": canonical where the tokenizer spells the values,
            else any. With "greedy", and for the reasoning, all options of `generate`.

    Raises:
        IncompleteError: a value has more tokens than `max_tokens`, or does not fit into the context; or the generation
            ended before the choice was made.
        LimitError: too many spellings.
        LogitsError: NaN among the logits.
        SamplingError, ConstraintError: options that cannot be honoured with the method.
        LogitreeError: as of `generate`.
    """
    constraint = _values(values)
    then = constraint_of(constraint.then) if isinstance(constraint, ReasoningBudget) else constraint
    if not isinstance(then, OneOf):
        raise error(_core.ConstraintError, "no values follow the reasoning", help="give ReasoningBudget(...) + [...]")
    if method not in _METHODS:
        raise error(_core.ConstraintError, f"method is {method!r}", help='give "exact" or "greedy"')
    decoding: dict[str, Any] = {**options}
    if "n" in decoding:
        raise TypeError("choose() has no n=: write generate(model, prompt, values, n=...) for several draws")
    check_kinds(**decoding)
    given, old = decoding.pop("tokenization", "auto"), decoding.pop("tokenizations", None)
    spelling = read_tokenization(given, old)
    sampling = sorted(decoding.keys() - _NOT_SAMPLING)
    method = method or ("greedy" if sampling else "exact")
    several = is_several(prompt)
    prompts = list(prompt) if several else [prompt]
    engine = open_engine(model)
    if method == "greedy":
        if calibrate is not False:
            raise error(_core.ConstraintError, "calibrate needs exact probabilities", help='give method="exact"')
        chosen = _greedy(engine, prompts, constraint, then, spelling, on_event, decoding)
    else:
        thinks = constraint if isinstance(constraint, ReasoningBudget) else None
        _check_exact(thinks is not None, spelling, calibrate, sampling, decoding)
        if spelling == "auto" and then.is_spelled:
            spelling = "canonical"
        exact = _Exact(engine, then, spelling, decoding, calibrate)
        chosen = [exact.after(one, thinks, on_event) for one in prompts]
    return chosen if several else chosen[0]


def _values(values: Any) -> OneOf | ReasoningBudget:
    """The constraint that is chosen by."""
    if isinstance(values, OneOf | ReasoningBudget):
        return values
    if isinstance(values, type) or typing.get_origin(values) is not None:
        meant = constraint_of(values)
        if not isinstance(meant, OneOf):
            raise TypeError(f"{values!r} has no list of values: give a list, an enum or a Literal")
        return meant
    return OneOf(values)


def _check_exact(
    thinks: bool, spelling: Tokenization, calibrate: Any, sampling: list[str], options: dict[str, Any]
) -> None:
    """Errors of options that mean nothing with exact probabilities."""
    if spelling not in _SPELLINGS:
        message = f"tokenization is {spelling!r}, and probabilities are exact"
        raise error(_core.ConstraintError, message, help='give "any" or "canonical", or method="greedy"')
    if thinks and calibrate is not False:
        message = "calibrate with a reasoning, which differs without the prompt"
        raise error(_core.ConstraintError, message, help="leave one of them out")
    if sampling and not thinks:
        message = f"exact probabilities and {', '.join(sampling)}"
        raise error(_core.SamplingError, message, help='leave it out, or give method="greedy"')
    given = [name for name, value in options.items() if value is not None and name not in _OF_EXACT]
    if given and not thinks:
        message = f"{', '.join(given)}: exact probabilities decode no tokens"
        raise error(_core.ConstraintError, message, help='leave it out, or give method="greedy"')
    read_max_tokens(options.get("max_tokens"))


def _greedy(
    engine: Engine,
    prompts: list[Any],
    constraint: OneOf | ReasoningBudget,
    one_of: OneOf,
    spelling: Tokenization,
    on_event: Callable[[Event], None] | None,
    options: dict[str, Any],
) -> list[Choice]:
    """Token by token, all prompts together."""
    options = _decoding(constraint, one_of, options)
    options |= {"tokenization": spelling, "trace": True}
    made = generate(engine, prompts, [constraint] * len(prompts), **options)
    for _, event in made.events():
        if on_event is not None:
            on_event(event)
    return [Choice(one.value, one_of.values.index(one.value), one.probability, one.stats) for one in made]


def _decoding(constraint: Any, one_of: OneOf, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `generate` with which a value can be decoded, the likeliest tokens without any sampling."""
    made = {name: value for name, value in options.items() if name != "logprobs"}
    if not made.keys() - _NOT_SAMPLING:
        made["chain"] = _core.Chain.greedy()
    longest = max(map(len, whole(one_of)))
    room = 1024 + (constraint.budget or 0) if isinstance(constraint, ReasoningBudget) else 0
    made.setdefault("max_tokens", longest + 16 + room)
    return made


class _Exact:
    """Exact choices of one set of values by one model; `neutral` is the `calibrate` of `choose`."""

    def __init__(
        self, engine: Engine, one_of: OneOf, spelling: Tokenization, options: Mapping[str, Any], neutral: bool | Prompt
    ) -> None:
        self.engine, self.one_of, self.spelling, self.options = engine, one_of, spelling, options
        self.texts = list(dict.fromkeys(whole(one_of)))
        self._neutral = neutral
        self._known: dict[tuple[tuple[int, ...], bytes], list[float]] = {}

    def after(self, prompt: Any, thinks: ReasoningBudget | None, on_event: Callable[[Event], None] | None) -> Choice:
        """The choice after a prompt, and after the reasoning that the model writes first."""
        began = time.perf_counter()
        tokens, lead = self._read(prompt)
        thought: Generation[Any] | None = None
        if thinks is not None:
            options = _decoding(thinks, self.one_of, self.options)
            thought = generate(self.engine, prompt, thinks, **options)
            for event in thought:
                if on_event is not None:
                    on_event(event)
            if not thought.complete:
                message = f"the reasoning is not complete: {thought.finish_reason}"
                raise IncompleteError(message, help="give a larger max_tokens, or the reasoning a budget")
            tokens, lead = [*thought._row.prompt, *thought.tokens[: thought.stats.reasoning_tokens]], b""
        most = None if thinks is not None else self.options.get("max_tokens")
        found = scores(self.engine, tokens, self.one_of, self.spelling, most, lead)
        logs = found.logs
        if self._neutral is not False and len(logs) > 1:
            logs = [log - base for log, base in zip(logs, self._without(prompt), strict=True)]
        shares = normalised(logs)
        best = max(range(len(shares)), key=shares.__getitem__)
        texts, left = whole(self.one_of), dict(zip(self.texts, shares, strict=True))
        probabilities, index = tuple(left.pop(text, 0.0) for text in texts), texts.index(self.texts[best])
        stats = _stats(tokens, found.spelled[best], len(logs) == 1, found.evaluated, thought, began)
        return Choice(self.one_of.values[index], index, shares[best], stats, probabilities)

    def _read(self, prompt: Any) -> tuple[list[int], bytes]:
        """The tokens of a prompt that are kept, and the text of those that are taken back to heal its end."""
        chat = self.options.get("chat")
        tokens = checked_prompt(encoded(self.engine, prompt, chat), self.engine)
        if is_healed(self.options.get("heal"), self.engine, prompt, chat, tokens):
            return healed(tokens, self.engine.vocabulary)
        return tokens, b""

    def _without(self, prompt: Any) -> list[float]:
        """The log-probabilities without the prompt, each prompt that is there instead evaluated once."""
        engine, neutral = self.engine, self._neutral
        if neutral is True:
            if isinstance(prompt, str):
                neutral = ""
            elif isinstance(prompt, Sequence) and prompt and isinstance(prompt[-1], Mapping):
                neutral = [*prompt[:-1], {**prompt[-1], "content": ""}]
            else:
                message = "calibrate=True and a prompt of token ids"
                raise error(
                    _core.ConstraintError, message, help="give calibrate the tokens of a prompt without content"
                )
        if not encoded(engine, neutral, self.options.get("chat")):
            bos = engine.vocabulary.bos_id
            neutral = engine.vocabulary.end_tokens[:1] if bos is None else [bos]
        tokens, lead = self._read(neutral)
        key = (tuple(tokens), lead)
        if key not in self._known:
            self._known[key] = scores(engine, tokens, self.one_of, self.spelling, None, lead).logs
        return self._known[key]


def _stats(
    prompt: Sequence[int],
    tokens: Sequence[int],
    is_sole: bool,
    evaluated: Any,
    thought: Generation[Any] | None,
    began: float,
) -> Stats:
    """What a choice cost; a calibration's passes are not counted."""
    seconds, before = time.perf_counter() - began, None if thought is None else thought.stats
    reasoning = 0 if before is None else before.reasoning_tokens
    n = reasoning + len(tokens)
    return Stats(
        prompt_tokens=len(prompt) - reasoning,
        reused_tokens=evaluated.reused if before is None else before.reused_tokens,
        output_tokens=n,
        sampled_tokens=0 if is_sole else n,
        forced_tokens=n if is_sole else 0,
        forward_passes=evaluated.passes + (0 if before is None else before.forward_passes),
        seconds=seconds,
        prefill_seconds=0.0 if before is None else before.prefill_seconds,
        tokens_per_second=n / seconds if n else 0.0,
        seed=None if before is None else before.seed,
        reasoning_tokens=reasoning,
    )
