"""elizaOS's token-tree payloads: compiled trees, payloads from names, and plans of response skeletons.

```python
tree = elizaos.token_tree(payload)  # JSON text, bytes or a dict
logitree.generate(model, prompt, tree.at("action")).value
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from . import _progress, _renamed
from ._core import (
    PayloadError,
    TokenTree,
    TokenTreeCache,
    TokenTreePath,
    prefill_plan,
    span_sampler_plan,
    token_tree,
    token_tree_cache,
)
from ._errors import error

__all__ = [
    "TokenTree",
    "TokenTreeCache",
    "TokenTreePath",
    "TokenizerCache",
    "descriptor",
    "payload",
    "prefill_plan",
    "span_sampler_plan",
    "token_tree",
    "token_tree_cache",
    "tokenizer_cache",
]

Tokenize = Callable[[str], Sequence[int]]

CAPACITY = 8192
"""Names whose tokens are kept per model; the next one drops them all."""


_NAMES = 256
"""Names between two reports of progress."""


class TokenizerCache:
    """The tokens of names, per model. A model's names are dropped all at once when there are too many.

    Safe to share between threads; two threads may tokenise one name at once, with equal results.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.capacity = capacity
        """Most names of a model."""
        self._models: dict[str, dict[str, tuple[int, ...]]] = {}
        self._lock = Lock()

    def tokens(self, model_id: str, name: str, tokenize: Tokenize) -> tuple[int, ...]:
        """The tokens of ``name``; ``tokenize`` is asked only if they are not known."""
        known = self._models.get(model_id, {}).get(name)
        if known is not None:
            return known
        made = tuple(tokenize(name))
        with self._lock:
            names = self._models.setdefault(model_id, {})
            if len(names) >= self.capacity:
                names.clear()
            names[name] = made
        return made

    def forget(self, model_id: str) -> None:
        """Drops one model's names."""
        with self._lock:
            self._models.pop(model_id, None)

    def clear(self) -> None:
        """Drops everything."""
        with self._lock:
            self._models.clear()

    def info(self) -> dict[str, int]:
        """Number of names kept, per model."""
        with self._lock:
            return {model_id: len(names) for model_id, names in self._models.items()}

    def __repr__(self) -> str:
        return f"TokenizerCache({self.info()}, capacity={self.capacity})"


tokenizer_cache = TokenizerCache()
"""The process-wide cache that ``descriptor`` uses."""


def descriptor(
    path: str,
    names: Iterable[str | None],
    tokenize: Tokenize,
    *,
    model_id: str | None = None,
    on_progress: _progress.OnProgress | None = None,
) -> dict[str, Any] | None:
    """The descriptor of the span at ``path`` whose values are ``names``; None if no names are left.

    Missing and empty names are dropped, repeated ones count once, the rest is sorted by code point: the
    same names in any order give the same descriptor, byte for byte. ``tokenize`` gives a name's ids without
    special tokens; with a ``model_id`` its answers are kept in ``tokenizer_cache``. ``on_progress`` is called with a
    number from 0 to 1; None: where standard error is a terminal, what takes more than a second is shown there.

    Raises PayloadError for a name that it gives no ids for: it could not be generated.
    """
    distinct = sorted({name for name in names if name})
    if not distinct:
        return None

    def ids(name: str) -> list[int]:
        made = tokenize(name) if model_id is None else tokenizer_cache.tokens(model_id, name, tokenize)
        if not made:
            raise error(
                PayloadError, f"the name {name!r} of {path!r} has no tokens", help="tokenize() gave an empty list"
            )
        return list(made)

    leaves = []
    with _progress.telling("tokenising names", on_progress) as tell:
        for done, name in enumerate(distinct, 1):
            leaves.append({"name": name, "tokens": ids(name)})
            if done % _NAMES == 0 or done == len(distinct):
                tell(done / len(distinct))
    return {"path": path, "leaves": leaves}


def payload(model_id: str | None, descriptors: Iterable[dict[str, Any] | None]) -> dict[str, Any] | None:
    """The payload of those descriptors that are there; None where there is none: nothing is constrained then."""
    kept = [one for one in descriptors if one is not None]
    return {"modelId": model_id, "descriptors": kept} if kept else None


if not TYPE_CHECKING:  # a type checker knows no old names, so that it marks misspelled ones

    def __getattr__(name: str) -> Any:
        return _renamed.of_module(__name__, name)
