"""What clients get: the events of rows as chat completions and completions of OpenAI's API, and as llama.cpp's."""

from __future__ import annotations

import json
import math
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .. import _core
from .._events import Event, Finish, LogProbs, Token
from .._row import Row
from ..engines._chat import MakeReader, Reader, Written, finish_reason, identified

Chunk = dict[str, Any]

_REASONS = {"max_tokens": "length", "context_full": "length"}
"""OpenAI's names of what ends an output; all others are "stop"."""


_IMPOSSIBLE = -9999.0
"""The log-probability of what cannot come, as OpenAI gives it."""


class Answer(ABC):
    """The answer to one request. Its rows are choices.

    Args:
        rows: what is decoded.
        model: the name that the answer gives the model.
        vocabulary: the model's.
        usage: whether a stream ends with what it cost.
        answers: how many rows, one after the other, have one prompt.
    """

    prefix: str
    """Of ids."""
    object: str
    """OpenAI's name of the kind of answer."""
    chunk_object: str
    """The same of a part of a stream."""
    ends_with_done: bool = True
    """Whether a stream ends with the line `[DONE]`."""

    def __init__(
        self, rows: Sequence[Row], model: str, vocabulary: _core.Vocabulary, *, usage: bool = False, answers: int = 1
    ) -> None:
        self.rows, self.model, self.vocabulary = rows, model, vocabulary
        self._wants_usage, self._answers = usage, answers
        self.id = f"{self.prefix}-{secrets.token_hex(12)}"
        self._created = int(time.time())
        self._finishes: dict[int, Finish] = {}

    def begin(self) -> Iterator[Chunk]:
        """The first parts of a stream."""
        yield from ()

    def take(self, at: int, event: Event) -> Iterator[Chunk]:
        """The parts of a stream that an event of row `at` brings."""
        if isinstance(event, Token):
            yield from self._token(at, event)
        elif isinstance(event, Finish):
            self._finishes[at] = event
            yield from self._finish(at, event)

    def end(self) -> Iterator[Chunk]:
        """The last parts of a stream, when all rows are over."""
        if self._wants_usage:
            yield self._chunk([]) | {"usage": self.usage()}

    @abstractmethod
    def whole(self) -> Chunk:
        """The answer as one object, when all rows are over."""

    @abstractmethod
    def _token(self, at: int, event: Token) -> Iterator[Chunk]:
        """The parts that a token brings."""

    @abstractmethod
    def _finish(self, at: int, event: Finish) -> Iterator[Chunk]:
        """The parts that the end of a row brings."""

    def usage(self) -> dict[str, Any]:
        """What the rows cost. A prompt with several answers counts once."""
        stats = [finish.stats for _, finish in sorted(self._finishes.items())]
        prompt = sum(one.prompt_tokens for one in stats[:: self._answers])
        made = sum(one.output_tokens for one in stats)
        is_predicted = any(row.drafts is not None and row.drafts.has_drafter for row in self.rows)
        drafted = sum(one.passes_saved.get("drafted", 0) for one in stats)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": made,
            "total_tokens": prompt + made,
            "prompt_tokens_details": {"cached_tokens": sum(one.reused_tokens for one in stats[:: self._answers])},
            "completion_tokens_details": {
                "reasoning_tokens": sum(one.reasoning_tokens for one in stats),
                "passes_saved": sum(sum(one.passes_saved.values()) for one in stats),
                "accepted_prediction_tokens": drafted if is_predicted else 0,
            },
        }

    def line(self, chunk: Chunk) -> str:
        """A part as a server-sent event."""
        return f"data: {json.dumps(chunk, ensure_ascii=False, allow_nan=False)}\n\n"

    def _head(self, kind: str) -> Chunk:
        return {"id": self.id, "object": kind, "created": self._created, "model": self.model}

    def _chunk(self, choices: list[Chunk]) -> Chunk:
        return {**self._head(self.chunk_object), "choices": choices}

    def _shown(self, token: int) -> str:
        return self.vocabulary[token].decode("utf-8", "replace")


class Completion(Answer):
    """Completions of text.

    `echo`: the prompts' texts, which come before the outputs; None: they do not. `best`: how many of each prompt's
    answers are given, those with the highest mean log-probability; None: all. `logprobs`: whether log-probabilities
    that rows have are given.
    """

    prefix, object, chunk_object = "cmpl", "text_completion", "text_completion"

    def __init__(
        self,
        *args: Any,
        echo: Sequence[str] | None = None,
        best: int | None = None,
        logprobs: bool = True,
        **named: Any,
    ) -> None:
        super().__init__(*args, **named)
        self._echo, self._best, self._shows_logprobs = echo, best or self._answers, logprobs
        self._texts = ["" for _ in self.rows]
        self._logprobs: list[list[tuple[Token, int]]] = [[] for _ in self.rows]

    def begin(self) -> Iterator[Chunk]:
        for at, text in enumerate(self._echo or ()):
            self._texts[at] = text
            yield self._chunk([self._choice(at, text, None)])

    def _token(self, at: int, event: Token) -> Iterator[Chunk]:
        self._logprobs[at].append((event, len(self._texts[at])))
        self._texts[at] += event.text
        if event.text or event.logprobs is not None:
            yield self._chunk([self._choice(at, event.text, None, self._logprobs[at][-1:])])

    def _finish(self, at: int, event: Finish) -> Iterator[Chunk]:
        self._texts[at] += event.tail
        yield self._chunk([self._choice(at, event.tail, _REASONS.get(event.reason, "stop"))])

    def whole(self) -> Chunk:
        choices: list[Chunk] = []
        for at in self._chosen():
            reason = _REASONS.get(self._finishes[at].reason, "stop")
            choices.append({**self._choice(at, self._texts[at], reason, self._logprobs[at]), "index": len(choices)})
        return {**self._head(self.object), "choices": choices, "usage": self.usage()}

    def _chosen(self) -> Iterator[int]:
        """The rows that are given."""
        for first in range(0, len(self.rows), self._answers):
            tried = range(first, first + self._answers)
            if self._best < self._answers:
                # Where the model was asked for nothing, everything was certain.
                mean = {at: self._finishes[at].stats.mean_logprob or 0.0 for at in tried}
                yield from sorted(tried, key=lambda at: -mean[at])[: self._best]
            else:
                yield from tried

    def _choice(self, at: int, text: str, reason: str | None, tokens: Sequence[tuple[Token, int]] = ()) -> Chunk:
        known = [
            (event, event.logprobs, offset)
            for event, offset in tokens
            if event.logprobs is not None and self._shows_logprobs
        ]
        logprobs = None
        if known:
            logprobs = {
                "tokens": [self._shown(event.token) for event, _, _ in known],
                "token_logprobs": [finite(found.model) for _, found, _ in known],
                "top_logprobs": [{self._shown(token): finite(p) for token, p in found.top} for _, found, _ in known],
                "text_offset": [offset for _, _, offset in known],
            }
        return {"index": at, "text": text, "logprobs": logprobs, "finish_reason": reason}


class Chat(Answer):
    """Chat completions, with reasoning and tool calls apart. `read`: what reads the tokens; None: they are text."""

    prefix, object, chunk_object = "chatcmpl", "chat.completion", "chat.completion.chunk"

    def __init__(self, *args: Any, read: MakeReader | None = None, **named: Any) -> None:
        super().__init__(*args, **named)
        self._written = [Written() for _ in self.rows]
        for written, row in zip(self._written, self.rows, strict=True):
            written.prompt = list(row.context.prompt)
        self._readers: list[Reader | None] = [None if read is None else read(one) for one in self._written]
        self._messages: list[Chunk] = [{"role": "assistant", "content": None} for _ in self.rows]
        self._logprobs: list[list[Chunk]] = [[] for _ in self.rows]

    def begin(self) -> Iterator[Chunk]:
        for at in range(len(self.rows)):
            yield self._part(at, {"role": "assistant", "content": ""})

    def _token(self, at: int, event: Token) -> Iterator[Chunk]:
        self._written[at].tokens.append(event.token)
        reader = self._readers[at]
        deltas: list[Chunk] = [{"content": event.text}]
        if reader is not None:
            deltas = list(reader.read(is_over=False))
        entry = None if event.logprobs is None else self._entry(event, event.logprobs)
        if entry is not None:
            self._logprobs[at].append(entry)
            deltas = deltas or [{}]
        for number, delta in enumerate(deltas):
            if delta.get("content") == "" and entry is None:
                continue
            yield self._part(at, self._put(at, delta), entry=entry if number == 0 else None)

    def _finish(self, at: int, event: Finish) -> Iterator[Chunk]:
        reader = self._readers[at]
        last = [{"content": event.tail}] if event.tail else []
        for delta in last if reader is None else reader.read(is_over=True):
            yield self._part(at, self._put(at, delta))
        yield self._part(at, {}, reason=self._reason(at))

    def whole(self) -> Chunk:
        choices = []
        for at, message in enumerate(self._messages):
            if "tool_calls" in message:
                calls = [{key: call[key] for key in call if key != "index"} for call in message["tool_calls"]]
                message = {**message, "tool_calls": calls}
            elif message["content"] is None:
                message = {**message, "content": ""}
            logprobs = {"content": self._logprobs[at]} if self._logprobs[at] else None
            choices.append({"index": at, "message": message, "logprobs": logprobs, "finish_reason": self._reason(at)})
        return {**self._head(self.object), "choices": choices, "usage": self.usage()}

    def _put(self, at: int, delta: Chunk) -> Chunk:
        """Adds a part to the message; the part, with ids of calls."""
        if "tool_calls" in delta:
            called = f"{self.id[-8:]}{at}"
            delta = {**delta, "tool_calls": [identified(call, called) for call in delta["tool_calls"]]}
        message = self._messages[at]
        for name, value in delta.items():
            message[name] = value if message.get(name) is None else message[name] + value
        return delta

    def _part(self, at: int, delta: Chunk, *, reason: str | None = None, entry: Chunk | None = None) -> Chunk:
        logprobs = None if entry is None else {"content": [entry]}
        return self._chunk([{"index": at, "delta": delta, "logprobs": logprobs, "finish_reason": reason}])

    def _reason(self, at: int) -> str:
        given, reader = _REASONS.get(self._finishes[at].reason, "stop"), self._readers[at]
        return given if reader is None else finish_reason(given, reader)

    def _entry(self, event: Token, found: LogProbs) -> Chunk:
        return {
            **self._likely(event.token, found.model),
            "final_logprob": finite(found.final),
            "top_logprobs": [self._likely(token, p) for token, p in found.top],
            "final_top_logprobs": [self._likely(token, p) for token, p in found.final_top],
        }

    def _likely(self, token: int, logprob: float) -> Chunk:
        return {"token": self._shown(token), "logprob": finite(logprob), "bytes": list(self.vocabulary[token])}


class LlamaCompletion(Answer):
    """llama.cpp's own completions (`POST /completion`).

    `asked`: what the request set. `probs`: the probabilities that tokens come with, "model" before the filters, "final"
    after them, or "". `tokens`: whether the whole answer has the tokens. `fields`: the fields of the whole answer that
    are given, such as "timings/prompt_n"; empty: all. `several`: whether the prompt was a list of prompts.
    """

    prefix, object, chunk_object = "llama", "", ""
    ends_with_done = False

    def __init__(
        self,
        *args: Any,
        asked: Mapping[str, Any],
        probs: str = "",
        tokens: bool = False,
        fields: Sequence[str] = (),
        several: bool = False,
        **named: Any,
    ) -> None:
        super().__init__(*args, **named)
        self._asked, self._shows, self._wants_tokens = asked, probs, tokens
        self._fields, self._several = fields, several
        self._texts = ["" for _ in self.rows]
        self._probabilities: list[list[Chunk]] = [[] for _ in self.rows]

    def _token(self, at: int, event: Token) -> Iterator[Chunk]:
        self._texts[at] += event.text
        made: Chunk = {"index": at, "content": event.text, "tokens": [event.token], "stop": False}
        if self._shows and event.logprobs is not None:
            found = self._probability(event.token, event.logprobs)
            self._probabilities[at].append(found)
            made["completion_probabilities"] = [found]
        yield made

    def _finish(self, at: int, event: Finish) -> Iterator[Chunk]:
        self._texts[at] += event.tail
        yield {**self._last(at, event), "content": event.tail, "tokens": []}

    def end(self) -> Iterator[Chunk]:
        yield from ()

    def whole(self) -> Any:
        answers = [self._whole(at) for at in range(len(self.rows))]
        return answers if self._several else answers[0]

    def _whole(self, at: int) -> Chunk:
        tokens = list(self._finishes[at].tokens) if self._wants_tokens else []
        made = {**self._last(at, self._finishes[at]), "content": self._texts[at], "tokens": tokens}
        if self._shows:
            made["completion_probabilities"] = self._probabilities[at]
        return {field: _inside(made, field) for field in self._fields} if self._fields else made

    def _last(self, at: int, event: Finish) -> Chunk:
        row, stats = self.rows[at], event.stats
        kind = {"max_tokens": "limit", "context_full": "limit", "stop": "word"}.get(event.reason, "eos")
        text = self._texts[at]
        return {
            "index": at,
            "stop": True,
            "stop_type": kind,
            "stopping_word": row.text.stopped or "",
            "has_new_line": "\n" in text,
            "truncated": event.reason == "context_full",
            "model": self.model,
            "prompt": "".join(map(self._shown, row.prompt)),
            "generation_settings": {"n_predict": row.options.max_tokens, **self._asked, "seed": stats.seed},
            "tokens_predicted": stats.output_tokens,
            "tokens_evaluated": stats.prompt_tokens,
            "tokens_cached": stats.reused_tokens,
            "timings": {
                "prompt_n": stats.prompt_tokens - stats.reused_tokens,
                "prompt_ms": stats.prefill_seconds * 1e3,
                "predicted_n": stats.output_tokens,
                "predicted_ms": (stats.seconds - stats.prefill_seconds) * 1e3,
                "predicted_per_second": stats.tokens_per_second,
            },
        }

    def _probability(self, token: int, found: LogProbs) -> Chunk:
        is_final = self._shows == "final"
        top = found.final_top if is_final else found.top
        made = self._named(token, found.final if is_final else found.model)
        made["top_probs" if is_final else "top_logprobs"] = [self._named(*one) for one in top]
        return made

    def _named(self, token: int, logprob: float) -> Chunk:
        value = {"prob": math.exp(logprob)} if self._shows == "final" else {"logprob": finite(logprob)}
        return {"id": token, "token": self._shown(token), "bytes": list(self.vocabulary[token]), **value}


def _inside(answer: Chunk, path: str) -> Any:
    """A field of an answer, by the names that lead to it; None where there is none."""
    found: Any = answer
    for name in path.split("/"):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def finite(logprob: float) -> float:
    """A log-probability as JSON can say it."""
    return max(logprob, _IMPOSSIBLE)
