"""The backend of SGLang's grammars: compiling in its executor, and the grammar of one request."""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarRow,
    GrammarStats,
    InvalidGrammarObject,
    register_vocab_mask_buffer,
)
from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
from sglang.srt.constrained.xgrammar_backend import XGrammarGrammarBackend
from sglang.srt.parser.reasoning_parser import ReasoningParser
from sglang.srt.runtime_context import get_serving
from sglang.srt.utils.common import is_pin_memory_available

from ... import _core
from ..._core import Constraint, Grammar
from ..._errors import error
from ...tensors import apply_masks
from .._requests import SECONDS, Compiler
from ._compiler import compiler_of

logger = logging.getLogger(__name__)

_KEPT = 256
"""Grammars that SGLang's cache keeps: all of them, if it has a dict."""

_SPREAD = 0x9E3779B1
"""A multiplier of multiplicative hashing (Knuth, The Art of Computer Programming 3, 6.4)."""


def make(tokenizer: Any, vocab_size: int, eos_token_ids: Collection[int] | None) -> BaseGrammarBackend:
    """The backend of a model, with SGLang's own wrapper where the server has a reasoning parser.

    Args:
        tokenizer: SGLang's.
        vocab_size: how many logits the model gives.
        eos_token_ids: the ends of generation that the model's configuration names.

    Raises:
        EngineError, VocabularyError, ConstraintError: as `compiler_of`.
    """
    serving = get_serving()
    backend: BaseGrammarBackend = LogitreeBackend(
        functools.partial(compiler_of, tokenizer, vocab_size, eos_token_ids, serving)
    )
    if not serving.reasoning_parser:
        return backend
    parser = ReasoningParser(model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer)
    if not parser.detector.get_think_end_token_ids(tokenizer):
        return backend  # SGLang's scheduler says so in its log
    strict = serving.enable_strict_thinking
    wrapped = ReasonerGrammarBackend(backend, parser, tokenizer, enable_strict_thinking=strict)
    wrapped.cache = _Cache()
    return wrapped


class LogitreeBackend(BaseGrammarBackend):  # type: ignore[misc]
    """Makes the grammars of a scheduler's requests. The `dispatch` methods run in SGLang's executor, off its loop.

    Args:
        compiler: makes the model's, for which the tokens of `control=` are no text.
    """

    def __init__(self, compiler: Callable[..., Compiler]) -> None:
        super().__init__()
        self.cache = _Cache()
        """The grammars of recent requests, as SGLang keeps them."""
        self._new_compiler = compiler
        self._compiler = self._framing = compiler()

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """The grammar of a JSON Schema, as text."""
        return self._dispatch("json", key_string)

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        """The grammar of a regular expression."""
        return self._dispatch("regex", key_string)

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """The grammar of an EBNF text, or of the JSON form of any constraint."""
        return self._dispatch("ebnf", key_string)

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        """The grammar of one of XGrammar's structural tags."""
        return self._dispatch("structural_tag", key_string)

    def _dispatch(self, kind: str, spec: str) -> BaseGrammarObject:
        def constraint() -> Constraint:
            return self._compiler.constraint(kind, spec)

        return self._made(self._compiler, kind, constraint)

    def _made(self, compiler: Compiler, kind: str, constraint: Callable[[], Constraint]) -> BaseGrammarObject:
        """A grammar at the beginning of its output, or what is wrong with it: SGLang ends that request alone."""
        try:
            with _core.Deadline(SECONDS):
                made = constraint()
                return LogitreeGrammar(compiler, compiler.bind(made), made, GrammarStats(dispatch_type=kind))
        except (_core.LogitreeError, ValueError, RecursionError) as wrong:
            logger.error("%s: %s", kind, wrong)
            return InvalidGrammarObject(str(wrong))

    def reserve_framing_tokens(self, token_ids: Sequence[int]) -> None:
        """Lets these tokens be nothing but tokens of a frame in the framed grammars that follow."""
        self._framing = self._new_compiler(control=token_ids)

    def compile_framed_grammar(
        self, grammar: Any, frame: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> BaseGrammarObject:
        """A grammar inside a frame: a structural tag whose format is a sequence, with the content as one element."""
        inner = {"type": "any_text"}
        tag = frame(inner)["format"]

        def constraint() -> Constraint:
            elements = tag.get("elements", ())
            at = next((at for at, element in enumerate(elements) if element is inner), None)
            if tag.get("type") != "sequence" or at is None:
                raise error(_core.ConstraintError, "the frame of the answer is no sequence with the answer in it")
            made: Constraint = grammar.constraint
            if at > 0:
                made = Grammar.structural_tag({"type": "sequence", "elements": elements[:at]}) + made
            if at + 1 < len(elements):
                made = made + Grammar.structural_tag({"type": "sequence", "elements": elements[at + 1 :]})
            return made

        return self._made(self._framing, "structural_tag", constraint)

    @property
    def is_support_token_filter(self) -> bool:
        """True: SGLang's strict thinking has what it needs."""
        return True

    def set_token_filter(
        self,
        vocab_mask: torch.Tensor,
        token_ids: list[int],
        batch_idx: int,
        is_allowed: bool = True,
        reset_vocab_mask: bool = True,
    ) -> None:
        """Allows or bans single tokens in a row of a mask, by SGLang's own operations on such masks."""
        XGrammarGrammarBackend.set_token_filter(vocab_mask, token_ids, batch_idx, is_allowed, reset_vocab_mask)

    def initialize_vocab_mask_buffer(self, name: str, vocab_size: int, max_rows: int, device: Any) -> torch.Tensor:
        """A mask that SGLang keeps by its name: int32 [max_rows, words], all ones, in this machine's memory."""
        return register_vocab_mask_buffer(name, _allocate(vocab_size, max_rows), max_rows)

    @staticmethod
    def allocate_vocab_mask(vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """As that of the grammar; SGLang's wrapper for reasoning asks the backend."""
        return _allocate(vocab_size, batch_size)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """As that of the grammar."""
        return LogitreeGrammar.move_vocab_mask(vocab_mask, device)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """As that of the grammar."""
        LogitreeGrammar.apply_vocab_mask(logits, vocab_mask)

    def reset(self) -> None:
        """Forgets all grammars, and what they have in common."""
        super().reset()
        self._compiler.vocabulary.clear_bindings()


class LogitreeGrammar(BaseGrammarObject):  # type: ignore[misc]
    """The state of one request.

    A request fails when one of its steps takes more than its fuel. Its next mask then allows a single token, which is
    refused when it comes: SGLang ends the request with our message, and others do not notice. Nothing is raised before:
    SGLang takes errors where it commits a token, and not where it makes a mask or walks a tree of drafts.
    """

    def __init__(
        self, compiler: Compiler, matcher: _core.Matcher, constraint: Constraint, grammar_stats: GrammarStats | None
    ) -> None:
        super().__init__()
        self.matcher, self.constraint, self.grammar_stats = matcher, constraint, grammar_stats
        self._compiler = compiler
        self._is_over = False
        """An end token was taken: nothing that follows counts."""
        self._failed: _core.LogitreeError | None = None
        self._is_ahead = False
        """The token at which the request failed is not the matcher's."""

    def accept_token(self, token: int) -> None:
        """Takes a token; after the end none counts. ValueError: it is not allowed, or the request has failed."""
        if self._is_over:
            return
        if self._failed is not None:
            raise ValueError(str(self._failed)) from self._failed
        self.current_token = token
        try:
            self.matcher.accept(token)
        except _core.TokenError:
            raise
        except _core.LogitreeError as failed:
            self._failed, self._is_ahead = failed, True
            return
        self._is_over = token in self._compiler.vocabulary.end_tokens

    def rollback(self, k: int) -> None:
        """Takes the last `k` tokens back, an end token among them. Raises StateError if there are fewer."""
        if k <= 0:
            return
        self.matcher.rollback(k - self._is_ahead)
        self._is_over, self._failed, self._is_ahead = False, None, False

    def is_terminated(self) -> bool:
        """Whether an end token was taken."""
        return self._is_over

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """int32 [batch_size, words], all ones: nothing is masked. It is in this machine's memory."""
        return _allocate(vocab_size, batch_size)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Writes what is allowed over a row of a mask."""
        words = vocab_mask.numpy()[idx]
        if self._failed is None:
            try:
                self._compiler.fill([self.matcher], words[None])
                return
            except _core.LogitreeError as failed:
                self._failed = failed
        # One token, whatever the vocabulary. No draft may be it: a draft that is refused ends SGLang's scheduler.
        size = len(self._compiler.vocabulary)
        words[:] = 0
        _core.mask_insert(words, ((self.current_token or 0) + 1) * _SPREAD % size)

    @staticmethod
    def fill_vocab_mask_batched(entries: list[GrammarRow], vocab_mask: torch.Tensor) -> None:
        """Fills the rows of several requests at once; other rows are not touched."""
        grammars = [entry.grammar for entry in entries]
        if grammars and all(type(one) is LogitreeGrammar and one._failed is None for one in grammars):
            rows, words = [entry.row for entry in entries], vocab_mask.numpy()
            together = rows == list(range(rows[0], rows[0] + len(rows)))
            out: npt.NDArray[np.int32] = words[rows[0] : rows[0] + len(rows)] if together else words[rows]
            try:
                grammars[0]._compiler.fill([one.matcher for one in grammars], out)
                if not together:
                    words[rows] = out
                return
            except _core.LogitreeError:
                pass  # each row by itself, to find the one that fails
        BaseGrammarObject.fill_vocab_mask_batched(entries, vocab_mask)

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Writes all ones over a mask: nothing is masked."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """The mask on a device; the copy may still be under way."""
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """Writes -inf to what is not allowed: on the CPU by the core, on devices by SGLang's kernels for such masks.

        Args:
            logits: float [B, V], written in place.
            vocab_mask: int32 [B, words], where the logits are.
        """
        if logits.device.type == "cpu":
            apply_masks(logits, vocab_mask, size=min(logits.shape[1], 32 * vocab_mask.shape[1]))
        else:
            XGrammarGrammarBackend.apply_vocab_mask(logits, vocab_mask)

    def copy(self) -> LogitreeGrammar:
        """An independent grammar in the same state."""
        stats = self.grammar_stats
        if stats is not None:
            stats = dataclasses.replace(stats, is_cache_hit=True, tree_traversal_time=[])
        made = LogitreeGrammar(self._compiler, self.matcher.fork(), self.constraint, stats)
        made._is_over, made._failed, made._is_ahead = self._is_over, self._failed, self._is_ahead
        made._finished, made.current_token = self._finished, self.current_token
        return made

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """The text that is certain, in whole characters, for `jump_forward_str_state`; None where none is."""
        if self._is_over or self._failed is not None:
            return None
        try:
            found, _ = self.matcher.certain_bytes()
        except _core.LogitreeError as failed:
            self._failed = failed
            return None
        text = _whole_characters(found)
        return ([], text) if text else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """The text to append; there is no state beside it."""
        return helper[1], -1

    def jump_and_retokenize(self, old_output_ids: list[int], new_output_ids: list[int], next_state: int) -> None:
        """Follows an output whose text has new tokens. Raises ValueError if one of them is not allowed."""
        same = 0
        for old, new in zip(old_output_ids, new_output_ids, strict=False):
            if old != new:
                break
            same += 1
        self.rollback(len(old_output_ids) - same)
        for token in new_output_ids[same:]:
            self.accept_token(token)

    def __repr__(self) -> str:
        return f"LogitreeGrammar({self.constraint!r:.200}, after {self.matcher.accepted} tokens)"


class _Cache(OrderedDict[tuple[str, str], BaseGrammarObject]):
    """SGLang's cache of compiled grammars, which forgets what was not asked for longest."""

    def get(self, key: Any, default: Any = None) -> Any:
        if key in self:
            self.move_to_end(key)
        return super().get(key, default)

    def __setitem__(self, key: tuple[str, str], value: BaseGrammarObject) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > _KEPT:
            self.popitem(last=False)


def _allocate(vocab_size: int, rows: int) -> torch.Tensor:
    """Pinned where that is possible, so that a copy to the device waits for nothing."""
    shape = (rows, _core.mask_words(vocab_size))
    return torch.full(shape, -1, dtype=torch.int32, pin_memory=is_pin_memory_available())


def _whole_characters(text: bytes) -> str:
    """The characters that are complete, up to a byte that belongs to none."""
    try:
        return text.decode()
    except UnicodeDecodeError as wrong:
        return text[: wrong.start].decode()
