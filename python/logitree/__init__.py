"""Decides an LLM's next token."""

from logitree._core import (
    LogitreeError,
    Vocabulary,
    VocabularyError,
    __version__,
)
from logitree._errors import EngineError
from logitree._events import Choice, Event, Finish, Progress, Stats, Token
from logitree._generate import choose, generate
