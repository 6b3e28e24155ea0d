"""Names of test cases that are the same in every process, as pytest-xdist needs them."""

import re


def stable_repr(value: object) -> str:
    """The repr, without addresses and with sets in order."""
    if isinstance(value, (set, frozenset)):
        value = sorted(value)
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
