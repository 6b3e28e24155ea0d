"""Proposes the next tokens of a sequence: those of text that is certain, and those of a drafter.

Whatever is proposed, the output is the same: the loop samples every token from the model's logits, and a proposal only
says which logits to ask for in one pass.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from . import _core
from ._certain import Speller
from .engines import PassCosts
from .speculation import Draft

MAX_DRAFT = 32
"""Most tokens proposed at once."""

_STEP = 0.2
"""How much one more token counts in the share of those that came."""

_BELIEVED = (0.6, 0.85, 0.93, 0.96, 0.98)
"""The share of a drafter's tokens that come, after so many that came as it proposed (`_level`), before any was seen."""

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


def _level(run: int) -> int:
    """Which rate holds after so many tokens that came as proposed: 0, 1, 2 to 3, 4 to 7, 8 or more."""
    return min(run.bit_length(), len(_BELIEVED) - 1)


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
        # What a drafter proposes first is a guess; the more of it has come, the likelier the rest is.
        self._rates = [_Rate(value) for value in _BELIEVED]
        self._run = 0
        """How many tokens came as a drafter proposed them, one after another."""
        self._expected: deque[tuple[int, _Rate]] = deque()
        """The tokens that were expected to come next, those too that were not worth proposing."""

    @property
    def has_drafter(self) -> bool:
        """Whether more is proposed than text that is certain."""
        return self._draft is not None

    def accept(self, tokens: Sequence[int]) -> None:
        """Takes tokens of the output."""
        for token in tokens:
            if not self._expected:
                break
            expected, rate = self._expected.popleft()
            rate.learn(token == expected)
            if token != expected:
                self._expected.clear()
            self._run = self._run + 1 if token == expected and rate is not self._certain_rate else 0
        if self._draft is not None and tokens:
            self._draft.accept(tokens)

    def propose(self, decoder: _core.Decoder, held: Sequence[int], most: int, before: int = 1) -> list[int]:
        """The tokens that may come next, each allowed after those before it.

        Args:
            decoder: the state; it is not changed.
            held: all tokens so far, the prompt's too.
            most: how many.
            before: tokens that the pass evaluates in any case.
        """
        self._expected.clear()
        if decoder.is_finished:
            return []
        most = min(most, MAX_DRAFT)
        matcher = decoder.matcher
        made: list[int] = []
        rates: list[_Rate] = []
        run = self._run
        # A drafter that is mostly wrong is asked for few tokens.
        left = math.ceil(MAX_DRAFT * self._rates[_level(run)].value)
        try:
            while len(made) < most and (matcher is None or not matcher.is_finished):
                new, drafted = list[int](), False
                if matcher is not None:
                    new = self._certain(matcher, [*held[-_HELD:], *made])
                if not new and self._draft is not None and left:
                    fork = None if matcher is None else matcher.fork()
                    new, drafted = list(self._draft.propose(made, left, fork)), True
                    run = 0 if made else run
                    left -= len(new)
                new = new[: most - len(made)]
                allowed = new if matcher is None else new[: matcher.validate(new)]
                made += allowed
                places = range(run, run + len(allowed))
                rates += [self._rates[_level(n)] if drafted else self._certain_rate for n in places]
                if not new or len(allowed) < len(new):
                    break
                if matcher is not None:
                    matcher.accept_many(allowed)
        except _core.LimitError:
            # What takes too long to find out need not be proposed.
            pass
        self._expected.extend(zip(made, rates, strict=True))
        if not made:
            self._run = 0
        if self._costs is not None:
            del made[self._costs.worth([rate.value for rate in rates], before) :]
        return made

    def _certain(self, matcher: _core.Matcher, held: Sequence[int]) -> list[int]:
        """The tokens of the text that is certain, without a last one that the model's tokenizer would not give with
        most of what may follow."""
        if self._speller is None:
            return []
        text, _ = matcher.certain_bytes()
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
