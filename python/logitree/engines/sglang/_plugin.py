"""The plug-in that SGLang loads in each of its processes: it adds our backend to SGLang's registry.

What the backend relies on in SGLang is checked when a server makes it: an SGLang that has other members is an error, so
no request reaches another backend instead, and a server with another backend starts as before.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection
from typing import Any

from ... import _core
from ..._errors import EngineError

NAME = "logitree"
"""What `--grammar-backend` calls the backend."""

TRIED = "0.5.23"
"""The version of SGLang that this backend was written for."""


def register() -> None:
    """Adds the grammar backend "logitree" to SGLang. SGLang calls it; doing so again changes nothing.

    Raises:
        EngineError: SGLang is not installed, or it is another version that has no registry of grammar backends.
    """
    try:
        import sglang
    except ImportError as missing:
        raise EngineError(f"SGLang is not usable: {missing}", help=f"install sglang {TRIED}") from missing
    try:
        from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES, add_grammar_backend_choices
        from sglang.srt.constrained.base_grammar_backend import register_grammar_backend
    except ImportError as differs:
        raise _differs(sglang, str(differs)) from differs
    register_grammar_backend(NAME, make_backend)
    if NAME not in GRAMMAR_BACKEND_CHOICES:
        add_grammar_backend_choices([NAME])


def make_backend(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Collection[int] | None) -> Any:
    """The backend of a model, as SGLang's registry asks for it: with SGLang's own wrapper for reasoning where the
    server has a reasoning parser.

    Args:
        server_args, tokenizer: SGLang's.
        vocab_size: how many logits the model gives.
        eos_token_ids: the ends of generation that the model's configuration names.

    Raises:
        EngineError: this is another version of SGLang, whose places differ; or a server argument means nothing here.
        VocabularyError: the tokenizer cannot be read.
        ConstraintError: no token ends a generation.
    """
    import sglang

    try:
        from . import _backend

        _check_places(_backend)
    except (ImportError, AttributeError, _Differs) as differs:
        raise _differs(sglang, str(differs)) from differs
    return _backend.make(tokenizer, vocab_size, eos_token_ids)


class _Differs(Exception):
    """A place in SGLang that is not as the backend knows it."""


def _differs(sglang: Any, what: str) -> EngineError:
    return EngineError(
        f"logitree {_core.__version__} cannot be a grammar backend of SGLang {sglang.__version__}: {what}",
        help=f"use sglang {TRIED}, or another version of logitree",
    )


def _check_places(backend: Any) -> None:
    """A `_Differs` unless SGLang's classes have the members that ours implement, and no others."""
    inherited = {"maybe_init_reasoning", "finished"}
    _check_members(backend.LogitreeGrammar, backend.BaseGrammarObject, inherited)
    inherited = {"enable_strict_thinking", "get_request_grammar_key", "init_strict_reasoning_grammar"}
    inherited |= {"dispatch_fallback", "get_cached_or_future_value", "set_cache"}
    wrapped = {"allocate_vocab_mask", "move_vocab_mask", "apply_vocab_mask"}
    _check_members(backend.LogitreeBackend, backend.BaseGrammarBackend, inherited, wrapped)
    expected = ["self", "grammar_backend", "reasoning_parser", "tokenizer", "enable_strict_thinking"]
    if list(inspect.signature(backend.ReasonerGrammarBackend.__init__).parameters) != expected:
        raise _Differs("ReasonerGrammarBackend takes other arguments")


def _check_members(ours: type, theirs: type, inherited: Collection[str], added: Collection[str] = ()) -> None:
    members, made = ({name for name in vars(kind) if not name.startswith("_")} for kind in (theirs, ours))
    for name in sorted(members ^ (made | set(inherited)) - set(added)):
        what = "has a member that is not known here" if name in members else "has no member"
        raise _Differs(f"{theirs.__name__} {what}: {name}")
    for name in sorted(members & made):
        mine, own = getattr(ours, name), getattr(theirs, name)
        if callable(own) and list(inspect.signature(own).parameters) != list(inspect.signature(mine).parameters):
            raise _Differs(f"{theirs.__name__}.{name} takes other arguments")
