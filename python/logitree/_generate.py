"""`generate`: what callers give is checked and becomes rows of a decoding loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from . import _core
from ._arguments import (
    GenerateOptions,
    check_keywords,
    check_kinds,
    check_limit,
    read_answers,
    read_chains,
    read_logprobs,
    read_max_tokens,
    read_seeds,
    read_stop,
    whole,
)
from ._certain import Speller
from ._constraint import Context, constraint_of
from ._core import Constraint
from ._drafts import Drafts
from ._errors import EngineError, error
from ._generation import Generation, Generations, _Shared
from ._healing import bind_text, healed, holds_more, is_healed
from ._loop import checked_prompt
from ._params import SamplingParams
from ._row import OnStep, Options, Row
from ._spelling import Tokenization, bind_spelled, read_tokenization
from ._text import TextStream
from .engines import Engine, Messages
from .engines import open as open_engine
from .speculation import Drafter

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")
Prompt = str | Messages | Sequence[int]
"""Text, messages with "role" and "content", or token ids."""


@overload
def generate(
    model: Any,
    prompt: str | Sequence[int] | Messages,
    constraint: type[T],
    *,
    n: None = None,
    **options: Unpack[GenerateOptions],
) -> Generation[T]: ...
@overload
def generate(
    model: Any,
    prompt: str | Sequence[int] | Messages,
    constraint: Sequence[T],
    *,
    n: None = None,
    **options: Unpack[GenerateOptions],
) -> Generation[T]: ...
@overload
def generate(
    model: Any,
    prompt: str | Sequence[int] | Messages,
    constraint: None = None,
    *,
    n: None = None,
    **options: Unpack[GenerateOptions],
) -> Generation[str]: ...
@overload
def generate(
    model: Any,
    prompt: str | Sequence[int] | Messages,
    constraint: Any,
    *,
    n: None = None,
    **options: Unpack[GenerateOptions],
) -> Generation[Any]: ...
@overload
def generate(
    model: Any,
    prompt: str | Sequence[int] | Messages,
    constraint: Any = None,
    *,
    n: int,
    **options: Unpack[GenerateOptions],
) -> Generations[Any]: ...
@overload
def generate(
    model: Any, prompt: Sequence[Prompt], constraint: Any = None, **options: Unpack[GenerateOptions]
) -> Generations[Any]: ...
def generate(
    model: Any,
    prompt: Any,
    constraint: Any = None,
    *,
    chain: _core.Chain | Sequence[_core.Chain] | None = None,
    seed: int | Sequence[int | None] | None = None,
    n: int | None = None,
    max_tokens: int | None = 256,
    stop: str | Sequence[str] | None = (),
    chat: bool | None = None,
    on_limit: Literal["keep", "raise", "close"] = "keep",
    force: bool = True,
    trace: bool = False,
    logprobs: int | bool | None = None,
    on_step: OnStep | None = None,
    tokenization: Tokenization = "auto",
    drafter: Drafter | None = None,
    heal: bool | None = None,
    **sampling: Unpack[SamplingParams],
) -> Generation[Any] | Generations[Any]:
    """Generates from a prompt, or from several at once.

    ```python
    answer = logitree.generate("model.gguf", "Do you agree?", ["YES", "NO"]).value
    for piece in logitree.generate("model.gguf", "Tell me a story.", max_tokens=400).pieces():
        print(piece, end="", flush=True)
    ```

    Args:
        model: an engine, or what `logitree.engines.open` takes: the path of a GGUF file, a folder of transformers, a
            `llama_cpp.Llama`. A path is loaded by every call: to generate more than once, open it once.
        prompt: text, messages with "role" and "content" (a text, or a list of parts of text), or token ids. A list of
            several of these gives `Generations`, decoded together.
        constraint: what the output must be: a `Constraint`, or a value that means one (a list of texts, a type, a
            pydantic model, a JSON Schema, a function, ...); docs/interface.md has the table. With several prompts a
            list of constraints gives each its own; a list of texts or numbers is one constraint for all.
        chain: the samplers, copied; None makes llama.cpp's own chain of `seed` and `sampling`. With several prompts a
            list gives each its own; one is used for each, as if it ran alone. With `n` answer i has sequence i of its
            seed, from the initial state (`Chain.sequences`).
        seed: 0 to 2**32 - 1; None or -1 draws one, reported as `Stats.seed`. With several prompts a list gives each
            its own; one number is used for each, as if it ran alone.
        n: so many answers to the one prompt, as `Generations`. Answer i has the seed `seed` + i, or one that is drawn.
        max_tokens: most tokens of the output; None: as many as the context has room for.
        stop: texts that end the output; they are not part of it.
        chat: True applies the model's chat template, False does not, None does where there is one.
        on_limit: what happens where `max_tokens` cuts a constrained output: "keep" it as it is, "raise"
            IncompleteError, or "close" it with the tokens of its shortest legal ending, which come on top.
        force: take forced tokens without asking the model. Changes the cost, not the output.
        trace: record how each token was decided (`Token.step`, `Generation.trace`); costs one look at all logits for
            each token.
        logprobs: tell for each token how likely it was, before and after the constraint and the filters, and so many of
            the likeliest tokens (`Token.logprobs`, `Stats.logprob`); True: the token alone. Costs less than a trace.
            Forced tokens have none, as no logits are asked for: `force=False` gives theirs too.
        on_step: called with the decoder and the model's logits before each token that is sampled, to steer it or to
            change parameters (`Decoder.steer`, `set`, `adapt`); not for forced tokens. It accepts no tokens itself, and
            its exceptions end the generation.
        tokenization: which tokens spell a constrained text. "canonical": only sequences that the model's own tokenizer
            gives, as in the texts that the model learnt from. "any": those that the model picks. "auto", the
            default: "canonical" where the engine has its tokenizer and the constraint is about text, "any" otherwise.
            "fast_forward": text that is certain in the tokenizer's tokens, without asking the model, which may not be
            those that it would have picked. docs/tokenizer.md has the table, docs/speed.md what each costs and changes.
        drafter: proposes the next tokens (`logitree.speculation`), so that one forward pass decides several. Changes
            the cost, not the output. Used while one prompt is decoded alone, by engines whose sessions can roll back.
        heal: take the last tokens of a prompt back where a longer token may begin in them, and let the model spell
            their text again, with what follows it; their text is no part of the output. None: of a text that ends in
            a space or tab, where no constraint or one of texts follows. True: of every text and of token ids, for a
            prompt that ends inside a word or at "http:". False: of none. The end of a chat template is left as it is.
            docs/tokenizer.md has the rule, and what it gains.
        **sampling: parameters of `Chain.llama_cpp`: `temperature=0.7` (0 takes the likeliest token), `top_k=40`,
            `top_p`, `min_p`, `repeat_penalty`, ...

    Returns:
        A `Generation`, or `Generations` for a list of prompts and for `n`. It runs when it is used.

    Raises:
        EngineError: the model cannot be loaded, or a prompt is empty or does not fit.
        ConstraintError, PayloadError, SamplingError: arguments that cannot be honoured.
        TypeError: an unknown keyword, or a value that means no constraint. All of these at the call, not later.
    """
    old: Any = sampling.pop("tokenizations", None)  # type: ignore[typeddict-item]
    spelled = read_tokenization(tokenization, old)
    several = is_several(prompt)
    engine, rows = prepare(
        model,
        prompt,
        constraint,
        chain=chain,
        seed=seed,
        n=n,
        max_tokens=max_tokens,
        stop=stop,
        chat=chat,
        on_limit=on_limit,
        force=force,
        trace=trace,
        logprobs=logprobs,
        on_step=on_step,
        tokenization=spelled,
        drafter=drafter,
        heal=heal,
        **sampling,
    )
    together = engine.batch_rows or len(rows)
    generations: list[Generation[Any]] = []
    for at in range(0, len(rows), together):
        shared = _Shared(engine, rows[at : at + together])
        generations += [Generation(shared, row, trace) for row in rows[at : at + together]]
    return Generations(generations) if several or n is not None else generations[0]


def prepare(
    model: Any,
    prompt: Any,
    constraint: Any = None,
    *,
    chain: _core.Chain | Sequence[_core.Chain] | None = None,
    seed: int | Sequence[int | None] | None = None,
    n: int | None = None,
    max_tokens: int | None = 256,
    stop: str | Sequence[str] | None = (),
    chat: bool | None = None,
    on_limit: Literal["keep", "raise", "close"] = "keep",
    force: bool = True,
    trace: bool = False,
    logprobs: int | bool | None = None,
    on_step: OnStep | None = None,
    tokenization: Tokenization = "auto",
    drafter: Drafter | None = None,
    heal: bool | None = None,
    **sampling: Unpack[SamplingParams],
) -> tuple[Engine, list[Row]]:
    """What `generate` is given, checked, as rows of a loop. Arguments and errors are those of `generate`."""
    spelled = read_tokenization(tokenization, None)
    check_keywords(sampling)
    check_limit(on_limit)
    check_kinds(chain=chain, chat=chat, force=force, trace=trace, on_step=on_step, drafter=drafter, heal=heal)
    stop = read_stop(stop)
    several = is_several(prompt)
    answers = read_answers(n, several)
    prompts = list(prompt) if several else [prompt] * (answers or 1)
    constraints = _each_constraint(constraint, len(prompts)) if several else [constraint] * len(prompts)
    seeds = read_seeds(seed, len(prompts), answers)
    read = [None if one is None else constraint_of(one) for one in constraints]
    chains = read_chains(chain, seeds, answers, sampling)
    options = Options(read_max_tokens(max_tokens), on_limit, force, trace, on_step, spelled, read_logprobs(logprobs))
    engine = open_engine(model)
    tokens = [checked_prompt(encoded(engine, one, chat), engine) for one in prompts]
    heals = [
        is_healed(heal, engine, one, chat, held, limit) for one, held, limit in zip(prompts, tokens, read, strict=True)
    ]
    rows = [
        _row(engine, held, limit, *made, options, stop, drafter, healing)
        for held, limit, made, healing in zip(tokens, read, chains, heals, strict=True)
    ]
    return engine, rows


def is_several(prompt: Any) -> bool:
    """Whether this is a list of prompts: not text, not messages, not token ids."""
    if isinstance(prompt, str | bytes | Mapping) or not isinstance(prompt, Sequence):
        return False
    return bool(prompt) and not isinstance(prompt[0], int | Mapping)


def _each_constraint(constraint: Any, n: int) -> list[Any]:
    """One constraint for each prompt."""
    if not isinstance(constraint, list | tuple) or all(
        one is not None and isinstance(one, str | bytes | int | float | bool) for one in constraint
    ):
        return [constraint] * n
    if len(constraint) != n:
        message = f"{len(constraint)} constraints for {n} prompts"
        raise error(_core.ConstraintError, message, help="give one for each prompt, or one for all")
    return list(constraint)


def encoded(engine: Engine, prompt: Any, chat: bool | None) -> list[int]:
    """The tokens of a prompt.

    Raises:
        TypeError: it is no prompt.
    """
    if isinstance(prompt, str):
        return engine.encode(prompt, chat=chat)
    if isinstance(prompt, Sequence) and prompt and all(isinstance(one, Mapping) for one in prompt):
        return engine.encode(prompt, chat=chat)
    if isinstance(prompt, Iterable) and not isinstance(prompt, bytes | Mapping):
        help = "a prompt is a text, messages or token ids"
        tokens = [whole(token, f"token {at} of the prompt", help) for at, token in enumerate(prompt)]
        outside = [token for token in tokens if not 0 <= token < len(engine.vocabulary)]
        if outside:
            raise error(_core.TokenError, f"token {outside[0]} of the prompt is outside the vocabulary")
        return tokens
    help = ": give [message]" if isinstance(prompt, Mapping) else ""
    raise TypeError(f"a prompt is a text, messages or token ids, not {type(prompt).__name__}{help}")


def _row(
    engine: Engine,
    tokens: list[int],
    constraint: Constraint | None,
    chain: _core.Chain,
    seed: int | None,
    options: Options,
    stop: Sequence[str],
    drafter: Drafter | None,
    heal: bool,
) -> Row:
    context = Context(engine.vocabulary, engine.tokenize, tokens)
    kept, text = healed(tokens, engine.vocabulary) if heal else (tokens, b"")
    spans = None if constraint is None else constraint.span_stream()
    # Nothing constrains the output after the text, or spans, which are counted from the beginning of their matcher.
    apart = bool(text) and (constraint is None or spans is not None)
    joined = bool(text) and not apart
    matcher: _core.Matcher | None = None
    is_canonical = False
    if constraint is not None:
        lead = text if joined else b""
        matcher, is_canonical = bind_spelled(constraint, context, engine, options.tokenization, lead)
    if joined and matcher is not None and not holds_more(matcher, text, engine.vocabulary):
        return _row(engine, tokens, constraint, chain, seed, options, stop, drafter, heal=False)
    if matcher is not None and matcher.vocabulary_size > len(engine.vocabulary):
        raise EngineError(
            f"the matcher has {matcher.vocabulary_size} tokens, the model {len(engine.vocabulary)}",
            help="make the matcher with the engine's vocabulary",
        )
    decoder = _core.Decoder(
        engine.vocabulary,
        chain,
        None if apart else matcher,
        trace=options.trace,
        span_chains={} if constraint is None else constraint.span_chains(chain),
        logprobs=options.logprobs,
    )
    if apart:
        decoder.activate(bind_text(text, engine.vocabulary, straddling=constraint is None))
    decoder.prime(kept)
    row = Row(decoder, context, TextStream(stop), constraint, seed, options, list(kept), list(kept), text)
    row.spans, row.after, row.is_canonical = spans, matcher if apart else None, is_canonical
    speller = None
    if constraint is not None and options.force and context.tokenize is not None:
        speller = Speller(engine.vocabulary, context.tokenize)
    if options.tokenization == "fast_forward":
        if context.tokenize is None:
            help = 'give tokenization="any", or the engine tokenize(text)'
            raise EngineError("the engine has no tokenizer", help=help)
        row.speller = speller
    draft = None if drafter is None else drafter.begin(kept, engine.vocabulary)
    if speller is not None or draft is not None:
        row.drafts = Drafts(engine.vocabulary, speller, draft, engine.pass_costs)
    return row
