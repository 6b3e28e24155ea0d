"""What a request gives the logits processor: a constraint, a chain of samplers, or both."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ... import _core
from ..._constraint import Context, bind_in
from ..._core import Constraint
from ..._errors import error
from .._forms import form_text, read_form
from .._requests import Compiler

_FIELDS = ("constraint", "chain", "params")


@dataclass(frozen=True)
class Arguments:
    """The field "logitree" of a request's `extra_args`."""

    form: str | None
    """The JSON form of the constraint; None: only a chain picks."""
    chain: str | None = None
    """The samplers that pick each token, in the notation of `Chain.parse`; None: vLLM's own pick."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """The parameters of the chain, the seed among them."""

    @staticmethod
    def read(given: Any) -> Arguments:
        """The arguments of a request: the JSON form of a constraint, or an object with the fields "constraint",
        "chain" and "params"; as JSON text or parsed.

        Raises:
            ConstraintError: they are neither, or name a file that the server does not give out.
            SamplingError: there is no such chain.
        """
        value = given
        if isinstance(given, str):
            try:
                value = json.loads(given)
            except (ValueError, RecursionError):
                return Arguments(form_text(given))  # the core says what is wrong with it
        if not isinstance(value, Mapping) or "type" in value:
            return Arguments(form_text(given))
        unknown = sorted(set(map(str, value)) - set(_FIELDS))
        if unknown or not {"constraint", "chain"} & set(value):
            what = f"the field {unknown[0]!r} means nothing" if unknown else "there is neither constraint nor chain"
            help = f'give {{"type": ...}}, or the fields {", ".join(_FIELDS)}'
            raise error(_core.ConstraintError, what, help=help)
        form, chain, params = (value.get(name) for name in _FIELDS)
        if params is not None and (chain is None or not isinstance(params, Mapping)):
            raise error(_core.SamplingError, "params is an object with the parameters of a chain")
        made = Arguments(None if form is None else form_text(form), chain, dict(params or {}))
        made.made_chain()
        return made

    def made_chain(self) -> _core.Chain | None:
        """A new chain. Raises SamplingError for one that means nothing."""
        if self.chain is None:
            return None
        if not isinstance(self.chain, str):
            raise error(_core.SamplingError, f"{self.chain!r:.60} is no chain", help='give a text: "top_k;temp"')
        try:
            return _core.Chain.parse(self.chain, **self.params)
        except TypeError as wrong:
            raise error(_core.SamplingError, f"params: {wrong}") from None

    def constraint(self, vocabulary: _core.Vocabulary | None = None) -> Constraint | None:
        """The constraint, if there is one. Raises what `Constraint.from_form` raises."""
        return None if self.form is None else read_form(self.form, vocabulary)

    def bind(self, compiler: Compiler, prompt: Sequence[int], seconds: float) -> _core.Matcher | _core.Decoder:
        """What decides for one request: a matcher, or a decoder where a chain picks.

        Args:
            compiler: the model's.
            prompt: the prompt's tokens, for a block of reasoning that it has begun, and for penalties.
            seconds: the longest that it may take.

        Raises:
            ConstraintError, PayloadError, FileError, LimitError: the constraint cannot be honoured.
        """
        vocabulary = compiler.vocabulary
        with _core.Deadline(seconds):
            constraint = self.constraint(vocabulary)
            matcher = None if constraint is None else bind_in(constraint, Context(vocabulary, prompt=prompt))
            if matcher is not None:
                matcher.allowed()
        chain = self.made_chain()
        if chain is None:
            assert matcher is not None  # `read` refuses arguments with neither
            return matcher
        decoder = _core.Decoder(vocabulary, chain, matcher, stop_at_end_tokens=False)
        decoder.prime(prompt)
        return decoder
