"""Writes GGUF files without tensors, and real ones again with other metadata."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_ID, _INTEGERS, _FLOATS, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9

Value = str | bytes | bytearray | bool | int | float | Sequence[str] | Sequence[bytes] | Sequence[int] | Sequence[float]
"""What a key may hold: an array holds values of one kind, a bytearray is an array of bytes."""


def _string(text: str | bytes) -> bytes:
    content = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(content)) + content


def _scalar(value: object) -> tuple[int, bytes]:
    if isinstance(value, str | bytes):
        return _STRING, _string(value)
    if isinstance(value, bool):
        return _BOOL, struct.pack("<?", value)
    if isinstance(value, int):
        return _INTEGERS, struct.pack("<i", value)
    if isinstance(value, float):
        return _FLOATS, struct.pack("<f", value)
    raise TypeError(f"no GGUF value: {value!r}")


def _written(value: Value) -> bytes:
    if isinstance(value, bytearray):
        return struct.pack("<IIQ", _ARRAY, 0, len(value)) + bytes(value)
    if isinstance(value, str | bytes | bool | int | float):
        kind, content = _scalar(value)
        # A number by itself is an id.
        return struct.pack("<I", _ID if kind == _INTEGERS else kind) + content
    items = [_scalar(item) for item in value]
    kind = items[0][0] if items else _STRING
    return struct.pack("<IIQ", _ARRAY, kind, len(items)) + b"".join(content for _, content in items)


def _raw(content: bytes) -> dict[str, bytes]:
    """The values of a file's keys, as written, with their types."""
    _, version, _, pairs = struct.unpack_from("<IIQQ", content, 0)
    assert content[:4] == b"GGUF" and version >= 2
    at, found = 24, dict[str, bytes]()

    def skip(kind: int, at: int) -> int:
        if kind == _STRING:
            return at + 8 + int(struct.unpack_from("<Q", content, at)[0])
        if kind != _ARRAY:
            return at + _SIZES[kind]
        inner, count = struct.unpack_from("<IQ", content, at)
        at += 12
        if inner in _SIZES:
            return at + _SIZES[inner] * int(count)
        for _ in range(count):
            at = skip(inner, at)
        return at

    for _ in range(pairs):
        (length,) = struct.unpack_from("<Q", content, at)
        key = content[at + 8 : at + 8 + length].decode()
        start = at + 8 + length
        at = skip(struct.unpack_from("<I", content, start)[0], start + 4)
        found[key] = content[start:at]
    return found


def _file(pairs: Mapping[str, bytes]) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs))
    return head + b"".join(_string(key) + value for key, value in pairs.items())


def gguf(metadata: Mapping[str, Value]) -> bytes:
    """A file of these keys."""
    return _file({key: _written(value) for key, value in metadata.items()})


def rewritten(path: Path, changed: Mapping[str, Value | None]) -> bytes:
    """The metadata of a file with some keys changed, or without those that are None."""
    pairs = _raw(path.read_bytes())
    for key, value in changed.items():
        pairs.pop(key, None)
        if value is not None:
            pairs[key] = _written(value)
    return _file(pairs)
