"""What runs a model: text into tokens, tokens into logits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import _core, _renamed
from .._errors import EngineError, again
from ._costs import PassCosts
from ._lens import Layers
from ._session import InTurns, Session, as_session
from ._trees import Evaluated, Read, by_rows, by_sessions

if TYPE_CHECKING:
    from ._old import OldRows

Messages = Sequence[Mapping[str, Any]]
"""A chat: mappings with at least "role" and "content", a text or a list of parts, `{"type": "text", "text": ...}`."""


class Engine(ABC):
    """What `logitree.generate` needs of a model runner: `vocabulary`, `encode` and `session`."""

    vocabulary: _core.Vocabulary
    """The vocabulary of the model."""
    name: str = ""
    """What the model is called."""
    n_ctx: int | None = None
    """How many tokens fit into one row; None: not known."""
    n_batch: int | None = None
    """How many tokens one pass takes: the grain of progress and of cancelling; None: a whole prompt."""
    batch_rows: int | None = None
    """The most rows of one batch session; None: as many as memory holds."""
    beam_rows: int | None = 0
    """The most rows of one batch session with forks; 0: there is none; None: as many as memory holds."""
    has_lens: bool = False
    """Whether `lens` works."""
    tokenize: Callable[[str], list[int]] | None = None
    """The model's own tokenisation of a text, no special tokens added or recognised; None: there is none."""
    chat_template: str | Mapping[str, str] | None = None
    """The template of the model's chats, in Jinja, or several by name; None: there is none."""
    pass_costs: PassCosts | None = None
    """What passes cost, as far as it is known; None: proposed tokens count as free."""

    @property
    def has_chats(self) -> bool:
        """Whether chats are encoded in the model's form: where there is a template."""
        return self.chat_template is not None

    _tokenizer_read: _core.Tokenizer | _core.LogitreeError | None = None
    """What `read_tokenizer` gave, or why it failed."""

    def read_tokenizer(self) -> _core.Tokenizer | None:
        """Reads the model's own tokenizer, for `own_tokenizer`, which keeps it. By default there is none."""
        return None

    @property
    def own_tokenizer(self) -> _core.Tokenizer | None:
        """The model's own tokenizer, for `tokenization="canonical"`, read when it is first used; None: there is none.

        Raises:
            EngineError: the engine has no tokenizer that could be read.
            VocabularyError: it is of a kind that is not read.
            FileError: its file is not there; the next use looks again.
        """
        kept = self._tokenizer_read
        if isinstance(kept, _core.LogitreeError):
            raise again(kept)
        if kept is None:
            try:
                kept = self._tokenizer_read = self.read_tokenizer()
            except _core.FileError:
                raise
            except _core.LogitreeError as raised:
                self._tokenizer_read = again(raised)
                raise
        return kept

    @own_tokenizer.setter
    def own_tokenizer(self, tokenizer: _core.Tokenizer | None) -> None:
        self._tokenizer_read = tokenizer

    @abstractmethod
    def encode(self, prompt: str | Messages, *, chat: bool | None = None) -> list[int]:
        """The prompt's tokens.

        Args:
            prompt: text, or messages with "role" and "content".
            chat: True applies the model's chat template, False does not, None does where there is one.
        """

    def encode_chat(self, messages: Messages, *, tools: Sequence[Mapping[str, Any]] = ()) -> list[int]:
        """The tokens of a chat, with the tools that the model may call.

        Args:
            messages: as of `encode`.
            tools: as OpenAI's requests have them: {"type": "function", "function": {"name": ..., "parameters": ...}}.

        Raises:
            EngineError: the engine shows its chat template no tools.
            LogitreeError: as of `encode`.
        """
        if tools:
            raise EngineError(f"a {type(self).__name__} shows its chat template no tools", help="define encode_chat")
        return self.encode(messages, chat=True)

    @abstractmethod
    def session(self) -> Session:
        """A new, empty session of one row."""

    def batch_session(self, rows: int | None, tokens: int | None = None, *, forks: bool = False) -> Session:
        """A new, empty session of several rows. By default they are sessions of one row each, evaluated in turns.

        Args:
            rows: the most rows that it has at once; None: `beam_rows`.
            tokens: how many tokens the rows are expected to have together, without forks as many as the longest has for
                each; None: not known.
            forks: whether `Session.reorder` is used. The rows then get as many tokens as each other after their first.

        Raises:
            EngineError: it has not so many rows, or they do not fork.
        """
        if forks or rows is None:
            raise EngineError(f"a {type(self).__name__} has no rows that fork", help="it needs batch_session(forks=)")
        return InTurns(lambda: as_session(self.session()), rows)

    def tree_logits(
        self, prompt: Sequence[int], parents: Sequence[int], tokens: Sequence[int], read: Read
    ) -> Evaluated:
        """The logits after a prompt and after each node of a tree of continuations, in as few passes as the engine can,
        for `logitree.choose`.

        Args:
            prompt: at least one token.
            parents: for each node the node before it, smaller than its own number, or -1: the prompt.
            tokens: each node's token.
            read: called with each node, -1 first, and the logits after it, which are valid during the call.

        Raises:
            ContextFull: a path does not fit.
            EngineError: the engine failed.
            TokenError: a token is not in the vocabulary.
            Exception: whatever `read` raises.
        """
        by = by_rows if parents and self.beam_rows != 0 else by_sessions
        return by(self, prompt, parents, tokens, read)

    def lens(self, tokens: Sequence[int], top: int = 5) -> Layers:
        """What each layer of the model would say comes after these tokens. Where it `has_lens`.

        Args:
            tokens: at least one.
            top: how many of the likeliest tokens of each layer.

        Raises:
            ContextFull: they do not fit.
            EngineError: the engine does not see the layers.
            TokenError: a token is not in the vocabulary.
        """
        raise EngineError(f"a {type(self).__name__} does not see the model's layers", help="use Transformers")

    def beam_session(self, rows: int | None = None, tokens: int | None = None) -> OldRows:
        """The form of 0.1: a batch session with forks, by `begin(prompts)` and `step(parents, tokens)`."""
        from ._old import OldRows

        _renamed.deprecated("beam_session")
        return OldRows(self.batch_session(rows, tokens, forks=True))
