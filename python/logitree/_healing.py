"""Token healing: the last tokens of a prompt are taken back, and the output begins with their text in any spelling.

```text
prompt    "See http:"       tokens  "See" " http" ":"
kept                        "See" " http"
healed    ":"               the model takes ":", "://", ":\\", ...; what comes after ":" is the output
```

A tokenizer never cuts "http://" after the colon, so that a model seldom saw ":" alone before slashes. The rule: of the
text tokens at the end of the prompt as many are taken back as there can be, so that some token of the vocabulary begins
with their joined text and is longer. More are taken back where that text would begin inside a character. One token of
the prompt stays, and no control token or user-defined token is taken back.

Equal to trying every number of tokens against every token of the vocabulary.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, cast

from . import _core
from ._constraint import Context, Typed
from ._core import Constraint
from .compose import Composed, is_fixed
from .engines import Engine

_TEXT = ("normal", "byte")
"""Kinds of tokens that are taken back."""

_MAX_CHARACTER = 4
"""Bytes of a character of UTF-8."""


def healed(prompt: Sequence[int], vocabulary: _core.Vocabulary) -> tuple[list[int], bytes]:
    """The tokens of a prompt that are kept, and the text of those that are taken back: none where no longer token
    begins at the end of the prompt, or the prompt ends inside a character."""
    trie, prompt = vocabulary.trie, list(prompt)
    ends = [b""]
    for token in reversed(prompt[1:]):
        if vocabulary.kind(token) not in _TEXT or len(ends[-1]) > trie.max_depth + _MAX_CHARACTER:
            break
        ends.append(vocabulary[token] + ends[-1])
    back = max(n for n, text in enumerate(ends) if not text or _reaches_past(trie, text))
    while back < len(ends) and not _is_whole(ends[back]):
        back += 1
    if not 0 < back < len(ends):
        return prompt, b""
    return prompt[: len(prompt) - back], ends[back]


def _reaches_past(trie: _core.TokenTrie, text: bytes) -> bool:
    """Whether a token begins with the text and is longer."""
    return len(trie.with_prefix(text)) > len(trie.lookup(text))


def _is_whole(text: bytes) -> bool:
    """Whether this is characters of UTF-8, none of them cut off."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_healed(
    heal: bool | None, engine: Engine, prompt: Any, chat: bool | None, tokens: Sequence[int], constraint: Any = None
) -> bool:
    """Whether the end of a prompt is healed: not the end of a chat template, which the model was trained on as it is.
    With None only that of a text that ends in a space, where no constraint or one of texts follows: others begin at the
    boundary of a token, so that nothing is gained."""
    if not isinstance(prompt, str):
        return bool(heal) and not any(isinstance(one, Mapping) for one in prompt)
    if heal is None:
        heal = prompt.endswith((" ", "\t")) and (constraint is None or is_fixed(constraint))
    return heal and not chat and list(tokens) == list(engine.encode(prompt, chat=False))


def bind_text(text: bytes, vocabulary: _core.Vocabulary, *, straddling: bool) -> _core.Matcher:
    """The matcher of a text in any spelling. `straddling`: its last token may hold more text."""
    if straddling:
        return matcher_after(text, _core.Grammar.text(), vocabulary).fork()
    return _core.Grammar.literal(text.decode()).matcher(vocabulary)


def bind_after(text: bytes, constraint: Constraint, context: Context) -> _core.Matcher:
    """The matcher of a text, in any spelling, and then of a constraint.

    Raises:
        ConstraintError, LimitError: as the constraint's own matcher.
    """
    after = constraint.inner if isinstance(constraint, Typed) else constraint
    if is_fixed(after):
        return matcher_after(text, cast(Hashable, after), context.vocabulary).fork()
    return _after(text, after).bind(context)


def holds_more(matcher: _core.Matcher, text: bytes, vocabulary: _core.Vocabulary) -> bool:
    """Whether one token may hold the text and the beginning of what follows it; if not, healing gains nothing."""
    return any(len(vocabulary[token]) > len(text) for token in matcher.allowed())


@functools.lru_cache(maxsize=4)
def matcher_after(text: bytes, constraint: Any, vocabulary: _core.Vocabulary) -> _core.Matcher:
    """The matcher of a text and then of a constraint that means the same with every prompt.

    Its copies share the masks that they find, as those of `canonical_matcher` do.
    """
    return _after(text, constraint).matcher(vocabulary)


def _after(text: bytes, constraint: Any) -> Composed:
    return Composed("then", [_core.Grammar.literal(text.decode()), constraint])
