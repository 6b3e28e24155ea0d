"""The arguments of `generate`: their types for type checkers, and errors that say what to write instead."""

from __future__ import annotations

import operator
import secrets
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal

from . import _core
from ._errors import error
from ._params import ChainParams, SamplingParams
from .speculation import Drafter

if TYPE_CHECKING:
    from ._row import OnStep
    from ._spelling import Tokenization

UNLIMITED = 1 << 62
"""What `max_tokens=None` means: no limit but the context."""
MAX_ANSWERS = 1024
"""Answers to one prompt (`n=`)."""
MAX_LOGPROBS = 1000
"""The most of the likeliest tokens that each token comes with."""

_LIMITS = ("keep", "raise", "close")
_USUAL = ("max_tokens", "stop", "seed", "temperature", "top_k", "top_p", "min_p", "repeat_penalty", "trace", "chat")
"""Keywords that the error for an unknown one lists."""


class GenerateOptions(SamplingParams, total=False):
    """The keywords of `generate`, for signatures that pass them on (`**options: Unpack[GenerateOptions]`)."""

    chain: _core.Chain | Sequence[_core.Chain] | None
    """The samplers, or one chain for each prompt; None: llama.cpp's own chain of the sampling parameters."""
    seed: int | Sequence[int | None] | None
    """Of the draws, 0 to 2**32 - 1; a list has one for each prompt. None or -1 draws one."""
    max_tokens: int | None
    """Most tokens of the output; None: as many as the context has room for."""
    stop: str | Sequence[str] | None
    """Texts that end the output."""
    chat: bool | None
    """Whether the model's chat template is applied; None: where there is one."""
    on_limit: Literal["keep", "raise", "close"]
    """What happens where `max_tokens` cuts a constrained output."""
    force: bool
    """Whether forced tokens are taken without asking the model. Default True."""
    trace: bool
    """Whether to record how each token was decided. Default False."""
    logprobs: int | bool | None
    """How many of the likeliest tokens to give with log-probabilities; True: of the token alone."""
    on_step: OnStep | None
    """Called before each token that is sampled."""
    tokenization: Tokenization
    """Which tokens spell a constrained text. Default "auto"."""
    drafter: Drafter | None
    """Proposes the next tokens, so that one forward pass decides several."""
    heal: bool | None
    """Whether the model spells the end of the prompt again."""


ELSEWHERE = {
    "top_logprobs": "logprobs=n, the number of the likeliest tokens",
    "choices": "constraint=[...], a list of texts",
    "choice": "constraint=[...], a list of texts",
    "options": "constraint=[...], a list of texts",
    "json_schema": "constraint=schema, or constraint=Grammar.json_schema(schema)",
    "schema": "constraint=schema, or constraint=Grammar.json_schema(schema)",
    "response_format": "constraint=schema, a pydantic model or Grammar.json_schema(schema)",
    "response_model": "constraint=the model class",
    "output_type": "constraint=the type",
    "regex": "constraint=Grammar.regex(pattern)",
    "guided_regex": "constraint=Grammar.regex(pattern)",
    "guided_json": "constraint=schema",
    "guided_choice": "constraint=[...], a list of texts",
    "guided_grammar": "constraint=Grammar.gbnf(text) or Grammar.lark(text)",
    "grammar": "constraint=Grammar.gbnf(text) or Grammar.lark(text)",
    "gbnf": "constraint=Grammar.gbnf(text)",
    "ebnf": "constraint=Grammar.ebnf(text)",
    "lark": "constraint=Grammar.lark(text)",
    "matcher": "constraint=matcher",
    "skeleton": "constraint=Skeleton.from_json(skeleton)",
    "prefill_plan": "constraint=Skeleton.from_json(skeleton).prefill(plan)",
    "span_sampler_plan": "constraint=Skeleton.from_json(skeleton).sampled(plan)",
    "token_tree": "constraint=elizaos.token_tree(payload).at(path)",
    "path": "constraint=elizaos.token_tree(payload).at(path)",
    "tools": "constraint=Protocol.of(engine).constraint(tools=tools), from logitree.protocols",
    "thought": "constraint=ReasoningBudget(...) + constraint",
    "following": "constraint=OneOf(values, following=...)",
    "canonical": 'tokenization="canonical"',
    "max_new_tokens": "max_tokens=",
    "max_completion_tokens": "max_tokens=",
    "max_length": "max_tokens=, of the output alone",
    "num_return_sequences": "n=",
    "system": 'messages: [{"role": "system", "content": ...}, {"role": "user", "content": ...}]',
    "system_prompt": 'messages: [{"role": "system", "content": ...}, {"role": "user", "content": ...}]',
    "timeout": "wait_for(generation, timeout) of asyncio, or generation.cancel() from another thread",
    "n_predict": "max_tokens=",
    "stop_sequences": "stop=",
    "stop_strings": "stop=",
    "stream": "for event in generate(...), or generate(...).pieces()",
    "do_sample": "temperature=0 for greedy decoding",
    "cancel": "generation.cancel()",
    "on_progress": "the Progress events of the generation; engines.open(path, on_load=...) for loading",
    "messages": "the second argument: the messages themselves",
    "add_generation_prompt": "chat=True",
}
"""Keywords of other libraries, and of earlier versions, by what is written here."""


def check_keywords(given: Mapping[str, Any]) -> None:
    """A TypeError for a keyword that nothing has: how it is written here, or what it resembles."""
    for name in given:
        if name in SamplingParams.__annotations__ or name == "seed":
            continue
        if name in ELSEWHERE:
            raise TypeError(f"generate() has no {name}=: write {ELSEWHERE[name]}")
        known = [*GenerateOptions.__annotations__, *ChainParams.__annotations__, *ELSEWHERE]
        near = get_close_matches(name, known, 1, 0.75)
        if near and near[0] in ELSEWHERE:
            raise TypeError(f"generate() has no {name}=: write {ELSEWHERE[near[0]]}")
        if near:
            raise TypeError(f"generate() has no {name}=; did you mean {near[0]}=?")
        usual = ", ".join(f"{one}=" for one in _USUAL)
        raise TypeError(
            f"generate() has no {name}=; it has {usual}, ...; docs/interface.md and docs/samplers.md list all"
        )


def whole(value: Any, name: str, help: str) -> int:
    """A whole number of Python or NumPy.

    Raises:
        TypeError: it is something else; True and False are no numbers.
    """
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise TypeError(f"{name} is {_shown(value)}: {help}")


def read_max_tokens(value: Any) -> int:
    """`max_tokens` as a number."""
    if value is None:
        return UNLIMITED
    number = whole(value, "max_tokens", "give a whole number, or None for no limit but the context")
    if number < 0:
        raise error(_core.LimitError, f"max_tokens is {number}", help="give 0 or more, or None for no limit")
    return number


def read_logprobs(value: Any) -> int | None:
    """How many of the likeliest tokens to tell; None: nothing."""
    if value is None or value is False:
        return None
    number = 0 if value is True else whole(value, "logprobs", "give the number of the likeliest tokens, or True")
    if not 0 <= number <= MAX_LOGPROBS:
        raise error(_core.LimitError, f"logprobs is {number}", help=f"give 0 to {MAX_LOGPROBS}, or True")
    return number


def read_stop(value: Any) -> tuple[str, ...]:
    """`stop` as texts."""
    help = 'give a text, or a list of texts: stop=["\\n"]'
    if value is None:
        return ()
    if isinstance(value, str):
        value = (value,)
    if isinstance(value, bytes | Mapping) or not hasattr(value, "__iter__"):
        raise TypeError(f"stop is {_shown(value)}: {help}")
    texts = tuple(value)
    for at, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"stop[{at}] is {_shown(text)}: {help}")
    if "" in texts:
        raise error(_core.ConstraintError, "a stop string is empty", help="it would end everything; leave it out")
    return texts


def read_seeds(seed: Any, rows: int, answers: int | None) -> list[int | None]:
    """One seed for each row. With several answers to one prompt a number is the first of as many."""
    if isinstance(seed, Sequence) and not isinstance(seed, str | bytes):
        if len(seed) != rows:
            of = "prompts" if answers is None else "answers"
            raise error(
                _core.SamplingError, f"{len(seed)} seeds for {rows} {of}", help="give one for each, or one for all"
            )
        return [_seed(one) for one in seed]
    first = _seed(seed)
    if first is None or answers is None:
        return [first] * rows
    return [(first + at) % 2**32 if first < 2**32 else first + at for at in range(rows)]


def read_chains(
    chain: _core.Chain | Sequence[_core.Chain] | None,
    seeds: Sequence[int | None],
    answers: int | None,
    sampling: Mapping[str, Any],
) -> list[tuple[_core.Chain, int | None]]:
    """A chain for each row, and its seed: drawn if none is given. Several answers of one chain are its sequences."""
    if chain is None:
        drawn = [secrets.randbelow(2**32) if seed is None else seed for seed in seeds]
        return [(_core.Chain.llama_cpp(seed=seed, **sampling), seed) for seed in drawn]
    given = [*sampling, *(["seed"] if any(seed is not None for seed in seeds) else [])]
    if given:
        raise error(_core.SamplingError, f"both a chain and {', '.join(given)}", help="put them into the chain")
    rows = len(seeds)
    if isinstance(chain, _core.Chain):
        chains = [chain] * rows if answers is None else chain.sequences(rows)
    elif len(chain) == rows:
        chains = list(chain)
    else:
        of = "prompts" if answers is None else "answers"
        message = f"{len(chain)} chains for {rows} {of}"
        raise error(_core.SamplingError, message, help="give one for each, or one for all")
    return [(one, one.seed) for one in chains]


def _seed(seed: Any) -> int | None:
    """A seed; None for None and -1, which llama.cpp's tools take as "draw one"."""
    if seed is None:
        return None
    number = whole(seed, "seed", "give a whole number from 0 to 2**32 - 1, or None for one that is drawn")
    if number < -1:
        raise error(_core.SamplingError, f"seed is {number}", help="give 0 to 2**32 - 1; None or -1 draws one")
    return None if number == -1 else number


def read_answers(n: Any, several: bool) -> int | None:
    """`n` as a number of answers; None: one answer that is no list."""
    if n is None:
        return None
    number = whole(n, "n", "give the number of answers to the prompt")
    if not 1 <= number <= MAX_ANSWERS:
        raise error(_core.LimitError, f"n is {number}", help=f"give 1 to {MAX_ANSWERS}")
    if several:
        raise TypeError("n= is for one prompt: with a list of prompts, write each as often as it is to be answered")
    return number


def check_limit(on_limit: Any) -> None:
    """A ConstraintError where `on_limit` is none of its words."""
    if on_limit not in _LIMITS:
        shown = ", ".join(f'"{word}"' for word in _LIMITS)
        raise error(_core.ConstraintError, f"on_limit is {on_limit!r}", help=f"give one of {shown}")


def check_kinds(
    *,
    chain: Any = None,
    chat: Any = None,
    force: Any = True,
    trace: Any = False,
    on_step: Callable[..., Any] | None = None,
    drafter: Any = None,
    heal: Any = None,
    **_: Any,
) -> None:
    """A TypeError where something else is given for a chain, a switch or a function."""
    for one in chain if isinstance(chain, list | tuple) else () if chain is None else (chain,):
        if not isinstance(one, _core.Chain):
            help = 'give a Chain, such as Chain.parse("top_k;temp") or Chain.greedy()'
            raise TypeError(f"chain is {_shown(one)}: {help}")
    for name, value, help in (
        ("chat", chat, "True, False, or None for the model's template where there is one"),
        ("force", force, "True or False"),
        ("trace", trace, "True or False"),
        ("heal", heal, "True, False, or None for texts that end in a space"),
    ):
        if not isinstance(value, bool) and not (name in ("chat", "heal") and value is None):
            raise TypeError(f"{name} is {_shown(value)}: give {help}")
    if on_step is not None and not callable(on_step):
        raise TypeError(f"on_step is {_shown(on_step)}: give a function of the decoder and the logits")
    if drafter is not None and not isinstance(drafter, Drafter):
        raise TypeError(f"drafter is {_shown(drafter)}: give one of logitree.speculation")


def _shown(value: Any) -> str:
    """A value as an error shows it: short, and with its type where it does not tell by itself."""
    text = repr(value)
    text = text if len(text) <= 60 else f"{text[:60]}..."
    return (
        text if value is None or isinstance(value, bool | str | bytes | float) else f"{text} ({type(value).__name__})"
    )
