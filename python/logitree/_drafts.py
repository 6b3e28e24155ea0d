"""Proposes the next tokens of a sequence: those of text that is certain, and those of a drafter.

Whatever is proposed, the output is the same: the loop samples every token from the model's logits, and a proposal only
says which logits to ask for in one pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from . import _core
from ._certain import Speller
from .engines import PassCosts
from .speculation import Draft

MAX_DRAFT = 32
"""Most tokens proposed at once."""

_STEP = 0.1
"""How much one more token counts in the share of those that came."""

_PROBED = 3
"""Continuations that are tried to find out whether the last token of a certain text stays as it is."""

_WORDS = b"etaoinshrdlucmfwygpbvkxqjzETAOINSHRDLUCMFWYGPBVKXQJZ1234567890"
"""What words and numbers begin with."""

_HELD = 8
"""Tokens before a certain text that matter for how it is cut into tokens."""


@dataclass(slots=True)
class _Rate:
    """The share of proposed tokens that come, if those before them came: a running mean."""

    value: float

    def learn(self, right: bool) -> None:
        """One more proposed token was looked at."""
        self.value += _STEP * (right - self.value)


class Drafts:
    """What is proposed for one sequence.

    Args:
        vocabulary: the model's.
        speller: proposes text that is certain; None: it is not proposed.
        draft: proposes the rest; None: nothing does.
        costs: what passes cost, to propose only what pays; None: every proposal does.
    """

    def __init__(
        self,
        vocabulary: _core.Vocabulary,
        speller: Speller | None,
        draft: Draft | None,
        costs: PassCosts | None = None,
    ) -> None:
        self._vocabulary = vocabulary
        self._speller, self._draft, self._costs = speller, draft, costs
        self._words: list[tuple[bytes, Sequence[int]]] = []
        self._certain_rate = _Rate(0.95)
        # What a drafter proposes first is a guess; once some of it has come, the rest mostly comes too.
        self._first_rate, self._joined_rate, self._next_rate = _Rate(0.7), _Rate(0.4), _Rate(0.9)
        self._is_running = False
        """Whether all that was proposed last came."""
        self._proposed: list[_Rate] = []
        """What the rates of the tokens proposed last are."""

    def accept(self, tokens: Sequence[int]) -> None:
        """Takes tokens of the output."""
        if self._draft is not None and tokens:
            self._draft.accept(tokens)

    def told(self, right: int) -> None:
        """Says how many tokens of the last proposal came."""
        for n, rate in enumerate(self._proposed[: right + 1]):
            rate.learn(n < right)
        self._is_running = 0 < len(self._proposed) <= right

    def propose(self, decoder: _core.Decoder, held: Sequence[int], most: int, before: int = 1) -> list[int]:
        """The tokens that may come next, each allowed after those before it.

        Args:
            decoder: the state; it is not changed.
            held: all tokens so far, the prompt's too.
            most: how many.
            before: tokens that the pass evaluates in any case.
        """
        self._proposed = []
        if decoder.is_finished:
            return []
        most = min(most, MAX_DRAFT)
        matcher = decoder.matcher
        made: list[int] = []
        # A drafter that is mostly wrong is asked for few tokens.
        left = math.ceil(MAX_DRAFT * self._next_rate.value**2)
        try:
            while len(made) < most and (matcher is None or not matcher.is_finished):
                new, first, rest = [], self._certain_rate, self._certain_rate
                if matcher is not None:
                    new = self._certain(matcher, [*held[-_HELD:], *made])
                if not new and self._draft is not None and left:
                    fork = None if matcher is None else matcher.fork()
                    new, rest = list(self._draft.propose(made, left, fork)), self._next_rate
                    first = self._joined_rate if made else rest if self._is_running else self._first_rate
                    left -= len(new)
                new = new[: most - len(made)]
                allowed = new if matcher is None else new[: matcher.validate(new)]
                made += allowed
                self._proposed += [first, *[rest] * (len(allowed) - 1)] if allowed else []
                if not new or len(allowed) < len(new):
                    break
                if matcher is not None:
                    matcher.accept_many(allowed)
        except _core.LimitError:
            # What takes too long to find out need not be proposed.
            pass
        if self._costs is not None:
            del made[self._costs.worth([rate.value for rate in self._proposed], before) :]
            del self._proposed[len(made) :]
        return made

    def _certain(self, matcher: _core.Matcher, held: Sequence[int]) -> list[int]:
        """The tokens of the text that is certain, without a last one that the model's tokenizer would not give with
        most of what may follow."""
        if self._speller is None:
            return []
        text, _ = matcher.certain_bytes(self._vocabulary)
        rates = [self._certain_rate.value] * len(text)
        if self._draft is None and self._costs is not None and not self._costs.worth(rates):
            # Too little text to pay, were each of its bytes a token.
            return []
        _, tokens = self._speller.spell(held, 0, text)
        if not tokens or matcher.validate(tokens) < len(tokens):
            return tokens
        after = matcher.fork()
        after.accept_many(tokens)
        if after.is_finished:
            return tokens
        probes = self._probes(after)
        kept = sum(self._speller.spell(held, 0, text + probe)[1][: len(tokens)] == tokens for probe in probes)
        return tokens if 2 * kept >= len(probes) else tokens[:-1]

    def _probes(self, matcher: _core.Matcher) -> list[bytes]:
        """Some bytes that may come: letters and digits rather than others."""
        if not self._words:
            lookup = self._vocabulary.trie.lookup
            self._words = [(bytes([byte]), lookup(bytes([byte]))) for byte in _WORDS]
        allowed, found = matcher.allowed(), list[bytes]()
        for byte, ids in self._words:
            if any(token in allowed for token in ids):
                found.append(byte)
                if len(found) == _PROBED:
                    return found
        return found or [self._vocabulary[int(token)] for token in allowed.ids[:_PROBED]]
