"""`generate` and `choose`: what callers give is checked and becomes rows of a decoding loop."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar, overload

from . import _core
from ._certain import Speller
from ._constraint import Constraint, Context, OneOf, Typed, bind_in, constraint_of
from ._drafts import Drafts
from ._errors import EngineError, error
from ._events import Choice, Event
from ._generation import Generation, Generations, _Shared
from ._loop import Loop, checked_prompt
from ._reasoning import ReasoningBudget
from ._row import OnStep, Options, Row, Tokenizations
from ._spans import stream_of
from ._text import TextStream
from .engines import Engine, Messages
from .engines import open as open_engine
from .skeleton import Skeleton
from .speculation import Drafter

T = TypeVar("T")
Prompt = str | Messages | Sequence[int]
"""Text, messages with "role" and "content", or token ids."""

_LIMITS = ("keep", "raise", "close")
_TOKENIZATIONS = ("all", "canonical", "fast_forward")

_ELSEWHERE = {
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
    "lark": "constraint=Grammar.lark(text)",
    "matcher": "constraint=matcher",
    "skeleton": "constraint=Skeleton.from_json(skeleton)",
    "prefill_plan": "constraint=Skeleton.from_json(skeleton).prefill(plan)",
    "span_sampler_plan": "constraint=Skeleton.from_json(skeleton).sampled(plan)",
    "token_tree": "constraint=elizaos.token_tree(payload).at(path)",
    "path": "constraint=elizaos.token_tree(payload).at(path)",
    "tools": "constraint=Grammar.tools(tools)",
    "thought": "constraint=ReasoningBudget(...) + constraint",
    "following": "constraint=OneOf(values, following=...)",
    "canonical": 'constraint=OneOf(values, tokenizations="canonical")',
    "max_new_tokens": "max_tokens=",
    "n_predict": "max_tokens=",
    "stop_sequences": "stop=",
    "stop_strings": "stop=",
    "stream": "for event in generate(...), or generate(...).pieces()",
    "do_sample": "temperature=0 for greedy decoding",
    "cancel": "generation.cancel()",
    "on_progress": "the Progress events of the generation; engines.open(path, on_load=...) for loading",
    "n": "a list with the prompt n times",
    "messages": "the second argument: the messages themselves",
    "add_generation_prompt": "chat=True",
}
"""Keywords of other libraries, and of earlier versions, by what is written here."""


@overload
def generate(
    model: Any, prompt: str | Sequence[int] | Messages, constraint: type[T], **options: Any
) -> Generation[T]: ...
@overload
def generate(
    model: Any, prompt: str | Sequence[int] | Messages, constraint: Sequence[T], **options: Any
) -> Generation[T]: ...
@overload
def generate(
    model: Any, prompt: str | Sequence[int] | Messages, constraint: None = None, **options: Any
) -> Generation[str]: ...
@overload
def generate(
    model: Any, prompt: str | Sequence[int] | Messages, constraint: Any, **options: Any
) -> Generation[Any]: ...
@overload
def generate(model: Any, prompt: Sequence[Prompt], constraint: Any = None, **options: Any) -> Generations[Any]: ...
def generate(
    model: Any,
    prompt: Any,
    constraint: Any = None,
    *,
    chain: _core.Chain | None = None,
    seed: int | Sequence[int | None] | None = None,
    max_tokens: int = 256,
    stop: str | Sequence[str] = (),
    chat: bool | None = None,
    on_limit: Literal["keep", "raise", "close"] = "keep",
    force: bool = True,
    trace: bool = False,
    on_step: OnStep | None = None,
    tokenizations: Tokenizations = "all",
    drafter: Drafter | None = None,
    **sampling: Any,
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
        prompt: text, messages with "role" and "content", or token ids. A list of several of these gives
            `Generations`, decoded together.
        constraint: what the output must be: a `Constraint`, or a value that means one (a list of texts, a type, a
            pydantic model, a JSON Schema, a function, ...); docs/interface.md has the table. With several prompts a
            list of constraints gives each its own; a list of texts or numbers is one constraint for all.
        chain: the samplers, copied; None makes llama.cpp's own chain of `seed` and `sampling`.
        seed: 0 to 2**32 - 1; None draws one, which `Stats.seed` tells. With several prompts a list gives each its
            own; one number is used for each, as if it ran alone.
        max_tokens: most tokens of the output.
        stop: texts that end the output; they are not part of it.
        chat: True applies the model's chat template, False does not, None does where there is one.
        on_limit: what happens where `max_tokens` cuts a constrained output: "keep" it as it is, "raise"
            IncompleteError, or "close" it with the tokens of its shortest legal ending, which come on top.
        force: take forced tokens without asking the model. Changes the cost, not the output.
        trace: record how each token was decided (`Token.step`, `Generation.trace`); costs one look at all logits for
            each token.
        on_step: called with the decoder and the model's logits before each token that is sampled, to steer it or to
            change parameters (`Decoder.steer`, `set`, `adapt`); not for forced tokens. It accepts no tokens itself, and
            its exceptions end the generation.
        tokenizations: which tokens spell a constrained text. "all": those that the model picks. "canonical": of these
            only sequences that the model's own tokenizer gives. "fast_forward": text that is certain in the tokenizer's
            tokens, without asking the model, which may not be those that it would have picked; docs/speed.md has what
            each costs and changes.
        drafter: proposes the next tokens (`logitree.speculation`), so that one forward pass decides several. Changes
            the cost, not the output. Used for one prompt, by engines whose sessions can roll back.
        **sampling: parameters of `Chain.llama_cpp`: `temperature=0.7` (0 takes the likeliest token), `top_k=40`,
            `top_p`, `min_p`, `repeat_penalty`, ...

    Returns:
        A `Generation`, or `Generations` for a list of prompts. It runs when it is used.

    Raises:
        EngineError: the model cannot be loaded, or a prompt is empty or does not fit.
        ConstraintError, PayloadError, SamplingError: arguments that cannot be honoured.
        TypeError: an unknown keyword, or a value that means no constraint. All of these at the call, not later.
    """
    _check_keywords(sampling)
    if max_tokens < 0:
        raise error(_core.LimitError, f"max_tokens is {max_tokens}", help="give 0 or more")
    if on_limit not in _LIMITS:
        raise error(_core.ConstraintError, f"on_limit is {on_limit!r}", help='give "keep", "raise" or "close"')
    if tokenizations not in _TOKENIZATIONS:
        shown = ", ".join(map(repr, _TOKENIZATIONS))
        raise error(_core.ConstraintError, f"tokenizations is {tokenizations!r}", help=f"give one of {shown}")
    stop = (stop,) if isinstance(stop, str) else tuple(stop)
    if "" in stop:
        raise error(_core.ConstraintError, "a stop string is empty", help="it would end everything; leave it out")
    several = _is_several(prompt)
    prompts = list(prompt) if several else [prompt]
    constraints = _each_constraint(constraint, len(prompts)) if several else [constraint]
    seeds = _each_seed(seed, len(prompts))
    read = [None if one is None else constraint_of(one) for one in constraints]
    chains = [_chain(chain, one, sampling) for one in seeds]
    engine = open_engine(model)
    options = Options(max_tokens, on_limit, force, trace, on_step, tokenizations)
    rows = [
        _row(engine, checked_prompt(_encode(engine, one, chat), engine), limit, *made, options, stop, drafter)
        for one, limit, made in zip(prompts, read, chains, strict=True)
    ]
    together = getattr(engine, "batch_rows", None) or len(rows)
    generations: list[Generation[Any]] = []
    for at in range(0, len(rows), together):
        shared = _Shared(Loop(engine, rows[at : at + together], options))
        generations += [Generation(shared, row, trace) for row in rows[at : at + together]]
    return Generations(generations) if several else generations[0]


def choose(
    model: Any,
    prompt: str | Sequence[int] | Messages,
    values: Iterable[Any] | OneOf | ReasoningBudget,
    *,
    on_event: Callable[[Event], None] | None = None,
    **options: Any,
) -> Choice:
    """Lets the model choose one of several values.

    Args:
        model, prompt, options: as of `generate`; without a chain, a seed or sampling parameters the likeliest token is
            taken at each step.
        values: a `OneOf`, or what it takes: texts, numbers, members of an enum; `ReasoningBudget(...) + values` lets
            the model reason first.
        on_event: called with every event of the generation.

    Raises:
        IncompleteError: the context was full or the generation cancelled before the choice was made.
        What `generate` raises.
    """
    constraint = values if isinstance(values, OneOf | ReasoningBudget) else OneOf(values)
    one_of = constraint_of(constraint.then) if isinstance(constraint, ReasoningBudget) else constraint
    if not isinstance(one_of, OneOf):
        raise error(_core.ConstraintError, "no values follow the reasoning", help="give ReasoningBudget(...) + [...]")
    if not options.keys() - _NOT_SAMPLING:
        options["chain"] = _core.Chain.greedy()
    longest = max(len(text if isinstance(text, bytes) else text.encode()) for text in one_of.texts)
    room = 1024 + (constraint.budget or 0) if isinstance(constraint, ReasoningBudget) else 0
    options.setdefault("max_tokens", longest + len(one_of.following or "") + 16 + room)
    generation = generate(model, prompt, constraint, **{**options, "trace": True})
    for event in generation:
        if on_event is not None:
            on_event(event)
    value = generation.value
    return Choice(value, one_of.values.index(value), generation.probability, generation.stats)


_NOT_SAMPLING = {"max_tokens", "stop", "chat", "on_limit", "force", "trace", "on_step", "tokenizations", "drafter"}
"""Options of `generate` that are no sampling."""


def _check_keywords(given: Mapping[str, Any]) -> None:
    """A TypeError that says how a keyword of another library is written here."""
    for name in given:
        if name in _ELSEWHERE:
            raise TypeError(f"generate() has no {name}=: write {_ELSEWHERE[name]}")


def _is_several(prompt: Any) -> bool:
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


def _each_seed(seed: Any, n: int) -> list[int | None]:
    """One seed for each prompt."""
    if seed is None or isinstance(seed, int):
        return [seed] * n
    seeds = list(seed)
    if len(seeds) != n:
        raise error(
            _core.SamplingError, f"{len(seeds)} seeds for {n} prompts", help="give one for each, or one for all"
        )
    return seeds


def _chain(chain: _core.Chain | None, seed: int | None, sampling: Mapping[str, Any]) -> tuple[_core.Chain, int | None]:
    """The chain of one row and its seed, drawn if none was given."""
    if chain is not None:
        given = [*sampling, *(["seed"] if seed is not None else [])]
        if given:
            raise error(_core.SamplingError, f"both a chain and {', '.join(given)}", help="put them into the chain")
        return chain, chain.seed
    if seed is None:
        seed = secrets.randbelow(2**32)
    return _core.Chain.llama_cpp(seed=seed, **sampling), seed


def _encode(engine: Engine, prompt: Any, chat: bool | None) -> list[int]:
    """The tokens of a prompt.

    Raises:
        TypeError: it is no prompt.
    """
    if isinstance(prompt, str):
        return engine.encode(prompt, chat=chat)
    if isinstance(prompt, Sequence) and prompt and all(isinstance(one, Mapping) for one in prompt):
        return engine.encode(prompt, chat=chat)
    if isinstance(prompt, Iterable) and not isinstance(prompt, bytes | Mapping):
        tokens = [int(token) for token in prompt]
        outside = [token for token in tokens if not 0 <= token < len(engine.vocabulary)]
        if outside:
            raise error(_core.TokenError, f"token {outside[0]} of the prompt is outside the vocabulary")
        return tokens
    raise TypeError(f"a prompt is a text, messages or token ids, not {type(prompt).__name__}")


@functools.lru_cache(maxsize=4)
def canonical_matcher(
    tokenizer: _core.Tokenizer, vocabulary: _core.Vocabulary, constraint: _core.Grammar | Skeleton
) -> _core.Matcher:
    """A matcher in the tokenizer's spelling, at the beginning.

    Its copies share the masks that they find: the first text of a grammar or skeleton takes milliseconds a token, later
    ones microseconds.
    """
    return tokenizer.canonical(constraint.matcher(vocabulary))


def _row(
    engine: Engine,
    tokens: list[int],
    constraint: Constraint | _core.Matcher | None,
    chain: _core.Chain,
    seed: int | None,
    options: Options,
    stop: Sequence[str],
    drafter: Drafter | None,
) -> Row:
    context = Context(engine.vocabulary, getattr(engine, "tokenize", None), tokens)
    matcher = None if constraint is None else bind_in(constraint, context)
    if matcher is not None and matcher.vocabulary_size > len(engine.vocabulary):
        raise EngineError(
            f"the matcher has {matcher.vocabulary_size} tokens, the model {len(engine.vocabulary)}",
            help="make the matcher with the engine's vocabulary",
        )
    if options.tokenizations == "canonical" and matcher is not None:
        own = getattr(engine, "own_tokenizer", None)
        if own is None:
            raise EngineError("the engine does not give its tokenizer", help='use tokenizations="all"')
        inner = constraint.inner if isinstance(constraint, Typed) else constraint
        if isinstance(inner, _core.Grammar) or (isinstance(inner, Skeleton) and not inner.is_prefilled):
            matcher = canonical_matcher(own, engine.vocabulary, inner).fork()
        else:
            matcher = own.canonical(matcher)
    chains = getattr(constraint, "span_chains", None)
    span_chains = None if chains is None else chains(chain)
    decoder = _core.Decoder(engine.vocabulary, chain, matcher, trace=options.trace, span_chains=span_chains)
    decoder.prime(tokens)
    row = Row(decoder, context, TextStream(stop), constraint, seed, options, list(tokens))
    row.spans = stream_of(constraint)
    speller = None
    if matcher is not None and options.force and context.tokenize is not None:
        speller = Speller(engine.vocabulary, context.tokenize)
    if options.tokenizations == "fast_forward":
        if context.tokenize is None:
            raise EngineError("the engine has no tokenizer", help='use tokenizations="all", or give it tokenize(text)')
        row.speller = speller
    draft = None if drafter is None else drafter.begin(tokens, engine.vocabulary)
    if speller is not None or draft is not None:
        row.drafts = Drafts(engine.vocabulary, speller, draft, getattr(engine, "pass_costs", None))
    return row
