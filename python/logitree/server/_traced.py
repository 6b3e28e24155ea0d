"""What the playground asks for: the trace of an output as it comes, and the tree of the tokens that may come next."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from .. import _core
from .._events import Finish, Token
from .._kinds import shown_bytes
from .._trace import VERSION, token_record
from ._answers import Answer, Chunk


class Traced(Answer):
    """The records of `Trace.records` of one output, as they come, and one more that says how it ended.

    `given`: how many tokens the output begins with that are the client's own, and have no record.
    """

    prefix, object, chunk_object = "trace", "trace", "trace"

    def __init__(self, *args: Any, given: int, **named: Any) -> None:
        super().__init__(*args, **named)
        self._given, self._at = given, 0
        self._text = codecs.getincrementaldecoder("utf-8")("replace")
        self._records: list[Chunk] = []

    def begin(self) -> Iterator[Chunk]:
        yield self._kept(
            {
                "record": "trace",
                "version": VERSION,
                "model": self.model,
                "vocabulary": {"name": self.vocabulary.name, "size": len(self.vocabulary)},
                "prompt_tokens": len(self.rows[0].prompt),
                "given": self._given,
            }
        )

    def _token(self, at: int, event: Token) -> Iterator[Chunk]:
        place, self._at = self._at, self._at + 1
        text = self._text.decode(event.bytes)
        if place >= self._given and event.step is not None:
            yield self._kept(token_record(place, event.step, event.source, text, self.vocabulary))

    def _finish(self, at: int, event: Finish) -> Iterator[Chunk]:
        stats = {**asdict(event.stats), "passes_saved": dict(event.stats.passes_saved)}
        record = {"record": "end", "reason": event.reason, "complete": event.complete, "text": event.text}
        yield self._kept({**record, "tail": self._text.decode(b"", final=True), "stats": stats})

    def _kept(self, record: Chunk) -> Chunk:
        self._records.append(record)
        return record

    def whole(self) -> Chunk:
        return {"object": self.object, "records": self._records}


def children(vocabulary: _core.Vocabulary, tokens: Iterable[int], prefix: bytes) -> dict[str, Any]:
    """A node of the tree of some tokens by their bytes.

    Args:
        vocabulary: what tokens mean.
        tokens: ids.
        prefix: the bytes that lead to the node.

    Returns:
        `count`: how many tokens begin with `prefix`; `token`: the one that is `prefix`, or None; `children`: one for
        each byte that may follow, with the bytes up to where they differ, the most tokens first; `special`: at the
        root, the tokens that are no text.
    """
    texts: list[tuple[bytes, int]] = []
    special: list[dict[str, Any]] = []
    for token in tokens:
        data = shown_bytes(vocabulary, token)
        if data and data.startswith(prefix):
            texts.append((data, token))
        elif not data and not prefix:
            special.append({"id": token, "text": vocabulary.token_bytes(token).decode("utf-8", "replace")})
    texts.sort()
    here = next((token for data, token in texts if data == prefix), None)
    groups: dict[int, list[tuple[bytes, int]]] = {}
    for data, token in texts:
        if len(data) > len(prefix):
            groups.setdefault(data[len(prefix)], []).append((data, token))
    found = [_child(group, len(prefix)) for group in groups.values()]
    found.sort(key=lambda child: (-child["count"], child["bytes"]))
    return {"count": len(texts) + len(special), "token": here, "children": found, "special": special}


def _child(group: Sequence[tuple[bytes, int]], skipped: int) -> dict[str, Any]:
    """What is said of tokens that begin with the same bytes, from the first on that the node does not have."""
    first, last = group[0][0], group[-1][0]  # in order: what these have in common, all have
    same = (at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other)
    path = first[: next(same, min(len(first), len(last)))]
    token = group[0][1] if first == path else None
    return {
        "bytes": path.hex(),
        "text": path[skipped:].decode("utf-8", "replace"),
        "count": len(group),
        "token": token,
    }
