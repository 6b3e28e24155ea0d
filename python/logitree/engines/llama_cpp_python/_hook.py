"""`llama_cpp.Llama` with a subclass's methods in the places where llama-cpp-python generates."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any

from ... import _core
from ..._constraint import Context, constraint_of
from ..._core import Constraint, Grammar
from ..._errors import EngineError
from ..._spelling import Tokenization, bind_spelled, read_tokenization
from .._chat import Request
from .._llama_cpp_threads import Cores, library
from .._requests import SECONDS
from ..llama_cpp import LlamaCpp
from ..llama_sampler import LlamaSampler
from ._chat import complete_chat

_METHODS = ("create_completion", "create_chat_completion", "generate", "eval", "sample", "_init_sampler")
"""What a supported `Llama` has."""


def hook(llm: Any, *, tokenization: Tokenization = "auto") -> Hook:
    """Puts logitree into the calls of a loaded `llama_cpp.Llama`; programs that use it stay as they are.

    ```text
    grammar=            a LlamaGrammar, or anything that `logitree.generate` takes as a constraint
    response_format=    "json_object" with or without "schema", and OpenAI's "json_schema"
    tools=              calls in the form of the model's own chat template, read back as "tool_calls"
    logits_processor=   runs before the constraint, and together with logit_bias
    ```

    `create_completion`, `create_chat_completion`, `generate` and the object as a function take them, in streams too.
    Forced tokens are evaluated together with the token before them. The samplers stay those of llama.cpp.

    Args:
        llm: the model.
        tokenization: which tokens spell constrained text, as of `logitree.generate`.

    Returns:
        What ends it again: `Hook.unhook`, or the end of a `with` statement.

    Raises:
        EngineError: it is no `llama_cpp.Llama` of a supported version, or it is hooked already.
        ConstraintError: an unknown tokenization.
    """
    llama_cpp = library()
    if not isinstance(llm, llama_cpp.Llama) or any(not callable(getattr(llm, name, None)) for name in _METHODS):
        help = "give a llama_cpp.Llama of llama-cpp-python 0.3.17 or newer"
        raise EngineError(f"cannot hook a {type(llm).__name__}", help=help)
    if _is_hooked(type(llm)):
        raise EngineError("this Llama is hooked already", help="once is enough; Hook.unhook ends it")
    kind: Any = type(llm)
    llm.__class__ = hooked(kind, read_tokenization(tokenization))

    def unhook() -> None:
        llm.__class__ = kind
        vars(llm).pop("_logitree", None)

    return Hook(unhook)


def hook_all(*, tokenization: Tokenization = "auto") -> Hook:
    """Puts a hooked class in the place of `llama_cpp.Llama`, for every model that is loaded after it.

    Names that were imported before, by `from llama_cpp import Llama`, stay what they are.

    Args:
        tokenization: as of `hook`.

    Raises:
        EngineError: llama-cpp-python is missing, or it is hooked already.
        ConstraintError: an unknown tokenization.
    """
    llama_cpp = library()
    kind = llama_cpp.Llama
    if _is_hooked(kind):
        raise EngineError("llama_cpp.Llama is hooked already", help="once is enough; Hook.unhook ends it")
    llama_cpp.Llama = hooked(kind, read_tokenization(tokenization))

    def unhook() -> None:
        llama_cpp.Llama = kind

    return Hook(unhook)


class Hook:
    """A hook until `unhook` or the end of a `with` statement."""

    def __init__(self, unhook: Callable[[], None]) -> None:
        self._unhook: Callable[[], None] | None = unhook

    def unhook(self) -> None:
        """Leaves everything as it was. A second time changes nothing."""
        if self._unhook is not None:
            self._unhook()
            self._unhook = None

    def __enter__(self) -> Hook:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.unhook()


@functools.cache
def hooked(kind: Any, tokenization: Tokenization) -> Any:
    """A subclass of `llama_cpp.Llama`, or of a class derived from it, that generates under logitree."""

    class Hooked(kind):  # type: ignore[misc]
        def create_completion(self, *args: Any, **named: Any) -> Any:
            if named.get("logits_processor") is not None:
                named["logits_processor"] = _Processors(named["logits_processor"])
            return super().create_completion(*args, **named)

        def create_chat_completion(self, *args: Any, **named: Any) -> Any:
            return complete_chat(
                self, lambda: model_of(self).engine.vocabulary, super().create_chat_completion, args, named
            )

        def generate(self, tokens: Sequence[int], *args: Any, grammar: Any = None, **named: Any) -> Any:
            if grammar is None:
                return (yield from super().generate(tokens, *args, **named))
            run = model_of(self).run(grammar, tokens)
            return (yield from run.generated(self, super().generate(tokens, *args, grammar=run, **named)))

        def _init_sampler(self, *args: Any, grammar: Any = None, **named: Any) -> Any:
            made = super()._init_sampler(*args, **named)
            if grammar is not None:
                run = grammar if isinstance(grammar, _Run) else model_of(self).run(grammar, ())
                run.place = run.sampler.add_to_llama(made)
            return made

        def eval(self, tokens: Sequence[int]) -> None:
            model = model_of(self)
            run = model.running
            with model.cores:
                super().eval(tokens if run is None else [*tokens, *run.forced(self, len(tokens))])

        def sample(self, *args: Any, idx: int | None = None, **named: Any) -> int:
            run = model_of(self).running
            if run is None or not run.skips or idx is None or idx + 1 >= self.n_tokens:
                return int(super().sample(*args, idx=idx, **named))
            token = int(self.input_ids[idx + 1])
            run.sampler.choose_alone(self._sampler, run.place, token)
            return token

    Hooked.__name__, Hooked.__qualname__ = kind.__name__, kind.__qualname__
    Hooked.__module__, Hooked.__doc__ = kind.__module__, kind.__doc__
    Hooked._logitree_tokenization = tokenization
    return Hooked


def _is_hooked(kind: type) -> bool:
    return hasattr(kind, "_logitree_tokenization")


class _Model:
    """What a hooked `Llama` has beside its own state."""

    def __init__(self, llm: Any) -> None:
        self.cores = Cores(llm.n_threads)
        self.running: _Run | None = None
        """The generation that is between two of its tokens now."""
        self._llm = llm
        self._tokenization: Tokenization = llm._logitree_tokenization

    @functools.cached_property
    def engine(self) -> LlamaCpp:
        """The model for what needs its vocabulary. Generations without a constraint do not."""
        return LlamaCpp(self._llm)

    def vocabulary(self) -> _core.Vocabulary:
        """The model's tokens."""
        return self.engine.vocabulary

    def run(self, grammar: Any, prompt: Sequence[int]) -> _Run:
        """A generation after a prompt.

        Raises:
            TypeError: the grammar means no constraint.
            ConstraintError, PayloadError, LimitError: it cannot be honoured with this vocabulary.
        """
        request = grammar if isinstance(grammar, Request) else Request(_constraint(grammar))
        request.prompt = list(prompt)
        context = Context(self.engine.vocabulary, self.engine.tokenize, request.prompt)
        with _core.Deadline(SECONDS):
            matcher, _ = bind_spelled(request.constraint, context, self.engine, self._tokenization, b"")
            matcher.allowed()
        return _Run(self, request, matcher)


def model_of(llm: Any) -> _Model:
    """What belongs to a hooked `Llama`, made when it is first needed."""
    found = vars(llm).get("_logitree")
    if found is None:
        found = llm._logitree = _Model(llm)
    made: _Model = found
    return made


class _Run:
    """One generation: its sampler in llama.cpp's chain, and the constraint's state beside it."""

    def __init__(self, model: _Model, request: Request, matcher: _core.Matcher) -> None:
        self.sampler = LlamaSampler(model.engine.vocabulary, matcher, mode="sample", prompt="accept")
        self.place = 0
        """The sampler's position in the chain."""
        self.skips = False
        """Whether what is evaluated beyond the last token is forced."""
        self._model, self._request, self._matcher = model, request, matcher.fork()
        self._ends = frozenset(model.engine.vocabulary.end_tokens)

    def generated(self, llm: Any, tokens: Any) -> Iterator[int]:
        """Passes on the tokens of llama-cpp-python's own generator, and what is sent to it.

        Raises:
            TokenError, LogitsError, LimitError: as `LlamaSampler.check`, in place of the end of the output.
        """
        sent = None
        while True:
            self.skips = sent is None and llm.draft_model is None
            self._model.running = self
            try:
                token = tokens.send(sent)
            except StopIteration:
                return
            finally:
                self._model.running = None
            self._take(token)
            sent = yield token

    def _take(self, token: int) -> None:
        self._request.tokens.append(token)
        if token in self._ends:
            self.sampler.check()
        else:
            self._matcher.accept(token)

    def forced(self, llm: Any, n: int) -> list[int]:
        """The forced tokens that fit into memory and one batch after `n` tokens."""
        if not self.skips:
            return []
        return self._matcher.forced_tokens()[: max(0, min(llm.n_batch, len(llm.input_ids) - llm.n_tokens - n))]


class _Processors(list[Any]):
    """A list of logits processors that stays one when llama-cpp-python adds `logit_bias` to it.

    It takes what `extend` returns for the list (`Llama._create_completion`), so a plain one is lost with the bias.
    """

    def extend(self, more: Any) -> _Processors:  # type: ignore[override]
        """Adds processors, and is the list itself."""
        super().extend(more)
        return self

    def __call__(self, tokens: Any, scores: Any) -> Any:
        """As `llama_cpp.LogitsProcessorList`."""
        for processor in self:
            scores = processor(tokens, scores)
        return scores


def _constraint(grammar: Any) -> Constraint:
    """What `grammar=` means."""
    if isinstance(grammar, library().LlamaGrammar):
        return _gbnf(grammar._grammar, grammar._root)
    return constraint_of(grammar)


@functools.lru_cache(maxsize=16)
def _gbnf(text: str, root: str) -> Grammar:
    return Grammar.gbnf(text, root=root)
