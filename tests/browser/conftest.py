"""One headless Chromium for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from browser import Browser, chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser with one tab; the tests are skipped where no Chromium is installed."""
    path = chromium()
    if path is None:
        pytest.skip("no Chromium is installed")
    with Browser(path) as made:
        yield made
