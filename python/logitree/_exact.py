"""Exact probabilities of texts after a prompt: a tree of their tokens, evaluated whole, and all spellings together.

The slow version that it must equal scores each spelling of each text alone, in a session of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from . import _core
from ._constraint import OneOf
from ._errors import IncompleteError, error
from .engines import ContextFull, Engine, Logits
from .engines._trees import PROMPT, Evaluated

TOLERANCE = 1e-6
"""How much the search of all spellings may leave out: the share of the probability of all texts together."""

MAX_PATHS = 20_000
"""Most beginnings of spellings that are evaluated for one prompt."""


class Scores(NamedTuple):
    """What the model says of each text after one prompt."""

    logs: list[float]
    """Of each text, the log-probability in nats."""
    spelled: list[tuple[int, ...]]
    """Its tokens in the tokenizer's spelling, or in the likeliest where all count."""
    evaluated: Evaluated


class TextTree:
    """Token sequences as a tree, and their probabilities.

    A sequence that is the beginning of another ends with one of the end tokens; the others end with their last token.
    """

    def __init__(self, sequences: Sequence[Sequence[int]], ends: Sequence[int]) -> None:
        self.sequences = [tuple(one) for one in sequences]
        self._ends = list(ends)
        children: list[dict[int, int]] = [{}]
        self._places: list[int] = []
        for sequence in self.sequences:
            at = 0
            for token in sequence:
                if token not in children[at]:
                    children[at][token] = len(children)
                    children.append({})
                at = children[at][token]
            self._places.append(at)
        self._children = children
        # Logits are needed where something continues; node 0 is the prompt.
        numbers = {0: PROMPT}
        self.parents: list[int] = []
        self.tokens: list[int] = []
        for node, on in enumerate(children):
            if not on:
                continue
            for token, child in on.items():
                if children[child]:
                    numbers[child] = len(self.tokens)
                    self.parents.append(numbers[node])
                    self.tokens.append(token)
        self._nodes = {number: node for node, number in numbers.items()}
        self._may_end = {place for place in self._places if children[place]}
        if self._may_end and not self._ends:
            message = "a value is the beginning of another, and the vocabulary has no end-of-generation token"
            raise error(_core.ConstraintError, message, help="give OneOf(values, following=...)")

    def logs(self, engine: Engine, prompt: Sequence[int]) -> tuple[list[float], Evaluated]:
        """The log-probability of each sequence after the prompt."""
        gains = [0.0] * len(self._children)
        ends: dict[int, float] = {}

        def read(number: int, logits: Logits) -> None:
            node = self._nodes[number]
            tokens, more = list(self._children[node]), self._ends if node in self._may_end else []
            found = log_probabilities(logits, [*tokens, *more])
            for token, log in zip(tokens, found, strict=False):
                gains[self._children[node][token]] = log
            if more:
                ends[node] = log_sum(found[len(tokens) :])

        evaluated = engine.tree_logits(prompt, self.parents, self.tokens, read)
        # A child's number is greater than its parent's.
        totals = [0.0] * len(gains)
        for node, on in enumerate(self._children):
            for child in on.values():
                totals[child] = totals[node] + gains[child]
        return [totals[place] + ends.get(place, 0.0) for place in self._places], evaluated


def scores(
    engine: Engine, prompt: Sequence[int], one_of: OneOf, spelling: str, most: int | None, lead: bytes = b""
) -> Scores:
    """The log-probability of each different text of a `OneOf`.

    Args:
        spelling: "canonical", "any", or "auto": canonical where the engine has a tokenizer that spells the texts.
        most: most tokens of a text.
        lead: text that was taken back from the prompt and precedes each text.

    Raises:
        IncompleteError: a text has more tokens, or does not fit into the context.
        ConstraintError: a text cannot be spelled, or nothing says where it ends.
        LimitError: there are too many spellings.
        LogitsError: NaN among the logits, or no text has a probability.
    """
    texts = [lead + text for text in dict.fromkeys(whole(one_of))]
    spelled = None if spelling == "any" else canonical(engine, one_of, texts, is_asked=spelling == "canonical")
    any_spelling = OneOf(texts)
    if len(texts) == 1:
        spelled = (texts[0] and spelled) or [tuple(_matcher(any_spelling, engine).shortest_ending())]
    if spelled is not None:
        _check_lengths(spelled, most)
    if len(texts) == 1:
        return Scores([0.0], spelled or [], Evaluated(0, 0))
    try:
        if spelled is None:
            usual = canonical(engine, one_of, texts, is_asked=False)
            return _of_all(engine, prompt, texts, _matcher(any_spelling, engine), usual, most)
        logs, evaluated = TextTree(spelled, engine.vocabulary.end_tokens).logs(engine, prompt)
        return Scores(logs, spelled, evaluated)
    except ContextFull:
        help = "shorten the prompt or the values, or load the model with a larger n_ctx"
        raise IncompleteError("the context is full: a value does not fit after the prompt", help=help) from None


def _matcher(one_of: OneOf, engine: Engine) -> _core.Matcher:
    """A matcher at the beginning of a text in any spelling."""
    return one_of.matcher(engine.vocabulary)


def whole(one_of: OneOf) -> list[bytes]:
    """The texts of a `OneOf` with what follows them, as bytes.

    Raises:
        ConstraintError: a text is no text of Unicode.
    """
    end, made = one_of.following or b"", list[bytes]()
    for text in one_of.texts:
        try:
            parts = [part.encode() if isinstance(part, str) else part for part in (text, end)]
        except UnicodeEncodeError:
            raise error(_core.ConstraintError, f"{text!r} holds a surrogate", help="give valid Unicode") from None
        made.append(b"".join(parts))
    return made


def canonical(engine: Engine, one_of: OneOf, texts: Sequence[bytes], *, is_asked: bool) -> list[tuple[int, ...]] | None:
    """The tokenizer's tokens of each text; None where there is no tokenizer, or it does not spell one of them.

    Raises:
        ConstraintError: that is so, and they are asked for.
    """
    tokenize = one_of.tokenize or engine.tokenize
    if tokenize is None:
        if is_asked:
            raise error(_core.ConstraintError, "the engine has no tokenizer", help='give tokenization="any"')
        return None
    vocabulary, made = engine.vocabulary, []
    for text in texts:
        try:
            tokens = tuple(map(int, tokenize(text.decode()))) if text else ()
            spells = b"".join(vocabulary[token] for token in tokens) == text
        except UnicodeDecodeError:
            spells = False
        if not spells:
            if is_asked:
                message = f"the tokenizer's tokens do not spell {text[:60]!r}"
                raise error(_core.ConstraintError, message, help='give tokenization="any"')
            return None
        made.append(tokens)
    return made


def log_probabilities(logits: Logits, tokens: Sequence[int]) -> list[float]:
    """The log-probability of each of these tokens among all.

    Raises:
        LogitsError: NaN or +inf among the logits.
    """
    highest = float(np.max(logits))
    if math.isnan(highest) or highest == math.inf:
        raise error(_core.LogitsError, f"the model's logits contain {highest}", help="look at the model and its input")
    found: list[float] = _core.log_softmax(logits, tokens).tolist()
    return found


def log_sum(logs: Iterable[float]) -> float:
    """log(sum(exp(logs))), -inf of none."""
    given = list(logs)
    highest = max(given, default=-math.inf)
    if highest == -math.inf:
        return highest
    return highest + math.log(math.fsum(math.exp(log - highest) for log in given))


def normalised(logs: Sequence[float]) -> list[float]:
    """Log-probabilities as probabilities that sum to 1.

    Raises:
        LogitsError: none is above -inf.
    """
    total = log_sum(logs)
    if total == -math.inf:
        message = "the model gives none of the values a probability"
        raise error(_core.LogitsError, message, help="its logits are -inf for all of them: look at the model's bans")
    shares = [math.exp(log - total) for log in logs]
    rounded = math.fsum(shares)
    return [share / rounded for share in shares]


def _check_lengths(spelled: Iterable[Sequence[int]], most: int | None) -> None:
    longest = max(map(len, spelled))
    if most is not None and longest > most:
        raise IncompleteError(
            f"a value is not complete: max_tokens is {most}, and it has {longest} tokens",
            help="give a larger max_tokens",
        )


class _Path(NamedTuple):
    """The beginning of some spellings."""

    tokens: tuple[int, ...]
    log: float
    matcher: _core.Matcher


def _of_all(
    engine: Engine,
    prompt: Sequence[int],
    texts: Sequence[bytes],
    matcher: _core.Matcher,
    spelled: list[tuple[int, ...]] | None,
    most: int | None,
) -> Scores:
    """The sums over all spellings, but for `TOLERANCE` of their total, level by level.

    The probability of a beginning bounds what all spellings with it add, so the least likely beginnings can be left out
    as long as together they have less than that share of what is known to be there: of the tokenizer's spellings at
    first, then of what was found.
    """
    vocabulary, ends = engine.vocabulary, set(engine.vocabulary.end_tokens)
    index = {text: at for at, text in enumerate(texts)}
    found: list[list[float]] = [[] for _ in texts]
    best: list[tuple[float, tuple[int, ...]]] = [(-math.inf, ())] * len(texts)
    passes = reused = evaluated = 0
    known = -math.inf
    if spelled is not None:
        logs, took = TextTree(spelled, vocabulary.end_tokens).logs(engine, prompt)
        known, passes, reused = log_sum(logs), took.passes, took.reused
    level, dropped = [_Path((), 0.0, matcher)], 0.0
    while level:
        level, dropped = _likely(level, known, dropped)
        evaluated += len(level)
        if evaluated > MAX_PATHS:
            message = f"more than {MAX_PATHS} beginnings of spellings"
            raise error(_core.LimitError, message, help='give tokenization="canonical", or fewer and shorter values')
        if most is not None and len(level[0].tokens) >= most:
            _check_lengths([(*level[0].tokens, 0)], most)
        logits_of, took = _level_logs(engine, prompt, level)
        passes, reused, on = passes + took.passes, max(reused, took.reused), list[_Path]()
        for path, (allowed, logs) in zip(level, logits_of, strict=True):
            for token, log in zip(allowed, logs, strict=True):
                tokens = (*path.tokens, token)
                after = path.matcher.fork()
                after.accept(token)
                if not after.is_finished:
                    on.append(_Path(tokens, path.log + log, after))
                    continue
                text = b"".join(vocabulary[one] for one in tokens if one not in ends)
                at = index[text]
                found[at].append(path.log + log)
                best[at] = max(best[at], (path.log + log, tokens))
        known = max(known, log_sum(log for logs in found for log in logs))
        level = [path for path in on if path.log > -math.inf]
    return Scores(list(map(log_sum, found)), [tokens for _, tokens in best], Evaluated(passes, reused))


def _likely(level: list[_Path], known: float, dropped: float) -> tuple[list[_Path], float]:
    """The paths without the least likely, and the probability of all that are left out so far, as a share of what is
    known."""
    if known == -math.inf:
        return level, dropped
    order = sorted(level, key=lambda path: path.log)
    at = 0
    while at < len(order) and dropped + math.exp(min(order[at].log - known, 0.0)) <= TOLERANCE:
        dropped += math.exp(min(order[at].log - known, 0.0))
        at += 1
    return order[at:], dropped


def _level_logs(
    engine: Engine, prompt: Sequence[int], level: Sequence[_Path]
) -> tuple[list[tuple[list[int], list[float]]], Evaluated]:
    """For each path the tokens that may come, and their log-probabilities."""
    allowed = [list(path.matcher.allowed()) for path in level]
    numbers: dict[tuple[int, ...], int] = {(): PROMPT}
    parents, tokens = list[int](), list[int]()
    for path in level:
        for n in range(1, len(path.tokens) + 1):
            if path.tokens[:n] not in numbers:
                numbers[path.tokens[:n]] = len(tokens)
                parents.append(numbers[path.tokens[: n - 1]])
                tokens.append(path.tokens[n - 1])
    wanted = {numbers[path.tokens]: at for at, path in enumerate(level)}
    made: list[list[float]] = [[] for _ in level]

    def read(node: int, logits: Logits) -> None:
        if (at := wanted.get(node)) is not None:
            made[at] = log_probabilities(logits, allowed[at])

    took = engine.tree_logits(prompt, parents, tokens, read)
    return list(zip(allowed, made, strict=True)), took
