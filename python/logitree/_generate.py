"""The generation loop: engine, constraint, chain and decoder brought together, as a stream of events.

Knows no runtime and no terminal: engines hand out logits, callers show the events. The whole loop is
`_Run.events`.
"""

from __future__ import annotations

import math
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event as Flag
from typing import Any, Literal

from . import _core
from ._errors import EngineError, error
from ._events import Choice, Event, Finish, Progress, Stats, Token
from ._text import TextStream
from .engines import ContextFull, Engine, Logits, Messages, Session

Model = Engine | str | os.PathLike[str] | Any
"""An engine, the path of a GGUF file, or a `llama_cpp.Llama`."""

_TEXT = ("normal", "byte", "user_defined")
_NOT_SAMPLING = {
    "following",
    "canonical",
    "thought",
    "max_tokens",
    "stop",
    "chat",
    "force",
    "on_progress",
    "on_step",
    "cancel",
}

Cancel = Callable[[], bool] | Flag
"""Asked between forward passes: a function that says True, or a `threading.Event` that is set, ends the
generation."""

OnStep = Callable[[_core.Decoder, Logits], None]
"""Called before each token that is sampled, with the decoder, which it may steer, set and adapt, and the model's
logits: read-only, valid during the call."""


def generate(
    model: Model,
    prompt: str | Messages,
    *,
    choices: Sequence[str] | None = None,
    token_tree: Any = None,
    path: str | None = None,
    matcher: _core.Matcher | None = None,
    constraint: Any = None,
    following: str | None = None,
    canonical: bool = False,
    thought: _core.ReasoningBudget | None = None,
    chain: _core.Chain | None = None,
    temperature: float | None = None,
    seed: int | None = None,
    max_tokens: int = 256,
    stop: str | Sequence[str] = (),
    chat: bool | None = None,
    force: bool = True,
    trace: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
    on_step: OnStep | None = None,
    cancel: Cancel | None = None,
    **sampling: Any,
) -> Iterator[Event]:
    """Generates from a prompt, one event a token.

    ```python
    for event in logitree.generate("model.gguf", "Do you agree?", choices=["YES", "NO"]):
        if isinstance(event, logitree.Token):
            print(event.text, end="", flush=True)
    ```

    Args:
        model: an engine, the path of a GGUF file, or a `llama_cpp.Llama`. A path is loaded anew by every
            call: to generate more than once, make a `logitree.engines.llama_cpp.LlamaCpp` and pass that.
        prompt: text, or messages with "role" and "content".
        choices: the output is one of these texts, in any tokenisation.
        token_tree: the output is one leaf of this payload (JSON text, bytes, dict, or a `TokenTree`) ...
        path: ... of the descriptor with this path; may be left out if there is only one.
        matcher: the output is what this matcher allows.
        constraint: the output is a text of this `Grammar`, or JSON of what `Grammar.of` takes: a pydantic model, a
            dataclass, a function, an enum, a JSON Schema. At most one of `choices`, `token_tree`, `matcher` and
            `constraint`.
        following: with `choices` or `token_tree`: text that comes right after it and is put out too, such as
            a closing quote. It tells where a choice ends that is the beginning of another; without it the
            end-of-generation tokens do.
        canonical: with `choices`: only the model's own tokenisation of each, rather than every one. More
            tokens are forced then, and so fewer passes needed.
        thought: what the output may think before. The prompt may have begun a thought; a constraint among the
            arguments above rules what comes after. `Finish.text` holds all, `Stats.reasoning_tokens` says how much of
            it are thoughts, and `max_tokens` counts them.
        chain: the samplers; None makes llama.cpp's own chain of `temperature`, `seed` and `sampling`. It is
            copied.
        temperature: 0 takes the likeliest token; None is llama.cpp's 0.8.
        seed: 0 to 2**32 - 1, and 0 is 0; None draws one, and `Stats.seed` tells which.
        max_tokens: most tokens to put out.
        stop: texts that end the output; they are not part of it.
        chat: True applies the model's chat template, False does not, None does where there is one.
        force: take tokens that are the only way on without asking the model. Changes the cost, not the
            output.
        trace: tell with every token how it was decided (`Token.step`); costs one look at all logits a token.
        on_progress: called with `Progress` while the model is loaded and the prompt evaluated. The prompt's
            are events too.
        on_step: called with the decoder and the model's logits before each token that is sampled, to steer it
            or change parameters (`Decoder.steer`, `set`, `adapt`); not for tokens that are the only way on. It
            takes no tokens itself, and its exceptions end the generation.
        cancel: ends the generation with the reason "cancelled".
        **sampling: other parameters of `Chain.llama_cpp`, such as `top_k=40`, `min_p=0.05`,
            `penalty_repeat=1.1`.

    Yields:
        `Progress` while a long prompt is evaluated, `Token` for every token, and one `Finish`.

    Raises:
        EngineError: the model cannot be loaded, or the prompt is empty or does not fit. At the call, not
            later.
        ConstraintError, PayloadError, SamplingError: arguments that cannot be honoured. At the call, not
            later.
    """
    if max_tokens < 0:
        raise error(_core.LimitError, f"max_tokens is {max_tokens}", help="use 0 or more")
    stop = (stop,) if isinstance(stop, str) else tuple(stop)
    if "" in stop:
        raise error(_core.ConstraintError, "a stop string is empty", help="it would end everything; leave it out")
    if temperature is not None:
        if "temp" in sampling:
            raise error(_core.SamplingError, "both temperature and temp", help="they are the same, give one")
        sampling["temp"] = temperature
    chain, seed = _chain(chain, seed, sampling)
    engine = _engine(model, on_progress)
    limit = _constraint(engine, choices, token_tree, path, matcher, constraint, following, canonical)
    tokens = engine.encode(prompt, chat=chat)
    if not tokens:
        raise EngineError("the prompt is empty", help="give at least one token of prompt")
    if len(tokens) > engine.n_ctx:
        raise EngineError(
            f"the prompt is {len(tokens)} tokens long, the context holds {engine.n_ctx}",
            help="shorten it, or load the model with a larger n_ctx",
        )
    if thought is not None:
        limit.thought, limit.at = thought, thought.after(tokens)
        limit.matcher = thought.matcher(prompt=tokens, then=limit.matcher)
    decoder = _core.Decoder(engine.vocabulary, chain, limit.matcher, trace=trace)
    decoder.prime(tokens)
    stopped = cancel.is_set if isinstance(cancel, Flag) else cancel
    run = _Run(
        engine,
        engine.session(),
        decoder,
        tokens,
        TextStream(stop),
        limit,
        seed,
        force,
        trace,
        max_tokens,
        on_step,
    )
    return run.events(on_progress or (lambda _: None), stopped or (lambda: False))


def choose(
    model: Model,
    prompt: str | Messages,
    choices: Iterable[str],
    *,
    on_event: Callable[[Event], None] | None = None,
    **options: Any,
) -> Choice:
    """Lets the model choose one of several texts.

    Args:
        model, prompt, choices, options: as of `generate`; without a chain, a seed or sampling parameters the
            model's likeliest token is taken at each step.
        on_event: called with every event of the generation.

    Raises:
        EngineError: the context was full or the generation cancelled before the choice was made; else as
            `generate`.
    """
    if isinstance(choices, str):
        raise error(_core.ConstraintError, "choices is one text", help="give a list of texts")
    choices = list(choices)
    if not options.keys() - _NOT_SAMPLING:
        options["chain"] = _core.Chain.greedy()
    longest = max((len(c.encode()) for c in choices), default=0) + 16
    options.setdefault("max_tokens", longest + _room(options.get("thought")))
    certainties: list[float] = []
    for event in generate(model, prompt, choices=choices, trace=True, **options):
        if on_event is not None:
            on_event(event)
        if isinstance(event, Token):
            certainties.append(_certainty(event))
        elif isinstance(event, Finish) and event.choice is not None:
            probability = math.prod(certainties[event.stats.reasoning_tokens :])
            return Choice(event.choice, choices.index(event.choice), probability, event.stats)
        elif isinstance(event, Finish):
            raise EngineError(f"no choice was made: {event.reason}", place=repr(event.text))
    raise EngineError("the generation ended without a last event")


def _room(thought: _core.ReasoningBudget | None) -> int:
    """How many tokens the thoughts before a choice may take where nobody said."""
    return 0 if thought is None else 1024 + (thought.budget or 0)


def _certainty(event: Token) -> float:
    """How sure the model was of a sampled token among the allowed ones; 1 for a forced one."""
    p = None if event.forced or event.step is None else event.step.p
    return 1.0 if p is None else p


def _engine(model: Model, on_progress: Callable[[Progress], None] | None) -> Engine:
    """The engine itself, or a new one for a path or a runtime's own model object."""
    if isinstance(model, Engine):
        return model
    from .engines.llama_cpp import LlamaCpp

    return LlamaCpp(model, on_load=None if on_progress is None else lambda f: on_progress(Progress("load", f)))


def _chain(chain: _core.Chain | None, seed: int | None, sampling: Mapping[str, Any]) -> tuple[_core.Chain, int | None]:
    """The chain and its seed, drawn if none was given."""
    if chain is not None:
        given = [*sampling, *(["seed"] if seed is not None else [])]
        if given:
            raise error(_core.SamplingError, f"both a chain and {', '.join(given)}", help="put them into the chain")
        return chain, chain.seed
    if seed is None:
        seed = secrets.randbelow(2**32)
    return _core.Chain.llama_cpp(seed=seed, **sampling), seed


@dataclass
class _Constraint:
    """What the output must be, and how the output is called then."""

    matcher: _core.Matcher | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    """Names by text, the following text included."""
    leaves: Mapping[tuple[int, ...], str] = field(default_factory=dict)
    """Names by tokens."""
    thought: _core.ReasoningBudget | None = None
    at: Literal["outside", "inside"] = "outside"
    """Where the prompt leaves off."""

    def name(self, tokens: tuple[int, ...], text: str) -> str | None:
        """The choice or leaf that was put out, or None."""
        return self.leaves.get(tokens) or self.leaves.get(tokens[:-1]) or self.texts.get(text)

    def reasoning_tokens(self, tokens: Sequence[int]) -> int:
        """How many of the first tokens are thoughts."""
        return 0 if self.thought is None else len(self.thought.split(tokens, at=self.at)[0])


def _constraint(
    engine: Engine,
    choices: Sequence[str] | None,
    token_tree: Any,
    path: str | None,
    matcher: _core.Matcher | None,
    grammar: Any,
    following: str | None,
    canonical: bool,
) -> _Constraint:
    """The one constraint that was asked for, or an error if it was more than one."""
    asked = {"choices": choices, "token_tree": token_tree, "matcher": matcher, "constraint": grammar}
    given = [name for name, value in asked.items() if value is not None]
    if len(given) > 1:
        raise error(_core.ConstraintError, f"{' and '.join(given)} together", help="give one of them")
    if path is not None and token_tree is None:
        raise error(_core.ConstraintError, "a path without a token tree", help="give token_tree too")
    if following is not None and choices is None and token_tree is None:
        raise error(_core.ConstraintError, "following without choices or a token tree", help="give one of them")
    if canonical and choices is None:
        raise error(_core.ConstraintError, "canonical without choices", help="token trees are canonical anyway")
    if choices is not None:
        if isinstance(choices, str):
            raise error(_core.ConstraintError, "choices is one text", help="give a list of texts")
        made = _core.choices(
            list(choices),
            engine.vocabulary,
            following=following,
            tokenizations="canonical" if canonical else "all",
            tokenize=engine.tokenize if canonical else None,
        )
        return _Constraint(made.matcher(), {text + (following or ""): text for text in choices})
    if token_tree is not None:
        return _leaf(engine.vocabulary, token_tree, path, following)
    if grammar is not None:
        return _Constraint(_core.Grammar.of(grammar).matcher(engine.vocabulary))
    return _Constraint(matcher)


def _leaf(vocabulary: _core.Vocabulary, payload: Any, path: str | None, following: str | None) -> _Constraint:
    """One descriptor of a token tree."""
    tree = payload if isinstance(payload, _core.TokenTree) else _core.token_tree(payload, vocabulary)
    if path is None:
        if len(tree.paths) != 1:
            names = ", ".join(map(repr, tree.paths))
            raise error(
                _core.ConstraintError, f"the token tree has {len(tree.paths)} paths", help=f"give one of {names}"
            )
        path = tree.paths[0]
    leaves = {tuple(tokens): name for name, tokens in tree.leaves(path) if name is not None}
    matcher = tree.matcher(path, following=following)
    if following is None:
        return _Constraint(matcher, leaves=leaves)
    texts = {b"".join(vocabulary[t] for t in tokens): name for tokens, name in leaves.items()}
    return _Constraint(matcher, {t.decode("utf-8", "replace") + following: name for t, name in texts.items()})


@dataclass
class _Run:
    """One generation: what it was given, and what it has done so far."""

    engine: Engine
    session: Session
    decoder: _core.Decoder
    prompt: list[int]
    text: TextStream
    constraint: _Constraint
    seed: int | None
    force: bool
    trace: bool
    max_tokens: int
    on_step: OnStep | None = None
    out: list[int] = field(default_factory=list)
    forced: int = 0
    passes: int = 0
    reused: int = 0
    began: float = 0.0
    prefill: float = 0.0

    def events(self, on_progress: Callable[[Progress], None], cancelled: Callable[[], bool]) -> Iterator[Event]:
        """The loop: what is forced, one forward pass over all that the model has not seen, one sampled
        token, again."""
        self.began = time.perf_counter()
        unseen = list(self.prompt)
        while True:
            for token, step in self._take_forced():
                unseen.append(token)
                yield self._event(token, True, step)
                if self._over():
                    break
            if reason := self._over() or ("cancelled" if cancelled() else None):
                break
            try:
                if not self.passes:
                    for progress in self._prefill(unseen, cancelled):
                        on_progress(progress)
                        yield progress
                    if cancelled():
                        reason = "cancelled"
                        break
                logits = self.session.evaluate(unseen)
            except ContextFull:
                reason = "context_full"
                break
            self.passes += 1
            self.prefill = self.prefill or time.perf_counter() - self.began
            self._ask(logits)
            token = self.decoder.step(logits)
            unseen = [token]
            yield self._event(token, False, self.decoder.last if self.trace else None)
        yield self._finish(reason)

    def _prefill(self, unseen: list[int], cancelled: Callable[[], bool]) -> Iterator[Progress]:
        """Evaluates all of a long prompt but what fits in one pass, and takes it out of `unseen`."""
        if len(unseen) > self.session.room:
            raise ContextFull
        whole = len(unseen)
        self.reused = self.session.begin(unseen)
        del unseen[: self.reused]
        while len(unseen) > self.engine.n_batch and not cancelled():
            self.session.evaluate(unseen[: self.engine.n_batch])
            del unseen[: self.engine.n_batch]
            yield Progress("prefill", 1.0 - len(unseen) / whole)

    def _ask(self, logits: Logits) -> None:
        """The caller's word before a token is sampled. Without forcing, what is the only way on comes by here
        too, and is passed over."""
        if self.on_step is None or (not self.force and self.decoder.forced_tokens()):
            return
        shown = logits.view()
        shown.flags.writeable = False
        self.on_step(self.decoder, shown)
        if len(self.decoder.tokens) != len(self.out):
            raise error(_core.StateError, "on_step took tokens", help="let it steer and set only")

    def _take_forced(self) -> list[tuple[int, _core.Step | None]]:
        """The tokens that are the only way on, taken, and with a trace how each came."""
        if not self.force or self.decoder.is_finished or self._over():
            return []
        tokens = self.decoder.take_forced()
        steps = self.decoder.trace[-len(tokens) :] if self.trace and tokens else [None] * len(tokens)
        return list(zip(tokens, steps, strict=True))

    def _event(self, token: int, forced: bool, step: _core.Step | None) -> Token:
        self.out.append(token)
        self.forced += forced
        data = self._bytes(token)
        return Token(token, data, self.text.push(data), forced, step)

    def _over(self) -> str | None:
        """Why the output is over as far as it was told, or None. The decoder may be some forced tokens
        ahead."""
        if self.text.stopped is not None:
            return "stop"
        if self.decoder.is_finished and len(self.out) == len(self.decoder.tokens):
            return self.decoder.finish_reason
        return "max_tokens" if len(self.out) >= self.max_tokens else None

    def _finish(self, reason: str) -> Finish:
        seconds = time.perf_counter() - self.began
        tail, n = self.text.end(), len(self.out)
        thoughts = self.constraint.reasoning_tokens(self.out)
        stats = Stats(
            prompt_tokens=len(self.prompt),
            reused_tokens=self.reused,
            output_tokens=n,
            sampled_tokens=n - self.forced,
            forced_tokens=self.forced,
            forward_passes=self.passes,
            passes_saved=self.forced,
            seconds=seconds,
            prefill_seconds=self.prefill,
            tokens_per_second=n / seconds if n else 0.0,
            seed=self.seed,
            reasoning_tokens=thoughts,
        )
        tokens, text = tuple(self.out), self.text.text
        over = reason in ("constraint", "end_of_generation")
        answer = self._text(tokens[thoughts:]) if thoughts else text
        choice = self.constraint.name(tokens[thoughts:], answer) if over else None
        return Finish(reason, text, tail, tokens, choice, stats)

    def _text(self, tokens: Sequence[int]) -> str:
        """What is shown of these tokens."""
        return b"".join(self._bytes(token) for token in tokens).decode("utf-8", "replace")

    def _bytes(self, token: int) -> bytes:
        vocabulary = self.engine.vocabulary
        return vocabulary[token] if vocabulary.kind(token) in _TEXT else b""
