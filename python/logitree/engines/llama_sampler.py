"""A native sampler for llama.cpp's own chains: a constraint, or a whole logitree chain, as a link of them.

llama.cpp's loop stays as it is, with llama-cpp-python's `Llama` or with a chain of one's own; between logits and token
no Python runs. docs/llama-sampler.md has the guide.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

from .. import _core
from .._constraint import bind
from .._errors import EngineError
from ._llama_cpp_threads import library


@dataclass(frozen=True)
class SamplerCounts:
    """How much a constraint masked, over all steps in which it decided. See `LlamaSampler.counts`."""

    steps: int
    """Steps in which the constraint decided what is allowed."""
    sole: int
    """Of those, steps with one allowed candidate."""
    candidates: int
    """Candidates before the constraint, of all steps."""
    kept: int
    """Candidates that were allowed, of all steps."""
    skip_ratio_mean: float
    """Mean over the steps of (candidates - allowed candidates) / candidates; 0.0 without a step."""
    skip_ratio_std: float
    """Its standard deviation (of the population)."""


class LlamaSampler:
    """Makes `llama_sampler` objects for the chains of libllama.

    Args:
        vocabulary: the model's vocabulary, or the `llama_cpp.Llama` whose it is.
        constraint: what `generate` takes as one, bound once; None: no constraint, then `chain` is needed.
        mode: what becomes of the allowed candidates. "greedy": the likeliest is selected. "sample": the samplers that
            follow in llama.cpp's chain choose among them. Not looked at with a `chain`.
        chain: a logitree chain that selects among the allowed candidates with its own random numbers.
        then: what follows a constraint that is over. "stop": only end-of-generation tokens; "continue": anything.
        prompt: what tokens are that llama.cpp's chain accepts before it is applied. "ignore": a prompt, which the
            constraint does not see and which counts for the penalties of `chain`; "accept": the output's beginning.

    A sampler fails closed: after an error, such as a token that the constraint does not allow, an end-of-generation
    token is the only candidate until the sampler is reset, and `check` raises the error.

    Raises:
        EngineError: llama-cpp-python is missing, or a mode is unknown.
        ConstraintError: its libllama does not fit, the constraint cannot be honoured with the vocabulary, or there is
            neither a constraint nor a chain.
        SamplingError: the chain does not select.
        VocabularyError: no token of the vocabulary ends the generation.
    """

    def __init__(
        self,
        vocabulary: _core.Vocabulary | Any,
        constraint: Any = None,
        *,
        mode: Literal["greedy", "sample"] = "greedy",
        chain: _core.Chain | None = None,
        then: Literal["stop", "continue"] = "stop",
        prompt: Literal["ignore", "accept"] = "ignore",
    ) -> None:
        for name, value, known in (
            ("mode", mode, ("greedy", "sample")),
            ("then", then, ("stop", "continue")),
            ("prompt", prompt, ("ignore", "accept")),
        ):
            if value not in known:
                raise EngineError(f"{name} is {value!r}", help=f'give "{known[0]}" or "{known[1]}"')
        self._lib = lib = library()
        tokenize: Callable[[str], list[int]] | None = None
        if not isinstance(vocabulary, _core.Vocabulary):
            llm, vocabulary = vocabulary, _core.Vocabulary.from_llama(vocabulary)

            def tokenize(text: str) -> list[int]:
                return list(llm.tokenize(text.encode(), add_bos=False, special=False))

        self.vocabulary: _core.Vocabulary = vocabulary
        """The vocabulary that the constraint is bound to."""
        matcher = None if constraint is None else bind(constraint, vocabulary, tokenize=tokenize)
        names = _core.LlamaSamplerMaker.functions_needed()
        self._selects_alone = chain is not None
        self._maker = _core.LlamaSamplerMaker(
            vocabulary,
            matcher,
            chain,
            greedy=mode == "greedy",
            stop=then == "stop",
            counts_first=prompt == "accept",
            functions=[_address(lib, name) for name in names],
            sizes=(ctypes.sizeof(lib.llama_token_data), ctypes.sizeof(lib.llama_token_data_array)),
        )

    def make(self) -> Any:
        """A new sampler at the beginning of an output: a pointer to `llama_sampler`, as llama_cpp's own functions give.

        It belongs to the caller, until `llama_sampler_chain_add` gives it to a chain or `llama_sampler_free` frees it.
        """
        return ctypes.cast(self._maker.make(), self._lib.llama_sampler_p_ctypes)

    def add_to(self, chain: Any) -> None:
        """Adds a new sampler at the end of a chain, which then owns it.

        Args:
            chain: a pointer that `llama_sampler_chain_init` gave.

        Raises:
            EngineError: it is no chain.
        """
        if not chain or not self._lib.llama_sampler_chain_get(chain, -1):
            raise EngineError("not a sampler chain of llama.cpp", help="give what llama_sampler_chain_init returned")
        self._lib.llama_sampler_chain_add(chain, self.make())

    def attach(self, llm: Any) -> Attachment:
        """Puts a new sampler into the chain of every generation of a `llama_cpp.Llama`, until `detach`.

        `create_completion`, `create_chat_completion` and `generate` then generate under the constraint, streaming too.
        It comes after the penalties and before the grammar and everything that cuts candidates; with a `chain` it takes
        the place of all of llama-cpp-python's samplers but a logits processor. Every generation begins a new output.
        Used in a `with` statement, it detaches at the end, and raises what a sampler could not do.

        Raises:
            EngineError: it is no `llama_cpp.Llama` of a supported version, or its vocabulary is smaller than the
                sampler's.
        """
        if not callable(getattr(llm, "_init_sampler", None)):
            raise EngineError(
                f"cannot attach a sampler to a {type(llm).__name__}",
                help="give a llama_cpp.Llama of llama-cpp-python 0.3.17 or newer",
            )
        if len(self.vocabulary) > llm.n_vocab():
            raise EngineError(
                f"the constraint is for {len(self.vocabulary)} tokens, the model has {llm.n_vocab()}",
                help="make the sampler with this model's vocabulary",
            )
        return Attachment(self, llm)

    def check(self) -> None:
        """Raises the first error of its samplers since the last call, if there was one.

        Raises:
            TokenError: the chain accepted a token that is not allowed.
            LogitsError: earlier samplers of the chain removed every allowed token, or logits are NaN.
            LimitError: a mask takes more work than the constraint's fuel allows.
        """
        self._maker.check()

    @property
    def counts(self) -> SamplerCounts:
        """How much the constraint masked, in all its samplers so far."""
        steps, sole, candidates, kept, ratios, squares = self._maker.counts()
        mean = ratios / steps if steps else 0.0
        deviation = math.sqrt(max(0.0, squares / steps - mean * mean)) if steps else 0.0
        return SamplerCounts(steps, sole, candidates, kept, mean, deviation)

    def add_to_llama(self, made: Any) -> int:
        """Puts a new sampler into a chain that `Llama._init_sampler` made, at the place that `attach` describes.

        Returns:
            its position in the chain.
        """
        lib, chain = self._lib, made.sampler
        rest = []
        first = self._place(made)
        while lib.llama_sampler_chain_n(chain) > first:
            rest.append(lib.llama_sampler_chain_remove(chain, first))
        self.add_to(chain)
        for sampler in rest:
            if self._selects_alone:
                lib.llama_sampler_free(sampler)
            else:
                lib.llama_sampler_chain_add(chain, sampler)
        return first

    def choose_alone(self, made: Any, place: int, token: int) -> None:
        """Lets a chain choose among one token, without logits, and accept it; `place` is what `add_to_llama` returned.

        The samplers after this one draw their random numbers and count, as if the constraint had left one candidate.
        """
        lib, chain = self._lib, made.sampler
        candidate = lib.llama_token_data(token, 0.0, 0.0)
        alone = ctypes.pointer(lib.llama_token_data_array(ctypes.pointer(candidate), 1, -1, False))
        for i in range(place + 1, self._length(made)):
            lib.llama_sampler_apply(lib.llama_sampler_chain_get(chain, i), alone)
        lib.llama_sampler_accept(chain, token)

    def _place(self, made: Any) -> int:
        """The position after the logits processor, and after the penalties unless a chain replaces them."""
        first = 1 + max((at for at, _ in made.custom_samplers), default=-1)
        if self._selects_alone:
            return first
        lib, chain = self._lib, made.sampler
        names = [
            lib.llama_sampler_name(lib.llama_sampler_chain_get(chain, i)) for i in range(first, self._length(made))
        ]
        return first + (names.index(b"penalties") + 1 if b"penalties" in names else 0)

    def _length(self, made: Any) -> int:
        return int(self._lib.llama_sampler_chain_n(made.sampler))


class Attachment:
    """A sampler in the generations of a `llama_cpp.Llama`, until `detach` or the end of a `with` statement."""

    def __init__(self, sampler: LlamaSampler, llm: Any) -> None:
        self.sampler, self._llm = sampler, llm
        self._former = vars(llm).get("_init_sampler")
        original = llm._init_sampler

        def init(*args: Any, **named: Any) -> Any:
            made = original(*args, **named)
            sampler.add_to_llama(made)
            return made

        self._init: Any = init
        llm._init_sampler = init

    def detach(self) -> None:
        """Leaves the `Llama` as it was. A generation that runs keeps its sampler.

        Raises:
            EngineError: another sampler was attached later and is still there.
        """
        if self._init is None:
            return
        if vars(self._llm).get("_init_sampler") is not self._init:
            raise EngineError("another sampler was attached later", help="detach that one first")
        self._init = None
        if self._former is None:
            del self._llm._init_sampler
        else:
            self._llm._init_sampler = self._former

    def __enter__(self) -> LlamaSampler:
        return self.sampler

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.detach()
        if error is None:
            self.sampler.check()


def _address(lib: Any, name: str) -> int:
    """The address of a function of libllama; 0 if it has none of that name."""
    function = getattr(lib, name, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0
