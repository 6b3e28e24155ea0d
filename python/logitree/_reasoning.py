"""A bounded reasoning block before the answer, as a constraint."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from . import _core
from ._constraint import Context, Tokenize, bind_in, constraint_of, decoded
from ._core import Constraint
from ._errors import error
from ._spans import SpanStream

Tag = str | bytes | int | Sequence[int]
"""A text, a token id, or token ids."""

Place = Literal["outside", "inside", "closing"]


@dataclass(frozen=True)
class ReasoningBudget(Constraint):
    """What a model may write for itself before it answers, within a budget of tokens.

    ```python
    budget = logitree.ReasoningBudget("<think>", "</think>", budget=64)
    logitree.generate(model, "Is fire hot?", budget + ["YES", "NO"]).value
    ```

    A prompt that has begun a block is recognised. After the budget the end is forced.

    Raises:
        ConstraintError: at `matcher`: a tag is empty, or is no token of the vocabulary and no `tokenize` is known.
    """

    begin: Tag | Sequence[Tag] = "<think>"
    """What begins a block: one tag or several."""
    end: Tag | Sequence[Tag] = "</think>"
    """What ends it: one tag or several; the first is forced."""
    budget: int | None = None
    """Most tokens of a block, tags excluded; None: no limit; 0: no reasoning, and a block that the prompt began is
    closed at once."""
    soft_budget: int | None = None
    """From so many tokens on the end becomes likelier with each token; None: never."""
    end_bias: float = 10.0
    """By how much the logit of the end's first token grows with each token past `soft_budget`."""
    message: str | bytes | Sequence[int] | None = None
    """What is put before the end where the budget forces it."""
    max_blocks: int | None = 1
    """Most blocks; None: any number."""
    whole_tags: bool = False
    """Whether a tag of several tokens counts only when it is complete, so that its beginning may be written as text."""
    inside: bool = False
    """Whether every prompt ends inside a block, whatever its tokens are."""
    then: Any = None
    """What the answer must be: a constraint, or a value that means one; None: anything."""
    tokenize: Tokenize | None = field(default=None, repr=False)
    """Tokenisation of tags that are no single tokens; None: the engine's."""

    def __add__(self, then: Any) -> ReasoningBudget:
        """First the reasoning, then this constraint."""
        if self.then is not None:
            raise error(_core.ConstraintError, "there is a constraint after the reasoning already", help="join the two")
        constraint_of(then)
        return replace(self, then=then)

    def matcher(
        self,
        vocabulary: _core.Vocabulary,
        *,
        prompt: Sequence[int] = (),
        at: Place | None = None,
    ) -> _core.Matcher:
        """A matcher at the beginning of the output.

        Args:
            vocabulary: the model's vocabulary.
            prompt: the prompt's token ids, which may have begun a block.
            at: where the output begins instead: "outside" or "inside" a block, or "closing" it.
        """
        context = Context(vocabulary, self.tokenize, prompt)
        made: _core.Matcher = self._bound(context).matcher(**self._place(context, at), then=self._then(context))
        return made

    def bind(self, context: Context) -> _core.Matcher:
        """As `matcher`, with the engine's tokenisation and the prompt."""
        made: _core.Matcher = self._bound(context).matcher(**self._place(context, None), then=self._then(context))
        return made

    def form(self) -> str:
        """As `Constraint.form`; tags that the engine tokenises stay texts, and the prompt is not looked at.

        Raises:
            ConstraintError: `then` has no form, or there is a `tokenize`.
        """
        if self.tokenize is not None:
            help = "give the tags' tokens"
            raise error(_core.ConstraintError, "tags in a tokenisation of one's own have no JSON form", help=help)
        form: dict[str, Any] = {
            "type": "reasoning_budget",
            "begin": _tags_form(self.begin),
            "end": _tags_form(self.end),
            "budget": self.budget,
            "soft": self.soft_budget,
            "ramp": self.end_bias,
            "message": None if self.message is None else _tag_form(self.message),
            "max_blocks": self.max_blocks,
            "whole": self.whole_tags,
            "start": "inside" if self.inside else "outside",
            "then": None if self.then is None else json.loads(constraint_of(self.then).form()),
        }
        return json.dumps({name: value for name, value in form.items() if value is not None or name == "max_blocks"})

    def answer_start(self, tokens: Sequence[int], context: Context) -> int:
        """How many of the output's first tokens are reasoning, tags included."""
        return len(self._bound(context).split(tokens, **self._place(context, None))[0])

    def split(
        self,
        tokens: Sequence[int],
        vocabulary: _core.Vocabulary,
        *,
        prompt: Sequence[int] = (),
        at: Place | None = None,
    ) -> tuple[list[int], list[int]]:
        """An output as two lists: the reasoning that it begins with, tags included, and the answer."""
        context = Context(vocabulary, self.tokenize, prompt)
        made: tuple[list[int], list[int]] = self._bound(context).split(tokens, **self._place(context, at))
        return made

    def state(
        self,
        tokens: Sequence[int],
        vocabulary: _core.Vocabulary,
        *,
        prompt: Sequence[int] = (),
        at: Place | None = None,
    ) -> Literal["no", "in", "closing", "after"]:
        """Where these tokens lead: before a block, in it, in its forced end, or after the last."""
        context = Context(vocabulary, self.tokenize, prompt)
        made: Literal["no", "in", "closing", "after"] = self._bound(context).state(tokens, **self._place(context, at))
        return made

    def value(self, text: str, tokens: Sequence[int]) -> Any:
        """What the answer means."""
        return text if self.then is None else constraint_of(self.then).value(text, tokens)

    def span_chains(self, chain: _core.Chain) -> dict[int, _core.Chain]:
        """The chains of the answer's spans, where it is a skeleton."""
        return {} if self.then is None else constraint_of(self.then).span_chains(chain)

    def span_stream(self) -> SpanStream | None:
        """The spans of the answer, where it is a skeleton."""
        return None if self.then is None else constraint_of(self.then).span_stream()

    def _place(self, context: Context, at: Place | None) -> dict[str, Any]:
        return {"at": at} if at is not None else {"prompt": list(context.prompt)}

    def _then(self, context: Context) -> _core.Matcher | None:
        if self.then is None:
            return None
        then: Constraint = constraint_of(self.then)
        return bind_in(then, context)

    def _bound(self, context: Context) -> Any:
        """The native form over a vocabulary."""
        return _core.reasoning_budget(
            context.vocabulary,
            begin=cast(Any, self.begin),
            end=cast(Any, self.end),
            budget=self.budget,
            soft=self.soft_budget,
            ramp=self.end_bias,
            message=self.message,
            max_blocks=self.max_blocks,
            whole=self.whole_tags,
            started=self.inside,
            tokenize=self.tokenize or context.tokenize,
        )


def _tag_form(tag: Tag) -> str | list[int]:
    """A tag in the core's JSON form."""
    if isinstance(tag, str | bytes):
        return decoded(tag)
    return [tag] if isinstance(tag, int) else list(tag)


def _tags_form(tags: Tag | Sequence[Tag]) -> list[str | list[int]]:
    """One tag or several in the core's JSON form."""
    if isinstance(tags, str | bytes | int) or all(isinstance(tag, int) for tag in tags):
        return [_tag_form(cast(Tag, tags))]
    return [_tag_form(tag) for tag in tags]
