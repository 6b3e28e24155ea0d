"""Decides an LLM's next token: what is allowed, what the samplers make of it, what is picked, and why.

``logitree.Vocabulary`` says what bytes each token id stands for; everything else builds on it.
"""

from logitree import _renamed
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
    Sampler,
    SamplingError,
    StateError,
    Step,
    TokenError,
    Tokenizer,
    TokenTrie,
    Vocabulary,
    VocabularyError,
    __version__,
)
from logitree._errors import EngineError, IncompleteError, SchemaWarning, ValueMismatchError
from logitree._events import Choice, Event, Finish, LogProbs, Progress, SpanEnd, SpanStart, SpanText, Stats, Token
from logitree._generate import generate
from logitree._generation import Generation, Generations
from logitree._params import ChainParams, SamplingParams
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
    "ChainParams",
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
    "LogProbs",
    "LogitreeError",
    "LogitsError",
    "MaskError",
    "Matcher",
    "OneOf",
    "PayloadError",
    "Progress",
    "ReasoningBudget",
    "Recogniser",
    "Sampler",
    "SamplingError",
    "SamplingParams",
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
    "__version__",
    "beam_search",
    "choose",
    "generate",
]

_renamed.install(globals())
