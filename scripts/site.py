"""Hooks of mkdocs, which builds the document site: pages from outside `docs`, and links as they are on GitHub.

The documents' links lead through the repository, so that they work where it is read. On the site they lead to its
pages, and links to other files to the repository's address. A link to a file that there is none of stays, and fails
the build.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "README.md": "index.md",
    "examples/README.md": "examples.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "DESIGN.md": "project/design.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
}
"""Pages that are not in `docs`: their files, and where they are on the site."""
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
FENCE = re.compile(r"^(```.*?^```)", re.DOTALL | re.MULTILINE)


def on_files(files: Files, *, config: Any) -> Files:
    """The site has pages from outside `docs`."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Links lead to the site's pages."""
    place = page.file.src_uri
    sources = {site: source for source, site in PAGES.items()}
    source = sources.get(place, f"docs/{place}")
    parts = FENCE.split(markdown)

    def led(link: re.Match[str]) -> str:
        return f"{link[1]}{target(link[2], source, place)}{link[3]}"

    # Every second part is a block of code.
    parts[::2] = [LINK.sub(led, part) for part in parts[::2]]
    return "".join(parts)


def target(link: str, source: str, place: str) -> str:
    """Where a link leads on the site.

    Args:
        link: as the document has it, without an anchor.
        source: the document's path in the repository.
        place: the same on the site.
    """
    if re.match(r"[a-z]+:", link):
        return link
    path = os.path.normpath(os.path.join(os.path.dirname(source), link)).replace(os.sep, "/")
    if not (ROOT / path).exists():
        return link
    if path in PAGES or path.startswith("docs/"):
        there = PAGES.get(path, path.removeprefix("docs/"))
        return os.path.relpath(there, os.path.dirname(place) or ".").replace(os.sep, "/")
    return f"{repository()}/blob/main/{path}"


def repository() -> str:
    """The repository's address."""
    found = re.search(r'^repository = "([^"]+)"', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]
