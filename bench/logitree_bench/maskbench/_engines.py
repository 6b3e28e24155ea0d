"""The engines that are compared, behind one interface: compile a grammar, start a sequence, fill a mask, accept.

Each is used as its own documentation says. They know neither clocks nor expected verdicts.
"""

from __future__ import annotations

import copy
import functools
import importlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

import logitree as lt

Form = Literal["schema", "gbnf", "json"]
"""What kind of grammar a source is; ``json`` has no source: the engine's own grammar of JSON."""

Words = npt.NDArray[np.int32]


class Refused(Exception):
    """The engine will not take this grammar; the message is the engine's own."""


@dataclass(frozen=True)
class Sequence:
    """One text in the making."""

    fill: Callable[[], object]
    """Writes the mask into the engine's words."""
    accept: Callable[[int], object]
    """Takes a token; False or an exception where the engine fails."""
    problem: Callable[[], str]
    """What is wrong with the engine by now, or nothing."""


class Engine(Protocol):
    """What MaskBench and the grammar suite need of an engine."""

    @property
    def words(self) -> Words:
        """Where masks are written: bit ``id % 32`` of word ``id // 32``."""
        ...

    def forget(self) -> None:
        """Drop what it keeps of earlier grammars, so that the same one again is a first use too."""
        ...

    def compile(self, source: Any, form: Form = "schema") -> Callable[[], Sequence]:
        """What starts a sequence under this JSON Schema or GBNF text. Raises :class:`Refused`."""
        ...

    def twin(self) -> Engine:
        """The same engine with a mask of its own, for another thread."""
        ...


class Logitree:
    """Ours, with the schema's order of properties or any, and with what all grammars need found at once if asked."""

    def __init__(self, path: str, order: Literal["schema", "any"], prepare: bool = False) -> None:
        self._vocabulary = lt.Vocabulary.from_gguf(path)
        if prepare:  # llguidance finds its slices when it makes its tokenizer
            self._vocabulary.prepare()
        self._order = order
        self.words = np.zeros(lt.masks.words(len(self._vocabulary)), np.int32)

    def forget(self) -> None:
        """Drop the grammars that the vocabulary keeps bound."""
        self._vocabulary.clear_bindings()

    def compile(self, source: Any, form: Form = "schema") -> Callable[[], Sequence]:
        """Grammar and matcher; each sequence is a fork of it."""
        try:
            made = lt.Grammar
            grammar = made.gbnf(source) if form == "gbnf" else made.json_schema(source, order=self._order)
            matcher = grammar.matcher(self._vocabulary)
        except lt.LogitreeError as problem:
            raise Refused(str(problem)) from problem

        def start() -> Sequence:
            fresh = matcher.fork()
            return Sequence(functools.partial(lt.masks.fill_batch, fresh, self.words), fresh.accept, str)

        return start

    def twin(self) -> Logitree:
        """Shares the vocabulary and its caches."""
        other = copy.copy(self)
        other.words = np.zeros_like(self.words)
        return other


class Llguidance:
    """llguidance through its LLMatcher, default options."""

    def __init__(self, path: str) -> None:
        self._module = importlib.import_module("llguidance")
        self._fill = importlib.import_module("llguidance.numpy").fill_next_token_bitmask
        llama = importlib.import_module("llama_cpp")
        self._model = llama.Llama(path, vocab_only=True, verbose=False)
        make = importlib.import_module("llguidance.llamacpp").lltokenizer_from_vocab
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # it calls what llama-cpp-python renamed
            self._tokenizer = make(llama.llama_model_get_vocab(self._model.model))
        self._mask = np.zeros((1, lt.masks.words(self._tokenizer.vocab_size)), np.int32)
        self.words = self._mask[0]

    def forget(self) -> None:
        """It keeps none."""

    def compile(self, source: Any, form: Form = "schema") -> Callable[[], Sequence]:
        """A matcher; each sequence is a deep copy of it."""
        if form == "gbnf":
            grammar = self._module.grammar_from("gbnf", source)
        else:
            grammar = self._module.LLMatcher.grammar_from_json_schema(source)
        matcher = self._module.LLMatcher(self._tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise Refused(matcher.get_error())

        def start() -> Sequence:
            fresh = matcher.deep_copy()
            return Sequence(functools.partial(self._fill, fresh, self._mask, 0), fresh.consume_token, fresh.get_error)

        return start

    def twin(self) -> Llguidance:
        """Shares the tokenizer."""
        other = copy.copy(self)
        other._mask = np.zeros_like(self._mask)
        other.words = other._mask[0]
        return other


class Xgrammar:
    """XGrammar in strict mode with fixed whitespace, which is json.dumps's: its MaskBench configuration."""

    def __init__(self, path: str) -> None:
        self._module = importlib.import_module("xgrammar")
        vocabulary = lt.Vocabulary.from_gguf(path)
        special = set(vocabulary.special_ids)
        tokens = [b"" if id in special else token for id, token in enumerate(vocabulary)]
        info = self._module.TokenizerInfo(
            tokens, self._module.VocabType.RAW, stop_token_ids=list(vocabulary.end_tokens)
        )
        self._compiler = self._module.GrammarCompiler(info, max_threads=1)
        self._mask = self._module.allocate_token_bitmask(1, info.vocab_size)
        self.words = self._mask.numpy()[0]

    def forget(self) -> None:
        """Drop the compiler's cache."""
        self._compiler.clear_cache()

    def compile(self, source: Any, form: Form = "schema") -> Callable[[], Sequence]:
        """A compiled grammar; each sequence has its own matcher."""
        try:
            if form == "gbnf":
                compiled = self._compiler.compile_grammar(source)
            elif form == "json":
                compiled = self._compiler.compile_builtin_json_grammar()
            else:
                compiled = self._compiler.compile_json_schema(source, any_whitespace=False, strict_mode=True)
        except Exception as problem:  # whatever it raises, it is a grammar that it does not take
            raise Refused(str(problem)) from problem

        def start() -> Sequence:
            fresh = self._module.GrammarMatcher(compiled)
            fill = functools.partial(fresh.fill_next_token_bitmask, self._mask)
            return Sequence(fill, fresh.accept_token, str)

        return start

    def twin(self) -> Xgrammar:
        """Shares the compiler and its cache."""
        other = copy.copy(self)
        other._mask = self._mask.clone()
        other.words = other._mask.numpy()[0]
        return other


ENGINES: dict[str, Callable[[str], Engine]] = {
    "logitree": functools.partial(Logitree, order="schema", prepare=True),
    "logitree-any": functools.partial(Logitree, order="any", prepare=True),
    "llguidance": Llguidance,
    "xgrammar": Xgrammar,
}
"""Name -> what makes the engine for a GGUF vocabulary file."""
