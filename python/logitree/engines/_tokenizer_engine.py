"""Engines whose prompts are tokens of a tokenizer of transformers."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, cast

from .. import _core
from .._errors import EngineError
from .._vocabulary import mistral_tokenizer
from ._engine import Engine, Messages
from ._messages import read_messages


class TokenizerEngine(Engine):
    """Text into tokens by a tokenizer of transformers, and its chat template."""

    tokenizer: Any = None
    """The tokenizer; None: prompts are token ids."""

    def read_tokenizer(self) -> _core.Tokenizer:
        """The tokenizer of the model's tokenizer.json.

        Raises:
            EngineError: there is no tokenizer, or it has no tokenizer.json.
            VocabularyError: it is of a kind that is not read.
        """
        backend = getattr(self._tokenizer(), "backend_tokenizer", None)
        if backend is None:
            raise EngineError("the tokenizer has no tokenizer.json", help="load a fast tokenizer")
        return _core.Tokenizer.from_tokenizer_json(backend.to_str())

    @property
    def chat_template(self) -> str | Mapping[str, str] | None:  # type: ignore[override]  # it may be set later
        """The tokenizer's template, or several by name; None: there is none."""
        return getattr(self.tokenizer, "chat_template", None)

    @property
    def has_chats(self) -> bool:
        """Whether chats are encoded in the model's form: by a template, or by mistral_common."""
        return self.chat_template is not None or mistral_tokenizer(self.tokenizer) is not None

    def encode(self, prompt: str | Messages | Sequence[int], *, chat: bool | None = None) -> list[int]:
        """The prompt's tokens.

        Args:
            prompt: text, messages with "role" and "content", or token ids, which are taken as they are.
            chat: True applies the tokenizer's template, text being one message of the user; False takes the text as it
                is; None: where there is a template.

        Raises:
            EngineError: there is no tokenizer; messages or `chat=True` and no template; a part that is no text; or the
                template refuses the messages.
            TypeError: these are no messages.
        """
        if not isinstance(prompt, str) and not any(isinstance(part, Mapping) for part in prompt):
            return [operator.index(token) for token in cast(Sequence[int], prompt)]
        tokenizer = self._tokenizer()
        if chat is False or not self.has_chats:
            if chat or not isinstance(prompt, str):
                raise EngineError(
                    "the tokenizer has no chat template" if chat is not False else "messages need a chat template",
                    help="give the whole prompt as text with chat=False",
                )
            return [int(token) for token in tokenizer(prompt)["input_ids"]]
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else cast(Messages, prompt)
        return self.encode_chat(messages)

    def encode_chat(self, messages: Messages, *, tools: Sequence[Mapping[str, Any]] = ()) -> list[int]:
        """The tokens of a chat by the tokenizer's template; see `Engine.encode_chat`."""
        tokenizer = self._tokenizer()
        read = read_messages(messages)
        shown = {"tools": list(tools)} if tools else {}
        try:
            if mistral_tokenizer(tokenizer) is not None:
                return list(map(int, tokenizer.apply_chat_template(read, return_dict=False, **shown)))
            text = tokenizer.apply_chat_template(read, add_generation_prompt=True, tokenize=False, **shown)
        except Exception as error:
            # Jinja raises what the template says, and mistral_common errors of its own.
            raise EngineError(f"the tokenizer's chat template refuses these messages: {error}") from error
        return [int(token) for token in tokenizer(text, add_special_tokens=False)["input_ids"]]

    def tokenize(self, text: str) -> list[int]:
        """The model's own tokenisation of a text, no special tokens added or recognised.

        Raises:
            EngineError: there is no tokenizer.
        """
        return plain_tokens(self._tokenizer(), text)

    def _tokenizer(self) -> Any:
        if self.tokenizer is None:
            raise EngineError("the engine has no tokenizer", help="give one, or give prompts as token ids")
        return self.tokenizer


def plain_tokens(tokenizer: Any, text: str) -> list[int]:
    """A tokenizer's tokens of a text, no special tokens added or recognised."""
    mistral = mistral_tokenizer(tokenizer)
    if mistral is not None:  # it recognises none in any text, and transformers' backend refuses the option
        return [int(token) for token in mistral.encode(text, bos=False, eos=False)]
    ids = tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    return [int(token) for token in ids]
