"""Automata as tables of uint16, [states, 256], for the trie's suite; 65535 is dead and 0 the start."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.uint16]

DEAD = 0xFFFF

REGEX = {
    "JSON string": r'(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*',
    "[a-z]+": "[a-z]+",
    "digits": "[0-9]+",
    "identifier": "[A-Za-z_][A-Za-z0-9_]*",
}
"""The same languages as regular expressions, for peers."""


def tables() -> dict[str, Table]:
    """The automata by name."""
    return {
        "JSON string": json_string(),
        "[a-z]+": _table([{0: span("a", "z")}]),
        "digits": _table([{0: span("0", "9")}]),
        "identifier": _table(
            [
                {1: span("a", "z") + span("A", "Z") + b"_"},
                {1: span("a", "z") + span("A", "Z") + span("0", "9") + b"_"},
            ]
        ),
    }


def span(first: str, last: str) -> bytes:
    """The bytes from one character to another, both included."""
    return bytes(range(ord(first), ord(last) + 1))


def _table(rows: list[dict[int, Iterable[int]]]) -> Table:
    """A table from one dictionary a state: next state -> bytes."""
    table = np.full((len(rows), 256), DEAD, np.uint16)
    for state, row in enumerate(rows):
        for to, characters in row.items():
            table[state, list(characters)] = to
    return table


def json_string() -> Table:
    """The inside of a JSON string, in UTF-8."""
    tail = range(0x80, 0xC0)
    hexadecimal = span("0", "9") + span("a", "f") + span("A", "F")
    return _table(
        [
            {
                0: [b for b in range(0x20, 0x80) if b not in b'"\\'],
                1: b"\\",
                6: range(0xC2, 0xE0),
                7: [*range(0xE1, 0xED), 0xEE, 0xEF],
                8: range(0xF1, 0xF4),
                9: [0xE0],
                10: [0xED],
                11: [0xF0],
                12: [0xF4],
            },
            {0: b'"\\/bfnrt', 2: b"u"},
            {3: hexadecimal},
            {4: hexadecimal},
            {5: hexadecimal},
            {0: hexadecimal},
            {0: tail},
            {6: tail},
            {7: tail},
            {6: range(0xA0, 0xC0)},
            {6: range(0x80, 0xA0)},
            {7: range(0x90, 0xC0)},
            {7: range(0x80, 0x90)},
        ]
    )


def random_tables(count: int, states: int, live: float) -> list[Table]:
    """Tables with a share ``live`` of live transitions: nothing that a branch predictor could learn."""
    rng = np.random.default_rng(3)
    shape = (count, states, 256)
    draws = np.where(rng.random(shape) < live, rng.integers(0, states, shape), DEAD)
    return list(draws.astype(np.uint16))
