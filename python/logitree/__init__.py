"""Decides an LLM's next token: what is allowed, what the samplers make of it, what is picked, and why.

``logitree.Vocabulary`` says what bytes each token id stands for; everything else builds on it.
"""

import typing

from logitree import _renamed
from logitree import catalogue as catalogue
from logitree import compose as compose
from logitree import elizaos as elizaos
from logitree import masks as masks
from logitree import metrics as metrics
from logitree import repair as repair
from logitree import samplers as samplers
from logitree import skeleton as skeleton
from logitree import speculation as speculation
from logitree import steering as steering
from logitree._arguments import GenerateOptions
from logitree._batch import Batch
from logitree._choose import choose
from logitree._constraint import OneOf
from logitree._core import (
    AllowedTokens,
    Chain,
    Constraint,
    ConstraintError,
    Deadline,
    Decoder,
    Explanation,
    FileError,
    Grammar,
    LimitError,
    LogitreeError,
    LogitsError,
    MaskError,
    Matcher,
    PayloadError,
    Recogniser,
    SamplingError,
    StateError,
    Step,
    TokenError,
    Tokenizer,
    TokenTrie,
    Vocabulary,
    VocabularyError,
)
from logitree._core import (
    __version__ as __version__,
)
from logitree._errors import EngineError, IncompleteError, SchemaWarning, ValueMismatchError
from logitree._events import Choice, Event, Finish, Progress, SpanEnd, SpanStart, SpanText, Stats, Token
from logitree._generate import generate
from logitree._generation import Generation, Generations
from logitree._reasoning import ReasoningBudget
from logitree._trace import Trace, TraceSpan
from logitree.beams import beam_search
from logitree.catalogue import Catalogue
from logitree.skeleton import Skeleton

__all__ = [
    "AllowedTokens",
    "Batch",
    "Catalogue",
    "Chain",
    "Choice",
    "Constraint",
    "ConstraintError",
    "Deadline",
    "Decoder",
    "EngineError",
    "Event",
    "Explanation",
    "FileError",
    "Finish",
    "GenerateOptions",
    "Generation",
    "Generations",
    "Grammar",
    "IncompleteError",
    "LimitError",
    "LogitreeError",
    "LogitsError",
    "MaskError",
    "Matcher",
    "OneOf",
    "PayloadError",
    "Progress",
    "ReasoningBudget",
    "Recogniser",
    "SamplingError",
    "SchemaWarning",
    "Skeleton",
    "SpanEnd",
    "SpanStart",
    "SpanText",
    "StateError",
    "Stats",
    "Step",
    "Token",
    "TokenError",
    "TokenTrie",
    "Tokenizer",
    "Trace",
    "TraceSpan",
    "ValueMismatchError",
    "Vocabulary",
    "VocabularyError",
    "beam_search",
    "choose",
    "generate",
]

_renamed.install({**vars(catalogue), **globals()})

if not typing.TYPE_CHECKING:  # a type checker knows no old names, so that it marks misspelled ones

    def __getattr__(name: str) -> object:
        return _renamed.of_module(__name__, name)
