"""Finds a model's protocol: by name, in its chat template, or in its vocabulary."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from .._core import ConstraintError, Vocabulary
from .._errors import error
from ._derive import derived, from_template
from ._protocol import Protocol, is_special
from ._table import NAMES, PROTOCOLS
from ._template import TemplateFailed, compiled_template
from ._turns import bound_matcher, end_of_text, probe_tools, written_by


def named(name: str) -> Protocol:
    """The protocol with this name; ConstraintError if there is none."""
    for protocol in PROTOCOLS:
        if protocol.name == name:
            return protocol
    raise error(ConstraintError, f"no protocol is called {name!r}", help=f"the names are {', '.join(NAMES)}")


def recognise(template: str | None, vocabulary: Vocabulary | None) -> Protocol:
    """The protocol of a template, or else of a vocabulary; `Protocol.recognise` has the details."""
    if template is not None:
        return _recognised(template, vocabulary)
    if vocabulary is None:
        raise error(ConstraintError, "neither a template nor a vocabulary is given", help="give one of the two")
    found = _fitting(vocabulary)
    chosen = found[0] if len(found) == 1 else _by_name(vocabulary.name, found)
    if chosen is not None:
        return chosen.of_vocabulary(vocabulary)
    if found:
        names = ", ".join(protocol.name for protocol in found)
        help = "give the chat template, or Protocol.named(...) with one of them"
        raise error(ConstraintError, f"the vocabulary fits several protocols: {names}", help=help)
    looked = sorted({text for protocol in PROTOCOLS for texts in protocol.tokens for text in texts})
    message = f"no protocol is recognised in the vocabulary; looked for {', '.join(map(repr, looked))}"
    raise error(ConstraintError, message, help=f"name it: Protocol.named(...) with one of {', '.join(NAMES)}")


def of(engine: Any) -> Protocol:
    """The protocol of an engine's model; `Protocol.of` has the details."""
    template = engine.chat_template
    if isinstance(template, Mapping):
        template = template.get("tool_use", template.get("default"))
    if not isinstance(template, str):
        return recognise(None, engine.vocabulary)
    found, wrong = _by_template(template, engine.vocabulary)
    if found is not None:
        return found
    try:
        return from_template(template, engine.vocabulary)
    except ConstraintError as underivable:
        raise error(ConstraintError, wrong, help=str(underivable)) from underivable


def _recognised(template: str, vocabulary: Vocabulary | None) -> Protocol:
    found, wrong = _by_template(template, vocabulary)
    if found is None:
        help = "Protocol.from_template derives its form where that is possible; or name it: Protocol.named(...)"
        raise error(ConstraintError, wrong, help=help)
    return found


def _by_template(template: str, vocabulary: Vocabulary | None) -> tuple[Protocol | None, str]:
    """The first protocol that reads and allows all that a template writes; or else what it writes.

    Raises:
        ConstraintError: the template takes no conversation.
    """
    fitting = () if vocabulary is None else tuple(protocol.name for protocol in _fitting(vocabulary))
    try:
        return _found(template, end_of_text(vocabulary), fitting)
    except TemplateFailed as wrong:
        help = f"name it: Protocol.named(...) with one of {', '.join(NAMES)}"
        raise error(ConstraintError, f"the chat template takes no conversation: {wrong}", help=help) from wrong


@lru_cache(maxsize=32)
def _found(template: str, eos: str, fitting: tuple[str, ...]) -> tuple[Protocol | None, str]:
    writer = written_by(template, eos)
    turns = tuple(turn for _, turn in writer.turns())[::-1]  # those with most in them first
    shown = "".join((template, *writer.prompts, *(turn.text for turn in turns)))
    written = "".join(turn.text for turn in turns)
    if writer.writes_calls:
        likely = [p for p in PROTOCOLS if any(head.strip() in written for head in _heads(p) if head)]
    else:
        likely = [p for p in PROTOCOLS if any(all(text in shown for text in texts) for texts in p.template)]
        likely = likely or [named(name) for name in fitting]
    thinks = {p for p in PROTOCOLS if p.reasoning and any(end.strip() in shown for end in p.reasoning.ends)}
    likely.sort(key=lambda p: (p.reasoning is not None and p not in thinks, not set(writer.ends) & set(p.turn_end)))
    reasons: list[str] = []
    for protocol in likely:
        wrong = next(filter(None, (turn.mismatch(protocol, probe_tools()) for turn in turns)), "")
        wrong = wrong or next(filter(None, (turn.refusal(protocol, probe_tools()) for turn in turns)), "")
        if not wrong:
            return protocol, ""
        reasons.append(f"{protocol}: {wrong}")
    wrote = " and ".join(repr(turn.text[:300]) for turn in turns[:2])
    tried = f" ({'; '.join(reasons)})" if reasons else ""
    return None, f"no protocol reads and allows what the chat template writes, {wrote}{tried}"


def clear_caches() -> None:
    """Forgets the last 32 chat templates, what they write, and the forms that were found for them."""
    for cached in (compiled_template, written_by, bound_matcher, derived, _found):
        cached.cache_clear()


def _heads(protocol: Protocol) -> tuple[str, ...]:
    """With what calls begin."""
    calls = protocol.calls
    return () if calls is None else (calls.trigger, *(head for head, _ in calls.also))


def _fitting(vocabulary: Vocabulary) -> list[Protocol]:
    """The protocols with the most tokens in a vocabulary."""
    best, found = 0, list[Protocol]()
    for protocol in PROTOCOLS:
        form = protocol.of_vocabulary(vocabulary)
        fits = max((len(texts) for texts in form.tokens if all(is_special(vocabulary, t) for t in texts)), default=0)
        if fits > best:
            best, found = fits, []
        if fits and fits == best:
            found.append(protocol)
    return found


def _by_name(name: str, found: list[Protocol]) -> Protocol | None:
    """The one of several protocols whose model has the longest name in this one."""
    plain = _plain(name)
    known = [
        (len(_plain(model)), protocol) for protocol in found for model in protocol.models if _plain(model) in plain
    ]
    return max(known, key=lambda one: one[0])[1] if known else None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
