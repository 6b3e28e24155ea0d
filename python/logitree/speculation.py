"""Drafters: what proposes the next tokens, so that one forward pass decides several.

```python
model = logitree.engines.open("model.gguf")
drafter = logitree.speculation.NGramDrafter()
print(logitree.generate(model, f"Repeat with the names corrected:\\n{text}", drafter=drafter).text)
```

A drafter changes the cost, not the output: each token is sampled from the model's own logits, as it would be without.
Where the sampled token is the proposed one, the logits for the next are there already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from . import _core
from ._errors import EngineError
from .engines import ContextFull, Engine
from .engines import open as open_engine
from .engines._session import as_session

__all__ = ["Draft", "Drafter", "ModelDrafter", "NGramDrafter"]


@runtime_checkable
class Draft(Protocol):
    """What a drafter knows of one sequence."""

    def accept(self, tokens: Sequence[int]) -> None:
        """Takes the next tokens of the output."""
        ...

    def propose(self, ahead: Sequence[int], most: int, matcher: _core.Matcher | None) -> Sequence[int]:
        """The tokens that may come after the sequence and after `ahead`, at most `most`.

        Args:
            ahead: tokens that are proposed already.
            most: how many more.
            matcher: the constraint after `ahead`, a copy that may be moved; None without a constraint. What it does not
                allow is cut off afterwards.
        """
        ...


@runtime_checkable
class Drafter(Protocol):
    """Proposes tokens for any number of sequences."""

    def begin(self, tokens: Sequence[int], vocabulary: _core.Vocabulary) -> Draft:
        """A sequence that begins with these tokens, the prompt's.

        Raises:
            EngineError: the drafter has another vocabulary.
        """
        ...


class NGramDrafter:
    """Proposes what came after the last tokens when they came before: in the prompt, or in the output.

    It costs some microseconds, and pays where the output repeats its prompt: extraction, correction, code. Where no
    tokens are the same, the last bytes are looked up: a text in quotes begins without the space that its first token
    has in the prompt.

    Args:
        shortest: how many tokens must be the same, 1 or more. The longest match is taken, the latest of equal ones.
        sources: other texts that the output may repeat, as token ids.

    Raises:
        SamplingError: `shortest` is less than 1.
    """

    def __init__(self, shortest: int = 2, *, sources: Sequence[Sequence[int]] = ()) -> None:
        if shortest < 1:
            raise _core.SamplingError(f"shortest is {shortest}, expected 1 or more")
        self.shortest = shortest
        self.sources = tuple(tuple(source) for source in sources)

    def begin(self, tokens: Sequence[int], vocabulary: _core.Vocabulary) -> Draft:
        """A sequence that begins with these tokens."""
        return _NGrams(self.shortest, [*self.sources, tokens], vocabulary)

    def __repr__(self) -> str:
        return f"NGramDrafter({self.shortest})"


_BREAK = -1
"""Between two texts: no token."""

_TRIED = 16
"""Earlier places that are compared, the latest first."""

_COMPARED = 32
"""Tokens that are compared at each place."""


_BYTES = 4
"""Bytes that must be the same where no tokens are."""

_WIDE = 6
"""Tokens whose bytes are compared."""


class _NGrams:
    """All tokens so far, and for each place the one before it with the same last tokens, as in LZ77's hash chains."""

    def __init__(self, shortest: int, texts: Sequence[Sequence[int]], vocabulary: _core.Vocabulary) -> None:
        self._shortest, self._vocabulary = shortest, vocabulary
        self._tail = b""
        """The last bytes."""
        self._spelled: dict[bytes, list[int]] = {}
        """By the last bytes before them: places, ascending."""
        self._tokens: list[int] = []
        self._latest: dict[tuple[int, ...], int] = {}
        """By the last tokens before it: the latest place."""
        self._earlier: list[int] = []
        """By place: the next earlier one, or 0."""
        for at, text in enumerate(texts):
            if at:
                self.accept([_BREAK])
            self.accept(text)

    def accept(self, tokens: Sequence[int]) -> None:
        """Takes tokens. The last place is entered with the token after it, since nothing follows it yet."""
        for token in tokens:
            place = len(self._tokens)
            earlier = 0
            if place >= self._shortest and token != _BREAK:
                gram = tuple(self._tokens[-self._shortest :])
                earlier = self._latest.get(gram, 0)
                self._latest[gram] = place
            self._earlier.append(earlier)
            if len(self._tail) == _BYTES:
                self._spelled.setdefault(self._tail, []).append(place)
            self._tail = b"" if token == _BREAK else (self._tail + self._vocabulary[token])[-_BYTES:]
            self._tokens.append(token)

    def propose(self, ahead: Sequence[int], most: int, matcher: _core.Matcher | None) -> Sequence[int]:
        """What followed the longest earlier match of the end of the sequence and `ahead`."""
        tokens = self._tokens
        end = [*tokens[max(0, len(tokens) - _COMPARED) :], *ahead][-_COMPARED:]
        place = self._latest.get(tuple(end[-self._shortest :]), 0)
        best, longest = 0, 0
        for _ in range(_TRIED):
            if not place:
                break
            same = self._shortest
            limit = min(len(end), place)
            while same < limit and end[-1 - same] == tokens[place - 1 - same] != _BREAK:
                same += 1
            if same > longest:
                best, longest = place, same
            place = self._earlier[place]
        if not longest:
            best = self._same_bytes(end)
        made: list[int] = []
        if best:
            # A match that overlaps its own continuation repeats it.
            for at in range(best, best + most):
                past = at - len(tokens)
                token = tokens[at] if past < 0 else [*ahead, *made][past]
                if token == _BREAK:
                    break
                made.append(token)
        return made

    def _same_bytes(self, end: Sequence[int]) -> int:
        """The place with the most bytes before it that are the last of `end`, the latest of equal ones; 0: none."""
        spelled = self._bytes(end)
        best, longest = 0, 0
        for place in reversed(self._spelled.get(spelled[-_BYTES:], ())[-_TRIED:]):
            other = self._bytes(self._tokens[max(0, place - _WIDE) : place])
            limit, same = min(len(spelled), len(other)), _BYTES
            while same < limit and spelled[-1 - same] == other[-1 - same]:
                same += 1
            if same > longest:
                best, longest = place, same
        return best

    def _bytes(self, tokens: Sequence[int]) -> bytes:
        """What the last of these tokens spell, from a break on."""
        pieces: list[bytes] = []
        for token in reversed(tokens[-_WIDE:]):
            if token == _BREAK:
                break
            pieces.append(self._vocabulary[token])
        return b"".join(reversed(pieces))


class ModelDrafter:
    """Proposes what a smaller model of the same vocabulary finds likeliest, among the allowed tokens.

    Args:
        model: an engine, or what `logitree.engines.open` takes. Its sessions must be able to roll back.
        most: most tokens of one proposal; each costs a forward pass of the smaller model.

    Raises:
        EngineError: the model cannot be loaded.
        SamplingError: `most` is less than 1.
    """

    def __init__(self, model: Any, most: int = 4) -> None:
        if most < 1:
            raise _core.SamplingError(f"most is {most}, expected 1 or more")
        self.engine: Engine = open_engine(model)
        """What runs the smaller model."""
        self.most = most

    def begin(self, tokens: Sequence[int], vocabulary: _core.Vocabulary) -> Draft:
        """A sequence that begins with these tokens.

        Raises:
            EngineError: the model has another vocabulary, or its sessions cannot roll back.
        """
        own = self.engine.vocabulary
        if own.fingerprint != vocabulary.fingerprint:
            raise EngineError(
                f"the drafter's vocabulary ({len(own)} tokens) is not the model's ({len(vocabulary)})",
                help="use a smaller model of the same family",
            )
        return _ModelDraft(self.engine, self.most, tokens)

    def __repr__(self) -> str:
        return f"ModelDrafter({self.engine!r})"


class _ModelDraft:
    """The smaller model's sequence."""

    def __init__(self, engine: Engine, most: int, tokens: Sequence[int]) -> None:
        self._session = as_session(engine.session())
        if not self._session.can_rollback:
            raise EngineError("the drafter's sessions cannot roll back", help="use another engine for it")
        self._most = most
        self._tokens = list(tokens)
        self._held: list[int] = []
        """What the session has evaluated."""

    def accept(self, tokens: Sequence[int]) -> None:
        """Takes tokens; they are evaluated with the next proposal."""
        self._tokens += tokens

    def propose(self, ahead: Sequence[int], most: int, matcher: _core.Matcher | None) -> Sequence[int]:
        """The likeliest tokens, one after the other."""
        made: list[int] = []
        try:
            while len(made) < min(most, self._most) and (matcher is None or not matcher.is_finished):
                logits = self._logits([*self._tokens, *ahead, *made])
                if matcher is not None and not (allowed := matcher.allowed()).is_all:
                    logits = np.array(logits)
                    _core.mask_apply(logits, allowed.mask())
                made.append(int(np.argmax(logits)))
                if matcher is not None:
                    matcher.accept(made[-1])
        except ContextFull:
            pass
        return made

    def _logits(self, wanted: list[int]) -> Any:
        """The logits after these tokens; what the session holds of them is kept, but for the last."""
        same = next((i for i, (a, b) in enumerate(zip(self._held, wanted, strict=False)) if a != b), None)
        keep = min(len(self._held), len(wanted) - 1) if same is None else same
        if keep < len(self._held):
            self._session.rollback(len(self._held) - keep)
            del self._held[keep:]
        new = wanted[keep:]
        logits = self._session.evaluate(new)
        self._held += new
        return logits
