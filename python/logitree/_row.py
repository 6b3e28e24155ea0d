"""One sequence of a decoding loop: what it was given, the tokens that it took, and the events that say so."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _core
from ._certain import Speller
from ._constraint import Context
from ._core import Constraint
from ._drafts import Drafts
from ._errors import IncompleteError, error
from ._events import Event, Finish, LogProbs, Source, Stats, Token
from ._kinds import shown_bytes
from ._spans import SpanStream
from ._spelling import Tokenization, explained
from ._text import TextStream
from .engines import Logits

OnStep = Callable[[_core.Decoder, Logits], None]
"""Called before each token that is sampled, with the decoder, which it may steer, set and adapt, and the model's
logits: float32 [V], read-only, valid during the call."""


@dataclass(frozen=True, slots=True)
class Options:
    """What all rows of a loop have in common."""

    max_tokens: int
    on_limit: str
    """"keep", "raise" or "close"."""
    force: bool
    trace: bool
    on_step: OnStep | None
    tokenization: Tokenization = "any"
    logprobs: int | None = None
    """How many of the likeliest tokens each sampled token comes with; None: no log-probabilities."""


@dataclass(slots=True)
class Taken:
    """A token that the decoder has taken, and no event has said so yet."""

    token: int
    source: Source
    step: _core.Step | None
    logprobs: LogProbs | None = None


@dataclass
class Row:
    """One sequence: what it was given, and what it has done so far."""

    decoder: _core.Decoder
    context: Context
    text: TextStream
    constraint: Constraint | None
    seed: int | None
    options: Options
    unseen: list[int]
    """Tokens that the model has not evaluated yet, the prompt at first."""
    prompt: list[int]
    """The tokens before the output, as the model reads them."""
    healing: bytes = b""
    """Text that was taken back from the prompt, and that tokens have not spelled again yet."""
    after: _core.Matcher | None = None
    """What constrains the tokens after that text, where it is no part of the decoder's constraint."""
    is_canonical: bool = False
    """Whether the constraint allows the tokenizer's own spelling alone."""
    speller: Speller | None = None
    """The model's own tokens of certain text, where it is asked for."""
    drafts: Drafts | None = None
    """What proposes tokens, where something does."""
    spans: SpanStream | None = None
    """The spans of a skeleton."""
    cancelled: bool = False
    events: list[Event] = field(default_factory=list)
    out: list[int] = field(default_factory=list)
    sources: Counter[Source] = field(default_factory=Counter)
    """How many tokens came how."""
    respelled: Counter[Source] = field(default_factory=Counter)
    """The same of tokens that spelled text of the prompt, and are no part of the output."""
    forced: int = 0
    logprob: float = 0.0
    logprob_tokens: int = 0
    passes: int = 0
    reused: int = 0
    began: float = 0.0
    prefill: float = 0.0
    to_prefill: int = 0
    """Tokens before the first that is sampled, without those that memory held."""
    finish: Finish | None = None
    error: BaseException | None = None
    """What ended the row instead of a `Finish`."""

    @property
    def over(self) -> bool:
        """Whether the row takes no more tokens."""
        return self.finish is not None or self.error is not None

    @property
    def taken(self) -> int:
        """How many of the decoder's tokens have been put."""
        return self.respelled.total() + len(self.out)

    def bytes(self, token: int) -> bytes:
        """What is shown of a token."""
        return shown_bytes(self.context.vocabulary, token)

    def shown(self, tokens: Sequence[int]) -> str:
        """What is shown of these tokens."""
        return b"".join(map(self.bytes, tokens)).decode("utf-8", "replace")

    def fail(self, raised: Exception) -> None:
        """Ends the row with an error."""
        self.error = explained(raised) if self.is_canonical else raised

    def begin_with(self, tokens: Sequence[int]) -> None:
        """Begins the output with these tokens, before the row joins a loop.

        Raises:
            TokenError: one of them is not allowed.
        """
        for at, token in enumerate(tokens):
            if self.decoder.is_finished:
                raise error(_core.TokenError, f"the output is over before token {at}", help="give fewer tokens")
            self.decoder.accept(token)
            self._put(Taken(token, "external", self._last_step()))
            self.unseen.append(token)

    def answer_start(self) -> int:
        """How many of the output's first tokens are not part of the answer."""
        return 0 if self.constraint is None else self.constraint.answer_start(self.out, self.context)

    def meaning(self, tokens: Sequence[int], answer: str) -> Any:
        """What tokens that a constraint has ended mean under it; without one, the answer. `answer`: their text, less
        that of a reasoning block."""
        if self.constraint is None:
            return answer
        value = self.constraint.read(tokens, self.context)
        if value is NotImplemented:
            value = self.constraint.value(answer, tokens[self.constraint.answer_start(tokens, self.context) :])
        return value

    def sampled(self, logits: Logits) -> list[Taken]:
        """One token that the chain picks, and all that need no logits after it."""
        return self.picked(self.decoder.step(logits))

    def picked(self, token: int) -> list[Taken]:
        """A token that the chain has picked, and all that need no logits after it."""
        return self.settled([Taken(token, "sampled", self._last_step(), self._last_logprobs())])

    def settled(self, taken: list[Taken]) -> list[Taken]:
        """These tokens, which the decoder has taken last, and all that need no logits after them.

        The ends of text that is certain may replace the last of them.
        """
        if not self.options.force:
            return taken
        source: Source = "canonical" if self.is_canonical else "forced"
        while True:
            # First what may replace the last token: forced tokens would come between the two.
            if self.speller is not None and self._fast_forward(self.speller, taken):
                continue
            tokens = self.decoder.take_forced()
            steps = self.decoder.last_steps(len(tokens)) if self.options.trace else [None] * len(tokens)
            taken += [Taken(token, source, step) for token, step in zip(tokens, steps, strict=True)]
            if self.speller is None or not tokens:
                return taken

    def _fast_forward(self, speller: Speller, taken: list[Taken]) -> bool:
        """Takes the tokens of text that is certain, in place of some of `taken` where a longer one crosses their end.
        False: there is none, or what there is has to be left to the model."""
        decoder = self.decoder
        matcher = decoder.matcher
        if matcher is None or decoder.is_finished:
            return False
        text, _ = matcher.certain_bytes()
        held = [*self.prompt, *self.out, *(one.token for one in taken)]
        back, tokens = speller.spell(held, len(taken), text)
        if not tokens:
            return False
        matcher.rollback(back)
        # The last tokens may be the beginning of longer ones, which only the model can decide.
        tokens = tokens[: matcher.count_closed(tokens)]
        if len(tokens) <= back or any(decoder.vetoes(token) for token in tokens):
            return False
        decoder.rollback(back)
        del taken[len(taken) - back :]
        for token in tokens:
            decoder.accept(token)
            taken.append(Taken(token, "fast_forward", self._last_step()))
            if decoder.finish_reason is not None:
                break
        return True

    def _last_step(self) -> _core.Step | None:
        return self.decoder.last if self.options.trace else None

    def _last_logprobs(self) -> LogProbs | None:
        if self.options.logprobs is None:
            return None
        logprobs = self.decoder.last_logprobs
        if logprobs is None:
            return None
        model, top, final, final_top = logprobs
        return LogProbs(model, tuple(top), final, tuple(final_top))

    def put(self, taken: Sequence[Taken]) -> None:
        """Makes the events of tokens, as many as `max_tokens` and stop strings allow."""
        for one in taken:
            self._put(one)
            self.check()
            if self.over:
                return

    def _put(self, one: Taken) -> None:
        data = self.bytes(one.token)
        if self.healing:
            rest = data[len(self.healing) :]
            self.healing = self.healing[len(data) :]
            if not self.healing:
                self._healed()
            if not rest:
                self._respell(one)
                return
            data = rest
        self.out.append(one.token)
        event = Token(one.token, data, self.text.push(data), one.step, one.source, one.logprobs)
        self.forced += event.forced
        self.sources[one.source] += 1
        self.events.append(event)
        if one.logprobs is not None:
            self.logprob += one.logprobs.model
            self.logprob_tokens += 1
        if self.spans is not None:
            self.events += self.spans.token(self.decoder, data)

    def _respell(self, one: Taken) -> None:
        """A token that spells text of the prompt alone: it belongs to the prompt."""
        self.prompt.append(one.token)
        self.respelled[one.source] += 1
        if self.spans is not None:
            self.events += self.spans.token(self.decoder, self.bytes(one.token))

    def _healed(self) -> None:
        """The text of the prompt is spelled: what constrains the output is left alone."""
        if self.after is not None:
            self.decoder.activate(self.after, then="stop")
        elif self.constraint is None:
            self.decoder.clear()

    def check(self) -> None:
        """Ends the row if it is over as far as its events go; the decoder may be some tokens ahead."""
        if self.text.stopped is not None:
            self.end("stop")
        elif self.decoder.is_finished and self.taken == len(self.decoder.tokens):
            self.end(self.decoder.finish_reason or "constraint")
        elif len(self.out) >= self.options.max_tokens:
            self._limit()

    def _limit(self) -> None:
        """`max_tokens` is reached: keeps the output, raises, or closes it."""
        decoder, options = self.decoder, self.options
        decoder.rollback(len(decoder.tokens) - self.taken)
        matcher = None if self.healing and self.constraint is None else decoder.matcher
        if matcher is None or options.on_limit == "keep" or matcher.is_accepting:
            self.end("max_tokens", complete=matcher is not None and matcher.is_accepting)
            return
        if options.on_limit == "raise":
            self.error = IncompleteError(
                f"max_tokens is {options.max_tokens}, and the output is not complete",
                place=repr(self.text.text[-40:]),
                help='give more, or on_limit="close"',
            )
            return
        while matcher is not None and not matcher.is_accepting:
            for token in matcher.shortest_ending():
                decoder.accept(token)
                self._put(Taken(token, "forced", None))
            matcher = decoder.matcher
        self.end("closed")

    def _saved(self) -> dict[Source, int]:
        """Forward passes that were not needed, by the source of the tokens that saved them."""
        asked = ("sampled", "external")
        saved = {source: count for source, count in self.sources.items() if source not in asked}
        # A sampled token that a longer one replaced had its pass.
        replaced = self.passes - self.sources["sampled"] - self.respelled["sampled"]
        if "fast_forward" in saved and replaced > 0:
            saved["fast_forward"] -= replaced
        return {source: count for source, count in saved.items() if count > 0}

    def end(self, reason: str, *, complete: bool = False) -> None:
        """Makes the last event."""
        seconds, n = time.perf_counter() - self.began, len(self.out)
        tail = self.text.end()
        stats = Stats(
            prompt_tokens=len(self.prompt),
            reused_tokens=self.reused,
            output_tokens=n,
            sampled_tokens=n - self.forced,
            forced_tokens=self.forced,
            forward_passes=self.passes,
            seconds=seconds,
            prefill_seconds=self.prefill,
            tokens_per_second=n / seconds if n else 0.0,
            seed=self.seed,
            reasoning_tokens=self.answer_start(),
            passes_saved=self._saved(),
            logprob=None if self.options.logprobs is None else self.logprob,
            logprob_tokens=self.logprob_tokens,
            mask_seconds=self.decoder.mask_seconds,
        )
        ended = ("constraint", "end_of_generation", "closed")
        complete = complete or reason in ended or (reason == "stop" and self.constraint is None)
        if self.spans is not None and complete:
            self.events += self.spans.end(self.decoder)
        self.finish = Finish(reason, self.text.text, tail, tuple(self.out), complete, stats)
        self.events.append(self.finish)
