"""A slate: one item after another, none twice, by beam search in a tree that shrinks. It knows no runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from .._errors import error
from ..beams import Hypothesis, beam_search
from ..catalogue import Catalogue
from ._expand import NO_CANDIDATE, NO_KEY
from ._tree import RtpTree


def slate(
    engine: Any,
    prompt: Sequence[int],
    tree: Catalogue | RtpTree,
    size: int,
    *,
    end: int | None = None,
    banned: Sequence[Sequence[int]] = (),
    **options: Any,
) -> list[Hypothesis]:
    """The likeliest item, then the likeliest other item after prompt and item, and so on.

    It takes a copy of the tree's index in memory, from which what is banned or chosen is removed: a branch without
    items takes no beam. The tree itself stays as it is.

    Args:
        engine: runs the model, as of `logitree.beam_search`.
        prompt: token ids.
        tree: the items.
        size: most items of the slate.
        end: the token that ends every item; of an `RtpTree` it is its own.
        banned: items, as their tokens without the end, that may not come.
        **options: as of `logitree.beam_search`; not `returned`.

    Returns:
        The items in their order: fewer than `size` where there are no more.

    Raises:
        ConstraintError: the tree was changed since its index was made: `merge` it first.
        LogitreeError: as of `logitree.beam_search`.
    """
    source = tree.prefix if isinstance(tree, RtpTree) else tree
    left = Catalogue.from_bytes(source.to_bytes())
    if len(left) != len(source) or source.info()["added_nodes"]:
        raise error(_core.ConstraintError, "the tree was changed since its index was made", help="merge it first")
    if isinstance(tree, RtpTree):
        end = tree.end
        left.remove(items=np.array([NO_KEY, NO_CANDIDATE], np.uint64))
    left.remove([list(item) for item in banned])
    read = list(prompt)
    chosen: list[Hypothesis] = []
    while len(chosen) < size and len(left):
        found = beam_search(engine, [read], left.walk(end_token=end), returned=1, **options)[0]
        if not found:
            break
        chosen.append(found[0])
        tokens = list(found[0].tokens)
        read += tokens
        left.remove([tokens[:-1] if end is not None else tokens])
    return chosen
