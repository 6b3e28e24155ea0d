"""What requests mean: each becomes rows of the decoding loop, and the answer that their events make."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple

from .. import _core
from .._choose import choose
from .._core import Constraint
from .._errors import EngineError
from .._generate import prepare
from .._loop import checked_prompt
from .._row import Row
from ..engines import ContextFull, Engine
from ..engines._chat import MakeReader, Parts, respond, tools_asked
from ..engines._messages import read_messages
from ..engines._session import as_session
from ..protocols import Protocol
from ..speculation import NGramDrafter
from . import _beams, _tools
from ._answers import Answer, Chat, Chunk, Completion, LlamaCompletion, finite
from ._fields import SAMPLING, Fields, RequestError, constraint_asked, renamed
from ._limits import Limits
from ._responses import Responses, as_chat
from ._traced import Traced, children

MAX_SEED = 2**32 - 1
_TRACED = 256
"""Tokens of a traced output where a request does not say."""

_LLAMA_IGNORED = ("cache_prompt", "id_slot", "samplers", "timings_per_token")
"""Fields of llama.cpp's requests that change no token here."""


class Prepared(NamedTuple):
    """A request that was read."""

    answer: Answer
    """Takes the events of its rows, which are to be decoded."""
    stream: bool
    search: Generator[None, None, None] | None = None
    """Steps to be taken between two passes, after which the rows are over; None: the rows are to be decoded."""


class Service:
    """Reads requests for one engine. Its methods may run in several threads.

    Args:
        engine: runs the model.
        name: what answers call the model.
        limits: what a request may take.
        catalogues: files of catalogues by the names that requests give them.
    """

    def __init__(self, engine: Engine, name: str, limits: Limits, catalogues: Mapping[str, str]) -> None:
        self.engine, self.name, self.limits = engine, name, limits
        self._catalogues = catalogues
        self.protocol: Protocol | None = None
        """The form of the model's responses; None: its template's is not known."""
        if engine.has_chats:
            with contextlib.suppress(_core.LogitreeError, ImportError):
                self.protocol = Protocol.of(engine)

    def chat(self, body: Mapping[str, Any]) -> Prepared:
        """A request for a chat completion.

        Raises:
            RequestError, LogitreeError: it cannot be honoured.
        """
        fields, limits = Fields(renamed(body)), self.limits
        messages = fields.objects("messages", limits.messages)
        if not messages:
            raise RequestError("messages is empty: give at least one", "messages")
        n, stream, usage = self._common(fields)
        wants_logprobs, top = fields.flag("logprobs"), fields.whole("top_logprobs", 0, 0, limits.logprobs)
        logprobs = top if wants_logprobs else None
        beams = _beams.asked(fields, self.limits, self.engine, n, stream=stream, logprobs=logprobs)
        if beams is None and fields.take("best_of") is not None:
            raise RequestError("best_of of a chat: give use_beam_search too", "best_of")
        given = {"tools": fields.objects("tools", limits.tools), "tool_choice": fields.take("tool_choice")}
        tools, choice = tools_asked(given)
        parallel = fields.flag("parallel_tool_calls", True)
        options = self._options(fields, logprobs, None)
        answer = constraint_asked(fields, self._catalogues)
        reasoning = self._reasoning(fields)
        constraint, read, shown = self._response(answer, tools, choice, parallel, reasoning, options["stop"])
        fields.finish()
        tokens = self._encoded(messages, shown)
        rows = self._rows(tokens, constraint, n, options)
        chat = Chat(rows, self.name, self.engine.vocabulary, usage=usage, answers=n, read=read)
        return Prepared(chat, stream, None if beams is None else _beams.search(self.engine, rows, beams))

    def response(self, body: Mapping[str, Any]) -> Prepared:
        """A request of the responses API. Raises as `chat`."""
        asked = as_chat(body)
        made = self.chat(asked)
        chat = made.answer
        assert isinstance(chat, Chat)
        return Prepared(Responses(chat, body), made.stream, made.search)

    def completion(self, body: Mapping[str, Any]) -> Prepared:
        """A request for completions of texts or tokens. Raises as `chat`."""
        fields = Fields(renamed(body))
        prompts = self._prompts(fields.take("prompt"))
        n, stream, usage = self._common(fields)
        logprobs = fields.whole("logprobs", None, 0, self.limits.logprobs)
        beams = _beams.asked(fields, self.limits, self.engine, n, stream=stream, logprobs=logprobs)
        tried = n if beams is not None else fields.whole("best_of", n, 1, self.limits.answers)
        assert tried is not None
        if tried < n or (stream and tried > n):
            message = (
                f"best_of is {tried} and n is {n}" if tried < n else "best_of: what is chosen last is not streamed"
            )
            raise RequestError(message, "best_of")
        if fields.text("suffix"):
            raise RequestError("suffix: this server fills nothing in", "suffix")
        echo = fields.flag("echo")
        options = self._options(fields, logprobs, 16)
        if tried > n and logprobs is None:
            options["logprobs"] = 0
        constraint = constraint_asked(fields, self._catalogues)
        fields.finish()
        rows: list[Row] = []
        for prompt in prompts:
            rows += self._rows(self._tokens(prompt), constraint, tried, options)
        shown = [self._text(prompt) for prompt in prompts for _ in range(tried)] if echo else None
        answer = Completion(
            rows,
            self.name,
            self.engine.vocabulary,
            usage=usage,
            answers=tried,
            echo=shown,
            best=n,
            logprobs=logprobs is not None,
        )
        return Prepared(answer, stream, None if beams is None else _beams.search(self.engine, rows, beams))

    def llama_completion(self, body: Mapping[str, Any]) -> Prepared:
        """A request for llama.cpp's own completions. Raises as `chat`."""
        given = {name: value for name, value in renamed(body).items() if name not in _LLAMA_IGNORED}
        if given.get("max_tokens") == -1:
            del given["max_tokens"]
        fields = Fields(given)
        self._check_model(fields)
        prompts, several = self._prompts_of_llama(fields.take("prompt"))
        stream, tokens = fields.flag("stream"), fields.flag("return_tokens")
        most, is_final = fields.whole("n_probs", 0, 0, self.limits.logprobs), fields.flag("post_sampling_probs")
        shown = fields.texts("response_fields", 64)
        options = self._options(fields, most or None, None)
        constraint = constraint_asked(fields, self._catalogues)
        fields.finish()
        rows = [row for prompt in prompts for row in self._rows(self._tokens(prompt), constraint, 1, options)]
        asked = {name: given[name] for name in SAMPLING if name in given}
        probs = ("final" if is_final else "model") if most else ""
        answer = LlamaCompletion(
            rows,
            self.name,
            self.engine.vocabulary,
            asked=asked,
            probs=probs,
            tokens=tokens,
            fields=shown,
            several=several,
        )
        return Prepared(answer, stream=stream)

    def template(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The prompt that messages are, as llama.cpp's server gives it. Raises as `chat`."""
        fields = Fields(body)
        messages = fields.objects("messages", self.limits.messages)
        fields.finish()
        if not messages:
            raise RequestError("messages is empty: give at least one", "messages")
        return {"prompt": self._text(self._encoded(messages, lambda messages: (messages, ())))}

    def trace(self, body: Mapping[str, Any]) -> Prepared:
        """A request for the trace of one output, as far as its `tokens` do not give it. Raises as `chat`."""
        fields = Fields(renamed(body))
        self._check_model(fields)
        stream = fields.flag("stream")
        row, given = self._traced(fields)
        answer = Traced([row], self.name, self.engine.vocabulary, given=given)
        return Prepared(answer, stream=stream)

    def allowed(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """What may come next after the `tokens` of an output: a node of the tree of the allowed tokens. Raises as
        `chat`."""
        fields = Fields(renamed(body))
        self._check_model(fields)
        prefix = fields.text("prefix", "") or ""
        row, _ = self._traced(fields)
        try:
            start = bytes.fromhex(prefix)
        except ValueError:
            raise RequestError(f"prefix is {prefix!r:.60}: give bytes in hexadecimal digits", "prefix") from None
        decoder = row.decoder
        tokens: Sequence[int] = () if decoder.is_finished else decoder.allowed().ids.tolist()
        return {"finished": decoder.is_finished, **children(self.engine.vocabulary, tokens, start)}

    def lens(self, body: Mapping[str, Any]) -> Generator[None, None, Chunk]:
        """A request for what each layer of the model says comes after the `tokens` of an output: steps that find it.
        Raises as `chat`."""
        fields = Fields(body)
        self._check_model(fields)
        read, begun = self._read_traced(fields)
        top = fields.whole("top", 5, 1, max(1, self.limits.logprobs))
        fields.finish()
        assert top is not None
        if not self.engine.has_lens:
            raise RequestError(
                "this engine does not see the model's layers: start the server with --engine transformers"
            )
        tokens = checked_prompt([*read(), *begun], self.engine)
        vocabulary = self.engine.vocabulary

        def likely(token: int, logprob: float) -> Chunk:
            data = vocabulary[token] if token < len(vocabulary) else b""
            return {
                "id": token,
                "text": data.decode("utf-8", "replace"),
                "bytes": data.hex(),
                "logprob": finite(logprob),
            }

        def seen() -> Generator[None, None, Chunk]:
            yield
            try:
                layers = self.engine.lens(tokens, top)
            except ContextFull:
                raise RequestError("the prompt and the tokens do not fit into the context", "tokens") from None
            except EngineError as wrong:
                raise RequestError(str(wrong)) from wrong
            return {"layers": [[likely(*one) for one in layer] for layer in layers]}

        return seen()

    def _read_traced(self, fields: Fields) -> tuple[Callable[[], list[int]], list[int]]:
        """What reads the prompt of a request that is traced, and the tokens that its output begins with."""
        messages, prompt = fields.objects("messages", self.limits.messages), fields.take("prompt")
        if bool(messages) == (prompt is not None):
            raise RequestError("give either messages or a prompt", "messages")
        begun = fields.take("tokens", [])
        if not isinstance(begun, list) or not all(self._is_token(token) for token in begun):
            raise RequestError("tokens: give a list of token ids of the vocabulary", "tokens")
        if messages:
            return lambda: self._encoded(messages, lambda messages: (messages, ())), begun
        return lambda: self._tokens(*self._prompts(prompt)), begun

    def _traced(self, fields: Fields) -> tuple[Row, int]:
        """The row of a request that is traced, and how many tokens its output begins with."""
        read, begun = self._read_traced(fields)
        options = self._options(fields, None, _TRACED)
        options["max_tokens"] += len(begun)
        constraint = constraint_asked(fields, self._catalogues)
        fields.finish()
        (row,) = self._rows(read(), constraint, 1, {**options, "trace": True, "heal": False})
        try:
            row.begin_with(begun)
        except _core.TokenError as wrong:
            raise RequestError(str(wrong), "tokens") from wrong
        return row, len(begun)

    def classification(self, body: Mapping[str, Any]) -> Generator[None, None, list[Chunk]]:
        """A request for the label of each of some texts: steps that find them. Raises as `chat`."""
        fields = Fields(body)
        texts, labels = fields.texts("input", self.limits.prompts), fields.texts("labels", self.limits.labels)
        instructions = fields.text("instructions") or f"Which of these is it: {', '.join(labels)}?"
        self._check_model(fields)
        fields.finish()
        for name, given in (("input", texts), ("labels", labels)):
            if not given:
                raise RequestError(f"{name} is empty: give at least one", name)
        if len(set(labels)) < len(labels):
            raise RequestError("labels: one comes twice", "labels")
        prompts = [checked_prompt(self._question(instructions, text), self.engine) for text in texts]

        def labelled() -> Generator[None, None, list[Chunk]]:
            made: list[Chunk] = []
            for index, prompt in enumerate(prompts):
                yield from self._remembered(prompt)
                chosen = choose(self.engine, prompt, labels, method="exact")
                assert chosen.probabilities is not None
                each = dict(zip(labels, map(float, chosen.probabilities), strict=True))
                label = str(chosen.value)
                made.append({"index": index, "label": label, "probability": each[label], "probabilities": each})
                yield
            return made

        return labelled()

    def _remembered(self, prompt: Sequence[int]) -> Generator[None, None, None]:
        """Evaluates a prompt that is longer than a pass, in steps of one pass, and leaves it in the engine's memory."""
        grain, rest = self.engine.n_batch, list(prompt)
        if grain is None or len(rest) <= grain:
            return
        session = as_session(self.engine.session())
        try:
            del rest[: session.begin(rest)]
            while len(rest) > grain:
                session.evaluate(rest[:grain])
                del rest[:grain]
                yield
        finally:
            session.close()

    def tokenize(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The tokens of a text, as llama.cpp's server gives them. Raises as `chat`."""
        fields = Fields(body)
        text = fields.text("content", "") or ""
        special, pieces = fields.flag("add_special"), fields.flag("with_pieces")
        fields.take("parse_special")
        fields.finish()
        tokens = self.engine.encode(text, chat=False) if special else self._tokenized(text)
        if not pieces:
            return {"tokens": tokens}
        return {"tokens": [{"id": token, "piece": _piece(self.engine.vocabulary[token])} for token in tokens]}

    def detokenize(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The text of tokens. Raises as `chat`."""
        fields = Fields(body)
        tokens = fields.take("tokens", [])
        fields.finish()
        if not isinstance(tokens, list) or not all(self._is_token(token) for token in tokens):
            raise RequestError("tokens: give a list of token ids of the vocabulary", "tokens")
        return {"content": self._text(tokens)}

    # -- parts of requests

    def _common(self, fields: Fields) -> tuple[int, bool, bool]:
        """How many answers, whether they are streamed, and whether the stream ends with what they cost."""
        self._check_model(fields)
        n = fields.whole("n", 1, 1, self.limits.answers)
        stream = fields.flag("stream")
        options = fields.take("stream_options", {})
        usage = isinstance(options, Mapping) and options.get("include_usage") is True
        assert n is not None
        return n, stream, usage

    def _check_model(self, fields: Fields) -> None:
        model = fields.text("model")
        if model not in (None, "", self.name):
            raise RequestError(f"there is no model {model!r}: this server has {self.name!r}", "model", 404)

    def _question(self, instructions: str, text: str) -> list[int]:
        """The prompt after which a label comes."""
        if not self.engine.has_chats:
            return self.engine.encode(f"{instructions}\n{text}\n", chat=False)
        return self.engine.encode_chat([{"role": "system", "content": instructions}, {"role": "user", "content": text}])

    def _options(self, fields: Fields, logprobs: int | None, max_tokens: int | None) -> dict[str, Any]:
        """The keywords of `prepare`."""
        on_limit = fields.text("on_limit", "keep")
        if on_limit not in ("keep", "close"):
            raise RequestError(f'on_limit is {on_limit!r:.60}: give "keep" or "close"', "on_limit")
        sampling = fields.sampling()
        outside = [token for token in sampling.get("logit_bias", ()) if not self._is_token(token)]
        if outside:
            raise RequestError(f"logit_bias: token {outside[0]} is outside the vocabulary", "logit_bias")
        return {
            "max_tokens": fields.whole("max_tokens", max_tokens, 1, 1 << 30),
            "seed": fields.whole("seed", None, -1, MAX_SEED),
            "stop": fields.texts("stop", self.limits.stops),
            "tokenization": fields.text("tokenization", "auto"),
            "on_limit": on_limit,
            "logprobs": logprobs,
            "force": logprobs is None,
            "drafter": self._drafter(fields.take("prediction")),
            **sampling,
        }

    def _drafter(self, prediction: Any) -> NGramDrafter | None:
        """What proposes the text that a request expects, as OpenAI's predicted outputs have it."""
        if prediction is None:
            return None
        given = prediction if isinstance(prediction, Mapping) and prediction.get("type", "content") == "content" else {}
        try:
            (message,) = read_messages([{"role": "assistant", "content": given.get("content")}])
        except (TypeError, EngineError):
            raise RequestError(
                f'prediction is {prediction!r:.60}: give {{"type": "content", "content": text}}', "prediction"
            ) from None
        tokenize = self.engine.tokenize
        if tokenize is None:
            return None
        # No output is longer than the context.
        return NGramDrafter(sources=[tokenize(message["content"])[: self.engine.n_ctx]])

    def _reasoning(self, fields: Fields) -> int | None:
        """The most tokens of reasoning that a chat may have; None: any number."""
        budget = fields.whole("reasoning_budget", None, 0, 1 << 30)
        effort = fields.text("reasoning_effort")
        if effort is None:
            return budget
        if effort != "none":
            message = f'reasoning_effort is {effort!r:.60}: give "none", or reasoning_budget, a number of tokens'
            raise RequestError(message, "reasoning_effort")
        if budget:
            raise RequestError("both reasoning_effort and reasoning_budget: give one of them", "reasoning_budget")
        has_none = self.protocol is None or self.protocol.reasoning is None
        return None if has_none else 0

    def _response(
        self,
        answer: Constraint | None,
        tools: Sequence[Any],
        choice: str,
        parallel: bool,
        reasoning: int | None,
        stop: Sequence[str],
    ) -> tuple[Constraint | None, MakeReader | None, Callable[[Any], Any]]:
        """The constraint of a chat, what reads its tokens, and the messages and tools that the template is shown."""
        protocol, vocabulary = self.protocol, self.engine.vocabulary
        knows_calls = protocol is not None and protocol.calls is not None
        called = () if choice == "none" else tools
        form = protocol if knows_calls or not called else _tools.FORM
        try:
            constraint, read = respond(
                answer, called, choice, form, vocabulary, stop, parallel=parallel, reasoning=reasoning
            )
        except _core.ConstraintError as wrong:
            param = "tools" if called else None if reasoning is None else "reasoning_budget"
            raise RequestError(str(wrong), param) from wrong
        if read is None and form is not None and form.reasoning is not None:
            known = form
            read = lambda of: Parts(of, lambda: known.parser(vocabulary, prompt=of.prompt), stop)  # noqa: E731
        if knows_calls:
            return constraint, read, lambda messages: (_tools.with_objects(messages), called)
        return constraint, read, lambda messages: (_tools.with_tools(messages, called), ())

    def _encoded(self, messages: Sequence[Any], shown: Callable[[Any], Any]) -> list[int]:
        try:
            written, tools = shown(messages)
            return self.engine.encode_chat(written, tools=tools)
        except TypeError as wrong:
            raise RequestError(str(wrong), "messages") from None

    def _rows(self, tokens: list[int], constraint: Constraint | None, n: int, options: Mapping[str, Any]) -> list[Row]:
        try:
            return prepare(self.engine, tokens, constraint, n=n, **options)[1]
        except TypeError as wrong:
            raise RequestError(str(wrong)) from None

    def _prompts(self, given: Any) -> list[Any]:
        """Texts or lists of tokens."""
        several = given if isinstance(given, list) and given and not isinstance(given[0], int) else [given]
        for prompt in several:
            is_tokens = isinstance(prompt, list) and prompt and all(self._is_token(token) for token in prompt)
            if not is_tokens and not (isinstance(prompt, str) and prompt):
                raise RequestError(f"prompt is {json.dumps(prompt)[:60]}: give a text or token ids", "prompt")
        if len(several) > self.limits.prompts:
            raise RequestError(f"{len(several)} prompts: give at most {self.limits.prompts}", "prompt")
        return several

    def _prompts_of_llama(self, given: Any) -> tuple[list[Any], bool]:
        """Prompts as llama.cpp takes them, and whether they are a list: a list of tokens and texts is one prompt."""
        if isinstance(given, list) and any(self._is_token(part) for part in given):
            if not all(self._is_token(part) or isinstance(part, str) for part in given):
                raise RequestError(
                    "prompt: a list with token ids may have token ids and texts in it, and nothing else", "prompt"
                )
            return [[token for part in given for token in self._parts(part)]], False
        return self._prompts(given), isinstance(given, list)

    def _parts(self, part: Any) -> list[int]:
        return [part] if isinstance(part, int) else self._tokenized(part)

    def _is_token(self, token: Any) -> bool:
        return type(token) is int and 0 <= token < len(self.engine.vocabulary)

    def _tokens(self, prompt: Any) -> list[int]:
        return self.engine.encode(prompt, chat=False) if isinstance(prompt, str) else list(prompt)

    def _text(self, prompt: Any) -> str:
        if isinstance(prompt, str):
            return prompt
        return b"".join(self.engine.vocabulary[token] for token in prompt).decode("utf-8", "replace")

    def _tokenized(self, text: str) -> list[int]:
        if self.engine.tokenize is None:
            raise EngineError("the engine has no tokenizer")
        return list(self.engine.tokenize(text))


def _piece(data: bytes) -> str | list[int]:
    """A token's text, or its bytes where they are no text, as llama.cpp's server gives them."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return list(data)
