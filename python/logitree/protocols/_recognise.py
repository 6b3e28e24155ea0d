"""Finds a model's protocol: by name, in its chat template, or in its vocabulary."""

from __future__ import annotations

import re
from typing import Any

from .._core import ConstraintError, Vocabulary
from .._errors import error
from ._protocol import Protocol
from ._table import NAMES, PROTOCOLS


def named(name: str) -> Protocol:
    """The protocol with this name; ConstraintError if there is none."""
    for protocol in PROTOCOLS:
        if protocol.name == name:
            return protocol
    raise error(ConstraintError, f"no protocol is called {name!r}", help=f"the names are {', '.join(NAMES)}")


def recognise(template: str | None, vocabulary: Vocabulary | None) -> Protocol:
    """The protocol of a template, or else of a vocabulary; `Protocol.recognise` has the details."""
    if template is None and vocabulary is None:
        raise error(ConstraintError, "neither a template nor a vocabulary is given", help="give one of the two")
    if template is not None:
        for protocol in PROTOCOLS:
            if any(all(text in template for text in texts) for texts in protocol.template):
                return protocol
    found = [] if vocabulary is None else _fitting(vocabulary)
    if len(found) == 1:
        return found[0]
    if found and vocabulary is not None:
        chosen = _by_name(vocabulary.name, found)
        if chosen is not None:
            return chosen
        names = ", ".join(protocol.name for protocol in found)
        help = "give the chat template, or Protocol.named(...) with one of them"
        raise error(ConstraintError, f"the vocabulary fits several protocols: {names}", help=help)
    where = [name for name, given in (("template", template), ("vocabulary", vocabulary)) if given is not None]
    looked = sorted(
        {text for protocol in PROTOCOLS for texts in (*protocol.template, *protocol.tokens) for text in texts}
    )
    raise error(
        ConstraintError,
        f"no protocol is recognised in the {' or the '.join(where)}; looked for {', '.join(map(repr, looked))}",
        help=f"name it: Protocol.named(...) with one of {', '.join(NAMES)}",
    )


def of(engine: Any) -> Protocol:
    """The protocol of an engine's model; `Protocol.of` has the details."""
    template = engine.chat_template
    if isinstance(template, dict):
        template = template.get("tool_use", template.get("default"))
    return recognise(template if isinstance(template, str) else None, engine.vocabulary)


def _fitting(vocabulary: Vocabulary) -> list[Protocol]:
    """The protocols with the most tokens in a vocabulary."""
    best, found = 0, list[Protocol]()
    for protocol in PROTOCOLS:
        fits = max((len(texts) for texts in protocol.tokens if all(_is_token(vocabulary, t) for t in texts)), default=0)
        if fits > best:
            best, found = fits, []
        if fits and fits == best:
            found.append(protocol)
    return found


def _is_token(vocabulary: Vocabulary, text: str) -> bool:
    return any(vocabulary.kind(id) in ("control", "user_defined") for id in vocabulary.find(text.encode()))


def _by_name(name: str, found: list[Protocol]) -> Protocol | None:
    """The one of several protocols whose model has the longest name in this one."""
    plain = _plain(name)
    known = [
        (len(_plain(model)), protocol) for protocol in found for model in protocol.models if _plain(model) in plain
    ]
    return max(known, key=lambda one: one[0])[1] if known else None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
